package op

import (
	"context"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowAggSpec describes GROUP BY window_start, window_end[, keys] over a TUMBLE, HOP or CUMULATE window.
type WindowAggSpec struct {
	Input     *types.Schema
	Keys      []int
	Aggs      []expr.Agg
	Window    Window
	InputMode types.ChangelogMode
	Session   expr.Session  // zone of TIMESTAMP_LTZ windows
	Output    *types.Schema // keys, aggregates, window_start, window_end, window_time
	// Partial tells that a local aggregate has appended a column of accumulators to the input (PartialType).
	Partial bool
}

// NewWindowAggregate is Flink's window aggregate: results leave once, as +I, when the watermark (processing-time windows:
// the wall clock) reaches the window's last millisecond; rows all of whose windows have fired are dropped and counted.
// A row that comes too late for some of its windows is in the others.
func NewWindowAggregate(spec WindowAggSpec) func() exec.Operator {
	if spec.Window.Kind == Session {
		return func() exec.Operator { return newSessionAggregate(spec) }
	}
	return func() exec.Operator { return &windowAggregate{spec: spec} }
}

// windowSharing is how the windows of one operator share the state of a row.
type windowSharing uint8

const (
	// shareNone: a row is accumulated in every window it belongs to.
	shareNone windowSharing = iota
	// shareSlices (HOP): a row is accumulated in its slice, a window adds its slices up.
	shareSlices
	// shareGrowing (CUMULATE): as shareSlices, and a slice whose window has fired is added to the first of the longest
	// window, which so is always what the last fired window was.
	shareGrowing
)

// windowAggregate keeps a row of accumulators per cell (a window or a slice, named by its end) and group.
type windowAggregate struct {
	spec  WindowAggSpec
	core  aggCore
	enc   *exec.KeyEncoder
	clock windowClock
	share windowSharing
	late  *exec.Counter
	now   func() int64

	watermark exec.Watermark // with Proctime: the last millisecond of wall clock that is over
	restored  *groupTimes    // nil on a fresh start
	next      exec.Watermark // when the earliest window fires
	index     *cellIndex     // the groups of every cell in the state
	cache     *windowCache   // cells in memory; nil = none

	slot      windowSlot
	procSlice int64 // with Proctime: end of the slice of the batch's rows
	groupKeys checkpoint.Keys
	keys      checkpoint.Keys // 8 bytes end of the cell, big endian, then the group key, attached also the window's start
	group     []byte
	ends      []int64             // of the slices of the batch's rows
	chunk     []byte              // of the index, being read
	keyCols   []*batch.ColBuilder // of out, what a group in keys decodes to
	refs      []checkpoint.Ref
	fresh     []int32 // rows of keys that had no state before
	in        batch.Batch
	sel       []int32
	partial   partialRows
	combined  bool // in has accumulators instead of rows
	page      keyPage
	merged    mergeTable
	merge     func() error                      // mergePage
	collect   func(group int, key []byte) error // collectKey
	keyRows   [][]byte                          // of groups to emit, their keys
	images    [][]byte                          // and their rows
	decoder   keyColumns
	moved     []byte
	order     []int64 // while windows fire: the cells, ascending; those before have been dropped
	ctx       context.Context
	out       *batch.Builder
	res       []types.Datum
}

// windowSlot is where the rows of a slice go.
type windowSlot struct {
	known bool
	end   int64   // of the slice
	late  bool    // all its windows have fired
	cells []int64 // ends of the cells to accumulate in
}

// Open implements exec.Operator.
func (w *windowAggregate) Open(s exec.Subtask) error {
	w.enc = exec.NewKeyEncoder(w.spec.Keys)
	w.clock = newWindowClock(w.spec.Window, w.spec.Input, w.spec.Session)
	w.late = s.Counter("late-dropped")
	w.now, w.ctx = s.Now, exec.ContextOf(s)
	w.out = batch.NewBuilder(w.spec.Output)
	w.res = make([]types.Datum, len(w.spec.Aggs))
	w.keyCols = append(w.keyCols, w.out.Cols[:len(w.spec.Keys)]...)
	if w.spec.Window.Kind == Attached {
		w.keyCols = append(w.keyCols, w.out.Cols[len(w.spec.Keys)+len(w.spec.Aggs)])
	}
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is late: a nil selection is all rows
	w.watermark, w.restored = restoreGroupTimes(s.Restored())
	w.next = exec.MaxWatermark
	err := w.core.open(s, coreSpec{aggs: w.spec.Aggs, retract: w.spec.InputMode != types.AppendOnly, bits: true, state: "windows", keys: cellKeyFormat})
	if err != nil {
		return err
	}
	if w.spec.Window.Kind != Tumble && w.core.mergeable() {
		w.share = map[WindowKind]windowSharing{Hop: shareSlices, Cumulate: shareGrowing}[w.spec.Window.Kind]
	}
	w.merged.size, w.merge, w.collect = w.core.fixed, w.mergePage, w.collectKey
	if w.index, err = openCellIndex(s, "windows.index"); err != nil {
		return err
	}
	w.cache = newWindowCache(w)
	w.scheduleAll()
	return w.core.openIndexes(s, "windows")
}

// groupTimes is the event time that had passed for each key group when the restored checkpoint was taken.
type groupTimes [checkpoint.KeyGroups]exec.Watermark

// restoreGroupTimes reads the watermarks that the old subtasks kept. The lowest is the new subtask's watermark: with it no row
// in flight becomes late by a restore. byGroup is nil when all are equal, as they are unless a restore is of subtasks
// that were not given the same watermarks.
func restoreGroupTimes(states [][]byte) (lowest exec.Watermark, byGroup *groupTimes) {
	lowest = restoredWatermark(states)
	if len(states) == 0 || slices.ContainsFunc(states, func(s []byte) bool { return len(s) != 8 }) {
		return lowest, nil
	}
	r := &groupTimes{}
	for g := range r {
		r[g] = exec.Watermark(binary.BigEndian.Uint64(states[checkpoint.SubtaskOf(g, len(states))]))
		if r[g] != lowest {
			byGroup = r
		}
	}
	return lowest, byGroup
}

// restoredWatermark is the lowest of the old subtasks' watermarks: with it no row in flight becomes late by a restore.
func restoredWatermark(states [][]byte) exec.Watermark {
	if len(states) == 0 {
		return exec.NoWatermark
	}
	w := exec.MaxWatermark
	for _, s := range states {
		if len(s) != 8 {
			return exec.NoWatermark
		}
		w = min(w, exec.Watermark(binary.BigEndian.Uint64(s)))
	}
	return w
}

// passed is the event time that has passed for a key with the given hash.
func (w *windowAggregate) passed(hash uint64) exec.Watermark {
	if w.restored != nil {
		return max(w.watermark, w.restored[checkpoint.KeyGroup(hash)])
	}
	return w.watermark
}

// schedule lowers next to the first window that the cell is part of and that has not fired.
func (w *windowAggregate) schedule(cell int64) {
	end, last := w.windowsOf(cell)
	for end = w.clock.skip(end, w.watermark, w.clock.next()); end <= last; end += w.clock.next() {
		if f := exec.Watermark(w.clock.fireTime(end)); f > w.watermark {
			w.next = min(w.next, f)
			return
		}
	}
}

// scheduleAll lowers next to the first window that has not fired.
func (w *windowAggregate) scheduleAll() {
	for cell := range w.index.cells {
		w.schedule(cell)
	}
	if w.cache != nil {
		for cell := range w.cache.cells {
			w.schedule(cell)
		}
	}
}

// windowsOf is the first and the last end of the windows that need a cell.
func (w *windowAggregate) windowsOf(cell int64) (first, last int64) {
	if w.share == shareNone {
		return cell, cell
	}
	return w.clock.first(cell), w.clock.last(cell)
}

// place finds where rows of the slice ending at end go, when event time has come to passed.
func (w *windowAggregate) place(end int64, passed exec.Watermark) {
	s := &w.slot
	s.known, s.end, s.late, s.cells = true, end, false, s.cells[:0]
	first, last := w.clock.first(end), w.clock.last(end)
	if first > last {
		return // between the windows of a HOP with gaps
	}
	fired := func(end int64) bool { return exec.Watermark(w.clock.fireTime(end)) <= passed }
	switch {
	case fired(last):
		s.late = true
	case w.share == shareGrowing && fired(end):
		s.cells = append(s.cells, w.clock.start(end)+w.clock.Slide)
	case w.share != shareNone:
		s.cells = append(s.cells, end)
	default:
		for e := first; e <= last; e += w.clock.next() {
			if !fired(e) {
				s.cells = append(s.cells, e)
			}
		}
	}
}

// Process implements exec.Operator.
func (w *windowAggregate) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	if !w.spec.Partial {
		return w.process(b, false)
	}
	return w.partial.split(b, w.process)
}

