package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// How rows leave a waitLog.

var errWaitState = fmt.Errorf("the state of rows that wait for their time is damaged")

const (
	minTime = math.MinInt64
	maxTime = math.MaxInt64
)

// dueChunk is a chunk that rows leave from.
type dueChunk struct {
	s     *waitSlice
	group int
	i     int // in its group
	ref   checkpoint.Ref
	rest  int64 // the earliest time that a row waits for which stays
}

func (d *dueChunk) chunk() *waitChunk { return &d.s.groups[d.group][d.i] }

// dueRow is a row that leaves: from byte at of a due chunk on.
type dueRow struct {
	time    int64
	seq     uint64
	due, at int32
}

// waitVisitor gets rows that leave, and the time of each. It must not keep them.
type waitVisitor func(b *batch.Batch, times []int64) error

// leave takes the rows out that wait for times up to upTo and calls f with them, a batch at a time. With byTime they are in the
// order of time, those of one key and time in that of arrival; else those of one key are in that of arrival.
func (w *waitLog) leave(upTo int64, f waitVisitor) error {
	n := 0
	for n < len(w.slices) && w.slices[n].start <= upTo {
		n++
	}
	step := max(n, 1)
	if w.byTime {
		step = 1
	}
	for i := 0; i < n; i += step {
		if err := w.leaveSlices(w.slices[i:i+step], upTo, f); err != nil {
			return err
		}
	}
	for g := range w.left {
		w.left[g] = max(w.left[g], min(upTo, maxTime-2))
	}
	w.slices = slices.DeleteFunc(w.slices, func(s *waitSlice) bool {
		gone := s.first == maxTime
		if gone && len(w.spare) < waitSpare {
			w.spare = append(w.spare, s)
		}
		return gone
	})
	return w.flush(f)
}

// waitSpare is how many slices that are over are kept to be used again.
const waitSpare = 16

// leaveSlices lets rows of some slices leave, a few key groups at a time.
func (w *waitLog) leaveSlices(ss []*waitSlice, upTo int64, f waitVisitor) error {
	if !slices.ContainsFunc(ss, func(s *waitSlice) bool { return s.first <= upTo }) {
		return nil
	}
	w.due = w.due[:0]
	size := 0
	for g := range checkpoint.KeyGroups {
		from, before := len(w.due), size
		for _, s := range ss {
			for i := range s.groups[g] {
				if c := &s.groups[g][i]; c.first <= upTo {
					w.due = append(w.due, dueChunk{s: s, group: g, i: i})
					size += int(c.size)
				}
			}
		}
		if size > w.pass && from > 0 && !w.byTime {
			if err := w.leaveDue(w.due[:from], before, upTo, f); err != nil {
				return err
			}
			w.due, size = append(w.due[:0], w.due[from:]...), size-before
		}
	}
	if err := w.leaveDue(w.due, size, upTo, f); err != nil {
		return err
	}
	for _, s := range ss {
		s.first = maxTime
		for g, cs := range s.groups {
			s.groups[g] = slices.DeleteFunc(cs, func(c waitChunk) bool { return c.size == 0 })
			for i := range s.groups[g] {
				s.first = min(s.first, s.groups[g][i].first)
			}
		}
	}
	return nil
}

// leaveDue lets the rows of due chunks leave, of size bytes. More than can be in memory are of one key group, or byTime of a
// slice.
func (w *waitLog) leaveDue(due []dueChunk, size int, upTo int64, f waitVisitor) error {
	if size > 2*w.pass {
		return w.leaveMany(due, upTo, f)
	}
	if err := w.find(due); err != nil {
		return err
	}
	for from := 0; from < len(due); {
		to := from + 1
		for to < len(due) && (w.byTime || due[to].group == due[from].group) {
			to++
		}
		w.entries = w.entries[:0]
		for i := from; i < to; i++ {
			if err := w.index(&due[i], i, upTo); err != nil {
				return err
			}
		}
		w.sort()
		if err := w.emit(due, w.entries, f); err != nil {
			return err
		}
		from = to
	}
	if err := w.flush(f); err != nil {
		return err
	}
	w.forget(due)
	return nil
}

