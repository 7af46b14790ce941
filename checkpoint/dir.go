package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// DirStore is the Store in a directory:
//
//	LOCK, owner              the owner, see Own
//	chk-<id>/MANIFEST        the checkpoint, durable = published; MANIFEST.2 is a second copy of the same bytes
//	chk-<id>/<subtask>/*     its state files: hard links, so each checkpoint stands alone
//	confirmed                the newest checkpoint whose committables are all committed
//	discarded                ranges of ids that must not be restored
//	local/                   working state of the running job, worthless after it
//
// Publish, Confirm, Discard and Latest are for one goroutine; Collect, Savepoint and List may run beside them.
type DirStore struct {
	owner *Owner
	fs    vfs.FS
	dir   string
	o     StoreOptions

	mu        sync.Mutex
	published []ID // with a readable manifest, not discarded; ascending
	pinned    map[ID]int
	restored  ID // pinned until newer ones fill the retention
	notes     notes
	next      ID
}

// StoreOptions configure a DirStore.
type StoreOptions struct {
	// Retain is how many checkpoints Collect keeps; 0 means 3.
	Retain int
	// Log receives what is worth knowing and no error: damaged copies, collected directories. nil discards.
	Log *slog.Logger
}

type idRange struct {
	From ID `json:"from"`
	To   ID `json:"to"`
}

// notes are the two small records beside the manifests.
type notes struct {
	Confirmed confirmedRecord
	Discarded discardedRecord
}

type confirmedRecord struct {
	ID    ID     `json:"id"`
	Fence uint64 `json:"fence"`
}

type discardedRecord struct {
	Ranges []idRange `json:"ranges"`
	Fence  uint64    `json:"fence"`
}

// confirmed is the newest checkpoint that is confirmed and not discarded since.
func (n *notes) confirmed() ID {
	id := n.Confirmed.ID
	for i := 0; i < len(n.Discarded.Ranges); i++ {
		if r := n.Discarded.Ranges[i]; r.From <= id && id <= r.To {
			id, i = r.From-1, -1
		}
	}
	return id
}

func (d discardedRecord) has(id ID) bool {
	return slices.ContainsFunc(d.Ranges, func(r idRange) bool { return r.From <= id && id <= r.To })
}

const (
	manifestName  = "MANIFEST"
	manifest2Name = "MANIFEST.2"
	confirmedName = "confirmed"
	discardedName = "discarded"
	chkPrefix     = "chk-"
	localName     = "local"
)

// OpenStore opens the checkpoints of the directory that owner holds. It is a Config error when they count elsewhere (see
// RemoteStore).
func OpenStore(owner *Owner, o StoreOptions) (*DirStore, error) {
	where, err := ReadStorage(owner.fs, owner.dir)
	if err != nil {
		return nil, err
	}
	if where != "" {
		return nil, errorf(diag.Config, "the checkpoints of state directory %q are kept in %s", owner.dir, where).
			WithDetail("what is in the directory is a copy that may be older").
			WithHint("set 'execution.checkpointing.dir' as before")
	}
	return openDir(owner, o)
}