// process takes rows of the input, or with combined accumulators.
func (w *windowAggregate) process(b *batch.Batch, combined bool) error {
	if w.cache != nil && w.restored == nil {
		return w.cache.process(b, combined)
	}
	return w.processRows(b, combined)
}

// processRows is process for cells that are in the state only.
func (w *windowAggregate) processRows(b *batch.Batch, combined bool) error {
	w.enc.Encode(b, &w.groupKeys)
	w.in, w.sel, w.combined = *b, w.sel[:0], combined
	w.keys.Reset()
	if err := w.findEnds(b); err != nil {
		return err
	}
	for i, end := range w.ends {
		if !w.slot.known || end != w.slot.end || w.restored != nil {
			w.place(end, w.passed(w.groupKeys.Hashes[i]))
		}
		if w.slot.late {
			w.late.Add(w.rowsAt(b, b.Row(i), combined))
			continue
		}
		group, hash := w.groupKeys.Key(i), w.groupKeys.Hashes[i]
		if w.spec.Window.Kind == Attached && len(w.slot.cells) > 0 {
			w.group = exec.AppendColumn(append(w.group[:0], group...), b.Cols[w.spec.Window.Start], b.Row(i))
			group, hash = w.group, subHash(hash, w.group)
		}
		for _, cell := range w.slot.cells {
			w.sel = append(w.sel, int32(b.Row(i)))
			addGroupKey(&w.keys, cell, group, hash)
			if len(w.sel) < batch.Size {
				continue
			}
			if err := w.ctx.Err(); err != nil { // the job has stopped, and a row can be in very many windows
				return err
			}
			if err := w.accumulate(); err != nil {
				return err
			}
		}
	}
	return w.accumulate()
}

