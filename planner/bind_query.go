package planner

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// query binds a query.
func (b *binder) query(q sql.Query) (Node, error) {
	switch q := q.(type) {
	case *sql.Select:
		return b.selectQuery(q)
	case *sql.Values:
		n, err := b.values(q)
		if err != nil {
			return nil, err
		}
		return b.tail(n, q.Tail, q.Pos)
	case *sql.SetOp:
		return b.setOp(q)
	case *sql.With:
		return b.with(q)
	}
	return nil, diag.New(diag.Internal, q.Position(), "unknown kind of query %T", q)
}

// with binds common table expressions; each sees the ones before it.
func (b *binder) with(q *sql.With) (Node, error) {
	scope := map[string]Node{}
	b.ctes = append(b.ctes, scope)
	defer func() { b.ctes = b.ctes[:len(b.ctes)-1] }()
	for _, c := range q.CTEs {
		if _, twice := scope[c.Name.Text]; twice {
			return nil, diag.New(diag.Semantic, c.Name.Pos, "WITH defines %s twice", c.Name.Text)
		}
		n, err := b.query(c.Query)
		if err != nil {
			return nil, err
		}
		if n, err = renameColumns(n, c.Columns, c.Name); err != nil {
			return nil, err
		}
		scope[c.Name.Text] = n
	}
	return b.query(q.Query)
}

// renameColumns gives the columns of n the names of a column list; nil keeps them.
func renameColumns(n Node, names []sql.Name, of sql.Name) (Node, error) {
	if names == nil {
		return n, nil
	}
	in := n.Fields()
	if len(names) != len(in) {
		return nil, diag.New(diag.Semantic, of.Pos, "%s has %d column names, its query has %d columns", of.Text, len(names), len(in)).
			WithDetail("columns of the query: %s", strings.Join(fieldNames(in), ", "))
	}
	p := &Project{In: n}
	for i, name := range names {
		p.Exprs = append(p.Exprs, col(in, i))
		p.Names = append(p.Names, name.Text)
	}
	return p, nil
}

// values binds VALUES: the columns get the common type of their rows.
func (b *binder) values(q *sql.Values) (Node, error) {
	width := len(q.Rows[0])
	n := &Values{Rows: make([][]expr.Expr, len(q.Rows))}
	for r, row := range q.Rows {
		if len(row) != width {
			return nil, diag.New(diag.Semantic, row[0].Position(), "row %d of VALUES has %d columns, row 1 has %d", r+1, len(row), width)
		}
		x, err := b.exprs(&scope{}, row)
		if err != nil {
			return nil, err
		}
		n.Rows[r] = x
	}
	for c := range width {
		ts := make([]types.Type, len(n.Rows))
		for r := range n.Rows {
			ts[r] = n.Rows[r][c].Type()
		}
		t, err := expr.CommonType(ts)
		if err != nil {
			if ts[0].Kind != types.Null || len(ts) > 1 && !allNull(ts) {
				return nil, diag.At(err, q.Rows[0][c].Position())
			}
			t = types.Type{Kind: types.Null, Nullable: true} // an INSERT gives it the column's type
		}
		for r := range n.Rows {
			if n.Rows[r][c], err = expr.ImplicitCast(n.Rows[r][c], t); err != nil {
				return nil, diag.At(err, q.Rows[r][c].Position())
			}
		}
		n.Schema = append(n.Schema, Field{Name: fmt.Sprintf("EXPR$%d", c), Type: t})
	}
	return n, nil
}

func allNull(ts []types.Type) bool {
	for _, t := range ts {
		if t.Kind != types.Null {
			return false
		}
	}
	return true
}

// setOp binds UNION [ALL]; the other set operations need joins.
func (b *binder) setOp(q *sql.SetOp) (Node, error) {
	if q.Op != "UNION" {
		return nil, diag.New(diag.Unsupported, q.Pos, "%s is not supported", q.Op).
			WithDetail("it is a join of both sides on all columns, and joins are not supported yet").
			WithHint("UNION and UNION ALL are supported")
	}
	l, err := b.query(q.L)
	if err != nil {
		return nil, err
	}
	r, err := b.query(q.R)
	if err != nil {
		return nil, err
	}
	n, err := unionOf(l, r, q.Pos)
	if err != nil {
		return nil, err
	}
	if !q.All {
		n = distinct(n)
	}
	return b.tail(n, q.Tail, q.Pos)
}

