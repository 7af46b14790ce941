package file

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// reader reads its files one after the other.
type reader struct {
	s     *source
	dec   format.Decoder
	stats format.Stats // nil = the decoder counts nothing
	files []*file
	msgs  [][]byte
	told  int64 // skipped lines, for the log
}

// file is a split being read.
type file struct {
	name checkpoint.Split
	f    vfs.File // nil until its turn
	pos  position
	last []byte // the last min(offset, tailLen) bytes before the offset
	// data are the bytes read from the offset on that are not consumed; a fresh buffer per read, since strings alias it.
	data []byte
	eof  bool
	// quiet is when a last line without its end was first seen.
	quiet     time.Time
	partition []types.Datum
	info      os.FileInfo
}

const (
	chunk = 256 << 10
	// maxLine bounds the memory a file without line ends can take.
	maxLine = 256 << 20
	// settle is how long an unfinished last line must stay as it is in a monitored directory before it counts as the
	// last record.
	settle   = time.Second
	patience = 5 * time.Millisecond
)

// Add implements connectors.Reader.
func (r *reader) Add(_ context.Context, p checkpoint.Position) error {
	f := &file{name: p.Split}
	var err error
	if f.info, err = r.s.fs.Stat(string(p.Split)); err != nil {
		if errors.Is(err, os.ErrNotExist) && p.Next == nil && r.s.monitor > 0 {
			return nil // found, and removed before anything was read
		}
		return r.s.external("file %s cannot be read", p.Split).Wrap(err).WithHint("a file must stay until the table has been read")
	}
	f.pos.size = f.info.Size()
	if p.Next != nil {
		if err := r.resume(f, p.Next); err != nil {
			return err
		}
	}
	var ok bool
	if f.partition, ok, err = r.s.partitionOf(r.s.relative(string(p.Split))); err != nil || !ok && r.s.path != string(p.Split) {
		return r.s.external("file %s is in no partition of the table", p.Split).Wrap(err)
	}
	for len(f.partition) < len(r.s.keys) {
		f.partition = append(f.partition, types.NullDatum)
	}
	r.files = append(r.files, f)
	return nil
}

// resume checks that the file is still the one the position was taken in.
func (r *reader) resume(f *file, next []byte) error {
	old, err := decodePosition(next)
	if err != nil {
		return diag.New(diag.Internal, diag.Pos{}, "table %s: file %s", r.s.t.Name, f.name).Wrap(err)
	}
	now := f.pos
	f.pos = old
	if now.size < old.offset || now.size < old.size {
		return r.changed(f, fmt.Sprintf("it had %d bytes at the checkpoint and has %d now", old.size, now.size))
	}
	if r.s.monitor > 0 {
		f.pos.size = now.size
	}
	if err := r.openFile(f); err != nil {
		return err
	}
	f.last = make([]byte, min(old.offset, tailLen))
	if _, err := f.f.ReadAt(f.last, old.offset-int64(len(f.last))); err != nil {
		return r.s.external("file %s cannot be read", f.name).Wrap(err)
	}
	if crc32.Checksum(f.last, castagnoli) != old.tail {
		return r.changed(f, fmt.Sprintf("the bytes before offset %d differ from those at the checkpoint", old.offset))
	}
	return nil
}

func (r *reader) changed(f *file, why string) error {
	return r.s.external("file %s changed while the table was read", f.name).WithDetail("%s", why).
		WithHint("put the old file back, or start the job without its checkpoint; files may only be added")
}

func (r *reader) openFile(f *file) (err error) {
	if f.f != nil {
		return nil
	}
	if f.f, err = r.s.fs.Open(string(f.name)); err != nil {
		return r.s.external("file %s cannot be opened", f.name).Wrap(err)
	}
	return nil
}

// Positions implements connectors.Positioner: the size at the start is part of the position.
func (r *reader) Positions() []checkpoint.Position {
	var out []checkpoint.Position
	for _, f := range r.files {
		out = append(out, checkpoint.Position{Split: f.name, Next: f.pos.encode()})
	}
	return out
}

