package file

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"io/fs"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// committer gives pending files their visible names.
type committer struct {
	sink *sink
	// aborted are the visible names that Abort of this committer made impossible. A file that is nowhere else could
	// have been committed and then taken away by whoever reads the table, so its outcome is unknown.
	aborted map[string]bool
}

// found is what exists of a part.
type found struct{ pending, final bool }

func (c *committer) paths(p part) (pending, final string) {
	dir := filepath.Join(c.sink.path, p.dir)
	return filepath.Join(dir, p.pending()), filepath.Join(dir, p.final)
}

func (c *committer) look(p part) (f found, err error) {
	pending, final := c.paths(p)
	if f.pending, err = c.is(pending, p); err == nil {
		f.final, err = c.is(final, p)
	}
	return f, err
}

// is reports whether path exists with the size of p; another size is an error.
func (c *committer) is(path string, p part) (bool, error) {
	info, err := c.sink.fs.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, c.sink.failed("reading", path, err)
	case info.Size() != p.size:
		return false, c.damaged(path)
	}
	return true, nil
}

func (c *committer) damaged(path string) error {
	return diag.New(diag.Lost, diag.Pos{}, "table %s: file %s was changed after it was written", c.sink.t.Name, path).
		WithDetail("its size or checksum is not the one the checkpoint lists").
		WithHint("restore the file, or start the job from an older checkpoint whose files are complete")
}

// verify compares the contents with the checksum.
func (c *committer) verify(path string, p part) error {
	f, err := c.sink.fs.Open(path, vfs.SequentialReadsOption)
	if err != nil {
		return c.sink.failed("reading", path, err)
	}
	defer f.Close()
	h := crc32.New(castagnoli)
	n, err := io.Copy(h, f)
	if err != nil {
		return c.sink.failed("reading", path, err)
	}
	if n != p.size || h.Sum32() != p.crc {
		return c.damaged(path)
	}
	return nil
}

func (c *committer) decode(cs []checkpoint.Committable) ([]part, error) {
	out := make([]part, len(cs))
	for i := range cs {
		var err error
		if out[i], err = decodePart(cs[i].Payload); err != nil {
			return nil, diag.New(diag.Internal, diag.Pos{}, "table %s: committable of checkpoint %d", c.sink.t.Name, cs[i].Checkpoint).Wrap(err)
		}
	}
	return out, nil
}

// Classify implements checkpoint.Committer. Contents are verified against their checksums.
func (c *committer) Classify(ctx context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	parts, err := c.decode(cs)
	if err != nil {
		return nil, err
	}
	out := make([]checkpoint.Outcome, len(cs))
	for i, p := range parts {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		f, err := c.look(p)
		if err != nil {
			return nil, err
		}
		pending, final := c.paths(p)
		switch {
		case f.final:
			out[i], err = checkpoint.OutcomeCommitted, c.verify(final, p)
		case f.pending:
			out[i], err = checkpoint.OutcomeOpen, c.verify(pending, p)
		case c.aborted[final]:
			out[i] = checkpoint.OutcomeAborted
		default:
			out[i] = checkpoint.OutcomeUnknown
		}
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// Commit implements checkpoint.Committer.
func (c *committer) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	parts, err := c.decode(cs)
	if err != nil {
		return err
	}
	var dirs []string
	for i, p := range parts {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.commit(p, cs[i].Checkpoint); err != nil {
			return err
		}
		if !slices.Contains(dirs, p.dir) {
			dirs = append(dirs, p.dir)
		}
		if err := checkpoint.Failpoint("file.commit.linked"); err != nil {
			return err
		}
	}
	for _, dir := range dirs {
		full := filepath.Join(c.sink.path, dir)
		if c.sink.success != "" {
			if err := c.mark(full); err != nil {
				return err
			}
		}
		if err := syncDir(c.sink.fs, full); err != nil {
			return c.sink.failed("syncing directory", full, err)
		}
	}
	return nil
}

func (c *committer) commit(p part, id checkpoint.ID) error {
	f, err := c.look(p)
	if err != nil {
		return err
	}
	pending, final := c.paths(p)
	switch {
	case f.final:
		// Committed before; a crash between link and unlink leaves both names.
		if err := c.verify(final, p); err != nil {
			return err
		}
	case !f.pending:
		return diag.New(diag.Lost, diag.Pos{}, "table %s: the rows of checkpoint %d in %s are lost", c.sink.t.Name, id, p.final).
			WithDetail("neither the pending file %s nor the visible one exists", pending).
			WithHint("somebody removed the file: restore it, or accept the loss by starting the job from a savepoint or afresh")
	default:
		if err := publish(c.sink.fs, pending, final); err != nil {
			return c.sink.failed("renaming", pending, err)
		}
	}
	if err := c.sink.fs.Remove(pending); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c.sink.failed("removing", pending, err)
	}
	return nil
}

// publish gives the file a second name without ever replacing another file; file systems without hard links get a
// rename, after looking.
func publish(disk vfs.FS, pending, final string) error {
	err := disk.Link(pending, final)
	if err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	if _, serr := disk.Stat(final); !errors.Is(serr, fs.ErrNotExist) {
		return errors.Join(err, serr)
	}
	return disk.Rename(pending, final)
}

// mark writes the success file of a partition.
func (c *committer) mark(dir string) error {
	f, err := c.sink.fs.OpenReadWrite(filepath.Join(dir, c.sink.success), vfs.WriteCategoryUnspecified)
	if err != nil {
		return c.sink.failed("marking partition", dir, err)
	}
	if err := f.Close(); err != nil {
		return c.sink.failed("marking partition", dir, err)
	}
	return nil
}

// Abort implements checkpoint.Committer: it removes this lineage's unfinished files of this sink, and no others. A writer
// of an earlier incarnation that still runs fails at its next rename.
func (c *committer) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	parts, err := c.decode(keep)
	if err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, p := range parts {
		pending, _ := c.paths(p)
		kept[pending] = true
	}
	return c.sink.removeUnfinished(ctx, c.sink.spec.Job.Lineage, kept, c.remember)
}

// Sweep implements connectors.Sweeper.
func (s *sink) Sweep(ctx context.Context, lineage string) error {
	return s.removeUnfinished(ctx, lineage, nil, func(string) {})
}

// removeUnfinished removes the lineage's unfinished files of this sink, but for those kept, and tells which.
func (s *sink) removeUnfinished(ctx context.Context, lineage string, kept map[string]bool, removed func(path string)) error {
	err := eachName(s.fs, s.path, func(dir, name string) error {
		path := filepath.Join(dir, name)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case kept[path] || !leftover(name, lineage, s.spec.ID):
			return nil
		}
		if err := s.fs.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		removed(path)
		return nil
	})
	if err != nil {
		return s.failed("removing unfinished files below", s.path, err)
	}
	return nil
}

// remember notes that the pending file at path can never be committed.
func (c *committer) remember(path string) {
	dir, name := filepath.Split(path)
	mark := pendingMark + c.sink.spec.Job.Lineage
	if n := len(name) - len(mark); n > 1 && name[n:] == mark {
		c.aborted[filepath.Join(dir, name[1:n])] = true
	}
}

// Close implements checkpoint.Committer.
func (c *committer) Close() error { return nil }
