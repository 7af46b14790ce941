package planner

import (
	"slices"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// recogniseRanks turns a filter on ROW_NUMBER() OVER (...) into a Top-N, which keeps only what can still come into the
// output: rn <= 3, rn = 1, rn BETWEEN 2 AND 5, rn <= n with n a column. Other conditions stay above; one on the number
// that is no range, and any other call beside ROW_NUMBER, leave the OVER window as it is.
func (o *optimizer) recogniseRanks(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		c, ok := n.(*Calc)
		if !ok || c.Cond == nil {
			return n, nil
		}
		w, ok := c.In.(*Over)
		if !ok || len(w.Calls) != 1 || w.Calls[0].Func != expr.OverRowNumber {
			return n, nil
		}
		r, rest, ok := rankRange(c.Cond, len(w.In.Fields()))
		if !ok {
			return n, nil
		}
		if r.toColumn < 0 && r.to <= 0 {
			return nil, diag.New(diag.Semantic, w.Pos, "no row has a ROW_NUMBER of %d or less", r.to).
				WithDetail("numbers begin with 1").WithHint("compare with 1 or more: WHERE row_num <= 1")
		}
		if r.toColumn < 0 && r.from > r.to {
			return &Values{Schema: n.Fields()}, nil
		}
		return r.node(c, w, rest)
	})
}

// placeRange is a range of ROW_NUMBER.
type placeRange struct {
	from, to int64
	toColumn int // column that gives to, -1 = none
}

// rankRange reads the conjuncts of cond about column num, the number. rest are the others; ok is false when there is no
// upper bound or another condition on num.
func rankRange(cond expr.Expr, num int) (r placeRange, rest []expr.Expr, ok bool) {
	const none = 1<<63 - 1
	r = placeRange{from: 1, to: none, toColumn: -1}
	for _, x := range expr.Conjuncts(cond) {
		if !slices.Contains(expr.ColumnsOf(x), num) {
			rest = append(rest, x)
			continue
		}
		if !r.restrict(x, num) {
			return r, nil, false
		}
	}
	return r, rest, r.to != none || r.toColumn >= 0
}

