package expr

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/types"
)

// castFn converts one non-NULL value. ok is false when the value has no form in the target type; a number that does not
// fit a DECIMAL is NULL and ok.
type castFn func(d types.Datum) (r types.Datum, ok bool)

// caster builds the conversions between types that castable allows.
type caster struct {
	zone *time.Location
	mode CastMode
}

func newCaster(s Session, mode CastMode) caster { return caster{zone: s.zone(), mode: mode} }

func same(d types.Datum) (types.Datum, bool) { return d, true }

func (c caster) fn(from, to types.Type) castFn {
	switch {
	case retypes(from, to, c.mode):
		return same
	case from.IsNested() && to.IsNested():
		return c.nested(from, to)
	case from.Kind == types.Variant:
		return fromVariant(to)
	case from.IsString() && !to.IsString():
		return c.fromString(to)
	case to.IsString():
		return c.toString(from, to)
	case to.IsBytes():
		return func(d types.Datum) (types.Datum, bool) { return types.StrDatum(fitBytes(d.Str, to)), true }
	case to.Kind == types.Boolean:
		return func(d types.Datum) (types.Datum, bool) {
			return types.BoolDatum(d.I64 != 0 || d.Hi != 0 || d.F64 != 0), true
		}
	case to.IsNumeric():
		return toNumber(from, to)
	case to.IsInterval():
		return intToInterval(to)
	}
	return c.temporal(from, to)
}

func (c caster) toString(from, to types.Type) castFn {
	return func(d types.Datum) (types.Datum, bool) {
		if from.IsBytes() && !utf8.ValidString(d.Str) {
			return d, false
		}
		if c.mode == CastImplicit && from.IsString() {
			return d, true
		}
		text := d.Str
		if !from.IsString() && !from.IsBytes() {
			text = string(types.AppendText(nil, d, from, c.zone))
		}
		return types.StrDatum(fitString(text, to)), true
	}
}

// fitString is fitText for strings.
func fitString(s string, t types.Type) string {
	n := 0
	for i := range s {
		if n == t.Precision {
			return s[:i]
		}
		n++
	}
	if t.Kind == types.Char && n < t.Precision {
		return s + strings.Repeat(" ", t.Precision-n)
	}
	return s
}

// fitBytes cuts bytes to BINARY(n) or VARBINARY(n), and fills BINARY with zeros.
func fitBytes(s string, t types.Type) string {
	if len(s) > t.Precision {
		return s[:t.Precision]
	}
	if t.Kind == types.Binary {
		return s + strings.Repeat("\x00", t.Precision-len(s))
	}
	return s
}

func (c caster) fromString(to types.Type) castFn {
	switch to.Kind {
	case types.Boolean:
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseBool(d.Str)
			return types.BoolDatum(v), ok
		}
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		bits := 8 << (to.Kind - types.TinyInt)
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseInt(d.Str, bits)
			return types.IntDatum(v), ok
		}
	case types.Float, types.Double:
		bits := 32 << (to.Kind - types.Float)
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseFloat(d.Str, bits)
			return types.FloatDatum(v), ok
		}
	case types.Decimal:
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseDecimal(d.Str, to.Precision, to.Scale)
			return decimalDatum(v, to.Precision), ok
		}
	case types.Date:
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseDate(d.Str)
			return types.IntDatum(v), ok
		}
	case types.Time:
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.ParseTime(d.Str)
			return types.IntDatum(truncTime(v, to.Precision)), ok
		}
	case types.Timestamp, types.TimestampLTZ:
		return func(d types.Datum) (types.Datum, bool) {
			sec, nanos, ok := types.ParseTimestamp(d.Str)
			if to.Kind == types.TimestampLTZ {
				sec = types.LocalToInstant(sec, c.zone)
			}
			return types.JoinTimestamp(sec, nanos, to.Precision), ok
		}
	}
	return func(d types.Datum) (types.Datum, bool) { return types.StrDatum(fitBytes(d.Str, to)), true }
}

// truncTime cuts milliseconds of the day to p fraction digits.
func truncTime(ms int64, p int) int64 {
	if p >= 3 {
		return ms
	}
	return ms - ms%types.Pow10I64(3-p)
}

