package print

import (
	"strconv"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// appendColumn appends the value of physical row r, with the frequent types in line.
func appendColumn(dst []byte, v *batch.Vec, r int) []byte {
	if v.IsNull(r) {
		return append(dst, "null"...)
	}
	switch v.Type.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, v.I64[v.Idx(r)], 10)
	case types.Char, types.Varchar:
		return append(dst, v.Str[v.Idx(r)]...)
	}
	return appendValue(dst, v.Datum(r), v.Type)
}

// appendValue appends d as the toString of the Java object Flink converts it to.
func appendValue(dst []byte, d types.Datum, t types.Type) []byte {
	if d.IsNull {
		return append(dst, "null"...)
	}
	switch t.Kind {
	case types.Boolean:
		return strconv.AppendBool(dst, d.Bool)
	case types.Float:
		return types.AppendFloat(dst, d.F64, 32)
	case types.Double:
		return types.AppendFloat(dst, d.F64, 64)
	case types.Decimal:
		return types.AppendBigDecimal(dst, d.Decimal(t), t.Scale, false)
	case types.Char, types.Varchar:
		return append(dst, d.Str...)
	case types.Binary, types.Varbinary:
		return appendBytes(dst, d.Str)
	case types.Date:
		return types.AppendISODate(dst, d.I64)
	case types.Time:
		return types.AppendISOTime(dst, d.I64/1e3, d.I64%1e3*1e6, false)
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(d, t.Precision)
		if t.Kind == types.Timestamp {
			return types.AppendISOTimestamp(dst, sec, nanos, false)
		}
		return append(types.AppendISOTimestamp(dst, sec, nanos, true), 'Z')
	case types.IntervalYearMonth:
		return appendPeriod(dst, d.I64)
	case types.IntervalDayTime:
		return appendDuration(dst, d.I64)
	case types.Array, types.Map, types.Multiset, types.Row:
		return appendNested(dst, d, t)
	}
	return strconv.AppendInt(dst, d.I64, 10)
}

func appendNested(dst []byte, d types.Datum, t types.Type) []byte {
	sep := func(i int) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
	}
	switch t.Kind {
	case types.Array:
		dst = append(dst, '[')
		for i, e := range d.List {
			sep(i)
			dst = appendValue(dst, e, *t.Elem)
		}
		return append(dst, ']')
	case types.Row:
		dst = append(dst, "+I["...)
		for i, e := range d.List {
			sep(i)
			dst = appendValue(dst, e, t.Fields[i].Type)
		}
		return append(dst, ']')
	}
	key, value := t.Elem, &types.BigIntType
	if t.Kind == types.Map {
		key, value = t.Key, t.Elem
	}
	dst = append(dst, '{')
	for i := 0; i < len(d.List); i += 2 {
		sep(i)
		dst = append(appendValue(dst, d.List[i], *key), '=')
		dst = appendValue(dst, d.List[i+1], *value)
	}
	return append(dst, '}')
}

// appendBytes lists the bytes as signed numbers, the text of a Java byte array.
func appendBytes(dst []byte, s string) []byte {
	dst = append(dst, '[')
	for i := range len(s) {
		if i > 0 {
			dst = append(dst, ", "...)
		}
		dst = strconv.AppendInt(dst, int64(int8(s[i])), 10)
	}
	return append(dst, ']')
}

// appendPeriod appends months as java.time.Period: P1Y2M, P0D when zero.
func appendPeriod(dst []byte, months int64) []byte {
	if months == 0 {
		return append(dst, "P0D"...)
	}
	dst = append(dst, 'P')
	if y := months / 12; y != 0 {
		dst = append(strconv.AppendInt(dst, y, 10), 'Y')
	}
	if m := months % 12; m != 0 {
		dst = append(strconv.AppendInt(dst, m, 10), 'M')
	}
	return dst
}

// appendDuration appends milliseconds as java.time.Duration: PT8H6M12.345S, PT0S when zero.
func appendDuration(dst []byte, ms int64) []byte {
	if ms == 0 {
		return append(dst, "PT0S"...)
	}
	dst = append(dst, "PT"...)
	if h := ms / 3600e3; h != 0 {
		dst = append(strconv.AppendInt(dst, h, 10), 'H')
	}
	if m := ms / 60e3 % 60; m != 0 {
		dst = append(strconv.AppendInt(dst, m, 10), 'M')
	}
	rest := ms % 60e3
	if rest == 0 {
		return dst
	}
	if rest < 0 {
		dst = append(dst, '-')
		rest = -rest
	}
	dst = strconv.AppendInt(dst, rest/1e3, 10)
	if f := rest % 1e3; f != 0 {
		s := strconv.FormatInt(1000+f, 10)[1:]
		for s[len(s)-1] == '0' {
			s = s[:len(s)-1]
		}
		dst = append(append(dst, '.'), s...)
	}
	return append(dst, 'S')
}
