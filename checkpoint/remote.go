package checkpoint

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// RemoteStore keeps the checkpoints of a job in an ObjectStore, so that the job can go on from another machine. The local
// directory is where state files are made, and a copy: a checkpoint is durable there first and counts when its entry is in
// the log (see remotelog.go). At the start the directory is made what the log says.
//
// The alternative, one store that writes to the objects alone, would have to read state files through the network at every
// restart and every compaction; this way a restart on the same machine reads nothing but the newest entries.
type RemoteStore struct {
	*DirStore

	mu  sync.Mutex // the log, and what may be removed
	log remoteLog
	// present are objects known to exist: those of retained checkpoints, and what was written since.
	present map[string]bool
	objects map[ID]map[string]string // of retained checkpoints
	known   map[stateFileKey]string  // files that have an object
	// uncertain are checkpoints whose entry may or may not be in the log.
	uncertain []tried
	garbage   remoteGarbage
}

// tried is a checkpoint whose entry was written without an answer.
type tried struct {
	c       *Checkpoint
	objects map[string]string
}

// stateFileKey tells state files apart: the path without the checkpoint's directory, in which they are hard links.
type stateFileKey struct {
	below string
	size  int64
	crc   uint32
}

func keyOf(f StateFile) stateFileKey {
	_, below, _ := strings.Cut(f.Path, "/")
	return stateFileKey{below, f.Size, f.CRC32C}
}

// remoteRecord is the note in a state directory that its checkpoints count in an ObjectStore only.
type remoteRecord struct {
	Store string `json:"store"`
	By    string `json:"by"` // the owner of the log under which the directory was written last
}

const remoteName = "remote"

// reservedAtOnce is how many ids a note in the log sets aside, so that not every checkpoint needs one.
const reservedAtOnce = 64

