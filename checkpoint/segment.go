package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// A segment is an immutable file of the rows that changed between two barriers, in no order: a checkpoint of state that is
// in memory lists the segments to be read one after the other, and a row is what the last of them says.
//
//	"streamsql-state 1\n", padded to 32 bytes with spaces
//	blocks: table id, rows, bytes (4 bytes each, little endian), 4 bytes 0, then the rows
//	a row:  hash (8 bytes), key bytes<<1 | deleted, value bytes (4 bytes each), in tables with a TTL the stamp (8 bytes), key, value
//
// The block of table 0 is the catalog; it comes before rows of tables that it is the first to list. Blocks are about
// segmentBlock bytes, so that a reader passes over those of other tables without reading them. The checksum of the whole
// file is in the manifest. Segments of neighbouring barriers are joined by appending the blocks of one to the other's.
const (
	segmentMagic  = "streamsql-state 1\n             \n"
	segmentHead   = 16 // bytes before a block
	segmentRow    = 16 // bytes before a row's stamp or key
	segmentBlock  = 1 << 20
	segmentSuffix = ".seg"
)

// segment is a finished file of the sets first to last.
type segment struct {
	first, last uint64
	name, path  string
	size        int64
	crc         uint32
	loose       bool // not durable yet: it was written early
}

func segmentName(first, last uint64) string {
	return fmt.Sprintf("%06d-%06d%s", first, last, segmentSuffix)
}

// parseSegmentName is the inverse of segmentName.
func parseSegmentName(name string) (first, last uint64, ok bool) {
	n, err := fmt.Sscanf(name, "%d-%d"+segmentSuffix, &first, &last)
	return first, last, n == 2 && err == nil && name == segmentName(first, last)
}

// segmentWriter writes a segment.
type segmentWriter struct {
	f    vfs.File
	crc  uint32
	size int64
	buf  []byte // the block being made, with its head
	id   uint16
	rows uint32
}

func newSegmentWriter(fs vfs.FS, path string) (*segmentWriter, error) {
	f, err := fs.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return nil, err
	}
	w := &segmentWriter{f: f}
	if err := w.write([]byte(segmentMagic)); err != nil {
		return nil, errors.Join(err, f.Close(), fs.Remove(path))
	}
	return w, nil
}

func (w *segmentWriter) write(p []byte) error {
	w.crc = crc32.Update(w.crc, castagnoli, p)
	w.size += int64(len(p))
	_, err := w.f.Write(p)
	return err
}

// putHead fills in the head of a block.
func putHead(block []byte, id uint16, rows uint32) {
	binary.LittleEndian.PutUint32(block, uint32(id))
	binary.LittleEndian.PutUint32(block[4:], rows)
	binary.LittleEndian.PutUint32(block[8:], uint32(len(block)-segmentHead))
	binary.LittleEndian.PutUint32(block[12:], 0)
}

// block writes a block that is complete but for its head, for which it has room.
func (w *segmentWriter) block(id uint16, rows uint32, block []byte) error {
	putHead(block, id, rows)
	return w.write(block)
}

// catalog writes the list of tables.
func (w *segmentWriter) catalog(data []byte) error {
	return w.block(0, 0, append(make([]byte, segmentHead), data...))
}

// row adds a row of table id.
func (w *segmentWriter) row(t *table, loc uint32, deleted bool) error {
	if t.id != w.id || len(w.buf) >= segmentBlock {
		if err := w.flush(); err != nil {
			return err
		}
		w.id = t.id
	}
	w.buf = t.appendRecord(w.buf, loc, deleted)
	w.rows++
	return nil
}

// flush writes the block that row makes.
func (w *segmentWriter) flush() error {
	var err error
	if w.rows > 0 {
		err = w.block(w.id, w.rows, w.buf)
	}
	if w.buf == nil {
		w.buf = make([]byte, segmentHead, segmentBlock+segmentBlock/4)
	}
	w.buf, w.rows = w.buf[:segmentHead], 0
	return err
}

// finish ends the file and, unless it is loose, makes it durable; its name still has to be.
func (w *segmentWriter) finish(loose bool) error {
	err := w.flush()
	if err == nil && !loose {
		err = w.f.Sync()
	}
	return errors.Join(err, w.f.Close())
}

// recordSize is how many bytes a segment has of the row at loc.
func (t *table) recordSize(loc uint32, deleted bool) int {
	h := t.a.head(loc)
	n := segmentRow + t.head - rowHeadSize + int(h.klen)
	if !deleted {
		n += int(h.vlen)
	}
	return n
}

