package streamsql

import (
	"fmt"
	"math/big"
	"time"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Row is a row of values with their types.
type Row struct {
	schema  *types.Schema
	datums  []types.Datum
	session expr.Session
}

// Len is the number of columns.
func (r Row) Len() int { return len(r.datums) }

// Schema is the columns' names and types.
func (r Row) Schema() *types.Schema { return r.schema }

// Datum is column i in the engine's own form.
func (r Row) Datum(i int) types.Datum { return r.datums[i] }

// Text is column i as CAST(… AS STRING) renders it; null reports NULL.
func (r Row) Text(i int) (text string, null bool) {
	if r.datums[i].IsNull {
		return "", true
	}
	return expr.Text(r.datums[i], r.schema.Columns[i].Type, r.session), false
}

// Display is Text as a result shows it: bytes as x'…' instead of as characters.
func (r Row) Display(i int) (text string, null bool) {
	if r.datums[i].IsNull {
		return "", true
	}
	return string(types.AppendDisplay(nil, r.datums[i], r.schema.Columns[i].Type, r.session.Zone)), false
}

// Session is what the values are rendered with.
func (r Row) Session() expr.Session { return r.session }

// Value is column i as a Go value, nil for NULL:
//
//	BOOLEAN bool · integers int64 · FLOAT, DOUBLE float64 · DECIMAL Decimal · CHAR, VARCHAR, STRING string
//	BINARY, BYTES []byte · DATE, TIMESTAMP time.Time (UTC wall clock) · TIMESTAMP_LTZ time.Time (session zone)
//	TIME, day-time intervals time.Duration · year-month intervals Months
//	ARRAY, ROW []any · MAP, MULTISET []KeyValue
func (r Row) Value(i int) any {
	return goValue(r.datums[i], r.schema.Columns[i].Type, r.session)
}

// Values are all columns as Go values.
func (r Row) Values() []any {
	out := make([]any, r.Len())
	for i := range out {
		out[i] = r.Value(i)
	}
	return out
}

// Decimal is a DECIMAL value: Unscaled * 10^-Scale.
type Decimal struct {
	Unscaled *big.Int
	Scale    int
}

// String is the plain decimal text with exactly Scale fraction digits.
func (d Decimal) String() string {
	v, ok := types.I128FromBig(d.Unscaled)
	if !ok {
		return d.Unscaled.String() + "e-" + fmt.Sprint(d.Scale)
	}
	return string(types.AppendDecimal(nil, v, d.Scale))
}

// Float is the nearest float64.
func (d Decimal) Float() float64 {
	den := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(d.Scale)), nil)
	f, _ := new(big.Rat).SetFrac(d.Unscaled, den).Float64()
	return f
}

// Months is a year-month interval.
type Months int64

// KeyValue is an entry of a MAP, or an element of a MULTISET with its count (int64).
type KeyValue struct{ Key, Value any }

func goValue(d types.Datum, t types.Type, s expr.Session) any {
	if d.IsNull {
		return nil
	}
	switch t.Kind {
	case types.Boolean:
		return d.Bool
	case types.Float, types.Double:
		return d.F64
	case types.Decimal:
		v := types.I128(d.I64)
		if t.Phys() == types.PhysI128 {
			v = d.I128()
		}
		return Decimal{Unscaled: v.Big(), Scale: t.Scale}
	case types.Char, types.Varchar, types.Variant:
		return d.Str
	case types.Binary, types.Varbinary:
		return []byte(d.Str)
	case types.Date:
		return time.Unix(d.I64*86400, 0).UTC()
	case types.Time, types.IntervalDayTime:
		return time.Duration(d.I64) * time.Millisecond
	case types.IntervalYearMonth:
		return Months(d.I64)
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		at := time.Unix(sec, nanos).UTC()
		if t.Kind == types.TimestampLTZ && s.Zone != nil {
			at = at.In(s.Zone)
		}
		return at
	case types.Array:
		return goList(d.List, func(int) types.Type { return *t.Elem }, s)
	case types.Row:
		return goList(d.List, func(i int) types.Type { return t.Fields[i].Type }, s)
	case types.Map, types.Multiset:
		return goMap(d.List, t, s)
	}
	return d.I64
}

func goList(list []types.Datum, t func(int) types.Type, s expr.Session) []any {
	out := make([]any, len(list))
	for i := range list {
		out[i] = goValue(list[i], t(i), s)
	}
	return out
}

func goMap(list []types.Datum, t types.Type, s expr.Session) []KeyValue {
	out := make([]KeyValue, 0, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		kv := KeyValue{}
		if t.Kind == types.Multiset {
			kv = KeyValue{goValue(list[i], *t.Elem, s), list[i+1].I64}
		} else {
			kv = KeyValue{goValue(list[i], *t.Key, s), goValue(list[i+1], *t.Elem, s)}
		}
		out = append(out, kv)
	}
	return out
}

// Scan stores the columns in the variables dst points to, in order. A destination is a pointer to the column's Go type
// (see Value), to int, int32 or string where the value converts without loss (string takes any column's text), to any,
// or a pointer to one of these pointers, which becomes nil for NULL. NULL in another destination is an error.
func (r Row) Scan(dst ...any) error {
	if len(dst) != r.Len() {
		return fmt.Errorf("scan: %d destinations for %d columns", len(dst), r.Len())
	}
	for i, d := range dst {
		if err := r.scan(i, d); err != nil {
			return fmt.Errorf("scan column %q (%s): %w", r.schema.Columns[i].Name, r.schema.Columns[i].Type, err)
		}
	}
	return nil
}

func (r Row) scan(i int, dst any) error {
	v := r.Value(i)
	switch p := dst.(type) {
	case *any:
		*p = v
		return nil
	case *string:
		text, null := r.Text(i)
		if null {
			return errNull
		}
		*p = text
		return nil
	case **string:
		*p = nil
		if text, null := r.Text(i); !null {
			*p = &text
		}
		return nil
	case *int:
		return store(v, func(x int64) { *p = int(x) })
	case *int32:
		return store(v, func(x int64) { *p = int32(x) })
	case *int64:
		return store(v, func(x int64) { *p = x })
	case **int64:
		return pointer(v, p)
	case *float64:
		return store(v, func(x float64) { *p = x })
	case **float64:
		return pointer(v, p)
	case *bool:
		return store(v, func(x bool) { *p = x })
	case **bool:
		return pointer(v, p)
	case *[]byte:
		if v == nil {
			*p = nil
			return nil
		}
		return store(v, func(x []byte) { *p = x })
	case *time.Time:
		return store(v, func(x time.Time) { *p = x })
	case **time.Time:
		return pointer(v, p)
	case *time.Duration:
		return store(v, func(x time.Duration) { *p = x })
	case *Decimal:
		return store(v, func(x Decimal) { *p = x })
	case **Decimal:
		return pointer(v, p)
	case *[]any:
		return store(v, func(x []any) { *p = x })
	case *[]KeyValue:
		return store(v, func(x []KeyValue) { *p = x })
	}
	return fmt.Errorf("cannot scan into %T", dst)
}

var errNull = fmt.Errorf("the value is NULL; scan into a pointer to a pointer")

func store[T any](v any, set func(T)) error {
	if v == nil {
		return errNull
	}
	x, ok := v.(T)
	if !ok {
		var want T
		return fmt.Errorf("the value is a %T, the destination takes %T", v, want)
	}
	set(x)
	return nil
}

func pointer[T any](v any, p **T) error {
	*p = nil
	if v == nil {
		return nil
	}
	return store(v, func(x T) { *p = &x })
}
