package checkpoint

import (
	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// TakeOver takes a state directory away from a process that still holds its lock but no longer works: a suspended one,
// or one on a machine that is gone (network file systems). The lock is made anew, so that the old holder's is worth
// nothing, and the fencing number is raised: the old holder can publish nothing more, and sinks refuse its output.
// A process that works must be stopped instead; both would try to run the same jobs, and one of them would fail.
func TakeOver(dir string) (*Owner, error) {
	fs := vfs.Default
	if err := fs.Remove(fs.PathJoin(dir, lockName)); err != nil && !oserror.IsNotExist(err) {
		return nil, errorf(diag.External, "cannot take over state directory %q", dir).Wrap(err)
	}
	return Own(fs, dir)
}
