package expr

import (
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/types"
)

// The cast matrix of Flink: Y always works, ! may fail for a value, N is no cast at all. One row per source type; the
// columns are the targets below in order.
var matrixTypes = []struct {
	name string
	t    types.Type
}{
	{"CHAR", types.Lengthed(types.Char, 3)}, {"STRING", types.StringType}, {"BINARY", types.Lengthed(types.Binary, 3)}, {"BYTES", types.BytesType},
	{"BOOLEAN", types.BoolType}, {"DECIMAL", types.DecimalOf(10, 2)}, {"TINYINT", types.Of(types.TinyInt)}, {"BIGINT", types.BigIntType},
	{"FLOAT", types.Of(types.Float)}, {"DOUBLE", types.DoubleType}, {"DATE", types.DateType}, {"TIME", types.Of(types.Time)},
	{"TIMESTAMP", types.TimestampMs}, {"LTZ", types.TimestampOf(types.TimestampLTZ, 3)},
	{"MONTHS", types.Type{Kind: types.IntervalYearMonth, Nullable: true, Unit: "MONTH", Precision: 2}},
	{"SECONDS", types.Type{Kind: types.IntervalDayTime, Nullable: true, Unit: "SECOND", Precision: 2, Scale: 3}},
	{"ARRAY", types.ArrayOf(types.IntType)}, {"MAP", types.MapOf(types.IntType, types.IntType)}, {"MULTISET", types.MultisetOf(types.IntType)},
	{"ROW", types.RowOf(types.Field{Name: "a", Type: types.IntType})},
}

var castMatrix = map[string]string{
	//            CH ST BI BY BO DE TI BI FL DO DA TI TS LT MO SE AR MA MU RO
	"CHAR":      "Y  Y  Y  Y  !  !  !  !  !  !  !  !  !  !  N  N  N  N  N  N",
	"STRING":    "Y  Y  Y  Y  !  !  !  !  !  !  !  !  !  !  N  N  N  N  N  N",
	"BINARY":    "!  !  Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"BYTES":     "!  !  Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"BOOLEAN":   "Y  Y  N  N  Y  Y  Y  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"DECIMAL":   "Y  Y  N  N  Y  Y  Y  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"TINYINT":   "Y  Y  N  N  Y  Y  Y  Y  Y  Y  N  N  N  N  Y  Y  N  N  N  N",
	"BIGINT":    "Y  Y  N  N  Y  Y  Y  Y  Y  Y  N  N  N  N  Y  Y  N  N  N  N",
	"FLOAT":     "Y  Y  N  N  Y  !  Y  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"DOUBLE":    "Y  Y  N  N  Y  !  Y  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"DATE":      "Y  Y  N  N  N  N  N  N  N  N  Y  N  Y  Y  N  N  N  N  N  N",
	"TIME":      "Y  Y  N  N  N  N  N  N  N  N  N  Y  Y  Y  N  N  N  N  N  N",
	"TIMESTAMP": "Y  Y  N  N  N  N  N  N  N  N  Y  Y  Y  Y  N  N  N  N  N  N",
	"LTZ":       "Y  Y  N  N  N  N  N  N  N  N  Y  Y  Y  Y  N  N  N  N  N  N",
	"MONTHS":    "Y  Y  N  N  N  N  Y  Y  N  N  N  N  N  N  Y  N  N  N  N  N",
	"SECONDS":   "Y  Y  N  N  N  N  Y  Y  N  N  N  N  N  N  N  Y  N  N  N  N",
	"ARRAY":     "Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N  N",
	"MAP":       "Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N",
	"MULTISET":  "Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N",
	"ROW":       "Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y",
}

// TestCastMatrix binds every pair, and casts values of every pair that may be: a value without a form makes CAST fail
// and TRY_CAST NULL, and nothing else does.
func TestCastMatrix(t *testing.T) {
	for _, from := range matrixTypes {
		cells := strings.Fields(castMatrix[from.name])
		if len(cells) != len(matrixTypes) {
			t.Fatalf("%s has %d cells", from.name, len(cells))
		}
		for i, to := range matrixTypes {
			x := &Column{Name: "x", T: from.t.NotNull()}
			c, err := NewCast(x, to.t, false)
			if (err != nil) != (cells[i] == "N") {
				t.Errorf("CAST(%s AS %s): %v, want %s", from.name, to.name, err, cells[i])
				continue
			}
			if err != nil {
				continue
			}
			if c.Type().Nullable || !c.Type().SameIgnoringNull(to.t) {
				t.Errorf("CAST(%s AS %s) is of type %s", from.name, to.name, c.Type())
			}
			try, err := NewCast(x, to.t, true)
			if err != nil || c != Expr(x) && !try.Type().Nullable {
				t.Errorf("TRY_CAST(%s AS %s): %v, %v", from.name, to.name, try, err)
			}
			failed := 0
			for _, v := range matrixValues(from.t) {
				f := newCaster(Session{}, CastExplicit).fn(from.t, to.t)
				if _, ok := f(v); !ok {
					failed++
				}
			}
			if (failed > 0) != (cells[i] == "!") {
				t.Errorf("CAST(%s AS %s): %d values fail, want %s", from.name, to.name, failed, cells[i])
			}
		}
	}
}

