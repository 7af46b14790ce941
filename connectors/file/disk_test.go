package file

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// Goal: rows are never committed into a directory that a power cut takes away. Method: a process makes the directories of a
// partition and is killed, or fails, at each sync; the next one finds them and says that they are durable.
func TestDirectoriesSurvivePowerCuts(t *testing.T) {
	const path, part = "/data/out", "k=1/l=2"
	syncs := 0
	for n := 0; n <= syncs; n++ {
		mem := vfs.NewCrashableMem()
		s := diskSink(t, path, mem)
		left := n
		s.fs = errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind != errorfs.OpFileSync {
				return nil
			}
			syncs = max(syncs, n+1)
			if left--; left < 0 {
				return syscall.EIO
			}
			return nil
		}))
		if err := s.makeDir(part); err == nil {
			if n < 3 {
				t.Fatalf("no fault at sync %d", n)
			}
			return
		}
		for _, next := range []*sink{s, diskSink(t, path, mem)} { // the same attempt again, or another process
			next.fs = mem
			if err := next.makeDir(part); err != nil {
				t.Fatal(err)
			}
			if _, err := mem.CrashClone(vfs.CrashCloneCfg{}).Stat(filepath.Join(path, part)); err != nil {
				t.Fatalf("fault at sync %d: %v", n, err)
			}
		}
	}
	t.Fatal("no call was without fault")
}

func diskSink(t *testing.T, path string, fs vfs.FS) *sink {
	t.Helper()
	c, err := parse(table(path))
	if err != nil {
		t.Fatal(err)
	}
	return &sink{config: c, fs: fs}
}

// A file in progress never takes the place of another.
func TestCreateNew(t *testing.T) {
	name := filepath.Join(t.TempDir(), "f")
	f, err := createNew(vfs.Default, name)
	if err == nil {
		err = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := createNew(vfs.Default, name); !errors.Is(err, os.ErrExist) {
		t.Fatalf("made again: %v", err)
	}
}