// restrict narrows r by the comparison x of column num; ok is false when x is none.
func (r *placeRange) restrict(x expr.Expr, num int) bool {
	b, ok := x.(*expr.Binary)
	if !ok {
		return false
	}
	cmp, other := b.Op, b.R
	if isColumn(b.R, num) {
		cmp, other = map[string]string{"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}[b.Op], b.L
	} else if !isColumn(b.L, num) {
		return false
	}
	if l, ok := other.(*expr.Literal); ok && l.T.IsInteger() && !l.Value.IsNull {
		return r.constant(cmp, l.Value.I64)
	}
	if c, ok := plainInteger(other); ok && c < num && cmp == "<=" && r.toColumn < 0 && r.to == 1<<63-1 {
		r.toColumn = c
		return true
	}
	return false
}

func (r *placeRange) constant(cmp string, v int64) bool {
	if r.toColumn >= 0 && cmp != ">" && cmp != ">=" || v == 1<<63-1 || v == -1<<63 {
		return false
	}
	switch cmp {
	case "=":
		r.from, r.to = max(r.from, v), min(r.to, v)
	case "<=":
		r.to = min(r.to, v)
	case "<":
		r.to = min(r.to, v-1)
	case ">=":
		r.from = max(r.from, v)
	case ">":
		r.from = max(r.from, v+1)
	default:
		return false
	}
	return true
}

func isColumn(e expr.Expr, i int) bool {
	c, ok := e.(*expr.Column)
	return ok && c.Index == i
}

// plainInteger is the integer column that e is, under casts to wider integers.
func plainInteger(e expr.Expr) (int, bool) {
	for e.Type().IsInteger() {
		switch x := e.(type) {
		case *expr.Column:
			return x.Index, true
		case *expr.Cast:
			if !lossless(x.X.Type(), x.T) {
				return 0, false
			}
			e = x.X
		default:
			return 0, false
		}
	}
	return 0, false
}

// node puts the Top-N in place of w, and what is left of c on it. A number that can have one value only is written as that.
func (r placeRange) node(c *Calc, w *Over, rest []expr.Expr) (Node, error) {
	num := len(w.In.Fields())
	number := w.Calls[0].Name
	constant := r.toColumn < 0 && r.from == r.to
	if constant || !slices.ContainsFunc(c.Exprs, func(e expr.Expr) bool { return slices.Contains(expr.ColumnsOf(e), num) }) {
		number = ""
	}
	n, err := w.rank(r, number)
	if err != nil {
		return nil, err
	}
	top := &Calc{In: n, Names: c.Names, Exprs: slices.Clone(c.Exprs)}
	if rest != nil {
		top.Cond = expr.And(rest...)
	}
	if constant {
		for i, e := range top.Exprs {
			top.Exprs[i] = expr.Rewrite(e, func(x expr.Expr) expr.Expr {
				if isColumn(x, num) {
					return &expr.Literal{Value: types.IntDatum(r.to), T: types.BigIntType.NotNull()}
				}
				return x
			})
		}
	}
	return mergeCalc(top), nil
}

// rank makes a Rank, or a WindowRank when the partition holds the start and the end of a window.
func (n *Over) rank(r placeRange, number string) (Node, error) {
	order := make([]SortKey, 0, len(n.Order))
	for _, k := range n.Order {
		if !slices.Contains(n.Partition, k.Col) { // the same for the whole partition
			order = append(order, k)
		}
	}
	start, end, w := n.rankWindow()
	if w == nil {
		return &Rank{In: n.In, Partition: n.Partition, Order: order, From: r.from, To: r.to, ToColumn: r.toColumn, Number: number, Pos: n.Pos}, nil
	}
	spec := w.windowSpec()
	switch {
	case spec.Proctime:
		return nil, diag.New(diag.Unsupported, n.Pos, "a Top-N of processing-time windows is not supported").
			WithHint("window an event-time column: declare a WATERMARK on it")
	case r.toColumn >= 0:
		return nil, diag.New(diag.Unsupported, n.Pos, "the number of rows that a Top-N of windows keeps must be constant").
			WithHint("compare ROW_NUMBER with a number")
	}
	x := &WindowRank{In: n.In, Partition: n.Partition, Order: order, From: r.from, To: r.to, Number: number, Start: start, End: end,
		TimeKind: spec.TimeKind, Pos: n.Pos}
	x.Last = r.from == 1 && r.to == 1 && len(order) == 1 && order[0].Desc && windowedTime(n.In, order[0].Col)
	return x, nil
}

// rankWindow finds the window whose start and end are in the partition.
func (n *Over) rankWindow() (start, end int, w windowOrigin) {
	starts := map[windowOrigin]int{}
	for _, c := range n.Partition {
		if o, at := traceWindow(n.In, c); o != nil && at == o.windowAt() {
			starts[o] = c
		}
	}
	for _, c := range n.Partition {
		if o, at := traceWindow(n.In, c); o != nil && at == o.windowAt()+1 {
			if s, ok := starts[o]; ok {
				return s, c, o
			}
		}
	}
	return -1, -1, nil
}

// windowedTime reports that column c of n is the time attribute that its windows were cut from.
func windowedTime(n Node, c int) bool {
	o, at := traceWindow(n, c)
	switch o := o.(type) {
	case *WindowTVF:
		return o.Window.Kind != op.Attached && at == o.Window.Time
	case nil:
		return false
	}
	return at == o.windowAt()+2
}

// monotony is 1 for a column of p whose value in a row only grows, -1 for one that only shrinks, 0 when neither is known.
// fromNull: it can begin as NULL.
func monotony(p *phys, c int) (m int, fromNull bool) {
	switch n := p.op.(type) {
	case *Calc:
		if r, ok := n.Exprs[c].(*expr.Column); ok {
			return monotony(p.in[0], r.Index)
		}
		if i, ok := plainInteger(n.Exprs[c]); ok {
			return monotony(p.in[0], i)
		}
	case *Aggregate:
		if c < len(n.Keys) || p.in[0].trait.Kinds != Inserts {
			return 0, false
		}
		switch a := n.Aggs[c-len(n.Keys)]; a.Kind {
		case expr.AggCount, expr.AggCountStar:
			return 1, false
		case expr.AggMax:
			return 1, a.ArgType.Nullable || a.Filter >= 0
		case expr.AggMin:
			return -1, a.ArgType.Nullable || a.Filter >= 0
		}
	}
	return 0, false
}
