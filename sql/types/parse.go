package types

import (
	"math"
	"strconv"
	"strings"
)

// The parsers of CAST from STRING, to Flink's grammar. ok is false for text that CAST refuses.

// ParseInt reads an integer of the given width in bits. Spaces around it are ignored, and so is a fraction.
func ParseInt(s string, bits int) (v int64, ok bool) {
	s = strings.Trim(s, " ")
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	if s == "" || s == "." {
		return 0, false
	}
	// Accumulating downwards reaches the smallest value of the width.
	low := int64(-1) << (bits - 1)
	i := 0
	for ; i < len(s) && s[i] != '.'; i++ {
		d := int64(s[i]) - '0'
		if d < 0 || d > 9 || v < low/10 {
			return 0, false
		}
		if v = v * 10; v < low+d {
			return 0, false
		}
		v -= d
	}
	for i++; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
	}
	if !neg {
		if v == low {
			return 0, false
		}
		v = -v
	}
	return v, true
}

// ParseFloat reads what java.lang.Double.parseDouble (bits 64) or Float.parseFloat (bits 32) reads. Values past the range
// become infinite.
func ParseFloat(s string, bits int) (float64, bool) {
	s = strings.TrimFunc(s, func(r rune) bool { return r <= ' ' })
	t, neg := s, false
	if t != "" && (t[0] == '-' || t[0] == '+') {
		neg = t[0] == '-'
		t = t[1:]
	}
	switch {
	case t == "NaN":
		return math.NaN(), true
	case t == "Infinity" && neg:
		return math.Inf(-1), true
	case t == "Infinity":
		return math.Inf(1), true
	case t == "" || t[0] != '.' && (t[0] < '0' || t[0] > '9') || strings.IndexByte(t, '_') >= 0:
		return 0, false
	}
	hex := len(t) > 1 && (t[1] == 'x' || t[1] == 'X')
	if c := t[len(t)-1] | 0x20; (c == 'd' || c == 'f') && (!hex || strings.ContainsAny(t, "pP")) {
		s = s[:len(s)-1]
	}
	f, err := strconv.ParseFloat(s, bits)
	if err != nil {
		if ne, is := err.(*strconv.NumError); !is || ne.Err != strconv.ErrRange {
			return 0, false
		}
	}
	return f, true
}

// ParseDecimal reads a number in plain or exponent notation as DECIMAL(p,s), rounding half up.
func ParseDecimal(s string, p, scale int) (v Int128, ok bool) {
	v, fits, ok := ParseBigDecimal(strings.Trim(s, " \t\n"), p, scale)
	return v, ok && fits
}

// ParseBigDecimal is ParseDecimal without spaces around the number that tells two failures apart: ok is false when s is
// no number, fits when it has more digits than DECIMAL(p,s) holds.
func ParseBigDecimal(s string, p, scale int) (v Int128, fits, ok bool) {
	neg := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		neg = s[0] == '-'
		s = s[1:]
	}
	var buf [64]byte
	digits, frac, exp, ok := scanDecimal(buf[:0], s)
	if !ok {
		return v, false, false
	}
	// keep is how many digits stand before the last digit of the result's scale.
	keep := len(digits) - frac + exp + scale
	if len(digits) == 0 || keep < 0 {
		return v, true, true
	}
	if keep > MaxDecimalPrecision {
		return v, false, true
	}
	var u u128
	have := min(keep, len(digits))
	short := min(have, 19) // as many digits fit into 64 bits
	for _, d := range digits[:short] {
		u.lo = u.lo*10 + uint64(d-'0')
	}
	for _, d := range digits[short:have] {
		u, _ = u.mul64(10)
		u.addSmall(uint64(d - '0'))
	}
	u, _ = u.mulPow10(keep - have)
	if keep < len(digits) && digits[keep] >= '5' {
		u.addSmall(1)
	}
	return u.signed(neg), u.less(pow10U[p]), true
}

func (u *u128) addSmall(n uint64) {
	lo := u.lo + n
	if lo < u.lo {
		u.hi++
	}
	u.lo = lo
}

// scanDecimal appends to digits: it splits digits[.digits][e[+-]digits] into its significant digits (without leading zeros), how many of the
// digits follow the point, and the exponent.
func scanDecimal(digits []byte, s string) (_ []byte, frac, exp int, ok bool) {
	point, any := false, false
	i := 0
loop:
	for ; i < len(s); i++ {
		switch c := s[i]; {
		case c >= '0' && c <= '9':
			any = true
			if point {
				frac++
			}
			if len(digits) > 0 || c != '0' {
				digits = append(digits, c)
			}
		case c == '.' && !point:
			point = true
		case (c == 'e' || c == 'E') && any:
			break loop
		default:
			return nil, 0, 0, false
		}
	}
	if !any {
		return nil, 0, 0, false
	}
	if i < len(s) {
		e, err := strconv.ParseInt(s[i+1:], 10, 32)
		if err != nil {
			return nil, 0, 0, false
		}
		// Past this bound every value is 0 or too large; clamping keeps the sums small.
		exp = int(max(-1<<20, min(e, 1<<20)))
	}
	return digits, frac, exp, true
}

