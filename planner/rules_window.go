package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
)

// traceWindow finds the window function that column c of n comes from unchanged, and which of its columns it is.
func traceWindow(n Node, c int) (tvf *WindowTVF, column int) {
	for {
		switch x := n.(type) {
		case *Filter:
			n = x.In
		case *Project:
			r, ok := x.Exprs[c].(*expr.Column)
			if !ok {
				return nil, 0
			}
			n, c = x.In, r.Index
		case *Calc:
			r, ok := x.Exprs[c].(*expr.Column)
			if !ok {
				return nil, 0
			}
			n, c = x.In, r.Index
		case *WindowTVF:
			return x, c
		default:
			return nil, 0
		}
	}
}

// windowed reports that the aggregation groups by start and end of one window function, so that its groups end with
// event time (Flink: §3.3 of its window aggregation rule).
func (n *Aggregate) windowed() bool {
	var start, end bool
	for _, k := range n.Keys {
		if tvf, c := traceWindow(n.In, k); tvf != nil {
			w := c - len(tvf.In.Fields())
			start, end = start || w == 0, end || w == 1
		}
	}
	return start && end
}

// fuses reports that recogniseWindows will make a WindowAggregate of n.
func (n *Aggregate) fuses() bool {
	if !n.windowed() {
		return false
	}
	o := &optimizer{}
	x, err := o.mergeCalcs(n)
	if err == nil {
		x, err = o.recogniseWindows(x)
	}
	_, still := x.(*Aggregate)
	return err == nil && !still
}

// recogniseWindows turns an Aggregate by window_start and window_end over a TUMBLE into a WindowAggregate, which fires
// with the watermark and forgets closed windows. A Calc between the two may compute anything from the other columns;
// conditions on the window columns alone move above the aggregate.
func (o *optimizer) recogniseWindows(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		a, ok := n.(*Aggregate)
		if !ok || !a.windowed() {
			return mergeCalc(n), nil
		}
		c, ok := a.In.(*Calc)
		if !ok {
			// The window function directly below: give it the shape of the general case.
			f := a.In.Fields()
			c = &Calc{In: a.In, Names: fieldNames(f)}
			for i := range f {
				c.Exprs = append(c.Exprs, col(f, i))
			}
		}
		tvf, ok := c.In.(*WindowTVF)
		if !ok {
			return n, nil
		}
		if w := fuse(a, c, tvf); w != nil {
			return mergeCalc(w), nil
		}
		return n, nil
	})
}

// fuse builds the WindowAggregate, nil when window columns are used in a way it cannot serve.
func fuse(a *Aggregate, c *Calc, tvf *WindowTVF) Node {
	width := len(tvf.In.Fields())
	isWindow := make([]int, len(c.Exprs)) // 0 = not, else 1 + which window column
	for i, e := range c.Exprs {
		if r, ok := e.(*expr.Column); ok && r.Index >= width {
			isWindow[i] = 1 + r.Index - width
		} else if !below(e, width) {
			return nil
		}
	}
	for _, g := range a.Aggs {
		if g.Arg >= 0 && isWindow[g.Arg] > 0 || g.Filter >= 0 && isWindow[g.Filter] > 0 {
			return nil
		}
	}
	var inside, above []expr.Expr
	if c.Cond != nil {
		for _, x := range expr.Conjuncts(c.Cond) {
			switch {
			case below(x, width):
				inside = append(inside, x)
			case !slices.ContainsFunc(expr.ColumnsOf(x), func(i int) bool { return i < width }) && expr.IsDeterministic(x):
				above = append(above, x)
			default:
				return nil
			}
		}
	}
	return assemble(a, c, tvf, isWindow, expr.And(inside...), above)
}

func assemble(a *Aggregate, c *Calc, tvf *WindowTVF, isWindow []int, inside expr.Expr, above []expr.Expr) Node {
	in := tvf.In.Fields()
	pre := &Calc{In: tvf.In, Cond: inside}
	at := make([]int, len(c.Exprs)) // column of c → column of pre
	for i, e := range c.Exprs {
		if isWindow[i] == 0 {
			at[i] = len(pre.Exprs)
			pre.Exprs, pre.Names = append(pre.Exprs, e), append(pre.Names, c.Names[i])
		}
	}
	w := &WindowAggregate{Names: a.Names, Window: tvf.Window}
	w.Window.Time = slices.IndexFunc(pre.Exprs, func(e expr.Expr) bool {
		r, ok := e.(*expr.Column)
		return ok && r.Index == tvf.Window.Time
	})
	if w.Window.Time < 0 {
		w.Window.Time = len(pre.Exprs)
		pre.Exprs, pre.Names = append(pre.Exprs, col(in, tvf.Window.Time)), append(pre.Names, in[tvf.Window.Time].Name)
	}
	w.In = mergeCalc(pre)
	for _, k := range a.Keys {
		if isWindow[k] == 0 {
			w.Keys = append(w.Keys, at[k])
		}
	}
	for _, g := range a.Aggs {
		if g.Arg >= 0 {
			g.Arg = at[g.Arg]
		}
		if g.Filter >= 0 {
			g.Filter = at[g.Filter]
		}
		w.Aggs = append(w.Aggs, g)
	}
	return restore(a, w, isWindow, len(in), above)
}

// restore projects the WindowAggregate's output back to the Aggregate's: its keys in their order, then the aggregates.
func restore(a *Aggregate, w *WindowAggregate, isWindow []int, width int, above []expr.Expr) Node {
	out, want := w.Fields(), a.Fields()
	bounds := len(w.Keys) + len(w.Aggs) // where window_start stands
	top := &Calc{In: w, Names: fieldNames(want)}
	next := 0
	for _, k := range a.Keys {
		if isWindow[k] > 0 {
			top.Exprs = append(top.Exprs, col(out, bounds+isWindow[k]-1))
			continue
		}
		top.Exprs = append(top.Exprs, col(out, next))
		next++
	}
	for i := range a.Aggs {
		top.Exprs = append(top.Exprs, col(out, len(w.Keys)+i))
	}
	if above != nil {
		m := make([]int, width+3)
		for i := range 3 {
			m[width+i] = bounds + i
		}
		top.Cond = expr.Remap(expr.And(above...), m)
	}
	return top
}
