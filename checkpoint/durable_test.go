package checkpoint

import (
	"errors"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// TestRestoreMakesDurable: what a restore resumes from and commits survives a power failure, also when the Publish that wrote it
// failed, or its process died, after the rename and before the directory was durable. Found by the simulation.
func TestRestoreMakesDurable(t *testing.T) {
	disk := vfs.NewCrashableMem()
	broken := false
	fs := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if broken && op.Kind == errorfs.OpFileSync && op.Path == "/job/chk-1" {
			return errors.New("the disk is full")
		}
		return nil
	}))
	owner, err := Own(fs, "/job")
	if err != nil {
		t.Fatal(err)
	}
	s, err := OpenStore(owner, StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Reserve(bg, 1); err != nil {
		t.Fatal(err)
	}
	broken = true
	if err := s.Publish(bg, &Checkpoint{ID: 1, Lineage: "l", Fence: owner.Fence()}); err == nil {
		t.Fatal("the directory was not synced")
	}
	broken = false
	owner.Close()
	// The next process finds it all the same, commits and confirms it.
	if owner, err = Own(disk, "/job"); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStore(owner, StoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if c, confirmed, err := s.Latest(bg); err != nil || confirmed || c.ID != 1 {
		t.Fatal(c, confirmed, err)
	}
	if err := s.Confirm(bg, 1); err != nil {
		t.Fatal(err)
	}
	// The power fails.
	if owner, err = Own(disk.CrashClone(vfs.CrashCloneCfg{}), "/job"); err != nil {
		t.Fatal(err)
	}
	if s, err = OpenStore(owner, StoreOptions{}); err != nil {
		t.Fatal(err)
	}
	if c, confirmed, err := s.Latest(bg); err != nil || !confirmed || c.ID != 1 {
		t.Fatal(c, confirmed, err)
	}
}
