package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowTVFSpec describes a window function that is not part of a window aggregate.
type WindowTVFSpec struct {
	Input   *types.Schema
	Window  Window
	Keys    []int // SESSION: the PARTITION BY columns
	Session expr.Session
	Output  *types.Schema // Input, window_start, window_end, window_time
}

// NewWindowTVF appends each row's windows, a row of output per window. Kinds are kept and rows without a rowtime dropped
// (and counted), as Flink's stand-alone window table-valued functions do. TUMBLE, HOP and CUMULATE drop no late rows;
// SESSION keeps rows until the watermark ends their session.
func NewWindowTVF(spec WindowTVFSpec) func() exec.Operator {
	switch spec.Window.Kind {
	case Session:
		return func() exec.Operator { return newSessionTVF(spec) }
	case Tumble:
		return func() exec.Operator { return &tumbleTVF{spec: spec} }
	}
	return func() exec.Operator { return &windowTVF{spec: spec} }
}

// tumbleTVF is TUMBLE: one window per row, so that the columns of the input pass through as they are.
type tumbleTVF struct {
	exec.Stateless
	spec    WindowTVFSpec
	clock   windowClock
	dropped *exec.Counter
	sel     []int32
	vecs    [3]batch.Vec
	out     batch.Batch
}

// Open implements exec.Operator.
func (w *tumbleTVF) Open(s exec.Subtask) error {
	w.clock = newWindowClock(w.spec.Window, w.spec.Input, w.spec.Session)
	w.dropped = s.Counter("null-rowtime-dropped")
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is dropped: a nil selection is all rows
	return nil
}

// Process implements exec.Operator.
func (w *tumbleTVF) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	n := len(w.spec.Input.Columns)
	for i := range w.vecs {
		w.vecs[i].Type = w.spec.Output.Columns[n+i].Type
		w.vecs[i].Resize(b.N)
	}
	v := b.Cols[w.spec.Window.Time]
	wide := w.vecs[2].Type.Phys() == types.PhysI128
	w.sel = w.sel[:0]
	for i, k := 0, b.Len(); i < k; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			w.dropped.Add(1)
			continue
		}
		e := w.clock.sliceEnd(w.clock.wall(millis(v, v.Idx(r))))
		start, end, last := w.clock.bounds(e-w.clock.Size, e)
		w.vecs[0].I64[r], w.vecs[1].I64[r] = start, end
		if wide {
			w.vecs[2].I128[r] = nanos(last)
		} else {
			w.vecs[2].I64[r] = last
		}
		w.sel = append(w.sel, int32(r))
	}
	w.out = batch.Batch{N: b.N, Sel: w.sel, Kinds: b.Kinds, Cols: append(w.out.Cols[:0], b.Cols...)}
	for i := range w.vecs {
		w.out.Cols = append(w.out.Cols, &w.vecs[i])
	}
	if w.out.Len() == 0 {
		return nil
	}
	return out.Emit(&w.out)
}

// windowTVF is HOP and CUMULATE.
type windowTVF struct {
	exec.Stateless
	spec    WindowTVFSpec
	clock   windowClock
	dropped *exec.Counter
	out     *batch.Builder
}

// Open implements exec.Operator.
func (w *windowTVF) Open(s exec.Subtask) error {
	w.clock = newWindowClock(w.spec.Window, w.spec.Input, w.spec.Session)
	w.dropped = s.Counter("null-rowtime-dropped")
	w.out = batch.NewBuilder(w.spec.Output)
	return nil
}

// Process implements exec.Operator. A HOP gives a row's windows newest first, CUMULATE the shortest first, as in Flink.
func (w *windowTVF) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	v := b.Cols[w.spec.Window.Time]
	for i, k := 0, b.Len(); i < k; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			w.dropped.Add(1)
			continue
		}
		slice := w.clock.sliceEnd(w.clock.wall(millis(v, v.Idx(r))))
		first, last := w.clock.first(slice), w.clock.last(slice)
		step, n := w.clock.next(), (last-first)/w.clock.next()+1
		at := first
		if w.spec.Window.Kind == Hop {
			at, step = last, -step
		}
		if first > last {
			n = 0
		}
		for ; n > 0; n-- {
			copyWindowed(w.out, b, r, &w.clock, w.clock.start(at), at)
			if w.out.Full() {
				if err := flush(w.out, out); err != nil {
					return err
				}
			}
			at += step
		}
	}
	return flush(w.out, out)
}

// copyWindowed appends physical row r of b and its window to out, with the row's kind.
func copyWindowed(out *batch.Builder, b *batch.Batch, r int, c *windowClock, start, end int64) {
	for i, v := range b.Cols {
		out.Cols[i].AppendFrom(v, r)
	}
	appendWindow(out, len(b.Cols), c, start, end)
	out.RowKindDone(b.Kind(r))
}

// appendWindow appends window_start, window_end and window_time to the columns of out from at on.
func appendWindow(out *batch.Builder, at int, c *windowClock, start, end int64) {
	ws, we, wt := c.bounds(start, end)
	out.Cols[at].AppendI64(ws)
	out.Cols[at+1].AppendI64(we)
	appendTime(out.Cols[at+2], wt)
}

// appendTime appends a window_time in microseconds to its column.
func appendTime(c *batch.ColBuilder, us int64) {
	if c.Type.Phys() == types.PhysI128 {
		c.AppendI128(nanos(us))
		return
	}
	c.AppendI64(us)
}

func nanos(us int64) types.Int128 { return types.Mul64(us, 1000) }
