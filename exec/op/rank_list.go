package op

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// listRank is the Top-N of an append-only input for a small N (Flink: AppendOnlyTopNFunction, FastTop1Function): the best
// To rows of a partition are one list, a row of one table. A mini-batch reads and writes the list of a partition once, and
// the output is the difference: a row that comes in and is pushed out within it leaves nothing. Until then rankWork has the
// rows that came; without mini-batches that is one batch.
//
// A list is its length and a byte of flags; of each entry, best first, where it ends behind these (4 bytes, little
// endian); the entries: length of the sort key (4 bytes), sort key, with listStamped when it was put (8 bytes, ms), row.
// With a TTL an entry expires by itself.
type listRank struct {
	rankCore
	work    rankWork
	lists   checkpoint.Table
	s       exec.Subtask
	codec   *rowCodec
	changes rankChanges
	part    checkpoint.Keys
	at      []checkpoint.Ref
	now     int64
	old     []listEntry
	cur     []listEntry
	sets    []listSet
	entries []listEntry // of sets
	fresh   []int32     // rows of work to be stored
	coded   encodedRows
	buf     []byte
}

// listMax is the largest N of a listRank: lists are rewritten whole.
const listMax = 64

const (
	listStamped = 1 // flag
	listHead    = 2
	listPart    = 512     // lists that are changed at a time
	listBytes   = 8 << 20 // of texts of a mini-batch, which ends then
)

var errRankState = errors.New("the state of a Top-N is damaged")

// listEntry is an entry while its list changes.
type listEntry struct {
	sort, row []byte // row: of an old one
	stamp     int64
	was       int   // place in the stored list, -1 = new
	fresh     int32 // of a new one, the row of work
	coded     int32 // and where it is in listRank.coded
}

// listSet is a list to be written, of key i of the part: entries up to end, in buf up to stored.
type listSet struct {
	i, end int
	stored int
}

