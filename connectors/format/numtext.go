package format

import (
	"math"
	"math/big"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

func appendInt(dst []byte, v int64) []byte { return strconv.AppendInt(dst, v, 10) }

// AppendDouble appends v as Java's Double.toString does, or Float.toString with bits 32: plain between 1e-3 and 1e7,
// else with an exponent, always with a fraction digit.
func AppendDouble(dst []byte, v float64, bits int) []byte {
	switch {
	case math.IsNaN(v):
		return append(dst, "NaN"...)
	case math.IsInf(v, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(v, -1):
		return append(dst, "-Infinity"...)
	case v == 0:
		if math.Signbit(v) {
			dst = append(dst, '-')
		}
		return append(dst, "0.0"...)
	}
	a := math.Abs(v)
	if a >= 1e-3 && a < 1e7 {
		n := len(dst)
		dst = strconv.AppendFloat(dst, v, 'f', -1, bits)
		for _, c := range dst[n:] {
			if c == '.' {
				return dst
			}
		}
		return append(dst, ".0"...)
	}
	if bits == 64 && a == 5e-324 {
		return append(dst, sign(v, "4.9E-324")...) // Java prints at least two digits here
	}
	if bits == 32 && a == math.SmallestNonzeroFloat32 {
		return append(dst, sign(v, "1.4E-45")...)
	}
	var tmp [32]byte
	e := strconv.AppendFloat(tmp[:0], v, 'e', -1, bits)
	mant, exp, _ := strings.Cut(text(e), "e")
	dst = append(dst, mant...)
	if !strings.Contains(mant, ".") {
		dst = append(dst, ".0"...)
	}
	dst = append(dst, 'E')
	if exp[0] == '-' {
		dst = append(dst, '-')
	}
	return append(dst, strings.TrimLeft(exp[1:], "0")...)
}

func sign(v float64, s string) string {
	if v < 0 {
		return "-" + s
	}
	return s
}

func decimalBits(t types.Type) int {
	if t.Kind == types.Float {
		return 32
	}
	return 64
}

// appendUnscaled appends the digits of |v| and reports whether v is negative.
func appendUnscaled(dst []byte, v types.Int128) ([]byte, bool) {
	neg := v.Sign() < 0
	if v.Fits64() {
		n := v.Int64()
		if neg {
			return strconv.AppendUint(dst, uint64(-n), 10), true
		}
		return strconv.AppendUint(dst, uint64(n), 10), false
	}
	b := v.Big()
	return b.Abs(b).Append(dst, 10), neg
}

// AppendDecimal appends v * 10^-scale in full: exactly scale fraction digits, no exponent.
func AppendDecimal(dst []byte, v types.Int128, scale int) []byte {
	var tmp [48]byte
	d, neg := appendUnscaled(tmp[:0], v)
	if neg {
		dst = append(dst, '-')
	}
	return appendPoint(dst, d, scale)
}

// appendPoint appends the digits d with a point before the last scale of them.
func appendPoint(dst, d []byte, scale int) []byte {
	if scale <= 0 {
		return append(dst, d...)
	}
	if n := len(d) - scale; n > 0 {
		dst = append(dst, d[:n]...)
		dst = append(dst, '.')
		return append(dst, d[n:]...)
	}
	dst = append(dst, "0."...)
	for i := len(d); i < scale; i++ {
		dst = append(dst, '0')
	}
	return append(dst, d...)
}

// appendBigDecimal appends v * 10^-scale as Java's BigDecimal.stripTrailingZeros().toString(): 100.00 is 1E+2 and
// 0.000000027 is 2.7E-8.
func appendBigDecimal(dst []byte, v types.Int128, scale int) []byte {
	var tmp [48]byte
	d, neg := appendUnscaled(tmp[:0], v)
	if len(d) == 1 && d[0] == '0' {
		return append(dst, '0')
	}
	for d[len(d)-1] == '0' {
		d = d[:len(d)-1]
		scale--
	}
	return appendScientific(dst, d, neg, scale)
}

// appendScientific is BigDecimal.toString of the digits d with the given scale.
func appendScientific(dst, d []byte, neg bool, scale int) []byte {
	if neg {
		dst = append(dst, '-')
	}
	adjusted := len(d) - 1 - scale
	if scale >= 0 && adjusted >= -6 {
		return appendPoint(dst, d, scale)
	}
	dst = append(dst, d[0])
	if len(d) > 1 {
		dst = append(dst, '.')
		dst = append(dst, d[1:]...)
	}
	dst = append(dst, 'E')
	if adjusted > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(adjusted), 10)
}

// parseJavaInt is Long.parseLong with a range: an optional sign and digits, nothing else.
func parseJavaInt(s string, lo, hi int64) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	return v, err == nil && v >= lo && v <= hi
}

