package disk

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// The ways in which a file is damaged while nobody uses it.
var damages = []struct {
	name string
	do   func(path string, data []byte, at int) error
}{
	{"bit flipped", func(path string, data []byte, at int) error {
		if len(data) == 0 {
			return errNothing
		}
		data[at%len(data)] ^= 1 << (at % 8)
		return rewrite(path, data)
	}},
	{"cut off", func(path string, data []byte, at int) error {
		if len(data) == 0 {
			return errNothing
		}
		return os.Truncate(path, int64(at%len(data)))
	}},
	{"zeros", func(path string, data []byte, at int) error {
		if len(data) == 0 {
			return errNothing
		}
		from := at % len(data)
		clear(data[from:min(from+4096, len(data))])
		return rewrite(path, data)
	}},
	{"empty", func(path string, data []byte, _ int) error {
		if len(data) == 0 {
			return errNothing
		}
		return os.Truncate(path, 0)
	}},
	{"missing", func(path string, _ []byte, _ int) error { return os.Remove(path) }},
}

// errNothing is that of a damage that would change nothing.
var errNothing = errors.New("the file is empty")

// rewrite changes the bytes of a file in place, so that all its names see it.
func rewrite(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(data, 0)
	return errors.Join(err, f.Close())
}

// damage is a file that was damaged.
type damage struct {
	kind, what, path string
	before, after    []byte
	gone             bool
	only             bool     // of a manifest: its process was killed before it had written the other copy
	f                *os.File // by any of its names: some may be gone by the time it is repaired
}

// harm damages a file of a kind below dir, chosen at random; nil when there is none. Of checkpoints it is mostly the newest
// that is harmed: nobody reads the others.
func (r *run) harm(dir string, kind string) *damage {
	r.t.Helper()
	var all []string
	err := filepath.WalkDir(filepath.Join(r.root, dir), func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && (kindOf(path) == kind || kind == savepoints) {
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		r.t.Fatal(err)
	}
	if kind != pendings && kind != progresses && r.rnd.IntN(4) > 0 {
		newest := newestCheckpoint(all)
		if some := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !strings.Contains(p, newest) }); len(some) > 0 {
			all = some
		}
	}
	slices.Sort(all)
	for range 8 {
		if len(all) == 0 {
			return nil
		}
		x := &damage{kind: kind, path: all[r.rnd.IntN(len(all))]}
		if x.before, err = os.ReadFile(x.path); err != nil {
			r.t.Fatal(err)
		}
		if x.f, err = os.OpenFile(x.path, os.O_RDWR, 0); err != nil {
			r.t.Fatal(err)
		}
		r.t.Cleanup(func() { _ = x.f.Close() })
		x.only = kind == manifests && !exists(otherCopy(x.path))
		how := damages[r.rnd.IntN(len(damages))]
		x.what = how.name
		switch err := how.do(x.path, bytes.Clone(x.before), r.rnd.IntN(1<<30)); {
		case errors.Is(err, errNothing):
			continue
		case err != nil:
			r.t.Fatal(err)
		}
		if x.after, err = os.ReadFile(x.path); os.IsNotExist(err) {
			x.gone = true
		} else if err != nil {
			r.t.Fatal(err)
		}
		if !x.gone && bytes.Equal(x.before, x.after) {
			continue // zeros were there
		}
		return x
	}
	return nil
}

// otherCopy is where a manifest is kept a second time.
func otherCopy(path string) string {
	if first, ok := strings.CutSuffix(path, ".2"); ok {
		return first
	}
	return path + ".2"
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// newestCheckpoint is the directory chk-<id>/ of the greatest id, "" if there is none.
func newestCheckpoint(paths []string) (dir string) {
	for _, p := range paths {
		for _, e := range strings.Split(p, "/") {
			if strings.HasPrefix(e, "chk-") && (len(e)+2 > len(dir) || len(e)+2 == len(dir) && "/"+e+"/" > dir) {
				dir = "/" + e + "/"
			}
		}
	}
	return dir
}

// repair puts back what was damaged.
func (x *damage) repair() error {
	if x.gone {
		return os.WriteFile(x.path, x.before, 0o600)
	}
	if err := x.f.Truncate(int64(len(x.before))); err != nil {
		return err
	}
	_, err := x.f.WriteAt(x.before, 0)
	return err
}

// vital tells whether a job may refuse to start because of the damage: what is damaged is not kept twice, and what it says
// cannot be had from elsewhere.
func (x *damage) vital() bool {
	switch x.kind {
	case segments, pebbles, pendings, savepoints:
		return true
	case manifests:
		return x.only
	case notes:
		// Without the owner's note its number is had from the manifests. A note that is not there says that nothing was noted.
		return filepath.Base(x.path) != "owner" && !x.gone
	}
	return false
}
