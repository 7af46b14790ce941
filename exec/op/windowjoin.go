package op

import (
	"encoding/binary"
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

type windowJoin struct {
	spec      WindowJoinSpec
	clock     windowClock
	enc       [2]*exec.KeyEncoder
	plain     [2][]int // key columns that NULL does not match
	rows      [2]*multimap
	timers    *timerSet
	late      *exec.Counter
	watermark exec.Watermark
	seq       uint64

	in       batch.Batch
	sel      []int32
	keys     checkpoint.Keys
	sub, val []byte

	pairs   *pairs
	left    *batch.Builder
	right   [][]byte // rows of the right side for the key that fires
	cand    [][2]int32
	matched [2][]bool
	half    *batch.Builder // output of semi and anti joins
}

// Open implements exec.Operator.
func (w *windowJoin) Open(s exec.Subtask) (err error) {
	for i := range w.enc {
		w.enc[i] = exec.NewKeyEncoder(w.spec.Keys[i])
		w.plain[i] = plainKeys(w.spec.Keys[i], w.spec.NullSafe)
		name := [2]string{"left", "right"}[i]
		if w.rows[i], err = openMultimap(s, name, "windowjoin/1:"+rowFormat(w.spec.Inputs[i]), 0); err != nil {
			return err
		}
	}
	if w.spec.InstantEnd && w.spec.Session.Zone != nil && w.spec.Session.Zone != time.UTC {
		w.clock.zone = w.spec.Session.Zone
	}
	w.late = s.Counter("late-dropped")
	w.sel = make([]int32, 0, batch.Size) // not nil even when every row is late: a nil selection is all rows
	w.watermark, w.seq = restoredTimes(s.Restored())
	w.left = batch.NewBuilder(w.spec.Inputs[0])
	both := w.spec.Output
	if w.spec.Kind.HalfJoin() {
		w.half = batch.NewBuilder(w.spec.Output)
		both = &types.Schema{}
		for _, in := range w.spec.Inputs {
			both.Columns = append(both.Columns, in.Columns...)
		}
	}
	if w.pairs, err = newPairs(w.spec.Inputs[0].Len(), both, w.spec.Cond, w.spec.Session); err != nil {
		return err
	}
	w.timers, err = openTimers(s, "timers", 1)
	return err
}

// pads reports that rows of a side are given without a match.
func (w *windowJoin) pads(side int) bool {
	if side == 0 {
		return w.spec.Kind.PadsLeft() || w.spec.Kind == AntiJoin
	}
	return w.spec.Kind.PadsRight()
}

// Process implements exec.Operator.
func (w *windowJoin) Process(port int, b *batch.Batch, _ exec.Emitter) error {
	w.in, w.sel = *b, w.sel[:0]
	v := b.Cols[w.spec.End[port]]
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if v.IsNull(r) {
			return nullTime(r, w.spec.Inputs[port].Columns[w.spec.End[port]].Name)
		}
		if exec.Watermark(w.clock.fireTime(millis(v, v.Idx(r)))) <= w.watermark {
			w.late.Add(1)
			continue
		}
		if !w.pads(port) && anyNull(b, w.plain[port], r) {
			continue // it never matches
		}
		w.sel = append(w.sel, int32(r))
	}
	if w.in.Sel = w.sel; len(w.sel) == 0 {
		return nil
	}
	w.enc[port].Encode(&w.in, &w.keys)
	m := w.rows[port]
	if err := m.probe(&w.keys); err != nil {
		return err
	}
	for i, r := range w.sel {
		b := m.at(i)
		n, err := b.len()
		if err != nil {
			return err
		}
		if n == 0 {
			w.timers.add(w.clock.fireTime(millis(v, v.Idx(int(r)))), w.keys.Key(i), w.keys.Hashes[i])
		}
		w.seq++
		w.sub = binary.BigEndian.AppendUint64(w.sub[:0], w.seq)
		w.val = append(w.val[:0], byte(boolWord(anyNull(&w.in, w.plain[port], int(r)))))
		w.val = appendRow(w.val, &w.in, int(r))
		if err := b.put(w.sub, w.val); err != nil {
			return err
		}
	}
	if err := m.done(); err != nil {
		return err
	}
	return w.timers.commit()
}

