package planner

import (
	"slices"
	"strconv"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// side tells which inputs of a join an expression reads.
type side uint8

const (
	leftSide side = 1 << iota
	rightSide
)

// sidesOf are the sides that e, over the fields of both, reads. left is the number of left fields.
func sidesOf(e expr.Expr, left int) side {
	var s side
	for _, c := range expr.ColumnsOf(e) {
		if c < left {
			s |= leftSide
		} else {
			s |= rightSide
		}
	}
	return s
}

// toRight moves an expression over both sides, which reads the right one only, to the right fields.
func toRight(e expr.Expr, left int) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok {
			return &expr.Column{Index: c.Index - left, Name: c.Name, T: c.T}
		}
		return x
	})
}

// pushFilter moves a condition on the join's result into the join or below it. One that no row with NULLs for a side
// passes makes the join drop such rows.
func (n *Join) pushFilter(c expr.Expr) (Node, bool) {
	left := len(n.L.Fields())
	if n.Kind.HalfJoin() {
		return n.withInputs([]Node{addFilter(n.L, c), n.R}), true
	}
	j := *n
	// The fields of a padded side are nullable above the join only.
	c = retype(c, n.sideFields())
	if j.Kind.PadsRight() && neverTrue(c, func(i int) bool { return i < left }) {
		j.Kind = map[JoinKind]JoinKind{RightJoin: InnerJoin, FullJoin: LeftJoin}[j.Kind]
	}
	if j.Kind.PadsLeft() && neverTrue(c, func(i int) bool { return i >= left }) {
		j.Kind = map[JoinKind]JoinKind{LeftJoin: InnerJoin, FullJoin: RightJoin}[j.Kind]
	}
	switch reads := sidesOf(c, left); {
	case reads&rightSide == 0 && !j.Kind.PadsRight():
		j.L = addFilter(j.L, c)
	case reads&leftSide == 0 && !j.Kind.PadsLeft():
		j.R = addFilter(j.R, toRight(c, left))
	case j.Kind == InnerJoin:
		if j.Cond != nil {
			c = expr.And(j.Cond, c)
		}
		j.Cond = c
	case j.Kind != n.Kind:
		return &Filter{In: &j, Cond: retype(c, j.Fields())}, true
	default:
		return nil, false
	}
	return &j, true
}

// retype gives the columns of e the types of fields: they differ in nullability.
func retype(e expr.Expr, fields []Field) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.T.Nullable != fields[c.Index].Type.Nullable {
			return &expr.Column{Index: c.Index, Name: c.Name, T: c.T.WithNull(fields[c.Index].Type.Nullable)}
		}
		return x
	})
}

// neverTrue reports that e is not TRUE whenever the given columns are NULL.
func neverTrue(e expr.Expr, null func(col int) bool) bool {
	switch e := e.(type) {
	case *expr.Binary:
		switch e.Op {
		case "AND":
			return neverTrue(e.L, null) || neverTrue(e.R, null)
		case "OR":
			return neverTrue(e.L, null) && neverTrue(e.R, null)
		}
	case *expr.Is:
		if e.What == "NULL" {
			return e.Not && alwaysNull(e.X, null)
		}
		return !e.Not && alwaysNull(e.X, null)
	}
	return alwaysNull(e, null)
}

// alwaysNull reports that e is NULL whenever the given columns are. A column of another kind of row is not looked at.
func alwaysNull(e expr.Expr, null func(col int) bool) bool {
	anyOf := func(list []expr.Expr) bool {
		return slices.ContainsFunc(list, func(x expr.Expr) bool { return alwaysNull(x, null) })
	}
	switch e := e.(type) {
	case *expr.Column:
		return null(e.Index)
	case *expr.Binary:
		switch e.Op {
		case "AND", "OR":
			return alwaysNull(e.L, null) && alwaysNull(e.R, null)
		case "IS DISTINCT FROM", "IS NOT DISTINCT FROM":
			return false
		}
		return anyOf(e.Children())
	case *expr.Unary, *expr.In, *expr.Like, *expr.Cast:
		return anyOf(e.Children())
	case *expr.Coalesce:
		return !slices.ContainsFunc(e.Args, func(x expr.Expr) bool { return !alwaysNull(x, null) })
	}
	return false
}

