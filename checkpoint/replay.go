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
	for _, seg := range s.segments {
		err := eachBlock(b.fs, seg, e.ID, func(block []byte, _ int) error {
			t.now = b.now()
			// Not begin: a row that has expired may have a newer version in the blocks to come, so that none may be swept yet.
			if err := t.makeRoom(); err != nil {
				return err
			}
			return t.replayBlock(block, e.Stamped, b.adopted == s && b.db == nil)
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

// replayBlock applies the rows of a block. clean: they are in a segment that the next checkpoint lists.
func (t *table) replayBlock(block []byte, stamped, clean bool) error {
	for len(block) > 0 {
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
		loc, found, err := t.onDiskToo(r.hash, r.key)
		if err != nil {
			return err
		}
		if r.deleted {
			t.replayDelete(loc, found, clean)
			continue
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
	}
	return nil
}

// replayRow gives the row, which is at loc if found, the value of r, and returns where it is then.
func (t *table) replayRow(r record, loc uint32, found bool) (uint32, error) {
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
