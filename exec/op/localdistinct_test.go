package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// distinctModel counts different values, and all the rest that shares words of a row, by definition.
type distinctModel struct {
	aggs   []expr.Agg
	groups map[string]*modelGroup
}

type modelGroup struct {
	rows   int
	values []map[string]int // of each aggregate, the values it has seen
	sums   []int64
}

// add takes a row of cells, "" = NULL.
func (m *distinctModel) add(cells []string) {
	g := m.groups[cells[0]]
	if g == nil {
		g = &modelGroup{sums: make([]int64, len(m.aggs))}
		for range m.aggs {
			g.values = append(g.values, map[string]int{})
		}
		m.groups[cells[0]] = g
	}
	g.rows++
	for k, a := range m.aggs {
		switch {
		case a.Filter >= 0 && cells[a.Filter] != "true":
		case a.Arg < 0:
			g.values[k]["row"]++
		case cells[a.Arg] != "":
			g.values[k][cells[a.Arg]]++
			n := int64(0)
			fmt.Sscan(cells[a.Arg], &n)
			g.sums[k] += n
		}
	}
}

// table are the rows of the result as collected rows are written.
func (m *distinctModel) table() (rows []string) {
	for key, g := range m.groups {
		cols := []string{key}
		for k, a := range m.aggs {
			n, sum := 0, g.sums[k]
			for _, c := range g.values[k] {
				n += c
			}
			switch {
			case a.Distinct:
				cols = append(cols, fmt.Sprint(len(g.values[k])))
			case a.Kind == expr.AggCount || a.Kind == expr.AggCountStar:
				cols = append(cols, fmt.Sprint(n))
			case n == 0:
				cols = append(cols, "-")
			case a.Kind == expr.AggAvg:
				cols = append(cols, fmt.Sprint(sum/int64(n)))
			default:
				cols = append(cols, fmt.Sprint(sum))
			}
		}
		row := ""
		for j, c := range cols {
			row += string(" @:"[j%3]) + c
		}
		rows = append(rows, row[1:]+" x1")
	}
	slices.Sort(rows)
	return rows
}

// distinctAggs are COUNT(DISTINCT) of columns 1 to 4 with and without the filters of columns 5 and 6, more of column 1 than
// share a set, and aggregates that share their words.
func distinctAggs(s *types.Schema) (aggs []expr.Agg) {
	add := func(kind expr.AggKind, arg, filter int, distinct bool) {
		a := expr.Agg{Kind: kind, Arg: arg, Filter: filter, Distinct: distinct, Type: types.BigIntType, Text: fmt.Sprint(kind, arg, filter, distinct, len(aggs))}
		if arg >= 0 {
			a.ArgType = s.Columns[arg].Type
		}
		aggs = append(aggs, a)
	}
	for arg := 1; arg <= 4; arg++ {
		for _, filter := range []int{-1, 5, 6} {
			add(expr.AggCount, arg, filter, true)
		}
	}
	for i := range maxBits {
		add(expr.AggCount, 1, 5+i%2, true)
	}
	for _, filter := range []int{-1, 5} {
		add(expr.AggCountStar, -1, filter, false)
		add(expr.AggAvg, 1, filter, false)
		add(expr.AggSum, 1, filter, false)
		add(expr.AggCount, 1, filter, false)
	}
	return aggs
}

