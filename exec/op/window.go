package op

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowAggSpec describes GROUP BY window_start, window_end[, keys] over TUMBLE(…, DESCRIPTOR(Time), Size[, Offset]).
type WindowAggSpec struct {
	Input        *types.Schema
	Keys         []int
	Aggs         []expr.Agg
	Time         int   // rowtime column of the input
	Size, Offset int64 // ms
	InputMode    types.ChangelogMode
	Session      expr.Session  // zone of TIMESTAMP_LTZ windows
	Output       *types.Schema // keys, aggregates, window_start, window_end, window_time
}

// NewWindowAggregate is Flink's window aggregate for tumbling windows: results leave once, as +I, when the watermark
// reaches the window's last millisecond; later rows of a fired window are dropped and counted.
func NewWindowAggregate(spec WindowAggSpec) func() exec.Operator {
	return func() exec.Operator { return &windowAggregate{spec: spec} }
}

type windowAggregate struct {
	spec      WindowAggSpec
	core      aggCore
	enc       *exec.KeyEncoder
	clock     windowClock
	late      *exec.Counter
	watermark exec.Watermark
	open      map[int64]int64 // window end (wall clock ms) → event time at which it fires
	groupKeys checkpoint.Keys
	keys      checkpoint.Keys // 8 bytes window end, big endian, then the group key
	refs      []checkpoint.Ref
	in        batch.Batch
	sel       []int32
	out       *batch.Builder
	res       []types.Datum
}

// Open implements exec.Operator.
func (w *windowAggregate) Open(s exec.Subtask) error {
	w.enc = exec.NewKeyEncoder(w.spec.Keys)
	w.clock = newWindowClock(w.spec.Input.Columns[w.spec.Time].Type, w.spec.Size, w.spec.Offset, w.spec.Session)
	w.late = s.Counter("late-dropped")
	w.out = batch.NewBuilder(w.spec.Output)
	w.res = make([]types.Datum, len(w.spec.Aggs))
	w.open = map[int64]int64{}
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is late: a nil selection is all rows
	w.watermark = restoredWatermark(s.Restored())
	err := w.core.open(s, coreSpec{aggs: w.spec.Aggs, retract: w.spec.InputMode != types.AppendOnly, state: "windows"})
	if err != nil {
		return err
	}
	return w.core.groups.Scan(nil, func(key, _ []byte) bool {
		w.register(windowEnd(key))
		return true
	})
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

func (w *windowAggregate) register(end int64) {
	if _, ok := w.open[end]; !ok {
		w.open[end] = w.clock.fireTime(end)
	}
}

// Process implements exec.Operator.
func (w *windowAggregate) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	if err := w.assign(b); err != nil {
		return err
	}
	if w.in.Len() == 0 {
		return nil
	}
	w.refs = resize(w.refs, w.keys.Len())
	if err := w.core.groups.Probe(&w.keys, w.refs); err != nil {
		return err
	}
	if err := w.core.accumulate(&w.in, &w.keys, w.refs, nil); err != nil {
		return err
	}
	return nil
}

// assign computes each row's window and key, and leaves late rows out: w.in is the batch without them.
func (w *windowAggregate) assign(b *batch.Batch) error {
	w.enc.Encode(b, &w.groupKeys)
	w.keys.Reset()
	w.in = *b
	w.sel = w.sel[:0]
	v := b.Cols[w.spec.Time]
	lastEnd, lastFire := int64(0), int64(0)
	known := false
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			return &expr.RowError{Row: r, Expr: w.spec.Input.Columns[w.spec.Time].Name, Err: diag.New(diag.Data, diag.Pos{},
				"the rowtime column %q is NULL", w.spec.Input.Columns[w.spec.Time].Name).
				WithHint("filter such rows: WHERE %s IS NOT NULL before the window", w.spec.Input.Columns[w.spec.Time].Name)}
		}
		end := w.clock.end(millis(v, v.Idx(r)))
		if !known || end != lastEnd {
			fire, isOpen := w.open[end]
			if !isOpen {
				fire = w.clock.fireTime(end)
			}
			lastEnd, lastFire, known = end, fire, true
			if !isOpen && exec.Watermark(fire) > w.watermark {
				w.open[end] = fire
			}
		}
		if exec.Watermark(lastFire) <= w.watermark {
			w.late.Add(1)
			continue
		}
		w.sel = append(w.sel, int32(r))
		start := len(w.keys.Buf)
		w.keys.Buf = binary.BigEndian.AppendUint64(w.keys.Buf, uint64(end)^1<<63)
		w.keys.Buf = append(w.keys.Buf, w.groupKeys.Key(i)...)
		w.keys.Ends = append(w.keys.Ends, int32(len(w.keys.Buf)))
		w.keys.Hashes = append(w.keys.Hashes, subHash(w.groupKeys.Hashes[i], w.keys.Buf[start:]))
	}
	w.in.Sel = w.sel
	return nil
}