// joinConditions takes the conditions of joins apart, outer joins first: what reads one side goes below where that means
// the same, equalities of the two sides become keys, the rest stays.
func (o *optimizer) joinConditions(n Node) (Node, error) {
	if j, ok := n.(*Join); ok {
		n = j.sink()
	}
	in := n.Inputs()
	if len(in) == 0 {
		return n, nil
	}
	out := make([]Node, len(in))
	for i, c := range in {
		x, err := o.joinConditions(c)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	n = n.withInputs(out)
	if j, ok := n.(*Join); ok {
		return j.keyed()
	}
	return n, nil
}

// sink moves the parts of the condition that read one side below the join. Not below an outer side: its rows come out
// also when the condition is not TRUE.
func (n *Join) sink() *Join {
	if n.Cond == nil {
		return n
	}
	j, left := *n, len(n.L.Fields())
	intoLeft := n.Kind == InnerJoin || n.Kind == RightJoin || n.Kind == SemiJoin
	intoRight := n.Kind == InnerJoin || n.Kind == LeftJoin || n.Kind.HalfJoin()
	var stay []expr.Expr
	for _, c := range expr.Conjuncts(n.Cond) {
		switch reads := sidesOf(c, left); {
		case !steadyButWatermark(c) || reads == 0:
			stay = append(stay, c)
		case reads == leftSide && intoLeft:
			j.L = addFilter(j.L, c)
		case reads == rightSide && intoRight:
			j.R = addFilter(j.R, toRight(c, left))
		default:
			stay = append(stay, c)
		}
	}
	j.Cond = nil
	if stay != nil {
		j.Cond = expr.And(stay...)
	}
	return &j
}

// keyed makes keys of the condition's equalities. Sides of equalities that are not columns, or need a conversion, are
// computed below the join.
func (n *Join) keyed() (Node, error) {
	if n.Cond == nil {
		return n, nil
	}
	left := len(n.L.Fields())
	lp, rp := newKeySide(n.L), newKeySide(n.R)
	j := *n
	j.Keys = slices.Clone(n.Keys)
	var stay []expr.Expr
	for _, c := range expr.Conjuncts(n.Cond) {
		l, r, nullSafe, ok := equality(c, left)
		if !ok {
			stay = append(stay, c)
			continue
		}
		k := JoinKey{lp.column(l), rp.column(toRight(r, left)), nullSafe}
		if !slices.Contains(j.Keys, k) {
			j.Keys = append(j.Keys, k)
		}
	}
	if len(j.Keys) == len(n.Keys) {
		return n, nil
	}
	j.L, j.R, j.Cond = lp.node(), rp.node(), nil
	if stay != nil {
		j.Cond = moveColumns(expr.And(stay...), left, len(lp.extra))
	}
	if len(lp.extra)+len(rp.extra) == 0 {
		return &j, nil
	}
	return j.without(left, len(lp.extra), len(n.R.Fields())), nil
}

// without projects the join to its first left fields and, behind added computed ones, its first right fields.
func (n *Join) without(left, added, right int) Node {
	f := n.Fields()
	p := &Project{In: n}
	keep := upTo(0, left)
	if !n.Kind.HalfJoin() {
		keep = append(keep, upTo(left+added, left+added+right)...)
	}
	for _, i := range keep {
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, f[i].Name)
	}
	return p
}

// moveColumns makes room for added columns behind the first left ones.
func moveColumns(e expr.Expr, left, added int) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Index >= left && added > 0 {
			return &expr.Column{Index: c.Index + added, Name: c.Name, T: c.T}
		}
		return x
	})
}

// keySide collects the key columns of one side.
type keySide struct {
	in     Node
	fields []Field
	extra  []expr.Expr
}

func newKeySide(n Node) *keySide { return &keySide{in: n, fields: n.Fields()} }

// column is the column that holds e, a new one if need be.
func (s *keySide) column(e expr.Expr) int {
	if c, ok := e.(*expr.Column); ok {
		return c.Index
	}
	for i, x := range s.extra {
		if expr.Equal(x, e) {
			return len(s.fields) + i
		}
	}
	s.extra = append(s.extra, e)
	return len(s.fields) + len(s.extra) - 1
}

// node is the side with its computed keys behind its columns.
func (s *keySide) node() Node {
	if s.extra == nil {
		return s.in
	}
	p := &Project{In: s.in}
	for i, f := range s.fields {
		p.Exprs, p.Names = append(p.Exprs, col(s.fields, i)), append(p.Names, f.Name)
	}
	for i, e := range s.extra {
		p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, "$k"+strconv.Itoa(i))
	}
	return p
}

