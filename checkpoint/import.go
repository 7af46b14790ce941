package checkpoint

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// Imported is where a job starts after Import.
type Imported struct {
	// From is to be restored under a new lineage; nil: the store's newest checkpoint is what to go on from.
	From *Checkpoint
	// Rewound is the newest checkpoint that is left behind, here or where the savepoint came from, whose output may be written
	// again; 0 = none. The store has it on record.
	Rewound ID
}

// Import takes a savepoint or a checkpoint as the start of this store's job. path is the directory of a savepoint or of a
// job (its newest checkpoint is taken), one chk-<id> in it, or a state directory with one job. Its files are verified
// first and linked or copied. A checkpoint whose output may not be committed is refused.
//
// In a store without checkpoints it becomes the first, under a new lineage: from here on the job is another one as far as
// sinks are concerned. In a store that is the origin of path or was started from it, output may have been committed
// since: when none was, the job simply goes on; otherwise going back is refused unless allowRewind, because that output
// would be written again.
func (s *DirStore) Import(ctx context.Context, path string, allowRewind bool) (Imported, error) {
	root, src, err := locate(s.fs, path)
	if err != nil {
		return Imported{}, err
	}
	if where, err := ReadStorage(s.fs, root); err != nil {
		return Imported{}, err
	} else if where != "" && root != s.dir && !allowRewind {
		return Imported{}, errorf(diag.Config, "the checkpoints of %q are kept in %s", root, where).
			WithDetail("what is in the directory is a copy that may be older; output written since would be written again").
			WithHint("start from a savepoint of that job; --allow-rewind (SET 'streamsql.state-recovery.allow-rewind' = 'true') starts from the copy all the same")
	}
	n, err := readNotes(s.fs, root)
	if err != nil {
		return Imported{}, err
	}
	if !src.Savepoint && len(src.Pending) > 0 && n.confirmed() < src.ID {
		return Imported{}, errorf(diag.Config, "checkpoint %d in %q lists output that may not be committed", src.ID, root).
			WithHint("start its own job once more, so that it commits and stops, or restore an older checkpoint")
	}
	last, _, err := s.Latest(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return Imported{}, err
	}
	var out Imported
	if last != nil {
		since := s.since(src, last)
		if since == 0 && !last.Final {
			return out, nil
		}
		if since != 0 && !allowRewind {
			return out, rewindError(src, last, path, s.dir)
		}
		out.Rewound = since
	} else if ahead, dir := s.aheadOf(src, root); ahead != nil {
		if !allowRewind {
			return out, rewindError(src, ahead, path, dir)
		}
		out.Rewound = ahead.ID
	}
	if err := VerifyFiles(ctx, s.fs, root, src); err != nil {
		return out, err
	}
	if out.Rewound != 0 {
		err := s.Degrade(ctx, Degradation{At: time.Now().UTC(), Lineage: src.Lineage, From: out.Rewound, To: src.ID,
			By: "--allow-rewind", Why: "the job was started from " + path})
		if err != nil {
			return out, err
		}
	}
	c, err := s.adopt(ctx, root, src)
	if err != nil {
		return out, err
	}
	if last != nil {
		out.From = c
		return out, nil
	}
	c.Lineage, c.Fence = NewLineage(), s.owner.fence
	if err := s.Publish(ctx, c); err != nil {
		return out, err
	}
	return out, s.Confirm(ctx, c.ID)
}

// adopt brings the files of src, which is below root, into the store and returns it as a checkpoint of this store, of
// src's lineage.
func (s *DirStore) adopt(ctx context.Context, root string, src *Checkpoint) (*Checkpoint, error) {
	c := *src
	c.ID = max(src.ID, s.NextID())
	if err := s.Reserve(ctx, c.ID); err != nil {
		return nil, err
	}
	if err := copyCheckpoint(ctx, s.fs, root, s.dir, src, c.ID); err != nil {
		return nil, errorf(diag.External, "checkpoint %d of %q cannot be copied to %q", src.ID, root, s.dir).Wrap(err)
	}
	c.Subtasks = slices.Clone(src.Subtasks)
	for i, sub := range c.Subtasks {
		files := slices.Clone(sub.Files)
		for j := range files {
			files[j].Path = renamed(files[j].Path, c.ID)
		}
		c.Subtasks[i].Files = files
	}
	c.Pending, c.Savepoint, c.Final, c.From = nil, false, false, ""
	c.Ancestors = append([]Origin{{src.Lineage, src.ID}}, src.Ancestors...)
	return &c, nil
}

// since is the newest checkpoint of the store, last, if output may have been committed after src, and 0 if src is last or
// all that last's lineage has is what it took over from src.
func (s *DirStore) since(src, last *Checkpoint) ID {
	if src.Lineage == last.Lineage && src.ID == last.ID {
		return 0
	}
	if len(last.Ancestors) > 0 && last.Ancestors[0] == (Origin{src.Lineage, src.ID}) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if slices.Equal(s.published, []ID{last.ID}) && last.StartedAt.Equal(src.StartedAt) {
			return 0 // Import made it, and the job has not come to a checkpoint of its own
		}
	}
	return last.ID
}

// rewindError says what going back from last to src means.
func rewindError(src, last *Checkpoint, path, dir string) error {
	what := "savepoint"
	if !src.Savepoint {
		what = "checkpoint"
	}
	e := errorf(diag.Config, "%s %d in %q is older than what its job has committed", what, src.ID, path)
	descends := src.Lineage == last.Lineage || slices.ContainsFunc(last.Ancestors, func(o Origin) bool { return o.Lineage == src.Lineage })
	if descends {
		return e.WithDetail("%q is at checkpoint %d, %d checkpoint(s) later; their output would be written again", dir, last.ID, last.ID-min(src.ID, last.ID)).
			WithHint("start without --restore to go on from there; --allow-rewind (SET 'streamsql.state-recovery.allow-rewind' = 'true') goes back and repeats that output")
	}
	return errorf(diag.Config, "state directory %q has checkpoints of another run than %s %d in %q", dir, what, src.ID, path).
		WithDetail("it is at checkpoint %d of lineage %s; what it has written since may be written again", last.ID, last.Lineage).
		WithHint("use a new state directory (--state-dir), start without --restore, or leave that run behind with --allow-rewind")
}

// aheadOf is the newest checkpoint of the job that src is of, in dir, if that can still be read and has committed output
// since; nil = nothing of the kind is known.
func (s *DirStore) aheadOf(src *Checkpoint, root string) (ahead *Checkpoint, dir string) {
	dir = root
	if src.Savepoint {
		dir = src.From
	}
	if dir == "" {
		return nil, ""
	}
	cs, err := ReadCheckpoints(s.fs, dir)
	if err != nil || len(cs) == 0 {
		return nil, "" // gone, or not to be read from here: nothing is known of it
	}
	if last := cs[0]; last.Lineage == src.Lineage && last.ID > src.ID {
		return last, dir
	}
	return nil, ""
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

// Locate reads the checkpoint that Import would start from at path, without owning it.
func Locate(fs vfs.FS, path string) (*Checkpoint, error) {
	_, c, err := locate(fs, path)
	return c, err
}
