package checkpoint

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/sql/diag"
)

// While the index of all rows of a backend is in memory, nobody reads its files but a restore. Pebble is not opened then: a barrier
// writes one segment of the rows that changed, and a checkpoint is the list of segments. What keeps the list small:
//
//	join     neighbours of little size are appended to each other, when there are many
//	rebase   when most of what the segments hold is out of date, the rows are written again, a part at each barrier; then
//	         the segments from before are of no use
//
// When the index outgrows memory, toPebble ends this: from then on rows are in Pebble, as described in seal.go.

// segmentLimits say when segments are joined and rebased; constants but in tests.
type segmentLimits struct {
	files   int   // join when there are more
	join    int   // as many neighbours
	garbage int64 // rebase when segments have so many bytes more than twice the rows
	rebase  int64 // rows of so many bytes are written again at a barrier, at least
	noCold  bool  // rows that outgrow memory go to Pebble at once
}

var defaultSegmentLimits = segmentLimits{files: 64, join: 16, garbage: 32 << 20, rebase: 8 << 20}

// rebase is a walk over the rows of all tables under way.
type rebase struct {
	running bool
	from    uint64 // the first set written since it began
	table   int
	chunk   int
	// again is how many bytes of rows came, or may have come, since the last barrier to chunks that it has not passed.
	again int64
}

// rebaseStep marks rows to be written again at the barrier of set, which is being sealed.
func (b *Backend) rebaseStep(set *sealSet) error {
	r := &b.rebase
	live, dirty := int64(0), int64(0)
	for _, t := range b.tables {
		if t != nil {
			live, dirty = live+t.a.live+t.a.coldLive, dirty+t.dirtyBytes
		}
	}
	if !r.running {
		if b.segmentBytes.Load() <= 2*live+b.limits.garbage {
			return nil
		}
		*r = rebase{running: true, from: set.num}
	}
	budget := max(b.limits.rebase, 2*dirty) + r.again // else it would never end where more rows turn cold than it passes
	for r.again = 0; r.table < len(b.tables); r.table, r.chunk = r.table+1, 0 {
		t := b.tables[r.table]
		if t == nil {
			continue
		}
		for ; r.chunk < len(t.a.chunks); r.chunk++ {
			if budget <= 0 {
				return nil
			}
			if !t.a.chunks[r.chunk].cold {
				budget -= t.markChunk(r.chunk)
				continue
			}
			n, err := t.recordCold(r.chunk, set)
			if err != nil {
				return b.fail(err) // rows that were passed are in no segment
			}
			budget -= n
		}
	}
	*r, set.drop = rebase{}, r.from
	return nil
}

// markChunk makes the live rows of a chunk dirty and returns their bytes.
func (t *table) markChunk(i int) (n int64) {
	t.eachRow(i, func(loc uint32, h *rowHead) {
		if h.flags&(rowDead|rowMoved|rowDeleted|rowDirty) == 0 {
			t.remark(loc)
			n += int64(h.units) << unitShift
		}
	})
	return n
}

// remark makes a row dirty that has not changed.
func (t *table) remark(loc uint32) {
	h := t.a.head(loc)
	h.flags |= rowDirty
	t.dirty = append(t.dirty, loc)
	t.dirtyBytes += int64(h.units) << unitShift
}

// eachRow calls f for the rows of chunk i, live and dead.
func (t *table) eachRow(i int, f func(loc uint32, h *rowHead)) {
	c := &t.a.chunks[i]
	if c.mem == nil {
		return
	}
	for off := 0; off < c.used; {
		loc := uint32(i)<<chunkShift | uint32(off>>unitShift)
		h := t.a.head(loc)
		off += int(h.units) << unitShift
		f(loc, h)
	}
}