// equality splits a conjunct that compares an expression over the left side with one over the right side, for equality;
// both get one encoding.
func equality(c expr.Expr, left int) (l, r expr.Expr, nullSafe, ok bool) {
	b, is := c.(*expr.Binary)
	if !is || !expr.IsDeterministic(c) {
		return nil, nil, false, false
	}
	switch b.Op {
	case "=":
	case "IS NOT DISTINCT FROM":
		nullSafe = true
	case "OR":
		if b, is = nullSafeEquality(b); !is {
			return nil, nil, false, false
		}
		nullSafe = true
	default:
		return nil, nil, false, false
	}
	l, r = b.L, b.R
	if sidesOf(l, left) == rightSide {
		l, r = r, l
	}
	if sidesOf(l, left) != leftSide || sidesOf(r, left) != rightSide {
		return nil, nil, false, false
	}
	l, r, ok = sameEncoding(l, r)
	return l, r, nullSafe, ok
}

// nullSafeEquality recognises x = y OR (x IS NULL AND y IS NULL), in any order, and returns x = y.
func nullSafeEquality(or *expr.Binary) (eq *expr.Binary, ok bool) {
	for _, pair := range [][2]expr.Expr{{or.L, or.R}, {or.R, or.L}} {
		eq, ok = pair[0].(*expr.Binary)
		and, isAnd := pair[1].(*expr.Binary)
		if !ok || !isAnd || eq.Op != "=" || and.Op != "AND" {
			continue
		}
		a, okA := and.L.(*expr.Is)
		b, okB := and.R.(*expr.Is)
		if !okA || !okB || a.What != "NULL" || b.What != "NULL" || a.Not || b.Not {
			continue
		}
		if expr.Equal(a.X, eq.L) && expr.Equal(b.X, eq.R) || expr.Equal(a.X, eq.R) && expr.Equal(b.X, eq.L) {
			return eq, true
		}
	}
	return nil, false
}

// sameEncoding gives two comparable expressions types whose equal values have equal bytes as keys.
func sameEncoding(l, r expr.Expr) (_, _ expr.Expr, ok bool) {
	lt, rt := l.Type(), r.Type()
	switch {
	case lt.SameIgnoringNull(rt), lt.IsInteger() && rt.IsInteger(), lt.IsString() && rt.IsString(), lt.IsBytes() && rt.IsBytes(),
		lt.Kind == types.Decimal && rt.Kind == types.Decimal && lt.Scale == rt.Scale && lt.Phys() == rt.Phys(),
		lt.IsTimestamp() && lt.Kind == rt.Kind && lt.Phys() == rt.Phys():
		return l, r, true
	}
	t, err := expr.CommonType([]types.Type{lt, rt})
	if err != nil {
		return nil, nil, false
	}
	if l, err = expr.ImplicitCast(l, t); err != nil {
		return nil, nil, false
	}
	r, err = expr.ImplicitCast(r, t)
	return l, r, err == nil
}

// fold evaluates constant parts of the condition. An inner or semi join that cannot give a row is empty.
func (n *Join) fold(o *optimizer) (Node, error) {
	j := *n
	if n.Cond != nil {
		c, err := expr.Fold(n.Cond, o.session)
		if err != nil {
			return nil, err
		}
		j.Cond = c
		if l, ok := c.(*expr.Literal); ok && !l.Value.IsNull && l.Value.Bool {
			j.Cond = nil
		}
	}
	_, never := j.Cond.(*expr.Literal)
	noLeft, noRight := emptyValues(n.L), emptyValues(n.R)
	switch {
	case n.Kind == InnerJoin && (never || noLeft || noRight), n.Kind == SemiJoin && (never || noLeft || noRight),
		(n.Kind == LeftJoin || n.Kind == AntiJoin) && noLeft, n.Kind == RightJoin && noRight, n.Kind == FullJoin && noLeft && noRight:
		return &Values{Schema: slices.Clone(n.Fields())}, nil
	case n.Kind == AntiJoin && (never || noRight):
		return n.L, nil
	}
	return &j, nil
}

func emptyValues(n Node) bool {
	v, ok := n.(*Values)
	return ok && len(v.Rows) == 0
}
