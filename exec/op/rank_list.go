package op

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// listRank is the Top-N of an append-only input for a small N (Flink: AppendOnlyTopNFunction, FastTop1Function): the best
// To rows of a partition are one list, a row of one table. A batch reads and writes the list of a partition once, and the
// output is the difference: a row that comes in and is pushed out within the batch leaves nothing.
//
// A list is its length and a byte of flags; of each entry, best first, where it ends behind these (4 bytes, little
// endian); the entries: length of the sort key (4 bytes), sort key, with listStamped when it was put (8 bytes, ms), row.
// With a TTL an entry expires by itself.
type listRank struct {
	rankCore
	lists   checkpoint.Table
	s       exec.Subtask
	codec   *rowCodec
	changes rowChanges
	at      []checkpoint.Ref
	sorts   []byte  // sort keys of the batch
	ends    []int32 // of each, where it ends in sorts
	passed  []int32 // rows that may come in
	sel     []int32 // and where they are in the batch
	encAt   []int32 // of each row where it is in enc
	enc     encodedRows
	groups  rowGroups
	old     []listEntry
	cur     []listEntry
	now     int64
	buf     []byte
	sets    []listSet
}

// listMax is the largest N of a listRank: lists are rewritten whole.
const listMax = 64

const (
	listStamped = 1 // flag
	listHead    = 2
	listFlush   = 1 << 20 // bytes of lists to write that are gathered before they are written
)

var errRankState = errors.New("the state of a Top-N is damaged")

// listEntry is an entry while its list changes.
type listEntry struct {
	sort, row []byte
	stamp     int64
	was       int // place in the stored list, -1 = new
}

