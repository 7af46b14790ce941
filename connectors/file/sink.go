package file

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sys/unix"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
)

type sink struct {
	*config
	spec     connectors.SinkSpec
	fs       vfs.FS
	dirs     sync.Map // directories known to be durable, below the path
	enc      format.EncodeSpec
	keyCols  []int // partition columns in the rows
	rollSize int64
	rollAge  int64 // ms
}

func newSink(spec connectors.SinkSpec) (*sink, error) {
	c, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	s := &sink{config: c, spec: spec, fs: disk(), rollSize: c.v.Memory("sink.rolling-policy.file-size"),
		rollAge: c.v.Duration("sink.rolling-policy.rollover-interval").Milliseconds()}
	s.enc = format.EncodeSpec{Schema: c.body, Options: c.v.Sub(c.fm.ValuePrefix), Table: spec.Table.Name, Session: spec.Session}
	for _, col := range c.body.Columns {
		s.enc.Columns = append(s.enc.Columns, spec.Schema.Index(col.Name))
	}
	for _, k := range c.keys {
		s.keyCols = append(s.keyCols, spec.Schema.Index(k.Name))
	}
	if slices.Contains(s.enc.Columns, -1) || slices.Contains(s.keyCols, -1) || hasWritableMetadata(spec.Table) {
		return nil, diag.New(diag.Internal, diag.Pos{}, "table %s: the rows to write lack columns of the table", spec.Table.Name)
	}
	return s, nil
}

func hasWritableMetadata(t *catalog.Table) bool {
	return slices.ContainsFunc(t.Columns, func(c catalog.Column) bool { return c.Kind == catalog.Metadata && !c.Virtual })
}

func (c *config) failed(what, path string, err error) *diag.Error {
	e := diag.New(diag.External, diag.Pos{}, "table %s: %s %s", c.t.Name, what, path).Wrap(err)
	switch {
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EDQUOT):
		return e.WithHint("free some room there; the job goes on from its newest checkpoint")
	case errors.Is(err, os.ErrPermission), errors.Is(err, unix.EROFS):
		return e.WithHint("let this user write there, or set 'path' to a directory where it may")
	case errors.Is(err, os.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return e.WithHint("set 'path' to a directory that can be made; a relative path starts at the working directory of the process")
	}
	return e
}

// Preflight implements connectors.Sink: the path must be a directory, or free for one.
func (s *sink) Preflight(context.Context) error {
	for p := filepath.Clean(s.path); ; p = filepath.Dir(p) {
		info, err := os.Stat(p)
		switch {
		case err == nil && !info.IsDir():
			// Waiting does not make it one, so the job must not restart over it.
			return diag.New(diag.Config, s.v.Pos("path"), "table %s: %s is not a directory", s.t.Name, p).
				WithHint("set 'path' to a directory: a table is written as several files")
		case err == nil:
			if err := unix.Access(p, unix.W_OK|unix.X_OK); err != nil {
				return s.failed("writing into directory", p, err).WithHint("give the user of this process the right to write there, or set 'path' to another directory")
			}
			return nil
		case !os.IsNotExist(err):
			return s.failed("reading", p, err)
		case p == filepath.Dir(p):
			return s.failed("reading", p, err)
		}
	}
}

// Committer implements connectors.Sink.
func (s *sink) Committer(context.Context) (checkpoint.Committer, error) {
	return &committer{sink: s, aborted: map[string]bool{}}, nil
}

// Open implements connectors.Sink.
func (s *sink) Open(_ context.Context, subtask int) (connectors.Writer, error) {
	if err := s.makeDir(""); err != nil {
		return nil, err
	}
	enc, err := s.fm.Value.NewEncoder(s.enc)
	if err != nil {
		return nil, err
	}
	return &writer{s: s, subtask: subtask, enc: enc, open: map[string]*openPart{}}, nil
}

// Close implements connectors.Sink.
func (s *sink) Close() error { return nil }

// makeDir makes the directory dir below the table's path, durably. One that is there is made durable once: a process that
// was killed may have made it.
func (s *sink) makeDir(dir string) error {
	full := filepath.Join(s.path, dir)
	if _, known := s.dirs.Load(dir); known {
		if _, err := s.fs.Stat(full); err == nil {
			return nil
		}
	}
	if err := checkpoint.EnsureDir(s.fs, full, 0o777); err != nil {
		return s.failed("making directory", full, err)
	}
	s.dirs.Store(dir, true)
	return nil
}
