package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// rule rewrites a logical plan into an equal one.
type rule struct {
	name  string
	apply func(o *optimizer, n Node) (Node, error)
}

// rules are applied once each, in this order.
var rules = []rule{
	{"fold-constants", (*optimizer).foldConstants},
	{"push-filters", (*optimizer).pushFilters},
	{"join-conditions", (*optimizer).joinConditions},
	{"as-of-joins", (*optimizer).asOfJoins},
	{"recognise-joins", (*optimizer).recogniseJoins},
	{"merge-calcs", (*optimizer).mergeCalcs},
	{"recognise-ranks", (*optimizer).recogniseRanks},
	{"recognise-windows", (*optimizer).recogniseWindows},
	{"unused-watermarks", (*optimizer).dropWatermarks},
	{"prune-columns", (*optimizer).pruneColumns},
	{"read-fields", (*optimizer).readFields},
	{"place-over", (*optimizer).placeOver},
	{"push-into-scans", (*optimizer).pushIntoScans},
}

// optimizer is what rules may use.
type optimizer struct {
	session expr.Session
	// normalized: changelog sources are normalised by key, so they must deliver every row of a key.
	normalized bool
}

// run applies all rules; trace, if set, sees the plan after each rule.
func (o *optimizer) run(n Node, trace func(rule string, n Node)) (Node, error) {
	for _, r := range rules {
		var err error
		if n, err = r.apply(o, n); err != nil {
			return nil, err
		}
		if trace != nil {
			trace(r.name, n)
		}
	}
	return n, nil
}

// rewrite maps nodes bottom-up.
func rewrite(n Node, f func(Node) (Node, error)) (Node, error) {
	in := n.Inputs()
	out := make([]Node, len(in))
	changed := false
	for i, c := range in {
		x, err := rewrite(c, f)
		if err != nil {
			return nil, err
		}
		out[i] = x
		changed = changed || x != c
	}
	if changed {
		n = n.withInputs(out)
	}
	return f(n)
}

// foldConstants evaluates constant parts and drops filters that are always TRUE; one that never is empties its input.
func (o *optimizer) foldConstants(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		switch n := n.(type) {
		case *Filter:
			c, err := expr.Fold(n.Cond, o.session)
			if err != nil {
				return nil, err
			}
			if l, ok := c.(*expr.Literal); ok {
				if !l.Value.IsNull && l.Value.Bool {
					return n.In, nil
				}
				return &Values{Schema: slices.Clone(n.Fields())}, nil
			}
			return &Filter{In: n.In, Cond: c}, nil
		case *Project:
			p := &Project{In: n.In, Names: n.Names, Exprs: make([]expr.Expr, len(n.Exprs))}
			for i, e := range n.Exprs {
				x, err := expr.Fold(e, o.session)
				if err != nil {
					return nil, err
				}
				p.Exprs[i] = x
			}
			return p, nil
		case folder:
			return n.fold(o)
		}
		return n, nil
	})
}

// folder is a node with constant parts of its own.
type folder interface {
	fold(o *optimizer) (Node, error)
}

// pushFilters moves filters towards the scans, conjunct by conjunct.
func (o *optimizer) pushFilters(n Node) (Node, error) {
	f, ok := n.(*Filter)
	if !ok {
		in := n.Inputs()
		if len(in) == 0 {
			return n, nil
		}
		out := make([]Node, len(in))
		for i, c := range in {
			x, err := o.pushFilters(c)
			if err != nil {
				return nil, err
			}
			out[i] = x
		}
		return n.withInputs(out), nil
	}
	var stay []expr.Expr
	below := f.In
	for _, c := range expr.Conjuncts(f.Cond) {
		if x, ok := pushOne(below, c); ok {
			below = x
		} else {
			stay = append(stay, c)
		}
	}
	below, err := o.pushFilters(below)
	if err != nil || len(stay) == 0 {
		return below, err
	}
	return &Filter{In: below, Cond: expr.And(stay...)}, nil
}

// pushOne puts conjunct c below n, if that means the same.
func pushOne(n Node, c expr.Expr) (Node, bool) {
	if !expr.IsDeterministic(c) && !(steadyButWatermark(c) && passesWatermark(n)) {
		return nil, false
	}
	if p, ok := n.(filterPusher); ok {
		return p.pushFilter(c)
	}
	return nil, false
}

// filterInput is n with c below it, when c only reads columns of n's one input in, which n passes on in front.
func filterInput(n, in Node, c expr.Expr) (Node, bool) {
	if !below(c, len(in.Fields())) {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(in, c)}), true
}

func addFilter(n Node, c expr.Expr) Node {
	if x, ok := pushOne(n, c); ok {
		return x
	}
	return &Filter{In: n, Cond: c}
}

// below reports that e only reads columns under limit.
func below(e expr.Expr, limit int) bool {
	for _, i := range expr.ColumnsOf(e) {
		if i >= limit {
			return false
		}
	}
	return true
}

