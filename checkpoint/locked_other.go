//go:build !unix || aix

package checkpoint

import "github.com/cockroachdb/pebble/v2/vfs"

// lockedBy is Locked for a directory that this process does not hold; the number is the one that the directory notes.
// There is no way here to ask without taking the lock for a moment.
func lockedBy(dir string) (pid int, err error) {
	lock, err := Hold(vfs.Default, dir)
	if err == nil {
		return 0, lock.Close()
	}
	if h, ok, err := ReadHolder(vfs.Default, dir); err == nil && ok {
		return h.PID, nil
	}
	return 1, nil
}
