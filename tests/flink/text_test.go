package flink

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/types"
)

// value writes a value as java/Text.java does.
func value(d types.Datum, t types.Type) string {
	if d.IsNull {
		return "NULL"
	}
	switch t.Kind {
	case types.Boolean:
		return strconv.FormatBool(d.Bool)
	case types.Float:
		return float(d.F64, 32)
	case types.Double:
		return float(d.F64, 64)
	case types.Char, types.Varchar:
		return quote(d.Str)
	case types.Time:
		return trimFraction(display(d, t))
	case types.Timestamp:
		return trimFraction(display(d, t))
	case types.TimestampLTZ:
		return trimFraction(display(d, t)) + "Z"
	case types.IntervalDayTime:
		return strconv.FormatInt(d.I64, 10) + " ms"
	case types.IntervalYearMonth:
		return strconv.FormatInt(d.I64, 10) + " months"
	case types.Array, types.Row:
		return nested(d, t)
	case types.Map, types.Multiset:
		return pairs(d, t)
	}
	return display(d, t)
}

func display(d types.Datum, t types.Type) string {
	return string(types.AppendDisplay(nil, d, t, time.UTC))
}

func nested(d types.Datum, t types.Type) string {
	var out []string
	for i, e := range d.List {
		out = append(out, value(e, t.Entry(i)))
	}
	if t.Kind == types.Row {
		return "(" + strings.Join(out, ", ") + ")"
	}
	return "[" + strings.Join(out, ", ") + "]"
}

func pairs(d types.Datum, t types.Type) string {
	between := ": "
	if t.Kind == types.Multiset {
		between = " x "
	}
	var out []string
	for i := 0; i+1 < len(d.List); i += 2 {
		out = append(out, value(d.List[i], t.Entry(i))+between+value(d.List[i+1], t.Entry(i+1)))
	}
	slices.Sort(out)
	return "{" + strings.Join(out, ", ") + "}"
}

func trimFraction(s string) string {
	whole, frac, ok := strings.Cut(s, ".")
	if !ok {
		return s
	}
	if frac = strings.TrimRight(frac, "0"); frac == "" {
		return whole
	}
	return whole + "." + frac
}

func float(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "NaN"
	case math.IsInf(v, 0):
		if v > 0 {
			return "Infinity"
		}
		return "-Infinity"
	case v == 0:
		if math.Signbit(v) {
			return "-0"
		}
		return "0"
	}
	mantissa, e, _ := strings.Cut(strconv.FormatFloat(v, 'e', -1, bits), "e")
	exp, _ := strconv.Atoi(e)
	if exp >= -5 && exp < 21 {
		return strconv.FormatFloat(v, 'f', -1, bits)
	}
	return mantissa + "e" + strconv.Itoa(exp)
}

func quote(s string) string {
	b := []byte{'"'}
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b = append(b, '\\', byte(r))
		case r < 0x20 || r == 0x7f:
			b = fmt.Appendf(b, "\\u%04x", r)
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