// OpenRemote opens the checkpoints that a job keeps in objects below prefix, and takes them over from whoever had them.
// owner's directory becomes a copy of the newest checkpoint.
func OpenRemote(ctx context.Context, owner *Owner, objects ObjectStore, prefix string, o StoreOptions) (*RemoteStore, error) {
	s := &RemoteStore{present: map[string]bool{}, objects: map[ID]map[string]string{}, known: map[stateFileKey]string{}}
	host, _ := os.Hostname()
	s.log = remoteLog{objects: objects, prefix: strings.TrimSuffix(prefix, "/") + "/", by: NewLineage(),
		owner: ownerRecord{PID: os.Getpid(), Host: host, Since: time.Now()}}
	where := objects.String() + "/" + strings.TrimSuffix(prefix, "/")
	var note remoteRecord
	err := readRecord(owner.fs, owner.dir, remoteName, remoteName, &note)
	switch {
	case oserror.IsNotExist(err):
	case err != nil:
		return nil, errorf(diag.External, "cannot read %q of state directory %q", remoteName, owner.dir).Wrap(err)
	case note.Store != where:
		return nil, errorf(diag.Config, "the checkpoints of state directory %q are in %s, not in %s", owner.dir, note.Store, where).
			WithHint("set 'execution.checkpointing.dir' as before; to move a job, take a savepoint and start from it in a new state directory")
	}
	if err := s.log.refresh(ctx); err != nil {
		return nil, err
	}
	if s.DirStore, err = openDir(owner, o); err != nil {
		return nil, err
	}
	moving := note.Store == "" && len(s.published) > 0
	if moving && s.log.used() {
		if moving = false; !s.movedIn(ctx) {
			return nil, s.twoHistories(where)
		}
	}
	before := s.log.last.By
	if err := s.log.own(ctx, owner.fence); err != nil {
		return nil, err
	}
	if err := owner.raise(s.log.owner.Fence); err != nil {
		return nil, err
	}
	if moving {
		err = s.moveIn(ctx)
	} else if err = s.takeNotes(ctx); err == nil {
		err = s.pull(ctx, before == note.By)
	}
	if err == nil {
		err = writeRecord(owner.fs, owner.dir, remoteName, remoteName, remoteRecord{Store: where, By: s.log.by}, nil)
	}
	if err == nil {
		s.DirStore, err = openDir(owner, o)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (s *RemoteStore) twoHistories(where string) error {
	return errorf(diag.Config, "state directory %q and %s both hold checkpoints of this job", s.dir, where).
		WithDetail("the directory's were not written there, so that neither is known to be newer").
		WithHint("remove the jobs of the state directory to go on from the storage, or name another 'execution.checkpointing.dir' to go on from the directory")
}

// used tells whether the log says more than who owned it.
func (l *remoteLog) used() bool {
	e := &l.last
	return len(e.Published) > 0 || e.Confirmed > 0 || len(e.Discarded) > 0 || e.Reserved > 0 || len(e.Lineages) > 0 || len(e.Degraded) > 0
}

// movedIn tells whether the directory's newest checkpoint is in the log: it moved in, and its process died before it knew.
func (s *RemoteStore) movedIn(ctx context.Context) bool {
	for _, p := range s.log.last.Published {
		if e, err := s.log.checkpoint(ctx, p); p.ID == s.newest() && err == nil {
			return s.has(e.Checkpoint)
		}
	}
	return false
}

// moveIn makes the directory's checkpoints the log's first.
func (s *RemoteStore) moveIn(ctx context.Context) error {
	c, _, err := s.DirStore.Latest(ctx)
	if err != nil {
		return err
	}
	open, err := s.DirStore.Lineages(ctx)
	if err != nil {
		return err
	}
	degraded, err := s.DirStore.Degraded(ctx)
	if err != nil {
		return err
	}
	objects, err := s.upload(ctx, c)
	if err != nil {
		return err
	}
	s.remember(c, objects)
	return s.log.append(ctx, kindCheckpoint, func(e *logEntry) {
		e.Confirmed, e.Discarded, e.Lineages, e.Degraded = s.notes.Confirmed.ID, s.notes.Discarded.Ranges, open, degraded
		s.enter(e, c, objects)
	})
}

// takeNotes brings into the log what was noted in the copy while nobody owned it: what somebody gave up by hand.
func (s *RemoteStore) takeNotes(ctx context.Context) error {
	noted, err := s.DirStore.Degraded(ctx)
	if err != nil {
		s.o.Log.Warn("what was noted in the state directory cannot be read; all but what was noted by hand is in the storage", "err", err)
	}
	all := MergeDegradations(s.log.last.Degraded, noted)
	if len(all) == len(s.log.last.Degraded) {
		return nil
	}
	return s.log.append(ctx, kindNote, func(e *logEntry) { e.Degraded = all })
}

// enter makes e the entry of checkpoint c.
func (s *RemoteStore) enter(e *logEntry, c *Checkpoint, objects map[string]string) {
	e.Checkpoint, e.Objects, e.Reserved = c, objects, max(e.Reserved, c.ID)
	e.Published = append(slices.Clone(e.Published), publishedAt{c.ID, e.Number})
	if n := len(e.Published) - s.o.Retain; n > 0 {
		e.Published = e.Published[n:]
	}
}

// pull makes the directory what the log says. undisturbed: no other owner was there since the directory was written.
func (s *RemoteStore) pull(ctx context.Context, undisturbed bool) error {
	last := &s.log.last
	same, usable := map[ID]bool{}, false // manifests that are the log's; a checkpoint with its files
	for i, p := range slices.Backward(last.Published) {
		e, err := s.log.checkpoint(ctx, p)
		if err != nil && (i == len(last.Published)-1 || !errors.Is(err, errDamaged) && !oserror.IsNotExist(err)) {
			return s.log.fault("cannot be read", err)
		}
		if err != nil {
			s.o.Log.Warn("an older checkpoint cannot be read", "storage", s.log.objects, "checkpoint", p.ID, "err", err)
			continue
		}
		s.remember(e.Checkpoint, e.Objects)
		if s.has(e.Checkpoint) {
			same[p.ID], usable = true, true
			continue
		}
		if usable {
			continue // older ones are needed only where the newest is damaged
		}
		err = s.download(ctx, e.Checkpoint, e.Objects)
		if err != nil && !errors.Is(err, errDamaged) {
			return err
		}
		if err != nil {
			s.o.Log.Warn("state files of a checkpoint are damaged", "storage", s.log.objects, "checkpoint", p.ID, "err", err)
		}
		same[p.ID], usable = true, err == nil // a damaged one stays listed: the restore decides what takes its place
	}
	for _, id := range slices.Clone(s.published) {
		if !same[id] {
			if err := s.unpublish(id); err != nil {
				return s.unwritable(err)
			}
		}
	}
	if !undisturbed && last.Reserved > 0 {
		if err := mkdirAllSynced(s.fs, s.fs.PathJoin(s.dir, chkName(last.Reserved))); err != nil {
			return s.unwritable(err)
		}
	}
	return s.writeNotes(last)
}

// writeNotes makes the directory's notes what the log says.
func (s *RemoteStore) writeNotes(e *logEntry) error {
	for name, v := range map[string]any{confirmedName: confirmedRecord{e.Confirmed, s.owner.fence},
		discardedName: discardedRecord{e.Discarded, s.owner.fence}, lineagesName: lineagesRecord{e.Lineages},
		degradedName: degradedRecord{e.Degraded}} {
		if err := writeRecord(s.fs, s.dir, name, name, v, nil); err != nil {
			return s.unwritable(err)
		}
	}
	return nil
}

// unwritable is the error of the local directory, as opposed to the store's.
func (s *RemoteStore) unwritable(err error) error {
	return errorf(diag.External, "cannot write to state directory %q", s.dir).Wrap(err).
		WithHint("check free space and permissions of the state directory")
}

// has tells whether the directory holds checkpoint c with its files.
func (s *RemoteStore) has(c *Checkpoint) bool {
	there, err := readManifest(s.fs, s.dir, c.ID)
	return err == nil && there.Lineage == c.Lineage && there.Fence == c.Fence && there.StartedAt.Equal(c.StartedAt) && s.checkFiles(c) == nil
}

// download brings a checkpoint into the directory. errDamaged: an object is missing or not what it was.
func (s *RemoteStore) download(ctx context.Context, c *Checkpoint, objects map[string]string) error {
	root := s.fs.PathJoin(s.dir, chkName(c.ID))
	if err := errors.Join(s.fs.RemoveAll(root), mkdirAllSynced(s.fs, root)); err != nil {
		return s.unwritable(err)
	}
	s.o.Log.Info("a checkpoint is fetched", "storage", s.log.objects, "checkpoint", c.ID)
	var damaged error
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			err := s.fetch(ctx, objects[f.Path], s.fs.PathJoin(s.dir, f.Path))
			if err != nil && !errors.Is(err, errDamaged) {
				return s.log.fault("cannot be read", err)
			}
			damaged = errors.Join(damaged, err)
		}
	}
	if err := writeManifests(s.fs, s.dir, c); err != nil {
		return s.unwritable(err)
	}
	return damaged
}