// listSet is a list to be written, of the partition of row i: buf up to end.
type listSet struct {
	i   int32
	end int
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
	l.changes = rowChanges{codec: l.codec, out: l.out, place: l.spec.Number}
	l.lists, err = s.Table(checkpoint.TableOptions{Name: "lists", Format: "ranks/1:" + slottedFormat(l.spec.Input), TTL: l.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (l *listRank) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if err := l.begin(b, out); err != nil {
		return err
	}
	l.now = l.s.Now()
	l.at = resize(l.at, l.keys.Len())
	if err := l.lists.Probe(&l.keys, l.at); err != nil {
		return err
	}
	l.pass(b)
	if len(l.passed) == 0 {
		return nil
	}
	l.groups.find(&l.keys, l.passed)
	some := *b
	some.Sel = l.sel
	l.codec.encode(&some, &l.enc)
	for _, g := range l.groups.rows {
		if err := l.change(g); err != nil {
			return err
		}
		if len(l.buf) >= listFlush {
			if err := l.settle(); err != nil {
				return err
			}
		}
	}
	return l.settle()
}

// pass makes the sort keys of the batch and finds the rows that are not worse than what a full list holds.
func (l *listRank) pass(b *batch.Batch) {
	l.sorts, l.ends, l.passed, l.sel = l.sorts[:0], l.ends[:0], l.passed[:0], l.sel[:0]
	l.encAt = resize(l.encAt, len(l.at))
	for i, ref := range l.at {
		r, start := b.Row(i), len(l.sorts)
		l.sorts = l.order.appendTo(l.sorts, b, r)
		l.ends = append(l.ends, int32(len(l.sorts)))
		if ref != checkpoint.NoRow && l.spec.TTL == 0 {
			if worst, full := l.worst(l.lists.Value(ref)); full && bytes.Compare(l.sorts[start:], worst) >= 0 {
				continue
			}
		}
		l.encAt[i] = int32(len(l.passed))
		l.passed, l.sel = append(l.passed, int32(i)), append(l.sel, int32(r))
	}
}

// worst is the sort key of the last entry of a full list.
func (l *listRank) worst(list []byte) (key []byte, full bool) {
	n := int64(0)
	if len(list) > 0 {
		n = int64(list[0])
	}
	if n < l.to || n < 1 {
		return nil, n >= l.to
	}
	at := listHead + 4*int(n)
	if n > 1 {
		at += int(binary.LittleEndian.Uint32(list[listHead+4*(n-2):]))
	}
	size := int(binary.LittleEndian.Uint32(list[at:]))
	return list[at+4 : at+4+size], true
}

// load sets old to the entries of a list that have not expired.
func (l *listRank) load(list []byte) error {
	l.old = l.old[:0]
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

// change takes the rows of a group into the list of their partition.
func (l *listRank) change(g rowGroup) error {
	var list []byte
	if ref := l.at[g.first]; ref != checkpoint.NoRow {
		list = l.lists.Value(ref)
	}
	if err := l.load(list); err != nil {
		return err
	}
	l.cur = append(l.cur[:0], l.old...)
	changed := false
	for i := g.first; i >= 0; i = l.groups.next[i] {
		changed = l.offer(i) || changed
	}
	if !changed {
		return nil
	}
	if err := l.emitList(); err != nil {
		return err
	}
	l.appendList()
	l.sets = append(l.sets, listSet{g.first, len(l.buf)})
	return nil
}

// offer puts row i into cur if it is good enough: behind those that are as good.
func (l *listRank) offer(i int32) bool {
	start := int32(0)
	if i > 0 {
		start = l.ends[i-1]
	}
	key := l.sorts[start:l.ends[i]]
	n := len(l.cur)
	at := n
	if n > 0 && bytes.Compare(key, l.cur[n-1].sort) < 0 {
		at = sort.Search(n-1, func(k int) bool { return bytes.Compare(key, l.cur[k].sort) < 0 })
	}
	if int64(at) >= l.to {
		return false
	}
	if int64(n) >= l.to {
		l.cur = l.cur[:l.to-1]
	}
	l.cur = slices.Insert(l.cur, at, listEntry{sort: key, row: l.enc.row(int(l.encAt[i])), stamp: l.now, was: -1})
	return true
}

// emitList emits the difference between old and cur.
func (l *listRank) emitList() error {
	if l.shifts {
		return l.emitPlaces()
	}
	kept := 0 // the best of the old ones are still there
	for _, e := range l.cur {
		if e.was >= 0 {
			kept++
		}
	}
	for _, e := range l.old[kept:] {
		if err := l.send(e.row, types.Delete, 0); err != nil {
			return err
		}
	}
	for _, e := range l.cur {
		if e.was >= 0 {
			continue
		}
		if err := l.send(e.row, types.Insert, 0); err != nil {
			return err
		}
	}
	return nil
}

func (l *listRank) send(row []byte, k types.RowKind, place int64) error {
	if err := l.changes.room(1, l.next); err != nil {
		return err
	}
	l.changes.add(row, k, place)
	return nil
}

// emitPlaces emits the places that have another row.
func (l *listRank) emitPlaces() error {
	for k := int(l.spec.From) - 1; k < len(l.cur); k++ {
		e, place := &l.cur[k], int64(k+1)
		if k >= len(l.old) {
			if err := l.send(e.row, types.Insert, place); err != nil {
				return err
			}
			continue
		}
		if e.was == k {
			continue
		}
		if err := l.changes.room(2, l.next); err != nil { // the two stay in one batch
			return err
		}
		if l.spec.EmitUpdateBefore {
			l.changes.add(l.old[k].row, types.UpdateBefore, place)
		}
		l.changes.add(e.row, types.UpdateAfter, place)
	}
	return nil
}

// appendList appends cur to buf.
func (l *listRank) appendList() {
	flags := byte(0)
	if l.spec.TTL > 0 {
		flags = listStamped
	}
	head := len(l.buf)
	l.buf = append(l.buf, byte(len(l.cur)), flags)
	l.buf = slices.Grow(l.buf, 4*len(l.cur))[:head+listHead+4*len(l.cur)]
	start := len(l.buf)
	for k := range l.cur {
		e := &l.cur[k]
		l.buf = binary.LittleEndian.AppendUint32(l.buf, uint32(len(e.sort)))
		l.buf = append(l.buf, e.sort...)
		if flags != 0 {
			l.buf = binary.LittleEndian.AppendUint64(l.buf, uint64(e.stamp))
		}
		l.buf = append(l.buf, e.row...)
		binary.LittleEndian.PutUint32(l.buf[head+listHead+4*k:], uint32(len(l.buf)-start))
	}
}

// settle emits what is gathered and then writes the lists: until then the output borrows from them.
func (l *listRank) settle() error {
	if err := l.changes.flush(l.next); err != nil {
		return err
	}
	start := 0
	for _, s := range l.sets {
		list := l.buf[start:s.end]
		start = s.end
		if ref := l.at[s.i]; ref != checkpoint.NoRow {
			l.lists.Set(ref, list)
			continue
		}
		ref, _, err := l.lists.Insert(&l.keys, int(s.i), len(list))
		if err != nil {
			return err
		}
		copy(l.lists.Mutable(ref), list)
	}
	l.sets, l.buf = l.sets[:0], l.buf[:0]
	return nil
}
