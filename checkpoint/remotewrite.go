package checkpoint

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// Publish makes c durable in the directory and then in the log: the commit point.
func (s *RemoteStore) Publish(ctx context.Context, c *Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.DirStore.Publish(ctx, c); err != nil {
		return err
	}
	objects, err := s.upload(ctx, c)
	if err != nil {
		return errors.Join(err, s.unpublish(c.ID)) // its entry was not tried
	}
	if err = Failpoint("publish.uploaded"); err == nil {
		err = s.log.append(ctx, kindCheckpoint, func(e *logEntry) { s.enter(e, c, objects) })
	}
	if err == nil {
		err = Failpoint("publish.logged")
	}
	if err != nil {
		s.uncertain = append(s.uncertain, tried{c, objects})
		return err
	}
	s.remember(c, objects)
	return s.settled()
}

// settled takes back checkpoints that turned out not to be in the log. An entry was written since they were tried.
func (s *RemoteStore) settled() error {
	for _, u := range s.uncertain {
		if slices.ContainsFunc(s.log.last.Published, func(p publishedAt) bool { return p.ID == u.c.ID }) {
			s.remember(u.c, u.objects)
		} else if err := s.unpublish(u.c.ID); err != nil {
			return errorf(diag.External, "checkpoint %d cannot be taken back in state directory %q", u.c.ID, s.dir).Wrap(err)
		}
	}
	s.uncertain = nil
	return nil
}

// note writes what change changes. mu is held.
func (s *RemoteStore) note(ctx context.Context, change func(*logEntry)) error {
	if err := s.log.append(ctx, kindNote, change); err != nil {
		return err
	}
	return s.settled()
}

// settle finds out what became of checkpoints whose publication failed, before anything is decided by them.
func (s *RemoteStore) settle(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uncertain) == 0 {
		return nil
	}
	if err := s.note(ctx, func(*logEntry) {}); err != nil {
		return err
	}
	return s.log.stands(ctx)
}

// Latest implements Store.
func (s *RemoteStore) Latest(ctx context.Context) (*Checkpoint, bool, error) {
	if err := s.settle(ctx); err != nil {
		return nil, false, err
	}
	return s.DirStore.Latest(ctx)
}

// List implements Store.
func (s *RemoteStore) List(ctx context.Context) ([]*Checkpoint, error) {
	if err := s.settle(ctx); err != nil {
		return nil, err
	}
	return s.DirStore.List(ctx)
}

// Reserve is DirStore.Reserve; other machines learn of ids in blocks.
func (s *RemoteStore) Reserve(ctx context.Context, id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id > s.log.last.Reserved {
		if err := s.note(ctx, func(e *logEntry) { e.Reserved = max(e.Reserved, id+reservedAtOnce-1) }); err != nil {
			return err
		}
	}
	return s.DirStore.Reserve(ctx, id)
}

// Confirm implements Store.
func (s *RemoteStore) Confirm(ctx context.Context, id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.log.last.Confirmed < id {
		if err := s.note(ctx, func(e *logEntry) { e.Confirmed = max(e.Confirmed, id) }); err != nil {
			return err
		}
	}
	return s.DirStore.Confirm(ctx, id)
}

// Discard implements Store.
func (s *RemoteStore) Discard(ctx context.Context, from ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	to := max(from, s.NextID()-1)
	err := s.note(ctx, func(e *logEntry) {
		e.Discarded = append(slices.Clone(e.Discarded), idRange{from, to})
		e.Published = slices.DeleteFunc(slices.Clone(e.Published), func(p publishedAt) bool { return p.ID >= from && p.ID <= to })
	})
	if err != nil {
		return err
	}
	return s.DirStore.Discard(ctx, from)
}

// Begin implements Store.
func (s *RemoteStore) Begin(ctx context.Context, lineage string) error {
	return s.noteLineages(ctx, func() error { return s.DirStore.Begin(ctx, lineage) }, func(open []string) []string {
		if slices.Contains(open, lineage) {
			return open
		}
		return append(slices.Clone(open), lineage)
	})
}

// End implements Store.
func (s *RemoteStore) End(ctx context.Context, lineages ...string) error {
	return s.noteLineages(ctx, func() error { return s.DirStore.End(ctx, lineages...) }, func(open []string) []string {
		return slices.DeleteFunc(slices.Clone(open), func(l string) bool { return slices.Contains(lineages, l) })
	})
}

func (s *RemoteStore) noteLineages(ctx context.Context, local func() error, change func([]string) []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := change(s.log.last.Lineages); !slices.Equal(now, s.log.last.Lineages) {
		if err := s.note(ctx, func(e *logEntry) { e.Lineages = change(e.Lineages) }); err != nil {
			return err
		}
	}
	return local()
}

