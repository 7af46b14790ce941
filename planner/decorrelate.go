package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// outerBase is where the indexes of outer columns begin: columns of the query around a subquery, as they stand in the
// subquery until decorrelate has moved the conditions with them to the join of the two.
const outerBase = 1 << 24

// outerSpan is how many outer columns one subquery can have.
const outerSpan = 1 << 12

// outerQuery is the query around a subquery or LATERAL query being bound.
type outerQuery struct {
	scope *scope
	group *grouping
	subs  *subqueries
	base  int         // index of its first outer column
	width int         // columns of the subquery, without those that decorrelation adds
	refs  []expr.Expr // what the outer columns are, over the outer query's node
	up    *outerQuery
	batch bool // there is one time for the whole query
}

// column is the outer column for x.
func (o *outerQuery) column(x expr.Expr) expr.Expr {
	i := slices.IndexFunc(o.refs, func(r expr.Expr) bool { return expr.Equal(r, x) })
	if i < 0 {
		i = len(o.refs)
		o.refs = append(o.refs, x)
	}
	name := x.String()
	if c, ok := x.(*expr.Column); ok {
		name = c.Name
	}
	return &expr.Column{Index: o.base + i, Name: name, T: x.Type()}
}

func (o *outerQuery) owns(column int) bool { return column >= o.base && column < o.base+outerSpan }

// uses reports that e reads columns of o.
func (o *outerQuery) uses(e expr.Expr) bool {
	return e != nil && slices.ContainsFunc(expr.ColumnsOf(e), o.owns)
}

// outerIdent binds a name that the scope does not have as a column of a query around it; nil when none has it either.
func (b *binder) outerIdent(e *sql.Ident) (expr.Expr, error) {
	o := b.outer
	known := false
	for up := o; up != nil && !known; up = up.up {
		_, _, err := up.scope.resolve(e.Path)
		known = err == nil
	}
	if !known {
		return nil, nil
	}
	leave := b.enter(o.up, o.group, o.subs)
	x, err := b.expr(o.scope, e)
	leave()
	var d *diag.Error
	if err != nil && o.group != nil && asDiag(err, &d) {
		c := *d
		return nil, c.WithHint("add %s to GROUP BY; or aggregate below the subquery: SELECT ... FROM (SELECT ..., SUM(%s) AS x FROM ... GROUP BY ...) WHERE ..., where it can name x",
			e.Path.Plain(), e.Path.Plain())
	}
	if err != nil {
		return nil, err
	}
	return o.column(x), nil
}

// enter makes another query's state the binder's; the function returned brings the former back.
func (b *binder) enter(outer *outerQuery, group *grouping, subs *subqueries) (leave func()) {
	o, g, s := b.outer, b.group, b.subs
	b.outer, b.group, b.subs = outer, group, subs
	return func() { b.outer, b.group, b.subs = o, g, s }
}

// correlated binds q with s as the scope of the query around it, and takes the conditions on outer columns out of it, to
// be part of the join of the two.
func (b *binder) correlated(q sql.Query, s *scope) (subquery, error) {
	o := &outerQuery{scope: s, group: b.group, subs: b.subs, base: outerBase + b.outers*outerSpan, up: b.outer, batch: b.conf.Batch()}
	b.outers++
	leave := b.enter(o, nil, nil)
	n, err := b.query(q)
	leave()
	if err != nil {
		return subquery{}, err
	}
	r := subquery{o: o, pos: q.Position(), raw: n}
	o.width = len(n.Fields())
	if r.empty, err = overNothing(n); err != nil {
		return r, err
	}
	if r.n, r.on, err = o.pull(n, r.pos); err != nil {
		r.n, r.on, r.spread, err = n, nil, true, o.spreadable(n, r.pos)
	}
	return r, err
}