// parseJavaDouble is Double.parseDouble: white space around, a type suffix, hex floats, NaN and Infinity in that
// spelling; too large is infinite.
func parseJavaDouble(s string, bits int) (float64, bool) {
	s = trimJava(s)
	body := strings.TrimLeft(s, "+-")
	if len(s)-len(body) > 1 || body == "" {
		return 0, false
	}
	switch body {
	case "NaN":
		return math.NaN(), true
	case "Infinity":
		return math.Inf(1 - 2*strings.Count(s, "-")), true
	}
	if strings.ContainsAny(body, "_iInN") {
		return 0, false
	}
	hex := len(body) > 1 && body[0] == '0' && body[1]|0x20 == 'x'
	if hex && !strings.ContainsAny(body, "pP") {
		return 0, false
	}
	if c := s[len(s)-1] | 0x20; c == 'd' || c == 'f' {
		s = s[:len(s)-1]
	}
	v, err := strconv.ParseFloat(s, bits)
	if err != nil && err.(*strconv.NumError).Err != strconv.ErrRange {
		return 0, false
	}
	return v, true
}

// trimJava is String.trim: everything up to and including the space.
func trimJava(s string) string {
	for len(s) > 0 && s[0] <= ' ' {
		s = s[1:]
	}
	for len(s) > 0 && s[len(s)-1] <= ' ' {
		s = s[:len(s)-1]
	}
	return s
}

// parseDecimal reads the text of a BigDecimal, rounds it HALF_UP to scale, and returns the unscaled value. fits is
// false when it has more than prec digits (Flink: NULL); ok is false when s is no number.
func parseDecimal(s string, prec, scale int) (v types.Int128, fits, ok bool) {
	var digits [40]byte
	n, exp, neg, cut, ok := decimalParts(s, digits[:])
	if !ok {
		return v, false, false
	}
	// The value is digits[:n] * 10^exp; shift moves it to the scale.
	shift := exp + scale
	if n == 0 {
		return v, true, true
	}
	if n+shift > prec+1 {
		return v, false, true
	}
	if n <= 18 && !cut {
		var u int64
		for _, c := range digits[:n] {
			u = u*10 + int64(c-'0')
		}
		switch {
		case shift >= 0 && n+shift <= 18:
			u *= pow10[shift]
		case shift < 0 && shift >= -18:
			div := pow10[-shift]
			q, r := u/div, u%div
			if r >= div-r {
				q++
			}
			u = q
		case shift < -18:
			u = 0
		default:
			return bigDecimal(digits[:n], shift, prec, neg)
		}
		if u >= pow10At(prec) {
			return v, false, true
		}
		if neg {
			u = -u
		}
		return types.I128(u), true, true
	}
	if cut {
		return longDecimal(s, prec, scale)
	}
	return bigDecimal(digits[:n], shift, prec, neg)
}

// pow10At is 10^p, or more than any int64 result when it does not fit.
func pow10At(p int) int64 {
	if p < len(pow10) {
		return pow10[p]
	}
	return math.MaxInt64
}

// decimalParts copies the significant digits of s into digits; cut says there are more than fit.
func decimalParts(s string, digits []byte) (n, exp int, neg, cut, ok bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	seen, point := false, false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c-'0' > 9 {
			break
		}
		seen = true
		if point {
			exp--
		}
		if n == 0 && c == '0' {
			continue
		}
		if n == len(digits) {
			cut = true
			exp++
			continue
		}
		digits[n] = c
		n++
	}
	if !seen {
		return 0, 0, false, false, false
	}
	if i < len(s) {
		if s[i]|0x20 != 'e' || i+1 == len(s) {
			return 0, 0, false, false, false
		}
		e, good := parseJavaInt(s[i+1:], math.MinInt32, math.MaxInt32)
		if !good {
			return 0, 0, false, false, false
		}
		exp += int(e)
	}
	return n, exp, neg, cut, true
}

func bigDecimal(digits []byte, shift, prec int, neg bool) (v types.Int128, fits, ok bool) {
	if len(digits)+shift < 0 {
		return v, true, true // below half of the last digit
	}
	u, _ := new(big.Int).SetString(string(digits), 10) // a copy, so that the caller's array stays on its stack
	if shift >= 0 {
		u.Mul(u, bigPow10(shift))
	} else {
		roundHalfUp(u, -shift)
	}
	return narrow(u, prec, neg)
}

// longDecimal handles texts of more than 40 significant digits, where the digits beyond can decide a rounding.
func longDecimal(s string, prec, scale int) (v types.Int128, fits, ok bool) {
	digits := make([]byte, len(s))
	n, exp, neg, _, _ := decimalParts(s, digits)
	if n+exp+scale > prec+1 {
		return v, false, true
	}
	return bigDecimal(digits[:n], exp+scale, prec, neg)
}

// roundHalfUp divides u ≥ 0 by 10^n.
func roundHalfUp(u *big.Int, n int) {
	p := bigPow10(n)
	r := new(big.Int)
	u.QuoRem(u, p, r)
	if r.Lsh(r, 1).Cmp(p) >= 0 {
		u.Add(u, big.NewInt(1))
	}
}

func narrow(u *big.Int, prec int, neg bool) (v types.Int128, fits, ok bool) {
	if u.Cmp(bigPow10(prec)) >= 0 {
		return v, false, true
	}
	if neg {
		u.Neg(u)
	}
	v, _ = types.I128FromBig(u)
	return v, true, true
}

func bigPow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }
