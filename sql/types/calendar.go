package types

import "time"

// DaysFromCivil is the number of days from 1970-01-01 to the given date of the proleptic Gregorian calendar.
func DaysFromCivil(y, m, d int) int64 {
	// Years start in March, so that the leap day is the last of the year (Hinnant, chrono-compatible algorithms).
	if m <= 2 {
		y--
	}
	era := FloorDiv(int64(y), 400)
	yoe := int64(y) - era*400
	doy := int64((153*((m+9)%12)+2)/5 + d - 1)
	return era*146097 + yoe*365 + yoe/4 - yoe/100 + doy - 719468
}

// CivilFromDays is the date that lies days after 1970-01-01.
func CivilFromDays(days int64) (y, m, d int) {
	z := days + 719468
	era := FloorDiv(z, 146097)
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = int(doy-(153*mp+2)/5) + 1
	m = int(mp) + 3
	if m > 12 {
		m -= 12
	}
	y = int(yoe + era*400)
	if m <= 2 {
		y++
	}
	return y, m, d
}

// DaysInMonth is the length of month m of year y.
func DaysInMonth(y, m int) int {
	switch m {
	case 4, 6, 9, 11:
		return 30
	case 2:
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 31
}

// AddMonths is the date n months after days, with the day of the month cut to the length of the new month.
func AddMonths(days, n int64) int64 {
	y, m, d := CivilFromDays(days)
	t := int64(y)*12 + int64(m) - 1 + n
	ny, nm := int(FloorDiv(t, 12)), int(FloorMod(t, 12))+1
	return DaysFromCivil(ny, nm, min(d, DaysInMonth(ny, nm)))
}

// FloorDiv is a/b rounded toward minus infinity, for b > 0.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// FloorMod is a - b*FloorDiv(a, b), for b > 0: never negative.
func FloorMod(a, b int64) int64 {
	r := a % b
	if r < 0 {
		r += b
	}
	return r
}

// Offset is the distance of zone from UTC in seconds at the instant sec (seconds since 1970-01-01 UTC).
func Offset(sec int64, zone *time.Location) int64 {
	if zone == time.UTC || zone == nil {
		return 0
	}
	_, off := time.Unix(sec, 0).In(zone).Zone()
	return int64(off)
}

// InstantToLocal is the wall clock of zone, as seconds since 1970-01-01 00:00:00 local, at the instant sec.
func InstantToLocal(sec int64, zone *time.Location) int64 { return sec + Offset(sec, zone) }

// LocalToInstant is the instant at which zone's wall clock shows local. A time inside a gap moves forward by the gap; of
// the two instants of an overlap the earlier one counts (java.time's ZonedDateTime.ofLocal).
func LocalToInstant(local int64, zone *time.Location) int64 {
	if zone == time.UTC || zone == nil {
		return local
	}
	const day = 86400
	before, after := Offset(local-day, zone), Offset(local+day, zone)
	a := local - before
	if before == after || Offset(a, zone) == before {
		return a
	}
	if b := local - after; Offset(b, zone) == after {
		return b
	}
	return a
}

// SplitTimestamp takes a TIMESTAMP(p) or TIMESTAMP_LTZ(p) value apart: whole seconds since 1970-01-01 (rounded down) and
// nanoseconds of the second.
func SplitTimestamp(d Datum, p int) (sec int64, nanos int64) {
	if p <= 6 {
		return SplitMicros(d.I64)
	}
	return SplitNanos(d.I128())
}

// SplitMicros takes microseconds since 1970-01-01 apart, as SplitTimestamp.
func SplitMicros(v int64) (sec int64, nanos int64) {
	sec = FloorDiv(v, 1e6)
	return sec, (v - sec*1e6) * 1000
}

// SplitNanos takes nanoseconds since 1970-01-01 apart, as SplitTimestamp.
func SplitNanos(v Int128) (sec int64, nanos int64) {
	if v.Fits64() {
		return FloorDiv(v.Int64(), 1e9), FloorMod(v.Int64(), 1e9)
	}
	u, neg := v.abs()
	q, r := u.div64(1e9)
	sec, nanos = int64(q.lo), int64(r)
	if neg {
		sec, nanos = -sec, -nanos
		if nanos < 0 {
			sec, nanos = sec-1, nanos+1e9
		}
	}
	return sec, nanos
}

// JoinTimestamp is the inverse of SplitTimestamp; digits beyond p are cut off.
func JoinTimestamp(sec, nanos int64, p int) Datum {
	nanos -= nanos % nanoUnit[p]
	if p <= 6 {
		return IntDatum(sec*1e6 + nanos/1000)
	}
	return I128Datum(JoinNanos(sec, nanos))
}

// JoinNanos is nanoseconds since 1970-01-01.
func JoinNanos(sec, nanos int64) Int128 { return Mul64(sec, 1e9).Add(I128(nanos)) }

// nanoUnit is the number of nanoseconds of the last digit of a fraction of p digits.
var nanoUnit = [10]int64{1e9, 1e8, 1e7, 1e6, 1e5, 1e4, 1e3, 100, 10, 1}
