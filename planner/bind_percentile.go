package planner

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// percentile binds PERCENTILE(value, percentage [, frequency]); the percentage is a constant, or an array of them.
func (c *aggCall) percentile() error {
	if !c.shown[0].Type().IsNumeric() {
		return diag.At(percentileRefused("the values of PERCENTILE are "+c.shown[0].Type().WithNull(true).String()+", not numbers"), c.e.Args[0].Position())
	}
	if err := c.percentages(); err != nil {
		return diag.At(err, c.e.Args[1].Position())
	}
	double := types.DoubleType.WithNull(c.shown[0].Type().Nullable)
	x, err := expr.NewCast(c.shown[0], double, false)
	if err != nil {
		return diag.At(err, c.e.Args[0].Position())
	}
	if c.arg = x; len(c.shown) < 3 {
		return nil
	}
	times := c.shown[2].Type()
	if !times.IsInteger() {
		return diag.At(percentileRefused("the frequency of PERCENTILE is "+times.WithNull(true).String()+", not an integer"), c.e.Args[2].Position())
	}
	n, err := expr.NewCast(c.shown[2], types.BigIntType.WithNull(times.Nullable), false)
	if err == nil {
		c.arg, err = expr.NewRow(nil, []expr.Expr{x, n})
	}
	return err
}

func percentileRefused(what string) *diag.Error {
	return diag.New(diag.Semantic, diag.Pos{}, "%s", what).
		WithHint("write PERCENTILE(x, 0.5), or PERCENTILE(x, ARRAY[0.5, 0.99]) with numbers from 0 to 1")
}

// percentages reads the second argument.
func (c *aggCall) percentages() error {
	x := c.shown[1]
	want := types.DoubleType
	if x.Type().Kind == types.Array {
		want = types.ArrayOf(want)
	} else {
		c.first = true
	}
	if !x.Type().IsNumeric() && (c.first || !x.Type().Elem.IsNumeric()) {
		return percentileRefused("the percentage of PERCENTILE is " + x.Type().WithNull(true).String() + ", not a number")
	}
	x, err := expr.NewCast(x, want, false)
	if err == nil {
		x, err = c.b.fold(x)
	}
	if err != nil {
		return err
	}
	l, ok := x.(*expr.Literal)
	if !ok {
		return percentileRefused("the percentage of PERCENTILE is not a constant")
	}
	list := []types.Datum{l.Value}
	if !c.first && !l.Value.IsNull {
		list = l.Value.List
	}
	for _, d := range list {
		if d.IsNull || !(d.F64 >= 0 && d.F64 <= 1) {
			return percentileRefused("a percentage of PERCENTILE is not between 0 and 1")
		}
		c.fractions = append(c.fractions, d.F64)
	}
	return nil
}

// firstOf is the first element of an array.
func firstOf(x expr.Expr) (expr.Expr, error) {
	return expr.NewItem(x, &expr.Literal{Value: types.IntDatum(1), T: types.IntType.NotNull()})
}
