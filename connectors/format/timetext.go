package format

import (
	"github.com/streamsql/streamsql/sql/types"
)

// The text of dates and times in messages. It is narrower than CAST's (types.ParseDate, types.AppendTimestamp): fields
// have fixed widths when read, and a fraction is written without trailing zeros.

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
		if last := types.DaysInMonth(y, m); d > last {
			if !smart {
				return 0, false
			}
			d = last
		}
	}
	return types.DaysFromCivil(y, m, d), true
}

// parseClock reads "HH:mm:ss[.f]" to the end of s as the second of the day and nanoseconds; without seconds only if
// short. 24:00:00 is returned as daySeconds.
func parseClock(s string, short bool) (sec, nanos int64, ok bool) {
	if len(s) < 5 || s[2] != ':' {
		return 0, 0, false
	}
	h, m, n := two(s, 0), two(s, 3), 0
	if h < 0 || m < 0 || h > 24 || m > 59 {
		return 0, 0, false
	}
	if len(s) == 5 {
		if !short {
			return 0, 0, false
		}
	} else {
		if len(s) < 8 || s[5] != ':' {
			return 0, 0, false
		}
		if n = two(s, 6); n < 0 || n > 59 {
			return 0, 0, false
		}
	}
	sec = int64((h*60+m)*60 + n)
	if len(s) > 8 {
		if nanos, ok = parseFraction(s[8:]); !ok {
			return 0, 0, false
		}
	}
	return sec, nanos, sec < daySeconds || sec == daySeconds && nanos == 0
}

const daySeconds = 86400

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
	return f * types.Pow10I64(10-len(s)), true
}

// parseTimestamp reads Flink's text of a timestamp: "yyyy-MM-dd HH:mm:ss[.f]", or with iso "yyyy-MM-ddTHH:mm[:ss[.f]]";
// zone demands a final "Z".
func parseTimestamp(s string, iso, zone bool) (sec, nanos int64, ok bool) {
	if zone {
		if len(s) == 0 || s[len(s)-1] != 'Z' {
			return 0, 0, false
		}
		s = s[:len(s)-1]
	}
	sep := byte(' ')
	if iso {
		sep = 'T'
	}
	if len(s) < 16 || s[10] != sep {
		return 0, 0, false
	}
	smart := !iso || zone
	days, ok := parseDate(s, smart)
	if !ok {
		return 0, 0, false
	}
	sec, nanos, ok = parseClock(s[11:], iso)
	if !ok || sec == daySeconds && !smart {
		return 0, 0, false
	}
	return days*daySeconds + sec, nanos, true
}

// appendClock appends "HH:mm:ss" and the fraction without trailing zeros, none when it is zero.
func appendClock(dst []byte, sec, nanos int64) []byte {
	dst = types.AppendClock(dst, int(sec))
	if nanos == 0 {
		return dst
	}
	dst = append(dst, '.')
	n := 9
	for nanos%1000 == 0 {
		nanos /= 1000
		n -= 3
	}
	for nanos%10 == 0 {
		nanos /= 10
		n--
	}
	var digits [9]byte
	for i := n - 1; i >= 0; i-- {
		digits[i] = byte('0' + nanos%10)
		nanos /= 10
	}
	return append(dst, digits[:n]...)
}

// appendTimestamp appends the date, sep, and the clock.
func appendTimestamp(dst []byte, sec, nanos int64, sep byte) []byte {
	days := types.FloorDiv(sec, daySeconds)
	dst = append(types.AppendISODate(dst, days), sep)
	return appendClock(dst, sec-days*daySeconds, nanos)
}
