package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
)

// reuse makes equal window aggregations of a statement one, which all their readers read (Flink's sub-plan reuse): the two
// of Nexmark's q5 then cost the state and the time of one. Only window aggregations are: what they send is decided by
// themselves, +I once per window, and nothing by who reads it.
//
// It comes after distribute, when exchanges and two-phase aggregations are placed, and takes the first of equal ones.
func reuse(roots []*phys) {
	var kept []*phys
	seen := map[*phys]bool{}
	var visit func(p *phys)
	visit = func(p *phys) {
		if seen[p] {
			return
		}
		seen[p] = true
		for i, in := range p.in {
			if _, ok := in.op.(*WindowAggregate); ok {
				k := slices.IndexFunc(kept, func(q *phys) bool { return q == in || sameStream(q, in) })
				if k >= 0 {
					p.in[i], in = kept[k], kept[k]
				} else {
					kept = append(kept, in)
				}
			}
			visit(in)
		}
	}
	for _, r := range roots {
		visit(r)
	}
}

// sameStream reports that a and b send the same rows to whoever reads them: equal operators over equal inputs, whose
// expressions give the same each time.
func sameStream(a, b *phys) bool {
	if a == b {
		return true
	}
	if a.par != b.par || len(a.in) != len(b.in) || a.trait != b.trait || !slices.EqualFunc(a.fields, b.fields, sameField) || !sameOperator(a.op, b.op) {
		return false
	}
	for i := range a.in {
		x, y := a.ship[i], b.ship[i]
		if x.Ship != y.Ship || !slices.Equal(x.Keys, y.Keys) || !sameStream(a.in[i], b.in[i]) {
			return false
		}
	}
	return true
}

func sameField(a, b Field) bool { return a.Name == b.Name && a.Time == b.Time && a.Type.Equal(b.Type) }

// sameOperator compares what two operators do with equal inputs. Operators it does not know are never the same.
func sameOperator(a, b Node) bool {
	switch a := a.(type) {
	case *WindowAggregate:
		b, ok := b.(*WindowAggregate)
		return ok && a.global == b.global && sameGrouping(a.Keys, b.Keys, a.Aggs, b.Aggs, a.Window, b.Window)
	case *localAggregate:
		b, ok := b.(*localAggregate)
		return ok && a.Window != nil && b.Window != nil && sameGrouping(a.Keys, b.Keys, a.Aggs, b.Aggs, *a.Window, *b.Window)
	case *Calc:
		b, ok := b.(*Calc)
		return ok && sameCalc(a, b)
	}
	return false
}

func sameGrouping(aKeys, bKeys []int, aAggs, bAggs []expr.Agg, a, b window) bool {
	sameAgg := func(x, y expr.Agg) bool { return x.Same(&y) && x.Type.Equal(y.Type) && x.ArgType.Equal(y.ArgType) }
	return !a.Proctime && a.same(b) && a.Kind == b.Kind && a.Time == b.Time && a.Start == b.Start && a.End == b.End &&
		slices.Equal(a.Keys, b.Keys) && slices.Equal(aKeys, bKeys) && slices.EqualFunc(aAggs, bAggs, sameAgg)
}

func sameCalc(a, b *Calc) bool {
	same := func(x, y expr.Expr) bool { return expr.IsDeterministic(x) && expr.Equal(x, y) }
	if (a.Cond == nil) != (b.Cond == nil) || a.Cond != nil && !same(a.Cond, b.Cond) {
		return false
	}
	return slices.EqualFunc(a.Exprs, b.Exprs, same)
}
