package op

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowJoinSpec describes a join of two append-only inputs whose rows carry windows of the same kind: rows meet that
// agree in the keys, window_start and window_end among them.
type WindowJoinSpec struct {
	Inputs   [2]*types.Schema
	Kind     JoinKind
	Keys     [2][]int // columns per side, of equal encodings
	NullSafe []bool   // per key: NULL matches NULL
	End      [2]int   // window_end
	// InstantEnd: window_end is the wall clock of Session's zone, because the windows are of a TIMESTAMP_LTZ rowtime.
	InstantEnd bool
	Cond       expr.Expr // over the columns of both sides; nil = none
	Session    expr.Session
	Output     *types.Schema // left, then right columns; of semi and anti joins the left ones
}

// NewWindowJoin is Flink's window join: rows wait for the watermark to reach the end of their window and are joined then,
// all results are +I. Rows of a window that has fired are dropped and counted. Rows must be exchanged by the keys.
func NewWindowJoin(spec WindowJoinSpec) func() exec.Operator {
	return func() exec.Operator { return &windowJoin{spec: spec} }
}

// windowJoin keeps the rows of a side in memory by window, and from a barrier on in a log by window and key group. When a window has ended it joins the rows of each
// key group by hash: it holds a block of the right side in memory and reads the left side once for each block.
type windowJoin struct {
	spec      WindowJoinSpec
	clock     windowClock
	sides     [2]windowJoinSide
	late      *exec.Counter
	watermark exec.Watermark
	next      exec.Watermark // when the first window may end
	ends      []int64
	end       int64 // of the last row's window
	taken     int64 // bytes counted in the job's memory

	in      batch.Batch
	sel     []int32
	keys    checkpoint.Keys
	encoded encodedRows

	join windowHashJoin
}

// windowJoinSide is one side.
type windowJoinSide struct {
	input *types.Schema
	mem   map[int64]*joinedRows // by end
	free  []*batch.Builder
	bytes int64 // of mem and free
	log   *windowLog
	codec *rowCodec
	enc   *exec.KeyEncoder
	plain []int // key columns that NULL does not match
}

// Open implements exec.Operator.
func (w *windowJoin) Open(s exec.Subtask) (err error) {
	for i := range w.sides {
		x, in := &w.sides[i], w.spec.Inputs[i]
		x.input, x.mem = in, map[int64]*joinedRows{}
		x.enc, x.codec = exec.NewKeyEncoder(w.spec.Keys[i]), newRowCodec(in)
		x.plain = plainKeys(w.spec.Keys[i], w.spec.NullSafe)
		if x.log, err = openWindowLog(s, [2]string{"left", "right"}[i], "windowjoin/2:"+slottedFormat(in)); err != nil {
			return err
		}
	}
	if w.spec.InstantEnd && w.spec.Session.Zone != nil && w.spec.Session.Zone != time.UTC {
		w.clock.zone = w.spec.Session.Zone
	}
	w.late = s.Counter("late-dropped")
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is late: a nil selection is all rows
	w.watermark = restoredWatermark(s.Restored())
	w.findNext()
	return w.join.open(&w.spec, &w.sides)
}

// findNext sets next by the windows there are rows of.
func (w *windowJoin) findNext() {
	w.next = exec.MaxWatermark
	w.ends = w.times(w.ends[:0])
	for _, end := range w.ends {
		w.next = min(w.next, exec.Watermark(w.clock.fireTime(end)))
	}
}

// Process implements exec.Operator.
func (w *windowJoin) Process(port int, b *batch.Batch, _ exec.Emitter) error {
	x := &w.sides[port]
	w.sel, w.ends = w.sel[:0], w.ends[:0]
	v := b.Cols[w.spec.End[port]]
	pads := w.join.pads(port)
	raw, fires := int64(0), exec.NoWatermark // of the row before
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			return nullTime(r, w.spec.Inputs[port].Columns[w.spec.End[port]].Name)
		}
		if us, ok := rawTime(v, r); !ok || us != raw || fires == exec.NoWatermark {
			raw, w.end = us, millis(v, v.Idx(r))
			fires = exec.Watermark(w.clock.fireTime(w.end))
		}
		if fires <= w.watermark {
			w.late.Add(1)
			continue
		}
		if !pads && anyNull(b, x.plain, r) {
			continue // it never matches
		}
		w.next = min(w.next, fires)
		w.sel, w.ends = append(w.sel, int32(r)), append(w.ends, w.end)
	}
	for lo, hi := 0, 0; lo < len(w.sel); lo = hi {
		for hi = lo + 1; hi < len(w.sel) && w.ends[hi] == w.ends[lo]; hi++ {
		}
		x.add(w.ends[lo], b, w.sel[lo:hi])
	}
	return w.account()
}

// rawTime is the time in row r of v if one word tells it.
func rawTime(v *batch.Vec, r int) (int64, bool) {
	if v.Type.Phys() != types.PhysI64 {
		return 0, false
	}
	return v.I64[v.Idx(r)], true
}

// OnWatermark implements exec.Operator: it joins the windows that have ended, oldest first.
func (w *windowJoin) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	if w.watermark = wm; wm < w.next {
		return nil
	}
	w.ends = w.times(w.ends[:0])
	w.ends = slices.DeleteFunc(w.ends, func(end int64) bool { return exec.Watermark(w.clock.fireTime(end)) > wm })
	for _, end := range w.ends {
		if err := w.fire(end, out); err != nil {
			return err
		}
	}
	w.findNext()
	if err := w.account(); err != nil {
		return err
	}
	return w.join.flush(out)
}

// OnBarrier implements exec.Operator: the watermark, so that a restore drops no row as late that was in time.
func (w *windowJoin) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(w.watermark)), w.spillAll()
}

// Close implements exec.Operator.
func (w *windowJoin) Close() error {
	if w.taken != 0 {
		w.sides[0].log.table.Reserve(-w.taken)
		w.taken = 0
	}
	return nil
}