// spreadable says why a subquery with outer columns cannot be computed over a domain, before there is one.
func (o *outerQuery) spreadable(n Node, pos diag.Pos) error {
	outer := &Values{}
	_, _, err := o.overDomain(outer, n, func(e expr.Expr) expr.Expr { return e }, pos)
	return err
}

// join moves conditions over a subquery's columns and outer columns to the columns of a join: those of the outer query
// first, then the subquery's, which begin at width.
func (o *outerQuery) join(on []expr.Expr, width int) expr.Expr {
	out := make([]expr.Expr, len(on))
	for i, c := range on {
		out[i] = expr.Rewrite(c, func(x expr.Expr) expr.Expr {
			switch c, ok := x.(*expr.Column); {
			case !ok:
				return x
			case o.owns(c.Index):
				return o.refs[c.Index-o.base]
			case c.Index < outerBase:
				return &expr.Column{Index: c.Index + width, Name: c.Name, T: c.T}
			}
			return x
		})
	}
	return expr.And(out...)
}

// mentions reports that n or a node below reads outer columns of o.
func (o *outerQuery) mentions(n Node) bool {
	found := false
	for _, e := range nodeExprs(n) {
		found = found || o.uses(e)
	}
	for _, in := range n.Inputs() {
		found = found || o.mentions(in)
	}
	return found
}

// nodeExprs are the expressions of a bound node that may have outer columns.
func nodeExprs(n Node) []expr.Expr {
	switch n := n.(type) {
	case *Filter:
		return []expr.Expr{n.Cond}
	case *Project:
		return n.Exprs
	case *Values:
		return slices.Concat(n.Rows...)
	case *Unnest:
		return []expr.Expr{n.Arg}
	case *Correlate:
		return n.Call.Args
	case *Join:
		return []expr.Expr{n.Cond}
	}
	return nil
}

// pull moves the conditions that read outer columns of o to the top of n, as far as that means the same (Flink and
// Calcite: decorrelation). The columns of n keep their places; the ones that the conditions need come behind them.
func (o *outerQuery) pull(n Node, pos diag.Pos) (Node, []expr.Expr, error) {
	if !o.mentions(n) {
		return n, nil, nil
	}
	switch n := n.(type) {
	case *Filter:
		in, on, err := o.pull(n.In, pos)
		if err != nil {
			return nil, nil, err
		}
		var stay []expr.Expr
		for _, c := range expr.Conjuncts(n.Cond) {
			if o.uses(c) {
				on = append(on, c)
			} else {
				stay = append(stay, c)
			}
		}
		if stay != nil {
			in = &Filter{In: in, Cond: expr.And(stay...)}
		}
		return in, on, nil
	case *Project:
		return o.pullProject(n, pos)
	case *Aggregate:
		return o.pullAggregate(n, pos)
	case *Join:
		return o.pullJoin(n, pos)
	case *Sort:
		if n.Limit >= 0 {
			return o.pullLimit(n.In, n.Keys, n.Offset+1, n.Offset+n.Limit, pos)
		}
	case *Rank:
		if n.Limit && len(n.Partition) == 0 {
			return o.pullLimit(n.In, n.Order, n.From, n.To, pos)
		}
	}
	return nil, nil, tooCorrelated(pos, "its columns are used below "+kindOf(n))
}

func tooCorrelated(pos diag.Pos, why string) error {
	return diag.New(diag.Unsupported, pos, "this correlated subquery is not supported").
		WithDetail("columns of the query around it cannot be used below windows, time travel and pattern matching; here %s", why).
		WithHint("join the two tables, and aggregate the result")
}

// kindOf names a node for people.
func kindOf(n Node) string {
	if s, ok := n.(*Sort); ok && len(s.Keys) == 0 {
		return "LIMIT"
	}
	switch n.(type) {
	case *Sort:
		return "ORDER BY or LIMIT"
	case *Union:
		return "UNION"
	case *Project:
		return "SELECT"
	}
	l := n.label()
	for i := range l {
		if l[i] == '(' {
			return l[:i]
		}
	}
	return l
}

