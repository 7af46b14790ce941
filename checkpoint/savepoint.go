package checkpoint

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// partialSuffix ends the name of a savepoint's directory while it is written or removed: a process that dies leaves it, and
// nothing under the savepoint's own name.
const partialSuffix = ".partial"

// Savepoint copies checkpoint id, which must be published and confirmed, to dir, which must not exist: by hard links
// where dir is on the same volume. dir appears at once, when everything in it is durable. The copy is a directory of its
// own that Collect never touches; Import starts from it. All of its output is committed, so nothing in it depends on an
// external transaction.
func (s *DirStore) Savepoint(ctx context.Context, id ID, dir string) error {
	defer s.Pin(id)()
	dir = filepath.Clean(dir)
	s.mu.Lock()
	confirmed := s.notes.confirmed()
	s.mu.Unlock()
	if id > confirmed {
		return errorf(diag.Config, "checkpoint %d is not committed yet and cannot become a savepoint", id).
			WithHint("wait for its commit")
	}
	if err := PrepareSavepoint(s.fs, dir); err != nil {
		return err
	}
	c, err := readManifest(s.fs, s.dir, id)
	if err != nil {
		return errorf(diag.External, "checkpoint %d cannot be read", id).Wrap(err)
	}
	m := *c
	m.Savepoint, m.Pending, m.From = true, nil, absolute(s.dir)
	partial := dir + partialSuffix
	if err := s.writeSavepoint(ctx, &m, partial, dir); err != nil {
		s.fs.RemoveAll(partial)
		return errorf(diag.External, "savepoint %q cannot be written", dir).Wrap(err).
			WithHint("check free space and permissions of its directory")
	}
	return Failpoint("savepoint.after")
}

// Pin keeps checkpoint id from Collect until it is released.
func (s *DirStore) Pin(id ID) (release func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pinned[id]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.pinned[id]--
	}
}

func (s *DirStore) writeSavepoint(ctx context.Context, m *Checkpoint, partial, dir string) error {
	if err := Failpoint("savepoint.begin"); err != nil {
		return err
	}
	if err := copyCheckpoint(ctx, s.fs, s.dir, partial, m, m.ID); err != nil {
		return err
	}
	if err := Failpoint("savepoint.copied"); err != nil {
		return err
	}
	if err := writeManifests(s.fs, partial, m); err != nil {
		return err
	}
	if err := Failpoint("savepoint.written"); err != nil {
		return err
	}
	if err := s.fs.Rename(partial, dir); err != nil {
		return err
	}
	if err := syncDir(s.fs, s.fs.PathDir(dir)); err != nil {
		return errors.Join(err, s.fs.RemoveAll(dir)) // whether it is there is not known: it must not be taken for one
	}
	return nil
}

// PrepareSavepoint makes sure that a savepoint can be written to dir: it does not exist, the directory it is made in does
// and can be written to. What a process that died while it wrote or removed a savepoint there left is removed.
func PrepareSavepoint(fs vfs.FS, dir string) error {
	dir = filepath.Clean(dir)
	if _, err := fs.Stat(dir); !oserror.IsNotExist(err) {
		if err == nil {
			return errorf(diag.Config, "savepoint directory %q exists", dir).WithHint("name a directory that does not exist yet")
		}
		return errorf(diag.External, "savepoint directory %q", dir).Wrap(err)
	}
	partial := dir + partialSuffix
	if err := removeUnfinished(fs, partial); err != nil {
		return err
	}
	err := EnsureDir(fs, partial, 0o755)
	if err != nil {
		return errorf(diag.External, "savepoint %q cannot be written", dir).Wrap(err).
			WithHint("check free space and permissions of its directory")
	}
	return nil
}

// removeUnfinished removes the directory of an unfinished savepoint, if it is one.
func removeUnfinished(fs vfs.FS, partial string) error {
	names, err := fs.List(partial)
	if oserror.IsNotExist(err) {
		return nil
	}
	for _, n := range names {
		if _, ok := parseChkName(strings.TrimSuffix(n, "/")); !ok {
			return errorf(diag.Config, "%q holds %q, which is not of a savepoint", partial, n).WithHint("name another directory, or remove this one")
		}
	}
	if err == nil {
		err = fs.RemoveAll(partial)
	}
	if err != nil {
		return errorf(diag.External, "an unfinished savepoint, %q, cannot be removed", partial).Wrap(err)
	}
	return nil
}

