package planner

import (
	"slices"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// windowOrigin is a node whose output has the window columns.
type windowOrigin interface {
	Node
	// windowAt is the output column of window_start; window_end and window_time follow.
	windowAt() int
	windowSpec() window
	// partition are the output columns that sessions are kept apart by.
	partition() []int
}

func (n *WindowTVF) windowAt() int      { return len(n.In.Fields()) }
func (n *WindowTVF) windowSpec() window { return n.Window }
func (n *WindowTVF) partition() []int   { return n.Window.Keys }

func (n *WindowAggregate) windowAt() int      { return len(n.Keys) + len(n.Aggs) }
func (n *WindowAggregate) windowSpec() window { return n.Window }
func (n *WindowAggregate) partition() []int   { return upTo(0, len(n.Keys)) }

// windowPasser is a node that passes windows on: rows of output keep the window of the input row they are made of, and
// leave before the watermark that ends it. ok is false for a column that is not one of an input unchanged.
type windowPasser interface {
	passWindow(c int) (in Node, col int, ok bool)
}

func (n *Filter) passWindow(c int) (Node, int, bool) { return n.In, c, true }

func (n *Project) passWindow(c int) (Node, int, bool) { return passColumn(n.In, n.Exprs[c]) }
func (n *Calc) passWindow(c int) (Node, int, bool)    { return passColumn(n.In, n.Exprs[c]) }

func passColumn(in Node, e expr.Expr) (Node, int, bool) {
	r, ok := e.(*expr.Column)
	if !ok || r.Index >= subBase { // a column of a query around this one, or a subquery's value, is none of in
		return nil, 0, false
	}
	return in, r.Index, true
}

func (n *Expand) passWindow(c int) (Node, int, bool) { return n.In, c, n.keeps(c) }

// passWindow implements windowPasser: an aggregation by window passes its window on.
func (n *Aggregate) passWindow(c int) (Node, int, bool) {
	if c >= len(n.Keys) || !n.windowed() || n.proctime() {
		return nil, 0, false
	}
	return n.In, n.Keys[c], true
}

// traceWindow finds the node that column c of n comes from unchanged and that has window columns, and the column there.
func traceWindow(n Node, c int) (windowOrigin, int) {
	for {
		if o, ok := n.(windowOrigin); ok {
			return o, c
		}
		p, ok := n.(windowPasser)
		if !ok {
			return nil, 0
		}
		if n, c, ok = p.passWindow(c); !ok {
			return nil, 0
		}
	}
}

// groupWindow is the window an aggregation groups by: the keys that are its start, end and time (-1 = none).
type groupWindow struct {
	origin           windowOrigin
	start, end, time int   // positions in the aggregation's keys
	rest             []int // keys that are something else
}

// window finds the window whose start and end n groups by, so that its groups end with time; ok is false when there is none,
// and the aggregation is an ordinary one (§3.3 of Flink's rules). Sessions have to be kept apart by exactly the other keys.
func (n *Aggregate) window() (g groupWindow, ok bool) {
	g.start, g.end, g.time = -1, -1, -1
	var kept []int // columns of the origin among the other keys
	for i, k := range n.Keys {
		o, c := traceWindow(n.In, k)
		if o == nil || c < o.windowAt() || g.origin != nil && o != g.origin {
			g.rest = append(g.rest, i)
			if o != nil {
				kept = append(kept, c)
			}
			continue
		}
		g.origin = o
		if at := [...]*int{&g.start, &g.end, &g.time}[c-o.windowAt()]; *at < 0 {
			*at = i
		} else {
			g.rest = append(g.rest, i) // a second time
		}
	}
	if g.start < 0 || g.end < 0 {
		return g, false
	}
	if g.origin.windowSpec().kind() == op.Session {
		keys := slices.Clone(g.origin.partition())
		slices.Sort(keys)
		slices.Sort(kept)
		if len(kept) != len(g.rest) || !slices.Equal(keys, slices.Compact(kept)) {
			return g, false
		}
	}
	return g, true
}

// windowed reports that n groups by a window, so that its results are final.
func (n *Aggregate) windowed() bool {
	_, ok := n.window()
	return ok
}

// proctime reports that n groups by a window of the wall clock.
func (n *Aggregate) proctime() bool {
	g, ok := n.window()
	return ok && g.origin.windowSpec().Proctime
}

// fuses reports that recogniseWindows will make a WindowAggregate of n.
func (n *Aggregate) fuses() bool {
	g, ok := n.window()
	if !ok || !g.origin.windowSpec().Proctime {
		return ok
	}
	o := &optimizer{}
	x, err := o.mergeCalcs(n)
	if err == nil {
		x, err = o.recogniseWindows(x)
	}
	_, still := x.(*Aggregate)
	return err == nil && !still
}

// recogniseWindows turns an Aggregate by window_start and window_end into a WindowAggregate, which fires with the
// watermark and forgets closed windows. Where the window function stands directly below, or below a Calc that computes
// anything but from window columns, it becomes part of it; elsewhere the rows' windows are taken from their columns.
func (o *optimizer) recogniseWindows(n Node) (Node, error) {
	n, err := rewrite(n, func(n Node) (Node, error) {
		a, ok := n.(*Aggregate)
		if !ok {
			return mergeCalc(n), nil
		}
		g, ok := a.window()
		if !ok {
			return n, nil
		}
		if tvf, ok := g.origin.(*WindowTVF); ok && tvf.Window.Proctime {
			if moved := aboveExpand(a, tvf); moved != nil {
				a = moved
				g, _ = a.window()
			}
		}
		c, ok := a.In.(*Calc)
		if !ok {
			c = passingCalc(a.In)
		}
		if tvf, ok := c.In.(*WindowTVF); ok && Node(tvf) == Node(g.origin) {
			if err := tvf.checkSlices(); err != nil {
				return nil, err
			}
			if w := fuse(a, c, tvf); w != nil {
				return mergeCalc(w), nil
			}
		}
		if g.origin.windowSpec().Proctime {
			return n, nil
		}
		return mergeCalc(attach(a, g)), nil
	})
	if err != nil {
		return nil, err
	}
	return n, refuseProctime(n)
}

// refuseProctime refuses windows of the wall clock that are not part of an aggregation, as Flink does.
func refuseProctime(n Node) error {
	if w, ok := n.(*WindowTVF); ok && w.Window.Proctime {
		return diag.New(diag.Unsupported, w.Pos, "a processing-time window is only supported in an aggregation by it").
			WithDetail("which window a row is in depends on when it is read, and would change when the job recovers").
			WithHint("GROUP BY window_start, window_end directly above it, with nothing computed from the window's columns in between; or window by a column with a WATERMARK")
	}
	for _, in := range n.Inputs() {
		if err := refuseProctime(in); err != nil {
			return err
		}
	}
	return nil
}

// checkSlices refuses what a window aggregation cannot cut into slices, as Flink does.
func (n *WindowTVF) checkSlices() error {
	if n.Window.Kind == op.Hop && !n.Legacy && n.Window.Size%n.Window.Slide != 0 {
		e := diag.New(diag.Semantic, n.Pos, "an aggregation over HOP needs a size that is a multiple of the slide, they are %s and %s",
			millis(n.Window.Size), millis(n.Window.Slide))
		if n.Window.Slide > n.Window.Size {
			return e.WithHint("HOP takes the slide first, then the size; a slide above the size leaves rows out")
		}
		return e.WithHint("use a slide of %s, which divides both", millis(gcd(n.Window.Size, n.Window.Slide)))
	}
	return nil
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// attach makes a WindowAggregate of rows that carry their window in columns.
func attach(a *Aggregate, g groupWindow) Node {
	spec := g.origin.windowSpec()
	w := &WindowAggregate{In: a.In, Aggs: a.Aggs, Names: a.Names,
		Window: window{Kind: op.Attached, Start: a.Keys[g.start], End: a.Keys[g.end],
			Of: spec.kind(), Size: spec.Size, Slide: spec.Slide, Offset: spec.Offset, TimeKind: spec.TimeKind, Precision: spec.Precision}}
	for _, i := range g.rest {
		w.Keys = append(w.Keys, a.Keys[i])
	}
	isWindow := make([]int, len(a.In.Fields()))
	for i, k := range map[int]int{0: g.start, 1: g.end, 2: g.time} {
		if k >= 0 {
			isWindow[a.Keys[k]] = 1 + i
		}
	}
	return restore(a, w, isWindow, 0, nil)
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
			case tvf.Window.Kind == op.Session && below(x, width):
				return nil // a row that is left out can be what joins two sessions
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
	m := make([]int, len(in))
	for i := range m {
		m[i] = slices.IndexFunc(pre.Exprs, func(e expr.Expr) bool {
			r, ok := e.(*expr.Column)
			return ok && r.Index == i
		})
	}
	if t := tvf.Window.Time; m[t] < 0 {
		m[t] = len(pre.Exprs)
		pre.Exprs, pre.Names = append(pre.Exprs, col(in, t)), append(pre.Names, in[t].Name)
	}
	w.Window = tvf.Window.remap(m)
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
