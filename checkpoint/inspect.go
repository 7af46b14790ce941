package checkpoint

import (
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// Holder is who owns, or owned last, a state directory.
type Holder struct {
	Fence uint64 // its fencing number
	PID   int
	Host  string
	Since time.Time
}

// ReadHolder reads who owns or owned a directory last, without owning it; ok is false when nobody ever did.
func ReadHolder(fs vfs.FS, dir string) (h Holder, ok bool, err error) {
	var r ownerRecord
	if err := readRecord(fs, dir, ownerName, "owner", &r); err != nil {
		if oserror.IsNotExist(err) {
			return Holder{}, false, nil
		}
		return Holder{}, false, err
	}
	return Holder{Fence: r.Fence, PID: r.PID, Host: r.Host, Since: r.Since}, true, nil
}

// ReadStorage is where the checkpoints of dir count when not in dir itself, which then holds a copy that may be older than
// what another machine wrote, and may hold one that never counted; "" when they do. It reads without owning dir.
func ReadStorage(fs vfs.FS, dir string) (string, error) {
	var r remoteRecord
	if err := readRecord(fs, dir, remoteName, remoteName, &r); err != nil && !oserror.IsNotExist(err) {
		return "", errorf(diag.External, "cannot read %q of state directory %q", remoteName, dir).Wrap(err)
	}
	return r.Store, nil
}

// ReadConfirmed is the newest checkpoint in dir whose pending output is known to be committed, 0 when there is none. It
// reads without owning dir.
func ReadConfirmed(fs vfs.FS, dir string) (ID, error) {
	n, err := readNotes(fs, dir)
	return n.confirmed(), err
}

// ReadLineages are the lineages in dir that may have output open outside, oldest first: those noted before a first
// writer opened, whether or not a checkpoint of them was published. It reads without owning dir.
func ReadLineages(fs vfs.FS, dir string) ([]string, error) {
	var r lineagesRecord
	if err := readRecord(fs, dir, lineagesName, "lineages", &r); err != nil && !oserror.IsNotExist(err) {
		return nil, errorf(diag.External, "cannot read which runs may have left output open in state directory %q", dir).Wrap(err)
	}
	return r.Open, nil
}

// Hold keeps every other process from running the job of dir until it is closed, without becoming its owner: the fencing
// number stays. The error is a Conflict when a process runs it.
func Hold(fs vfs.FS, dir string) (io.Closer, error) {
	lock, err := lockDir(fs, dir)
	if err == nil {
		return lock, nil
	}
	e := errorf(diag.Conflict, "the job of state directory %q is running", dir).Wrap(err).WithHint("stop it first")
	if h, ok, rerr := ReadHolder(fs, dir); rerr == nil && ok {
		e.WithDetail("process %d on %s since %s", h.PID, h.Host, h.Since.UTC().Format(time.RFC3339))
	}
	return nil, e
}

// heldHere are the directories that this process has locked. It must not open their lock files a second time: closing
// them again would drop the lock (fcntl).
var heldHere sync.Map // by path

type heldLock struct {
	io.Closer
	dir string
}

// lockDir takes the lock of a job's directory.
func lockDir(fs vfs.FS, dir string) (io.Closer, error) {
	lock, err := fs.Lock(fs.PathJoin(dir, lockName))
	if err != nil {
		return nil, err
	}
	if abs, err := filepath.Abs(dir); err == nil && vfs.Root(fs) == vfs.Default { // what is wrapped around it does not change whose the lock is
		dir = abs
		heldHere.Store(dir, true)
	}
	return heldLock{lock, dir}, nil
}

// Close gives the lock back.
func (l heldLock) Close() error {
	heldHere.Delete(l.dir)
	return l.Closer.Close()
}

// Locked tells which process runs the job of dir, by the lock it holds: 0 = none. The number of a process on another
// machine means nothing here.
func Locked(dir string) (pid int, err error) {
	if abs, err := filepath.Abs(dir); err == nil {
		if _, ok := heldHere.Load(abs); ok {
			return os.Getpid(), nil
		}
	}
	return lockedBy(dir)
}
