package format

import "github.com/streamsql/streamsql/sql/types"

// AppendDate appends the day number as "yyyy-MM-dd".
func AppendDate(dst []byte, days int64) []byte { return appendDate(dst, days) }

// SplitTimestamp splits the stored value of a TIMESTAMP or TIMESTAMP_LTZ into days since 1970-01-01 and nanoseconds of
// the day.
func SplitTimestamp(d types.Datum, t types.Type) (days, nanos int64) {
	i := instantOf(d, t)
	return i.days, i.ns
}

// AppendJavaDecimal appends v * 10^-scale as Java's BigDecimal.toString does: with an exponent when the value has more
// than six zeros behind the point.
func AppendJavaDecimal(dst []byte, v types.Int128, scale int) []byte {
	var tmp [48]byte
	d, neg := appendUnscaled(tmp[:0], v)
	return appendScientific(dst, d, neg, scale)
}

// DecimalValue is the unscaled value of a DECIMAL datum of type t.
func DecimalValue(d types.Datum, t types.Type) types.Int128 { return decimalOf(d, t) }