// unionOf merges two inputs, flattening unions of unions. Names are the left side's.
func unionOf(l, r Node, pos diag.Pos) (Node, error) {
	lf, rf := l.Fields(), r.Fields()
	if len(lf) != len(rf) {
		return nil, diag.New(diag.Semantic, pos, "UNION of %d and %d columns", len(lf), len(rf)).
			WithDetail("left: %s; right: %s", strings.Join(fieldNames(lf), ", "), strings.Join(fieldNames(rf), ", "))
	}
	out := make([]Field, len(lf))
	for i := range lf {
		t, err := expr.CommonType([]types.Type{lf[i].Type, rf[i].Type})
		if err != nil {
			return nil, diag.New(diag.Semantic, pos, "column %d of UNION: %s is %s on the left and %s (%s) on the right", i+1,
				lf[i].Name, lf[i].Type.WithNull(true), rf[i].Type.WithNull(true), rf[i].Name).WithHint("CAST one of them")
		}
		out[i] = Field{Name: lf[i].Name, Type: t}
		if lf[i].Time == rf[i].Time && lf[i].Type.Kind == rf[i].Type.Kind {
			out[i].Time = lf[i].Time
		}
	}
	u := &Union{Out: out}
	for _, side := range []Node{l, r} {
		side, err := castTo(side, out)
		if err != nil {
			return nil, diag.At(err, pos)
		}
		if s, ok := side.(*Union); ok {
			u.Ins = append(u.Ins, s.Ins...)
		} else {
			u.Ins = append(u.Ins, side)
		}
	}
	return u, nil
}

// castTo converts the columns of n to the types of want, adding a projection only where one is needed.
func castTo(n Node, want []Field) (Node, error) {
	in := n.Fields()
	p := &Project{In: n}
	same := true
	for i, f := range in {
		e, err := expr.ImplicitCast(col(in, i), want[i].Type)
		if err != nil {
			return nil, err
		}
		if _, plain := e.(*expr.Column); !plain {
			same = false
		}
		p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, f.Name)
	}
	if same {
		return n, nil
	}
	return p, nil
}

// distinct groups by all columns.
func distinct(n Node) Node {
	f := n.Fields()
	return &Aggregate{In: n, Keys: upTo(0, len(f)), Distinct: true}
}

// item is a bound element of a SELECT list.
type item struct {
	x     expr.Expr
	name  string
	ast   sql.Expr
	alias bool
}

// selectQuery binds one SELECT block in SQL's order: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT.
func (b *binder) selectQuery(q *sql.Select) (Node, error) {
	saved := b.group
	b.group = nil
	defer func() { b.group = saved }()
	if err := refuseSelect(q); err != nil {
		return nil, err
	}
	in, s, err := b.from(q)
	if err != nil {
		return nil, err
	}
	if q.Where != nil {
		c, err := b.condition(s, q.Where, "WHERE")
		if err != nil {
			return nil, err
		}
		in = &Filter{In: in, Cond: c}
	}
	if err := b.openGroup(q, s); err != nil {
		return nil, err
	}
	items, err := b.items(q, s)
	if err != nil {
		return nil, err
	}
	var having expr.Expr
	if q.Having != nil {
		if having, err = b.condition(s, q.Having, "HAVING"); err != nil {
			return nil, err
		}
	}
	sort, hidden, err := b.order(q.Order, s, items, q.Distinct)
	if err != nil {
		return nil, err
	}
	n := in
	if b.group != nil {
		n = b.group.node(in)
		if having != nil {
			n = &Filter{In: n, Cond: having}
		}
	}
	return b.finish(q, n, items, sort, hidden)
}

// finish puts projection, DISTINCT, ORDER BY and LIMIT on top. hidden are columns only ORDER BY needs.
func (b *binder) finish(q *sql.Select, n Node, items []item, keys []SortKey, hidden []expr.Expr) (Node, error) {
	p := &Project{In: n}
	for _, it := range items {
		p.Exprs, p.Names = append(p.Exprs, it.x), append(p.Names, it.name)
	}
	for i, h := range hidden {
		p.Exprs, p.Names = append(p.Exprs, h), append(p.Names, fmt.Sprintf("$o%d", i))
	}
	n = p
	if q.Distinct {
		n = distinct(n)
	}
	n, err := b.limit(n, keys, q.Tail, q.Pos)
	if err != nil || hidden == nil {
		return n, err
	}
	f := n.Fields()
	top := &Project{In: n}
	for i := range items {
		top.Exprs, top.Names = append(top.Exprs, col(f, i)), append(top.Names, f[i].Name)
	}
	return top, nil
}

func refuseSelect(q *sql.Select) error {
	if q.Qualify != nil {
		return diag.New(diag.Unsupported, q.Qualify.Position(), "QUALIFY is not supported").WithDetail("OVER windows are not supported yet")
	}
	if len(q.Windows) > 0 {
		return diag.New(diag.Unsupported, q.Windows[0].Name.Pos, "the WINDOW clause is not supported").WithDetail("OVER windows are not supported yet")
	}
	for _, h := range q.Hints {
		return diag.New(diag.Unsupported, h.Pos, "hint %s is not supported here", h.Name).
			WithHint("OPTIONS hints stand behind a table name; set '%s' instead of STATE_TTL", keyStateTTL)
	}
	return nil
}

