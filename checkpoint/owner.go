package checkpoint

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// Owner is the right to write one job's state directory: a file lock, and a fencing number that is greater than every
// earlier owner's. The lock keeps a second process out; the number keeps out a process whose lock was lost without its
// knowledge (network file systems): it is read again before each publish.
type Owner struct {
	fs    vfs.FS
	dir   string
	lock  io.Closer
	fence uint64
	syncs *syncMeter // nil in memory, where nothing is made durable
}

const (
	lockName  = "LOCK"
	ownerName = "owner"
)

// ownerRecord is the durable note of the newest owner.
type ownerRecord struct {
	Fence uint64    `json:"fence"`
	PID   int       `json:"pid"`
	Host  string    `json:"host"`
	Since time.Time `json:"since"`
}

// Own takes the state directory dir, creating it when it does not exist. The error is a Conflict when another process,
// or another job of this process, owns it; it names the holder.
func Own(fs vfs.FS, dir string) (*Owner, error) {
	m := &syncMeter{}
	o, err := own(timedFS{fs, m}, dir)
	if err != nil {
		return nil, err
	}
	o.syncs = m
	return o, nil
}

func own(fs vfs.FS, dir string) (*Owner, error) {
	if err := EnsureDir(fs, dir, 0o755); err != nil {
		return nil, errorf(diag.External, "cannot create state directory %q", dir).Wrap(err).
			WithHint("use a state directory that this user may write (--state-dir)")
	}
	lock, err := lockDir(fs, dir)
	if errors.Is(err, syscall.ENOTDIR) {
		return nil, errorf(diag.Config, "state directory %q is a file", dir).Wrap(err).
			WithHint("use a directory, or a path that does not exist yet (--state-dir)")
	}
	if err != nil {
		e := errorf(diag.Conflict, "state directory %q is in use", dir).Wrap(err).
			WithHint("stop the other process, or use another state directory (--state-dir)")
		var held ownerRecord
		if readRecord(fs, dir, ownerName, "owner", &held) == nil {
			return nil, e.WithDetail("held by process %d on %s since %s", held.PID, held.Host, held.Since.UTC().Format(time.RFC3339))
		}
		return nil, e
	}
	o := &Owner{fs: fs, dir: dir, lock: lock}
	err = o.takeFence()
	if err == nil {
		// Working files of an earlier process are worthless, also those of tasks that this one does not have.
		if err = fs.RemoveAll(fs.PathJoin(dir, localName)); err != nil {
			err = errorf(diag.External, "cannot remove what an earlier process left in state directory %q", dir).Wrap(err)
		}
	}
	if err != nil {
		lock.Close()
		return nil, err
	}
	return o, nil
}

// OwnDir is Own on the operating system's file system.
func OwnDir(dir string) (*Owner, error) { return Own(vfs.Default, dir) }

// OwnMemory is a state directory in memory, for jobs that need not survive their process.
func OwnMemory() *Owner {
	o, err := own(vfs.NewMem(), "/job")
	if err != nil {
		panic(err) // a fresh memory file system does not fail
	}
	return o
}

func (o *Owner) takeFence() error {
	var last ownerRecord
	err := readRecord(o.fs, o.dir, ownerName, "owner", &last)
	switch {
	case err == nil || oserror.IsNotExist(err):
	case errors.Is(err, errDamaged):
		// The number can be had from the manifests: each carries its writer's. An owner that never published cannot
		// have left anything that the number protects.
		last.Fence = 0
	default:
		return errorf(diag.External, "cannot read the owner of state directory %q", o.dir).Wrap(err)
	}
	found, err := maxFence(o.fs, o.dir)
	if err != nil {
		return errorf(diag.External, "cannot read state directory %q", o.dir).Wrap(err)
	}
	host, _ := os.Hostname()
	if o.fence = max(last.Fence, found) + 1; o.fence > maxNumber || o.fence == 0 {
		return errorf(diag.Data, "the fencing number in state directory %q is damaged", o.dir).
			WithHint("restore the directory from a backup, or start from a savepoint in a new directory")
	}
	rec := ownerRecord{Fence: o.fence, PID: os.Getpid(), Host: host, Since: time.Now()}
	if err := writeRecord(o.fs, o.dir, ownerName, "owner", rec, nil); err != nil {
		return errorf(diag.External, "cannot write to state directory %q", o.dir).Wrap(err)
	}
	return nil
}

// Fence is this owner's number.
func (o *Owner) Fence() uint64 { return o.fence }

