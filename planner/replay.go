package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// Replayed is something in a statement that can be another when rows are computed again after a failure, and what that
// means for the table written.
type Replayed struct {
	What   string `json:"what"`
	Line   int    `json:"line,omitempty"`
	Column int    `json:"column,omitempty"`
	Why    string `json:"why"`
	Means  string `json:"means"`
}

func (r Replayed) line() string {
	at := ""
	if r.Line > 0 {
		at = fmt.Sprintf(" (%d:%d)", r.Line, r.Column)
	}
	return r.What + at + ": " + r.Why + "; " + r.Means
}

// replayed is the determinism report of one table written: functions of the clock and of chance, processing time, tables that
// are looked up, and orders that leave ties open.
func (plan *Plan) replayed(s SinkPlan, root *phys) []Replayed {
	r := &replayReport{plan: plan, means: replayMeans(s)}
	for _, p := range treeOf(root) {
		var of *tableInfo
		if s, ok := p.op.(*Scan); ok {
			of = s.Info // whose text is another than the statement's
		}
		for _, e := range r.exprs(p) {
			r.calls(e, of)
		}
		r.node(p)
	}
	return r.out
}

// replayMeans is what other values in a replay are to readers of the table.
func replayMeans(s SinkPlan) string {
	switch s.Mode.Delivery {
	case connectors.TwoPhaseCommit:
		return "readers see one of the two, as rows of a checkpoint that did not complete are never shown"
	case connectors.IdempotentUpsert:
		return "readers can have seen the first, and the last one written stays"
	}
	return "readers can see both"
}

type replayReport struct {
	plan  *Plan
	means string
	out   []Replayed
}

func (r *replayReport) add(pos diag.Pos, what, why string) {
	x := Replayed{What: what, Line: pos.Line, Column: pos.Col, Why: why, Means: r.means}
	if !slices.Contains(r.out, x) {
		r.out = append(r.out, x)
	}
}

// exprs are the expressions that p evaluates, as they are written for its identity: every one that decides rows is there.
func (r *replayReport) exprs(p *phys) []expr.Expr {
	o, ok := p.op.(operator)
	if !ok {
		return nil
	}
	var out []expr.Expr
	o.identity(&identity{exprs: &out})
	if s, ok := p.op.(*Scan); ok && !s.Unmarked && s.Info.Watermark != nil {
		out = append(out, s.Info.Watermark)
	}
	return out
}

// calls reports the calls in e; of is the table in whose definition e stands, nil for the statement at hand.
func (r *replayReport) calls(e expr.Expr, of *tableInfo) {
	expr.Walk(e, func(x expr.Expr) bool {
		c, ok := x.(*expr.Call)
		if !ok {
			return true
		}
		pos, what := c.Pos, c.String()
		if of != nil {
			pos, what = of.Pos, what+" in table "+of.Table.Name
		}
		switch {
		case c.Func.Name == "PROCTIME":
			r.add(pos, what, "the clock when the row is processed, so later in a replay")
		case c.Bound.Volatile && c.Func.Category == expr.UserCategory:
			r.add(pos, what, "a Go function that is not deterministic: called again, with another result")
		case c.Bound.Volatile:
			r.add(pos, what, "by chance: another value in a replay")
		case c.Bound.Dynamic && !r.plan.conf.Batch():
			r.add(pos, what, "the clock, so later in a replay")
		case c.Func.Category == expr.UserCategory:
			r.add(pos, what, "a Go function that is taken to be deterministic: if it is not, say so with NonDeterministic; called again")
		}
		return true
	})
}

// node is what the operator itself leaves to the clock or to the order of arrival.
func (r *replayReport) node(p *phys) {
	switch n := p.op.(type) {
	case *LookupJoin:
		r.add(n.Pos, "lookup of "+n.Info.Table.Name, "the table can have other rows by then")
	case *WindowAggregate:
		r.window(p, n.Window)
		r.ordered(p, n.Aggs)
	case *WindowTVF:
		r.window(p, n.Window)
	case *Aggregate:
		r.ordered(p, n.Aggs)
	case *IntervalJoin:
		if n.Interval.Proctime {
			r.add(diag.Pos{}, shortLabel(p)+" by processing time", "rows meet by when they are processed, and can miss each other in a replay")
		}
	case *Over:
		r.over(p, n)
	case *Rank:
		r.rank(p, n)
	}
}

func (r *replayReport) window(p *phys, w window) {
	if w.Proctime && w.Kind != op.Attached {
		r.add(diag.Pos{}, shortLabel(p)+" by processing time", "a row falls into the window of the time it is processed at, so into a later one in a replay")
	}
}

// byArrival are aggregates whose result is decided by the order of their rows.
var byArrival = map[expr.AggKind]bool{expr.AggFirst: true, expr.AggLast: true, expr.AggList: true, expr.AggCollect: true, expr.AggArray: true}

func (r *replayReport) ordered(p *phys, aggs []expr.Agg) {
	for _, a := range aggs {
		if byArrival[a.Kind] {
			r.add(diag.Pos{}, a.Text, "takes rows in the order they arrive in, which among partitions can be another in a replay")
		}
	}
}

func (r *replayReport) over(p *phys, n *Over) {
	in := n.In.Fields()
	switch {
	case n.by() == op.OverByProctime:
		r.add(n.Pos, shortLabel(p)+" by processing time", "rows are in the order they arrive in, which among partitions can be another in a replay")
	case !tieless(p.in[0], n.Partition, n.Order):
		r.add(n.Pos, fmt.Sprintf("%s ORDER BY %s", shortLabel(p), orderText(n.Order, in)), "rows that are equal in it are in the order they arrive in, which can be another in a replay")
	}
}

func (r *replayReport) rank(p *phys, n *Rank) {
	in := n.In.Fields()
	switch {
	case n.arrival():
		r.add(n.Pos, shortLabel(p)+" by arrival", "rows that came first stay, and among partitions others can come first in a replay")
	case !tieless(p.in[0], n.Partition, n.Order):
		r.add(n.Pos, fmt.Sprintf("%s ORDER BY %s", shortLabel(p), orderText(n.Order, in)), "rows that are equal in it are in the order they arrive in, which can be another in a replay")
	}
}

// tieless reports that no two rows of a partition are equal in the order: partition and order hold a key of the input.
func tieless(in *phys, partition []int, order []SortKey) bool {
	cols := slices.Clone(partition)
	for _, k := range order {
		cols = append(cols, k.Col)
	}
	slices.Sort(cols)
	return slices.ContainsFunc(in.keys, func(key []int) bool { return subset(key, slices.Compact(cols)) })
}

// userCalls are the Go functions that are called below root, by name.
func userCalls(root *phys) []string {
	var out []string
	r := &replayReport{}
	for _, p := range treeOf(root) {
		for _, e := range r.exprs(p) {
			expr.Walk(e, func(x expr.Expr) bool {
				if c, ok := x.(*expr.Call); ok && c.Func.Category == expr.UserCategory && !slices.Contains(out, strings.ToUpper(c.Func.Name)) {
					out = append(out, strings.ToUpper(c.Func.Name))
				}
				return true
			})
		}
	}
	return out
}
