package checkpoint

import (
	"context"
	"encoding/json"
	"io"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// Savepoint copies checkpoint id, which must be published and confirmed, to dir, which must not exist: by hard links
// where dir is on the same volume. The copy is a directory of its own that Collect never touches; Import starts from
// it. All of its output is committed, so nothing in it depends on an external transaction.
func (s *DirStore) Savepoint(ctx context.Context, id ID, dir string) error {
	s.mu.Lock()
	confirmed := s.notes.confirmed()
	s.pinned[id]++
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.pinned[id]--
		s.mu.Unlock()
	}()
	if id > confirmed {
		return errorf(diag.Config, "checkpoint %d is not committed yet and cannot become a savepoint", id).
			WithHint("wait for its commit")
	}
	if _, err := s.fs.Stat(dir); !oserror.IsNotExist(err) {
		if err == nil {
			return errorf(diag.Config, "savepoint directory %q exists", dir).WithHint("name a directory that does not exist yet")
		}
		return errorf(diag.External, "savepoint directory %q", dir).Wrap(err)
	}
	c, err := readManifest(s.fs, s.dir, id)
	if err != nil {
		return errorf(diag.External, "checkpoint %d cannot be read", id).Wrap(err)
	}
	if err := copyCheckpoint(ctx, s.fs, s.dir, dir, c); err != nil {
		s.fs.RemoveAll(dir)
		return errorf(diag.External, "savepoint %q cannot be written", dir).Wrap(err)
	}
	m := *c
	m.Savepoint, m.Pending = true, nil
	if err := writeManifests(s.fs, dir, &m); err != nil {
		return errorf(diag.External, "savepoint %q cannot be written", dir).Wrap(err)
	}
	return nil
}

func writeManifests(fs vfs.FS, root string, c *Checkpoint) error {
	for _, name := range []string{manifestName, manifest2Name} {
		if err := writeRecord(fs, fs.PathJoin(root, chkName(c.ID)), name, "checkpoint", c, nil); err != nil {
			return err
		}
	}
	return nil
}

// copyCheckpoint links or copies the state files of c from one root to another; their names below the root stay.
func copyCheckpoint(ctx context.Context, fs vfs.FS, from, to string, c *Checkpoint) error {
	if err := mkdirAllSynced(fs, fs.PathJoin(to, chkName(c.ID))); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			if err := ctx.Err(); err != nil {
				return err
			}
			dst := fs.PathJoin(to, f.Path)
			dir := fs.PathDir(dst)
			if !dirs[dir] {
				if err := mkdirAllSynced(fs, dir); err != nil {
					return err
				}
				dirs[dir] = true
			}
			if err := linkOrCopySynced(fs, fs.PathJoin(from, f.Path), dst); err != nil {
				return err
			}
		}
	}
	for dir := range dirs {
		if err := syncDir(fs, dir); err != nil {
			return err
		}
	}
	return nil
}

// linkOrCopySynced makes dst the same bytes as src. A copy is synced; a link has the durability of src.
func linkOrCopySynced(fs vfs.FS, src, dst string) error {
	if err := fs.Link(src, dst); err == nil || oserror.IsExist(err) {
		return err
	}
	return copySynced(fs, src, dst)
}