// matrixValues are ordinary and extreme values of t.
func matrixValues(t types.Type) []types.Datum {
	switch t.Phys() {
	case types.PhysBool:
		return []types.Datum{types.BoolDatum(true), types.BoolDatum(false)}
	case types.PhysF64:
		var out []types.Datum
		for _, text := range []string{"0", "-0.0", "1.5", "1e30", "-1e30", "NaN", "Infinity", "4.9e-324"} {
			f, _ := types.ParseFloat(text, 64)
			out = append(out, types.FloatDatum(f))
		}
		return out
	case types.PhysI64:
		switch t.Kind {
		case types.Date:
			return []types.Datum{types.IntDatum(-719528), types.IntDatum(0), types.IntDatum(2932896)}
		case types.Time:
			return []types.Datum{types.IntDatum(0), types.IntDatum(86399999)}
		case types.TinyInt:
			return []types.Datum{types.IntDatum(-128), types.IntDatum(127)}
		case types.Decimal:
			return []types.Datum{types.IntDatum(-9999999999), types.IntDatum(150), types.IntDatum(9999999999)}
		case types.BigInt, types.IntervalYearMonth, types.IntervalDayTime:
			return []types.Datum{types.IntDatum(-1 << 31), types.IntDatum(0), types.IntDatum(1<<31 - 1)}
		}
		return []types.Datum{types.IntDatum(-62135596800000000), types.IntDatum(-1), types.IntDatum(1709202030123000)}
	}
	switch t.Kind {
	case types.Array:
		return []types.Datum{types.ListDatum(), types.ListDatum(types.IntDatum(1), types.NullDatum)}
	case types.Map, types.Multiset:
		return []types.Datum{types.ListDatum(), types.ListDatum(types.NullDatum, types.IntDatum(2))}
	case types.Row:
		return []types.Datum{types.ListDatum(types.IntDatum(1)), types.ListDatum(types.NullDatum)}
	}
	return []types.Datum{types.StrDatum(""), types.StrDatum("abc"), types.StrDatum("\x80\xff"), types.StrDatum("1"), types.StrDatum("2024-02-29")}
}

// implicitMatrix is what INSERT and function arguments convert without CAST.
var implicitMatrix = map[string]string{
	//            CH ST BI BY BO DE TI BI FL DO DA TI TS LT MO SE AR MA MU RO
	"CHAR":      "Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"STRING":    "N  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"BINARY":    "N  N  Y  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"BYTES":     "N  N  N  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"BOOLEAN":   "N  N  N  N  Y  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N",
	"DECIMAL":   "N  N  N  N  N  Y  N  N  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"TINYINT":   "N  N  N  N  N  Y  Y  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"BIGINT":    "N  N  N  N  N  Y  N  Y  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"FLOAT":     "N  N  N  N  N  Y  N  N  Y  Y  N  N  N  N  N  N  N  N  N  N",
	"DOUBLE":    "N  N  N  N  N  Y  N  N  N  Y  N  N  N  N  N  N  N  N  N  N",
	"DATE":      "N  N  N  N  N  N  N  N  N  N  Y  N  N  N  N  N  N  N  N  N",
	"TIME":      "N  N  N  N  N  N  N  N  N  N  N  Y  N  N  N  N  N  N  N  N",
	"TIMESTAMP": "N  N  N  N  N  N  N  N  N  N  Y  Y  Y  Y  N  N  N  N  N  N",
	"LTZ":       "N  N  N  N  N  N  N  N  N  N  N  N  Y  Y  N  N  N  N  N  N",
	"MONTHS":    "N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N  N  N  N",
	"SECONDS":   "N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N  N  N",
	"ARRAY":     "N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N  N",
	"MAP":       "N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N  N",
	"MULTISET":  "N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y  N",
	"ROW":       "N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  N  Y",
}