// leaveMany is leaveDue for due chunks that are too many to be in memory together.
func (w *waitLog) leaveMany(due []dueChunk, upTo int64, f waitVisitor) error {
	parts := func(do func(part []dueChunk, from int) error) error {
		for from := 0; from < len(due); {
			to, size := from, 0
			for to < len(due) && size < w.pass {
				size += int(due[to].chunk().size)
				to++
			}
			if err := w.find(due[from:to]); err != nil {
				return err
			}
			if err := do(due[from:to], from); err != nil {
				return err
			}
			from = to
		}
		return nil
	}
	w.entries = w.entries[:0]
	err := parts(func(part []dueChunk, from int) error {
		for i := range part {
			if err := w.index(&part[i], from+i, upTo); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.sort()
	if err := w.emitMany(due, w.entries, f); err != nil {
		return err
	}
	w.entries, w.sorted = nil, nil
	return parts(func(part []dueChunk, _ int) error { w.forget(part); return nil })
}

// emitMany is emit for rows of chunks that are looked up as they are needed.
func (w *waitLog) emitMany(due []dueChunk, rows []dueRow, f waitVisitor) error {
	for len(rows) > 0 {
		n := 1
		if w.peers && w.phase == waitWhole {
			n = sameTime(rows)
			if n > batch.Size {
				if err := w.twice(due, rows[:n], w.emitMany, f); err != nil {
					return err
				}
				rows = rows[n:]
				continue
			}
		}
		found, err := w.findSome(due, rows, n)
		if err != nil {
			return err
		}
		if err := w.emit(due, rows[:found], f); err != nil {
			return err
		}
		if err := w.flush(f); err != nil {
			return err
		}
		rows = rows[found:]
	}
	return nil
}

// sameTime is how many of rows have the time of the first.
func sameTime(rows []dueRow) int {
	n := 1
	for n < len(rows) && rows[n].time == rows[0].time {
		n++
	}
	return n
}

// twice lets many rows of one time leave: they enter, then they leave with the results of all.
func (w *waitLog) twice(due []dueChunk, rows []dueRow, emit func([]dueChunk, []dueRow, waitVisitor) error, f waitVisitor) error {
	if err := w.flush(f); err != nil {
		return err
	}
	defer func() { w.phase = waitWhole }()
	for _, w.phase = range []waitPhase{waitEnter, waitResults} {
		if err := emit(due, rows, f); err != nil {
			return err
		}
		if err := w.flush(f); err != nil {
			return err
		}
	}
	return nil
}

// find looks due chunks up.
func (w *waitLog) find(due []dueChunk) error {
	w.keys.Reset()
	for i := range due {
		c := due[i].chunk()
		w.appendKey(&w.keys, c.slice, due[i].group, c.number)
	}
	w.refs = resize(w.refs, len(due))
	if err := w.table.Probe(&w.keys, w.refs); err != nil {
		return err
	}
	for i, ref := range w.refs {
		if ref == checkpoint.NoRow {
			return errWaitState
		}
		due[i].ref = ref
	}
	return nil
}

// findSome looks the chunks up of the first rows, as many as can be in memory; at least of so many, and then with peers not of
// some of a time only.
func (w *waitLog) findSome(due []dueChunk, rows []dueRow, least int) (n int, err error) {
	w.keys.Reset()
	w.found = w.found[:0]
	for i := range due {
		due[i].ref = checkpoint.NoRow
	}
	for size := 0; n < len(rows) && (size < w.pass || n < least); n++ {
		d := &due[rows[n].due]
		if d.ref != checkpoint.NoRow {
			continue
		}
		c := d.chunk()
		d.ref = 0
		size += int(c.size)
		w.found = append(w.found, rows[n].due)
		w.appendKey(&w.keys, c.slice, d.group, c.number)
	}
	for w.peers && w.phase == waitWhole && n > least && n < len(rows) && rows[n-1].time == rows[n].time {
		n--
	}
	w.refs = resize(w.refs, len(w.found))
	if err := w.table.Probe(&w.keys, w.refs); err != nil {
		return 0, err
	}
	for k, i := range w.found {
		if due[i].ref = w.refs[k]; w.refs[k] == checkpoint.NoRow {
			return 0, errWaitState
		}
	}
	return n, nil
}

// index adds the rows of due chunk i that leave to entries.
func (w *waitLog) index(d *dueChunk, i int, upTo int64) error {
	left, c := w.left[d.group], d.chunk()
	chunk := w.table.Value(d.ref)
	slot := w.codec.fields[w.cols].slot
	rest := int64(maxTime)
	for at := 0; at < len(chunk); {
		row := chunk[at:]
		if len(row) < w.codec.head {
			return errWaitState
		}
		n := int(binary.LittleEndian.Uint32(row))
		if n < w.codec.head || n > len(row) {
			return errWaitState
		}
		switch until := word(row, slot); {
		case until > upTo:
			rest = min(rest, until)
		case until > left:
			e := dueRow{seq: uint64(w.hidden(row, waitSeq)), due: int32(i), at: int32(at)}
			if w.byTime {
				e.time = w.hidden(row, waitTime)
			}
			w.entries = append(w.entries, e)
		}
		at += n
	}
	d.rest = rest
	c.partly = rest < maxTime
	return nil
}

// sort puts entries in the order in which they leave: of time with byTime, and of arrival.
func (w *waitLog) sort() {
	sorted := true
	low, high := int64(maxTime), int64(minTime)
	for i := range w.entries {
		e := &w.entries[i]
		low, high = min(low, e.time), max(high, e.time)
		sorted = sorted && (i == 0 || w.entries[i-1].time < e.time || w.entries[i-1].time == e.time && w.entries[i-1].seq < e.seq)
	}
	switch {
	case sorted:
	case w.byTime && uint64(high-low) < uint64(max(1024, 4*len(w.entries))):
		w.countingSort(low, int(high-low)+1)
		for rest := w.entries; len(rest) > 0; {
			n := sameTime(rest)
			sortArrivals(rest[:n])
			rest = rest[n:]
		}
	default:
		slices.SortFunc(w.entries, compareDue)
	}
}

func compareDue(a, b dueRow) int {
	if a.time != b.time {
		return compare(a.time, b.time)
	}
	return compare(int64(a.seq), int64(b.seq))
}

// sortArrivals sorts rows of one time.
func sortArrivals(rows []dueRow) {
	if len(rows) > 32 {
		slices.SortFunc(rows, compareDue)
		return
	}
	for i := 1; i < len(rows); i++ {
		for k := i; k > 0 && rows[k].seq < rows[k-1].seq; k-- {
			rows[k], rows[k-1] = rows[k-1], rows[k]
		}
	}
}

// countingSort sorts entries by time, of n times from low on; those of one time stay in their order.
func (w *waitLog) countingSort(low int64, n int) {
	w.counts, w.sorted = resize(w.counts, n+1), resize(w.sorted, len(w.entries))
	clear(w.counts)
	for i := range w.entries {
		w.counts[w.entries[i].time-low+1]++
	}
	for i := range n {
		w.counts[i+1] += w.counts[i]
	}
	for i := range w.entries {
		at := &w.counts[w.entries[i].time-low]
		w.sorted[*at] = w.entries[i]
		*at++
	}
	w.entries, w.sorted = w.sorted, w.entries
}

// emit gives rows of chunks that have been found to f, batch by batch; some stay for flush.
func (w *waitLog) emit(due []dueChunk, rows []dueRow, f waitVisitor) error {
	peers := w.peers && w.phase == waitWhole
	for len(rows) > 0 {
		n := 1
		if peers {
			if n = sameTime(rows); n > batch.Size {
				if err := w.twice(due, rows[:n], w.emit, f); err != nil {
					return err
				}
				rows = rows[n:]
				continue
			}
			if len(w.rows)+n > batch.Size {
				if err := w.flush(f); err != nil {
					return err
				}
			}
		}
		for i := range rows[:n] {
			chunk := w.table.Value(due[rows[i].due].ref)[rows[i].at:]
			w.rows = append(w.rows, chunk[:binary.LittleEndian.Uint32(chunk)])
		}
		// An update's two rows stay in one batch where they can.
		if len(w.rows) >= batch.Size-1 && types.RowKind(rows[n-1].seq&(1<<waitKindBits-1)) != types.UpdateBefore {
			if err := w.flush(f); err != nil {
				return err
			}
		}
		rows = rows[n:]
	}
	return nil
}

// flush gives f the rows that emit has collected.
func (w *waitLog) flush(f waitVisitor) error {
	n := len(w.rows)
	if n == 0 {
		return nil
	}
	w.out.Reset()
	err := w.codec.decode(w.rows, w.out.Cols)
	clear(w.rows)
	if w.rows = w.rows[:0]; err != nil {
		w.out.Abandon()
		return err
	}
	seqs := w.out.Cols[w.cols+waitSeq].I64
	for _, s := range seqs {
		w.out.RowKindDone(types.RowKind(s & (1<<waitKindBits - 1)))
	}
	b := w.out.Finish()
	w.res = *b
	w.res.Cols = b.Cols[:w.cols]
	return f(&w.res, b.Cols[w.cols+waitTime].I64)
}

// forget removes chunks from which all rows have left.
func (w *waitLog) forget(due []dueChunk) {
	for i := range due {
		d := &due[i]
		c := d.chunk()
		if c.first = d.rest; d.rest < maxTime {
			continue
		}
		w.table.Delete(d.ref)
		c.size = 0
	}
}

// remove takes rows out that match says are to go, of key groups of keys; chunks not older than born are not looked at.
func (w *waitLog) remove(groups *[checkpoint.KeyGroups]bool, born int64, match func(b *batch.Batch, gone []bool) error) error {
	for _, s := range w.slices {
		for g := range s.groups {
			for i := 0; groups[g] && i < len(s.groups[g]); i++ {
				if s.groups[g][i].born > born {
					continue
				}
				if err := w.removeFrom(dueChunk{s: s, group: g, i: i}, match); err != nil {
					return err
				}
			}
			s.groups[g] = slices.DeleteFunc(s.groups[g], func(c waitChunk) bool { return c.size == 0 })
		}
	}
	return nil
}

// removeFrom takes rows out of one chunk.
func (w *waitLog) removeFrom(d dueChunk, match func(b *batch.Batch, gone []bool) error) error {
	w.due = append(w.due[:0], d)
	if err := w.find(w.due); err != nil {
		return err
	}
	ref := w.due[0].ref
	w.each(w.table.Value(ref), func(row []byte) { w.rows = append(w.rows, row) })
	rows := w.rows
	var gone []bool
	err := w.flush(func(b *batch.Batch, _ []int64) error {
		gone = make([]bool, b.N)
		return match(b, gone)
	})
	if err != nil {
		return err
	}
	var kept []byte
	i := 0
	w.each(w.table.Value(ref), func(row []byte) {
		if !gone[i] {
			kept = append(kept, row...)
		}
		i++
	})
	clear(rows)
	c := d.chunk()
	if c.size = int32(len(kept)); len(kept) == 0 {
		w.table.Delete(ref)
		return nil
	}
	w.table.Set(ref, kept)
	return nil
}