func openDir(owner *Owner, o StoreOptions) (*DirStore, error) {
	if o.Retain <= 0 {
		o.Retain = 3
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	s := &DirStore{owner: owner, fs: owner.fs, dir: owner.dir, o: o, pinned: map[ID]int{}}
	var err error
	if s.notes, err = readNotes(s.fs, s.dir); err != nil {
		return nil, err
	}
	all, err := listIDs(s.fs, s.dir)
	if err != nil {
		return nil, errorf(diag.External, "cannot read state directory %q", s.dir).Wrap(err)
	}
	for _, id := range all {
		if hasManifest(s.fs, s.dir, id) && !s.notes.Discarded.has(id) {
			s.published = append(s.published, id)
		}
		s.next = max(s.next, id)
	}
	s.next = max(s.next, s.notes.Confirmed.ID)
	for _, r := range s.notes.Discarded.Ranges {
		s.next = max(s.next, r.To)
	}
	if s.next > maxNumber {
		return nil, errorf(diag.Data, "state directory %q names checkpoint %d, which no job comes to", s.dir, s.next).
			WithDetail("the name of a directory in it, or what %q or %q says, is damaged", confirmedName, discardedName).
			WithHint("restore the directory from a backup, or start from a savepoint in a new directory")
	}
	s.next++
	return s, nil
}

// maxNumber bounds the ids of checkpoints and fencing numbers that are read: a greater one is damage, and the next one must
// not be 0 again.
const maxNumber = 1 << 62

func readNotes(fs vfs.FS, dir string) (n notes, err error) {
	for name, v := range map[string]any{confirmedName: &n.Confirmed, discardedName: &n.Discarded} {
		if err := readRecord(fs, dir, name, name, v); err != nil && !oserror.IsNotExist(err) {
			return n, errorf(diag.External, "cannot read %q of state directory %q", name, dir).Wrap(err).
				WithDetail("without it a restore could repeat or drop output").
				WithHint("restore the file from a backup of the directory, or start from a savepoint in a new directory")
		}
	}
	return n, nil
}

func listIDs(fs vfs.FS, dir string) ([]ID, error) {
	names, err := fs.List(dir)
	if err != nil {
		return nil, err
	}
	var ids []ID
	for _, n := range names {
		if id, ok := parseChkName(strings.TrimSuffix(n, "/")); ok {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids, nil
}

func chkName(id ID) string { return chkPrefix + strconv.FormatUint(uint64(id), 10) }

func parseChkName(name string) (ID, bool) {
	rest, ok := strings.CutPrefix(name, chkPrefix)
	id, err := strconv.ParseUint(rest, 10, 64)
	return ID(id), ok && err == nil && id > 0
}

func hasManifest(fs vfs.FS, dir string, id ID) bool {
	for _, name := range []string{manifestName, manifest2Name} {
		if _, err := fs.Stat(fs.PathJoin(dir, chkName(id), name)); err == nil {
			return true
		}
	}
	return false
}

// readManifest reads checkpoint id from its first readable copy.
func readManifest(fs vfs.FS, dir string, id ID) (*Checkpoint, error) {
	var errs []error
	for _, name := range []string{manifestName, manifest2Name} {
		var c Checkpoint
		err := readRecord(fs, fs.PathJoin(dir, chkName(id)), name, "checkpoint", &c)
		if err == nil && c.ID != id {
			err = fmt.Errorf("checkpoint record %w: it is of checkpoint %d", errDamaged, c.ID)
		}
		if err == nil {
			err = c.checkPaths()
		}
		if err == nil {
			return &c, nil
		}
		errs = append(errs, fmt.Errorf("%s/%s: %w", chkName(id), name, err))
	}
	return nil, errors.Join(errs...)
}

// checkPaths refuses state files outside the directory: a restore would read, and a copy write, what is not its own.
func (c *Checkpoint) checkPaths() error {
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			if !filepath.IsLocal(f.Path) {
				return fmt.Errorf("checkpoint record %w: state file %q is not in its directory", errDamaged, f.Path)
			}
		}
	}
	return nil
}

// maxFence is the greatest fencing number in dir's manifests; unreadable ones do not count.
func maxFence(fs vfs.FS, dir string) (uint64, error) {
	ids, err := listIDs(fs, dir)
	if err != nil {
		return 0, err
	}
	var f uint64
	for _, id := range ids {
		if c, err := readManifest(fs, dir, id); err == nil {
			f = max(f, c.Fence)
		}
	}
	return f, nil
}

// NextID is the smallest id never used in this lineage.
func (s *DirStore) NextID() ID {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.next
}

// Reserve durably marks id as used before its barrier is injected, so that it is not used again even when nothing of
// the checkpoint survives. An owner that was replaced is refused: the new one does not know the id, would use it too, and
// both would write the same files.
func (s *DirStore) Reserve(ctx context.Context, id ID) error {
	if err := s.owner.Check(); err != nil {
		return err
	}
	dir := s.fs.PathJoin(s.dir, chkName(id))
	// It may be there: an earlier call could not make it durable.
	err := s.fs.MkdirAll(dir, 0o755)
	if err == nil {
		err = syncDir(s.fs, s.dir)
	}
	if err != nil {
		return errorf(diag.External, "checkpoint %d cannot start: state directory %q", id, s.dir).Wrap(err)
	}
	s.mu.Lock()
	s.next = max(s.next, id+1)
	s.mu.Unlock()
	return nil
}

// Publish makes c the newest checkpoint. Nothing of it may be visible outside before it returns nil, and all of it must
// become so afterwards. After an error c may or may not be durable.
func (s *DirStore) Publish(ctx context.Context, c *Checkpoint) error {
	s.mu.Lock()
	newest := s.newest()
	s.mu.Unlock()
	if c.ID <= newest || s.notes.Discarded.has(c.ID) {
		return errorf(diag.Internal, "checkpoint %d is not newer than checkpoint %d", c.ID, newest)
	}
	if c.Fence != s.owner.fence {
		return errorf(diag.Conflict, "checkpoint %d carries fencing number %d, the owner of %q has %d", c.ID, c.Fence, s.dir, s.owner.fence)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := s.owner.Check(); err != nil {
		return err
	}
	dir := s.fs.PathJoin(s.dir, chkName(c.ID))
	// The second copy is not a manifest until the first exists: Publish is decided by one rename.
	err := mkdirAllSynced(s.fs, dir)
	if err == nil {
		err = s.checkFiles(c)
	}
	if err == nil {
		err = writeRecord(s.fs, dir, manifestName, "checkpoint", c, s.owner.Check)
	}
	if err != nil {
		if diag.CodeOf(err) == diag.Conflict {
			return err
		}
		return errorf(diag.External, "checkpoint %d cannot be written to %q", c.ID, s.dir).Wrap(err).
			WithHint("check free space and permissions of the state directory")
	}
	s.mu.Lock()
	s.published = append(s.published, c.ID)
	s.next = max(s.next, c.ID+1)
	s.mu.Unlock()
	if err := writeRecord(s.fs, dir, manifest2Name, "checkpoint", c, nil); err != nil {
		s.o.Log.Warn("second copy of manifest not written", "checkpoint", c.ID, "err", err)
	}
	return nil
}

// checkFiles makes sure that what the manifest is about to promise exists, by size.
func (s *DirStore) checkFiles(c *Checkpoint) error {
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			st, err := s.fs.Stat(s.fs.PathJoin(s.dir, f.Path))
			if err != nil {
				return err
			}
			if st.Size() != f.Size {
				return fmt.Errorf("state file %s has %d bytes, not %d", f.Path, st.Size(), f.Size)
			}
		}
	}
	return nil
}

