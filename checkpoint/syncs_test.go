package checkpoint

import (
	"os"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Goal: every fsync below a state directory is timed, of checkpoint files, directories and Pebble's files, with the time that it
// really took. Method: another count of the same calls one layer below, which makes each of them slow; a backend with rows on
// disk, sealed; and as nothing is asserted about speed, a disk that takes 3 ms must not be said to take less.
func TestSyncFigures(t *testing.T) {
	const slow = 3 * time.Millisecond
	count := &syncMeter{} // what reaches the disk
	inner := vfs.FS(timedFS{vfs.Default, count})
	fs := errorfs.Wrap(inner, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync || op.Kind == errorfs.OpFileSyncData {
			time.Sleep(slow)
		}
		return nil
	}))
	owner, err := Own(fs, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	begun := owner.Syncs()
	if begun.Count < 2 { // the note of the owner, and its directory
		t.Fatalf("after the directory was taken: %+v", begun)
	}
	b, err := OpenBackend(owner, "agg-0", BackendOptions{Budget: NewMemoryBudget(256 << 10)})
	if err != nil {
		t.Fatal(err)
	}
	tb, err := b.Table("agg", TableOptions{Name: "acc", Format: "v1"})
	if err != nil {
		t.Fatal(err)
	}
	if err := countRows(tb.(*table), 20_000); err != nil {
		t.Fatal(err)
	}
	if b.db == nil {
		t.Fatal("memory had room for all rows")
	}
	async, err := b.Seal(1)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := async(bg); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil { // compactions have ended, too
		t.Fatal(err)
	}
	f := owner.Syncs()
	if f.Count <= begun.Count || f.Count != count.figures().Count {
		t.Errorf("%d fsyncs are told, %d before the seal; %d reached the disk", f.Count, begun.Count, count.figures().Count)
	}
	if f.P50 < slow || f.P99 < f.P50 || f.Total < time.Duration(f.Count)*slow || f.Samples != int(min(f.Count, int64(len(count.last)))) {
		t.Errorf("each fsync takes at least %s, told is %+v", slow, f)
	}
	if f := OwnMemory().Syncs(); f != (SyncFigures{}) {
		t.Errorf("in memory there is no disk: %+v", f)
	}
}

// The quantiles are those of the last fsyncs, and failed ones count.
func TestSyncWindow(t *testing.T) {
	var m syncMeter
	for i := range 2 * len(m.last) {
		_ = m.timed(func() error { return os.ErrClosed })
		m.last[i%len(m.last)] = time.Duration(i) // in place of the time it took
	}
	f, n := m.figures(), len(m.last)
	if f.Count != int64(2*n) || f.Samples != n || f.P50 < time.Duration(n+n/2-1) || f.P50 > time.Duration(n+n/2) || f.P99 < time.Duration(2*n-n/50) {
		t.Errorf("%+v of the numbers %d to %d", f, n, 2*n-1)
	}
}
