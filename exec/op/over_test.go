package op

import (
	"fmt"
	"math/rand"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: OVER windows give every row what Flink gives it, in Flink's order. Method: recorded traps of Flink's tests by
// hand, and random rows compared with a program that computes every frame from the list of all rows.

// The input: k STRING, ts TIMESTAMP(3), v INT, d DOUBLE.
var overInput = types.NewSchema(
	types.Column{Name: "k", Type: types.StringType}, types.Column{Name: "ts", Type: types.TimestampOf(types.Timestamp, 3)},
	types.Column{Name: "v", Type: types.IntType}, types.Column{Name: "s", Type: types.StringType},
)

type overRow struct {
	k  string
	ts int64 // ms
	v  int64 // -1 = NULL
}

func overBatch(rows []overRow, kinds ...types.RowKind) *batch.Batch {
	b := batch.NewBuilder(overInput)
	for i, r := range rows {
		b.Cols[0].AppendStr(r.k)
		b.Cols[1].AppendI64(r.ts * 1000)
		if r.v < 0 {
			b.Cols[2].AppendNull()
			b.Cols[3].AppendNull()
		} else {
			b.Cols[2].AppendI64(r.v)
			b.Cols[3].AppendStr(fmt.Sprint("s", r.v))
		}
		k := types.Insert
		if kinds != nil {
			k = kinds[i]
		}
		b.RowKindDone(k)
	}
	return b.Finish()
}

func overAgg(t testing.TB, kind expr.AggKind, arg int, distinct bool) expr.OverCall {
	t.Helper()
	a := expr.Agg{Kind: kind, Arg: arg, Distinct: distinct, Filter: -1, Type: types.BigIntType.NotNull(), Text: kind.String()}
	if arg >= 0 {
		a.ArgType = overInput.Columns[arg].Type
		ty, err := expr.AggType(kind, a.ArgType)
		if err != nil {
			t.Fatal(err)
		}
		a.Type = ty
	}
	return expr.OverCall{Agg: a, Default: -1}
}

func overRank(kind expr.OverKind) expr.OverCall {
	return expr.OverCall{Func: kind, Agg: expr.Agg{Arg: -1, Filter: -1, Type: types.BigIntType.NotNull(), Text: kind.String()}, Default: -1}
}

func overLag(arg int, n int64) expr.OverCall {
	return expr.OverCall{Func: expr.OverLag, Offset: n, Default: -1,
		Agg: expr.Agg{Arg: arg, ArgType: overInput.Columns[arg].Type, Filter: -1, Type: overInput.Columns[arg].Type.WithNull(true), Text: "LAG"}}
}

func overSpec(by OverOrder, col int, f expr.Frame, calls ...expr.OverCall) OverSpec {
	out := &types.Schema{Columns: slices.Clone(overInput.Columns)}
	for i := range calls {
		calls[i].Frame = f
		out.Columns = append(out.Columns, types.Column{Name: fmt.Sprint("w", i), Type: calls[i].Agg.Type})
	}
	return OverSpec{Input: overInput, Partition: []int{0}, Order: SortKey{Col: col, NullsFirst: true}, By: by, Calls: calls, Frame: f,
		EmitUpdateBefore: true, Output: out}
}

func running(rows bool) expr.Frame { return expr.Frame{Rows: rows, Lo: expr.UnboundedPreceding} }

// expectRows compares the kind, v and window columns of what was emitted.
func expectRows(t *testing.T, got []string, want ...string) {
	t.Helper()
	for i, r := range got {
		p := strings.Split(r, "|")
		got[i] = p[0] + "[" + strings.Join(append([]string{p[3]}, p[5:]...), ",") + "]"
	}
	if !slices.Equal(got, want) {
		t.Errorf("got  %s\nwant %s", strings.Join(got, " "), strings.Join(want, " "))
	}
}

func processOver(t testing.TB, o exec.Operator, out exec.Emitter, b *batch.Batch) {
	t.Helper()
	if err := o.Process(0, b, out); err != nil {
		t.Fatal(err)
	}
}

func advanceOver(t testing.TB, o exec.Operator, out exec.Emitter, ms int64) {
	t.Helper()
	if err := o.OnWatermark(exec.Watermark(ms), out); err != nil {
		t.Fatal(err)
	}
}

func TestOverTraps(t *testing.T) {
	t.Run("48 peers", func(t *testing.T) {
		for rows, want := range map[bool][]string{false: {"+I[1,3]", "+I[2,3]", "+I[4,7]"}, true: {"+I[1,1]", "+I[2,3]", "+I[4,7]"}} {
			out := &rowCollector{}
			o := openOp(t, NewOver(overSpec(OverByRowtime, 1, running(rows), overAgg(t, expr.AggSum, 2, false))), newSubtask(t, 1<<20))
			processOver(t, o, out, overBatch([]overRow{{"a", 2, 4}, {"a", 1, 1}, {"a", 1, 2}}))
			advanceOver(t, o, out, 2)
			expectRows(t, out.take(), want...)
		}
	})
	t.Run("49 late", func(t *testing.T) {
		for _, c := range []struct {
			frame expr.Frame
			want  []string
			late  int64
		}{
			{running(true), []string{"+I[1,1]", "+I[9,10]"}, 2},
			{expr.Frame{Rows: true, Lo: -2}, []string{"+I[1,1]", "+I[5,6]", "+I[9,15]"}, 1},
		} {
			out, s := &rowCollector{}, newSubtask(t, 1<<20)
			o := openOp(t, NewOver(overSpec(OverByRowtime, 1, c.frame, overAgg(t, expr.AggSum, 2, false))), s)
			processOver(t, o, out, overBatch([]overRow{{"a", 50, 1}}))
			advanceOver(t, o, out, 60)
			// 53 is behind the watermark, but no later row of its partition has left; 50 is as late as can be.
			processOver(t, o, out, overBatch([]overRow{{"a", 53, 5}, {"a", 50, 7}, {"a", 61, 9}}))
			advanceOver(t, o, out, 61)
			expectRows(t, out.take(), c.want...)
			if n := s.Counter("late-dropped").Load(); n != c.late {
				t.Errorf("%d late rows, want %d", n, c.late)
			}
		}
	})
	t.Run("50 update", func(t *testing.T) {
		out := &rowCollector{}
		o := openOp(t, NewOver(overSpec(OverByValue, 2, running(false), overAgg(t, expr.AggSum, 2, false))), newSubtask(t, 1<<20))
		processOver(t, o, out, overBatch([]overRow{{"a", 1, 1}, {"a", 1, 2}, {"a", 1, 5}, {"a", 1, 6}}))
		expectRows(t, out.take(), "+I[1,1]", "+I[2,3]", "+I[5,8]", "+I[6,14]")
		processOver(t, o, out, overBatch([]overRow{{"a", 1, 2}, {"a", 1, 3}}, types.UpdateBefore, types.UpdateAfter))
		expectRows(t, out.take(), "-D[2,3]", "-U[5,8]", "+U[5,6]", "-U[6,14]", "+U[6,12]",
			"+U[3,4]", "-U[5,6]", "+U[5,9]", "-U[6,12]", "+U[6,15]")
		processOver(t, o, out, overBatch([]overRow{{"a", 1, 4}}, types.Delete)) // unknown
		expectRows(t, out.take())
	})
	t.Run("51 lag", func(t *testing.T) {
		out := &rowCollector{}
		o := openOp(t, NewOver(overSpec(OverByRowtime, 1, running(false), overLag(2, 1))), newSubtask(t, 1<<20))
		processOver(t, o, out, overBatch([]overRow{{"a", 1, 7}, {"a", 2, 8}, {"a", 3, -1}, {"a", 4, 9}}))
		advanceOver(t, o, out, 1)
		expectRows(t, out.take(), "+I[7,NULL]")
		advanceOver(t, o, out, 9)
		expectRows(t, out.take(), "+I[8,7]", "+I[NULL,8]", "+I[9,NULL]")
	})
}

func TestOverByValue(t *testing.T) {
	open := func(rows bool, calls ...expr.OverCall) (exec.Operator, *rowCollector) {
		return openOp(t, NewOver(overSpec(OverByValue, 2, running(rows), calls...)), newSubtask(t, 1<<20)), &rowCollector{}
	}
	// Rows of equal value: with RANGE they share what comes out, with ROWS the later one is behind.
	o, out := open(false, overAgg(t, expr.AggCountStar, -1, false), overRank(expr.OverRank), overRank(expr.OverDenseRank))
	processOver(t, o, out, overBatch([]overRow{{"a", 1, 5}, {"a", 2, 5}, {"a", 1, 3}, {"b", 1, 1}}))
	expectRows(t, out.take(), "+I[5,1,1,1]", "-U[5,1,1,1]", "+U[5,2,1,1]", "+I[5,2,1,1]",
		"+I[3,1,1,1]", "-U[5,2,1,1]", "+U[5,3,2,2]", "-U[5,2,1,1]", "+U[5,3,2,2]", "+I[1,1,1,1]")
	processOver(t, o, out, overBatch([]overRow{{"a", 1, 5}}, types.Delete))
	expectRows(t, out.take(), "-D[5,3,2,2]", "-U[5,3,2,2]", "+U[5,2,2,2]")

	// The first row whose accumulators stay ends a change.
	o, out = open(true, overAgg(t, expr.AggMax, 2, false))
	processOver(t, o, out, overBatch([]overRow{{"a", 1, 1}, {"a", 1, 7}, {"a", 1, 9}, {"a", 1, 3}}))
	expectRows(t, out.take(), "+I[1,1]", "+I[7,7]", "+I[9,9]", "+I[3,3]")
	o, out = open(true, overAgg(t, expr.AggMax, 3, false))
	processOver(t, o, out, overBatch([]overRow{{"a", 1, -1}, {"a", 1, 7}, {"a", 1, 3}}))
	expectRows(t, out.take(), "+I[NULL,NULL]", "+I[7,s7]", "+I[3,s3]")
}

// naiveOver computes calls SUM(v), COUNT(v), MIN(v), MAX(s), COUNT(DISTINCT v) for every row.
func naiveOver(rows []overRow, f expr.Frame) []string {
	sorted := slices.Clone(rows)
	slices.SortStableFunc(sorted, func(a, b overRow) int { return int(a.ts - b.ts) })
	var out []string
	for i, r := range sorted {
		sum, n, lo, hi := int64(0), 0, int64(-1), ""
		seen := map[int64]bool{}
		held := int64(0)
		for j := len(sorted) - 1; j >= 0; j-- {
			x := sorted[j]
			if x.k != r.k || f.Rows && j > i || !f.Rows && x.ts > r.ts {
				continue
			}
			if !f.Running() && (f.Rows && held > -f.Lo || !f.Rows && x.ts < r.ts+f.Lo) {
				continue
			}
			held++
			if x.v < 0 {
				continue
			}
			sum, n, seen[x.v] = sum+x.v, n+1, true
			if lo < 0 || x.v < lo {
				lo = x.v
			}
			hi = max(hi, fmt.Sprint("s", x.v))
		}
		res := fmt.Sprintf("%d|%d|%d|%s|%d", sum, n, lo, hi, len(seen))
		if n == 0 {
			res = "NULL|0|NULL|NULL|0"
		}
		out = append(out, fmt.Sprintf("%s@%d=%d: %s", r.k, r.ts, r.v, res))
	}
	slices.Sort(out)
	return out
}

func TestOverRandom(t *testing.T) {
	frames := []expr.Frame{running(true), running(false), {Rows: true, Lo: -3}, {Rows: true}, {Lo: -5}, {Lo: 0}}
	for seed := range int64(40) {
		f := frames[int(seed)%len(frames)]
		r := rand.New(rand.NewSource(seed))
		budget := int64(1 << 20)
		if seed%2 == 1 {
			budget = 1 << 12
		}
		s, out := newSubtask(t, budget), &rowCollector{}
		spec := overSpec(OverByRowtime, 1, f, overAgg(t, expr.AggSum, 2, false), overAgg(t, expr.AggCount, 2, false),
			overAgg(t, expr.AggMin, 2, false), overAgg(t, expr.AggMax, 3, false), overAgg(t, expr.AggCount, 2, true))
		o := openOp(t, NewOver(spec), s)
		var all []overRow
		low := int64(1)
		for range 30 {
			var rows []overRow
			for range r.Intn(20) {
				rows = append(rows, overRow{string(rune('a' + r.Intn(3))), low + r.Int63n(12), r.Int63n(6) - 1})
			}
			all = append(all, rows...)
			processOver(t, o, out, overBatch(rows))
			if r.Intn(2) == 0 {
				low += r.Int63n(8)
				advanceOver(t, o, out, low-1)
			}
		}
		advanceOver(t, o, out, int64(exec.MaxWatermark))
		var got []string
		last := ""
		for _, x := range out.take() {
			p := strings.Split(x, "|")
			if p[2] < last {
				t.Fatalf("seed %d: %s after a row of %s", seed, x, last)
			}
			last = p[2]
			v := p[3]
			if v == "NULL" {
				v = "-1"
			}
			var ms int64
			fmt.Sscanf(p[2][len("1970-01-01 00:00:00."):], "%d", &ms)
			got = append(got, fmt.Sprintf("%s@%d=%s: %s", p[1], ms, v, strings.Join(p[5:], "|")))
		}
		slices.Sort(got)
		if want := naiveOver(all, f); !slices.Equal(got, want) {
			for i := range min(len(got), len(want)) {
				if got[i] != want[i] {
					t.Fatalf("seed %d, %s: row %d of %d, %d: got %s, want %s", seed, f, i, len(got), len(want), got[i], want[i])
				}
			}
			t.Fatalf("seed %d: %d rows, want %d", seed, len(got), len(want))
		}
		if !f.Running() && !f.Rows {
			if n := o.(*overTime).core.agg.groups.Len(); n != 0 {
				t.Errorf("seed %d: %d partitions are kept after the end", seed, n)
			}
		}
	}
}

// More rows of one time, and more that leave a frame at once, than are held.
func TestOverManyRows(t *testing.T) {
	const peers, spread = 3*batch.Size + 5, overPlan + 1000
	var rows []overRow
	for range peers {
		rows = append(rows, overRow{"a", 100, 1}, overRow{"b", 100, 1})
	}
	for i := range spread {
		rows = append(rows, overRow{"a", int64(200 + i/7), 1})
	}
	rows = append(rows, overRow{"a", 90_000, 1})
	for _, f := range []expr.Frame{running(false), running(true), {Lo: -50_000}, {Rows: true, Lo: -3}} {
		s, out := newSubtask(t, 64<<10), &rowCollector{}
		o := openOp(t, NewOver(overSpec(OverByRowtime, 1, f, overAgg(t, expr.AggSum, 2, false), overAgg(t, expr.AggCount, 2, true))), s)
		for at := 0; at < len(rows); at += batch.Size {
			processOver(t, o, out, overBatch(rows[at:min(at+batch.Size, len(rows))]))
		}
		advanceOver(t, o, out, int64(exec.MaxWatermark))
		got := out.take()
		if len(got) != len(rows) {
			t.Fatalf("%s: %d rows, want %d", f, len(got), len(rows))
		}
		if run := &o.(*overTime).run; cap(run.steps) > 2*overPlan {
			t.Errorf("%s: %d steps were planned at once", f, cap(run.steps))
		}
		seen := map[string]int{}
		for _, r := range got {
			p := strings.Split(r, "|")
			seen[p[1]]++
			n := seen[p[1]]
			last := p[1] == "a" && n == peers+spread+1
			want := n
			switch {
			case f.Rows && !f.Running():
				want = min(n, 4)
			case f.Rows:
			case last && !f.Running():
				want = 1
			case n <= peers:
				want = peers
			case !last: // all rows of its time
				want = peers + min(((n-peers-1)/7+1)*7, spread)
			}
			if p[5] != fmt.Sprint(want) || p[6] != "1" {
				t.Fatalf("%s: row %d of %s has %s, %s, want %d", f, n, p[1], p[5], p[6], want)
			}
		}
		if !f.Running() && !f.Rows {
			if n := o.(*overTime).core.agg.groups.Len(); n != 0 {
				t.Errorf("%s: %d partitions are kept after the end", f, n)
			}
		}
	}
}

// TestOverEndsLists: value lists that a batch leaves empty are gone with it. What refers to them is stale after a barrier.
func TestOverEndsLists(t *testing.T) {
	out := &rowCollector{}
	o := openOp(t, NewOver(overSpec(OverByRowtime, 1, expr.Frame{Rows: true, Lo: -1}, overAgg(t, expr.AggFirst, 2, false))), newSubtask(t, 1<<20)).(*overTime)
	for i := range int64(4) {
		v := i
		if i%2 == 1 {
			v = -1 // NULLs push the only value out of the frame
		}
		processOver(t, o, out, overBatch([]overRow{{"a", 100 + 10*i, v}, {"a", 101 + 10*i, -1}}))
		advanceOver(t, o, out, 105+10*i)
		if len(o.core.agg.lists) == 0 {
			t.Fatal("FIRST_VALUE over a bounded frame keeps no list")
		}
		for _, l := range o.core.agg.lists {
			if n := len(l.m.gone); n > 0 {
				t.Fatalf("%d empty lists are left after row %d", n, i)
			}
		}
	}
	expectRows(t, out.take(), "+I[0,0]", "+I[NULL,0]", "+I[NULL,NULL]", "+I[NULL,NULL]", "+I[2,2]", "+I[NULL,2]", "+I[NULL,NULL]", "+I[NULL,NULL]")
}
