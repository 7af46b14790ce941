package file

import (
	"path/filepath"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
)

// Files are read and written through the file system that checkpoints use too, so that one seam reaches every file of a job:
// tests of disk faults (tests/disk) put their own behind it.

// disk is the file system of all tables.
func disk() vfs.FS { return vfs.Default }

// createNew makes the file name, which must not exist.
func createNew(fs vfs.FS, name string) (vfs.File, error) {
	if _, err := fs.Stat(name); err == nil {
		return nil, &existsError{name}
	} else if !oserror.IsNotExist(err) {
		return nil, err
	}
	return fs.Create(name, vfs.WriteCategoryUnspecified)
}

// existsError is that of a file that should have been new.
type existsError struct{ name string }

// Error implements error.
func (e *existsError) Error() string { return "create " + e.name + ": " + oserror.ErrExist.Error() }

// Unwrap says what kind of error it is.
func (e *existsError) Unwrap() error { return oserror.ErrExist }

// eachName calls f for the names in dir and in the directories of partitions below, which are called k=v. What goes
// away meanwhile is not an error.
func eachName(fs vfs.FS, dir string, f func(dir, name string) error) error {
	names, err := fs.List(dir)
	if oserror.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, name := range names {
		name = strings.TrimSuffix(name, "/")
		if err := f(dir, name); err != nil {
			return err
		}
		if !strings.Contains(name, "=") {
			continue
		}
		sub := filepath.Join(dir, name)
		if info, err := fs.Stat(sub); err != nil || !info.IsDir() {
			if err != nil && !oserror.IsNotExist(err) {
				return err
			}
			continue
		}
		if err := eachName(fs, sub, f); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes the names in dir durable.
func syncDir(fs vfs.FS, dir string) error {
	d, err := fs.OpenDir(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if cerr := d.Close(); err == nil {
		err = cerr
	}
	return err
}