// writeSegment writes the set as a segment. cutMu is held.
func (b *Backend) writeSegment(set *sealSet) error {
	s := segment{first: set.num, last: set.num, name: segmentName(set.num, set.num), loose: set.early}
	s.path = b.fs.PathJoin(b.dir, s.name)
	err := b.makeSegment(&s, func(w *segmentWriter) error {
		if err := w.catalog(set.catalog); err != nil {
			return err
		}
		for i := range set.tables {
			if err := set.tables[i].writeTo(w); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	b.segments = append(b.segments, s)
	b.catalog = set.catalog
	b.segments = slices.DeleteFunc(b.segments, func(s segment) bool {
		if s.last < set.drop {
			_ = b.fs.Remove(s.path) // a leftover costs room until Close
			return true
		}
		return false
	})
	b.noteSegments()
	return nil
}

// makeSegment writes the file of s and what fill writes into it, durably unless s is loose, and fills in size and checksum.
func (b *Backend) makeSegment(s *segment, fill func(*segmentWriter) error) error {
	w, err := newSegmentWriter(b.fs, s.path)
	if err != nil {
		return err
	}
	if err = fill(w); err != nil {
		err = errors.Join(err, w.f.Close())
	} else {
		err = w.finish(s.loose)
	}
	if err != nil {
		return errors.Join(err, b.fs.Remove(s.path))
	}
	s.size, s.crc = w.size, w.crc
	return nil
}

// writeTo writes the rows of the table to a segment.
func (st *sealTable) writeTo(w *segmentWriter) error {
	if st.records != nil {
		return st.records.writeTo(w, st.t.id)
	}
	view := table{id: st.t.id, a: st.a, head: st.t.head, ttl: st.t.ttl}
	for _, loc := range st.locs {
		if err := w.row(&view, loc&^locDeleted, loc&locDeleted != 0); err != nil {
			return err
		}
	}
	return w.flush()
}

func (b *Backend) noteSegments() {
	n := int64(0)
	for _, s := range b.segments {
		n += s.size
	}
	b.segmentBytes.Store(n)
}

// linkSegments makes the directory of a checkpoint of the segments, durable. cutMu is held.
func (b *Backend) linkSegments(job *sealJob) error {
	if err := b.fs.MkdirAll(job.dir, 0o755); err != nil {
		return err
	}
	for i := range b.segments {
		s := &b.segments[i]
		if s.loose {
			// A second try would tell nothing of pages that the first could not write, and the rows may be in memory no more.
			if err := syncFile(b.fs, s.path); err != nil {
				return b.fail(b.ioError("cannot write rows to", err))
			}
			s.loose = false
		}
		if err := linkOrCopySynced(b.fs, s.path, b.fs.PathJoin(job.dir, s.name)); err != nil {
			return err
		}
		job.files = append(job.files, StateFile{Path: b.fs.PathJoin(chkName(job.id), b.name, s.name), Size: s.size, CRC32C: s.crc})
	}
	if err := syncDir(b.fs, job.dir); err != nil {
		return err
	}
	return syncDir(b.fs, b.fs.PathDir(job.dir))
}

// joinSegments appends neighbours of the least size to each other when there are many. cutMu is held.
func (b *Backend) joinSegments() error {
	if len(b.segments) <= b.limits.files {
		return nil
	}
	at, least := 0, int64(-1)
	for i := range len(b.segments) - b.limits.join + 1 {
		n := int64(0)
		for _, s := range b.segments[i : i+b.limits.join] {
			n += s.size
		}
		if least < 0 || n < least {
			at, least = i, n
		}
	}
	parts := b.segments[at : at+b.limits.join]
	s := segment{first: parts[0].first, last: parts[len(parts)-1].last}
	s.name = segmentName(s.first, s.last)
	s.path = b.fs.PathJoin(b.dir, s.name)
	err := b.makeSegment(&s, func(w *segmentWriter) error {
		for _, p := range parts {
			if err := w.appendBlocks(b.fs, p); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, p := range parts {
		_ = b.fs.Remove(p.path)
	}
	b.segments = slices.Replace(b.segments, at, at+b.limits.join, s)
	b.noteSegments()
	return nil
}

// appendBlocks copies the blocks of a segment whose checksum is right.
func (w *segmentWriter) appendBlocks(fs vfs.FS, s segment) (err error) {
	f, err := fs.Open(s.path, vfs.SequentialReadsOption)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	buf := make([]byte, 256<<10)
	size, crc := int64(0), uint32(0)
	for err == nil {
		var n int
		n, err = f.Read(buf)
		crc = crc32.Update(crc, castagnoli, buf[:n])
		magic := min(max(0, int64(len(segmentMagic))-size), int64(n))
		size += int64(n)
		if werr := w.write(buf[magic:n]); werr != nil {
			return werr
		}
	}
	if !errors.Is(err, io.EOF) {
		return err
	}
	if size != s.size || crc != s.crc {
		return fmt.Errorf("state segment %s is %w: it has %d bytes with crc32c %08x, %d with %08x were written", s.name, errDamaged, size, crc, s.size, s.crc)
	}
	return nil
}

// leaveMemory is toPebble for the subtask, beside a seal under way.
func (b *Backend) leaveMemory() error {
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	if err := b.cutNow(); err != nil {
		return err
	}
	if err := b.toPebble(); err != nil {
		return b.fail(err)
	}
	return nil
}

// toPebble brings the backend to where rows can be on disk only: everything in memory is to be written to Pebble, which is
// empty. A checkpoint under way has its segments (cutNow). cutMu is held.
func (b *Backend) toPebble() error {
	if err := b.ensureDB(); err != nil {
		return err
	}
	for _, t := range b.tables {
		if t == nil {
			continue
		}
		if err := t.coldToPebble(); err != nil {
			return err
		}
		t.forgetDisk()
	}
	if len(b.sources) == 0 { // else other tables are still to be restored from them
		for _, s := range b.segments {
			_ = b.fs.Remove(s.path)
		}
	}
	b.segments, b.catalog, b.rebase = nil, nil, rebase{}
	b.noteSegments()
	return nil
}

// forgetDisk makes all rows dirty as if none had ever been written; those deleted are gone.
func (t *table) forgetDisk() {
	t.dirty, t.dirtyBytes, t.tombs = t.dirty[:0], 0, t.tombs[:0]
	for i := range t.a.chunks {
		t.eachRow(i, func(loc uint32, h *rowHead) {
			if h.flags&(rowDead|rowMoved) != 0 {
				return
			}
			h.flags &^= rowDisk | rowDirty
			if h.flags&rowDeleted != 0 {
				t.x.remove(h.hash, loc)
				t.bury(loc)
				return
			}
			t.remark(loc)
		})
	}
}

// segmentError is the error of a segment that cannot be restored.
func (b *Backend) segmentError(from string, err error) error {
	if e := (*diag.Error)(nil); errors.As(err, &e) {
		return err
	}
	if errors.Is(err, errDamaged) {
		return errorf(diag.Data, "state files in %q cannot be restored", from).Wrap(err)
	}
	return errorf(diag.External, "state files in %q cannot be read", from).Wrap(err)
}
