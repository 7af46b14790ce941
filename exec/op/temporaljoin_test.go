package op

import (
	"fmt"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

func temporal(outer bool) TemporalJoinSpec {
	return TemporalJoinSpec{Left: timedSchema, Right: timedSchema, LeftKeys: []int{0}, RightKeys: []int{0}, LeftTime: 1,
		RightTime: 1, Outer: outer, Output: joined(timedSchema, timedSchema)}
}

func TestTemporalJoinVersions(t *testing.T) {
	for _, outer := range []bool{true, false} {
		pad := func(row string) string {
			if outer {
				return row
			}
			return ""
		}
		o := newTimedOp(t, NewTemporalJoin(temporal(outer)), 1<<20)
		o.rows(0, "a@1:1, a@3:2, a@2:3", "")
		o.rows(1, "a@2:10", "")
		o.mark(1, pad("+I a@1:1 -@-:-")) // the first version came later
		o.mark(3, "+I a@3:2 a@2:10, +I a@2:3 a@2:10")
		o.rows(0, "a@3:4, a@9:5, a@8:6", "") // the first one is late
		o.rows(1, "+U a@7:11, -D a@9:11", "")
		o.restart()
		o.rows(1, "+I a@12:12", "")
		if outer {
			o.mark(10, "+I a@9:5 -@-:-, +I a@8:6 a@7:11")
		} else {
			o.mark(10, "+I a@8:6 a@7:11")
		}
		o.rows(0, "a@11:7, a@12:8", "")
		o.mark(11, pad("+I a@11:7 -@-:-"))
		o.mark(exec.MaxWatermark, "+I a@12:8 a@12:12")
		if n := o.sub.Counter("late-dropped").Load(); n != 1 {
			t.Errorf("%d late rows", n)
		}
		n := 0
		if err := o.op.(*temporalJoin).versions.scan(func(_, _, _ []byte) bool { n++; return true }); err != nil || n != 1 {
			t.Errorf("%d versions are left, %v", n, err)
		}
	}
}

// TestTemporalJoinKinds: the left row's kind is kept; of versions of one time the last one counts; a late version
// serves what still waits.
func TestTemporalJoinKinds(t *testing.T) {
	o := newTimedOp(t, NewTemporalJoin(temporal(true)), 1<<20)
	o.rows(1, "+I a@1:10, +I a@1:11", "")
	o.rows(0, "+I a@2:1, -U a@2:1, +U a@3:2, -D b@3:2", "")
	o.mark(5, "+I a@2:1 a@1:11, -U a@2:1 a@1:11, +U a@3:2 a@1:11, -D b@3:2 -@-:-")
	o.rows(0, "a@8:3, a@9:4", "")
	o.rows(1, "-U a@8:11, +U a@8:12, +I a@4:13", "")
	o.mark(9, "+I a@8:3 a@8:12, +I a@9:4 a@8:12")
}

func TestTemporalJoinCondition(t *testing.T) {
	for _, outer := range []bool{true, false} {
		spec := temporal(outer)
		var err error
		spec.Cond, err = expr.NewBinary("<", &expr.Column{Index: 2, Name: "v", T: types.BigIntType}, &expr.Column{Index: 5, Name: "v", T: types.BigIntType})
		if err != nil {
			t.Fatal(err)
		}
		o := newTimedOp(t, NewTemporalJoin(spec), 1<<20)
		o.rows(1, "a@1:10, b@1:-", "")
		o.rows(0, "a@2:1, a@3:20, a@4:2, a@5:-, b@4:1, c@4:3", "")
		if outer {
			o.mark(5, "+I a@2:1 a@1:10, +I a@3:20 -@-:-, +I a@4:2 a@1:10, +I a@5:- -@-:-, +I b@4:1 -@-:-, +I c@4:3 -@-:-")
		} else {
			o.mark(5, "+I a@2:1 a@1:10, +I a@4:2 a@1:10")
		}
	}
}

// TestTemporalJoinTTL: a key without activity for one and a half times the TTL is forgotten, versions and all; activity
// on either side keeps it.
func TestTemporalJoinTTL(t *testing.T) {
	spec := temporal(true)
	spec.TTL = 4000
	o := newTimedOp(t, NewTemporalJoin(spec), 1<<20)
	timer := o.op.(exec.ProcessingTimer)
	o.sub.now = 1000
	o.rows(1, "a@1:10", "") // until 7000
	o.sub.now = 4000
	o.rows(0, "a@2:1", "") // now until 10000
	o.mark(2, "+I a@2:1 a@1:10")
	tick := func(now int64) {
		o.sub.now = now
		if at, ok := timer.NextTimer(); ok && at <= now {
			if err := timer.OnTimer(now, &o.out); err != nil {
				t.Fatal(err)
			}
		}
	}
	tick(7000)
	o.restart()
	timer = o.op.(exec.ProcessingTimer)
	o.rows(0, "a@3:2", "") // 10000 is not before 7000 + 4000, so this one moves it: until 13000
	o.mark(3, "+I a@3:2 a@1:10")
	tick(12999)
	o.rows(0, "b@4:3", "")
	tick(13000)
	o.rows(0, "a@4:4", "")
	o.mark(4, "+I b@4:3 -@-:-, +I a@4:4 -@-:-")
}

// More rows of one key than are handled in a pass leave in the order of their arrival, each with its version, and the
// versions that nothing can ask for any more are dropped, with state on disk.
func TestTemporalJoinManyRows(t *testing.T) {
	const n = 6*batch.Size + 7
	o := newTimedOp(t, NewTemporalJoin(temporal(true)), 64<<10)
	for _, port := range []int{1, 0} {
		b := newTimedBatch(t)
		for i := range n {
			at := n - i // the latest first
			if port == 1 && at%2 == 1 {
				continue // a version every other millisecond
			}
			b.Cols[0].AppendStr("a")
			b.Cols[1].AppendI64(int64(at) * 1000)
			b.Cols[2].AppendI64(int64(at))
			b.RowKindDone(types.Insert)
			if b.Full() || at <= 2 {
				if err := o.op.Process(port, b.Finish(), &o.out); err != nil {
					t.Fatal(err)
				}
				b.Reset()
			}
		}
	}
	o.restart()
	if err := o.op.OnWatermark(n, &o.out); err != nil {
		t.Fatal(err)
	}
	got := o.out.rows
	if len(got) != n {
		t.Fatalf("%d rows, want %d", len(got), n)
	}
	for i, r := range got {
		at := n - i
		want := fmt.Sprintf("+I a@%d:%d a@%d:%d", at, at, at&^1, at&^1)
		if at == 1 {
			want = "+I a@1:1 -@-:-"
		}
		if r != want {
			t.Fatalf("row %d is %s, want %s", i, r, want)
		}
	}
	j := o.op.(*temporalJoin)
	left := 0
	if err := j.versions.scan(func(_, _, _ []byte) bool { left++; return true }); err != nil || left != 1 {
		t.Errorf("%d versions are left, %v", left, err)
	}
	if n := j.left.table.Len(); n > 1 { // what has left
		t.Errorf("%d chunks are left", n)
	}
}
