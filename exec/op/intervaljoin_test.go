package op

import (
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// interval is a join of timed rows on k with right.ts + lower ≤ left.ts ≤ right.ts + upper.
func interval(lower, upper int64, left, right bool) IntervalJoinSpec {
	out := joined(timedSchema, timedSchema)
	return IntervalJoinSpec{Left: timedSchema, Right: timedSchema, LeftKeys: []int{0}, RightKeys: []int{0},
		LeftOuter: left, RightOuter: right, Lower: lower, Upper: upper, LeftTime: 1, RightTime: 1, Output: out}
}

func TestIntervalJoinInner(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(-10, 20, false, false)), 1<<20)
	o.rows(0, "a@1:1, a@5:2, b@5:3", "")
	o.rows(1, "a@1:10", "+I a@1:1 a@1:10, +I a@5:2 a@1:10")
	o.rows(1, "a@15:11, a@16:12, -@5:13", "+I a@5:2 a@15:11") // 5 ≥ 15-10, 5 < 16-10, 1 < 15-10
	o.rows(0, "-@5:4, a@21:5, a@22:6", "+I a@21:5 a@1:10, +I a@21:5 a@15:11, +I a@21:5 a@16:12, +I a@22:6 a@15:11, +I a@22:6 a@16:12")
	o.mark(14, "")
	// A row behind the watermark joins what is there, and is kept only while something may come for it.
	o.rows(0, "b@2:7", "")
	o.rows(1, "b@12:14", "+I b@5:3 b@12:14") // b@2 is not kept: 2+10 < 14
	o.mark(15, "")
	o.rows(1, "a@15:15", "+I a@5:2 a@15:15, +I a@21:5 a@15:15, +I a@22:6 a@15:15") // a@5 lasts until 15
	o.mark(16, "")
	o.rows(1, "a@15:16", "+I a@21:5 a@15:16, +I a@22:6 a@15:16")
	o.mark(exec.MaxWatermark, "")
	for _, s := range o.op.(*intervalJoin).sides {
		n := 0
		if err := s.rows.scan(func(_, _, _ []byte) bool { n++; return true }); err != nil || n != 0 || len(s.timers.slices) != 0 {
			t.Errorf("%d rows and %d slices of timers are left, %v", n, len(s.timers.slices), err)
		}
	}
}

func TestIntervalJoinOuter(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(-10, 20, true, true)), 1<<20)
	o.rows(0, "a@1:1, -@1:2, b@3:3", "")
	o.rows(1, "a@11:10, a@12:11, -@30:12", "+I a@1:1 a@11:10")
	o.mark(11, "")
	o.mark(12, "+I -@1:2 -@-:-") // 1+10 is over; a@1 found its partner
	o.rows(0, "c@2:4", "+I c@2:4 -@-:-")
	o.rows(0, "c@3:5", "")
	o.restart()
	o.mark(12, "")
	o.mark(14, "+I b@3:3 -@-:-, +I c@3:5 -@-:-")
	o.mark(32, "")
	o.mark(33, "+I -@-:- a@12:11")
	o.mark(exec.MaxWatermark, "+I -@-:- -@30:12")
}

func TestIntervalJoinBothOuterSidesExpire(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(0, 0, true, false)), 1<<20)
	o.rows(0, "a@5:1, a@6:2, a@7:3", "")
	o.rows(1, "a@6:10, a@6:11, a@8:12", "+I a@6:2 a@6:10, +I a@6:2 a@6:11")
	o.mark(6, "+I a@5:1 -@-:-")
	o.mark(exec.MaxWatermark, "+I a@7:3 -@-:-")
}

// TestIntervalJoinNever: with an empty interval the rows of an outer side leave at once.
func TestIntervalJoinNever(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(5, -5, true, false)), 1<<20)
	o.rows(0, "a@5:1, -@6:2", "+I a@5:1 -@-:-, +I -@6:2 -@-:-")
	o.rows(1, "a@5:10", "")
	o.mark(exec.MaxWatermark, "")
}

func TestIntervalJoinCondition(t *testing.T) {
	spec := interval(-10, 10, true, true)
	col := func(i int) expr.Expr { return &expr.Column{Index: i, Name: "v", T: types.BigIntType} }
	var err error
	if spec.Cond, err = expr.NewBinary("<", col(2), col(5)); err != nil {
		t.Fatal(err)
	}
	o := newTimedOp(t, NewIntervalJoin(spec), 1<<20)
	o.rows(0, "a@1:5, a@2:8", "")
	o.rows(1, "a@1:4, a@1:6, a@1:-", "+I a@1:5 a@1:6")
	o.mark(exec.MaxWatermark, "+I a@2:8 -@-:-, +I -@-:- a@1:4, +I -@-:- a@1:-")
}