// carry makes conditions over a projection's input conditions over its output, adding the columns they need.
func carry(p *Project, on []expr.Expr, in []Field) []expr.Expr {
	m := map[int]int{}
	for i := len(p.Exprs) - 1; i >= 0; i-- {
		if c, ok := p.Exprs[i].(*expr.Column); ok {
			m[c.Index] = i
		}
	}
	out := make([]expr.Expr, len(on))
	for i, e := range on {
		out[i] = expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			c, ok := x.(*expr.Column)
			if !ok || c.Index >= outerBase {
				return x
			}
			at, ok := m[c.Index]
			if !ok {
				at = len(p.Exprs)
				m[c.Index] = at
				p.Exprs, p.Names = append(p.Exprs, col(in, c.Index)), append(p.Names, in[c.Index].Name)
			}
			return &expr.Column{Index: at, Name: c.Name, T: c.T}
		})
	}
	return out
}

func (o *outerQuery) pullProject(n *Project, pos diag.Pos) (Node, []expr.Expr, error) {
	in, on, err := o.pull(n.In, pos)
	if err != nil {
		return nil, nil, err
	}
	for _, e := range n.Exprs {
		if o.uses(e) {
			return nil, nil, tooCorrelated(pos, "a column of it is computed from one of them")
		}
	}
	p := &Project{In: in, Exprs: slices.Clone(n.Exprs), Names: slices.Clone(n.Names)}
	on = carry(p, on, in.Fields())
	return p, on, nil
}

// pullAggregate groups by the columns that are compared with outer ones: a group per value of them. Conditions other
// than = would need a group for every outer row.
func (o *outerQuery) pullAggregate(n *Aggregate, pos diag.Pos) (Node, []expr.Expr, error) {
	in, on, err := o.pull(n.In, pos)
	if err != nil {
		return nil, nil, err
	}
	f := in.Fields()
	p := &Project{In: in, Names: fieldNames(f)}
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
	}
	a := *n
	a.Keys = slices.Clone(n.Keys)
	type equal struct {
		outer expr.Expr
		op    string
		key   int
	}
	var eqs []equal
	a.Always = n.Always && len(on) == 0 // a group per value has rows
	for _, c := range on {
		inner, outer, op := o.sides(c)
		if inner == nil {
			return nil, nil, tooCorrelated(pos, "an aggregate has the condition "+c.String())
		}
		at := slices.IndexFunc(p.Exprs, func(e expr.Expr) bool { return expr.Equal(e, inner) })
		if at < 0 {
			at = len(p.Exprs)
			p.Exprs, p.Names = append(p.Exprs, inner), append(p.Names, inner.String())
		}
		key := slices.Index(a.Keys, at)
		if key < 0 {
			key = len(a.Keys)
			a.Keys = append(a.Keys, at)
		}
		eqs = append(eqs, equal{outer, op, key})
	}
	if len(p.Exprs) > len(f) {
		a.In = p
	} else {
		a.In = in
	}
	out := a.Fields()
	top := &Project{In: &a}
	take := func(i int) { top.Exprs, top.Names = append(top.Exprs, col(out, i)), append(top.Names, out[i].Name) }
	for i := range n.Keys {
		take(i)
	}
	for i := range n.Aggs {
		take(len(a.Keys) + i)
	}
	for i := len(n.Keys); i < len(a.Keys); i++ {
		take(i)
	}
	on = nil
	for _, e := range eqs {
		at := e.key
		if at >= len(n.Keys) {
			at += len(n.Aggs)
		}
		c, err := expr.NewBinary(e.op, &expr.Column{Index: at, Name: out[e.key].Name, T: out[e.key].Type}, e.outer)
		if err != nil {
			return nil, nil, err
		}
		on = append(on, c)
	}
	return top, on, nil
}

