package checkpoint

import (
	"context"
	"errors"
	"slices"
)

// Collect removes checkpoints beyond the retention, discarded ones, and what given-up checkpoints left. It keeps the
// newest StoreOptions.Retain, the restored one and those a savepoint is being made of. It may run beside the other
// methods; an error means only that something was left behind.
func (s *DirStore) Collect(ctx context.Context) error {
	if err := s.owner.Check(); err != nil {
		return err
	}
	all, err := listIDs(s.fs, s.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, id := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if !s.claim(id) {
			continue
		}
		if err := s.fs.RemoveAll(s.fs.PathJoin(s.dir, chkName(id))); err != nil {
			errs = append(errs, err)
			continue
		}
		s.o.Log.Debug("checkpoint removed", "checkpoint", id)
	}
	return errors.Join(errs...)
}

// claim decides whether id is garbage and, if so, takes it off the list under the lock, so that no savepoint starts
// from it afterwards.
func (s *DirStore) claim(id ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	newest := s.newest()
	if id >= newest && !s.notes.Discarded.has(id) {
		return false // the newest, or one under way
	}
	if s.pinned[id] > 0 || id == s.restored {
		return false
	}
	if i, ok := slices.BinarySearch(s.published, id); ok {
		if len(s.published)-i <= s.o.Retain {
			return false
		}
		s.published = slices.Delete(s.published, i, i+1)
	}
	return true
}