// Verify is DirStore.Verify; what is damaged in the copy is fetched again.
func (s *RemoteStore) Verify(ctx context.Context, c *Checkpoint) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	damage := s.DirStore.Verify(ctx, c)
	objects := s.objects[c.ID]
	if diag.CodeOf(damage) != diag.Data || objects == nil {
		return damage
	}
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			path := s.fs.PathJoin(s.dir, f.Path)
			if size, crc, err := crcFile(s.fs, path); err == nil && size == f.Size && crc == f.CRC32C {
				continue
			}
			s.o.Log.Warn("a damaged state file is fetched", "storage", s.log.objects, "file", f.Path)
			if err := s.fs.Remove(path); err != nil && !oserror.IsNotExist(err) { // other checkpoints link to it
				return s.unwritable(err)
			}
			if err := s.fetch(ctx, objects[f.Path], path); err != nil && !errors.Is(err, errDamaged) {
				return s.log.fault("cannot be read", err)
			}
		}
	}
	return s.DirStore.Verify(ctx, c)
}

// fetch reads an object into a file, durably, and checks that it is what its key says. errDamaged: it is not, or is missing.
func (s *RemoteStore) fetch(ctx context.Context, key, dst string) error {
	r, err := s.log.objects.Get(ctx, s.log.prefix+key)
	if oserror.IsNotExist(err) {
		return fmt.Errorf("object %q %w: it is missing", key, errDamaged)
	}
	if err != nil {
		return err
	}
	defer r.Close()
	if err := mkdirAllSynced(s.fs, s.fs.PathDir(dst)); err != nil {
		return s.unwritable(err)
	}
	f, err := s.fs.Create(dst, vfs.WriteCategoryUnspecified)
	if err != nil {
		return s.unwritable(err)
	}
	sum := sha256.New()
	in := &readErr{r: r}
	n, err := io.CopyBuffer(io.MultiWriter(onlyWriter{f}, sum), in, make([]byte, 256<<10))
	if in.err != nil {
		f.Close()
		return in.err
	}
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = syncDir(s.fs, s.fs.PathDir(dst))
	}
	if err != nil {
		return s.unwritable(err)
	}
	if got := objectKey(sum.Sum(nil), n); key != got && !strings.HasPrefix(key, got+"-") {
		return fmt.Errorf("object %q %w: its content is that of %q", key, errDamaged, got)
	}
	return nil
}