// TestLocalDistinct: the folded changelog of COUNT(DISTINCT) in two phases is what counting by definition gives, whatever is
// combined, passed on or filtered before.
func TestLocalDistinct(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.StringType}, types.Column{Name: "i", Type: types.BigIntType},
		types.Column{Name: "t", Type: types.StringType}, types.Column{Name: "d", Type: types.DecimalOf(30, 0)},
		types.Column{Name: "b", Type: types.BoolType}, types.Column{Name: "f", Type: types.BoolType}, types.Column{Name: "g", Type: types.BoolType})
	aggs := distinctAggs(s)
	out := &types.Schema{Columns: []types.Column{s.Columns[0]}}
	for _, a := range aggs {
		out.Columns = append(out.Columns, types.Column{Name: a.Text, Type: types.BigIntType})
	}
	for seed := range uint64(short.Or(12, 4)) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		mini := MiniBatch{Size: 1 + rnd.IntN(60), Latency: 10}
		spec := LocalAggSpec{Input: s, Keys: []int{0}, Aggs: aggs, Mini: mini, Output: partialSchema(s)}
		agg := GroupAggSpec{Input: spec.Output, Keys: []int{0}, Aggs: aggs, EmitUpdateBefore: true, Output: out, Mini: mini, Partial: true}
		p := newTwoPhases(t, spec, 2, newTimedOp(t, NewGroupAggregate(agg), 1<<20))
		m := &distinctModel{aggs: aggs, groups: map[string]*modelGroup{}}
		for step := range 30 {
			b := distinctBatch(rnd, s, m)
			i := rnd.IntN(2)
			if rnd.IntN(6) == 0 {
				p.locals[i].(*localAggregate).skip = 1
			}
			p.must(p.locals[i].Process(0, b, p))
			if step%10 == 9 {
				p.restart()
			}
		}
		got := map[string]int{}
		fold(t, got, kinds(p.global.out.rows))
		if want := m.table(); !slices.Equal(sorted(got), want) {
			t.Fatalf("seed %d:\n got  %v\n want %v", seed, strings.Join(sorted(got), "\n      "), strings.Join(want, "\n      "))
		}
	}
}

// distinctBatch is a batch of random rows, some with a selection, which the model gets too.
func distinctBatch(rnd *rand.Rand, s *types.Schema, m *distinctModel) *batch.Batch {
	nulls, keys := rnd.IntN(2) > 0, 1+rnd.IntN(3)
	b := batch.NewBuilder(s)
	sel := []int32{}
	whole := rnd.IntN(2) > 0
	for r := range 1 + rnd.IntN(80) {
		cells := []string{string(rune('a' + rnd.IntN(keys)))}
		b.Cols[0].AppendStr(cells[0])
		for _, c := range b.Cols[1:] {
			x := rnd.Int64N(12)
			switch p := c.Type.Phys(); {
			case nulls && rnd.IntN(5) == 0:
				cells = append(cells, "")
				c.AppendNull()
				continue
			case p == types.PhysI64:
				c.AppendI64(x)
			case p == types.PhysStr:
				c.AppendStr(fmt.Sprint(x))
			case p == types.PhysI128:
				c.AppendI128(types.Int128{Lo: uint64(x), Hi: x})
			default:
				c.AppendBool(x < 6)
				cells = append(cells, fmt.Sprint(x < 6))
				continue
			}
			cells = append(cells, fmt.Sprint(x))
		}
		b.RowDone()
		if whole || rnd.IntN(3) > 0 {
			sel = append(sel, int32(r))
			m.add(cells)
		}
	}
	in := b.Finish()
	if !whole {
		in.Sel = sel
	}
	return in
}

// COUNT(DISTINCT) before the exchange allocates nothing for a row in the steady state.
func TestLocalDistinctAllocations(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "day", Type: types.StringType}, types.Column{Name: "a", Type: types.BigIntType},
		types.Column{Name: "cheap", Type: types.BoolType})
	b := batch.NewBuilder(s)
	for i := range int64(batch.Size) {
		b.Cols[0].AppendStr("2026-11-30")
		b.Cols[1].AppendI64(i % 300)
		b.Cols[2].AppendBool(i%3 == 0)
		b.RowDone()
	}
	in, out := b.Finish(), &countRows{}
	count := expr.Agg{Kind: expr.AggCount, Arg: 1, ArgType: types.BigIntType, Filter: -1, Distinct: true, Type: types.BigIntType}
	some := count
	some.Filter = 2
	o := openOp(t, NewLocalAggregate(LocalAggSpec{Input: s, Keys: []int{0}, Aggs: []expr.Agg{count, some}, Mini: MiniBatch{Size: 1 << 20}, Output: partialSchema(s)}), newSubtask(t, 1<<20))
	allocatesNothing(t, o, in, out)
}