// rowsAt is how many rows physical row r of b stands for.
func (w *windowAggregate) rowsAt(b *batch.Batch, r int, combined bool) int64 {
	if !combined {
		return 1
	}
	v := b.Cols[len(b.Cols)-1]
	return partialCount(v.Str[v.Idx(r)])
}

// findEnds sets ends to the ends of the slices that the rows of b belong to. The rows of a batch arrive together: processing
// time is read once for them, and is not late when the clock is set back.
func (w *windowAggregate) findEnds(b *batch.Batch) error {
	w.ends = resize(w.ends, b.Len())
	if w.spec.Window.Proctime {
		end := w.clock.sliceEnd(w.clock.wall(max(w.now(), int64(w.watermark)+1)))
		for i := range w.ends {
			w.ends[i] = end
		}
		return nil
	}
	return w.clock.sliceEnds(b, w.spec.Input, w.ends)
}

const cellKeyFormat = ";cells/2"

// addGroupKey appends the state key of a group in a cell; hash is the group's. The key's hash keeps the group's key group.
func addGroupKey(keys *checkpoint.Keys, cell int64, group []byte, hash uint64) {
	keys.Buf = binary.BigEndian.AppendUint64(keys.Buf, uint64(cell)^1<<63)
	keys.Buf = append(keys.Buf, group...)
	keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
	keys.Hashes = append(keys.Hashes, hash^bits.RotateLeft64(uint64(cell)*0x9e3779b97f4a7c15, 32)>>7)
}

