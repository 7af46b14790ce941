package planner

import (
	"slices"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// aboveExpand puts a processing-time window function below grouping sets above them, where aggregation a can take it in, so
// that no window is carried in columns. Each copy of a row then reads the clock itself: at the end of a window two copies of one row can
// fall on different sides. nil when something between reads the window's columns.
func aboveExpand(a *Aggregate, tvf *WindowTVF) *Aggregate {
	top, _ := a.In.(*Calc)
	below := a.In
	if top != nil {
		below = top.In
	}
	x, ok := below.(*Expand)
	if !ok || tvf.Window.Kind == op.Session {
		return nil
	}
	bottom, _ := x.In.(*Calc)
	if bottom == nil {
		bottom = passingCalc(x.In)
	}
	if bottom.In != Node(tvf) {
		return nil
	}
	in := tvf.In.Fields()
	rows, at, ok := withoutWindow(bottom, x, len(in))
	if !ok {
		return nil
	}
	time := slices.IndexFunc(rows.Exprs, func(e expr.Expr) bool {
		c, ok := e.(*expr.Column)
		return ok && c.Index == tvf.Window.Time
	})
	if time < 0 || !x.keeps(slices.Index(at, time)) {
		time = len(rows.Exprs)
		rows.Exprs, rows.Names = append(rows.Exprs, col(in, tvf.Window.Time)), append(rows.Names, in[tvf.Window.Time].Name)
	}
	sets := &Expand{In: mergeCalc(rows), IDs: x.IDs}
	for _, nulls := range x.Nulls {
		var moved []int
		for _, c := range nulls {
			moved = append(moved, at[c])
		}
		slices.Sort(moved)
		sets.Nulls = append(sets.Nulls, moved)
	}
	w := *tvf
	w.In, w.Window = sets, tvf.Window
	w.Window.Time = time
	return onTop(a, top, x, &w, at, len(rows.Exprs))
}

// passingCalc gives out the columns of n as they are.
func passingCalc(n Node) *Calc {
	f := n.Fields()
	c := &Calc{In: n, Names: fieldNames(f)}
	for i := range f {
		c.Exprs = append(c.Exprs, col(f, i))
	}
	return c
}

// withoutWindow is Calc c, which stands between a window function over width columns and x, over the input of that function. at gives
// the places of c's columns in it, -1-i for column i of the window's.
func withoutWindow(c *Calc, x *Expand, width int) (rows *Calc, at []int, ok bool) {
	if c.Cond != nil && !below(c.Cond, width) {
		return nil, nil, false
	}
	rows = &Calc{In: c.In.(*WindowTVF).In, Cond: c.Cond}
	for i, e := range c.Exprs {
		if r, ok := e.(*expr.Column); ok && r.Index >= width {
			if !x.keeps(i) {
				return nil, nil, false
			}
			at = append(at, width-1-r.Index)
			continue
		}
		if !below(e, width) {
			return nil, nil, false
		}
		at = append(at, len(rows.Exprs))
		rows.Exprs, rows.Names = append(rows.Exprs, e), append(rows.Names, c.Names[i])
	}
	return rows, at, true
}

// onTop is the aggregation over w, whose columns are width of its rows, the id of the copy and the window's, in the places where top had
// those of x.
func onTop(a *Aggregate, top *Calc, x *Expand, w *WindowTVF, at []int, width int) *Aggregate {
	if top == nil {
		top = passingCalc(x)
	}
	out := w.Fields()
	by := make([]expr.Expr, 0, len(at)+1)
	for _, c := range at {
		if c < 0 {
			c = width - c // behind the id
		}
		by = append(by, col(out, c))
	}
	by = append(by, col(out, width))
	c := &Calc{In: w, Names: top.Names}
	for _, e := range top.Exprs {
		c.Exprs = append(c.Exprs, substitute(e, by))
	}
	if top.Cond != nil {
		c.Cond = substitute(top.Cond, by)
	}
	moved := *a
	moved.In = c
	return &moved
}
