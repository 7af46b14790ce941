package checkpoint

import (
	"errors"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// killedAt is a file system that does n changes more and then none, as for a process that is killed: what it changed is
// there, durable or not. over tells whether it came so far.
func killedAt(fs vfs.FS, n int) (killed vfs.FS, over *bool) {
	over = new(bool)
	return errorfs.Wrap(fs, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		if n--; n < 0 {
			*over = true
			return syscall.EIO
		}
		return nil
	})), over
}

func TestPowerCutAfterKill(t *testing.T) {
	// Goal: what a process finds when it starts, and acts on, is still there after a power cut, also when the process before was
	// killed before it had made it durable. Method: kill at each change, start another process, cut the power when it has
	// read the newest checkpoint, and when it has published one.
	const dir = "/a/b/job"
	for n, end := 0, false; !end; n++ {
		mem := vfs.NewCrashableMem()
		fs, over := killedAt(mem, n)
		if owner, err := Own(fs, dir); err == nil {
			s, err := OpenStore(owner, StoreOptions{})
			for id := ID(1); id <= 2 && err == nil; id++ {
				var c *Checkpoint
				if err = s.Reserve(bg, id); err == nil {
					c, err = tryCheckpoint(owner, id)
				}
				if err == nil {
					err = s.Publish(bg, c)
				}
				if err == nil {
					err = s.Confirm(bg, id)
				}
			}
			owner.Close()
		}
		end = !*over
		owner, s := openIn(t, mem, dir)
		seen, confirmed, err := s.Latest(bg)
		if err != nil && !errors.Is(err, ErrNone) {
			t.Fatalf("killed at %d: %v", n, err)
		}
		if end && (seen == nil || seen.ID != 2 || !confirmed) {
			t.Fatalf("after %d changes there is no confirmed checkpoint 2", n)
		}
		sameAfterCut(t, n, mem, dir, seen)
		c := testCheckpoint(t, owner, s.NextID())
		if err := errors.Join(s.Reserve(bg, c.ID), s.Publish(bg, c)); err != nil {
			t.Fatalf("killed at %d: %v", n, err)
		}
		sameAfterCut(t, n, mem, dir, c)
		if n > 200 {
			t.Fatal("the process does not come to its end")
		}
	}
}

// sameAfterCut checks that the newest checkpoint after a power cut is want; nil = none.
func sameAfterCut(t *testing.T, n int, mem *vfs.MemFS, dir string, want *Checkpoint) {
	t.Helper()
	owner, s := openIn(t, mem.CrashClone(vfs.CrashCloneCfg{}), dir)
	c, _, err := s.Latest(bg)
	if want == nil && errors.Is(err, ErrNone) {
		return
	}
	if err != nil || want == nil || c.ID != want.ID {
		t.Fatalf("killed at %d: a process went on from %v, after the power cut there is %v, %v", n, want, c, err)
	}
	if err := s.Verify(bg, c); err != nil {
		t.Fatalf("killed at %d: %v", n, err)
	}
	restored(t, owner, c)
}

func TestReserveAfterFailedSync(t *testing.T) {
	// Goal: an id whose directory could not be made durable is reserved durably by the next call. Method: the sync of the
	// job's directory fails once.
	mem := vfs.NewCrashableMem()
	owner, s := openIn(t, mem, "/job")
	fail := true
	s.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileSync && op.Path == "/job" && fail {
			fail = false
			return syscall.EIO
		}
		return nil
	}))
	if err := s.Reserve(bg, 1); err == nil {
		t.Fatal("the fault is not reported")
	}
	c := testCheckpoint(t, owner, 1)
	if err := errors.Join(s.Reserve(bg, 1), s.Publish(bg, c)); err != nil {
		t.Fatal(err)
	}
	sameAfterCut(t, 0, mem, "/job", c)
}