// appendRecord appends the row at loc. It looks at no flags.
func (t *table) appendRecord(dst []byte, loc uint32, deleted bool) []byte {
	h := t.a.head(loc)
	k, v := h.klen<<1, h.vlen
	if deleted {
		k, v = k|1, 0
	}
	dst = binary.LittleEndian.AppendUint64(dst, h.hash)
	dst = binary.LittleEndian.AppendUint32(dst, k)
	dst = binary.LittleEndian.AppendUint32(dst, v)
	if t.ttl {
		dst = binary.LittleEndian.AppendUint64(dst, uint64(*t.rowStamp(loc)))
	}
	dst = append(dst, t.rowKey(loc)...)
	if deleted {
		return dst
	}
	return append(dst, t.rowValue(loc)...)
}

// record is a row read from a segment.
type record struct {
	hash       uint64
	deleted    bool
	stamp      int64
	key, value []byte
}

// takeRecord takes the first record of p.
func takeRecord(p []byte, stamped bool) (r record, rest []byte, ok bool) {
	if len(p) < segmentRow {
		return r, nil, false
	}
	r.hash = binary.LittleEndian.Uint64(p)
	k, v := binary.LittleEndian.Uint32(p[8:]), int(binary.LittleEndian.Uint32(p[12:]))
	p = p[segmentRow:]
	if stamped {
		if len(p) < 8 {
			return r, nil, false
		}
		r.stamp = int64(binary.LittleEndian.Uint64(p))
		p = p[8:]
	}
	n := int(k >> 1)
	if n > len(p) || v > len(p)-n {
		return r, nil, false
	}
	r.deleted, r.key, r.value = k&1 != 0, p[:n], p[n:n+v]
	return r, p[n+v:], true
}

// segmentReader reads the blocks of a segment.
type segmentReader struct {
	f         vfs.File
	name      string
	off, size int64
	head      [segmentHead]byte
	buf       []byte
}

func openSegment(fs vfs.FS, s segment) (*segmentReader, error) {
	f, err := fs.Open(s.path, vfs.SequentialReadsOption)
	if err != nil {
		return nil, err
	}
	r := &segmentReader{f: f, name: s.name, size: s.size, off: int64(len(segmentMagic)), buf: make([]byte, len(segmentMagic))}
	if err = r.read(r.buf, 0); err == nil && string(r.buf) != segmentMagic {
		err = r.damaged("begins with %.32q", r.buf)
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return r, nil
}

func (r *segmentReader) damaged(format string, args ...any) error {
	return fmt.Errorf("state segment %s is %w: it "+format, append([]any{r.name, errDamaged}, args...)...)
}

func (r *segmentReader) read(p []byte, off int64) error {
	n, err := r.f.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = r.damaged("ends after %d bytes", off+int64(n))
	}
	return err
}

// seek finds the next block of table id: its place, bytes and rows; io.EOF when there is none.
func (r *segmentReader) seek(id uint16) (at, n int64, rows int, err error) {
	for r.off < r.size {
		if r.size-r.off < segmentHead {
			return 0, 0, 0, r.damaged("ends in the head of a block")
		}
		if err := r.read(r.head[:], r.off); err != nil {
			return 0, 0, 0, err
		}
		n = int64(binary.LittleEndian.Uint32(r.head[8:]))
		at = r.off + segmentHead
		if n > r.size-at {
			return 0, 0, 0, r.damaged("has a block of %d bytes at %d", n, r.off)
		}
		r.off = at + n
		if binary.LittleEndian.Uint32(r.head[:]) == uint32(id) {
			return at, n, int(binary.LittleEndian.Uint32(r.head[4:])), nil
		}
	}
	return 0, 0, 0, io.EOF
}

// next is the next block of table id; io.EOF when there is none. The block is valid until the next call.
func (r *segmentReader) next(id uint16) (block []byte, rows int, err error) {
	at, n, rows, err := r.seek(id)
	if err != nil {
		return nil, 0, err
	}
	if int64(cap(r.buf)) < n {
		r.buf = make([]byte, n+n/4)
	}
	r.buf = r.buf[:n]
	return r.buf, rows, r.read(r.buf, at)
}

// rowsIn is how many rows of table id the segment has by the heads of its blocks, which is all that is read.
func rowsIn(fs vfs.FS, s segment, id uint16) (rows int, err error) {
	r, err := openSegment(fs, s)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		_, n, k, err := r.seek(id)
		if errors.Is(err, io.EOF) {
			return rows, nil
		}
		if err != nil {
			return 0, err
		}
		rows += min(k, int(n/segmentRow))
	}
}

func (r *segmentReader) close() error { return r.f.Close() }
