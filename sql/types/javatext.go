package types

import "strconv"

// Text as the toString of Java's classes, where it differs from CAST's (text.go): what Flink's JSON and print output show.

// AppendBigDecimal appends v * 10^-scale as java.math.BigDecimal.toString does: with an exponent when more than five
// zeros would follow the point. strip drops trailing zeros first (stripTrailingZeros), so that 100.00 is 1E+2.
func AppendBigDecimal(dst []byte, v Int128, scale int, strip bool) []byte {
	var tmp [48]byte
	d := AppendDecimal(tmp[:0], v, 0)
	if d[0] == '-' {
		dst, d = append(dst, '-'), d[1:]
	}
	if strip {
		if d[0] == '0' {
			return append(dst, '0')
		}
		for d[len(d)-1] == '0' {
			d = d[:len(d)-1]
			scale--
		}
	}
	exp := len(d) - 1 - scale
	if scale >= 0 && exp >= -6 {
		return appendScaled(dst, d, scale)
	}
	dst = append(dst, d[0])
	if len(d) > 1 {
		dst = append(append(dst, '.'), d[1:]...)
	}
	dst = append(dst, 'E')
	if exp > 0 {
		dst = append(dst, '+')
	}
	return strconv.AppendInt(dst, int64(exp), 10)
}

// AppendISODate appends java.time.LocalDate.toString: years past 9999 get a plus sign and years before 0 a minus.
func AppendISODate(dst []byte, days int64) []byte {
	y, m, d := CivilFromDays(days)
	switch {
	case y < 0:
		dst = appendPadded(append(dst, '-'), uint64(-y), 4)
	case y > 9999:
		dst = strconv.AppendInt(append(dst, '+'), int64(y), 10)
	default:
		dst = append2(append2(dst, y/100), y%100)
	}
	dst = append2(append(dst, '-'), m)
	return append2(append(dst, '-'), d)
}

// AppendISOTime appends java.time.LocalTime.toString of a second of the day and nanoseconds of the second: seconds are
// left out when there are none, unless always; the fraction has 3, 6 or 9 digits.
func AppendISOTime(dst []byte, sec, nanos int64, always bool) []byte {
	dst = AppendClock(dst, int(sec))
	switch {
	case nanos == 0 && sec%60 == 0 && !always:
		return dst[:len(dst)-len(":00")]
	case nanos == 0:
		return dst
	case nanos%1e6 == 0:
		return appendPadded(append(dst, '.'), uint64(nanos/1e6), 3)
	case nanos%1e3 == 0:
		return appendPadded(append(dst, '.'), uint64(nanos/1e3), 6)
	}
	return appendPadded(append(dst, '.'), uint64(nanos), 9)
}

// AppendISOTimestamp appends java.time.LocalDateTime.toString of seconds and nanoseconds since 1970-01-01 00:00:00;
// see AppendISOTime for always.
func AppendISOTimestamp(dst []byte, sec, nanos int64, always bool) []byte {
	dst = append(AppendISODate(dst, FloorDiv(sec, 86400)), 'T')
	return AppendISOTime(dst, FloorMod(sec, 86400), nanos, always)
}