// openGroup starts an aggregation when the block has GROUP BY, HAVING or aggregates.
func (b *binder) openGroup(q *sql.Select, s *scope) error {
	grouped := q.GroupBy != nil || q.Having != nil
	for _, it := range q.Items {
		grouped = grouped || hasAggregate(it.X)
	}
	for _, o := range q.Order {
		grouped = grouped || hasAggregate(o.X)
	}
	if !grouped {
		return nil
	}
	g := &grouping{input: s}
	for _, it := range q.GroupBy {
		if it.Kind != sql.GroupExprs {
			return diag.New(diag.Unsupported, it.Pos, "%s is not supported", [...]string{"", "GROUPING SETS", "ROLLUP", "CUBE"}[it.Kind]).
				WithHint("write one query per grouping and UNION ALL them")
		}
		for _, e := range it.Exprs {
			x, err := b.groupKey(q, s, e)
			if err != nil {
				return err
			}
			if !containsExpr(g.keys, x) {
				g.keys = append(g.keys, x)
			}
		}
	}
	g.pre = append(g.pre, g.keys...)
	b.group = g
	return nil
}

func containsExpr(list []expr.Expr, x expr.Expr) bool {
	for _, e := range list {
		if expr.Equal(e, x) {
			return true
		}
	}
	return false
}

// legacyWindows are the group window functions that Flink replaced by window TVFs.
var legacyWindows = map[string]bool{"TUMBLE": true, "HOP": true, "SESSION": true, "CUMULATE": true}

// groupKey binds one expression of GROUP BY: over the input, or an alias of the SELECT list as Flink allows.
func (b *binder) groupKey(q *sql.Select, s *scope, e sql.Expr) (expr.Expr, error) {
	if c, ok := e.(*sql.Call); ok && len(c.Name) == 1 && legacyWindows[strings.ToUpper(c.Name[0].Text)] {
		return nil, diag.New(diag.Unsupported, c.Pos, "the group window %s(...) in GROUP BY is not supported", strings.ToUpper(c.Name[0].Text)).
			WithDetail("Flink has replaced group windows by window table functions").
			WithHint("write FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end")
	}
	x, err := b.expr(s, e)
	if err == nil {
		return x, nil
	}
	if id, ok := e.(*sql.Ident); ok && len(id.Path) == 1 {
		for _, it := range q.Items {
			if it.Alias != nil && it.Alias.Text == id.Path[0].Text && !hasAggregate(it.X) {
				return b.expr(s, it.X)
			}
		}
	}
	return nil, err
}

// items binds the SELECT list; * takes the columns of FROM.
func (b *binder) items(q *sql.Select, s *scope) ([]item, error) {
	var out []item
	for _, it := range q.Items {
		if star, ok := it.X.(*sql.Star); ok {
			list, err := b.star(s, star)
			if err != nil {
				return nil, err
			}
			out = append(out, list...)
			continue
		}
		x, err := b.expr(s, it.X)
		if err != nil {
			return nil, err
		}
		o := item{x: x, ast: it.X, name: b.itemName(s, it, len(out)), alias: it.Alias != nil}
		out = append(out, o)
	}
	return out, nil
}

// itemName is the alias, the name of a plain column, or EXPR$n as Flink names it.
func (b *binder) itemName(s *scope, it sql.SelectItem, n int) string {
	if it.Alias != nil {
		return it.Alias.Text
	}
	switch e := it.X.(type) {
	case *sql.Ident:
		return e.Path.Last()
	case *sql.FieldAccess:
		return e.Name.Text
	}
	return "EXPR$" + strconv.Itoa(n)
}

func (b *binder) star(s *scope, e *sql.Star) ([]item, error) {
	var out []item
	table := ""
	if len(e.Qualifier) > 0 {
		table = e.Qualifier.Last()
		if !s.hasTable(table) {
			return nil, diag.New(diag.Semantic, e.Pos, "%s.* names no table of the FROM clause", e.Qualifier.Plain())
		}
	}
	if len(s.cols) == 0 {
		return nil, diag.New(diag.Semantic, e.Pos, "SELECT * needs a FROM clause")
	}
	for i, c := range s.cols {
		if table != "" && c.table != table {
			continue
		}
		if b.group != nil {
			x, err := b.expr(s, &sql.Ident{Place: e.Place, Path: sql.Path{{Text: c.field.Name, Pos: e.Pos}}})
			if err != nil {
				return nil, err
			}
			out = append(out, item{x: x, name: c.field.Name})
			continue
		}
		out = append(out, item{x: s.columnAt(i), name: c.field.Name})
	}
	return out, nil
}
