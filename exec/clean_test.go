package exec_test

import (
	"os"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
)

// TestFaultWhileCleaning: old checkpoints that cannot be removed hold up nothing, neither checkpoints nor their commits, and go
// when they can be removed.
func TestFaultWhileCleaning(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 2, 200)
	var stuck atomic.Bool
	var refused atomic.Int64
	stuck.Store(true)
	fs := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpRemoveAll && stuck.Load() && isCheckpoint(op.Path) {
			refused.Add(1)
			return &os.PathError{Op: "remove", Path: op.Path, Err: syscall.EIO}
		}
		return nil
	}))
	owner, err := checkpoint.Own(fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	g := newGraph(bus)
	g.sink("out", 2, hash(g.source("in", 2, nil)))
	j := start(t, g.g, exec.JobOptions{Owner: owner})
	waitRows(t, j, 400)
	take := func() {
		t.Helper()
		if _, err := j.Checkpoint(patient(t)); err != nil {
			t.Fatal(err)
		}
	}
	// Each checkpoint is committed, whatever becomes of the old ones.
	const n = 8
	for range n {
		take()
	}
	for deadline := time.Now().Add(patience); refused.Load() == 0; time.Sleep(time.Millisecond) {
		if take(); time.Now().After(deadline) {
			t.Fatal("nothing was to be removed")
		}
	}
	if kept := checkpoints(t, fs); kept < n {
		t.Fatalf("%d checkpoints are there, none could be removed", kept)
	}
	stuck.Store(false)
	for deadline := time.Now().Add(patience); checkpoints(t, fs) > 4; time.Sleep(time.Millisecond) {
		if take(); time.Now().After(deadline) {
			t.Fatalf("%d checkpoints are left", checkpoints(t, fs))
		}
	}
	bus.Feed("in").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if s := j.Status(); s.Restarts > 0 || s.Checkpoint.GivenUp > 0 {
		t.Errorf("%d restarts, %d checkpoints given up", s.Restarts, s.Checkpoint.GivenUp)
	}
	same(t, bus.Queue("out").Rows(), want)
}

// checkpoints is how many there are in the job's directory.
func checkpoints(t *testing.T, fs vfs.FS) (n int) {
	t.Helper()
	names, err := fs.List("/job")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if isCheckpoint(name) {
			n++
		}
	}
	return n
}

func isCheckpoint(path string) bool {
	base := vfs.Default.PathBase(path)
	return len(base) > 4 && base[:4] == "chk-"
}
