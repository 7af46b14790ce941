package planner

import (
	"math"
	"slices"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// A domain computes a correlated subquery for all rows of the query around it at once, where its conditions on outer
// columns cannot be moved out: the different combinations of values that its outer columns have are joined into it, every
// node below keeps apart what belongs to each of them, and the result is joined back by them (Neumann and Kemper,
// Unnesting Arbitrary Queries; Calcite's decorrelation makes the same plans).
type domain struct {
	o    *outerQuery
	cols []int // the outer columns that the subquery reads
	n    Node  // their combinations, a column for each
	pos  diag.Pos
}

// overDomain spreads n, a subquery with outer columns of o, over the values these have in the rows of outer, which refs
// are over. The domain's columns come behind n's; on joins the two: over outer's columns and then the result's.
func (o *outerQuery) overDomain(outer, n Node, resolve func(expr.Expr) expr.Expr, pos diag.Pos) (out Node, on []expr.Expr, err error) {
	d := &domain{o: o, pos: pos}
	o.collect(n, &d.cols)
	slices.Sort(d.cols)
	p := &Project{In: outer}
	taken := map[string]bool{}
	for _, c := range d.cols {
		x := resolve(o.refs[c-o.base])
		p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, unique(o.refName(c), taken))
	}
	if err := o.repeatable(p, upTo(0, len(p.Exprs)), pos); err != nil {
		return nil, nil, err
	}
	d.n = &Aggregate{In: p, Keys: upTo(0, len(p.Exprs)), Distinct: true}
	if out, err = d.spread(n); err != nil {
		return nil, nil, err
	}
	at := len(outer.Fields()) + len(n.Fields())
	f := d.n.Fields()
	for i, x := range p.Exprs {
		op := "IS NOT DISTINCT FROM"
		if !x.Type().Nullable {
			op = "="
		}
		c, err := expr.NewBinary(op, x, &expr.Column{Index: at + i, Name: f[i].Name, T: f[i].Type})
		if err != nil {
			return nil, nil, diag.At(err, pos)
		}
		on = append(on, c)
	}
	return out, on, nil
}

func (o *outerQuery) refName(column int) string {
	if c, ok := o.refs[column-o.base].(*expr.Column); ok {
		return c.Name
	}
	return "$d"
}

// collect adds the outer columns of o that n and the nodes below read to cols.
func (o *outerQuery) collect(n Node, cols *[]int) {
	for _, e := range nodeExprs(n) {
		if e == nil {
			continue
		}
		for _, c := range expr.ColumnsOf(e) {
			if o.owns(c) && !slices.Contains(*cols, c) {
				*cols = append(*cols, c)
			}
		}
	}
	for _, in := range n.Inputs() {
		o.collect(in, cols)
	}
}

// over makes the outer columns of e columns of a node whose domain columns begin at w.
func (d *domain) over(e expr.Expr, w int) expr.Expr {
	if e == nil {
		return nil
	}
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && d.o.owns(c.Index) {
			return &expr.Column{Index: w + slices.Index(d.cols, c.Index), Name: c.Name, T: c.T}
		}
		return x
	})
}

func (d *domain) overAll(list []expr.Expr, w int) []expr.Expr {
	out := make([]expr.Expr, len(list))
	for i, e := range list {
		out[i] = d.over(e, w)
	}
	return out
}

// at are the domain's columns of a node where they begin at w.
func (d *domain) at(w int) []int { return upTo(w, w+len(d.cols)) }

// take projects n to the columns given, which keep their names.
func take(n Node, columns ...[]int) Node {
	f := n.Fields()
	p := &Project{In: n}
	for _, list := range columns {
		for _, c := range list {
			p.Exprs, p.Names = append(p.Exprs, col(f, c)), append(p.Names, f[c].Name)
		}
	}
	return p
}

// spread is n for every combination: its rows, and behind its columns the domain's.
func (d *domain) spread(n Node) (Node, error) {
	if !d.o.mentions(n) {
		return d.cross(n), nil
	}
	switch n := n.(type) {
	case *Values:
		return d.spreadValues(n), nil
	case *Join:
		return d.spreadJoin(n)
	case *Union:
		u := &Union{Out: append(slices.Clone(n.Out), d.n.Fields()...)}
		for _, in := range n.Ins {
			s, err := d.spread(in)
			if err != nil {
				return nil, err
			}
			u.Ins = append(u.Ins, s)
		}
		return u, nil
	}
	if len(n.Inputs()) != 1 {
		return nil, d.refused(n)
	}
	w := len(n.Inputs()[0].Fields())
	in, err := d.spread(n.Inputs()[0])
	if err != nil {
		return nil, err
	}
	made := upTo(w+len(d.cols), max(w, len(n.Fields()))+len(d.cols)) // the columns that n adds to its input's
	switch n := n.(type) {
	case *Filter:
		return &Filter{In: in, Cond: d.over(n.Cond, w)}, nil
	case *Project:
		p := &Project{In: in, Exprs: d.overAll(n.Exprs, w), Names: slices.Clone(n.Names)}
		f := in.Fields()
		for _, c := range d.at(w) {
			p.Exprs, p.Names = append(p.Exprs, col(f, c)), append(p.Names, f[c].Name)
		}
		return p, nil
	case *Unnest:
		u := *n
		u.In, u.Arg = in, d.over(n.Arg, w)
		return take(&u, upTo(0, w), made, d.at(w)), nil
	case *Correlate:
		c := *n
		c.In, c.Call.Args = in, d.overAll(n.Call.Args, w)
		return take(&c, upTo(0, w), made, d.at(w)), nil
	case *Expand:
		return take(n.withInputs([]Node{in}), upTo(0, w), made, d.at(w)), nil
	case *Replicate: // the count is the last column of its input
		return n.withInputs([]Node{take(in, upTo(0, w-1), d.at(w), []int{w - 1})}), nil
	}
	return d.spreadApart(n, in, w, made)
}

