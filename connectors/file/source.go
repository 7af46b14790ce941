package file

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
)

type source struct {
	*config
	spec connectors.SourceSpec
	fs   vfs.FS
	dec  format.DecodeSpec
	// extra are the columns that come from the path and not from the file's contents.
	extra []extraColumn
}

// extraColumn is a partition column (key ≥ 0) or a metadata column.
type extraColumn struct {
	col  int // in the builder
	key  int
	meta string
}

func newSource(spec connectors.SourceSpec) (*source, error) {
	c, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	s := &source{config: c, spec: spec, fs: disk()}
	s.dec = format.DecodeSpec{Schema: c.body, Options: c.v.Sub(c.fm.ValuePrefix), Table: spec.Table.Name, Session: spec.Session}
	for i, at := range spec.Columns {
		col := spec.Table.Columns[at]
		key := slices.Index(spec.Table.Partitions, col.Name)
		switch {
		case col.Kind == catalog.Metadata:
			s.extra = append(s.extra, extraColumn{col: i, key: -1, meta: col.Key})
		case key >= 0:
			s.extra = append(s.extra, extraColumn{col: i, key: key})
		default:
			s.dec.Targets = append(s.dec.Targets, format.Target{Field: c.body.Index(col.Name), Path: spec.Path(i), Col: i})
		}
	}
	return s, nil
}

// hidden reports files and directories that do not belong to the table: those being written, and markers.
func hidden(name string) bool { return name[0] == '.' || name[0] == '_' }

// Splits implements connectors.Source: the table's files, as paths.
func (s *source) Splits(ctx context.Context) ([]checkpoint.Split, error) {
	info, err := os.Stat(s.path)
	if err != nil {
		return nil, s.external("path %s cannot be read", s.path).Wrap(err).
			WithHint("check 'path'; a relative path starts at the working directory of the process")
	}
	if !info.IsDir() {
		return []checkpoint.Split{checkpoint.Split(s.path)}, nil
	}
	var out []checkpoint.Split
	err = filepath.WalkDir(s.path, func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) && p != s.path:
			return nil // renamed or removed while we look
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case p == s.path:
			return nil
		case hidden(d.Name()):
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		case d.IsDir():
			return nil
		}
		ok, err := s.wanted(p)
		if ok {
			out = append(out, checkpoint.Split(p))
		}
		return err
	})
	if err != nil {
		return nil, s.external("path %s cannot be listed", s.path).Wrap(err)
	}
	return out, nil
}

func (s *source) wanted(p string) (bool, error) {
	if s.pattern != nil {
		abs, err := filepath.Abs(p)
		if err != nil {
			return false, err
		}
		if !s.pattern.MatchString(filepath.ToSlash(abs)) {
			return false, nil
		}
	}
	_, ok, err := s.partitionOf(s.relative(p))
	return ok, err
}

func (s *source) relative(p string) string {
	rel, err := filepath.Rel(s.path, p)
	if err != nil {
		return p
	}
	return rel
}

func (s *source) external(text string, args ...any) *diag.Error {
	e := diag.New(diag.External, diag.Pos{}, text, args...)
	e.Message = "table " + s.t.Name + ": " + e.Message
	return e
}

// Open implements connectors.Source.
func (s *source) Open(ctx context.Context, ps []checkpoint.Position) (connectors.Reader, error) {
	d, err := s.fm.Value.NewDecoder(s.dec)
	if err != nil {
		return nil, err
	}
	r := &reader{s: s, dec: d}
	if st, ok := d.(format.Stats); ok {
		r.stats = st
	}
	for _, p := range ps {
		if err := r.Add(ctx, p); err != nil {
			return nil, errors.Join(err, r.Close())
		}
	}
	return r, nil
}

// DiscoveryInterval implements connectors.Source.
func (s *source) DiscoveryInterval() int64 { return s.monitor }

// Committed implements connectors.Source.
func (s *source) Committed(context.Context, []checkpoint.Position) {}

// Close implements connectors.Source.
func (s *source) Close() error { return nil }
