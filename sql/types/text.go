package types

import (
	"encoding/hex"
	"math"
	"strconv"
	"time"
)

// AppendText appends d, a value of type t, as CAST(d AS STRING) renders it. TIMESTAMP_LTZ is shown in zone. NULL is
// "NULL"; bytes are taken as UTF-8.
func AppendText(dst []byte, d Datum, t Type, zone *time.Location) []byte {
	return textWriter{zone: zone}.append(dst, d, t)
}

// AppendDisplay is AppendText as results are shown: bytes are x'0aff'.
func AppendDisplay(dst []byte, d Datum, t Type, zone *time.Location) []byte {
	return textWriter{zone: zone, hexBytes: true}.append(dst, d, t)
}

type textWriter struct {
	zone     *time.Location
	hexBytes bool
}

func (w textWriter) append(dst []byte, d Datum, t Type) []byte {
	if d.IsNull {
		return append(dst, "NULL"...)
	}
	switch t.Kind {
	case Boolean:
		return AppendBool(dst, d.Bool)
	case TinyInt, SmallInt, Int, BigInt:
		return strconv.AppendInt(dst, d.I64, 10)
	case Float:
		return AppendFloat(dst, d.F64, 32)
	case Double:
		return AppendFloat(dst, d.F64, 64)
	case Decimal:
		return AppendDecimal(dst, d.Decimal(t), t.Scale)
	case Char, Varchar, Variant:
		return append(dst, d.Str...)
	case Binary, Varbinary:
		if !w.hexBytes {
			return append(dst, d.Str...)
		}
		dst = append(dst, "x'"...)
		dst = hex.AppendEncode(dst, []byte(d.Str))
		return append(dst, '\'')
	case Date:
		return AppendDate(dst, d.I64)
	case Time:
		return AppendTime(dst, d.I64, t.Precision)
	case Timestamp:
		sec, nanos := SplitTimestamp(d, t.Precision)
		return AppendTimestamp(dst, sec, nanos, t.Precision)
	case TimestampLTZ:
		sec, nanos := SplitTimestamp(d, t.Precision)
		return AppendTimestamp(dst, InstantToLocal(sec, w.zone), nanos, t.Precision)
	case IntervalYearMonth:
		return AppendMonths(dst, d.I64)
	case IntervalDayTime:
		return AppendMillis(dst, d.I64)
	}
	return w.appendNested(dst, d, t)
}

func (w textWriter) appendNested(dst []byte, d Datum, t Type) []byte {
	open, end := byte('['), byte(']')
	pairs := false
	switch t.Kind {
	case Map, Multiset:
		open, end, pairs = '{', '}', true
	case Row:
		open, end = '(', ')'
	}
	dst = append(dst, open)
	for i := range d.List {
		switch {
		case i == 0:
		case pairs && i%2 == 1:
			dst = append(dst, '=')
		default:
			dst = append(dst, ", "...)
		}
		dst = w.append(dst, d.List[i], t.entry(i))
	}
	return append(dst, end)
}

// AppendBool appends TRUE or FALSE.
func AppendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, "TRUE"...)
	}
	return append(dst, "FALSE"...)
}

// AppendDecimal64 appends v / 10^scale in plain notation with exactly scale fraction digits.
func AppendDecimal64(dst []byte, v int64, scale int) []byte {
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	var buf [20]byte
	return appendScaled(dst, strconv.AppendUint(buf[:0], u, 10), scale)
}

// AppendDecimal is AppendDecimal64 for 128-bit values.
func AppendDecimal(dst []byte, v Int128, scale int) []byte {
	if v.Fits64() {
		return AppendDecimal64(dst, v.Int64(), scale)
	}
	u, neg := v.abs()
	if neg {
		dst = append(dst, '-')
	}
	q, lo := u.div64(pow10U64[19])
	var buf [48]byte
	b := buf[:0]
	hi, mid := q.div64(pow10U64[19])
	if hi.lo > 0 {
		b = strconv.AppendUint(b, hi.lo, 10)
		b = appendPadded(b, mid, 19)
	} else if mid > 0 {
		b = strconv.AppendUint(b, mid, 10)
	}
	if len(b) > 0 {
		b = appendPadded(b, lo, 19)
	} else {
		b = strconv.AppendUint(b, lo, 10)
	}
	return appendScaled(dst, b, scale)
}

func appendScaled(dst, digits []byte, scale int) []byte {
	n := len(digits) - scale
	if n <= 0 {
		dst = append(dst, '0')
	} else {
		dst = append(dst, digits[:n]...)
		digits = digits[n:]
	}
	if scale == 0 {
		return dst
	}
	dst = append(dst, '.')
	for ; n < 0; n++ {
		dst = append(dst, '0')
	}
	return append(dst, digits...)
}

// appendPadded appends v with leading zeros to width digits.
func appendPadded(dst []byte, v uint64, width int) []byte {
	var buf [20]byte
	i := len(buf)
	for v > 0 || len(buf)-i < width {
		i--
		buf[i] = byte('0' + v%10)
		v /= 10
	}
	return append(dst, buf[i:]...)
}

