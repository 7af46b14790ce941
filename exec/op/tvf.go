package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowTVFSpec describes TUMBLE(TABLE …, DESCRIPTOR(Time), Size[, Offset]) that is not part of a window aggregate.
type WindowTVFSpec struct {
	Input        *types.Schema
	Time         int
	Size, Offset int64 // ms
	Session      expr.Session
	Output       *types.Schema // Input, window_start, window_end, window_time
}

// NewWindowTVF appends each row's window. Kinds are kept, late rows are not dropped, rows without a rowtime are (and
// counted), as Flink's stand-alone window table-valued function does.
func NewWindowTVF(spec WindowTVFSpec) func() exec.Operator {
	return func() exec.Operator { return &windowTVF{spec: spec} }
}

type windowTVF struct {
	exec.Stateless
	spec    WindowTVFSpec
	clock   windowClock
	dropped *exec.Counter
	sel     []int32
	vecs    [3]batch.Vec
	out     batch.Batch
}

// Open implements exec.Operator.
func (w *windowTVF) Open(s exec.Subtask) error {
	w.clock = newWindowClock(w.spec.Input.Columns[w.spec.Time].Type, w.spec.Size, w.spec.Offset, w.spec.Session)
	w.dropped = s.Counter("null-rowtime-dropped")
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is dropped: a nil selection is all rows
	return nil
}

// Process implements exec.Operator.
func (w *windowTVF) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	n := len(w.spec.Input.Columns)
	for i := range w.vecs {
		w.vecs[i].Type = w.spec.Output.Columns[n+i].Type
		w.vecs[i].Resize(b.N)
	}
	v := b.Cols[w.spec.Time]
	w.sel = w.sel[:0]
	for i, k := 0, b.Len(); i < k; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			w.dropped.Add(1)
			continue
		}
		start, end, last := w.clock.bounds(w.clock.end(millis(v, v.Idx(r))))
		w.vecs[0].I64[r], w.vecs[1].I64[r], w.vecs[2].I64[r] = start, end, last
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
