package types

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// TestNestedAccess: NestedAt and NestedFind see the entries that DecodeNested sees.
func TestNestedAccess(t *testing.T) {
	inner := RowOf(Field{Name: "x", Type: IntType}, Field{Name: "y", Type: StringType})
	row := RowOf(Field{Name: "b", Type: BoolType}, Field{Name: "i", Type: IntType}, Field{Name: "w", Type: DecimalOf(30, 2)},
		Field{Name: "s", Type: StringType}, Field{Name: "r", Type: inner}, Field{Name: "a", Type: ArrayOf(StringType)},
		Field{Name: "m", Type: MapOf(StringType, DoubleType)}, Field{Name: "f", Type: DoubleType}, Field{Name: "t", Type: TimestampOf(Timestamp, 9)})
	r := rand.New(rand.NewPCG(1, 1))
	for i := 0; i < 300; i++ {
		vals := []Datum{
			BoolDatum(i%2 == 0), IntDatum(int64(i)), I128Datum(I128(int64(-i))), StrDatum(fmt.Sprint("s", i)),
			ListDatum(IntDatum(1), StrDatum("y")), ListDatum(StrDatum("p"), NullDatum), ListDatum(StrDatum("k"), FloatDatum(1)),
			FloatDatum(float64(i)), I128Datum(JoinNanos(int64(i), 5)),
		}
		for j := range vals {
			if r.IntN(4) == 0 {
				vals[j] = NullDatum
			}
		}
		src := string(AppendNested(nil, ListDatum(vals...), row))
		if n := NestedLen(src); n != len(vals) {
			t.Fatalf("length %d", n)
		}
		for j := range vals {
			d, ok := NestedAt(src, row, j)
			if want := string(AppendValue(nil, vals[j], row.Entry(j))); !ok || string(AppendValue(nil, d, row.Entry(j))) != want {
				t.Fatalf("field %d: %v %t, want %v", j, d, ok, vals[j])
			}
		}
		for _, j := range []int{-1, len(vals)} {
			if _, ok := NestedAt(src, row, j); ok {
				t.Fatalf("entry %d exists", j)
			}
		}
	}
	m := MapOf(StringType, IntType)
	src := string(AppendNested(nil, ListDatum(StrDatum("a"), IntDatum(1), StrDatum("bb"), NullDatum, NullDatum, IntDatum(3)), m))
	for key, want := range map[string]string{"a": "1 true", "bb": "NULL true", "c": "0 false"} {
		d, ok := NestedFind(src, m, StrDatum(key))
		if got := fmt.Sprintf("%s %t", AppendText(nil, d, IntType, time.UTC), ok); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
	if d, ok := NestedFind(src, m, NullDatum); !ok || d.I64 != 3 {
		t.Errorf("NULL key: %v %t", d, ok)
	}
}

// FuzzNestedAccess: damaged bytes are refused, never a panic.
func FuzzNestedAccess(f *testing.F) {
	t := RowOf(Field{Name: "a", Type: ArrayOf(StringType)}, Field{Name: "m", Type: MapOf(StringType, IntType)}, Field{Name: "i", Type: IntType})
	m := MapOf(StringType, ArrayOf(IntType))
	f.Add(string(AppendNested(nil, ListDatum(ListDatum(StrDatum("x")), ListDatum(StrDatum("k"), IntDatum(1)), IntDatum(2)), t)), 2)
	f.Add(string(AppendNested(nil, ListDatum(StrDatum("k"), ListDatum(IntDatum(1))), m)), 0)
	f.Fuzz(func(_ *testing.T, src string, i int) {
		if i >= 0 && i < 3 && NestedLen(src) <= 3 {
			NestedAt(src, t, i)
		}
		NestedFind(src, m, StrDatum("k"))
	})
}

// TestDisplay: results show bytes in hexadecimal, also inside nested values; CAST shows their text.
func TestDisplay(t *testing.T) {
	typ := ArrayOf(BytesType)
	d := ListDatum(StrDatum("Fl"), NullDatum)
	if got := string(AppendDisplay(nil, d, typ, time.UTC)); got != "[x'466c', NULL]" {
		t.Errorf("display %s", got)
	}
	if got := string(AppendText(nil, d, typ, time.UTC)); got != "[Fl, NULL]" {
		t.Errorf("text %s", got)
	}
	if got := string(AppendText(nil, ListDatum(StrDatum("a"), IntDatum(1), StrDatum("b"), IntDatum(2)), MultisetOf(StringType), nil)); got != "{a=1, b=2}" {
		t.Errorf("multiset %s", got)
	}
}
