package expr

import (
	"math"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// NewBinary is l op r for + - * / % || = <> < <= > >= AND OR, "IS DISTINCT FROM" and "IS NOT DISTINCT FROM", with date and
// interval arithmetic under + - *. Operands are coerced and the result typed by Flink's rules; a divisor that is a
// constant zero is an error here.
func NewBinary(op string, l, r Expr) (Expr, error) {
	switch op {
	case "AND", "OR":
		return newLogic(op, l, r)
	case "=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM":
		return newComparison(op, l, r)
	case "OVERLAPS":
		return newOverlaps(l, r)
	case "||":
		return newConcat(l, r)
	case "+", "-", "*", "/", "%":
		return newArith(op, l, r)
	}
	return nil, diag.New(diag.Unsupported, diag.Pos{}, "operator %s is not supported", op)
}

// NewUnary is op x for "-", "+" and NOT.
func NewUnary(op string, x Expr) (Expr, error) {
	t := x.Type()
	switch op {
	case "NOT":
		x, err := boolOperand(op, x)
		if err != nil {
			return nil, err
		}
		return &Unary{Op: op, X: x, T: types.BoolType.WithNull(x.Type().Nullable)}, nil
	case "-", "+":
		if t.Kind == types.Null {
			return &Literal{Value: types.NullDatum, T: types.IntType}, nil
		}
		if !t.IsNumeric() && !t.IsInterval() {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "operator %s cannot be applied to %s", op, t.WithNull(true)).
				WithHint("it takes numbers and intervals")
		}
		if op == "+" {
			return x, nil
		}
		if l, ok := x.(*Literal); ok {
			if n := negated(l); n != nil {
				return n, nil
			}
		}
		return &Unary{Op: op, X: x, T: t}, nil
	}
	return nil, diag.New(diag.Unsupported, diag.Pos{}, "operator %s is not supported", op)
}

// negated is -l where the sign belongs to the literal: the smallest INT and BIGINT, whose digits alone are of a wider type,
// and zero, which as a literal has no sign. nil elsewhere.
func negated(l *Literal) *Literal {
	switch {
	case l.T.Kind == types.BigInt && l.Value.I64 == -math.MinInt32:
		return &Literal{Value: types.IntDatum(math.MinInt32), T: types.IntType.NotNull()}
	case l.T.Kind == types.Decimal && l.T.Scale == 0 && l.T.Precision == 19 && l.Value.I128() == types.I128(math.MinInt64).Neg():
		return &Literal{Value: types.IntDatum(math.MinInt64), T: types.BigIntType.NotNull()}
	case l.T.Kind == types.Double && l.Value.F64 == 0:
		return l
	}
	return nil
}

// typeNulls gives untyped NULL operands the type of the other side, or INT when both are NULL.
func typeNulls(l, r Expr, both types.Type) (Expr, Expr) {
	lt, rt := l.Type(), r.Type()
	switch {
	case lt.Kind == types.Null && rt.Kind == types.Null:
		return convert(l, both), convert(r, both)
	case lt.Kind == types.Null:
		return convert(l, rt), r
	case rt.Kind == types.Null:
		return l, convert(r, lt)
	}
	return l, r
}

func newArith(op string, l, r Expr) (Expr, error) {
	l, r = typeNulls(l, r, types.IntType)
	lt, rt := l.Type(), r.Type()
	if !lt.IsNumeric() || !rt.IsNumeric() {
		return newTemporal(op, l, r)
	}
	t := arithType(op, lt, rt).WithNull(lt.Nullable || rt.Nullable)
	if t.Kind == types.Double || t.Kind == types.Float {
		l, r = convert(l, t), convert(r, t)
	}
	return &Binary{Op: op, L: l, R: r, T: t}, nil
}

func arithType(op string, a, b types.Type) types.Type {
	switch {
	case a.Kind == types.Double || b.Kind == types.Double:
		return types.DoubleType
	case a.Kind == types.Float || b.Kind == types.Float:
		return mergeNumeric(a, b)
	case a.IsInteger() && b.IsInteger():
		if op == "%" {
			return b
		}
		return types.Of(max(a.Kind, b.Kind))
	}
	return decimalType(op, a, b)
}