// pullLimit makes ORDER BY with LIMIT a Top-N for each value of the columns that are compared with outer ones.
func (o *outerQuery) pullLimit(n Node, order []SortKey, from, to int64, pos diag.Pos) (Node, []expr.Expr, error) {
	in, on, err := o.pull(n, pos)
	if err != nil {
		return nil, nil, err
	}
	if len(order) == 0 {
		return nil, nil, tooCorrelated(pos, "a LIMIT without ORDER BY takes any of its rows")
	}
	f := in.Fields()
	p := &Project{In: in, Names: fieldNames(f)}
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
	}
	r := &Rank{In: p, Order: order, From: from, To: to, ToColumn: -1, Pos: pos}
	for i, c := range on {
		inner, outer, op := o.sides(c)
		if inner == nil {
			return nil, nil, tooCorrelated(pos, "a LIMIT has the condition "+c.String())
		}
		at := len(p.Exprs)
		p.Exprs, p.Names = append(p.Exprs, inner), append(p.Names, inner.String())
		r.Partition = append(r.Partition, at)
		if on[i], err = expr.NewBinary(op, &expr.Column{Index: at, Name: inner.String(), T: inner.Type()}, outer); err != nil {
			return nil, nil, err
		}
	}
	return r, on, nil
}

// sides splits inner = outer into its sides; inner is nil for other conditions.
func (o *outerQuery) sides(c expr.Expr) (inner, outer expr.Expr, op string) {
	b, ok := c.(*expr.Binary)
	if !ok || b.Op != "=" && b.Op != "IS NOT DISTINCT FROM" {
		return nil, nil, ""
	}
	only := func(e expr.Expr) bool {
		return !slices.ContainsFunc(expr.ColumnsOf(e), func(i int) bool { return i < outerBase })
	}
	foreign := func(e expr.Expr) bool {
		return slices.ContainsFunc(expr.ColumnsOf(e), func(i int) bool { return i >= outerBase })
	}
	switch {
	case only(b.R) && !foreign(b.L):
		return b.L, b.R, b.Op
	case only(b.L) && !foreign(b.R):
		return b.R, b.L, b.Op
	}
	return nil, nil, ""
}

// pullJoin takes conditions out of an inner join, and out of the side of another join whose rows all stay.
func (o *outerQuery) pullJoin(n *Join, pos diag.Pos) (Node, []expr.Expr, error) {
	inner := n.Kind == InnerJoin
	if o.uses(n.Cond) && !inner || o.mentions(n.R) && !inner || n.Kind == RightJoin || n.Kind == FullJoin {
		return nil, nil, tooCorrelated(pos, "an outer, semi or anti join depends on them")
	}
	lw, rw := len(n.L.Fields()), len(n.R.Fields())
	l, on, err := o.pull(n.L, pos)
	if err != nil {
		return nil, nil, err
	}
	r, ron, err := o.pull(n.R, pos)
	if err != nil {
		return nil, nil, err
	}
	w := len(l.Fields())
	shift := func(e expr.Expr, from, by int) expr.Expr {
		return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
			if c, ok := x.(*expr.Column); ok && c.Index >= from && c.Index < outerBase {
				return &expr.Column{Index: c.Index + by, Name: c.Name, T: c.T}
			}
			return x
		})
	}
	j := *n
	j.L, j.R, j.Cond = l, r, nil
	var stay []expr.Expr
	if n.Cond != nil {
		for _, c := range expr.Conjuncts(n.Cond) {
			if c = shift(c, lw, w-lw); o.uses(c) {
				on = append(on, c)
			} else {
				stay = append(stay, c)
			}
		}
		j.Cond = expr.And(stay...)
	}
	for _, c := range ron {
		on = append(on, shift(c, 0, w))
	}
	if !inner {
		return &j, on, nil
	}
	// Its own columns first, then what the conditions need.
	f := j.Fields()
	p := &Project{In: &j}
	for i := range f {
		if i < lw || i >= w && i < w+rw {
			p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, f[i].Name)
		}
	}
	return p, carry(p, on, f), nil
}
