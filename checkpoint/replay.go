package checkpoint

import (
	"errors"
	"io"
	"slices"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// Restoring from segments: their rows are applied in the order they were written, as changes are.

// readCatalog is the newest table list.
func readCatalog(fs vfs.FS, segments []segment) (raw []byte, err error) {
	for _, s := range slices.Backward(segments) {
		err := eachBlock(fs, s, 0, func(block []byte, _ int) error {
			raw = slices.Clone(block)
			return nil
		})
		if err != nil || raw != nil {
			return raw, err
		}
	}
	return nil, errDamaged
}

// eachBlock calls f for the blocks of table id.
func eachBlock(fs vfs.FS, s segment, id uint16, f func(block []byte, rows int) error) (err error) {
	r, err := openSegment(fs, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	for {
		block, rows, err := r.next(id)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = f(block, rows)
		}
		if err != nil {
			return err
		}
	}
}

// replay applies the owned rows of an old subtask's table. Where the backend goes on with the segments, the rows are clean;
// else they are changes that the next barrier writes. When they outgrow memory, they go to disk as any rows do.
func (t *table) replay(s *source, e *catalogEntry) error {
	b := t.b
	if err := t.expect(s, e); err != nil {
		return b.segmentError(s.from, err)
	}
	var batch replayBatch
	for _, seg := range s.segments {
		err := eachBlock(b.fs, seg, e.ID, func(block []byte, _ int) error {
			t.now = b.now()
			// Not begin: a row that has expired may have a newer version in the blocks to come, so that none may be swept yet.
			if err := t.makeRoom(); err != nil {
				return err
			}
			return t.replayBlock(&batch, block, e.Stamped, b.adopted == s && b.db == nil)
		})
		if err != nil {
			return b.segmentError(s.from, err)
		}
	}
	if b.adopted == s && b.db == nil {
		t.dirty = t.dirty[:0] // names rows that were changed by one segment after the other
	}
	return nil
}

// expect makes room in the index for the rows to come, so that it need not grow step by step: as many as the segments say, of
// which some may be versions of one row.
func (t *table) expect(s *source, e *catalogEntry) error {
	rows := 0
	for _, seg := range s.segments {
		n, err := rowsIn(t.b.fs, seg, e.ID)
		if err != nil {
			return err
		}
		rows += n
	}
	owned, all := t.b.groups.shared(s.catalog.Groups)
	if all > 0 {
		rows = int(int64(rows) * int64(owned) / int64(all))
	}
	t.x.reserve(rows)
	return nil
}

// replayRows is how many rows of a block are looked up together, so that their cache misses overlap.
const replayRows = 256

// replayBatch is room for them.
type replayBatch struct {
	rows   [replayRows]record
	hashes [replayRows]uint64
	found  [replayRows]uint64
}

// replayBlock applies the rows of a block. clean: they are in a segment that the next checkpoint lists.
func (t *table) replayBlock(batch *replayBatch, block []byte, stamped, clean bool) error {
	for len(block) > 0 {
		n := 0
		for n < replayRows && len(block) > 0 {
			r, rest, ok := takeRecord(block, stamped)
			if !ok {
				return errDamaged
			}
			block = rest
			if !t.b.groups.has(KeyGroup(r.hash)) {
				continue
			}
			if !stamped {
				r.stamp = t.now
			}
			batch.rows[n], batch.hashes[n] = r, r.hash
			n++
		}
		if err := t.replayRecords(batch, n, clean); err != nil {
			return err
		}
	}
	return nil
}

// replayRecords applies the first n rows of the batch, in their order.
func (t *table) replayRecords(batch *replayBatch, n int, clean bool) error {
	// A key without a slot does not exist, unless Pebble has rows that the index lacks.
	indexed := t.b.db == nil || t.absent == 0
	if indexed {
		t.x.match(batch.hashes[:n], batch.found[:n])
	}
	for i := range batch.rows[:n] {
		r := &batch.rows[i]
		if indexed && batch.found[i] == 0 {
			// An earlier row of the batch may have taken the slot.
			if p, ok := t.x.vacant(r.hash); ok {
				if err := t.replayNew(r, p, clean); err != nil {
					return err
				}
				continue
			}
		}
		if err := t.replayKnown(r, clean); err != nil {
			return err
		}
	}
	return nil
}

// replayNew adds the row of r, whose key is new, at slot p.
func (t *table) replayNew(r *record, p uint64, clean bool) error {
	if r.deleted {
		return nil
	}
	flags := rowRef
	if clean {
		flags |= rowDisk
	}
	loc, err := t.newRow(r.hash, r.key, len(r.value), 0, flags)
	if err != nil {
		return err
	}
	copy(t.rowValue(loc), r.value)
	t.x.putAt(p, r.hash, loc)
	t.n++
	if !clean {
		t.mark(loc)
	}
	if t.ttl {
		*t.rowStamp(loc) = r.stamp
	}
	return nil
}

// replayKnown applies r, whose key there may be a row of.
func (t *table) replayKnown(r *record, clean bool) error {
	loc, found, err := t.onDiskToo(r.hash, r.key)
	if err != nil {
		return err
	}
	if r.deleted {
		t.replayDelete(loc, found, clean)
		return nil
	}
	if loc, err = t.replayRow(r, loc, found); err != nil {
		return err
	}
	if clean {
		h := t.a.head(loc)
		h.flags = h.flags&^rowDirty | rowDisk
		t.dirtyBytes = 0
	}
	if t.ttl {
		*t.rowStamp(loc) = r.stamp
	}
	return nil
}

// replayRow gives the row, which is at loc if found, the value of r, and returns where it is then.
func (t *table) replayRow(r *record, loc uint32, found bool) (uint32, error) {
	if !found {
		loc, err := t.newRow(r.hash, r.key, len(r.value), 0, rowRef)
		if err != nil {
			return 0, err
		}
		copy(t.rowValue(loc), r.value)
		t.x.add(r.hash, loc)
		t.n++
		t.mark(loc)
		return loc, nil
	}
	if t.a.head(loc).flags&rowDeleted != 0 {
		var err error
		if loc, _, err = t.insert(r.hash, r.key, len(r.value)); err != nil {
			return 0, err
		}
	}
	t.set(loc, r.value)
	return t.resolve(Ref(loc)), t.err
}

// replayDelete deletes the row, which is at loc if found.
func (t *table) replayDelete(loc uint32, found, clean bool) {
	switch {
	case !found:
	case clean: // the deletion is in the segments
		h := t.a.head(loc)
		t.x.remove(h.hash, loc)
		t.bury(loc)
		t.n--
	default:
		t.remove(loc)
	}
}

// disown gives up going on with the segments that were restored: everything is written anew.
func (b *Backend) disown() error {
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	b.adopted, b.segments, b.catalog = nil, nil, nil
	b.noteSegments()
	if b.db != nil {
		return nil
	}
	for _, t := range b.tables {
		if t == nil {
			continue
		}
		if err := t.rewriteCold(); err != nil {
			return err
		}
		t.forgetDisk()
	}
	return nil
}
