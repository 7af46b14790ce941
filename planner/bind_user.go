package planner

import (
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// userAgg is the aggregate function of the embedding program that e calls, nil when it calls none.
func (b *binder) userAgg(e *sql.Call) *expr.UserAgg {
	if len(e.Name) != 1 {
		return nil
	}
	return b.p.funcs.LookupUserAgg(e.Name[0].Text)
}

// userAggregate binds a call of such a function, as aggregate does those of Flink.
func (g *grouping) userAggregate(b *binder, e *sql.Call) (expr.Expr, error) {
	f := b.userAgg(e)
	if e.Star || e.Within != nil || e.Nulls != sql.NullsUnset {
		return nil, diag.New(diag.Semantic, e.Pos, "%s takes neither *, WITHIN GROUP nor IGNORE NULLS", f.Name).WithHint("%s", f.Usage)
	}
	saved := b.group
	b.group = g.outer
	defer func() { b.group = saved }()
	args, err := b.exprs(g.input, e.Args)
	if err != nil {
		return nil, err
	}
	if args, err = expr.UserArgs(f.Name, f.Usage, f.Params, args); err != nil {
		return nil, diag.At(err, e.Pos)
	}
	distinct := ""
	if e.Distinct {
		distinct = "DISTINCT "
	}
	a := expr.Agg{Kind: expr.AggUser, User: f, Filter: -1, Distinct: e.Distinct, Type: f.Result.WithNull(true),
		Text: f.Name + "(" + distinct + exprList(args) + ")"}
	x := args[0]
	if len(args) > 1 {
		if x, err = expr.NewRow(nil, args); err != nil {
			return nil, diag.At(err, e.Pos)
		}
	}
	a.Arg, a.ArgType = g.column(x), x.Type()
	if e.Filter != nil {
		c, err := b.condition(g.input, e.Filter, "FILTER")
		if err != nil {
			return nil, err
		}
		a.Filter = g.column(c)
		a.Text += " FILTER (WHERE " + c.String() + ")"
	}
	return g.output(a), nil
}

func misplacedTable(e *sql.Call, name string) error {
	name = strings.ToUpper(name)
	return diag.New(diag.Semantic, e.Pos, "table function %s cannot be used here", name).
		WithDetail("it makes rows, so it stands in FROM").
		WithHint("write FROM t, LATERAL TABLE(%s(...)) AS f(...)", name)
}

// retractable refuses aggregates of the embedding program that cannot take back the rows that input in takes back.
func retractable(aggs []expr.Agg, in *phys) error {
	for _, a := range aggs {
		if a.User != nil && !a.User.Retracts && in.trait.Kinds != Inserts {
			return diag.New(diag.Semantic, diag.Pos{}, "aggregate function %s cannot take back rows, and %s changes rows (%s)", a.User.Name,
				origin(in).op.label(), (in.trait.Kinds &^ Inserts).words()).
				WithHint("give the function a Retract, or aggregate rows that are only inserted")
		}
	}
	return nil
}
