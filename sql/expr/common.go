package expr

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// CommonType is the type that values of all the given types fit: of CASE results, UNION columns, IN lists, ARRAY elements.
// NULLs only add nullability; types of different families, or only NULLs, are an error (Flink's LogicalTypeMerging).
func CommonType(ts []types.Type) (types.Type, error) {
	out := types.Type{Kind: types.Null, Nullable: true}
	nullable := false
	for _, t := range ts {
		nullable = nullable || t.Nullable || t.Kind == types.Null
		switch {
		case t.Kind == types.Null:
		case out.Kind == types.Null:
			out = t
		default:
			m, ok := mergeTypes(out, t)
			if !ok {
				return out, diag.New(diag.Semantic, diag.Pos{}, "%s and %s have no common type",
					out.WithNull(true), t.WithNull(true)).WithHint("CAST one of them to the type of the other")
			}
			out = m
		}
	}
	if out.Kind == types.Null {
		return out, diag.New(diag.Semantic, diag.Pos{}, "the type of NULL cannot be derived here").
			WithHint("write CAST(NULL AS type)")
	}
	return out.WithNull(nullable), nil
}

// mergeTypes is the common type of two types other than NULL.
func mergeTypes(a, b types.Type) (types.Type, bool) {
	nullable := a.Nullable || b.Nullable
	if a.SameIgnoringNull(b) {
		return a.WithNull(nullable), true
	}
	switch {
	case a.IsNumeric() && b.IsNumeric():
		return mergeNumeric(a, b).WithNull(nullable), true
	case a.IsString() && b.IsString():
		return mergeLength(a, b, types.Char, types.Varchar).WithNull(nullable), true
	case a.IsBytes() && b.IsBytes():
		return mergeLength(a, b, types.Binary, types.Varbinary).WithNull(nullable), true
	case a.IsTimestamp() && b.IsTimestamp():
		t := a
		if b.Kind == types.TimestampLTZ {
			t = b
		}
		t.Precision = max(a.Precision, b.Precision)
		return t.WithNull(nullable), true
	case a.Kind != b.Kind:
		return a, false
	case a.Kind == types.Time:
		a.Precision = max(a.Precision, b.Precision)
		return a.WithNull(nullable), true
	case a.IsInterval():
		return mergeIntervals(a, b).WithNull(nullable), true
	}
	return mergeNested(a, b)
}

func mergeNested(a, b types.Type) (types.Type, bool) {
	t := a.WithNull(a.Nullable || b.Nullable)
	switch a.Kind {
	case types.Array, types.Multiset, types.Map:
		e, ok := mergeMaybeNull(*a.Elem, *b.Elem)
		if !ok {
			return a, false
		}
		t.Elem = &e
		if a.Kind == types.Map {
			k, ok := mergeMaybeNull(*a.Key, *b.Key)
			if !ok {
				return a, false
			}
			t.Key = &k
		}
		return t, true
	case types.Row:
		if len(a.Fields) != len(b.Fields) {
			return a, false
		}
		t.Fields = make([]types.Field, len(a.Fields))
		for i, f := range a.Fields {
			ft, ok := mergeMaybeNull(f.Type, b.Fields[i].Type)
			if !ok {
				return a, false
			}
			t.Fields[i] = types.Field{Name: f.Name, Type: ft}
		}
		return t, true
	}
	return a, false
}

func mergeMaybeNull(a, b types.Type) (types.Type, bool) {
	switch {
	case a.Kind == types.Null:
		return b.WithNull(true), true
	case b.Kind == types.Null:
		return a.WithNull(true), true
	}
	return mergeTypes(a, b)
}

func mergeNumeric(a, b types.Type) types.Type {
	switch {
	case a.Kind == types.Double || b.Kind == types.Double:
		return types.DoubleType
	case a.Kind == types.Float || b.Kind == types.Float:
		if a.Kind == types.Decimal || b.Kind == types.Decimal {
			return types.DoubleType
		}
		return types.Of(types.Float)
	case a.IsInteger() && b.IsInteger():
		return types.Of(max(a.Kind, b.Kind))
	}
	p1, s1 := a.AsDecimal()
	p2, s2 := b.AsDecimal()
	s := max(s1, s2)
	p := max(p1-s1, p2-s2) + s
	if p > types.MaxDecimalPrecision {
		s = max(0, s-(p-types.MaxDecimalPrecision))
		p = types.MaxDecimalPrecision
	}
	return types.DecimalOf(p, s)
}

