package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// withEmptyRow gives an aggregation without GROUP BY its row over no rows, in batch mode: SQL wants one, COUNT 0 and the
// others NULL. The input gets one more row, which a FILTER keeps from every function, so that the group exists. Streaming
// mode stays as Flink's, which sends nothing before the first row.
func withEmptyRow(n Node) Node {
	a, ok := n.(*Aggregate)
	if !ok || !a.Always {
		return n
	}
	f := a.In.Fields()
	live := len(f) // a column that is TRUE in the input's own rows
	p := &Project{In: a.In, Names: append(fieldNames(f), "$live")}
	u := &Union{Out: slices.Clone(f)}
	row := make([]expr.Expr, 0, live+1)
	for i := range f {
		p.Exprs = append(p.Exprs, col(f, i))
		u.Out[i].Type, u.Out[i].Time = f[i].Type.WithNull(true), NoTime
		row = append(row, &expr.Literal{Value: types.NullDatum, T: u.Out[i].Type})
	}
	p.Exprs = append(p.Exprs, expr.NewBoolLiteral(true))
	u.Out = append(u.Out, Field{Name: "$live", Type: types.BoolType.NotNull()})
	row = append(row, expr.NewBoolLiteral(false))
	u.Ins = []Node{p, &Values{Rows: [][]expr.Expr{row}, Schema: u.Out}}
	c := *a
	c.In, c.Always, c.Aggs = u, false, slices.Clone(a.Aggs)
	for i := range c.Aggs {
		if c.Aggs[i].Filter < 0 { // a FILTER of its own is NULL in the new row
			c.Aggs[i].Filter = live
		}
	}
	return &c
}