// spreadApart is the nodes that group their input: they keep apart what belongs to each combination.
func (d *domain) spreadApart(n, in Node, w int, made []int) (Node, error) {
	switch n := n.(type) {
	case *Aggregate:
		a := *n
		a.In, a.Keys, a.Always = in, slices.Concat(n.Keys, d.at(w)), false
		k := len(n.Keys)
		return take(&a, upTo(0, k), upTo(k+len(d.cols), k+len(d.cols)+len(n.Aggs)), d.at(k)), nil
	case *Over:
		o := *n
		o.In, o.Partition = in, slices.Concat(n.Partition, d.at(w))
		return take(&o, upTo(0, w), made, d.at(w)), nil
	case *Rank:
		r := *n
		r.In, r.Partition, r.Limit = in, slices.Concat(n.Partition, d.at(w)), false
		if len(r.Order) == 0 {
			r.Order = []SortKey{{Col: w}}
		}
		return take(&r, upTo(0, w), made, d.at(w)), nil
	case *Sort:
		if n.Limit < 0 && n.Offset == 0 {
			return in, nil
		}
		r := &Rank{In: in, Partition: d.at(w), Order: n.Keys, From: n.Offset + 1, To: math.MaxInt64, ToColumn: -1, Pos: d.pos}
		if n.Limit >= 0 {
			r.To = n.Offset + n.Limit
		}
		if len(r.Order) == 0 {
			r.Order = []SortKey{{Col: w}} // any rows: all of a combination are alike in it
		}
		return r, nil
	}
	return nil, d.refused(n)
}

func (d *domain) refused(n Node) error {
	return tooCorrelated(d.pos, "its columns are used below "+kindOf(n))
}

// cross joins the domain to a node without outer columns.
func (d *domain) cross(n Node) Node {
	if v, ok := n.(*Values); ok && len(v.Rows) == 1 && len(v.Schema) == 0 {
		return d.n
	}
	return &Join{L: n, R: d.n, Kind: InnerJoin, Pos: d.pos}
}

// spreadValues makes the rows for every combination.
func (d *domain) spreadValues(n *Values) Node {
	f := d.n.Fields()
	u := &Union{Out: append(slices.Clone(n.Schema), f...)}
	for _, row := range n.Rows {
		p := &Project{In: d.n, Exprs: d.overAll(row, 0), Names: fieldNames(n.Schema)}
		for i := range f {
			p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, f[i].Name)
		}
		u.Ins = append(u.Ins, p)
	}
	if len(u.Ins) == 1 {
		return u.Ins[0]
	}
	return u
}

// spreadJoin spreads the side whose rows the join keeps, and the other one too where it has outer columns of its own.
func (d *domain) spreadJoin(n *Join) (Node, error) {
	lw, rw, k := len(n.L.Fields()), len(n.R.Fields()), len(d.cols)
	right := d.o.mentions(n.R) || n.Kind == RightJoin || n.Kind == FullJoin
	left := n.Kind != InnerJoin && n.Kind != RightJoin || d.o.mentions(n.L) || !right
	j := *n
	j.known = joinFields{}
	var err error
	if left {
		if j.L, err = d.spread(n.L); err != nil {
			return nil, err
		}
	}
	if right {
		if j.R, err = d.spread(n.R); err != nil {
			return nil, err
		}
	}
	ld, rd := lw, lw+rw // where the domain's columns are in the join
	if left {
		rd += k
		j.Cond = shiftColumns(n.Cond, lw, k)
	}
	use := ld
	if !left {
		use = rd
	}
	j.Cond = d.over(j.Cond, use)
	if left && right {
		for i := range k {
			j.Keys = append(slices.Clone(j.Keys), JoinKey{lw + i, rw + i, true})
		}
	}
	if n.Kind == SemiJoin || n.Kind == AntiJoin {
		return &j, nil
	}
	r := upTo(rd-rw, rd)
	if n.Kind != FullJoin {
		if n.Kind == RightJoin {
			use = rd
		}
		return take(&j, upTo(0, lw), r, d.at(use)), nil
	}
	p := take(&j, upTo(0, lw), r).(*Project)
	f := j.Fields()
	for i := range k {
		x, err := expr.NewCoalesce([]expr.Expr{col(f, ld+i), col(f, rd+i)})
		if err != nil {
			return nil, diag.At(err, d.pos)
		}
		p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, f[ld+i].Name)
	}
	return p, nil
}

// shiftColumns moves the columns of e from index from on by n places; outer columns stay.
func shiftColumns(e expr.Expr, from, n int) expr.Expr {
	if e == nil {
		return nil
	}
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Index >= from && c.Index < outerBase {
			return &expr.Column{Index: c.Index + n, Name: c.Name, T: c.T}
		}
		return x
	})
}
