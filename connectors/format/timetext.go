package format

import (
	"github.com/streamsql/streamsql/sql/types"
)

// civil is the day number of a date of the years 0 to 9999, proleptic Gregorian; d may run past the month's end.
func civil(y, m, d int) int64 {
	if m <= 2 {
		y--
		m += 12
	}
	era := y / 400
	if y < 0 {
		era = -1 // January and February of the year 0 count to the year before
	}
	yoe := y - era*400
	doy := (153*(m-3)+2)/5 + d - 1
	return int64(era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468)
}

var monthDays = [13]uint8{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

func daysIn(y, m int) int {
	if m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
		return 29
	}
	return int(monthDays[m])
}

func two(s string, i int) int {
	a, b := s[i]-'0', s[i+1]-'0'
	if a > 9 || b > 9 {
		return -1
	}
	return int(a)*10 + int(b)
}

// parseDate reads "yyyy-MM-dd" at the start of s. smart clamps days 29 to 31 to the month's end, as Java's SMART
// resolver does for Flink's timestamp formats; the DATE format is strict.
func parseDate(s string, smart bool) (days int64, ok bool) {
	if len(s) < 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	c, y, m, d := two(s, 0), two(s, 2), two(s, 5), two(s, 8)
	if c < 0 || y < 0 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, false
	}
	y += c * 100
	if d > 28 {
		if last := daysIn(y, m); d > last {
			if !smart {
				return 0, false
			}
			d = last
		}
	}
	return civil(y, m, d), true
}

// parseClock reads "HH:mm:ss[.f]" to the end of s as nanoseconds of the day; without seconds only if short.
// 24:00:00 is returned as a full day.
func parseClock(s string, short bool) (ns int64, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, false
	}
	h, m := two(s, 0), two(s, 3)
	if h < 0 || m < 0 || h > 24 || m > 59 {
		return 0, false
	}
	var sec int
	if len(s) == 5 {
		if !short {
			return 0, false
		}
	} else {
		if len(s) < 8 || s[5] != ':' {
			return 0, false
		}
		if sec = two(s, 6); sec < 0 || sec > 59 {
			return 0, false
		}
	}
	ns = int64((h*60+m)*60+sec) * 1e9
	if len(s) > 8 {
		f, ok := parseFraction(s[8:])
		if !ok {
			return 0, false
		}
		ns += f
	}
	return ns, ns <= dayNanos
}

const dayNanos = 86400 * 1e9

// parseFraction reads ".", then up to nine digits, as nanoseconds.
func parseFraction(s string) (int64, bool) {
	if s[0] != '.' || len(s) > 10 {
		return 0, false
	}
	var f int64
	for _, c := range bytesOf(s[1:]) {
		if c -= '0'; c > 9 {
			return 0, false
		}
		f = f*10 + int64(c)
	}
	return f * pow10[10-len(s)], true
}

var pow10 = [...]int64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18}

// instant is a wall clock: days since 1970 and nanoseconds of the day.
type instant struct{ days, ns int64 }

// parseTimestamp reads Flink's text of a timestamp: "yyyy-MM-dd HH:mm:ss[.f]", or with iso "yyyy-MM-ddTHH:mm[:ss[.f]]";
// zone demands a final "Z".
func parseTimestamp(s string, iso, zone bool) (instant, bool) {
	if zone {
		if len(s) == 0 || s[len(s)-1] != 'Z' {
			return instant{}, false
		}
		s = s[:len(s)-1]
	}
	sep := byte(' ')
	if iso {
		sep = 'T'
	}
	if len(s) < 16 || s[10] != sep {
		return instant{}, false
	}
	smart := !iso || zone
	days, ok := parseDate(s, smart)
	if !ok {
		return instant{}, false
	}
	ns, ok := parseClock(s[11:], iso)
	if !ok || (ns == dayNanos && !smart) {
		return instant{}, false
	}
	return instant{days, ns}, true
}

// datum is the stored value of t in a column of type t, more digits than its precision cut.
func (t instant) datum(ty types.Type) types.Datum {
	p := ty.Precision
	if p > 9 {
		p = 9
	}
	ns := t.ns - t.ns%pow10[9-p]
	if p > 6 {
		return types.I128Datum(types.Mul64(t.days, dayNanos).Add(types.I128(ns)))
	}
	return types.IntDatum(t.days*86400e6 + ns/1e3)
}

// instantOf splits the stored value of a timestamp.
func instantOf(d types.Datum, ty types.Type) instant {
	if ty.Precision <= 6 {
		days := floorDiv(d.I64, 86400e6)
		return instant{days, (d.I64 - days*86400e6) * 1e3}
	}
	v := d.I128()
	if v.Fits64() {
		n := v.Int64()
		days := floorDiv(n, dayNanos)
		return instant{days, n - days*dayNanos}
	}
	// Beyond the years 1677 to 2262: a float quotient is within one day, then corrected.
	days := int64((float64(v.Hi)*0x1p64 + float64(v.Lo)) / dayNanos)
	rest := v.Sub(types.Mul64(days, dayNanos))
	for rest.Sign() < 0 {
		days--
		rest = rest.Add(types.I128(dayNanos))
	}
	for rest.Cmp(types.I128(dayNanos)) >= 0 {
		days++
		rest = rest.Sub(types.I128(dayNanos))
	}
	return instant{days, rest.Int64()}
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

const pairs = "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748495051525354555657585960616263646566676869707172737475767778798081828384858687888990919293949596979899"

func append2(dst []byte, v int64) []byte { return append(dst, pairs[v*2], pairs[v*2+1]) }

// appendDate appends "yyyy-MM-dd". Years past 9999 get a plus sign and years before 0 a minus, as Java's ISO form.
func appendDate(dst []byte, days int64) []byte {
	z := days + 719468
	era := floorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	y := yoe + era*400
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d := doy - (153*mp+2)/5 + 1
	m := mp + 3
	if m > 12 {
		m -= 12
		y++
	}
	if y < 0 || y > 9999 {
		dst = appendFarYear(dst, y)
	} else {
		dst = append2(append2(dst, y/100), y%100)
	}
	dst = append(dst, '-')
	dst = append2(dst, m)
	dst = append(dst, '-')
	return append2(dst, d)
}

func appendFarYear(dst []byte, y int64) []byte {
	sign := byte('+')
	if y < 0 {
		sign, y = '-', -y
	}
	dst = append(dst, sign)
	for p := int64(1000); y < p && p > 1; p /= 10 {
		dst = append(dst, '0')
	}
	return appendInt(dst, y)
}

// appendClock appends "HH:mm:ss" and the fraction without trailing zeros, none when it is zero.
func appendClock(dst []byte, ns int64) []byte {
	sec := ns / 1e9
	dst = append2(dst, sec/3600)
	dst = append(dst, ':')
	dst = append2(dst, sec/60%60)
	dst = append(dst, ':')
	dst = append2(dst, sec%60)
	return appendFraction(dst, ns%1e9)
}

func appendFraction(dst []byte, f int64) []byte {
	if f == 0 {
		return dst
	}
	dst = append(dst, '.')
	n := 9
	for f%1000 == 0 {
		f /= 1000
		n -= 3
	}
	for f%10 == 0 {
		f /= 10
		n--
	}
	for i := n - 1; i >= 0; i-- {
		dst = append(dst, byte('0'+f/pow10[i]%10))
	}
	return dst
}

// appendTimestamp appends the date, sep, and the clock.
func appendTimestamp(dst []byte, t instant, sep byte) []byte {
	dst = appendDate(dst, t.days)
	dst = append(dst, sep)
	return appendClock(dst, t.ns)
}
