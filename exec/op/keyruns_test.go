package op

// Goal: stretches of rows with equal keys are combined as other rows are. Method: two phases against one over random stretches, with and without
// windows, filters, NULL, selections and constant columns; and one phase by stretches against one by rows.

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
)

// runsSchema has two key columns, a time, a number and a filter.
var runsSchema = types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "j", Type: types.BigIntType},
	types.Column{Name: "ts", Type: timedSchema.Columns[1].Type}, types.Column{Name: "v", Type: types.BigIntType}, types.Column{Name: "f", Type: types.BoolType})

func runsAggs(distinct bool) (aggs []expr.Agg) {
	for _, filter := range []int{-1, 4} {
		add := func(kind expr.AggKind, arg int, distinct bool) {
			aggs = append(aggs, expr.Agg{Kind: kind, Arg: arg, ArgType: types.BigIntType, Filter: filter, Distinct: distinct, Type: types.BigIntType,
				Text: fmt.Sprint(kind, arg, filter, distinct)})
		}
		add(expr.AggCountStar, -1, false)
		for _, kind := range []expr.AggKind{expr.AggCount, expr.AggSum, expr.AggAvg, expr.AggMin, expr.AggMax} {
			add(kind, 3, false)
		}
		if distinct {
			add(expr.AggCount, 3, true)
		}
	}
	return aggs
}

// runsBatch is a batch of stretches, some of them of one row.
func runsBatch(rnd *rand.Rand) *batch.Batch {
	b := batch.NewBuilder(runsSchema)
	nulls, most, same := rnd.IntN(4), 1+rnd.IntN(30), rnd.IntN(4) == 0
	sel := []int32{}
	for b.Len() < 200 {
		k, j, at := rnd.Int64N(6), rnd.Int64N(3), rnd.Int64N(200)
		for range 1 + rnd.IntN(most) {
			if b.Cols[0].AppendI64(k); !same {
				b.Cols[1].AppendI64(j)
			}
			b.Cols[2].AppendI64(at * 1000)
			if b.Cols[3].AppendI64(rnd.Int64N(40) - 20); nulls == 1 && rnd.IntN(3) == 0 {
				b.Cols[3].Nullify(b.Len())
			}
			b.Cols[4].AppendBool(rnd.IntN(2) == 0)
			if nulls == 2 && j == 0 && !same {
				b.Cols[1].Nullify(b.Len())
			}
			if rnd.IntN(3) > 0 {
				sel = append(sel, int32(b.Len()))
			}
			b.RowDone()
		}
	}
	if same {
		b.Cols[1].AppendConst(b.Len())
		b.Cols[1].I64[0] = 7
	}
	in := b.Finish()
	if rnd.IntN(2) == 0 && len(sel) > 0 {
		in.Sel = sel
	}
	return in
}