// Next implements connectors.Reader.
func (r *reader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	if len(r.files) == 0 {
		return connectors.Progress{}, io.EOF
	}
	if err := ctx.Err(); err != nil {
		return connectors.Progress{}, err
	}
	f := r.files[0]
	p, err := r.read(f, out)
	p.Split = f.name
	if err != nil {
		return p, err
	}
	if p.Done {
		r.files = r.files[1:]
		return p, f.close()
	}
	if p.Records == 0 && len(r.files) > 1 {
		r.files = append(r.files[1:], f) // it waits for the rest of its last line: others go on
	}
	if p.Records == 0 {
		select {
		case <-ctx.Done():
			return p, ctx.Err()
		case <-time.After(patience):
		}
	}
	return p, nil
}

func (f *file) close() error {
	if f.f == nil {
		return nil
	}
	err := f.f.Close()
	f.f = nil
	return err
}

// Close implements connectors.Reader.
func (r *reader) Close() error {
	var err error
	for _, f := range r.files {
		err = errors.Join(err, f.close())
	}
	r.files = nil
	return err
}

// byteOrderMark is what some programs write at the beginning of a file of text, and no part of it.
var byteOrderMark = []byte("\ufeff")

// read decodes the next lines of f, at most a batch.
func (r *reader) read(f *file, out *batch.Builder) (p connectors.Progress, err error) {
	if err := r.openFile(f); err != nil {
		return p, err
	}
	ends, err := r.lines(f)
	if err != nil {
		return p, err
	}
	if ends == 0 {
		if !f.eof || len(f.data) > 0 {
			return p, nil
		}
		p.Done, p.Position = true, f.pos.encode()
		return p, nil
	}
	if f.pos.offset == 0 && r.s.fm.Value.Name != "raw" {
		r.msgs[0] = bytes.TrimPrefix(r.msgs[0], byteOrderMark)
	}
	if r.s.header && f.pos.offset == 0 {
		n, err := r.skipHeader(f)
		if err != nil {
			return p, err
		}
		ends -= n
		p.Bytes = int64(n)
	}
	skipped := int64(0)
	if r.stats != nil {
		skipped = r.stats.Skipped()
	}
	p.Records = len(r.msgs)
	if p.Skipped, err = r.decode(f, out); err != nil {
		return p, err
	}
	if r.stats != nil {
		p.Skipped += int(r.stats.Skipped() - skipped)
	}
	f.consume(ends, len(r.msgs))
	p.Bytes += int64(ends)
	p.Position = f.pos.encode()
	p.Lag = -1
	return p, nil
}

// lines fills r.msgs with complete lines and returns the bytes they take with their ends.
func (r *reader) lines(f *file) (int, error) {
	r.msgs = r.msgs[:0]
	for {
		at := 0
		for len(r.msgs) < batch.Size {
			n := bytes.IndexByte(f.data[at:], '\n')
			if n < 0 {
				break
			}
			r.msgs = append(r.msgs, line(f.data[at:at+n]))
			at += n + 1
		}
		if at > 0 {
			return at, nil
		}
		if f.eof {
			return r.lastLine(f)
		}
		if err := r.fill(f); err != nil {
			return 0, err
		}
	}
}

func line(b []byte) []byte {
	if n := len(b); n > 0 && b[n-1] == '\r' {
		b = b[:n-1]
	}
	return b[:len(b):len(b)]
}

// lastLine takes a line without its end: at once when the table ends with the bytes its files had at the start, after it
// has settled when the directory is monitored, since somebody may still be writing it.
func (r *reader) lastLine(f *file) (int, error) {
	info, err := f.f.Stat()
	if err != nil {
		return 0, r.s.external("file %s cannot be read", f.name).Wrap(err)
	}
	read := f.pos.offset + int64(len(f.data))
	switch {
	case info.Size() < read:
		return 0, r.changed(f, fmt.Sprintf("%d bytes were read, it has %d now", read, info.Size()))
	case r.s.monitor > 0 && info.Size() > read:
		f.eof, f.quiet, f.pos.size = false, time.Time{}, info.Size()
		return 0, nil
	case len(f.data) == 0:
		return 0, nil
	case info.Size() > read:
		return 0, r.changed(f, fmt.Sprintf("its last line was incomplete when it was opened with %d bytes, and it has %d now", f.pos.size, info.Size()))
	case r.s.monitor > 0:
		if f.quiet.IsZero() {
			f.quiet = time.Now()
		}
		if time.Since(f.quiet) < settle {
			return 0, nil
		}
	}
	r.msgs = append(r.msgs, line(f.data))
	return len(f.data), nil
}

