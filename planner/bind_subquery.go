package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// subBase is where the indexes of subquery values begin: columns that stand for the value of a subquery until attach
// has joined it. It is below outerBase.
const subBase = 1 << 20

// subqueries are the values of subqueries that expressions over one node use. attach joins them to the node.
type subqueries struct {
	joins  []subquery
	values []subqueryValue
	at     []int // where the columns of each join begin, after attach
}

// subquery is a left join that gives values: the columns of n where a row matches, else NULL.
type subquery struct {
	n   Node
	o   *outerQuery
	on  []expr.Expr // over n's columns and outer columns
	pos diag.Pos
	// spread: n has outer columns still, and is computed over a domain of their values.
	spread bool
	raw    Node // n as bound, with its outer columns
	// empty are the values of an aggregation without GROUP BY over no rows; nil for other queries.
	empty []expr.Expr
}

// over is the right side and the condition of the join that brings s to n, whose refs resolve completes. The domain is
// that of base, whose columns are n's first, when it has all that s needs.
func (s subquery) over(n, base Node, resolve func(expr.Expr) expr.Expr) (Node, expr.Expr, error) {
	on := resolve(s.o.join(s.on, len(n.Fields())))
	if !s.spread {
		return s.n, on, nil
	}
	for _, x := range s.o.refs {
		if slices.ContainsFunc(expr.ColumnsOf(resolve(x)), func(c int) bool { return c >= len(base.Fields()) && c < outerBase }) {
			base = n
		}
	}
	out, conds, err := s.o.overDomain(base, s.n, resolve, s.pos)
	if err != nil {
		return nil, nil, err
	}
	same := shiftColumns(expr.And(conds...), len(base.Fields()), len(n.Fields())-len(base.Fields()))
	if on == nil {
		return out, same, nil
	}
	return out, expr.And(same, on), nil
}

type subqueryValue struct{ join, column int }

// add joins s, and returns the value of its column c.
func (q *subqueries) add(s subquery, columns ...int) []expr.Expr {
	f := s.n.Fields()
	q.joins = append(q.joins, s)
	var out []expr.Expr
	for _, c := range columns {
		q.values = append(q.values, subqueryValue{len(q.joins) - 1, c})
		out = append(out, &expr.Column{Index: subBase + len(q.values) - 1, Name: f[c].Name, T: f[c].Type.WithNull(true)})
	}
	return out
}

// attach joins the subqueries to n, behind its columns.
func (q *subqueries) attach(n Node) (Node, error) {
	if q == nil {
		return n, nil
	}
	base := n
	for _, s := range q.joins[len(q.at):] {
		r, on, err := s.over(n, base, q.resolve)
		if err != nil {
			return nil, err
		}
		q.at = append(q.at, len(n.Fields()))
		n = &Join{L: n, R: r, Kind: LeftJoin, Cond: on}
	}
	return n, nil
}

// resolve replaces the values of subqueries by their columns after attach.
func (q *subqueries) resolve(e expr.Expr) expr.Expr {
	if q == nil || len(q.values) == 0 || e == nil {
		return e
	}
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Index >= subBase && c.Index < outerBase {
			v := q.values[c.Index-subBase]
			return &expr.Column{Index: q.at[v.join] + v.column, Name: c.Name, T: c.T}
		}
		return x
	})
}

func (q *subqueries) resolveAll(list []expr.Expr) {
	for i := range list {
		list[i] = q.resolve(list[i])
	}
}

// collector is where a subquery in the expression being bound is to be joined.
func (b *binder) collector(pos diag.Pos) (*subqueries, error) {
	q := b.subs
	if b.group != nil {
		q = b.group.subs
	}
	if q == nil {
		return nil, diag.New(diag.Unsupported, pos, "a subquery is not supported here").
			WithDetail("subqueries can be values in SELECT, WHERE, ON, GROUP BY and HAVING, not in VALUES or arguments of table functions").
			WithHint("put the query into FROM: SELECT ... FROM t, (SELECT ...) AS q")
	}
	return q, nil
}