func TestLocalRuns(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		timed := seed%2 == 1
		aggs := runsAggs(!timed)
		out := types.NewSchema(runsSchema.Columns[0], runsSchema.Columns[1])
		for _, a := range aggs {
			out.Columns = append(out.Columns, types.Column{Name: a.Text, Type: types.BigIntType})
		}
		mini := MiniBatch{Size: 1 + rnd.IntN(2000), Latency: 10}
		spec := LocalAggSpec{Input: runsSchema, Keys: []int{0, 1}, Aggs: aggs, Mini: mini, Output: partialSchema(runsSchema)}
		one := GroupAggSpec{Input: runsSchema, Keys: spec.Keys, Aggs: aggs, EmitUpdateBefore: true, Output: out}
		two := one
		two.Input, two.Mini, two.Partial = spec.Output, mini, true
		single, global := NewGroupAggregate(one), NewGroupAggregate(two)
		if timed {
			spec.Window = &Window{Kind: Tumble, Size: 50, Time: 2}
			for range 3 {
				out.Columns = append(out.Columns, runsSchema.Columns[2])
			}
			w := WindowAggSpec{Input: runsSchema, Keys: spec.Keys, Aggs: aggs, Window: *spec.Window, Output: out}
			p := w
			p.Input, p.Partial = spec.Output, true
			single, global = NewWindowAggregate(w), NewWindowAggregate(p)
		}
		whole := newTimedOp(t, single, 1<<20)
		if g, ok := whole.op.(*groupAggregate); ok {
			g.runs.pause = math.MaxInt // it takes row by row
		}
		p := newTwoPhases(t, spec, 1, newTimedOp(t, global, 1<<20))
		for range 8 {
			b := runsBatch(rnd)
			p.must(whole.op.Process(0, b, &whole.out))
			p.must(p.locals[0].Process(0, b, p))
			if p.locals[0].(*localAggregate).runs.pause <= 0 {
				found++
			}
		}
		p.must(whole.op.OnWatermark(exec.MaxWatermark, &whole.out))
		p.watermark(0, exec.MaxWatermark)
		got, want := map[string]int{}, map[string]int{}
		fold(t, want, kinds(whole.out.rows))
		fold(t, got, kinds(p.global.out.rows))
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Fatalf("seed %d:\n got  %v\n want %v", seed, sorted(got), sorted(want))
		}
	}
	if found == 0 {
		t.Error("no batch was taken by its stretches")
	}
}

// Taken by stretches, rows give the same changes, in the same order.
func TestGroupRuns(t *testing.T) {
	found := 0
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 10))
		spec := GroupAggSpec{Input: runsSchema, Keys: []int{0, 1}, Aggs: runsAggs(false), EmitUpdateBefore: true,
			Output: types.NewSchema(runsSchema.Columns[0], runsSchema.Columns[1])}
		for _, a := range spec.Aggs {
			spec.Output.Columns = append(spec.Output.Columns, types.Column{Name: a.Text, Type: types.BigIntType})
		}
		if seed%2 == 1 {
			spec.Mini = MiniBatch{Size: 1 + rnd.IntN(2000), Latency: 10}
		}
		if seed%3 == 1 {
			spec.Place = [][]int{{0}, {1}, {1, 0}}[rnd.IntN(3)]
		}
		runs, rows := newTimedOp(t, NewGroupAggregate(spec), 1<<20), newTimedOp(t, NewGroupAggregate(spec), 1<<20)
		rows.op.(*groupAggregate).runs.pause = math.MaxInt
		for range 8 {
			b := runsBatch(rnd)
			for _, o := range []*timedOp{runs, rows} {
				if err := o.op.Process(0, b, &o.out); err != nil {
					t.Fatal(err)
				}
			}
			if runs.op.(*groupAggregate).runs.pause <= 0 {
				found++
			}
		}
		for _, o := range []*timedOp{runs, rows} {
			if err := o.op.OnWatermark(exec.MaxWatermark, &o.out); err != nil {
				t.Fatal(err)
			}
		}
		if got, want := kinds(runs.out.rows), kinds(rows.out.rows); !slices.Equal(got, want) {
			t.Fatalf("seed %d:\n got  %v\n want %v", seed, got, want)
		}
	}
	if found == 0 {
		t.Error("no batch was taken by its stretches")
	}
}

// Rows of a join, which come key by key, are combined without an allocation.
func TestLocalRunsAllocations(t *testing.T) {
	b := batch.NewBuilder(runsSchema)
	for i := range int64(batch.Size) {
		b.Cols[0].AppendI64(i / 8)
		b.Cols[1].AppendI64(i / 8 % 5)
		b.Cols[2].AppendI64(0)
		b.Cols[3].AppendI64(i * 7 % 1000)
		b.Cols[4].AppendBool(i%3 == 0)
		b.RowDone()
	}
	o := openOp(t, NewLocalAggregate(LocalAggSpec{Input: runsSchema, Keys: []int{0, 1}, Aggs: runsAggs(false), Mini: MiniBatch{Size: 1 << 20},
		Output: partialSchema(runsSchema)}), newSubtask(t, 1<<20))
	allocatesNothing(t, o, b.Finish(), &countRows{})
}
