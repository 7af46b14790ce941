package checkpoint

import (
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
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

// ReadConfirmed is the newest checkpoint in dir whose pending output is known to be committed, 0 when there is none. It
// reads without owning dir.
func ReadConfirmed(fs vfs.FS, dir string) (ID, error) {
	n, err := readNotes(fs, dir)
	return n.confirmed(), err
}