// oneColumn binds a subquery whose value is one column.
func (b *binder) oneColumn(q sql.Query, s *scope, what string) (subquery, error) {
	r, err := b.correlated(q, s)
	if err == nil && r.o.width != 1 {
		err = diag.New(diag.Semantic, q.Position(), "%s needs one column, the query has %d", what, r.o.width).
			WithHint("select the one column that is the value")
	}
	return r, err
}

// scalar binds a scalar subquery: its only value, NULL without a row, an error at run time with two.
func (b *binder) scalar(s *scope, e *sql.Subquery) (expr.Expr, error) {
	list, err := b.collector(e.Pos)
	if err != nil {
		return nil, err
	}
	r, err := b.oneColumn(e.Query, s, "a scalar subquery")
	if err != nil {
		return nil, err
	}
	if !r.singleRow() {
		if r, err = r.perKey(e.Pos, singleValue(r.n.Fields()[0], e.Query.Position())); err != nil {
			return nil, err
		}
	}
	if !r.fills(0) {
		return list.add(r, 0)[0], nil
	}
	// COUNT over no rows is 0, but the group of a missing key has no row at all.
	if !r.n.Fields()[0].Type.Nullable {
		return expr.NewCoalesce([]expr.Expr{list.add(r, 0)[0], r.fill(0)})
	}
	mark := r.mark()
	x := list.add(r, 0, mark)
	return orEmpty(x[1], r.fill(0), x[0])
}

// fills reports that column c has a value where there is no row for the outer columns' values.
func (r subquery) fills(c int) bool {
	return r.empty != nil && r.empty[c] != nil && (r.spread || len(r.on) > 0)
}

// fill is the value of column c over no rows, over the columns of the query around.
func (r subquery) fill(c int) expr.Expr { return r.o.join(r.empty[c:c+1], 0) }

// mark adds a column that is never NULL, to tell the subquery's rows from missing ones.
func (r *subquery) mark() int {
	f := r.n.Fields()
	p := take(r.n, upTo(0, len(f))).(*Project)
	p.Exprs, p.Names = append(p.Exprs, expr.NewBoolLiteral(true)), append(p.Names, "$row")
	r.n = p
	return len(f)
}

// orEmpty is x, or empty where the column mark is NULL.
func orEmpty(mark, empty, x expr.Expr) (expr.Expr, error) {
	missing, err := expr.NewIs(mark, "NULL", false)
	if err != nil {
		return nil, err
	}
	return expr.NewCase(nil, []expr.Expr{missing}, []expr.Expr{empty}, x)
}

func singleValue(f Field, pos diag.Pos) expr.Agg {
	return expr.Agg{Pos: pos, Kind: expr.AggSingle, Arg: 0, ArgType: f.Type, Filter: -1, Type: f.Type.WithNull(true), Text: "SINGLE_VALUE(" + f.Name + ")"}
}

// singleRow reports that there is at most one row for each value of the outer columns: an aggregation without keys, or
// by columns compared with outer ones.
func (r subquery) singleRow() bool {
	n, on := r.n, r.on
	cols := map[int]bool{}
	for _, c := range on {
		inner, _, _ := r.o.sides(c)
		x, plain := inner.(*expr.Column)
		if !plain {
			return false
		}
		cols[x.Index] = true
	}
	m := upTo(0, len(n.Fields()))
	for {
		switch x := n.(type) {
		case *Project:
			next := make([]int, 0, len(x.Exprs))
			for _, e := range x.Exprs {
				at := -1
				if c, ok := e.(*expr.Column); ok {
					at = c.Index
				}
				next = append(next, at)
			}
			for i := range m {
				if m[i] >= 0 {
					m[i] = next[m[i]]
				}
			}
			n = x.In
		case *Filter:
			n = x.In
		case *Aggregate:
			for k := range x.Keys {
				at := slices.Index(m, k)
				if at < 0 || !cols[at] {
					return false
				}
			}
			return true
		case *Sort:
			return x.Limit == 1 && len(on) == 0
		case *Values:
			return len(x.Rows) <= 1 && len(on) == 0
		default:
			return false
		}
	}
}

// overNothing are the columns of an aggregation without GROUP BY over no rows, nil where they are NULL; nil for other
// queries.
func overNothing(n Node) ([]expr.Expr, error) {
	f := n.Fields()
	out := make([]expr.Expr, len(f))
	for i := range f {
		out[i] = col(f, i)
	}
	for {
		switch p := n.(type) {
		case *Project:
			for i := range out {
				out[i] = substitute(out[i], p.Exprs)
			}
			n = p.In
			continue
		case *Aggregate:
			if !p.Always {
				return nil, nil
			}
			by := make([]expr.Expr, len(p.Aggs))
			for i, f := range p.Fields() {
				by[i] = &expr.Literal{Value: types.NullDatum, T: f.Type.WithNull(true)}
				if !f.Type.Nullable && f.Type.Kind == types.BigInt {
					by[i] = &expr.Literal{Value: types.IntDatum(0), T: f.Type}
				}
			}
			for i := range out {
				x, err := expr.Fold(substitute(out[i], by), expr.Session{})
				if err != nil {
					return nil, err
				}
				out[i] = nil
				if l, ok := x.(*expr.Literal); !ok || !l.Value.IsNull {
					out[i] = x
				}
			}
			return out, nil
		}
		return nil, nil
	}
}

// keyed is r, over a domain when a condition on outer columns is no equality.
func (r subquery) keyed(pos diag.Pos) (subquery, error) {
	for _, c := range r.on {
		if inner, _, _ := r.o.sides(c); inner == nil && !r.spread {
			r.n, r.on, r.spread = r.raw, nil, true
			return r, r.o.spreadable(r.n, pos)
		}
	}
	return r, nil
}

// perKey aggregates to one row for each value of the columns compared with outer ones: the results of aggs first.
func (r subquery) perKey(pos diag.Pos, aggs ...expr.Agg) (subquery, error) {
	r, err := r.keyed(pos)
	if err != nil {
		return r, err
	}
	f := r.n.Fields()
	p := &Project{In: r.n, Names: fieldNames(f)}
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
	}
	a := &Aggregate{In: p, Aggs: aggs}
	for i := range aggs {
		a.Names = append(a.Names, fmt.Sprintf("$v%d", i))
	}
	out := subquery{o: r.o, pos: r.pos, spread: r.spread, raw: r.raw, empty: r.empty}
	for i, c := range r.on {
		inner, outer, op := r.o.sides(c)
		if inner == nil {
			return out, tooCorrelated(pos, "a value is computed under the condition "+c.String())
		}
		a.Keys = append(a.Keys, len(p.Exprs))
		p.Exprs, p.Names = append(p.Exprs, inner), append(p.Names, fmt.Sprintf("$k%d", i))
		x, err := expr.NewBinary(op, &expr.Column{Index: len(aggs) + i, Name: p.Names[len(f)+i], T: inner.Type()}, outer)
		if err != nil {
			return out, err
		}
		out.on = append(out.on, x)
	}
	// The results first, then the keys.
	af := a.Fields()
	top := &Project{In: a}
	for i := range af {
		at := (i + len(a.Keys)) % len(af)
		top.Exprs, top.Names = append(top.Exprs, col(af, at)), append(top.Names, af[at].Name)
	}
	out.n = top
	return out, nil
}

// exists binds EXISTS as a value: TRUE when a row matches.
func (b *binder) exists(s *scope, e *sql.Exists) (expr.Expr, error) {
	list, err := b.collector(e.Pos)
	if err != nil {
		return nil, err
	}
	r, err := b.correlated(e.Query, s)
	if err == nil && b.alwaysRow(e.Query) {
		return expr.NewBoolLiteral(true), nil
	}
	if err == nil {
		r, err = r.perKey(e.Pos, countOf(nil, -1))
	}
	if err != nil {
		return nil, err
	}
	return expr.NewIs(list.add(r, 0)[0], "NULL", true)
}

