package expr

import (
	"math"
	"math/big"
	"strconv"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func roundFuncs() []*Func {
	return []*Func{
		{Name: "ROUND", Category: "arithmetic", Usage: "ROUND(number [, digits])",
			Doc:  "number rounded half away from zero to digits behind the point (default 0, negative: in front of it). DECIMAL(p,s) gets the scale digits when that is a constant.",
			Bind: fn("ROUND(number [, digits])", spec{params: "n|i", retOf: roundType, nullable: true, eval: roundEval(false)})},
		{Name: "TRUNCATE", Category: "arithmetic", Usage: "TRUNCATE(number [, digits])",
			Doc:  "number cut toward zero to digits behind the point; the types are those of ROUND.",
			Bind: fn("TRUNCATE(number [, digits])", spec{params: "n|i", retOf: roundType, nullable: true, eval: roundEval(true)})},
	}
}

// roundType is Flink's: DECIMAL(p,s) with a constant n < s is DECIMAL(p-s+n+1, n); other types stay.
func roundType(b *site) (types.Type, error) {
	t := b.args[0].Type()
	if t.Kind != types.Decimal {
		return t, nil
	}
	n := int64(0)
	if len(b.args) > 1 {
		l, ok := b.literal(1)
		if !ok {
			return t, nil
		}
		n = l.I64
	}
	switch {
	case n >= int64(t.Scale):
		return t, nil
	case n < 0:
		return types.DecimalOf(min(types.MaxDecimalPrecision, t.Precision-t.Scale+1), 0), nil
	}
	return types.DecimalOf(min(types.MaxDecimalPrecision, t.Precision-t.Scale+1+int(n)), int(n)), nil
}

func roundEval(trunc bool) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		from, to := b.args[0].Type(), b.ret
		digits := func(x row) int {
			if !x.has(1) {
				return 0
			}
			return int(x.i64(1))
		}
		var e Eval
		switch {
		case from.Phys() == types.PhysF64:
			single := from.Kind == types.Float
			e = perRow(vecF64, func(x row) (float64, *diag.Error) {
				v, err := roundFloat(x.f64(0), digits(x), trunc)
				if single {
					v = float64(float32(v))
				}
				return v, err
			})
		case from.Kind == types.Decimal:
			e = datumEval(to, func(x row) (types.Datum, *diag.Error) {
				v, ok := roundDecimal(wide(x.args[0], x.args[0].Idx(x.r)), from.Scale, digits(x), to, trunc)
				return decimalOrNull(v, ok, to.Precision), nil
			})
		default:
			e = perRow(vecI64, func(x row) (int64, *diag.Error) {
				v, ok := roundDecimal(types.I128(x.i64(0)), 0, digits(x), types.DecimalOf(38, 0), trunc)
				if !ok {
					return 0, isNull
				}
				return from.Kind.Wrap(v.Int64()), nil
			})
		}
		return func(Session) Eval { return e }
	}
}

// roundDecimal rounds the unscaled value v of the given scale at n digits behind the point and stores it as t.
func roundDecimal(v types.Int128, scale, n int, t types.Type, trunc bool) (types.Int128, bool) {
	if n >= scale {
		return types.Rescale(v, scale, t.Scale, t.Precision)
	}
	cut := scale - n
	if cut > 39 {
		return types.Int128{}, true
	}
	unit := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(cut)), nil)
	q, r := new(big.Int).QuoRem(v.Big(), unit, new(big.Int))
	if !trunc && r.Abs(r).Lsh(r, 1).Cmp(unit) >= 0 {
		q.Add(q, big.NewInt(int64(v.Sign())))
	}
	// q counts units of 10^-n; the result has t.Scale digits.
	if up := t.Scale - n; up >= 0 {
		q.Mul(q, new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(up)), nil))
	}
	w, ok := types.I128FromBig(q)
	return w, ok && w.FitsDigits(t.Precision)
}

// roundFloat rounds by the shortest decimal text, as BigDecimal.valueOf(x).setScale does. A FLOAT is rounded as the DOUBLE it is.
func roundFloat(f float64, n int, trunc bool) (float64, *diag.Error) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		name := "ROUND"
		if trunc {
			name = "TRUNCATE"
		}
		return 0, badValue(name, "%s cannot be rounded", types.AppendFloat(nil, f, 64)).
			WithHint("filter such values out, or put CASE WHEN around the call")
	}
	if n > 340 {
		return f, nil
	}
	r, _ := new(big.Rat).SetString(strconv.FormatFloat(f, 'e', -1, 64))
	scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(n, -n, 0))), nil))
	if n < -340 {
		return 0, nil
	}
	if n < 0 {
		scale.Inv(scale)
	}
	r.Mul(r, scale)
	q, m := new(big.Int).QuoRem(r.Num(), r.Denom(), new(big.Int))
	if !trunc && m.Abs(m).Lsh(m, 1).Cmp(r.Denom()) >= 0 {
		q.Add(q, big.NewInt(int64(r.Sign())))
	}
	r.SetInt(q)
	r.Quo(r, scale)
	v, _ := r.Float64()
	return v, nil
}

func floorType(b *site) (types.Type, error) {
	t := b.args[0].Type()
	if t.Kind == types.Decimal {
		return types.DecimalOf(t.Precision, 0), nil
	}
	return t, nil
}

// floorNumber is FLOOR or CEIL of a number.
func floorNumber(floor bool) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		from, to := b.args[0].Type(), b.ret
		var e Eval
		switch {
		case from.IsInteger():
			e = perRow(vecI64, func(x row) (int64, *diag.Error) { return x.i64(0), nil })
		case from.Kind == types.Decimal:
			e = datumEval(to, func(x row) (types.Datum, *diag.Error) {
				v := wide(x.args[0], x.args[0].Idx(x.r))
				w := floorDecimal(v, from.Scale, floor)
				return decimalOrNull(w, w.FitsDigits(to.Precision), to.Precision), nil
			})
		case floor:
			e = unaryEval(math.Floor)
		default:
			e = unaryEval(math.Ceil)
		}
		return func(Session) Eval { return e }
	}
}

func floorDecimal(v types.Int128, scale int, floor bool) types.Int128 {
	if scale == 0 {
		return v
	}
	unit := types.Pow10(scale).Big()
	q, r := new(big.Int).QuoRem(v.Big(), unit, new(big.Int))
	switch {
	case floor && r.Sign() < 0:
		q.Sub(q, big.NewInt(1))
	case !floor && r.Sign() > 0:
		q.Add(q, big.NewInt(1))
	}
	w, _ := types.I128FromBig(q)
	return w
}