// ParseBool reads t, true, y, yes, 1, f, false, n, no, 0 in any case.
func ParseBool(s string) (v, ok bool) {
	if len(s) > 5 {
		return false, false
	}
	switch strings.ToLower(s) {
	case "t", "true", "y", "yes", "1":
		return true, true
	case "f", "false", "n", "no", "0":
		return false, true
	}
	return false, false
}

// ParseDate reads y, y-m or y-m-d as days since 1970-01-01; spaces in front and text after the next space are ignored.
func ParseDate(s string) (days int64, ok bool) {
	s = strings.TrimLeft(s, " ")
	if i := strings.IndexByte(s, ' '); i >= 0 {
		s = s[:i]
	}
	part := [3]int{0, 1, 1}
	for i := range part {
		text, rest, more := strings.Cut(s, "-")
		n, ok := parseNum(text, 9)
		if !ok {
			return 0, false
		}
		part[i] = n
		if !more {
			s = ""
			break
		}
		if s = rest; i == 2 {
			return 0, false
		}
	}
	y, m, d := part[0], part[1], part[2]
	if y > 9999 || m < 1 || m > 12 || d < 1 || d > DaysInMonth(y, m) {
		return 0, false
	}
	return DaysFromCivil(y, m, d), true
}

func parseNum(s string, maxLen int) (int, bool) {
	if s == "" || len(s) > maxLen {
		return 0, false
	}
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	return n, true
}

// ParseTime reads H, H:m or H:m:s[.f] as milliseconds of the day; a fourth fraction digit rounds.
func ParseTime(s string) (ms int64, ok bool) {
	limit := [3]int{23, 59, 59}
	unit := [3]int64{3600000, 60000, 1000}
	s, frac, hasFrac := strings.Cut(s, ".")
	for i := 0; ; i++ {
		text, rest, more := strings.Cut(s, ":")
		n, ok := parseNum(strings.Trim(text, " "), 2)
		if !ok || n > limit[i] {
			return 0, false
		}
		ms += int64(n) * unit[i]
		if !more {
			if hasFrac && i < 2 {
				return 0, false
			}
			break
		}
		if s = rest; i == 2 {
			return 0, false
		}
	}
	if hasFrac {
		f, ok := parseFraction(frac, 4)
		if !ok {
			return 0, false
		}
		ms += (f + 5) / 10
	}
	return ms, true
}

// parseFraction reads digits as a number of n digits, cutting or filling with zeros.
func parseFraction(s string, n int) (int64, bool) {
	v := int64(0)
	for i := 0; i < max(len(s), n); i++ {
		d := int64(0)
		if i < len(s) {
			if s[i] < '0' || s[i] > '9' {
				return 0, false
			}
			d = int64(s[i] - '0')
		}
		if i < n {
			v = v*10 + d
		}
	}
	return v, true
}

// ParseTimestamp reads yyyy-M[M]-d[d][ H[H]:m[m]:s[s][.f]] with up to 9 fraction digits as seconds and nanoseconds since
// 1970-01-01 00:00:00. A day past the end of its month is the month's last day; 24:00:00 is midnight of the next day.
func ParseTimestamp(s string) (sec, nanos int64, ok bool) {
	date, clock, hasTime := strings.Cut(s, " ")
	ys, rest, ok1 := strings.Cut(date, "-")
	ms, ds, ok2 := strings.Cut(rest, "-")
	y, ok3 := parseNum(ys, 4)
	m, ok4 := parseNum(ms, 2)
	d, ok5 := parseNum(ds, 2)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || len(ys) != 4 || m < 1 || m > 12 || d < 1 || d > 31 {
		return 0, 0, false
	}
	sec = DaysFromCivil(y, m, min(d, DaysInMonth(y, m))) * 86400
	if !hasTime {
		return sec, 0, true
	}
	clock, frac, hasFrac := strings.Cut(clock, ".")
	hs, rest, ok1 := strings.Cut(clock, ":")
	mins, ss, ok2 := strings.Cut(rest, ":")
	h, ok3 := parseNum(hs, 2)
	mi, ok4 := parseNum(mins, 2)
	se, ok5 := parseNum(ss, 2)
	if !ok1 || !ok2 || !ok3 || !ok4 || !ok5 || h > 24 || mi > 59 || se > 59 {
		return 0, 0, false
	}
	if hasFrac {
		if len(frac) > 9 {
			return 0, 0, false
		}
		if nanos, ok = parseFraction(frac, 9); !ok {
			return 0, 0, false
		}
	}
	if h == 24 && (mi != 0 || se != 0 || nanos != 0) {
		return 0, 0, false
	}
	return sec + int64(h*3600+mi*60+se), nanos, true
}