// decimalType is the result of arithmetic on DECIMALs (Flink's LogicalTypeMerging.find…DecimalType).
func decimalType(op string, a, b types.Type) types.Type {
	p1, s1 := a.AsDecimal()
	p2, s2 := b.AsDecimal()
	p, s := 0, 0
	switch op {
	case "*":
		p, s = p1+p2+1, s1+s2
	case "/":
		s = max(6, s1+p2+1)
		p = p1 - s1 + s2 + s
	case "%":
		if s1 == 0 && s2 == 0 {
			return b
		}
		s = max(s1, s2)
		p = min(p1-s1, p2-s2) + s
	default:
		s = max(s1, s2)
		p = max(p1-s1, p2-s2) + s + 1
	}
	if p > types.MaxDecimalPrecision {
		s = max(types.MaxDecimalPrecision-(p-s), min(s, 6))
		p = types.MaxDecimalPrecision
	}
	return types.DecimalOf(max(p, 1), s)
}

// newTemporal is arithmetic with intervals.
func newTemporal(op string, l, r Expr) (Expr, error) {
	lt, rt := l.Type(), r.Type()
	nullable := lt.Nullable || rt.Nullable
	point := func(t types.Type) bool { return t.IsTimestamp() || t.Kind == types.Date || t.Kind == types.Time }
	switch {
	case (op == "+" || op == "-") && point(lt) && rt.IsInterval():
		return &Binary{Op: op, L: l, R: r, T: lt.WithNull(nullable)}, nil
	case op == "+" && lt.IsInterval() && point(rt):
		return &Binary{Op: op, L: r, R: l, T: rt.WithNull(nullable)}, nil
	case (op == "+" || op == "-") && lt.IsInterval() && rt.Kind == lt.Kind:
		return &Binary{Op: op, L: l, R: r, T: mergeIntervals(lt, rt).WithNull(nullable)}, nil
	case op == "*" && lt.IsInterval() && rt.IsNumeric():
		return newIntervalMul(l, r)
	case op == "*" && lt.IsNumeric() && rt.IsInterval():
		return newIntervalMul(r, l)
	}
	err := diag.New(diag.Semantic, diag.Pos{}, "operator %s cannot be applied to %s and %s", op,
		lt.WithNull(true), rt.WithNull(true))
	switch {
	case lt.Kind == types.Boolean || rt.Kind == types.Boolean:
		err.WithHint("make a number of the condition: CASE WHEN condition THEN 1 ELSE 0 END")
	case op == "-" && point(lt) && point(rt):
		err.WithHint("use TIMESTAMPDIFF(unit, %s, %s)", r, l)
	case lt.IsString() || rt.IsString():
		err.WithDetail("strings are not converted to numbers silently").
			WithHint("CAST the string to a number, or use || to join strings")
	default:
		err.WithHint("it takes numbers, and intervals with dates and timestamps; CAST the operands to such types")
	}
	return nil, err
}

func newIntervalMul(iv, n Expr) (Expr, error) {
	t := iv.Type().WithNull(iv.Type().Nullable || n.Type().Nullable)
	if !n.Type().IsInteger() {
		// Flink multiplies by the number's long value.
		n = convert(n, types.BigIntType)
	}
	return &Binary{Op: "*", L: iv, R: n, T: t}, nil
}

func newConcat(l, r Expr) (Expr, error) {
	l, r = typeNulls(l, r, types.StringType)
	lt, rt := l.Type(), r.Type()
	fixed, variable := types.Char, types.Varchar
	switch {
	case lt.IsString() && rt.IsString():
	case lt.IsBytes() && rt.IsBytes():
		fixed, variable = types.Binary, types.Varbinary
	default:
		return nil, diag.New(diag.Semantic, diag.Pos{}, "operator || cannot be applied to %s and %s", lt.WithNull(true),
			rt.WithNull(true)).WithDetail("it joins strings").WithHint("CAST the other operand to STRING")
	}
	t := types.Lengthed(variable, min(lt.Precision+rt.Precision, types.MaxLength))
	if lt.Kind == fixed && rt.Kind == fixed {
		t.Kind = fixed
	}
	return &Binary{Op: "||", L: l, R: r, T: t.WithNull(lt.Nullable || rt.Nullable)}, nil
}