func copySynced(fs vfs.FS, src, dst string) error {
	in, err := fs.Open(src, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := fs.Create(dst, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	if _, err := io.CopyBuffer(onlyWriter{out}, onlyReader{in}, make([]byte, 256<<10)); err != nil {
		out.Close()
		return err
	}
	if err := out.Sync(); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

type onlyWriter struct{ io.Writer }

// ReadSavepoint reads the manifest of the savepoint, or of the newest published checkpoint, in dir, without owning dir.
func ReadSavepoint(fs vfs.FS, dir string) (*Checkpoint, error) {
	cs, err := ReadCheckpoints(fs, dir)
	if err != nil {
		return nil, err
	}
	if len(cs) == 0 {
		return nil, errorf(diag.Config, "%q holds no savepoint", dir).WithHint("give the directory that the savepoint was written to")
	}
	return cs[0], nil
}

// ReadCheckpoints reads the published checkpoints in dir, newest first, without owning it: for people.
func ReadCheckpoints(fs vfs.FS, dir string) ([]*Checkpoint, error) {
	n, err := readNotes(fs, dir)
	if err != nil {
		return nil, err
	}
	ids, err := listIDs(fs, dir)
	if err != nil {
		return nil, errorf(diag.Config, "cannot read directory %q", dir).Wrap(err).
			WithHint("give the directory of a savepoint, or the chk-… directory of a checkpoint; streamsql checkpoint show lists them")
	}
	var out []*Checkpoint
	for i := len(ids) - 1; i >= 0; i-- {
		if !hasManifest(fs, dir, ids[i]) || n.Discarded.has(ids[i]) {
			continue
		}
		c, err := readManifest(fs, dir, ids[i])
		if err != nil {
			return nil, errorf(diag.Data, "checkpoint %d in %q cannot be read", ids[i], dir).Wrap(err)
		}
		out = append(out, c)
	}
	return out, nil
}

// Import makes a savepoint or checkpoint of another directory the first checkpoint of this store, which must have none,
// under a new lineage: from here on the job is another one as far as sinks are concerned. path is the directory of a
// savepoint or of a job (its newest checkpoint is taken), one chk-<id> in it, or a state directory with one job. The
// files are verified first and linked or copied. A checkpoint whose output may not be committed is refused.
func (s *DirStore) Import(ctx context.Context, path string) (*Checkpoint, error) {
	s.mu.Lock()
	empty := len(s.published) == 0
	s.mu.Unlock()
	if !empty {
		return nil, errorf(diag.Config, "state directory %q already has checkpoints, %q cannot be restored into it", s.dir, path).
			WithHint("use a new state directory (--state-dir), or start without --restore to resume at the last checkpoint")
	}
	root, src, err := locate(s.fs, path)
	if err != nil {
		return nil, err
	}
	n, err := readNotes(s.fs, root)
	if err != nil {
		return nil, err
	}
	if !src.Savepoint && len(src.Pending) > 0 && n.confirmed() < src.ID {
		return nil, errorf(diag.Config, "checkpoint %d in %q lists output that may not be committed", src.ID, root).
			WithHint("start its own job once more, so that it commits and stops, or restore an older checkpoint")
	}
	if err := VerifyFiles(ctx, s.fs, root, src); err != nil {
		return nil, err
	}
	if err := copyCheckpoint(ctx, s.fs, root, s.dir, src); err != nil {
		return nil, errorf(diag.External, "checkpoint %d of %q cannot be copied to %q", src.ID, root, s.dir).Wrap(err)
	}
	c := *src
	c.Lineage, c.Fence, c.Pending, c.Final = NewLineage(), s.owner.fence, nil, false
	if err := s.Publish(ctx, &c); err != nil {
		return nil, err
	}
	return &c, s.Confirm(ctx, c.ID)
}

// locate finds the checkpoint that path names and the directory its files are below.
func locate(fs vfs.FS, path string) (root string, c *Checkpoint, err error) {
	root = path
	var id ID
	if n, ok := parseChkName(fs.PathBase(path)); ok {
		root, id = fs.PathDir(path), n
	} else if jobs, err := fs.List(fs.PathJoin(path, "jobs")); err == nil {
		if len(jobs) != 1 {
			return "", nil, errorf(diag.Config, "%q holds %d jobs", path, len(jobs)).WithHint("name one of them: %s", fs.PathJoin(path, "jobs", "<id>"))
		}
		root = fs.PathJoin(path, "jobs", strings.TrimSuffix(jobs[0], "/"))
	}
	cs, err := ReadCheckpoints(fs, root)
	if err != nil {
		return "", nil, err
	}
	for _, c := range cs {
		if id == 0 || c.ID == id {
			return root, c, nil
		}
	}
	if id != 0 {
		return "", nil, errorf(diag.Config, "%q holds no checkpoint %d", root, id).WithHint("streamsql checkpoint show %s lists them", root)
	}
	return "", nil, errorf(diag.Config, "%q holds no checkpoint or savepoint", path).
		WithHint("give the directory of a savepoint, a job (<state dir>/jobs/<id>) or one chk-<id> in it; streamsql checkpoint show lists them")
}

// Dump is c as indented JSON, for people and scripts. Payloads are base64.
func Dump(c *Checkpoint) ([]byte, error) { return json.MarshalIndent(c, "", "  ") }