func (s *DirStore) newest() ID {
	if n := len(s.published); n > 0 {
		return s.published[n-1]
	}
	return 0
}

// Confirm records durably that all committables pending in checkpoint id are committed.
func (s *DirStore) Confirm(ctx context.Context, id ID) error {
	if id <= s.notes.Confirmed.ID {
		return nil
	}
	if err := s.owner.Check(); err != nil {
		return err
	}
	rec := confirmedRecord{ID: id, Fence: s.owner.fence}
	if err := writeRecord(s.fs, s.dir, confirmedName, confirmedName, rec, nil); err != nil {
		return errorf(diag.External, "checkpoint %d cannot be confirmed in %q", id, s.dir).Wrap(err)
	}
	s.mu.Lock()
	s.notes.Confirmed = rec
	s.mu.Unlock()
	return nil
}

// Discard marks checkpoints from id on as unusable; their ids stay used. The caller has proven that nothing they list is
// visible.
func (s *DirStore) Discard(ctx context.Context, from ID) error {
	if err := s.owner.Check(); err != nil {
		return err
	}
	rec := discardedRecord{Ranges: slices.Clone(s.notes.Discarded.Ranges), Fence: s.owner.fence}
	s.mu.Lock()
	rec.Ranges = append(rec.Ranges, idRange{From: from, To: max(from, s.next-1)})
	s.mu.Unlock()
	if err := writeRecord(s.fs, s.dir, discardedName, discardedName, rec, nil); err != nil {
		return errorf(diag.External, "checkpoints from %d on cannot be discarded in %q", from, s.dir).Wrap(err)
	}
	s.mu.Lock()
	s.notes.Discarded = rec
	s.published = slices.DeleteFunc(s.published, rec.has)
	s.next = max(s.next, from+1)
	s.mu.Unlock()
	return nil
}

// Latest is the newest usable checkpoint and whether it is confirmed; ErrNone when there is none. It is durable when Latest
// returns: its output may be committed. A manifest of which
// no copy can be read is an error: what it committed is unknown, so that no older one may silently replace it.
func (s *DirStore) Latest(ctx context.Context) (c *Checkpoint, confirmed bool, err error) {
	s.mu.Lock()
	id, noted := s.newest(), s.notes.confirmed()
	s.mu.Unlock()
	if id < noted {
		return nil, false, s.unreadable(ctx, noted, errors.New("its manifest is missing though its output is committed"))
	}
	if id == 0 {
		return nil, false, ErrNone
	}
	c, err = readManifest(s.fs, s.dir, id)
	if err != nil {
		return nil, false, s.unreadable(ctx, id, err)
	}
	// Its writer may have been killed between giving the manifest its name and making that durable. What is done now, on the
	// strength of it, must not outlive it.
	if err := syncDir(s.fs, s.fs.PathJoin(s.dir, chkName(id))); err != nil {
		return nil, false, errorf(diag.External, "checkpoint %d cannot be made durable in %q", id, s.dir).Wrap(err)
	}
	s.mu.Lock()
	s.restored = id
	s.mu.Unlock()
	return c, id <= noted, nil
}