// Import is DirStore.Import; what it publishes goes to the log.
func (s *RemoteStore) Import(ctx context.Context, path string, allowRewind bool) (Imported, error) {
	got, err := s.DirStore.Import(ctx, path, allowRewind)
	if err != nil {
		return got, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if got.Rewound != 0 { // the directory has noted it
		degraded, err := s.DirStore.Degraded(ctx)
		if err == nil {
			err = s.note(ctx, func(e *logEntry) { e.Degraded = MergeDegradations(e.Degraded, degraded) })
		}
		if err != nil {
			return got, err
		}
	}
	c, _, err := s.DirStore.Latest(ctx)
	if errors.Is(err, ErrNone) || err == nil && s.objects[c.ID] != nil {
		return got, nil
	}
	if err != nil {
		return got, err
	}
	objects, err := s.upload(ctx, c)
	if err == nil {
		err = s.log.append(ctx, kindCheckpoint, func(e *logEntry) {
			s.enter(e, c, objects)
			e.Confirmed = max(e.Confirmed, c.ID) // of a savepoint all is committed
		})
	}
	if err == nil {
		s.remember(c, objects)
	}
	return got, err
}

// remoteGarbage is what may be removed from the store.
type remoteGarbage struct {
	listed  bool            // old is complete
	old     map[string]bool // keys of entries and files that exist and may be of no use
	entries uint64          // entries before this number are in old or gone
}

// collectGrace keeps a file that an earlier owner left for so long after it was written, for people who look what happened.
// Nothing depends on it: a file that was listed before the log had a newer owner is of no later checkpoint.
const collectGrace = time.Hour

// Collect removes old checkpoints from the directory, and from the store entries and files that no retained one needs.
func (s *RemoteStore) Collect(ctx context.Context) error {
	if err := s.DirStore.Collect(ctx); err != nil {
		return err
	}
	if err := s.settle(ctx); err != nil {
		return err
	}
	keys, err := s.unneeded(ctx)
	if err != nil {
		return s.log.fault("cannot be listed", err)
	}
	for _, key := range keys {
		if err := s.removeUnneeded(ctx, key); err != nil {
			return s.log.fault("cannot be cleaned", err)
		}
	}
	return nil
}

// needed are the keys that retained checkpoints need. mu is held.
func (s *RemoteStore) needed() map[string]bool {
	m := map[string]bool{}
	retained := map[ID]bool{}
	for _, p := range s.log.last.Published {
		retained[p.ID] = true
		m[strings.TrimPrefix(s.log.key(p.Number), s.log.prefix)] = true
		for _, key := range s.objects[p.ID] {
			m[key] = true
		}
	}
	maps.DeleteFunc(s.objects, func(id ID, _ map[string]string) bool { return !retained[id] })
	return m
}

// unneeded finds what can be removed: of the log, what is before an entry that counts, for nobody looks for it, and an earlier
// owner that takes the number of one learns of its end from the newer ones. The first time it lists the store, to find what earlier owners left.
func (s *RemoteStore) unneeded(ctx context.Context) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := &s.garbage
	if !g.listed {
		g.old = map[string]bool{}
		limit := time.Now().Add(-collectGrace)
		newest := uint64(0) // listed after the files
		for _, prefix := range []string{filesPrefix, logPrefix} {
			err := s.log.objects.List(ctx, s.log.prefix+prefix, func(o ObjectInfo) error {
				key := strings.TrimPrefix(o.Key, s.log.prefix)
				if prefix == filesPrefix && o.Modified.Before(limit) || prefix == logPrefix && o.Key < s.log.key(s.log.announced) {
					g.old[key] = true
				}
				if prefix == logPrefix {
					newest = max(newest, s.log.numberOf(o.Key))
				}
				return nil
			})
			if err != nil {
				return nil, err
			}
		}
		if err := s.log.until(ctx, newest); err != nil {
			return nil, err
		}
		g.listed, g.entries = true, s.log.announced
	}
	for ; g.entries < s.log.announced; g.entries++ {
		g.old[strings.TrimPrefix(s.log.key(g.entries), s.log.prefix)] = true
	}
	for key := range s.present {
		g.old[key] = true
	}
	needed := s.needed()
	var keys []string
	for key := range g.old {
		if !needed[key] {
			keys = append(keys, key)
		}
	}
	maps.DeleteFunc(g.old, func(key string, _ bool) bool { return strings.HasPrefix(key, filesPrefix) && s.present[key] })
	slices.Sort(keys)
	return keys, nil
}

// removeUnneeded removes one object, unless it is needed by now. A Publish in between waits.
func (s *RemoteStore) removeUnneeded(ctx context.Context, key string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.uncertain) > 0 || s.needed()[key] {
		return nil // the entry of an uncertain checkpoint may still appear, and needs its files then
	}
	delete(s.present, key)
	maps.DeleteFunc(s.known, func(_ stateFileKey, k string) bool { return k == key })
	if err := s.log.objects.Remove(ctx, s.log.prefix+key); err != nil {
		return err
	}
	delete(s.garbage.old, key)
	return nil
}