// substitute replaces the columns of e by expressions.
func substitute(e expr.Expr, by []expr.Expr) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Index < len(by) { // others are columns of a query around
			return by[c.Index]
		}
		return x
	})
}

// mergeCalcs turns chains of Filter and Project into one Calc each.
func (o *optimizer) mergeCalcs(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) { return mergeCalc(asCalc(n)), nil })
}

// asCalc is a Filter or Project as a Calc; other nodes stay.
func asCalc(n Node) Node {
	switch n := n.(type) {
	case *Filter:
		f := n.In.Fields()
		c := &Calc{In: n.In, Cond: n.Cond, Names: fieldNames(f)}
		for i := range f {
			c.Exprs = append(c.Exprs, col(f, i))
		}
		return c
	case *Project:
		return &Calc{In: n.In, Exprs: n.Exprs, Names: n.Names}
	}
	return n
}

// mergeCalc merges a Calc into the Calc below it, over Values computes rows, and drops one that does nothing.
func mergeCalc(n Node) Node {
	c, ok := n.(*Calc)
	if !ok {
		return n
	}
	if in, ok := c.In.(*Calc); ok && mergeable(c, in) {
		m := &Calc{In: in.In, Names: c.Names, Exprs: make([]expr.Expr, len(c.Exprs)), Own: in.Own}
		for i, e := range c.Exprs {
			m.Exprs[i] = substitute(e, in.Exprs)
		}
		switch {
		case c.Cond == nil:
			m.Cond = in.Cond
		case in.Cond == nil:
			m.Cond = substitute(c.Cond, in.Exprs)
		default:
			m.Cond = expr.And(in.Cond, substitute(c.Cond, in.Exprs))
		}
		c = m
	}
	if c.Cond == nil && passesThrough(c, true) {
		return c.In
	}
	return c
}

// maxMergedNodes bounds the expressions that merging may build by repeating others.
const maxMergedNodes = 20000

// mergeable reports that evaluating in's expressions where c uses them changes nothing: a random value must be drawn
// once, and before the filter above it.
func mergeable(c, in *Calc) bool {
	nodes := 0
	sizes := make([]int, len(in.Exprs))
	for i, e := range in.Exprs {
		if volatile(e) {
			return false
		}
		expr.Walk(e, func(expr.Expr) bool { sizes[i]++; return true })
	}
	count := func(e expr.Expr) {
		expr.Walk(e, func(x expr.Expr) bool {
			nodes++
			if r, ok := x.(*expr.Column); ok {
				nodes += sizes[r.Index]
			}
			return nodes < maxMergedNodes
		})
	}
	for _, e := range c.Exprs {
		count(e)
	}
	if c.Cond != nil {
		count(c.Cond)
	}
	return nodes < maxMergedNodes
}

// volatile reports a call that gives another result each time, such as RAND. The current time is not one: it is the same
// for a whole batch.
func volatile(e expr.Expr) bool {
	found := false
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && c.Bound.Volatile {
			found = true
		}
		return !found
	})
	return found
}

// passesThrough reports a Calc whose output is the columns of its input as they are, with names their names too.
func passesThrough(c *Calc, names bool) bool {
	in := c.In.Fields()
	if len(in) != len(c.Exprs) {
		return false
	}
	for i, e := range c.Exprs {
		r, ok := e.(*expr.Column)
		if !ok || r.Index != i || names && c.Names[i] != in[i].Name {
			return false
		}
	}
	return true
}

// pushIntoScans tells scans the part of the filter above them that a source can apply early; see pushed. The filter stays. An upsert source must see every row of a key, so only conditions on its key go down.
func (o *optimizer) pushIntoScans(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		c, ok := n.(*Calc)
		if !ok || c.Cond == nil {
			return n, nil
		}
		s, ok := c.In.(*Scan)
		if !ok {
			return n, nil
		}
		var down []expr.Expr
		for _, x := range expr.Conjuncts(c.Cond) {
			if o.pushable(s, x) {
				down = append(down, substitute(x, s.stored()))
			}
		}
		if down == nil {
			return n, nil
		}
		scan := *s
		scan.Pushed = expr.And(down...)
		return c.withInputs([]Node{&scan}), nil
	})
}

func (o *optimizer) pushable(s *Scan, x expr.Expr) bool {
	cols := expr.ColumnsOf(x)
	if !expr.IsDeterministic(x) || len(cols) == 0 {
		return false
	}
	for _, i := range expr.ColumnsOf(substitute(x, s.stored())) {
		if _, cast := s.Info.Supplied[i]; cast || s.Info.Computed[i] != nil {
			return false
		}
		key := slices.Contains(s.Info.Table.PrimaryKey, s.Info.Fields[i].Name)
		if (s.Info.Mode == types.Upsert || o.normalized && s.Info.Mode != types.AppendOnly) && !key {
			return false
		}
	}
	return true
}