// UnreadableError is what Latest answers when no copy of the newest manifest can be read.
type UnreadableError struct {
	ID ID
	// Earlier are the retained checkpoints before it that can be read, of the run that has not ended, newest first. Whose the unreadable one
	// is nobody knows: it may be the first of a run that has nothing to do with those before it.
	Earlier   []*Checkpoint
	Confirmed ID // the newest of which all output is known to be committed
	err       error
}

// Error implements error.
func (e *UnreadableError) Error() string { return e.err.Error() }

// Unwrap gives what is the matter.
func (e *UnreadableError) Unwrap() error { return e.err }

func (s *DirStore) unreadable(ctx context.Context, id ID, err error) error {
	s.mu.Lock()
	ids, noted := slices.Clone(s.published), s.notes.confirmed()
	s.mu.Unlock()
	open, lerr := s.Lineages(ctx)
	if lerr != nil {
		return errors.Join(err, lerr)
	}
	e := &UnreadableError{ID: id, Confirmed: noted, err: err}
	for _, k := range slices.Backward(ids) {
		if c, err := readManifest(s.fs, s.dir, k); err == nil && k < id && len(open) > 0 && c.Lineage == open[len(open)-1] {
			e.Earlier = append(e.Earlier, c)
		}
	}
	way := ""
	if len(e.Earlier) > 0 {
		way = fmt.Sprintf("; SET '%s' = '%s' goes back to checkpoint %d, and output since then is written again", OnDegradedKey, DegradedRepeat, e.Earlier[0].ID)
	}
	return errorf(diag.Lost, "checkpoint %d cannot be read", id).Wrap(e).
		WithDetail("it may list output that is already committed, so that resuming from an older checkpoint could repeat it").
		WithHint("restore %s from a backup, or start from a savepoint in a new state directory%s", chkName(id), way)
}

// List are the retained usable checkpoints, newest first, without gaps: it ends before an older one that cannot be read.
func (s *DirStore) List(ctx context.Context) ([]*Checkpoint, error) {
	s.mu.Lock()
	ids := slices.Clone(s.published)
	s.mu.Unlock()
	var out []*Checkpoint
	for i, id := range slices.Backward(ids) {
		c, err := readManifest(s.fs, s.dir, id)
		if err != nil && i == len(ids)-1 {
			return nil, s.unreadable(ctx, id, err)
		}
		if err != nil {
			s.o.Log.Warn("checkpoint cannot be read", "checkpoint", id, "err", err)
			break
		}
		out = append(out, c)
	}
	return out, nil
}

// Verify reads every state file of c and compares size and crc32c. The error names the first damaged one.
func (s *DirStore) Verify(ctx context.Context, c *Checkpoint) error {
	return VerifyFiles(ctx, s.fs, s.dir, c)
}

// verifyShare is the bytes of files that pay for a reader beside the first.
const verifyShare = 1 << 20

// VerifyFiles is Verify for a checkpoint whose files are under root, e.g. a savepoint. As many are read at once as there are
// processors, when they are large enough to pay for it.
func VerifyFiles(ctx context.Context, fs vfs.FS, root string, c *Checkpoint) error {
	var files []StateFile
	var of []SubtaskID
	bytes := int64(0)
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			files, of, bytes = append(files, f), append(of, sub.Subtask), bytes+f.Size
		}
	}
	errs := make([]error, len(files))
	var next atomic.Int64
	read := func() {
		for i := next.Add(1) - 1; i < int64(len(files)); i = next.Add(1) - 1 {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = verifyFile(fs, root, c.ID, of[i], files[i])
			}
		}
	}
	var beside sync.WaitGroup
	for range min(int64(runtime.GOMAXPROCS(0)-1), int64(len(files)-1), bytes/verifyShare) {
		beside.Go(read)
	}
	read()
	beside.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func verifyFile(fs vfs.FS, root string, id ID, of SubtaskID, f StateFile) error {
	size, crc, err := crcFile(fs, fs.PathJoin(root, f.Path))
	switch {
	case err != nil && !oserror.IsNotExist(err):
		return errorf(diag.External, "checkpoint %d: cannot read state file %s", id, f.Path).Wrap(err)
	case err != nil:
		err = fmt.Errorf("%w: the file is missing", errDamaged)
	case size != f.Size:
		err = fmt.Errorf("%w: %d bytes, the manifest says %d", errDamaged, size, f.Size)
	case crc != f.CRC32C:
		err = fmt.Errorf("%w: crc32c %08x, the manifest says %08x", errDamaged, crc, f.CRC32C)
	default:
		return nil
	}
	return errorf(diag.Data, "checkpoint %d is unusable: state file %s of %s", id, f.Path, of).Wrap(err)
}
