package exec

import (
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// watermarker evaluates a table's WATERMARK FOR expression.
type watermarker struct {
	spec  *WatermarkSpec
	prog  *expr.Program
	last  int64   // ms of the last periodic emission
	ident []int32 // 0, 1, 2, …
	rises int     // column that the expression rises with, so that its greatest value is that of the column's; -1 = unknown
	one   [1]int32
	ahead *futureGuard // nil = every row counts
}

// greatest is the watermark of the rows of b; ok is false when all are NULL.
func (w *watermarker) greatest(b *batch.Batch) (wm Watermark, ok bool, err error) {
	if w.rises >= 0 {
		r := latest(b, b.Cols[w.rises])
		if r < 0 {
			return 0, false, nil
		}
		part := *b
		w.one[0] = int32(r)
		part.Sel = w.one[:]
		b = &part
	}
	if b.Len() == 0 {
		return 0, false, nil
	}
	cols, err := w.prog.Eval(b)
	if err != nil {
		return 0, false, err
	}
	r := latest(b, cols[0])
	if r < 0 {
		return 0, false, nil
	}
	return Watermark(millis(cols[0], r)), true, nil
}

// millis converts the stored value of a timestamp column to milliseconds, rounding down.
func millis(v *batch.Vec, r int) int64 {
	r = v.Idx(r)
	if v.Type.Phys() == types.PhysI128 {
		sec, nanos := types.SplitNanos(v.I128[r])
		return sec*1000 + nanos/1_000_000
	}
	us := v.I64[r]
	ms := us / 1000
	if us%1000 < 0 {
		ms--
	}
	return ms
}

// pushMarked emits b and keeps the split's watermark. A row goes out before the watermark it causes; with on-event
// emission a batch is cut before a row that an earlier row of it made late, so that the row finds the watermark in
// force that it would find if rows came one by one.
func (s *sourceReader) pushMarked(sp *split, b *batch.Batch) error {
	limit := int64(math.MaxInt64)
	if s.marks.ahead != nil {
		limit = s.marks.ahead.limit(s.t.at.nowMs())
	}
	if !s.marks.onEvent() {
		in, part := b, batch.Batch{}
		if g := s.marks.ahead; g != nil {
			var ahead int64
			var some bool
			if in, ahead, some = g.within(b, limit, &part); some {
				s.heldBack(sp, ahead, limit)
			}
		}
		wm, ok, err := s.marks.greatest(in)
		if err != nil {
			return err
		}
		if ok {
			sp.wm = max(sp.wm, wm)
		}
		sp.meter.watermark.Set(int64(sp.wm))
		return s.m.out.Emit(b)
	}
	cols, err := s.marks.prog.Eval(b)
	if err != nil {
		return err
	}
	wm := cols[0]
	rowtime := b.Cols[s.marks.spec.Column]
	part := *b
	sel := s.marks.rows(b)
	start := 0
	pending := s.combined(sp, sp.wm)
	for i, r := range sel {
		if i > start && pending > s.emitted && !rowtime.IsNull(int(r)) && Watermark(millis(rowtime, int(r))) <= pending {
			part.Sel = sel[start:i]
			if err := s.emitPart(&part, sp); err != nil {
				return err
			}
			start = i
		}
		if limit < math.MaxInt64 && !rowtime.IsNull(int(r)) {
			if t := millis(rowtime, int(r)); t > limit {
				s.marks.ahead.held.Add(1)
				s.heldBack(sp, t, limit)
				continue
			}
		}
		if !wm.IsNull(int(r)) {
			if w := Watermark(millis(wm, int(r))); w > sp.wm {
				sp.wm = w
				pending = s.combined(sp, w)
			}
		}
	}
	part.Sel = sel[start:]
	return s.emitPart(&part, sp)
}

// latest is the row of b that counts with the greatest value of v, a column of timestamps; -1 when all are NULL.
func latest(b *batch.Batch, v *batch.Vec) int {
	if b.Sel == nil && v.Valid == nil && !v.Const && v.I64 != nil && b.N > 0 {
		return latestOf(v.I64[:b.N])
	}
	at := -1
	wide := v.Type.Phys() == types.PhysI128
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		switch {
		case v.IsNull(r):
		case at < 0, !wide && v.I64[v.Idx(r)] > v.I64[v.Idx(at)], wide && v.I128[v.Idx(r)].Cmp(v.I128[v.Idx(at)]) > 0:
			at = r
		}
	}
	return at
}