// readErr keeps the error of a reader apart from that of whom it is copied to.
type readErr struct {
	r   io.Reader
	err error
}

func (r *readErr) Read(p []byte) (int, error) {
	n, err := r.r.Read(p)
	if err != io.EOF {
		r.err = err
	}
	return n, err
}

// objectKey begins the key of a state file.
func objectKey(sum []byte, size int64) string { return fmt.Sprintf("%s%x-%d", filesPrefix, sum, size) }

// upload writes the state files of c that have no object yet, and returns all of them by path. mu is held.
func (s *RemoteStore) upload(ctx context.Context, c *Checkpoint) (map[string]string, error) {
	objects := map[string]string{}
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			key, ok := s.known[keyOf(f)]
			if !ok || !s.present[key] {
				var err error
				if key, err = s.uploadFile(ctx, f); err != nil {
					return nil, s.log.fault("cannot be written", err)
				}
				s.known[keyOf(f)], s.present[key] = key, true
			}
			objects[f.Path] = key
		}
	}
	return objects, nil
}

func (s *RemoteStore) uploadFile(ctx context.Context, f StateFile) (key string, err error) {
	file, err := s.fs.Open(s.fs.PathJoin(s.dir, f.Path), vfs.SequentialReadsOption)
	if err != nil {
		return "", err
	}
	defer file.Close()
	sum := sha256.New()
	n, err := io.CopyBuffer(sum, onlyReader{file}, make([]byte, 256<<10))
	if err != nil {
		return "", err
	}
	if n != f.Size {
		return "", fmt.Errorf("state file %s has %d bytes, not %d", f.Path, n, f.Size)
	}
	key = objectKey(sum.Sum(nil), n) + "-" + NewLineage()[:8]
	return key, s.log.objects.Put(ctx, s.log.prefix+key, io.NewSectionReader(file, 0, n), n)
}

// remember notes the objects of a retained checkpoint.
func (s *RemoteStore) remember(c *Checkpoint, objects map[string]string) {
	s.objects[c.ID] = objects
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			s.known[keyOf(f)], s.present[objects[f.Path]] = objects[f.Path], true
		}
	}
}

// unpublish takes back a checkpoint that is durable here but not in the log. Its id stays used.
func (s *DirStore) unpublish(id ID) error {
	for _, name := range []string{manifest2Name, manifestName} {
		if err := s.fs.Remove(s.fs.PathJoin(s.dir, chkName(id), name)); err != nil && !oserror.IsNotExist(err) {
			return err
		}
	}
	s.mu.Lock()
	s.published = slices.DeleteFunc(s.published, func(p ID) bool { return p == id })
	s.mu.Unlock()
	if err := syncDir(s.fs, s.fs.PathJoin(s.dir, chkName(id))); !oserror.IsNotExist(err) {
		return err
	}
	return nil // it was collected
}
