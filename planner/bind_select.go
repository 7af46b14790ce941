package planner

import (
	"fmt"
	"strconv"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// item is a bound element of a SELECT list.
type item struct {
	x     expr.Expr
	name  string
	ast   sql.Expr
	alias bool
}

// selectQuery binds one SELECT block in SQL's order: FROM, WHERE, GROUP BY, HAVING, SELECT, DISTINCT, ORDER BY, LIMIT.
func (b *binder) selectQuery(q *sql.Select) (Node, error) {
	defer b.enter(b.outer, nil, &subqueries{})()
	hints, lookups, over, legacy := b.hints, b.lookups, b.over, b.legacy
	b.over = nil
	defer func() { b.hints, b.lookups, b.over, b.legacy = hints, lookups, over, legacy }()
	var err error
	if b.hints, err = b.queryHints(q); err != nil {
		return nil, err
	}
	in, s, err := b.from(q)
	if err == nil {
		err = b.lookups.checkUsed()
	}
	if err != nil {
		return nil, err
	}
	for _, it := range q.Items {
		if it.Alias != nil {
			s.aliases = append(s.aliases, it.Alias.Text)
		}
	}
	if q.Where != nil {
		if in, err = b.where(in, s, q.Where); err != nil {
			return nil, err
		}
		s.retime(in.Fields())
	}
	if in, s, err = b.openLegacyWindow(q, in, s); err != nil {
		return nil, err
	}
	if err := b.openGroup(q, s); err != nil {
		return nil, err
	}
	w, err := b.openOver(q, s)
	if err != nil {
		return nil, err
	}
	items, err := b.items(q, s)
	if err != nil {
		return nil, err
	}
	var having expr.Expr
	if q.Having != nil {
		b.over = nil
		if having, err = b.condition(s, q.Having, "HAVING"); err != nil {
			return nil, err
		}
		b.over = w
	}
	qualify, err := w.qualify(b, q)
	if err != nil {
		return nil, err
	}
	sort, hidden, err := b.order(q.Order, s, items, q.Distinct)
	if err != nil {
		return nil, err
	}
	n, err := b.subs.attach(in)
	if err != nil {
		return nil, err
	}
	values := b.subs
	if b.group != nil {
		values.resolveAll(b.group.pre)
		n = b.group.node(n)
		if a, ok := n.(*Aggregate); ok {
			a.TTL = b.hints.take(s.onlyTable())
			a.Always = len(a.Keys) == 0
		}
		values = b.group.subs
		if n, err = values.attach(n); err != nil {
			return nil, err
		}
		if having != nil {
			n = &Filter{In: n, Cond: values.resolve(having)}
		}
	}
	if err := b.hints.checkUsed(s); err != nil {
		return nil, err
	}
	for i := range items {
		items[i].x = values.resolve(items[i].x)
	}
	values.resolveAll(hidden)
	n = w.node(n, values.resolve(qualify), items, hidden)
	return b.finish(q, n, items, sort, hidden)
}

// finish puts projection, DISTINCT, ORDER BY and LIMIT on top. hidden are columns only ORDER BY needs.
func (b *binder) finish(q *sql.Select, n Node, items []item, keys []SortKey, hidden []expr.Expr) (Node, error) {
	p := &Project{In: n}
	taken := map[string]bool{}
	for _, it := range items {
		p.Exprs, p.Names = append(p.Exprs, it.x), append(p.Names, unique(it.name, taken))
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

// unique makes a repeated column name differ as Flink does: a, a0, a1.
func unique(name string, taken map[string]bool) string {
	out := name
	for i := 0; taken[out]; i++ {
		out = name + strconv.Itoa(i)
	}
	taken[out] = true
	return out
}

// openGroup starts an aggregation when the block has GROUP BY, HAVING or aggregates.
func (b *binder) openGroup(q *sql.Select, s *scope) error {
	grouped := q.GroupBy != nil || q.Having != nil
	for _, it := range q.Items {
		grouped = grouped || b.hasAggregate(it.X)
	}
	for _, o := range q.Order {
		grouped = grouped || b.hasAggregate(o.X)
	}
	grouped = grouped || b.hasAggregate(q.Qualify)
	if !grouped {
		return nil
	}
	g := &grouping{input: s, legacy: b.legacy, subs: &subqueries{}}
	if err := b.groupSets(q, s, g); err != nil {
		return err
	}
	g.pre = append(g.pre, g.keys...)
	if g.legacy != nil {
		if err := g.legacy.close(g); err != nil {
			return err
		}
	}
	b.group = g
	return nil
}

// groupKey binds one expression of GROUP BY: over the input, or an alias of the SELECT list as Flink allows.
func (b *binder) groupKey(q *sql.Select, s *scope, e sql.Expr) (expr.Expr, error) {
	if c := legacyCall(e); c != nil && b.legacy != nil && c == b.legacy.call {
		return b.legacy.start(s), nil
	}
	x, err := b.expr(s, e)
	if err == nil {
		return x, nil
	}
	if id, ok := e.(*sql.Ident); ok && len(id.Path) == 1 {
		for _, it := range q.Items {
			if it.Alias != nil && it.Alias.Text == id.Path[0].Text && !b.hasAggregate(it.X) {
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
			return b.rowStar(s, e)
		}
	}
	if len(s.cols) == 0 {
		return nil, diag.New(diag.Semantic, e.Pos, "SELECT * needs a FROM clause")
	}
	for i, c := range s.cols {
		if table != "" && c.table != table || table == "" && c.qualified {
			continue
		}
		if b.group != nil {
			path := sql.Path{{Text: c.field.Name, Pos: e.Pos}}
			if c.table != "" {
				path = sql.Path{{Text: c.table, Pos: e.Pos}, path[0]}
			}
			x, err := b.expr(s, &sql.Ident{Place: e.Place, Path: path})
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
