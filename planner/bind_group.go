package planner

import (
	"fmt"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// grouping collects what an aggregation over input computes. Expressions above it are bound so that group keys and
// aggregate calls become columns of the Aggregate's output: the keys, then the aggregates.
type grouping struct {
	input *scope
	// setKeys is the number of keys that the grouping sets are made of; more may follow.
	setKeys int
	legacy  *legacyWindow // the group window among the keys, nil = none
	outer   *grouping     // arguments are bound above it: OVER windows of aggregates
	sets    []int64       // grouping sets by their rolled-up keys (bit); nil = one set of all keys
	keys    []expr.Expr   // over input
	pre     []expr.Expr   // what the aggregation reads: keys, then arguments and filters; over input
	aggs    []expr.Agg    // columns of pre
	names   []string      // of the aggregates
	subs    *subqueries   // whose values stand above the aggregation
}

// hasAggregate reports an aggregate call (without OVER) in e.
func (b *binder) hasAggregate(e sql.Expr) bool {
	found := false
	walkSQL(e, func(x sql.Expr) bool {
		if c, ok := x.(*sql.Call); ok && c.Over == nil && len(c.Name) == 1 &&
			(expr.IsFlinkAgg(c.Name[0].Text) || expr.IsGrouping(c.Name[0].Text) || b.userAgg(c) != nil) {
			found = true
		}
		return !found
	})
	return found
}

// walkSQL visits e and the expressions below it, not entering queries.
func walkSQL(e sql.Expr, f func(sql.Expr) bool) {
	if e == nil || !f(e) {
		return
	}
	all := func(list ...sql.Expr) {
		for _, x := range list {
			if x != nil {
				walkSQL(x, f)
			}
		}
	}
	switch e := e.(type) {
	case *sql.Call:
		all(e.Args...)
		all(e.Filter)
		if e.Over != nil {
			all(e.Over.Partition...)
			for _, o := range e.Over.Order {
				all(o.X)
			}
		}
	case *sql.Cast:
		all(e.X)
	case *sql.Unary:
		all(e.X)
	case *sql.Binary:
		all(e.L, e.R)
	case *sql.Is:
		all(e.X)
	case *sql.Between:
		all(e.X, e.Lo, e.Hi)
	case *sql.In:
		all(e.X)
		all(e.List...)
	case *sql.Like:
		all(e.X, e.Pattern, e.Escape)
	case *sql.TimeDiff:
		all(e.L, e.R)
	case *sql.Case:
		all(e.X)
		for _, w := range e.Whens {
			all(w.Cond, w.Then)
		}
		all(e.Else)
	case *sql.Item:
		all(e.X, e.Index)
	case *sql.FieldAccess:
		all(e.X)
	case *sql.ArrayExpr:
		all(e.Elems...)
	case *sql.MapExpr:
		all(e.Keys...)
		all(e.Values...)
	case *sql.RowExpr:
		all(e.Elems...)
	case *sql.NamedArg:
		all(e.X)
	}
}

// replace binds e as a group key or an aggregate; nil when it is neither and its parts are to be bound.
func (g *grouping) replace(b *binder, e sql.Expr) (expr.Expr, error) {
	if c, ok := e.(*sql.Call); ok && c.Over == nil && len(c.Name) == 1 && expr.IsFlinkAgg(c.Name[0].Text) &&
		b.p.funcs.Lookup(c.Name[0].Text) == nil {
		return g.aggregate(b, c)
	}
	if c, name, part := legacyPart(e); c != nil {
		return g.legacyColumn(b, c, name, part)
	}
	if c, ok := e.(*sql.Call); ok && c.Over == nil && b.userAgg(c) != nil {
		return g.userAggregate(b, c)
	}
	if c, ok := e.(*sql.Call); ok && len(c.Name) == 1 && expr.IsGrouping(c.Name[0].Text) && c.Over == nil {
		return g.groupingID(b, c)
	}
	if _, ok := e.(*sql.Literal); ok {
		return nil, nil
	}
	if len(g.keys) == 0 || b.hasAggregate(e) || hasOver(e) {
		return nil, nil
	}
	b.group = nil
	x, err := b.expr(g.input, e)
	b.group = g
	if err != nil {
		return nil, nil // its parts say what is wrong
	}
	for i, k := range g.keys {
		if expr.Equal(k, x) {
			return &expr.Column{Index: i, Name: keyName(k, i), T: g.keyType(i)}, nil
		}
	}
	return nil, nil
}

// keyName names a key column of the aggregation.
func keyName(k expr.Expr, i int) string {
	if c, ok := k.(*expr.Column); ok {
		return c.Name
	}
	return fmt.Sprintf("$k%d", i)
}

// ungrouped is the error for a column above an aggregation that is no group key.
func (g *grouping) ungrouped(b *binder, e *sql.Ident) error {
	i, _, err := g.input.resolve(e.Path)
	if err != nil {
		return err
	}
	name := g.input.cols[i].field.Name
	d := diag.New(diag.Semantic, e.Pos, "column %s is neither grouped nor aggregated", name)
	if len(g.keys) == 0 {
		return d.WithDetail("the query aggregates without GROUP BY, so it has one row for all input rows").
			WithHint("add GROUP BY %s, or aggregate it: MAX(%s)", name, name)
	}
	if l, ok := g.keys[0].(*expr.Literal); ok && l.T.IsNumeric() {
		return d.WithDetail("a number in GROUP BY is a constant and not the place of a column").
			WithHint("write the column or expression itself in GROUP BY")
	}
	return d.WithHint("add %s to GROUP BY, or aggregate it: MAX(%s)", name, name)
}

// column adds x to what the aggregation reads and returns its column. With grouping sets it is none of the keys', which are
// NULL in some copies.
func (g *grouping) column(x expr.Expr) int {
	from := 0
	if g.sets != nil {
		from = len(g.keys)
	}
	for i, p := range g.pre[from:] {
		if expr.Equal(p, x) && expr.IsDeterministic(x) {
			return from + i
		}
	}
	g.pre = append(g.pre, x)
	return len(g.pre) - 1
}

// condition binds a BOOLEAN expression for the clause named where.
func (b *binder) condition(s *scope, e sql.Expr, where string) (expr.Expr, error) {
	x, err := b.expr(s, e)
	if err != nil {
		return nil, err
	}
	switch x.Type().Kind {
	case types.Boolean:
		return x, nil
	case types.Null:
		return expr.NewCast(x, types.BoolType, false)
	}
	return nil, diag.New(diag.Semantic, e.Position(), "%s needs a BOOLEAN condition, this has type %s", where, x.Type().WithNull(true)).
		WithHint("compare it with something")
}

// node is the aggregation over in: a projection of what it reads, then the Aggregate.
func (g *grouping) node(in Node) Node {
	pre := &Project{In: in, Exprs: g.pre, Names: make([]string, len(g.pre))}
	keys := make([]int, len(g.keys))
	for i := range g.pre {
		if i < len(g.keys) {
			keys[i] = i
			pre.Names[i] = keyName(g.pre[i], i)
		} else if c, ok := g.pre[i].(*expr.Column); ok {
			pre.Names[i] = c.Name
		} else {
			pre.Names[i] = fmt.Sprintf("$a%d", i)
		}
	}
	if g.sets != nil {
		return &Aggregate{In: g.expand(pre), Keys: append(keys, len(g.pre)), Aggs: g.aggs, Names: g.names}
	}
	return &Aggregate{In: pre, Keys: keys, Aggs: g.aggs, Names: g.names}
}
