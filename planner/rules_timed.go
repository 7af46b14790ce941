package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
)

// timed is the node for a join whose rows need not wait for ever.
type timed interface {
	Node
	// keepsTime reports whether time attributes of kind t stay in the output.
	keepsTime(t TimeAttr) bool
}

// timedJoins recognise joins whose rows need not wait for ever: each gives the node for a Join that is of its kind, or
// nil. Keys are out of the condition, and what reads one side is below.
func timedJoins() []func(*Join) timed {
	return []func(*Join) timed{windowJoin, intervalJoin}
}

// timedJoin is the node for a join that event time bounds, nil for a regular join.
func timedJoin(n *Join) timed {
	for _, f := range timedJoins() {
		if x := f(n); x != nil {
			return x
		}
	}
	return nil
}

// recogniseJoins replaces the joins that event time bounds.
func (o *optimizer) recogniseJoins(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		if j, ok := n.(*Join); ok {
			if x := timedJoin(j); x != nil {
				return x, nil
			}
		}
		return n, nil
	})
}

// timedNode is what recogniseJoins will make of n, as it is bound; nil = n stays.
func (n *Join) timedNode() timed {
	hasTime := func(f Field) bool { return f.Time != NoTime }
	if !slices.ContainsFunc(n.L.Fields(), hasTime) || !slices.ContainsFunc(n.R.Fields(), hasTime) {
		return nil
	}
	x, err := n.sink().keyed()
	if p, ok := x.(*Project); ok {
		x = p.In
	}
	j, ok := x.(*Join)
	if err != nil || !ok {
		return nil
	}
	return timedJoin(j)
}

// where is in filtered by c. A condition that makes a join below one that event time bounds goes into it at once: what
// stands above then finds the time attributes it may use.
func where(in Node, c expr.Expr) Node {
	moved, stay := in, []expr.Expr(nil)
	for _, x := range expr.Conjuncts(c) {
		y, ok := moved, false
		if below(x, len(in.Fields())) { // else it has columns of a query around this one
			y, ok = pushOne(moved, x)
		}
		if ok {
			moved = y
		} else {
			stay = append(stay, x)
		}
	}
	if timedCount(moved) == timedCount(in) {
		return &Filter{In: in, Cond: c}
	}
	if stay == nil {
		return moved
	}
	return &Filter{In: moved, Cond: expr.And(stay...)}
}

// timedCount is the number of joins in n that event time bounds.
func timedCount(n Node) int {
	count := 0
	if j, ok := n.(*Join); ok && j.timedNode() != nil {
		count++
	}
	for _, in := range n.Inputs() {
		count += timedCount(in)
	}
	return count
}
