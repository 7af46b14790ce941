package checkpoint

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// ObjectStore is a flat store of objects that appear whole or not at all: a bucket of S3, or a directory of a network file
// system. Keys are paths with '/', without a leading one. What it is told to write is durable when it returns nil; after
// another error than ErrExists it may have been written, and may even appear later. Reads see the newest write. Safe for
// concurrent use.
type ObjectStore interface {
	// Create makes an object whose key must not be taken: ErrExists, decided by the store, so that of two callers one wins.
	Create(ctx context.Context, key string, data []byte) error
	// Put makes or replaces an object of size bytes.
	Put(ctx context.Context, key string, r io.Reader, size int64) error
	// Get reads an object; oserror.IsNotExist of the error when there is none.
	Get(ctx context.Context, key string) (io.ReadCloser, error)
	// List calls f for the objects whose key begins with prefix, in any order.
	List(ctx context.Context, prefix string, f func(ObjectInfo) error) error
	// Remove removes an object; there may be none.
	Remove(ctx context.Context, key string) error
	// String is where the store is, for people, without credentials.
	String() string
}

// ObjectInfo describes an object.
type ObjectInfo struct {
	Key      string
	Modified time.Time // by the store's clock
}

// ErrExists is the answer of Create when the key is taken.
var ErrExists = errors.New("the object exists")

// DirObjects is an ObjectStore in a directory: each object is a file. Create links a complete file to its name, which fails
// where the name is taken, on network file systems too.
type DirObjects struct {
	fs   vfs.FS
	dir  string
	dirs sync.Map // those known to be durable, by path
}

// OpenDirObjects opens the directory, which it makes if need be.
func OpenDirObjects(fs vfs.FS, dir string) (*DirObjects, error) {
	return &DirObjects{fs: fs, dir: dir}, EnsureDir(fs, dir, 0o755)
}

// String is the directory.
func (d *DirObjects) String() string { return d.dir }

func (d *DirObjects) path(key string) string {
	return d.fs.PathJoin(append([]string{d.dir}, strings.Split(key, "/")...)...)
}

// Create implements ObjectStore.
func (d *DirObjects) Create(ctx context.Context, key string, data []byte) error {
	return d.write(ctx, key, strings.NewReader(string(data)), func(tmp, path string) error {
		err := d.fs.Link(tmp, path)
		if oserror.IsExist(err) {
			err = ErrExists
		}
		return errors.Join(err, d.fs.Remove(tmp))
	})
}

// Put implements ObjectStore.
func (d *DirObjects) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	return d.write(ctx, key, r, d.fs.Rename)
}

// write makes a complete, durable file beside the object's and gives it to name.
func (d *DirObjects) write(ctx context.Context, key string, r io.Reader, name func(tmp, path string) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	path := d.path(key)
	dir := d.fs.PathDir(path)
	if _, known := d.dirs.Load(dir); !known {
		if err := EnsureDir(d.fs, dir, 0o755); err != nil {
			return err
		}
		d.dirs.Store(dir, true)
	} else if err := mkdirAllSynced(d.fs, dir); err != nil {
		return err
	}
	tmp := path + "." + NewLineage() + ".tmp"
	f, err := d.fs.Create(tmp, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(onlyWriter{f}, onlyReader{r}, make([]byte, 256<<10))
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, d.fs.Remove(tmp))
	}
	if err := name(tmp, path); err != nil {
		return err
	}
	return syncDir(d.fs, dir)
}

// Get implements ObjectStore.
func (d *DirObjects) Get(ctx context.Context, key string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return d.fs.Open(d.path(key), vfs.SequentialReadsOption)
}

// List implements ObjectStore.
func (d *DirObjects) List(ctx context.Context, prefix string, f func(ObjectInfo) error) error {
	return d.list(ctx, "", prefix, f)
}

func (d *DirObjects) list(ctx context.Context, below, prefix string, f func(ObjectInfo) error) error {
	names, err := d.fs.List(d.path(below))
	if oserror.IsNotExist(err) {
		return nil
	}
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		key := strings.TrimPrefix(below+"/"+n, "/")
		st, err := d.fs.Stat(d.path(key))
		switch {
		case oserror.IsNotExist(err):
			continue // removed meanwhile
		case err != nil:
			return err
		case st.IsDir() && (strings.HasPrefix(prefix, key+"/") || strings.HasPrefix(key, prefix)):
			err = d.list(ctx, key, prefix, f)
		case !st.IsDir() && strings.HasPrefix(key, prefix):
			err = f(ObjectInfo{Key: key, Modified: st.ModTime()})
		}
		if err != nil {
			return err
		}
	}
	return err
}

// Remove implements ObjectStore.
func (d *DirObjects) Remove(ctx context.Context, key string) error {
	if err := d.fs.Remove(d.path(key)); err != nil && !oserror.IsNotExist(err) {
		return err
	}
	return nil
}
