package checkpoint

import (
	"errors"
	"math/rand/v2"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// savable is a store with one committed checkpoint.
func savable(t testing.TB, fs vfs.FS) (*Owner, *DirStore) {
	t.Helper()
	owner, s := openStore(t, fs)
	publish(t, owner, s, 1)
	return owner, s
}

// publish adds a committed checkpoint.
func publish(t testing.TB, owner *Owner, s *DirStore, id ID) {
	t.Helper()
	if err := s.Publish(bg, testCheckpoint(t, owner, id)); err != nil {
		t.Fatal(err)
	}
	if err := s.Confirm(bg, id); err != nil {
		t.Fatal(err)
	}
}

// whole tells whether fs has a savepoint in dir; a part of one fails the test.
func whole(t testing.TB, fs vfs.FS, dir string) bool {
	t.Helper()
	if _, err := fs.Stat(dir); err != nil {
		return false
	}
	c, err := ReadSavepoint(fs, dir)
	if err != nil {
		t.Fatalf("half a savepoint: %v", err)
	}
	if err := VerifyFiles(bg, fs, dir, c); err != nil {
		t.Fatalf("half a savepoint: %v", err)
	}
	return true
}

// watched is mem with a clone, as a crash would leave it, before every write: with none, half and all of what is not synced.
func watched(mem *vfs.MemFS, clones *[]*vfs.MemFS) vfs.FS {
	return errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
			for i, pct := range []int{0, 50, 100} {
				*clones = append(*clones, mem.CrashClone(vfs.CrashCloneCfg{UnsyncedDataPercent: pct, RNG: rand.New(rand.NewPCG(uint64(len(*clones)), uint64(i)))}))
			}
		}
		return nil
	}))
}

// Goal: after a crash anywhere in the making or removal of a savepoint there is a whole one or none, and both can be
// repeated. Method: a clone of the file system before every write.
func TestSavepointAtEveryCrashPoint(t *testing.T) {
	mem := vfs.NewCrashableMem()
	owner, s := savable(t, mem)
	var making, removing []*vfs.MemFS
	s.fs = watched(mem, &making)
	if err := s.Savepoint(bg, 1, "/save/one"); err != nil {
		t.Fatal(err)
	}
	owner.Close()
	making = append(making, mem.CrashClone(vfs.CrashCloneCfg{}))
	none, one := 0, 0
	for i, fs := range making {
		_, s := openStore(t, fs)
		if whole(t, fs, "/save/one") {
			one++
			continue
		}
		if none++; i == len(making)-1 {
			t.Fatal("it was made and is gone")
		}
		if err := s.Savepoint(bg, 1, "/save/one"); err != nil || !whole(t, fs, "/save/one") {
			t.Fatalf("clone %d, once more: %v", i, err)
		}
		if names, err := fs.List("/save"); err != nil || len(names) != 1 {
			t.Fatalf("clone %d: what was unfinished stays: %v %v", i, names, err)
		}
	}
	if none < 10 || one < 1 {
		t.Fatalf("%d crashes leave none, %d one: they do not cover both", none, one)
	}
	if err := Dispose(watched(mem, &removing), "/save/one"); err != nil {
		t.Fatal(err)
	}
	none, one = 0, 0
	for i, fs := range append(removing, mem.CrashClone(vfs.CrashCloneCfg{})) {
		if whole(t, fs, "/save/one") {
			one++
		} else {
			none++
		}
		if err := Dispose(fs, "/save/one"); err != nil && !strings.Contains(err.Error(), "there is no savepoint") {
			t.Fatalf("clone %d, once more: %v", i, err)
		}
		if names, err := fs.List("/save"); err != nil || len(names) != 0 {
			t.Fatalf("clone %d: %v %v are left", i, names, err)
		}
	}
	if none < 1 || one < 1 {
		t.Fatalf("%d crashes leave none, %d one: they do not cover both", none, one)
	}
}

// Goal: whichever write, sync, rename or link fails while a savepoint is made or removed, the error names it, there is a
// whole savepoint or none, the job's own checkpoint is whole, and the call can be repeated. Method: the n-th write fails,
// for every n.
func TestSavepointFaults(t *testing.T) {
	for _, cause := range []error{syscall.ENOSPC, syscall.EIO} {
		for n, hit := 0, true; hit; n++ {
			mem := vfs.NewCrashableMem()
			_, s := savable(t, mem)
			left := n
			hit = false
			broken := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
				if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
					return nil
				}
				if left--; left != -1 {
					return nil
				}
				hit = true
				return cause
			}))
			s.fs = broken
			err := s.Savepoint(bg, 1, "/save/one")
			if err == nil {
				err = Dispose(broken, "/save/one")
			}
			if hit && err != nil && (diag.CodeOf(err) != diag.External || !errors.Is(err, cause) && !strings.Contains(err.Error(), cause.Error())) {
				t.Fatalf("fault %d: %v does not name %v", n, err, cause)
			}
			s.fs = mem
			c, _, lerr := s.Latest(bg)
			if lerr == nil {
				lerr = s.Verify(bg, c)
			}
			if lerr != nil {
				t.Fatalf("fault %d: the job's checkpoint: %v", n, lerr)
			}
			if !whole(t, mem, "/save/one") {
				if err := s.Savepoint(bg, 1, "/save/one"); err != nil {
					t.Fatalf("fault %d, made once more: %v", n, err)
				}
			}
			if err := Dispose(mem, "/save/one"); err != nil {
				t.Fatalf("fault %d, removed once more: %v", n, err)
			}
			if names, err := mem.List("/save"); err != nil || len(names) != 0 {
				t.Fatalf("fault %d: %v %v are left", n, names, err)
			}
			if !hit && n < 20 {
				t.Fatalf("only %d writes", n)
			}
		}
	}
}

// Dispose removes savepoints and nothing else.
func TestDisposeRefuses(t *testing.T) {
	mem := vfs.NewCrashableMem()
	_, s := savable(t, mem)
	if err := s.Savepoint(bg, 1, "/save"); err != nil {
		t.Fatal(err)
	}
	if err := mem.MkdirAll("/mixed/chk-1", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := writeSynced(mem, "/mixed/mine.txt", []byte("mine")); err != nil {
		t.Fatal(err)
	}
	if err := s.owner.Close(); err != nil {
		t.Fatal(err)
	}
	for dir, why := range map[string]string{
		"/job": "is not a savepoint", "/job/chk-1": "is not a savepoint", "/mixed": "is not a savepoint", "/nowhere": "there is no savepoint",
	} {
		if err := Dispose(mem, dir); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", dir, err)
		}
	}
	if !whole(t, mem, "/save") {
		t.Fatal("another savepoint is gone")
	}
	if err := Dispose(mem, "/save/"); err != nil {
		t.Fatal(err)
	}
}
