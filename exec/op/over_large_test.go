package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// A partition that is read in parts gives what one in memory gives, for every function and kind of frame.
func TestOverFinalLarge(t *testing.T) {
	frames := []expr.Frame{running(true), running(false), {Rows: true, Lo: -3, Hi: 2}, {Rows: true, Lo: 1, Hi: 4}, {Lo: 0, Hi: expr.UnboundedFollowing},
		{Lo: -2, Hi: 1}, {Lo: expr.UnboundedPreceding, Hi: expr.UnboundedFollowing}, {Rows: true, Lo: -3000, Hi: -1},
		{Lo: -math.MaxInt64, Hi: 0}, {Lo: 1, Hi: math.MaxInt64 - 1}}
	for seed := range uint64(short.Or(4, 2)) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		order := SortKey{Col: 2, Desc: seed%2 == 1, NullsFirst: seed%3 == 0}
		values := []int{5, 100, 100_000}[seed%3]
		var calls []expr.OverCall
		for _, f := range frames {
			for _, c := range []expr.OverCall{overAgg(t, expr.AggSum, 2, false), overAgg(t, expr.AggMin, 2, false), overAgg(t, expr.AggCount, 3, true)} {
				c.Frame = f
				calls = append(calls, c)
			}
		}
		for _, f := range []expr.OverKind{expr.OverRowNumber, expr.OverRank, expr.OverDenseRank} {
			calls = append(calls, overRank(f))
		}
		for _, f := range []expr.OverKind{expr.OverPercentRank, expr.OverCumeDist} {
			c := overRank(f)
			c.Agg.Type = types.DoubleType.NotNull()
			calls = append(calls, c)
		}
		ntile := overRank(expr.OverNtile)
		ntile.Offset = 7
		lead := overLag(3, 2500)
		lead.Func = expr.OverLead
		calls = append(calls, ntile, overLag(2, 1), overLag(2, 3000), lead)
		out := &types.Schema{Columns: slices.Clone(overInput.Columns)}
		for i, c := range calls {
			out.Columns = append(out.Columns, types.Column{Name: fmt.Sprint("w", i), Type: c.Agg.Type})
		}
		spec := OverSpec{Input: overInput, Partition: []int{0}, Calls: calls, Output: out}
		var rows []overRow
		sizes := []int{2*batch.Size + 3, 40, batch.Size, batch.Size + 1}
		for i, n := range sizes {
			for range n {
				rows = append(rows, overRow{string(rune('a' + i)), 1, int64(rnd.IntN(values)) - 1})
			}
		}
		rnd.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		run := func(large int) []string {
			o := openOp(t, NewOverFinal(spec, []SortKey{order}), newSubtask(t, 256<<10)).(*overFinal)
			o.large = large
			for at := 0; at < len(rows); at += batch.Size {
				processOver(t, o, nil, overBatch(rows[at:min(at+batch.Size, len(rows))]))
			}
			c := &rowCollector{}
			advanceOver(t, o, c, int64(exec.MaxWatermark))
			if n := o.rows.roots.Len() + o.rows.nodes.Len(); n != 0 {
				t.Errorf("%d rows of state are left", n)
			}
			for _, a := range o.aggs {
				left := a.core.groups.Len()
				for _, d := range a.core.distinct {
					left += d.table.Len()
				}
				if left != 0 {
					t.Errorf("%d accumulators and values of %s are left", left, a.frame)
				}
			}
			return c.rows
		}
		want, got := run(1<<30), run(100)
		if len(got) != len(rows) || len(want) != len(rows) {
			t.Fatalf("seed %d: %d and %d rows of %d", seed, len(got), len(want), len(rows))
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("seed %d, row %d:\n got %s\nwant %s", seed, i, got[i], want[i])
			}
		}
	}
}