// Open implements exec.Operator.
func (l *listRank) Open(s exec.Subtask) (err error) {
	if err := l.open(s); err != nil {
		return err
	}
	l.s = s
	// The only place is updated; others change by a row that goes and one that comes.
	l.shifts = l.shifts || l.spec.To == 1
	l.codec = newRowCodec(l.spec.Input)
	l.changes = newRankChanges(l.codec, &l.spec, l.out)
	l.work.open(l.spec.Input, int(l.spec.To))
	l.lists, err = s.Table(checkpoint.TableOptions{Name: "lists", Format: "ranks/1:" + slottedFormat(l.spec.Input), TTL: l.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (l *listRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 || l.spec.To < 1 {
		return nil
	}
	l.enc.Encode(b, &l.keys)
	if l.work.buffered == 0 {
		l.work.due = l.s.Now() + l.spec.Mini.Latency
	}
	l.work.add(b, &l.keys, l.order)
	if l.work.buffered >= l.spec.Mini.Size || l.work.texts >= listBytes {
		return l.settle(out)
	}
	return nil
}

// settle ends a mini-batch.
func (l *listRank) settle(out exec.Emitter) error {
	w := &l.work
	if w.buffered == 0 {
		return nil
	}
	l.next, l.now = out, l.s.Now()
	l.changes.begin(w.rows.Finish(), out)
	for from := 0; from < len(w.lists); from += listPart {
		if err := l.settlePart(from, min(from+listPart, len(w.lists))); err != nil {
			return err
		}
	}
	w.reset()
	return nil
}

// settlePart changes some lists.
func (l *listRank) settlePart(from, to int) error {
	w := &l.work
	l.part.Reset()
	for g := from; g < to; g++ {
		appendKey(&l.part, w.names.Key(g), w.names.Hashes[g])
	}
	l.at = resize(l.at, to-from)
	if err := l.lists.Probe(&l.part, l.at); err != nil {
		return err
	}
	l.sets, l.entries, l.fresh = l.sets[:0], l.entries[:0], l.fresh[:0]
	for i, ref := range l.at {
		l.old = l.old[:0]
		if ref != checkpoint.NoRow {
			if err := l.load(l.lists.Value(ref)); err != nil {
				return err
			}
		}
		if !l.merge(w.best(from + i)) {
			continue
		}
		if err := l.emitList(); err != nil {
			return err
		}
		for k := range l.cur {
			if e := &l.cur[k]; e.was < 0 {
				e.coded = int32(len(l.fresh))
				l.fresh = append(l.fresh, e.fresh)
			}
		}
		l.entries = append(l.entries, l.cur...)
		l.sets = append(l.sets, listSet{i: i, end: len(l.entries)})
	}
	// Until it is emitted, the output borrows from the lists.
	if err := l.changes.flush(); err != nil {
		return err
	}
	return l.store()
}

// load sets old to the entries of a list that have not expired.
func (l *listRank) load(list []byte) error {
	if len(list) == 0 {
		return nil
	}
	n, stamped := int(list[0]), list[1]&listStamped != 0
	start := listHead + 4*n
	at := start
	for k := range n {
		end := start + int(binary.LittleEndian.Uint32(list[listHead+4*k:]))
		size := int(binary.LittleEndian.Uint32(list[at:]))
		e := listEntry{sort: list[at+4 : at+4+size], stamp: l.now, was: len(l.old)}
		if at += 4 + size; stamped {
			e.stamp = word(list, at)
			at += 8
		}
		if at > end {
			return errRankState
		}
		e.row, at = list[at:end], end
		if l.spec.TTL == 0 || e.stamp+l.spec.TTL > l.now {
			l.old = append(l.old, e)
		}
	}
	return nil
}

// merge sets cur to the best of old and rows, which are in order. Of equal ones old is the better. It reports a change.
func (l *listRank) merge(rows []int32) bool {
	l.cur = l.cur[:0]
	some := false
	for k := 0; len(l.cur) < int(l.to) && (k < len(l.old) || len(rows) > 0); {
		if len(rows) == 0 || k < len(l.old) && bytes.Compare(l.old[k].sort, l.work.sort(rows[0])) <= 0 {
			l.cur = append(l.cur, l.old[k])
			k++
			continue
		}
		l.cur = append(l.cur, listEntry{sort: l.work.sort(rows[0]), stamp: l.now, was: -1, fresh: rows[0]})
		rows, some = rows[1:], true
	}
	return some
}

// emitList emits the difference between old and cur.
func (l *listRank) emitList() error {
	if l.shifts {
		return l.emitPlaces()
	}
	kept := 0 // the best of the old ones are still there
	for k := range l.cur {
		if l.cur[k].was >= 0 {
			kept++
		}
	}
	for k := range l.old[kept:] {
		if err := l.changes.send(&l.old[kept+k], types.Delete, 0); err != nil {
			return err
		}
	}
	for k := range l.cur {
		if e := &l.cur[k]; e.was < 0 {
			if err := l.changes.send(e, types.Insert, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// emitPlaces emits the places that have another row.
func (l *listRank) emitPlaces() error {
	for k := int(l.spec.From) - 1; k < len(l.cur); k++ {
		e, place := &l.cur[k], int64(k+1)
		if k >= len(l.old) {
			if err := l.changes.send(e, types.Insert, place); err != nil {
				return err
			}
			continue
		}
		if e.was == k {
			continue
		}
		if err := l.changes.room(2); err != nil { // the two stay in one batch
			return err
		}
		if l.spec.EmitUpdateBefore {
			l.changes.add(&l.old[k], types.UpdateBefore, place)
		}
		l.changes.add(e, types.UpdateAfter, place)
	}
	return nil
}

// store writes the lists of sets: first those are made that take entries over, as they borrow from what is stored.
func (l *listRank) store() error {
	some := *l.changes.rows
	some.Sel = l.fresh
	l.codec.encode(&some, &l.coded)
	l.buf = l.buf[:0]
	start := 0
	for k := range l.sets {
		set := &l.sets[k]
		if l.at[set.i] != checkpoint.NoRow {
			entries := l.entries[start:set.end]
			from, size := len(l.buf), l.size(entries)
			l.buf = slices.Grow(l.buf, size)[:from+size]
			l.put(l.buf[from:], entries)
		}
		start, set.stored = set.end, len(l.buf)
	}
	start, from := 0, 0
	for _, set := range l.sets {
		entries := l.entries[start:set.end]
		start = set.end
		if ref := l.at[set.i]; ref != checkpoint.NoRow {
			l.lists.Set(ref, l.buf[from:set.stored])
			from = set.stored
			continue
		}
		ref, _, err := l.lists.Insert(&l.part, set.i, l.size(entries))
		if err != nil {
			return err
		}
		l.put(l.lists.Mutable(ref), entries)
	}
	return nil
}

// row is the bytes of an entry's row.
func (l *listRank) row(e *listEntry) []byte {
	if e.was >= 0 {
		return e.row
	}
	return l.coded.row(int(e.coded))
}

// size is how large a list of entries is.
func (l *listRank) size(entries []listEntry) int {
	each := 4 + 4
	if l.spec.TTL > 0 {
		each += 8
	}
	n := listHead + each*len(entries)
	for k := range entries {
		n += len(entries[k].sort) + len(l.row(&entries[k]))
	}
	return n
}

// put writes a list of entries to dst.
func (l *listRank) put(dst []byte, entries []listEntry) {
	dst[0], dst[1] = byte(len(entries)), 0
	if l.spec.TTL > 0 {
		dst[1] = listStamped
	}
	rest := dst[listHead+4*len(entries):]
	at := 0
	for k := range entries {
		e := &entries[k]
		binary.LittleEndian.PutUint32(rest[at:], uint32(len(e.sort)))
		at += 4 + copy(rest[at+4:], e.sort)
		if l.spec.TTL > 0 {
			setWord(rest, at, e.stamp)
			at += 8
		}
		at += copy(rest[at:], l.row(e))
		binary.LittleEndian.PutUint32(dst[listHead+4*k:], uint32(at))
	}
}

// OnWatermark implements exec.Operator. Results do not depend on event time, but none stays behind a watermark.
func (l *listRank) OnWatermark(_ exec.Watermark, out exec.Emitter) error { return l.settle(out) }

// OnBarrier implements exec.Operator.
func (l *listRank) OnBarrier(b checkpoint.Barrier, out exec.Emitter) ([]byte, error) {
	if err := l.settle(out); err != nil {
		return nil, err
	}
	return l.rankCore.OnBarrier(b, out)
}

// NextTimer implements exec.ProcessingTimer.
func (l *listRank) NextTimer() (int64, bool) { return l.work.due, l.work.buffered > 0 }

// OnTimer implements exec.ProcessingTimer.
func (l *listRank) OnTimer(_ int64, out exec.Emitter) error { return l.settle(out) }