func mergeLength(a, b types.Type, fixed, variable types.Kind) types.Type {
	n := max(a.Precision, b.Precision)
	if a.Kind == fixed && b.Kind == fixed && a.Precision == b.Precision {
		return types.Lengthed(fixed, n)
	}
	return types.Lengthed(variable, n)
}

func mergeIntervals(a, b types.Type) types.Type {
	t := types.Of(a.Kind)
	if a.Unit == b.Unit {
		t.Unit = a.Unit
	}
	t.Precision = max(a.Precision, b.Precision)
	t.Scale = max(a.Scale, b.Scale)
	return t
}

// implicitOK reports that a value of type from may stand where to is wanted without CAST: function arguments and INSERT
// columns (Flink's LogicalTypeCasts, implicit).
func implicitOK(from, to types.Type) bool {
	switch {
	case from.Kind == types.Null:
		return true
	case from.IsNested() || to.IsNested():
		return implicitNested(from, to)
	case from.Kind == to.Kind:
		return true
	case from.IsInteger() && to.IsInteger():
		return from.Kind < to.Kind
	}
	switch to.Kind {
	case types.Decimal, types.Double:
		return from.IsNumeric()
	case types.Float:
		return from.IsInteger() || from.Kind == types.Decimal
	case types.Varchar:
		return from.Kind == types.Char
	case types.Varbinary:
		return from.Kind == types.Binary
	case types.Date, types.Time:
		return from.Kind == types.Timestamp
	case types.Timestamp, types.TimestampLTZ:
		return from.IsTimestamp()
	}
	return false
}

func implicitNested(from, to types.Type) bool {
	if from.Kind != to.Kind || len(from.Fields) != len(to.Fields) {
		return false
	}
	for i := range from.Fields {
		if !implicitOK(from.Fields[i].Type, to.Fields[i].Type) {
			return false
		}
	}
	return (from.Elem == nil || implicitOK(*from.Elem, *to.Elem)) && (from.Key == nil || implicitOK(*from.Key, *to.Key))
}

// ImplicitCast converts x to type t where Flink converts silently, as for function arguments. The nullability of x is
// kept. Other pairs of types are an error.
func ImplicitCast(x Expr, t types.Type) (Expr, error) {
	if !implicitOK(x.Type(), t) {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "%s is of type %s where %s is needed", x,
			x.Type().WithNull(true), t.WithNull(true)).WithHint("write CAST(%s AS %s)", x, t.WithNull(true))
	}
	return convert(x, t), nil
}

// SinkCast converts x for a column of type t of an INSERT's table. Only what Flink converts silently is accepted; strings
// and bytes that are too long are written as they are. NULL in a NOT NULL column is for the sink to check.
func SinkCast(x Expr, t types.Type) (Expr, error) {
	if !implicitOK(x.Type(), t) {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "a value of type %s cannot be inserted into a column of type %s",
			x.Type().WithNull(true), t.WithNull(true)).
			WithHint("write CAST(%s AS %s) in the query", x, t.WithNull(true))
	}
	return convert(x, t), nil
}

// convert changes the type of x to t with x's nullability. The pair must be castable.
func convert(x Expr, t types.Type) Expr {
	from := x.Type()
	t = t.WithNull(from.Nullable)
	if from.SameIgnoringNull(t) {
		return x
	}
	if l, ok := x.(*Literal); ok {
		if c, ok := convertLiteral(l, t); ok {
			return c
		}
	}
	return &Cast{X: x, T: t, Mode: CastImplicit}
}

// convertLiteral converts a constant right away, so that binders of functions see literals as literals. The session's
// time zone is not known here.
func convertLiteral(l *Literal, t types.Type) (*Literal, bool) {
	if l.Value.IsNull {
		return &Literal{Value: types.NullDatum, T: t.WithNull(true)}, true
	}
	if l.T.IsNested() || l.T.Kind == types.TimestampLTZ || t.Kind == types.TimestampLTZ {
		return nil, false
	}
	d, ok := newCaster(Session{}, CastImplicit).fn(l.T, t)(l.Value)
	if !ok || d.IsNull {
		return &Literal{Value: types.NullDatum, T: t.WithNull(true)}, true
	}
	return &Literal{Value: d, T: t}, true
}
