package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// checkWatermarkUse refuses CURRENT_WATERMARK where the plan computes it in a join: only what computes columns or filters
// rows of one input knows the watermark that its rows came under.
func checkWatermarkUse(p *phys) error {
	for _, e := range joinExprs(p.op) {
		if e == nil {
			continue
		}
		var found *expr.Call
		expr.Walk(e, func(x expr.Expr) bool {
			if found == nil && expr.IsWatermark(x) {
				found = x.(*expr.Call)
			}
			return found == nil
		})
		if found != nil {
			return watermarkOfJoin(found.Pos)
		}
	}
	for _, in := range p.in {
		if err := checkWatermarkUse(in); err != nil {
			return err
		}
	}
	return nil
}

// steadyButWatermark reports that c gives equal results for equal rows, but for CURRENT_WATERMARK.
func steadyButWatermark(c expr.Expr) bool {
	steady := true
	expr.Walk(c, func(x expr.Expr) bool {
		if f, ok := x.(*expr.Call); ok && !expr.IsWatermark(x) && (f.Bound.Volatile || f.Bound.Dynamic) {
			steady = false
		}
		return steady
	})
	return steady
}

// passesWatermark reports a node below which CURRENT_WATERMARK is what Flink means above it: a join's condition on one side
// is one on the rows that come to it.
func passesWatermark(n Node) bool {
	switch n.(type) {
	case *Join, *TemporalJoin, *LookupJoin, *Project, *Filter:
		return true
	}
	return false
}

// joinExprs are what a join computes, nil for other nodes.
func joinExprs(n Node) []expr.Expr {
	switch n := n.(type) {
	case *Join:
		return []expr.Expr{n.Cond}
	case *IntervalJoin:
		return []expr.Expr{n.Cond}
	case *WindowJoin:
		return []expr.Expr{n.Cond}
	case *TemporalJoin:
		return []expr.Expr{n.Cond}
	case *LookupJoin:
		return []expr.Expr{n.Cond, n.Ask}
	}
	return nil
}

func watermarkOfJoin(pos diag.Pos) error {
	return diag.New(diag.Unsupported, pos, "CURRENT_WATERMARK cannot be used in a condition on both sides of a join").
		WithDetail("a join waits with rows of one side for the other, so there is no watermark they came under").
		WithHint("compute it below the join: JOIN (SELECT *, CURRENT_WATERMARK(ts) AS wm FROM t) AS t ON ...")
}

// dropWatermarks tells the scans above which nothing acts on event time to make no watermark: it need not be computed, the
// columns it is made of need not be read, and operators that let no watermark overtake their rows wait with them.
func (o *optimizer) dropWatermarks(n Node) (Node, error) { return dropWatermarks(n, false), nil }

// dropWatermarks does so below n; used reports that something above n acts on event time.
func dropWatermarks(n Node, used bool) Node {
	if s, ok := n.(*Scan); ok {
		if used || s.Info.Rowtime < 0 {
			return s
		}
		c := *s
		c.Unmarked = true
		return &c
	}
	in := n.Inputs()
	if len(in) == 0 {
		return n
	}
	used = used || !ignoresWatermark(n)
	out := make([]Node, len(in))
	for i, x := range in {
		out[i] = dropWatermarks(x, used)
	}
	return n.withInputs(out)
}

// ignoresWatermark reports that n does the same whatever the watermark is, before it ends. Nodes it does not know may not.
func ignoresWatermark(n Node) bool {
	switch n := n.(type) {
	case *Sink, *Union, *Expand, *Aggregate, *Join, *LookupJoin:
		return true
	case *Filter:
		return !readsWatermark(n.Cond)
	case *Project:
		return !readsWatermark(n.Exprs...)
	case *Calc:
		return !readsWatermark(n.Cond) && !readsWatermark(n.Exprs...)
	case *Unnest:
		return !readsWatermark(n.Arg)
	case *Correlate:
		return !readsWatermark(n.Call.Args...)
	case *Rank: // the first row by event time waits for the watermark
		return !slices.ContainsFunc(n.Order, func(k SortKey) bool { return !k.Desc && n.In.Fields()[k.Col].Time == Rowtime })
	}
	return false
}

// readsWatermark reports a CURRENT_WATERMARK in one of es, of which some may be nil.
func readsWatermark(es ...expr.Expr) bool {
	found := false
	for _, e := range es {
		if e != nil {
			expr.Walk(e, func(x expr.Expr) bool { found = found || expr.IsWatermark(x); return !found })
		}
	}
	return found
}