// Dir is the state directory.
func (o *Owner) Dir() string { return o.dir }

// FS is the file system the directory is on. Its fsyncs count in Syncs.
func (o *Owner) FS() vfs.FS { return o.fs }

// Syncs are how long fsyncs took since the directory was taken; zero for a directory in memory.
func (o *Owner) Syncs() SyncFigures {
	if o.syncs == nil {
		return SyncFigures{}
	}
	return o.syncs.figures()
}

// localDir holds the working files of this owner. The number keeps them apart from those of a suspended earlier owner,
// which may still write when it wakes up.
func (o *Owner) localDir() string {
	return o.fs.PathJoin(o.dir, localName, strconv.FormatUint(o.fence, 10))
}

// Check returns a Conflict error when a later owner took the directory.
func (o *Owner) Check() error {
	var now ownerRecord
	switch err := readRecord(o.fs, o.dir, ownerName, "owner", &now); {
	case oserror.IsNotExist(err):
		// Nothing that a restart could restore is left, and the next checkpoint would be the first of an unknown lineage.
		return errorf(diag.Conflict, "state directory %q was removed while its job ran", o.dir).Wrap(err).
			WithHint("put the directory back and run the job again; without it the job starts from the beginning")
	case err != nil:
		return errorf(diag.External, "cannot read the owner of state directory %q", o.dir).Wrap(err)
	}
	if now.Fence != o.fence {
		return errorf(diag.Conflict, "state directory %q was taken over", o.dir).
			WithDetail("by process %d on %s since %s; its fencing number is %d, ours %d",
				now.PID, now.Host, now.Since.UTC().Format(time.RFC3339), now.Fence, o.fence).
			WithHint("let one process run this job")
	}
	return nil
}

// raise makes the owner's number at least fence, before anything was done under it.
func (o *Owner) raise(fence uint64) error {
	if fence <= o.fence {
		return nil
	}
	var rec ownerRecord
	err := readRecord(o.fs, o.dir, ownerName, "owner", &rec)
	if err == nil && rec.Fence != o.fence {
		return o.Check()
	}
	if rec.Fence = fence; err == nil {
		err = writeRecord(o.fs, o.dir, ownerName, "owner", rec, nil)
	}
	if err != nil {
		return errorf(diag.External, "cannot write to state directory %q", o.dir).Wrap(err)
	}
	o.fence = fence
	return nil
}

// Close gives the directory up.
func (o *Owner) Close() error { return o.lock.Close() }

// NewLineage makes the UUID of a stateless start (RFC 9562 version 4).
func NewLineage() string {
	var u [16]byte
	rand.Read(u[:]) // crypto/rand.Read does not fail
	u[6], u[8] = u[6]&0x0f|0x40, u[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", u[:4], u[4:6], u[6:8], u[8:10], u[10:])
}

// mkdirAllSynced creates dir and its missing parents, each durable in its parent. A directory that exists is taken to be
// durable; see EnsureDir.
func mkdirAllSynced(fs vfs.FS, dir string) error {
	_, err := makeMissing(fs, dir, 0o755)
	return err
}

// EnsureDir is a directory that is there after a power cut. One that exists may have been made by a process that was killed
// before it made it durable, so its parent is synced too. Each level is durable before the next is made: of those that
// exist only the last can be in doubt.
func EnsureDir(fs vfs.FS, dir string, perm os.FileMode) error {
	there, err := makeMissing(fs, dir, perm)
	if err != nil || fs.PathDir(there) == there {
		return err
	}
	// Whoever may not read the parent did not make the directory.
	if err := syncDir(fs, fs.PathDir(there)); err != nil && !errors.Is(err, os.ErrPermission) {
		return err
	}
	return nil
}

// makeMissing creates what is missing of dir and returns the deepest directory that was there.
func makeMissing(fs vfs.FS, dir string, perm os.FileMode) (there string, err error) {
	var missing []string
	for there = dir; ; there = fs.PathDir(there) {
		if _, err := fs.Stat(there); err == nil {
			break
		} else if !oserror.IsNotExist(err) {
			return there, err
		}
		missing = append(missing, there)
		if fs.PathDir(there) == there {
			break
		}
	}
	for _, d := range slices.Backward(missing) {
		if err := fs.MkdirAll(d, perm); err != nil {
			return there, err
		}
		if err := syncDir(fs, fs.PathDir(d)); err != nil {
			return there, err
		}
	}
	return there, nil
}
