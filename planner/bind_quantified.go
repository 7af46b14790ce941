package planner

import (
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// quantified binds x op ANY (query) and x op ALL (query) as values in three-valued logic. ALL is the opposite of ANY with
// the opposite comparison. = ANY is IN; the others look at the smallest and the largest value, one of which decides.
func (b *binder) quantified(s *scope, e *sql.Quantified) (expr.Expr, error) {
	op := e.Op
	if e.All {
		op = map[string]string{"=": "<>", "<>": "=", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}[op]
	}
	x, err := b.anyOf(s, e, op)
	if err != nil || !e.All {
		return x, err
	}
	return expr.NewUnary("NOT", x)
}

func (b *binder) anyOf(s *scope, e *sql.Quantified, op string) (expr.Expr, error) {
	if op == "=" {
		return b.inQuery(s, &sql.In{Place: e.Place, X: e.X, Query: e.Query})
	}
	list, err := b.collector(e.Pos)
	if err != nil {
		return nil, err
	}
	x, err := b.expr(s, e.X)
	if err != nil {
		return nil, err
	}
	r, err := b.oneColumn(e.Query, s, op+" ANY or ALL")
	if err != nil {
		return nil, err
	}
	f := r.n.Fields()
	aggs := []expr.Agg{countOf(nil, -1), countOf(f, 0)}
	for _, k := range []expr.AggKind{expr.AggMin, expr.AggMax} {
		t, err := expr.AggType(k, f[0].Type)
		if err != nil {
			return nil, diag.At(err, e.OpPos)
		}
		aggs = append(aggs, expr.Agg{Kind: k, Arg: 0, ArgType: f[0].Type, Filter: -1, Type: t, Text: k.String() + "(" + f[0].Name + ")"})
	}
	if r, err = r.perKey(e.Pos, aggs...); err != nil {
		return nil, err
	}
	v := list.add(r, 0, 1, 2, 3)
	return decide(op, x, v, e.OpPos)
}

// decide is x op ANY of values with their number, the number of those that are not NULL, the smallest and the largest: FALSE
// without values, TRUE when an end fits, else NULL when x or a value is NULL, else FALSE.
func decide(op string, x expr.Expr, v []expr.Expr, pos diag.Pos) (expr.Expr, error) {
	empty, err := expr.NewIs(v[0], "NULL", false)
	if err != nil {
		return nil, err
	}
	end := v[2] // the smallest
	if op[0] == '<' {
		end = v[3]
	}
	hit, err := expr.NewBinary(op, x, end)
	if err == nil && op == "<>" {
		var other expr.Expr
		if other, err = expr.NewBinary(op, x, v[2]); err == nil {
			hit, err = expr.NewBinary("OR", hit, other)
		}
	}
	if err != nil {
		return nil, diag.At(err, pos)
	}
	yes, err := expr.NewIs(hit, "TRUE", false)
	if err != nil {
		return nil, err
	}
	holes, err := expr.NewBinary("<", v[1], v[0])
	if err != nil {
		return nil, err
	}
	null, err := expr.NewIs(x, "NULL", false)
	if err != nil {
		return nil, err
	}
	unknown, err := expr.NewBinary("OR", null, holes)
	if err != nil {
		return nil, err
	}
	no := expr.NewBoolLiteral(false)
	nothing, err := expr.NewCast(expr.NewNullLiteral(), types.BoolType.WithNull(true), false)
	if err != nil {
		return nil, err
	}
	return expr.NewCase(nil, []expr.Expr{empty, yes, unknown}, []expr.Expr{no, expr.NewBoolLiteral(true), nothing}, no)
}
