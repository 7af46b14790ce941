package file

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// writer writes a subtask's rows, one open file per partition.
type writer struct {
	s       *sink
	subtask int
	enc     format.Encoder
	msgs    format.Messages
	open    map[string]*openPart // by directory
	closed  []*openPart          // complete, not pre-committed yet
	seq     int                  // names files in progress
	groups  map[string][]int32
	dir     []byte
}

const (
	flushAt = 256 << 10
	// maxOpen bounds the files a subtask holds open when rows go to many partitions.
	maxOpen = 256
)

// openPart is a file being written.
type openPart struct {
	part
	f      vfs.File
	path   string // its present name
	buf    []byte
	born   time.Time
	lastID int // of the write that used it last, to choose which to close
}

// Write implements connectors.Writer.
func (w *writer) Write(_ context.Context, b *batch.Batch) error {
	if len(w.s.keys) == 0 {
		return w.writeTo("", b)
	}
	// Rows are grouped by directory; the group of the row before is the likely one.
	if w.groups == nil {
		w.groups = map[string][]int32{}
	}
	var order []string
	last, rows := "", []int32(nil)
	for i := range b.Len() {
		r := b.Row(i)
		w.dir = w.s.appendDir(w.dir[:0], b, w.s.keyCols, r)
		if string(w.dir) != last || i == 0 {
			if i > 0 {
				w.groups[last] = rows
			}
			last = string(w.dir)
			rows = w.groups[last]
			if len(rows) == 0 {
				order = append(order, last)
			}
		}
		rows = append(rows, int32(r))
	}
	if b.Len() > 0 {
		w.groups[last] = rows
	}
	for _, dir := range order {
		part := batch.Batch{N: b.N, Sel: w.groups[dir], Kinds: b.Kinds, Cols: b.Cols}
		if err := w.writeTo(dir, &part); err != nil {
			return err
		}
	}
	clear(w.groups)
	return nil
}