// TestIntervalJoinNoKeyAndNullSafe: without equal keys every pair that is near matches; IS NOT DISTINCT FROM matches NULL.
func TestIntervalJoinNoKeyAndNullSafe(t *testing.T) {
	spec := interval(-10, 10, false, false)
	spec.LeftKeys, spec.RightKeys = nil, nil
	o := newTimedOp(t, NewIntervalJoin(spec), 1<<20)
	o.rows(0, "a@1:1, -@20:2", "")
	o.rows(1, "b@11:3", "+I a@1:1 b@11:3, +I -@20:2 b@11:3")
	spec = interval(-10, 10, false, false)
	spec.NullSafe = []bool{true}
	o = newTimedOp(t, NewIntervalJoin(spec), 1<<20)
	o.rows(0, "a@1:1, -@1:2", "")
	o.rows(1, "-@11:3", "+I -@1:2 -@11:3")
}

func TestIntervalJoinOutputWatermark(t *testing.T) {
	for _, c := range []struct {
		lower, upper int64
		left, right  bool
		w, want      exec.Watermark
	}{
		{-10, 20, false, false, 1, -19},
		{-10, 20, false, false, 20, 0},
		{-10, 20, true, false, 20, 0},
		{-10, 20, false, true, 20, -1}, // a padded right row leaves 21 ms after its time
		{5, 7, false, false, 10, 3},
		{-10, 20, true, true, exec.MaxWatermark, exec.MaxWatermark},
		{-10, 20, true, true, exec.NoWatermark, exec.NoWatermark},
	} {
		o := openOp(t, NewIntervalJoin(interval(c.lower, c.upper, c.left, c.right)), newSubtask(t, 1<<20))
		if got := o.(exec.WatermarkDelayer).OutputWatermark(c.w); got != c.want {
			t.Errorf("%+v: %d", c, got)
		}
	}
}

// TestIntervalJoinManyMatches: more pairs than a batch holds, each row marked.
func TestIntervalJoinManyMatches(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(-1, 1, true, true)), 1<<16)
	const n = 100
	add := func(port int) {
		b := newTimedBatch(t)
		for i := range n {
			timedRow(t, b, "a@5:"+string('0'+byte(i%10)))
		}
		if err := o.op.Process(port, b.Finish(), &o.out); err != nil {
			t.Fatal(err)
		}
	}
	add(0)
	add(1)
	if len(o.out.rows) != n*n {
		t.Fatalf("%d pairs", len(o.out.rows))
	}
	o.out.rows = nil
	o.mark(exec.MaxWatermark, "")
}

func TestIntervalJoinProctime(t *testing.T) {
	spec := interval(-10, 10, true, false)
	spec.Proctime = true
	o := newTimedOp(t, NewIntervalJoin(spec), 1<<20)
	timer := o.op.(exec.ProcessingTimer)
	o.sub.now = 100
	o.rows(0, "a@0:1, b@0:2", "")
	o.sub.now = 110
	o.rows(1, "a@0:10", "+I a@0:1 a@0:10")
	if at, ok := timer.NextTimer(); !ok || at != 111 {
		t.Fatalf("timer at %d, %v", at, ok)
	}
	o.sub.now = 111
	if err := timer.OnTimer(111, &o.out); err != nil {
		t.Fatal(err)
	}
	o.expect("timer", "+I b@0:2 -@-:-")
	o.rows(1, "b@0:11", "")
	o.rows(0, "c@0:3", "")
	o.mark(exec.MaxWatermark, "") // the wall clock does not end with the input
	o.restart()
	if at, ok := timer.NextTimer(); !ok || at != 121 {
		t.Fatalf("timer at %d, %v", at, ok)
	}
}

// TestIntervalJoinMinCleanup: state may stay longer than it is needed, not shorter.
func TestIntervalJoinMinCleanup(t *testing.T) {
	spec := interval(-10, 10, true, false)
	spec.MinCleanup = 5
	o := newTimedOp(t, NewIntervalJoin(spec), 1<<20)
	o.rows(0, "a@0:1, b@1:2", "")
	o.mark(15, "")
	o.rows(1, "a@3:10", "+I a@0:1 a@3:10")
	o.mark(17, "+I b@1:2 -@-:-")
}

func TestIntervalJoinNullRowtime(t *testing.T) {
	o := newTimedOp(t, NewIntervalJoin(interval(0, 0, false, false)), 1<<20)
	b := newTimedBatch(t)
	timedRow(t, b, "a@-:1")
	err := o.op.Process(0, b.Finish(), &o.out)
	if err == nil || err.Error() != `ts: the rowtime column "ts" is NULL` {
		t.Fatal(err)
	}
}
