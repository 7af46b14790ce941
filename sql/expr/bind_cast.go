package expr

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// NewCast is CAST(x AS t), or TRY_CAST. A pair of types outside Flink's matrix is an error. The nullability of t is
// ignored: CAST keeps that of x, TRY_CAST is nullable.
func NewCast(x Expr, t types.Type, try bool) (Expr, error) {
	from := x.Type()
	if why, hint, ok := castable(from, t); !ok {
		err := diag.New(diag.Semantic, diag.Pos{}, "cannot cast %s to %s", from.WithNull(true), t.WithNull(true))
		if why != "" {
			err.WithDetail("%s", why)
		}
		if hint == "" {
			hint = "CAST takes these types not from each other; go through a type both know, such as STRING, or take a field or element first"
		}
		return nil, err.WithHint("%s", hint)
	}
	if l, ok := x.(*Literal); ok && l.Value.IsNull {
		return &Literal{Value: types.NullDatum, T: t.WithNull(true)}, nil
	}
	c := &Cast{X: x, T: t.WithNull(from.Nullable)}
	if try {
		c.Mode, c.T.Nullable = CastTry, true
	}
	if from.SameIgnoringNull(c.T) {
		return x, nil
	}
	return c, nil
}

// castable is Flink's cast matrix, with a reason and a way out for the frequent refusals.
func castable(from, to types.Type) (why, hint string, ok bool) {
	if from.Kind == types.Null || from.SameIgnoringNull(to) {
		return "", "", true
	}
	if from.IsNested() || to.IsNested() && from.Kind != types.Variant {
		return castableNested(from, to)
	}
	switch {
	case from.Kind == types.Variant:
		return castableVariant(to)
	case from.IsString():
		return "", "", !to.IsInterval() && to.Kind != types.Variant
	case from.IsBytes():
		return "", "", to.IsString() || to.IsBytes()
	case to.Kind == types.Variant:
		return "", "PARSE_JSON makes a VARIANT of JSON text", false
	case to.IsString():
		return "", "", true
	case to.IsBytes():
		return "", "write CAST(CAST(x AS STRING) AS BYTES) for the bytes of the text", false
	case from.Kind == types.Boolean:
		return "", "", to.IsNumeric() || to.Kind == types.Boolean
	case from.IsNumeric():
		return castableNumeric(from, to)
	case from.IsInterval():
		return castableInterval(from, to)
	case from.IsTimestamp() && to.IsNumeric():
		return "a time stamp has no number of its own", "use UNIX_TIMESTAMP(CAST(x AS STRING)), EXTRACT or TIMESTAMPDIFF", false
	case from.Kind == types.Date:
		return "", "", to.Kind == types.Date || to.IsTimestamp()
	case from.Kind == types.Time:
		return "", "", to.Kind == types.Time || to.IsTimestamp()
	}
	return "", "", from.IsTimestamp() && (to.IsTimestamp() || to.Kind == types.Date || to.Kind == types.Time)
}

func castableNumeric(from, to types.Type) (why, hint string, ok bool) {
	switch {
	case to.IsNumeric() || to.Kind == types.Boolean:
		return "", "", true
	case to.IsTimestamp():
		return "the unit of the number is not known", "use TO_TIMESTAMP_LTZ(x, 3) for milliseconds, 0 for seconds", false
	case to.IsInterval() && from.IsInteger():
		return intervalField(to)
	}
	return "", "", false
}

func castableInterval(from, to types.Type) (why, hint string, ok bool) {
	if to.IsInteger() {
		return intervalField(from)
	}
	return "", "", from.Kind == to.Kind
}

// intervalField allows conversions between integers and intervals of one field.
func intervalField(t types.Type) (why, hint string, ok bool) {
	if strings.Contains(t.Unit, " TO ") {
		return "only intervals of a single field convert from and to integers", "", false
	}
	return "", "", true
}

func castableNested(from, to types.Type) (why, hint string, ok bool) {
	if to.IsString() {
		return "", "", true
	}
	if from.Kind != to.Kind {
		return "", "", false
	}
	if len(from.Fields) != len(to.Fields) {
		return "the rows have a different number of fields", "", false
	}
	for i := range from.Fields {
		if why, hint, ok = castable(from.Fields[i].Type, to.Fields[i].Type); !ok {
			return why, hint, false
		}
	}
	if from.Key != nil {
		if why, hint, ok = castable(*from.Key, *to.Key); !ok {
			return why, hint, false
		}
	}
	if from.Elem != nil {
		return castable(*from.Elem, *to.Elem)
	}
	return "", "", true
}
