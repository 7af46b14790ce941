package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// where binds WHERE over in. IN and EXISTS over a query that stand between top-level ANDs become semi and anti joins, as
// Flink plans them; everywhere else a subquery is a value.
func (b *binder) where(in Node, s *scope, cond sql.Expr) (Node, error) {
	var plain, half []sql.Expr
	for _, c := range sqlConjuncts(cond) {
		if isHalfJoin(c) {
			half = append(half, c)
		} else {
			plain = append(plain, c)
		}
	}
	if half == nil {
		plain = []sql.Expr{cond}
	}
	var conds []expr.Expr
	for _, c := range plain {
		x, err := b.condition(s, c, "WHERE")
		if err != nil {
			return nil, err
		}
		conds = append(conds, x)
	}
	if conds != nil {
		var err error
		if in, err = b.subs.attach(in); err != nil {
			return nil, err
		}
		in = where(in, b.subs.resolve(expr.And(conds...)))
	}
	for _, c := range half {
		var err error
		if in, err = b.halfJoin(in, s, c, false); err != nil {
			return nil, err
		}
	}
	return firstColumns(in, len(s.cols)), nil
}

// firstColumns drops the columns of n from width on.
func firstColumns(n Node, width int) Node {
	f := n.Fields()
	if len(f) == width {
		return n
	}
	p := &Project{In: n}
	for i := range width {
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, f[i].Name)
	}
	return p
}

// sqlConjuncts splits e at its top-level ANDs.
func sqlConjuncts(e sql.Expr) []sql.Expr {
	if x, ok := e.(*sql.Binary); ok && strings.EqualFold(x.Op, "AND") {
		return append(sqlConjuncts(x.L), sqlConjuncts(x.R)...)
	}
	return []sql.Expr{e}
}

// isHalfJoin reports x IN (query), EXISTS (query), x = ANY (query), x > ALL (query), and NOT of them.
func isHalfJoin(e sql.Expr) bool {
	switch e := e.(type) {
	case *sql.Unary:
		return strings.EqualFold(e.Op, "NOT") && isHalfJoin(e.X)
	case *sql.In:
		return e.Query != nil
	case *sql.Exists, *sql.Quantified:
		return true
	}
	return false
}

// halfJoin keeps the rows of in that a subquery condition is TRUE for.
func (b *binder) halfJoin(in Node, s *scope, e sql.Expr, not bool) (Node, error) {
	switch e := e.(type) {
	case *sql.Unary:
		return b.halfJoin(in, s, e.X, !not)
	case *sql.Exists:
		return b.existsJoin(in, s, e, not)
	case *sql.In:
		return b.compareJoin(in, s, comparison{x: e.X, op: "=", query: e.Query, pos: e.Pos}, e.Not != not)
	case *sql.Quantified:
		return b.compareJoin(in, s, comparison{x: e.X, op: e.Op, all: e.All, query: e.Query, pos: e.OpPos}, not)
	}
	return nil, diag.New(diag.Internal, e.Position(), "no condition on a subquery")
}

func halfKind(not bool) JoinKind {
	if not {
		return AntiJoin
	}
	return SemiJoin
}

// alwaysRow reports a query that gives exactly one row whatever it reads: an aggregation without GROUP BY.
func (b *binder) alwaysRow(q sql.Query) bool {
	s, ok := q.(*sql.Select)
	return ok && s.GroupBy == nil && s.Having == nil && s.Qualify == nil && s.Limit == nil && s.Offset == nil &&
		slices.ContainsFunc(s.Items, func(it sql.SelectItem) bool { return b.hasAggregate(it.X) })
}

func (b *binder) existsJoin(in Node, s *scope, e *sql.Exists, not bool) (Node, error) {
	r, err := b.correlated(e.Query, s)
	if err != nil {
		return nil, err
	}
	if b.alwaysRow(e.Query) {
		if not {
			return &Filter{In: in, Cond: expr.NewBoolLiteral(false)}, nil
		}
		return in, nil
	}
	if len(r.on) == 0 && !r.singleRow() {
		// One row tells as much as all of them, and keeps no state per row.
		if r, err = r.perKey(e.Pos, countOf(nil, -1)); err != nil {
			return nil, err
		}
	}
	if in, err = b.subs.attach(in); err != nil {
		return nil, err
	}
	right, on, err := r.over(in, in, b.subs.resolve)
	if err != nil {
		return nil, err
	}
	return &Join{L: in, R: right, Kind: halfKind(not), Cond: on}, nil
}

// comparison is x op ANY (query), or ALL. IN is = ANY.
type comparison struct {
	x     sql.Expr
	op    string
	all   bool
	query sql.Query
	pos   diag.Pos
}

// compareJoin keeps the rows for which a comparison with a query is TRUE, or with not those for which it is FALSE. ANY is
// TRUE when it is for one value, and ALL FALSE when it is for one: semi joins. The rest are anti joins: ALL is TRUE, and
// ANY FALSE, when no value gives another result, NULL included.
func (b *binder) compareJoin(in Node, s *scope, c comparison, not bool) (Node, error) {
	if c.op == "<>" && c.all {
		c.op, c.all, not = "=", false, !not // a comparison by = can be a key of the join
	}
	list := []sql.Expr{c.x}
	if r, ok := c.x.(*sql.RowExpr); ok && c.op == "=" {
		list = r.Elems
	}
	xs, err := b.exprs(s, list)
	if err != nil {
		return nil, err
	}
	r, err := b.correlated(c.query, s)
	if err != nil {
		return nil, err
	}
	if r.o.width != len(xs) {
		return nil, diag.New(diag.Semantic, c.query.Position(), "cannot compare %s with the %s of the query", plural(len(xs), "value"), plural(r.o.width, "column")).
			WithHint("select as many columns as there are values")
	}
	if in, err = b.subs.attach(in); err != nil {
		return nil, err
	}
	width, f := len(in.Fields()), r.n.Fields()
	var each []expr.Expr
	for i, x := range xs {
		e, err := expr.NewBinary(c.op, x, &expr.Column{Index: width + i, Name: f[i].Name, T: f[i].Type})
		if err != nil {
			return nil, diag.At(err, c.pos)
		}
		each = append(each, e)
	}
	cond := expr.And(each...)
	anti := c.all != not
	switch {
	case anti && c.all:
		cond, err = expr.NewIs(cond, "TRUE", true)
	case anti && cond.Type().Nullable:
		cond, err = expr.NewIs(cond, "FALSE", true)
	case !anti && c.all:
		cond, err = expr.NewIs(cond, "FALSE", false)
	}
	if err != nil {
		return nil, err
	}
	right, on, err := r.over(in, in, b.subs.resolve)
	if err != nil {
		return nil, err
	}
	if cond = b.subs.resolve(cond); on != nil {
		cond = expr.And(cond, on)
	}
	return &Join{L: in, R: right, Kind: halfKind(anti), Cond: cond}, nil
}
