package expr

import (
	"slices"

	"github.com/streamsql/streamsql/sql/types"
)

// builtins are the tables of built-in functions.
func builtins() []*Func {
	return slices.Concat(conditionalFuncs(), mathFuncs(), roundFuncs(), stringFuncs(), substringFuncs(), regexpFuncs(),
		urlFuncs(), printfFuncs(), hashFuncs(), miscFuncs(), timeUnitFuncs(), timeFuncs(),
		arrayFuncs(), mapFuncs(), jsonFuncs(), variantFuncs())
}

// conditionalFuncs evaluate only the arguments they need; they bind to CASE and COALESCE.
func conditionalFuncs() []*Func {
	return []*Func{
		{
			Name: "COALESCE", Category: "conditional", Usage: "COALESCE(value, …)",
			Doc:  "The first argument that is not NULL, in the common type of all. Later arguments are not evaluated.",
			Bind: rewrite("COALESCE(value, …)", 1, -1, NewCoalesce),
		},
		{
			Name: "IFNULL", Category: "conditional", Usage: "IFNULL(value, other)",
			Doc:  "value, or other where value is NULL; the common type of both.",
			Bind: rewrite("IFNULL(value, other)", 2, 2, NewCoalesce),
		},
		{
			Name: "NULLIF", Category: "conditional", Usage: "NULLIF(a, b)",
			Doc:  "NULL where a = b, else a. The type is that of a.",
			Bind: rewrite("NULLIF(a, b)", 2, 2, newNullIf),
		},
		{
			Name: "IF", Category: "conditional", Usage: "IF(condition, then, else)",
			Doc: "then where condition is TRUE, else where it is FALSE or UNKNOWN.",
			Bind: rewrite("IF(condition, then, else)", 3, 3, func(a []Expr) (Expr, error) {
				return NewCase(nil, a[:1], a[1:2], a[2])
			}),
		},
		{
			Name: "GREATEST", Category: "conditional", Usage: "GREATEST(value, …)",
			Doc:  "The largest argument in their common type; NULL if any argument is NULL.",
			Bind: rewrite("GREATEST(value, …)", 1, -1, func(a []Expr) (Expr, error) { return newExtreme(">=", a) }),
		},
		{
			Name: "LEAST", Category: "conditional", Usage: "LEAST(value, …)",
			Doc:  "The smallest argument in their common type; NULL if any argument is NULL.",
			Bind: rewrite("LEAST(value, …)", 1, -1, func(a []Expr) (Expr, error) { return newExtreme("<=", a) }),
		},
		{
			Name: "MOD", Category: "arithmetic", Usage: "MOD(a, b)",
			Doc:  "The remainder of a / b, with the sign of a and the type of b for integers. The same as a % b.",
			Bind: rewrite("MOD(a, b)", 2, 2, func(a []Expr) (Expr, error) { return NewBinary("%", a[0], a[1]) }),
		},
	}
}

// rewrite binds a function to an expression built from at least lo and at most hi arguments (-1: any number).
func rewrite(usage string, lo, hi int, build func([]Expr) (Expr, error)) func(*CallSite) (Bound, error) {
	return func(c *CallSite) (Bound, error) {
		if len(c.Args) < lo || hi >= 0 && len(c.Args) > hi {
			return Bound{}, wrongArgs(c, usage)
		}
		e, err := build(c.Args)
		return Bound{Rewrite: e}, err
	}
}

func newNullIf(a []Expr) (Expr, error) {
	eq, err := NewBinary("=", a[0], a[1])
	if err != nil {
		return nil, err
	}
	t := a[0].Type().WithNull(true)
	return &Case{When: []Expr{eq}, Then: []Expr{&Literal{Value: types.NullDatum, T: t}}, Else: a[0], T: t}, nil
}

// newExtreme is GREATEST or LEAST: CASE WHEN any is NULL THEN NULL WHEN a op b AND a op c … THEN a … ELSE last END.
func newExtreme(op string, args []Expr) (Expr, error) {
	args, t, err := unify(args)
	if err != nil {
		return nil, err
	}
	c := &Case{T: t}
	for _, a := range args {
		if a.Type().Nullable {
			c.When = append(c.When, &Is{X: a, What: "NULL"})
			c.Then = append(c.Then, &Literal{Value: types.NullDatum, T: t})
		}
	}
	for i, a := range args[:len(args)-1] {
		var all []Expr
		for _, b := range args[i+1:] {
			cmp, err := newComparison(op, a, b)
			if err != nil {
				return nil, err
			}
			all = append(all, cmp)
		}
		c.When = append(c.When, And(all...))
		c.Then = append(c.Then, a)
	}
	c.Else = args[len(args)-1]
	return c, nil
}