// latestOf is the first place of the greatest value of v, which is not empty.
func latestOf(v []int64) int {
	most, at := v[0], 0
	for i, x := range v {
		if x > most {
			most, at = x, i
		}
	}
	return at
}

func (s *sourceReader) emitPart(b *batch.Batch, sp *split) error {
	if err := s.m.out.Emit(b); err != nil {
		return err
	}
	sp.meter.watermark.Set(int64(sp.wm))
	return s.advance()
}

// rows lists the rows of b that count.
func (w *watermarker) rows(b *batch.Batch) []int32 {
	if b.Sel != nil {
		return b.Sel
	}
	for i := len(w.ident); i < b.N; i++ {
		w.ident = append(w.ident, int32(i))
	}
	return w.ident[:b.N]
}

func (w *watermarker) onEvent() bool { return w.spec.OnEvent || w.spec.Interval <= 0 }

// periodic emits the watermark when its interval passed, and finds idle splits.
func (s *sourceReader) periodic() error {
	now := s.t.at.nowMs()
	spec := s.marks.spec
	if spec.IdleAfter > 0 {
		changed := false
		for _, sp := range s.splits {
			if !sp.idle && !sp.done && now-sp.lastRow >= spec.IdleAfter {
				sp.idle, changed = true, true
				sp.meter.idle.Set(1)
			}
		}
		if changed {
			return s.advance()
		}
	}
	if s.marks.onEvent() || now-s.marks.last < spec.Interval {
		return nil
	}
	s.marks.last = now
	return s.advance()
}

// combined is the source's watermark if split sp's were w: the minimum over splits that are neither idle nor done, the
// maximum of all when every split is idle.
func (s *sourceReader) combined(sp *split, w Watermark) Watermark {
	low, high, active := MaxWatermark, NoWatermark, false
	for _, o := range s.splits {
		ow := o.wm
		if o == sp {
			ow = w
		}
		if o.done && o != sp {
			continue
		}
		high = max(high, ow)
		if !o.idle {
			active = true
			low = min(low, ow)
		}
	}
	if !active {
		return high
	}
	return low
}

// advance emits the source's watermark and its status as they are now.
func (s *sourceReader) advance() error {
	if s.exhausted {
		return nil
	}
	if s.marks != nil {
		if w := s.combined(nil, 0); w > s.emitted {
			if err := s.emit(w); err != nil {
				return err
			}
		}
	}
	return s.setIdle(s.pausing())
}

// pausing reports that no split has rows for now: each is idle or done. A subtask whose splits are all done and that gets
// no others is not idle but about to end. Without it, operators behind would wait no longer for the rows that others
// hold back until event time ends, such as OVER's; they would come late.
func (s *sourceReader) pausing() bool {
	left := false
	for _, sp := range s.splits {
		if !sp.idle && !sp.done {
			return false
		}
		left = left || !sp.done
	}
	return left || s.src.DiscoveryInterval() > 0
}

// setIdle passes on a change of status. A source subtask without unfinished splits is idle until it gets one: it must
// not hold back the others' event time.
func (s *sourceReader) setIdle(idle bool) error {
	if idle == s.idle {
		return nil
	}
	s.idle = idle
	return s.m.status(idle)
}

// emit passes on a watermark that is later than all before.
func (s *sourceReader) emit(w Watermark) error {
	if w <= s.emitted {
		return nil
	}
	s.emitted = w
	return s.m.watermark(w)
}

func unknownSplit(sp checkpoint.Split) error {
	return diag.New(diag.Internal, diag.Pos{}, "the connector returned rows of split %q, which it was not given", sp)
}