// Dispose removes the savepoint in dir and what was left of its making or removal. It removes nothing that is not a
// savepoint. From its first durable step on, dir is no savepoint any more; a call that was interrupted is repeated.
func Dispose(fs vfs.FS, dir string) error {
	dir = filepath.Clean(dir)
	partial := dir + partialSuffix
	_, err := fs.Stat(dir)
	if oserror.IsNotExist(err) {
		if _, err := fs.Stat(partial); err == nil {
			return removeUnfinished(fs, partial)
		}
		return errorf(diag.Config, "there is no savepoint %q", dir).WithHint("streamsql savepoint list shows them")
	}
	if err := disposable(fs, dir); err != nil {
		return err
	}
	if err := removeUnfinished(fs, partial); err != nil {
		return err
	}
	err = fs.Rename(dir, partial)
	if err == nil {
		err = syncDir(fs, fs.PathDir(dir))
	}
	if err == nil {
		err = Failpoint("dispose.moved")
	}
	if err == nil {
		err = fs.RemoveAll(partial)
	}
	if err != nil {
		return errorf(diag.External, "savepoint %q cannot be removed", dir).Wrap(err)
	}
	return nil
}

// disposable tells whether dir holds a savepoint and nothing else.
func disposable(fs vfs.FS, dir string) error {
	names, err := fs.List(dir)
	if err != nil {
		return errorf(diag.External, "cannot read directory %q", dir).Wrap(err)
	}
	for _, n := range names {
		if _, ok := parseChkName(strings.TrimSuffix(n, "/")); !ok {
			return errorf(diag.Config, "%q is not a savepoint: it holds %q", dir, n).
				WithHint("checkpoints belong to their job and go with it; remove other directories by hand")
		}
	}
	cs, err := ReadCheckpoints(fs, dir)
	switch {
	case err != nil && diag.CodeOf(err) == diag.External:
		return err
	case err != nil || len(cs) == 0:
		return errorf(diag.Config, "%q is not a savepoint that can be read", dir).Wrap(err).WithHint("remove the directory by hand if it is not wanted")
	case !cs[0].Savepoint:
		return errorf(diag.Config, "%q holds checkpoints of a job, not a savepoint", dir).WithHint("checkpoints belong to their job and go with it")
	}
	return nil
}

// absolute is dir for another process to find.
func absolute(dir string) string {
	if a, err := filepath.Abs(dir); err == nil {
		return a
	}
	return dir
}

func writeManifests(fs vfs.FS, root string, c *Checkpoint) error {
	for _, name := range []string{manifestName, manifest2Name} {
		if err := writeRecord(fs, fs.PathJoin(root, chkName(c.ID)), name, "checkpoint", c, nil); err != nil {
			return err
		}
	}
	return nil
}

// copyCheckpoint links or copies the state files of c from one root to another, there as checkpoint id.
func copyCheckpoint(ctx context.Context, fs vfs.FS, from, to string, c *Checkpoint, id ID) error {
	if err := mkdirAllSynced(fs, fs.PathJoin(to, chkName(id))); err != nil {
		return err
	}
	dirs := map[string]bool{}
	for _, sub := range c.Subtasks {
		for _, f := range sub.Files {
			if err := ctx.Err(); err != nil {
				return err
			}
			dst := fs.PathJoin(to, renamed(f.Path, id))
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

// renamed is the path of a state file in the directory of checkpoint id.
func renamed(path string, id ID) string {
	_, below, _ := strings.Cut(path, "/")
	return chkName(id) + "/" + below
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

// Dump is c as indented JSON, for people and scripts. Payloads are base64.
func Dump(c *Checkpoint) ([]byte, error) { return json.MarshalIndent(c, "", "  ") }