// OnWatermark implements exec.Operator: it fires every window whose time has come, oldest first.
func (w *windowAggregate) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	w.watermark = wm
	var due []int64
	for end, fire := range w.open {
		if exec.Watermark(fire) <= wm {
			due = append(due, end)
		}
	}
	if len(due) == 0 {
		return nil
	}
	slices.Sort(due)
	if err := w.fire(due, out); err != nil {
		return err
	}
	for _, end := range due {
		delete(w.open, end)
	}
	return nil
}

// scanPass bounds the keys collected in one pass over the state: a pass reads the whole table, so it is large, and its
// keys are held in memory, so it is not larger.
const scanPass = 1 << 20

// fire emits and removes the groups of the windows that are due, given by ascending end. Keys begin with the window's
// end, so that one pass meets the windows in that order, however many there are.
func (w *windowAggregate) fire(due []int64, out exec.Emitter) error {
	prefix := commonKey(due)
	for full := true; full; {
		var failed error
		w.keys.Reset()
		at := 0 // the window in due that the rows have reached
		err := w.core.groups.Scan(prefix, func(key, row []byte) bool {
			end := windowEnd(key)
			for at < len(due) && due[at] < end {
				at++
			}
			if at == len(due) {
				return false
			}
			if due[at] != end {
				return true
			}
			failed = w.result(end, key, row, out)
			start := len(w.keys.Buf)
			w.keys.Buf = append(w.keys.Buf, key...)
			w.keys.Ends = append(w.keys.Ends, int32(len(w.keys.Buf)))
			w.keys.Hashes = append(w.keys.Hashes, subHash(checkpoint.HashKey(key[8:]), w.keys.Buf[start:]))
			return failed == nil && w.keys.Len() < scanPass
		})
		if err == nil {
			err = failed
		}
		if err != nil {
			return err
		}
		full = w.keys.Len() == scanPass
		if err := w.drop(); err != nil {
			return err
		}
	}
	if err := flush(w.out, out); err != nil {
		return err
	}
	for _, d := range w.core.distinct {
		if err := d.dropWindows(due, w.groupHash); err != nil {
			return err
		}
	}
	return nil
}

// commonKey is what the keys of all windows from the first to the last of due, which ascends, begin with.
func commonKey(due []int64) []byte {
	first, last := windowKey(due[0]), windowKey(due[len(due)-1])
	n := 0
	for n < len(first) && first[n] == last[n] {
		n++
	}
	return first[:n]
}

// windowKey is the first eight bytes of the keys of a window, windowEnd undoes it. Their order is that of time.
func windowKey(end int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(end)^1<<63) }

func windowEnd(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }

// groupHash is the hash of the group key inside a key of a distinct set: window end, group key, value.
func (w *windowAggregate) groupHash(key []byte) uint64 {
	rest := key[8:]
	for _, c := range w.spec.Keys {
		rest = exec.SkipColumn(rest, w.spec.Input.Columns[c].Type)
	}
	return checkpoint.HashKey(key[8 : len(key)-len(rest)])
}

// drop removes the groups listed in w.keys, in probes of batch size.
func (w *windowAggregate) drop() error {
	var part checkpoint.Keys
	for i := 0; i < w.keys.Len(); {
		part.Reset()
		for ; i < w.keys.Len() && part.Len() < batch.Size; i++ {
			part.Buf = append(part.Buf, w.keys.Key(i)...)
			part.Ends = append(part.Ends, int32(len(part.Buf)))
			part.Hashes = append(part.Hashes, w.keys.Hashes[i])
		}
		w.refs = resize(w.refs, part.Len())
		if err := w.core.groups.Probe(&part, w.refs); err != nil {
			return err
		}
		for k, r := range w.refs {
			if r == checkpoint.NoRow {
				return fmt.Errorf("window state lost a group while its window fired")
			}
			if err := w.core.remove(r, part.Key(k), part.Hashes[k]); err != nil {
				return err
			}
		}
	}
	return nil
}

// result appends the output row of a group; groups emptied by retractions have none.
func (w *windowAggregate) result(end int64, key, row []byte, out exec.Emitter) error {
	if word(row, rowCount) <= 0 {
		return nil
	}
	nk := len(w.spec.Keys)
	if _, err := exec.DecodeKey(key[8:], w.out.Cols[:nk]); err != nil {
		return fmt.Errorf("window state: %w", err)
	}
	w.core.results(row, w.res)
	for i := range w.res {
		w.out.Cols[nk+i].AppendDatum(w.res[i])
	}
	start, stop, last := w.clock.bounds(end)
	cols := w.out.Cols[nk+len(w.res):]
	cols[0].AppendI64(start)
	cols[1].AppendI64(stop)
	cols[2].AppendI64(last)
	w.out.RowDone()
	if w.out.Full() {
		return flush(w.out, out)
	}
	return nil
}

// OnBarrier implements exec.Operator: the watermark is state, so that a restore drops no row as late that was in time.
func (w *windowAggregate) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(w.watermark)), nil
}

// Close implements exec.Operator.
func (w *windowAggregate) Close() error { return nil }