// OnWatermark implements exec.Operator.
func (w *windowJoin) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	w.watermark = wm
	err := w.timers.fire(int64(wm), func(keys *checkpoint.Keys) error {
		for _, m := range w.rows {
			if err := m.probe(keys); err != nil {
				return err
			}
		}
		for i := range keys.Ends {
			l, r := w.rows[0].at(i), w.rows[1].at(i)
			if err := w.join(l, r, out); err != nil {
				return err
			}
			if err := l.clear(); err != nil {
				return err
			}
			if err := r.clear(); err != nil {
				return err
			}
		}
		if err := w.rows[0].done(); err != nil {
			return err
		}
		return w.rows[1].done()
	})
	if err != nil {
		return err
	}
	if w.half != nil {
		return flush(w.half, out)
	}
	return w.pairs.flushPadded(out)
}

// join joins the rows of one key and window: a nested loop, the left rows outside.
func (w *windowJoin) join(l, r bucket, out exec.Emitter) error {
	w.right = w.right[:0]
	nullKey := false
	err := r.ascend(nil, func(_, val []byte) bool {
		nullKey = val[0] != 0
		w.right = append(w.right, append([]byte(nil), val[1:]...))
		return true
	})
	if err != nil {
		return err
	}
	w.matched[1] = resize(w.matched[1], len(w.right))
	clear(w.matched[1])
	reader := sessionReader{bucket: l, build: w.left}
	err = reader.each(func(b *batch.Batch) error { return w.joinBatch(b, nullKey, out) })
	if err != nil || !w.pads(1) {
		return err
	}
	for i, row := range w.right {
		if !w.matched[1][i] {
			if err := w.pairs.padStored(1, row, types.Insert, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// joinBatch joins some rows of the left side with w.right.
func (w *windowJoin) joinBatch(b *batch.Batch, nullKey bool, out exec.Emitter) error {
	w.matched[0] = resize(w.matched[0], b.Len())
	clear(w.matched[0])
	for i := 0; i < b.Len() && !nullKey; i++ {
		for k, row := range w.right {
			w.cand = append(w.cand, [2]int32{int32(i), int32(k)})
			if err := w.pairs.candidate(0, b, b.Row(i), row, types.Insert, int32(len(w.cand)-1)); err != nil {
				return err
			}
			if w.pairs.rows.Full() {
				if err := w.flushPairs(out); err != nil {
					return err
				}
			}
		}
	}
	if err := w.flushPairs(out); err != nil {
		return err
	}
	for i, m := range w.matched[0] {
		var err error
		switch {
		case w.half != nil && m == (w.spec.Kind == SemiJoin):
			copyRow(w.half, b, b.Row(i), types.Insert)
			if w.half.Full() {
				err = flush(w.half, out)
			}
		case w.half == nil && !m && w.pads(0):
			err = w.pairs.pad(0, b, b.Row(i), types.Insert, out)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// flushPairs tests the candidates and notes and emits the matches.
func (w *windowJoin) flushPairs(out exec.Emitter) error {
	if w.half != nil {
		out = dropRows{}
	}
	err := w.pairs.flush(out, func(origin int32) error {
		c := w.cand[origin]
		w.matched[0][c[0]], w.matched[1][c[1]] = true, true
		return nil
	})
	w.cand = w.cand[:0]
	return err
}

// dropRows takes rows nobody wants.
type dropRows struct{}

// Emit implements exec.Emitter.
func (dropRows) Emit(*batch.Batch) error { return nil }

// OnBarrier implements exec.Operator: the watermark, so that a restore drops no row as late that was in time, and the
// number of the last row.
func (w *windowJoin) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return appendTimes(nil, w.watermark, w.seq), nil
}

// Close implements exec.Operator.
func (w *windowJoin) Close() error { return nil }