func TestImplicitMatrix(t *testing.T) {
	for _, from := range matrixTypes {
		for i, cell := range strings.Fields(implicitMatrix[from.name]) {
			to := matrixTypes[i]
			x := &Column{Name: "x", T: from.t}
			_, err := SinkCast(x, to.t)
			_, err2 := ImplicitCast(x, to.t)
			if (err == nil) != (cell == "Y") || (err2 == nil) != (cell == "Y") {
				t.Errorf("%s into %s: %v, %v, want %s", from.name, to.name, err, err2, cell)
			}
		}
	}
	// Precision and length never stand in the way, in both directions and inside of nested types.
	for _, c := range [][2]types.Type{
		{types.DecimalOf(10, 2), types.DecimalOf(5, 2)}, {types.TimestampOf(types.Timestamp, 9), types.TimestampOf(types.Timestamp, 0)},
		{types.Lengthed(types.Varchar, 9), types.Lengthed(types.Varchar, 3)}, {types.Lengthed(types.Varbinary, 9), types.Lengthed(types.Varbinary, 3)},
		{types.ArrayOf(types.IntType), types.ArrayOf(types.BigIntType)}, {types.MultisetOf(types.Lengthed(types.Char, 3)), types.MultisetOf(types.StringType)},
		{types.RowOf(types.Field{Name: "a", Type: types.IntType}), types.RowOf(types.Field{Name: "b", Type: types.DoubleType})},
	} {
		if _, err := SinkCast(&Column{Name: "x", T: c[0]}, c[1]); err != nil {
			t.Error(err)
		}
	}
	for _, c := range [][2]types.Type{
		{types.ArrayOf(types.BigIntType), types.ArrayOf(types.IntType)}, {types.MapOf(types.IntType, types.StringType), types.MapOf(types.IntType, types.IntType)},
		{types.RowOf(), types.RowOf(types.Field{Name: "a", Type: types.IntType})},
	} {
		if _, err := SinkCast(&Column{Name: "x", T: c[0]}, c[1]); err == nil {
			t.Errorf("%s goes into %s", c[0], c[1])
		}
	}
}

// TestMultiset: a multiset is cast element by element, rendered with its counts, measured by CARDINALITY and written as
// JSON; equal multisets are equal whatever their order.
func TestMultiset(t *testing.T) {
	m := types.MultisetOf(types.Lengthed(types.Char, 1))
	lit := func(vs ...any) Expr {
		d := types.ListDatum()
		for i := 0; i < len(vs); i += 2 {
			d.List = append(d.List, types.StrDatum(vs[i].(string)), types.IntDatum(int64(vs[i+1].(int))))
		}
		return &Literal{Value: d, T: m}
	}
	a := lit("a", 2, "b", 1)
	text := func(x Expr) string {
		d, ok := Constant(x, Session{})
		if !ok {
			return "not constant"
		}
		return Text(d, x.Type(), Session{})
	}
	reg := NewRegistry()
	for _, c := range []struct {
		x    Expr
		want string
	}{
		{x: a, want: "{a=2, b=1}"}, {x: must(NewCast(a, types.StringType, false)), want: "{a=2, b=1}"},
		{x: must(NewCast(a, types.Lengthed(types.Char, 4), false)), want: "{a=2"},
		{x: must(NewCast(lit("1", 3), types.MultisetOf(types.IntType), false)), want: "{1=3}"},
		{x: must(NewCast(lit("x", 3), types.MultisetOf(types.IntType), true)), want: "NULL"},
		{x: must(reg.NewCall("CARDINALITY", []Expr{a}, CallOptions{}, Session{})), want: "2"},
		{x: must(reg.NewCall("JSON_STRING", []Expr{a}, CallOptions{}, Session{})), want: `{"a":2,"b":1}`},
		{x: must(reg.NewCall("TYPEOF", []Expr{a}, CallOptions{}, Session{})), want: "MULTISET<CHAR(1)>"},
		{x: must(NewBinary("=", a, lit("b", 1, "a", 2))), want: "TRUE"}, {x: must(NewBinary("=", a, lit("b", 2, "a", 2))), want: "FALSE"},
	} {
		if got := text(c.x); got != c.want {
			t.Errorf("%s is %s, want %s", c.x, got, c.want)
		}
	}
	if _, err := NewCast(a, types.MapOf(types.StringType, types.IntType), false); err == nil {
		t.Error("a MULTISET was cast to a MAP")
	}
}