// addCellKey appends the state key of what a group has in a cell. Its hash keeps the group's key group.
func addCellKey(keys *checkpoint.Keys, cell int64, group []byte, hash uint64) {
	start := len(keys.Buf)
	keys.Buf = binary.BigEndian.AppendUint64(keys.Buf, uint64(cell)^1<<63)
	keys.Buf = append(keys.Buf, group...)
	keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
	keys.Hashes = append(keys.Hashes, subHash(hash, keys.Buf[start:]))
}

// accumulate folds the rows selected so far into their cells.
func (w *windowAggregate) accumulate() error {
	if len(w.sel) == 0 {
		return nil
	}
	w.in.Sel = w.sel
	w.refs = resize(w.refs, w.keys.Len())
	if err := w.core.groups.Probe(&w.keys, w.refs); err != nil {
		return err
	}
	w.findFresh()
	var err error
	if w.combined {
		err = w.core.combine(&w.in, &w.keys, w.refs, nil)
	} else {
		err = w.core.accumulate(&w.in, &w.keys, w.refs, nil)
	}
	if err == nil {
		err = w.core.doneLists()
	}
	if err != nil {
		return err
	}
	if err := w.list(w.fresh); err != nil {
		return err
	}
	w.sel = w.sel[:0]
	w.keys.Reset()
	return nil
}

// findFresh sets fresh to the places of refs without a row.
func (w *windowAggregate) findFresh() {
	w.fresh = w.fresh[:0]
	for i, r := range w.refs {
		if r == checkpoint.NoRow {
			w.fresh = append(w.fresh, int32(i))
		}
	}
}

// rowListed is the flag of a state row that is in the index.
const rowListed = 1

// list puts those of keys that are new rows of state into the index, once.
func (w *windowAggregate) list(fresh []int32) error {
	for _, i := range fresh {
		r := w.refs[i]
		if r == checkpoint.NoRow || w.core.groups.Value(r)[rowFlags]&rowListed != 0 {
			continue
		}
		w.core.groups.Mutable(r)[rowFlags] |= rowListed
		key := w.keys.Key(int(i))
		cell := windowEnd(key)
		if w.index.cells[cell] == nil {
			w.schedule(cell)
		}
		if err := w.index.add(cell, w.keys.Hashes[i], key[8:]); err != nil {
			return err
		}
	}
	return nil
}

// OnWatermark implements exec.Operator: it fires every window whose time has come, oldest first.
func (w *windowAggregate) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if w.spec.Window.Proctime {
		return nil
	}
	if err := w.advance(wm, out); err != nil {
		return err
	}
	if w.restored != nil && wm >= slices.Max(w.restored[:]) {
		w.restored = nil // every group is where the others are
	}
	return nil
}

// NextTimer implements exec.ProcessingTimer.
func (w *windowAggregate) NextTimer() (int64, bool) {
	if !w.spec.Window.Proctime || w.next == exec.MaxWatermark {
		return math.MaxInt64, false
	}
	return int64(w.next) + 1, true
}

// OnTimer implements exec.ProcessingTimer: processing-time windows fire when the clock has left them.
func (w *windowAggregate) OnTimer(now int64, out exec.Emitter) error {
	return w.advance(exec.Watermark(now-1), out)
}

// OnBarrier implements exec.Operator: the watermark is state, so that a restore drops no row as late that was in time.
func (w *windowAggregate) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	for _, d := range w.core.distinct {
		if err := d.index.flush(); err != nil {
			return nil, err
		}
	}
	if w.cache != nil {
		if err := w.cache.flush(); err != nil {
			return nil, err
		}
	}
	return binary.BigEndian.AppendUint64(nil, uint64(w.watermark)), w.index.flush()
}

// Close implements exec.Operator.
func (w *windowAggregate) Close() error {
	if w.cache != nil {
		w.cache.release()
	}
	return nil
}