func (w *writer) writeTo(dir string, b *batch.Batch) error {
	w.msgs.Reset()
	if err := w.enc.Encode(b, &w.msgs); err != nil {
		return diag.New(diag.Data, diag.Pos{}, "table %s: a row cannot be written", w.s.t.Name).Wrap(err)
	}
	p, err := w.partFor(dir)
	if err != nil {
		return err
	}
	for i := range w.msgs.Len() {
		m := w.msgs.At(i)
		if m == nil {
			return diag.New(diag.Data, diag.Pos{}, "table %s: a row cannot be written: column %s is NULL, which format '%s' cannot hold in a file",
				w.s.t.Name, w.s.body.Columns[0].Name, w.s.fm.Value.Name).WithHint("filter NULL out, or use format 'json' or 'csv'")
		}
		if p == nil {
			if p, err = w.partFor(dir); err != nil {
				return err
			}
		}
		p.buf = append(append(p.buf, m...), '\n')
		p.rows++
		if p.size+int64(len(p.buf)) >= w.s.rollSize {
			if err := w.roll(dir, p); err != nil {
				return err
			}
			p = nil
		} else if len(p.buf) >= flushAt {
			if err := w.flush(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// partFor is the open file of dir, a new one when there is none or it is too old.
func (w *writer) partFor(dir string) (*openPart, error) {
	w.seq++
	if p := w.open[dir]; p != nil {
		if time.Since(p.born).Milliseconds() < w.s.rollAge {
			p.lastID = w.seq
			return p, nil
		}
		if err := w.roll(dir, p); err != nil {
			return nil, err
		}
	}
	if len(w.open) >= maxOpen {
		if err := w.rollOldest(); err != nil {
			return nil, err
		}
	}
	if err := w.s.makeDir(dir); err != nil {
		return nil, err
	}
	job := w.s.spec.Job
	p := &openPart{part: part{dir: dir, lineage: job.Lineage}, born: time.Now(), lastID: w.seq}
	if w.s.header {
		p.buf = w.s.headerLine()
	}
	name := fmt.Sprintf(".%s%d-%d-%d%s%s", prefix(job.Lineage, w.s.spec.ID), job.Fence, w.subtask, w.seq, progressMark, job.Lineage)
	p.path = filepath.Join(w.s.path, dir, name)
	var err error
	if p.f, err = createNew(w.s.fs, p.path); err != nil {
		return nil, w.s.failed("making file", p.path, err)
	}
	w.open[dir] = p
	return p, nil
}

func (w *writer) rollOldest() error {
	var dir string
	var old *openPart
	for d, p := range w.open {
		if old == nil || p.lastID < old.lastID {
			dir, old = d, p
		}
	}
	return w.roll(dir, old)
}

func (w *writer) flush(p *openPart) error {
	p.crc, p.size = crc32.Update(p.crc, castagnoli, p.buf), p.size+int64(len(p.buf))
	if _, err := p.f.Write(p.buf); err != nil {
		return w.s.failed("writing", p.path, err)
	}
	p.buf = p.buf[:0]
	return nil
}

// roll completes a file: written, synced and closed. It is not retried: after a failed sync the contents are unknown,
// so the attempt fails and the rows are produced again.
func (w *writer) roll(dir string, p *openPart) error {
	delete(w.open, dir)
	err := w.flush(p)
	if err == nil {
		if err = p.f.Sync(); err != nil {
			err = w.s.failed("syncing", p.path, err)
		}
	}
	if cerr := p.f.Close(); err == nil && cerr != nil {
		err = w.s.failed("closing", p.path, cerr)
	}
	p.f, p.buf = nil, nil
	w.closed = append(w.closed, p)
	return err
}

// PreCommit implements connectors.Writer: all files so far are closed, synced and listed.
func (w *writer) PreCommit(_ context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	var dirs []string
	for dir := range w.open {
		dirs = append(dirs, dir)
	}
	slices.Sort(dirs)
	for _, dir := range dirs {
		if err := w.roll(dir, w.open[dir]); err != nil {
			return nil, err
		}
	}
	if err := checkpoint.Failpoint("file.precommit.synced"); err != nil {
		return nil, err
	}
	job := w.s.spec.Job
	var out []checkpoint.Committable
	var touched []string
	for n, p := range w.closed {
		p.final = fmt.Sprintf("%s%d-%d-%d-%d", prefix(job.Lineage, w.s.spec.ID), job.Fence, w.subtask, id, n)
		full := filepath.Join(w.s.path, p.dir, p.pending())
		if err := w.s.fs.Rename(p.path, full); err != nil {
			return nil, w.s.failed("renaming", p.path, err)
		}
		p.path = full
		if !slices.Contains(touched, p.dir) {
			touched = append(touched, p.dir)
		}
		out = append(out, checkpoint.Committable{Sink: w.s.spec.ID, Checkpoint: id, Subtask: w.subtask, Lineage: job.Lineage,
			Payload: p.encode(), CreatedAt: time.Now()})
	}
	for _, dir := range touched {
		if err := syncDir(w.s.fs, filepath.Join(w.s.path, dir)); err != nil {
			return nil, w.s.failed("syncing directory", dir, err)
		}
	}
	w.closed = nil
	return out, checkpoint.Failpoint("file.precommit.renamed")
}

// Committed implements connectors.Writer.
func (w *writer) Committed(context.Context, checkpoint.ID) error { return nil }

// Close implements connectors.Writer. Files that no checkpoint lists are removed: their rows will be produced again.
func (w *writer) Close() error {
	var errs []error
	for _, p := range w.open {
		errs = append(errs, p.f.Close(), w.s.fs.Remove(p.path))
	}
	for _, p := range w.closed {
		errs = append(errs, w.s.fs.Remove(p.path))
	}
	w.open, w.closed = map[string]*openPart{}, nil
	for i, err := range errs {
		if errors.Is(err, os.ErrNotExist) {
			errs[i] = nil // aborted by a newer incarnation of the job
		}
	}
	return errors.Join(errs...)
}
