package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// What patterns match is compared with Flink in tests/flink/testdata/match; here it is that the matches do not depend on
// when rows leave, on restarts, and on where state is.

var matchInput = &types.Schema{Columns: []types.Column{
	{Name: "k", Type: types.StringType}, {Name: "v", Type: types.IntType}, {Name: "ts", Type: types.TimestampOf(types.Timestamp, 3)},
}}

// matchCompare is the condition ref l, op, ref r plus d.
func matchCompare(t testing.TB, op string, l, r int, d string) expr.Expr {
	t.Helper()
	col := func(i int) expr.Expr { return &expr.Column{Index: i, Name: fmt.Sprint("ref", i), T: types.IntType} }
	n, err := expr.NewIntLiteral(d)
	if err != nil {
		t.Fatal(err)
	}
	sum, err := expr.NewBinary("+", col(r), n)
	if err != nil {
		t.Fatal(err)
	}
	x, err := expr.NewBinary(op, col(l), sum)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// matchSpec has the refs A.v, B.v, C.v, FIRST(A.v), SUM(B.v), the time, k and COUNT(B.v).
func matchSpec(skip MatchSkip, within int64, vars ...MatchVariable) MatchSpec {
	value := func(v int, first bool) MatchRef { return MatchRef{Var: v, Col: 1, First: first, Type: types.IntType} }
	arg := &expr.Column{Index: 1, Name: "v", T: types.IntType}
	agg := func(k expr.AggKind, t types.Type) MatchRef {
		return MatchRef{Kind: MatchAgg, Var: 1, Type: t, Arg: arg, Agg: expr.Agg{Kind: k, Arg: -1, Filter: -1, ArgType: types.IntType, Type: t}}
	}
	s := MatchSpec{Input: matchInput, Partition: []int{0}, Time: 2, Pattern: vars, Skip: skip, SkipTo: 1, Within: within,
		Refs: []MatchRef{value(0, false), value(1, false), value(2, false), value(0, true), agg(expr.AggSum, types.IntType),
			{Kind: MatchTime, Var: -1, Type: matchInput.Columns[2].Type}, {Var: -1, Col: 0, Type: types.StringType}, agg(expr.AggCount, types.BigIntType)},
		Output: &types.Schema{}}
	for _, i := range []int{6, 3, 0, 4, 7, 2, 5} {
		c := types.Column{Name: fmt.Sprint("c", i), Type: s.Refs[i].Type}
		s.Output.Columns = append(s.Output.Columns, c)
		s.Results = append(s.Results, &expr.Column{Index: i, Name: c.Name, T: c.Type})
	}
	return s
}

func matchVar(name string, low, high int, reluctant bool, cond expr.Expr) MatchVariable {
	return MatchVariable{Name: name, Min: low, Max: high, Reluctant: reluctant, Cond: cond}
}

func TestMatchRandom(t *testing.T) {
	plain := func(op string, own int, d string) expr.Expr { // a condition of the row alone: ref own against itself
		return matchCompare(t, op, own, own, d)
	}
	specs := map[string]MatchSpec{
		"greedy": matchSpec(SkipPastLastRow, 0, matchVar("A", 1, 1, false, nil),
			matchVar("B", 1, -1, false, matchCompare(t, "<", 1, 0, "0")), matchVar("C", 1, 1, false, matchCompare(t, ">", 2, 0, "1"))),
		"held": matchSpec(SkipToNextRow, 9, matchVar("A", 1, 1, false, nil),
			matchVar("B", 1, -1, true, nil), matchVar("C", 1, 1, false, matchCompare(t, ">", 2, 0, "4"))),
		"times": matchSpec(SkipToLast, 40, matchVar("A", 2, 3, true, plain("<", 0, "1")),
			matchVar("B", 1, 2, true, matchCompare(t, ">", 1, 0, "0")), matchVar("C", 1, 1, false, matchCompare(t, "<", 2, 4, "2"))),
		"optional": matchSpec(SkipToNextRow, 0, matchVar("A", 1, 1, false, nil),
			matchVar("B", 0, 1, false, matchCompare(t, ">", 1, 3, "0")), matchVar("C", 1, 1, false, matchCompare(t, "<", 2, 0, "0"))),
	}
	for name, spec := range specs {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(short.Or(6, 2)) {
				rows := matchRows(rand.New(rand.NewPCG(seed, 1)), 400)
				want := matchAll(t, spec, rows, 1<<30, nil)
				if len(want) == 0 {
					t.Fatal("nothing matches: the test shows nothing")
				}
				got := matchAll(t, spec, rows, 1<<14, rand.New(rand.NewPCG(seed, 2)))
				if !slices.Equal(got, want) {
					t.Fatalf("seed %d: with restarts\n%s\nwithout\n%s", seed, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			}
		})
	}
}

// matchRow is a row of the input.
type matchRow struct {
	key   string
	v, at int64
}

func matchRows(r *rand.Rand, n int) []matchRow {
	var rows []matchRow
	at := int64(1)
	for range n {
		at += r.Int64N(3)
		rows = append(rows, matchRow{string("abcd"[r.IntN(4)]), r.Int64N(8), at})
	}
	return rows
}

// matchAll matches rows; with r the watermark follows them closely, and the operator is restarted now and then.
func matchAll(t *testing.T, spec MatchSpec, rows []matchRow, budget int64, r *rand.Rand) []string {
	t.Helper()
	o := newTimedOp(t, NewMatch(spec), budget)
	var all []string
	take := func() {
		all = append(all, o.out.rows...)
		o.out.rows = nil
	}
	b := batch.NewBuilder(matchInput)
	put := func() {
		if err := o.op.Process(0, b.Finish(), &o.out); err != nil {
			t.Fatal(err)
		}
		b.Reset()
	}
	for i, x := range rows {
		b.Cols[0].AppendStr(x.key)
		b.Cols[1].AppendI64(x.v)
		b.Cols[2].AppendI64(x.at * 1000)
		b.RowDone()
		if r == nil || r.IntN(4) > 0 {
			continue
		}
		put()
		if i+1 < len(rows) && rows[i+1].at > x.at {
			if err := o.op.OnWatermark(exec.Watermark(x.at), &o.out); err != nil {
				t.Fatal(err)
			}
			take()
		}
		if r.IntN(20) == 0 {
			o.restart()
		}
	}
	put()
	if err := o.op.OnWatermark(exec.MaxWatermark, &o.out); err != nil {
		t.Fatal(err)
	}
	take()
	slices.SortStableFunc(all, func(a, b string) int { return strings.Compare(a[3:4], b[3:4]) })
	return all
}

// Once no match can go on, nothing of a partition is kept.
func TestMatchForgets(t *testing.T) {
	spec := matchSpec(SkipPastLastRow, 5, matchVar("A", 1, 1, false, nil), matchVar("B", 1, -1, true, nil),
		matchVar("C", 1, 1, false, matchCompare(t, ">", 2, 0, "1")))
	sub := newSubtask(t, 1<<30)
	o := openOp(t, NewMatch(spec), sub).(*match)
	b := batch.NewBuilder(matchInput)
	for i := range int64(100) {
		b.Cols[0].AppendStr(fmt.Sprint("key", i%7))
		b.Cols[1].AppendI64(i % 3)
		b.Cols[2].AppendI64(i * 1000)
		b.RowDone()
	}
	var out rowCollector
	if err := o.Process(0, b.Finish(), &out); err != nil {
		t.Fatal(err)
	}
	for _, w := range []exec.Watermark{50, 104} {
		if err := o.OnWatermark(w, &out); err != nil {
			t.Fatal(err)
		}
		kept := 0
		if err := o.runs.scan(func(_, _, _ []byte) bool { kept++; return true }); err != nil {
			t.Fatal(err)
		}
		kept += int(o.rows.log.table.Len())
		if (w == 50) != (kept > 0) {
			t.Errorf("at %d %d entries are kept", w, kept)
		}
	}
}

func TestMatchDamagedState(t *testing.T) {
	spec := matchSpec(SkipPastLastRow, 0, matchVar("A", 1, 1, false, nil), matchVar("B", 1, 1, false, nil), matchVar("C", 1, 1, false, nil))
	m, err := newMatcher(newSubtask(t, 1<<30), &spec)
	if err != nil {
		t.Fatal(err)
	}
	m.runs = matchRuns{next: 7, partial: runQueue{{state: 2, start: 5, since: -3, counts: []int32{1, 1, 0}}, {state: m.auto.start, start: unstarted, counts: []int32{0, 0, 0}}}}
	good := m.encode(nil)
	var runs matchRuns
	if err := m.load(&runs, good); err != nil || runs.next != 7 || len(runs.partial) != 2 || runs.partial[0].rows() != 2 || runs.partial[0].since != -3 || runs.partial[1].started() {
		t.Fatalf("%v %+v", err, runs)
	}
	for i := range good {
		if err := m.load(&runs, good[:i]); err == nil {
			t.Errorf("the first %d bytes are taken for the whole", i)
		}
	}
	if err := m.load(&runs, append(slices.Clone(good), 0)); err == nil {
		t.Error("bytes too many are ignored")
	}
}