// toNumber converts numbers, BOOLEAN and single-field intervals to numbers.
func toNumber(from, to types.Type) castFn {
	switch {
	case from.Kind == types.Boolean:
		number := toNumber(types.IntType, to)
		return func(d types.Datum) (types.Datum, bool) { return number(types.IntDatum(int64(b2i(d.Bool)))) }
	case from.IsInterval():
		unit := intervalUnit(from)
		return func(d types.Datum) (types.Datum, bool) {
			return types.IntDatum(to.Kind.Wrap(d.I64 / unit)), true
		}
	case from.Phys() == types.PhysF64:
		return floatToNumber(to)
	}
	_, scale := from.AsDecimal()
	wideFrom := from.Phys() == types.PhysI128
	value := func(d types.Datum) types.Int128 {
		if wideFrom {
			return d.I128()
		}
		return types.I128(d.I64)
	}
	switch to.Kind {
	case types.Decimal:
		return func(d types.Datum) (types.Datum, bool) {
			v, ok := types.Rescale(value(d), scale, to.Scale, to.Precision)
			return decimalOrNull(v, ok, to.Precision), true
		}
	case types.Double:
		return func(d types.Datum) (types.Datum, bool) {
			return types.FloatDatum(types.DecimalToFloat(value(d), scale)), true
		}
	case types.Float:
		return func(d types.Datum) (types.Datum, bool) {
			return types.FloatDatum(float64(float32(types.DecimalToFloat(value(d), scale)))), true
		}
	}
	return func(d types.Datum) (types.Datum, bool) {
		return types.IntDatum(to.Kind.Wrap(types.RescaleTrunc(value(d), scale))), true
	}
}

// decimalOrNull is a value that may not fit DECIMAL(p,…): NULL then.
func decimalOrNull(v types.Int128, ok bool, p int) types.Datum {
	if !ok {
		return types.NullDatum
	}
	return decimalDatum(v, p)
}

func floatToNumber(to types.Type) castFn {
	switch to.Kind {
	case types.Decimal:
		return func(d types.Datum) (types.Datum, bool) {
			if math.IsNaN(d.F64) || math.IsInf(d.F64, 0) {
				return d, false
			}
			v, ok := types.DecimalFromFloat(d.F64, to.Precision, to.Scale)
			return decimalOrNull(v, ok, to.Precision), true
		}
	case types.Float:
		return func(d types.Datum) (types.Datum, bool) { return types.FloatDatum(float64(float32(d.F64))), true }
	case types.Double:
		return same
	}
	return func(d types.Datum) (types.Datum, bool) { return types.IntDatum(floatToInt(d.F64, to.Kind)), true }
}

// intervalUnit is one unit of a single-field interval in months or milliseconds.
func intervalUnit(t types.Type) int64 {
	switch t.Unit {
	case "YEAR":
		return 12
	case "QUARTER":
		return 3
	case "WEEK":
		return 7 * dayMillis
	case "DAY":
		return dayMillis
	case "HOUR":
		return 3600000
	case "MINUTE":
		return 60000
	case "SECOND":
		return 1000
	}
	return 1
}

func intToInterval(to types.Type) castFn {
	unit := intervalUnit(to)
	return func(d types.Datum) (types.Datum, bool) { return types.IntDatum(d.I64 * unit), true }
}

// temporal converts between DATE, TIME, TIMESTAMP and TIMESTAMP_LTZ through local seconds and nanoseconds.
func (c caster) temporal(from, to types.Type) castFn {
	return func(d types.Datum) (types.Datum, bool) {
		var sec, nanos int64
		switch from.Kind {
		case types.Date:
			sec = d.I64 * 86400
		case types.Time:
			sec, nanos = types.FloorDiv(d.I64, 1000), types.FloorMod(d.I64, 1000)*1e6
		default:
			sec, nanos = types.SplitTimestamp(d, from.Precision)
		}
		if from.Kind == types.TimestampLTZ && to.Kind != types.TimestampLTZ {
			sec = types.InstantToLocal(sec, c.zone)
		}
		switch to.Kind {
		case types.Date:
			return types.IntDatum(types.FloorDiv(sec, 86400)), true
		case types.Time:
			return types.IntDatum(truncTime(types.FloorMod(sec, 86400)*1000+nanos/1e6, to.Precision)), true
		}
		if to.Kind == types.TimestampLTZ && from.Kind != types.TimestampLTZ {
			sec = types.LocalToInstant(sec, c.zone)
		}
		return types.JoinTimestamp(sec, nanos, to.Precision), true
	}
}

// nested converts element by element; one failure fails the whole.
func (c caster) nested(from, to types.Type) castFn {
	fns := make([]castFn, max(2, len(from.Fields)))
	for i := range fns {
		if from.Kind == types.Row && i >= len(from.Fields) {
			break
		}
		fns[i] = c.fn(from.Entry(i), to.Entry(i))
	}
	return func(d types.Datum) (types.Datum, bool) {
		out := make([]types.Datum, len(d.List))
		for i, x := range d.List {
			if x.IsNull {
				out[i] = x
				continue
			}
			f := fns[i%2]
			if from.Kind == types.Row {
				f = fns[i]
			}
			var ok bool
			if out[i], ok = f(x); !ok {
				return d, false
			}
		}
		return types.Datum{List: out}, true
	}
}
