//go:build unix && !aix

package checkpoint

import (
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// lockedBy is Locked for a directory that this process does not hold. It asks without taking the lock, so that a job
// that starts at that moment is not kept from it.
func lockedBy(dir string) (pid int, err error) {
	f, err := os.Open(filepath.Join(dir, lockName))
	if os.IsNotExist(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	defer f.Close()
	l := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l); err != nil {
		return 0, err
	}
	if l.Type == unix.F_UNLCK {
		return 0, nil
	}
	return max(int(l.Pid), 1), nil
}
