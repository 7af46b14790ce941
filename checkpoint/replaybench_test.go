//go:build unix

package checkpoint

import (
	"encoding/binary"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// BenchmarkReplay is a restore of a table from segments, by row: the files are verified and read from the operating system's cache.
func BenchmarkReplay(b *testing.B) {
	for _, rows := range []int{100_000, 1_000_000, 4_000_000} {
		for _, versions := range []int{1, 2} {
			b.Run(fmt.Sprintf("rows=%d/versions=%d", rows, versions), func(b *testing.B) { benchmarkReplay(b, rows, versions) })
		}
	}
}

func benchmarkReplay(b *testing.B, rows, versions int) {
	owner, err := OwnDir(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer owner.Close()
	st, err := OpenBackend(owner, "written", BackendOptions{Budget: NewMemoryBudget(4 << 30)})
	if err != nil {
		b.Fatal(err)
	}
	tb, err := st.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		b.Fatal(err)
	}
	var files []StateFile
	value := make([]byte, 80)
	for v := range versions {
		for i := range uint64(rows) {
			binary.BigEndian.PutUint64(value, i*uint64(v+1))
			if err := tb.Put(binary.BigEndian.AppendUint64(nil, i), value); err != nil {
				b.Fatal(err)
			}
		}
		async, err := st.Seal(ID(v + 1))
		if err != nil {
			b.Fatal(err)
		}
		if files, err = async(bg); err != nil {
			b.Fatal(err)
		}
	}
	if err := st.Close(); err != nil {
		b.Fatal(err)
	}
	c := &Checkpoint{ID: 1, Subtasks: []Snapshot{{Files: files}}}
	var cpu time.Duration
	for b.Loop() {
		before := processorTime(b)
		if err := VerifyFiles(bg, vfs.Default, owner.dir, c); err != nil {
			b.Fatal(err)
		}
		r, err := OpenBackend(owner, "restored", BackendOptions{Budget: NewMemoryBudget(4 << 30)})
		if err != nil {
			b.Fatal(err)
		}
		if err := r.Restore(bg, files); err != nil {
			b.Fatal(err)
		}
		rt, err := r.Table("agg", TableOptions{Name: "acc", Format: "v1"})
		if err != nil {
			b.Fatal(err)
		}
		if n := rt.Len(); n != int64(rows) {
			b.Fatalf("%d rows", n)
		}
		b.StopTimer()
		cpu += processorTime(b) - before
		if err := r.Close(); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(cpu.Nanoseconds())/float64(b.N)/float64(rows), "cpu-ns/row")
}

// processorTime is what this process has used: on a loaded machine it says more than the clock.
func processorTime(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
