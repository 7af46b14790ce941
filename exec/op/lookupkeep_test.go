package op

import (
	"fmt"
	"strings"
	"testing"
)

func keep(by ...int) func(*LookupJoinSpec) {
	return func(s *LookupJoinSpec) { s.Keep, s.KeepBy = true, by }
}

// TestLookupKeep: rows are taken back with what they were sent with, whatever the table has then, also after a restart.
func TestLookupKeep(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { keep(0)(s); s.Outer = true })
	b.dim("a@1:10", "a@2:20", "b@1:5")
	b.rows(0, "a@5:1, b@6:2, c@7:3", "+I a@5:1 a@1:10, +I a@5:1 a@2:20, +I b@6:2 b@1:5, +I c@7:3 -@-:-")
	b.dim("a@3:30", "c@1:7")
	b.rows(0, "-U a@5:1, +U a@6:2, -D b@6:2, -D c@7:3", "-U a@5:1 a@1:10, -U a@5:1 a@2:20, +U a@6:2 a@3:30, -D b@6:2 b@1:5, -D c@7:3 -@-:-")
	b.requests("2 for 4 keys") // nothing is asked for what is taken back
	b.restart()
	b.dim()
	b.rows(0, "-D a@6:2", "-D a@6:2 a@3:30")
	if n := b.missing(); n != 0 {
		t.Fatalf("%d rows missing", n)
	}
	// What has not been kept is not looked up either: it cannot be what the row was sent with.
	b.dim("d@1:1")
	b.rows(0, "-D d@1:1", "-D d@1:1 -@-:-")
	if n := b.missing(); n != 1 {
		t.Fatalf("%d rows missing, want 1", n)
	}
}

// TestLookupKeepReplace: a key's new row takes the place of the old one where -U is not sent.
func TestLookupKeepReplace(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { keep(0)(s); s.Outer = true })
	b.dim("a@1:10")
	b.rows(0, "a@5:1", "+I a@5:1 a@1:10")
	b.dim("a@1:11")
	b.rows(0, "+U a@6:2", "+U a@6:2 a@1:11")
	b.rows(0, "-D a@6:2, -D a@5:1", "-D a@6:2 a@1:11, -D a@5:1 -@-:-")
}

// TestLookupKeepWhole: without a key the rows are kept by all of their columns, equal ones one by one; the further
// condition holds for what was kept.
func TestLookupKeepWhole(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { keep()(s); s.Cond = less(t) })
	b.dim("a@1:10", "a@2:0")
	b.rows(0, "a@5:1", "+I a@5:1 a@1:10")
	b.dim("a@1:20")
	b.rows(0, "a@5:1, a@5:30", "+I a@5:1 a@1:20")
	b.dim()
	b.rows(0, "-D a@5:1", "-D a@5:1 a@1:20")
	b.rows(0, "-D a@5:30, -D a@5:1, -D a@5:1", "-D a@5:1 a@1:10")
	if n := b.missing(); n != 1 {
		t.Fatalf("%d rows missing, want 1", n)
	}
}

// TestLookupKeepMany: a key that finds many rows, and many keys in one batch, beside the stream.
func TestLookupKeepMany(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { keep(0)(s); async(3, false)(s) })
	var dim, in, out, back, gone []string
	for i := range 300 {
		dim = append(dim, fmt.Sprintf("k%d@1:%d", i%30, i))
	}
	b.dim(dim...)
	for k := range 30 {
		in = append(in, fmt.Sprintf("k%d@5:%d", k, k))
		back = append(back, fmt.Sprintf("-D k%d@5:%d", k, k))
		for i := k; i < 300; i += 30 {
			out = append(out, fmt.Sprintf("+I k%d@5:%d k%d@1:%d", k, k, k, i))
			gone = append(gone, fmt.Sprintf("-D k%d@5:%d k%d@1:%d", k, k, k, i))
		}
	}
	send := func(in, want []string) {
		rows := newTimedBatch(t)
		for _, r := range in {
			timedRow(t, rows, r)
		}
		if err := b.op.Process(0, rows.Finish(), &b.out); err != nil {
			t.Fatal(err)
		}
		if err := b.op.OnWatermark(1, &b.out); err != nil { // waits for the answers
			t.Fatal(err)
		}
		b.expect("answers", strings.Join(want, ", "))
	}
	send(in, out)
	b.dim()
	send(back, gone)
}

func (b *lookupBench) missing() int64 { return b.sub.counters["lookup-missing"].Load() }