// countOf is COUNT(*), or COUNT of a column.
func countOf(in []Field, column int) expr.Agg {
	t, _ := expr.AggType(expr.AggCountStar, types.BigIntType)
	a := expr.Agg{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: t, Text: "COUNT(*)"}
	if column >= 0 {
		a.Kind, a.Arg, a.ArgType, a.Text = expr.AggCount, column, in[column].Type, "COUNT("+in[column].Name+")"
	}
	return a
}

// rowInQuery is the error for (x, y) IN (query) as a value.
func rowInQuery(row *sql.RowExpr, e *sql.In) error {
	var names, conds []string
	for i, x := range row.Elems {
		name := "c" + strconv.Itoa(i+1)
		names = append(names, name)
		conds = append(conds, "q."+name+" = "+sql.Format(x))
	}
	not := ""
	if e.Not {
		not = "NOT "
	}
	return diag.New(diag.Unsupported, e.Pos, "%sIN with several values stands in WHERE only, joined by AND, and is no value", not).
		WithHint("write %sEXISTS (SELECT 1 FROM (%s) AS q (%s) WHERE %s)", not, sql.Format(e.Query), strings.Join(names, ", "), strings.Join(conds, " AND "))
}

// inQuery binds x IN (query) as a value in three-valued logic: TRUE for a match, FALSE for an empty query, else NULL
// when x or a value of the query is NULL, else FALSE.
func (b *binder) inQuery(s *scope, e *sql.In) (expr.Expr, error) {
	list, err := b.collector(e.Pos)
	if err != nil {
		return nil, err
	}
	if row, ok := e.X.(*sql.RowExpr); ok {
		return nil, rowInQuery(row, e)
	}
	x, err := b.expr(s, e.X)
	if err != nil {
		return nil, err
	}
	r, err := b.oneColumn(e.Query, s, "IN")
	if err != nil {
		return nil, err
	}
	f := r.n.Fields()
	eq, err := expr.NewBinary("=", col(f, 0), r.o.column(x))
	if err != nil {
		return nil, diag.At(err, e.Pos)
	}
	matched := r
	matched.n, matched.on = distinct(r.n), append(slices.Clone(r.on), eq)
	if !matched.singleRow() { // several rows with the value fulfil the conditions
		if matched, err = r.keyed(e.Pos); err != nil {
			return nil, err
		}
		matched.on = append(slices.Clone(matched.on), eq)
		if matched, err = matched.perKey(e.Pos, countOf(nil, -1)); err != nil {
			return nil, err
		}
	}
	hit, err := expr.NewIs(list.add(matched, 0)[0], "NULL", true)
	if err != nil {
		return nil, err
	}
	out := hit
	if x.Type().Nullable || f[0].Type.Nullable {
		if out, err = b.inUnknown(list, r, x, hit, e.Pos); err != nil {
			return nil, err
		}
	}
	if e.Not {
		return expr.NewUnary("NOT", out)
	}
	return out, nil
}

// inUnknown adds the NULL results of IN to its matches.
func (b *binder) inUnknown(list *subqueries, r subquery, x, hit expr.Expr, pos diag.Pos) (expr.Expr, error) {
	counts, err := r.perKey(pos, countOf(nil, -1), countOf(r.n.Fields(), 0))
	if err != nil {
		return nil, err
	}
	c := list.add(counts, 0, 1)
	empty, err := expr.NewIs(c[0], "NULL", false)
	if err != nil {
		return nil, err
	}
	null, err := expr.NewIs(x, "NULL", false)
	if err != nil {
		return nil, err
	}
	holes, err := expr.NewBinary("<", c[1], c[0])
	if err != nil {
		return nil, err
	}
	unknown, err := expr.NewBinary("OR", null, holes)
	if err != nil {
		return nil, err
	}
	no, yes := expr.NewBoolLiteral(false), expr.NewBoolLiteral(true)
	nothing, err := expr.NewCast(expr.NewNullLiteral(), types.BoolType.WithNull(true), false)
	if err != nil {
		return nil, err
	}
	return expr.NewCase(nil, []expr.Expr{hit, empty, unknown}, []expr.Expr{yes, no, nothing}, no)
}