// AppendFloat appends f as java.lang.Double.toString (bits 64) or Float.toString (bits 32) of JDK 19 lays it out: "1.0",
// "1.0E7", "NaN", "-Infinity".
func AppendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	case f == 0 && math.Signbit(f):
		return append(dst, "-0.0"...)
	case f == 0:
		return append(dst, "0.0"...)
	}
	if f < 0 {
		dst = append(dst, '-')
		f = -f
	}
	var buf [32]byte
	e := strconv.AppendFloat(buf[:0], f, 'e', -1, bits)
	if e[1] == 'e' {
		// Java shows two digits at least; near the smallest subnormals the second one is not 0 (4.9E-324).
		e = strconv.AppendFloat(buf[:0], f, 'e', 1, bits)
	}
	cut := len(e) - 1
	for e[cut] != 'e' {
		cut--
	}
	exp, _ := strconv.Atoi(string(e[cut+1:]))
	e[1] = e[0] // digits without the point: e[1:cut]
	digits := e[1:cut]
	if digits[len(digits)-1] == '0' && len(digits) == 2 {
		digits = digits[:1]
	}
	if f >= 1e-3 && f < 1e7 {
		return appendPlain(dst, digits, exp)
	}
	dst = append(dst, digits[0], '.')
	if len(digits) == 1 {
		dst = append(dst, '0')
	}
	dst = append(dst, digits[1:]...)
	dst = append(dst, 'E')
	return strconv.AppendInt(dst, int64(exp), 10)
}

// appendPlain writes d.ddd * 10^exp without exponent and with at least one digit on each side of the point.
func appendPlain(dst, digits []byte, exp int) []byte {
	if exp < 0 {
		dst = append(dst, "0."...)
		for ; exp < -1; exp++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	}
	for i := 0; i <= exp; i++ {
		if i < len(digits) {
			dst = append(dst, digits[i])
		} else {
			dst = append(dst, '0')
		}
	}
	dst = append(dst, '.')
	if exp+1 >= len(digits) {
		return append(dst, '0')
	}
	return append(dst, digits[exp+1:]...)
}

// pairs are the numbers 00 to 99: faster than two divisions.
const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

func append2(dst []byte, v int) []byte { return append(dst, pairs[v*2], pairs[v*2+1]) }

// AppendDate appends yyyy-MM-dd; years past 9999 show their last four digits.
func AppendDate(dst []byte, days int64) []byte {
	y, m, d := CivilFromDays(days)
	y = int(FloorMod(int64(y), 10000))
	dst = append2(append2(dst, y/100), y%100)
	dst = append2(append(dst, '-'), m)
	return append2(append(dst, '-'), d)
}

// AppendClock appends HH:mm:ss of a second of the day.
func AppendClock(dst []byte, sec int) []byte {
	m, s := sec/60, sec%60
	h := m / 60
	m -= h * 60
	return append(dst, pairs[h*2], pairs[h*2+1], ':', pairs[m*2], pairs[m*2+1], ':', pairs[s*2], pairs[s*2+1])
}

// AppendTime appends HH:mm:ss and, for p > 0, a fraction of one to three digits without trailing zeros.
func AppendTime(dst []byte, ms int64, p int) []byte {
	ms = FloorMod(ms, 86400000)
	dst = AppendClock(dst, int(ms/1000))
	if p == 0 {
		return dst
	}
	dst = append(dst, '.')
	f := int(ms % 1000)
	for i, unit := 0, 100; i < min(p, 3); i, unit = i+1, unit/10 {
		dst = append(dst, byte('0'+f/unit))
		if f %= unit; f == 0 {
			break
		}
	}
	return dst
}

// AppendTimestamp appends yyyy-MM-dd HH:mm:ss and exactly p fraction digits.
func AppendTimestamp(dst []byte, sec, nanos int64, p int) []byte {
	dst = AppendDate(dst, FloorDiv(sec, 86400))
	dst = AppendClock(append(dst, ' '), int(FloorMod(sec, 86400)))
	if p == 0 {
		return dst
	}
	return appendPadded(append(dst, '.'), uint64(nanos/nanoUnit[p]), p)
}

// AppendMonths appends a year-month interval: "+1-02".
func AppendMonths(dst []byte, months int64) []byte {
	u := appendSign(&dst, months)
	dst = strconv.AppendUint(dst, u/12, 10)
	return append2(append(dst, '-'), int(u%12))
}

// AppendMillis appends a day-time interval: "+1 02:03:04.005".
func AppendMillis(dst []byte, ms int64) []byte {
	u := appendSign(&dst, ms)
	dst = strconv.AppendUint(dst, u/86400000, 10)
	dst = AppendClock(append(dst, ' '), int(u%86400000/1000))
	return appendPadded(append(dst, '.'), u%1000, 3)
}

func appendSign(dst *[]byte, v int64) uint64 {
	if v < 0 {
		*dst = append(*dst, '-')
		return -uint64(v)
	}
	*dst = append(*dst, '+')
	return uint64(v)
}
