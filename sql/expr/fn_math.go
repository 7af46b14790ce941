package expr

import (
	"math"
	"strconv"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func mathFuncs() []*Func {
	out := []*Func{
		{Name: "ABS", Category: "arithmetic", Usage: "ABS(number)",
			Doc:  "The absolute value, in the type of the argument; that of the smallest integer is itself.",
			Bind: fn("ABS(number)", spec{params: "n", retOf: argType(0), eval: absEval})},
		{Name: "SIGN", Category: "arithmetic", Usage: "SIGN(number)",
			Doc:  "-1, 0 or 1 in the type of the argument.",
			Bind: fn("SIGN(number)", spec{params: "n", retOf: argType(0), eval: signEval})},
		{Name: "POWER", Category: "arithmetic", Usage: "POWER(base, exponent)", Doc: "base raised to exponent, a DOUBLE.",
			Bind: fn("POWER(base, exponent)", spec{params: "dd", ret: types.DoubleType, eval: floats(func(x row) (float64, *diag.Error) {
				return javaPow(x.f64(0), x.f64(1)), nil
			})})},
		{Name: "LOG", Category: "arithmetic", Usage: "LOG([base,] x)",
			Doc: "The natural logarithm of x, or the logarithm to base. Outside the domain: NaN or an infinity.",
			Bind: fn("LOG([base,] x)", spec{params: "d|d", ret: types.DoubleType, eval: floats(func(x row) (float64, *diag.Error) {
				if x.has(1) {
					return math.Log(x.f64(1)) / math.Log(x.f64(0)), nil
				}
				return math.Log(x.f64(0)), nil
			})})},
		{Name: "ATAN2", Category: "arithmetic", Usage: "ATAN2(y, x)", Doc: "The angle of the point (x, y), in radians.",
			Bind: fn("ATAN2(y, x)", spec{params: "dd", ret: types.DoubleType, eval: floats(func(x row) (float64, *diag.Error) {
				return math.Atan2(x.f64(0), x.f64(1)), nil
			})})},
		{Name: "PI", Category: "arithmetic", Usage: "PI()", Doc: "The DOUBLE nearest to π.", Bind: constantFn("PI()", math.Pi)},
		{Name: "E", Category: "arithmetic", Usage: "E()", Doc: "The DOUBLE nearest to e.", Bind: constantFn("E()", math.E)},
		{Name: "BIN", Category: "arithmetic", Usage: "BIN(integer)",
			Doc: "The binary digits of a 64-bit integer in two's complement, without leading zeros.",
			Bind: fn("BIN(integer)", spec{params: "l", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				return strconv.AppendUint(dst, uint64(x.i64(0)), 2), nil
			})})},
	}
	for _, f := range unaryMath {
		f := f
		usage := f.name + "(x)"
		out = append(out, &Func{Name: f.name, Category: "arithmetic", Usage: usage, Doc: f.doc,
			Bind: fn(usage, spec{params: "d", ret: types.DoubleType, eval: always(unaryEval(f.f))})})
	}
	return out
}

var unaryMath = []struct {
	name, doc string
	f         func(float64) float64
}{
	{"SQRT", "The square root, a DOUBLE; NaN for negative numbers.", math.Sqrt},
	{"EXP", "e raised to x.", math.Exp},
	{"LN", "The natural logarithm; NaN for negative numbers, -Infinity for 0.", math.Log},
	{"LOG10", "The logarithm to base 10.", math.Log10},
	{"LOG2", "The logarithm to base 2.", func(x float64) float64 { return math.Log(x) / math.Log(2) }},
	{"SIN", "The sine of an angle in radians.", math.Sin},
	{"COS", "The cosine of an angle in radians.", math.Cos},
	{"TAN", "The tangent of an angle in radians.", math.Tan},
	{"COT", "The cotangent of an angle in radians.", func(x float64) float64 { return 1 / math.Tan(x) }},
	{"ASIN", "The arc sine, in radians; NaN outside [-1, 1].", math.Asin},
	{"ACOS", "The arc cosine, in radians; NaN outside [-1, 1].", math.Acos},
	{"ATAN", "The arc tangent, in radians.", math.Atan},
	{"SINH", "The hyperbolic sine.", math.Sinh},
	{"COSH", "The hyperbolic cosine.", math.Cosh},
	{"TANH", "The hyperbolic tangent.", math.Tanh},
	{"DEGREES", "Radians as degrees.", func(x float64) float64 { return x * (180 / math.Pi) }},
	{"RADIANS", "Degrees as radians.", func(x float64) float64 { return x * (math.Pi / 180) }},
}

func unaryEval(f func(float64) float64) Eval {
	return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
		a := args[0]
		for _, r := range rows {
			out.F64[r] = f(a.F64[a.Idx(int(r))])
		}
	}
}

// javaPow is Math.pow, which gives NaN where C and Go give 1: pow(1, NaN), pow(±1, ±Inf).
func javaPow(x, y float64) float64 {
	if y != 0 && (math.IsNaN(y) || math.IsInf(y, 0) && (x == 1 || x == -1)) {
		return math.NaN()
	}
	return math.Pow(x, y)
}

func constantFn(usage string, v float64) func(*CallSite) (Bound, error) {
	return func(c *CallSite) (Bound, error) {
		if len(c.Args) != 0 {
			return Bound{}, wrongArgs(c, usage)
		}
		return Bound{Rewrite: &Literal{Value: types.FloatDatum(v), T: types.DoubleType.NotNull()}}, nil
	}
}

// numberEval applies the function of the argument's storage class.
func numberEval(b *site, i func(int64) int64, f func(float64) float64, w func(types.Int128) types.Int128) Eval {
	switch b.ret.Phys() {
	case types.PhysF64:
		return perRow(vecF64, func(x row) (float64, *diag.Error) { return f(x.f64(0)), nil })
	case types.PhysI128:
		return perRow(vecI128, func(x row) (types.Int128, *diag.Error) { return w(wide(x.args[0], x.args[0].Idx(x.r))), nil })
	}
	k := b.ret.Kind
	return perRow(vecI64, func(x row) (int64, *diag.Error) {
		v := i(x.i64(0))
		if k != types.Decimal {
			v = k.Wrap(v)
		}
		return v, nil
	})
}

func vecI128(v *batch.Vec) []types.Int128 { return v.I128 }

func absEval(b *site) func(Session) Eval {
	e := numberEval(b, func(v int64) int64 {
		if v < 0 {
			return -v
		}
		return v
	}, math.Abs, func(v types.Int128) types.Int128 {
		if v.Sign() < 0 {
			return v.Neg()
		}
		return v
	})
	return func(Session) Eval { return e }
}

func signEval(b *site) func(Session) Eval {
	one := types.I128(1)
	if b.ret.Kind == types.Decimal {
		one = types.Pow10(b.ret.Scale)
	}
	e := numberEval(b, func(v int64) int64 {
		switch {
		case v < 0:
			return -one.Int64()
		case v > 0:
			return one.Int64()
		}
		return 0
	}, func(v float64) float64 {
		switch {
		case v < 0:
			return -1
		case v > 0:
			return 1
		}
		return v // zeros keep their sign, NaN stays NaN
	}, func(v types.Int128) types.Int128 {
		switch v.Sign() {
		case -1:
			return one.Neg()
		case 1:
			return one
		}
		return v
	})
	return func(Session) Eval { return e }
}