// fill reads more bytes behind data, into a new buffer.
func (r *reader) fill(f *file) error {
	if len(f.data) >= maxLine {
		return r.dataError(f, f.pos.record, f.pos.offset, fmt.Sprintf("longer than %d bytes", maxLine))
	}
	buf := make([]byte, len(f.data)+max(chunk, len(f.data)))
	n := copy(buf, f.data)
	room := buf[n:]
	from := f.pos.offset + int64(n)
	if left := f.pos.size - from; r.s.monitor == 0 && left <= int64(len(room)) {
		room = room[:max(left, 0)]
		f.eof = true
	}
	m, err := f.f.ReadAt(room, from)
	f.data = buf[:n+m]
	switch {
	case errors.Is(err, io.EOF) && m < len(room) && r.s.monitor == 0:
		return r.changed(f, fmt.Sprintf("it had %d bytes when it was opened and has %d now", f.pos.size, from+int64(m)))
	case errors.Is(err, io.EOF):
		f.eof = true
	case err != nil:
		return r.s.external("file %s cannot be read", f.name).Wrap(err)
	}
	return nil
}

// consume moves the position behind n bytes and records lines.
func (f *file) consume(n, records int) {
	used := f.data[:n]
	if n >= tailLen {
		f.last = append(f.last[:0], used[n-tailLen:]...)
	} else {
		if over := len(f.last) + n - tailLen; over > 0 {
			f.last = append(f.last[:0], f.last[over:]...)
		}
		f.last = append(f.last, used...)
	}
	f.data = f.data[n:]
	f.pos.offset += int64(n)
	f.pos.record += int64(records)
	f.pos.tail = crc32.Checksum(f.last, castagnoli)
}

// decode turns r.msgs into rows, applying scan.on-error, and returns the number of lines skipped by it.
func (r *reader) decode(f *file, out *batch.Builder) (skipped int, err error) {
	row := func(_ int, k types.RowKind) {
		for _, x := range r.s.extra {
			col := out.Cols[x.col]
			switch {
			case x.key >= 0:
				col.AppendDatum(f.partition[x.key])
			case x.meta == "file.path":
				col.AppendStr(string(f.name))
			case x.meta == "file.name":
				col.AppendStr(filepath.Base(string(f.name)))
			case x.meta == "file.size":
				col.AppendI64(f.info.Size())
			default:
				col.AppendI64(f.info.ModTime().UnixMilli() * 1000)
			}
		}
		out.RowKindDone(k)
	}
	for from := 0; from < len(r.msgs); {
		n, err := r.dec.Decode(r.msgs[from:], out, row)
		if err == nil {
			return skipped, nil
		}
		var rec *format.BadRecord
		at := f.pos.offset + f.lineStart(from+n)
		if !errors.As(err, &rec) {
			return skipped, r.dataError(f, f.pos.record+int64(from+n), at, err.Error())
		}
		if r.s.v.Enum("scan.on-error") != "skip" {
			return skipped, r.dataError(f, f.pos.record+int64(from+n), at, rec.Error())
		}
		skipped++
		r.told++
		if log := r.s.spec.Job.Log; log != nil && r.told&(r.told-1) == 0 { // 1, 2, 4, 8, …: a flood takes few lines
			log.Warn("line cannot be decoded and is skipped", "table", r.s.t.Name, "file", string(f.name), "line", f.pos.record+int64(from+n)+1, "error", rec.Error(), "total", r.told)
		}
		from += n + 1
	}
	return skipped, nil
}

// lineStart is where line n of data begins.
func (f *file) lineStart(n int) int64 {
	at := 0
	for range n {
		at += bytes.IndexByte(f.data[at:], '\n') + 1
	}
	return int64(at)
}

// fix is the advice for a line that cannot be read.
func (r *reader) fix(record int64) string {
	if record == 0 && r.s.fm.Value.Name == "csv" && !r.s.header {
		return "if the line holds the names of the columns, set '" + headerKey + "' = 'true'; else correct the file, or set 'scan.on-error' = 'skip'"
	}
	return "correct the file, or set 'scan.on-error' = 'skip'"
}

func (r *reader) dataError(f *file, record, offset int64, why string) error {
	return diag.New(diag.Data, diag.Pos{}, "table %s: file %s, line %d: %s", r.s.t.Name, f.name, record+1, why).
		WithDetail("the line starts at byte %d", offset).
		WithHint("%s", r.fix(record))
}
