package expr

import (
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/types"
)

// timeFields is what a pattern found in a text. has tells the fields apart that were there.
type timeFields struct {
	year, month, day, doy     int64
	hour, hour12, ampm        int64
	minute, second, nanos     int64
	milliOfDay, nanoOfDay     int64
	offset                    int64
	hasYear, hasDoy, hasHour  bool
	hasHour12, hasAmpm        bool
	hasMonth, hasDay          bool
	hasMilli, hasNano, hasOff bool
}

func newTimeFields() timeFields { return timeFields{year: 1970, month: 1, day: 1} }

// parseModern reads text as DateTimeFormatter does: every character must match, fields must be in range, the day is cut
// to the length of its month. Fields that the pattern does not have are those of 1970-01-01 00:00:00.
func (p *timePattern) parseModern(text string) (sec, nanos int64, ok bool) {
	f := newTimeFields()
	rest, ok := p.parseItems(p.items, text, &f)
	if !ok || rest != "" {
		return 0, 0, false
	}
	return f.resolve()
}

func (p *timePattern) parseItems(items []patItem, s string, f *timeFields) (string, bool) {
	for i, it := range items {
		ok := true
		switch {
		case it.opt != nil:
			saved := *f
			if rest, ok := p.parseItems(it.opt, s, f); ok {
				s = rest
			} else {
				*f = saved
			}
		case it.letter == 0:
			s, ok = strings.CutPrefix(s, it.text)
		default:
			s, ok = p.parseLetter(items, i, s, f)
		}
		if !ok {
			return s, false
		}
	}
	return s, true
}

// fixedWidth is the number of digits of a numeric field of fixed width, 0 for others.
func fixedWidth(it patItem) int {
	switch it.letter {
	case 'd', 'h', 'H', 'k', 'K', 'm', 's', 'M', 'L':
		if it.n == 2 {
			return 2
		}
	case 'D':
		if it.n == 3 {
			return 3
		}
	case 'S':
		return it.n
	case 'y', 'u':
		if it.n == 2 {
			return 2
		}
	}
	return 0
}

// digits reads lo to hi digits; behind a variable-width field directly followed by fixed-width ones, enough digits are
// left for those (adjacent value parsing).
func digits(s string, lo, hi, reserved int) (v int64, rest string, ok bool) {
	n := 0
	for n < len(s) && n < hi+reserved && n < 18+reserved && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	n -= reserved
	if n < lo || n > 18 {
		return 0, s, false
	}
	for _, c := range []byte(s[:n]) {
		v = v*10 + int64(c-'0')
	}
	return v, s[n:], true
}

func (p *timePattern) parseLetter(items []patItem, i int, s string, f *timeFields) (string, bool) {
	it := items[i]
	lo, hi, reserved := it.n, it.n, 0
	if fixedWidth(it) == 0 {
		lo, hi = it.n, 18
		for _, next := range items[i+1:] {
			w := 0
			if next.letter != 0 {
				w = fixedWidth(next)
			}
			if w == 0 {
				break
			}
			reserved += w
		}
	}
	number := func(dst *int64, least, most int64) (string, bool) {
		v, rest, ok := digits(s, lo, hi, reserved)
		*dst = v
		return rest, ok && v >= least && v <= most
	}
	switch it.letter {
	case 'y', 'u':
		return p.parseYear(it, s, f, lo, hi, reserved)
	case 'M', 'L':
		f.hasMonth = true
		if it.n >= 3 {
			return parseName(s, monthNames, it.n, &f.month)
		}
		return number(&f.month, 1, 12)
	case 'd':
		f.hasDay = true
		return number(&f.day, 1, 31)
	case 'D':
		f.hasDoy = true
		return number(&f.doy, 1, 366)
	case 'H', 'k':
		f.hasHour = true
		if it.letter == 'k' {
			rest, ok := number(&f.hour, 1, 24)
			f.hour %= 24
			return rest, ok
		}
		return number(&f.hour, 0, 23)
	case 'h', 'K':
		f.hasHour12 = true
		if it.letter == 'h' {
			rest, ok := number(&f.hour12, 1, 12)
			f.hour12 %= 12
			return rest, ok
		}
		return number(&f.hour12, 0, 11)
	case 'm':
		return number(&f.minute, 0, 59)
	case 's':
		return number(&f.second, 0, 59)
	case 'S':
		rest, ok := number(&f.nanos, 0, 999999999)
		for n := it.n; n < 9; n++ {
			f.nanos *= 10
		}
		return rest, ok
	case 'n':
		return number(&f.nanos, 0, 999999999)
	case 'A':
		f.hasMilli = true
		return number(&f.milliOfDay, 0, dayMillis-1)
	case 'N':
		f.hasNano = true
		return number(&f.nanoOfDay, 0, dayMillis*1e6-1)
	}
	return p.parseText(it, s, f)
}

func (p *timePattern) parseYear(it patItem, s string, f *timeFields, lo, hi, reserved int) (string, bool) {
	f.hasYear = true
	neg := false
	if it.letter == 'u' && strings.HasPrefix(s, "-") {
		neg, s = true, s[1:]
	} else if it.n >= 4 && strings.HasPrefix(s, "+") {
		s = s[1:]
	}
	v, rest, ok := digits(s, lo, hi, reserved)
	if neg {
		v = -v
	}
	if it.n == 2 {
		v += 2000
	}
	f.year = v
	if it.letter == 'y' && v == 0 {
		ok = false // there is no year 0 of an era
	}
	return rest, ok && v >= -999999999 && v <= 999999999
}

func parseName(s string, names []string, n int, dst *int64) (string, bool) {
	for i, name := range names {
		switch {
		case n == 3:
			name = name[:3]
		case n == 5:
			name = name[:1]
		}
		if rest, ok := strings.CutPrefix(s, name); ok {
			*dst = int64(i + 1)
			return rest, true
		}
	}
	return s, false
}

// parseText parses names and zones. A zone is accepted and its value kept in offset.
func (p *timePattern) parseText(it patItem, s string, f *timeFields) (string, bool) {
	var ignored int64
	switch it.letter {
	case 'G':
		return strings.CutPrefix(s, "AD")
	case 'E', 'e', 'c':
		if it.letter != 'E' && it.n <= 2 {
			_, rest, ok := digits(s, it.n, it.n, 0)
			return rest, ok
		}
		return parseName(s, dayNames, max(3, it.n), &ignored)
	case 'a':
		f.hasAmpm = true
		if rest, ok := strings.CutPrefix(s, "AM"); ok {
			return rest, true
		}
		f.ampm = 1
		return strings.CutPrefix(s, "PM")
	case 'Q', 'q':
		if it.n >= 3 {
			rest, ok := strings.CutPrefix(s, "Q")
			if !ok {
				return s, false
			}
			s = rest
		}
		v, rest, ok := digits(s, 1, 2, 0)
		return rest, ok && v >= 1 && v <= 4
	case 'X', 'x', 'Z':
		off, rest, ok := parseOffset(s)
		f.offset, f.hasOff = off, true
		return rest, ok
	case 'z', 'V', 'O':
		n := 0
		for n < len(s) && (isASCIIAlnum(rune(s[n])) || strings.IndexByte("_/+-:", s[n]) >= 0) {
			n++
		}
		return s[n:], n > 0
	}
	return s, false
}

// parseOffset reads Z, ±hh, ±hhmm or ±hh:mm.
func parseOffset(s string) (sec int64, rest string, ok bool) {
	if rest, ok := strings.CutPrefix(s, "Z"); ok {
		return 0, rest, true
	}
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, s, false
	}
	neg := s[0] == '-'
	h, rest, ok := digits(s[1:], 2, 2, 0)
	if !ok || h > 18 {
		return 0, s, false
	}
	m, tail, ok := digits(strings.TrimPrefix(rest, ":"), 2, 2, 0)
	if ok && m < 60 {
		rest = tail
	} else {
		m = 0
	}
	if sec = h*3600 + m*60; neg {
		sec = -sec
	}
	return sec, rest, true
}

// resolve puts strictly parsed fields together.
func (f *timeFields) resolve() (sec, nanos int64, ok bool) {
	day := min(f.day, int64(types.DaysInMonth(int(f.year), int(f.month))))
	days := types.DaysFromCivil(int(f.year), int(f.month), int(day))
	if f.hasDoy && !f.hasMonth {
		days = types.DaysFromCivil(int(f.year), 1, 1) + f.doy - 1
		if y, _, _ := types.CivilFromDays(days); int64(y) != f.year {
			return 0, 0, false
		}
	}
	hour := f.hour
	if !f.hasHour && f.hasHour12 && f.hasAmpm {
		hour = f.hour12 + 12*f.ampm
	}
	sec, nanos = days*86400+hour*3600+f.minute*60+f.second, f.nanos
	switch {
	case f.hasMilli:
		sec, nanos = days*86400+f.milliOfDay/1000, f.milliOfDay%1000*1e6
	case f.hasNano:
		sec, nanos = days*86400+f.nanoOfDay/1e9, f.nanoOfDay%1e9
	}
	return sec, nanos, true
}

// parseLenient reads text as a lenient SimpleDateFormat does: numbers may have any length and roll over, text behind
// the match is ignored. The result is an instant in milliseconds: fields are local to zone unless the text has an offset.
func (p *timePattern) parseLenient(text string, zone *time.Location) (ms int64, ok bool) {
	f := newTimeFields()
	s := text
	for i, it := range p.items {
		if it.letter == 0 {
			if s, ok = strings.CutPrefix(s, it.text); !ok {
				return 0, false
			}
			continue
		}
		next := i+1 < len(p.items) && p.items[i+1].letter != 0 && isSimpleNumber(p.items[i+1])
		if s, ok = p.parseSimple(it, s, next, &f); !ok {
			return 0, false
		}
	}
	return f.lenient(zone), true
}

func isSimpleNumber(it patItem) bool {
	switch it.letter {
	case 'E', 'G', 'a', 'z', 'Z', 'X':
		return false
	case 'M', 'L':
		return it.n <= 2
	}
	return true
}

func (p *timePattern) parseSimple(it patItem, s string, adjacent bool, f *timeFields) (string, bool) {
	if !isSimpleNumber(it) {
		s = strings.TrimLeft(s, " \t")
		switch it.letter {
		case 'M', 'L':
			return parseAnyName(s, monthNames, &f.month)
		case 'E':
			var ignored int64
			return parseAnyName(s, dayNames, &ignored)
		case 'z':
			for _, prefix := range []string{"GMT", "UTC"} {
				if rest, ok := strings.CutPrefix(s, prefix); ok {
					f.hasOff = true
					if off, tail, ok := parseOffset(rest); ok && !strings.HasPrefix(rest, "Z") {
						f.offset, rest = off, tail
					}
					return rest, true
				}
			}
		}
		return p.parseText(it, s, f)
	}
	s = strings.TrimLeft(s, " \t")
	neg := strings.HasPrefix(s, "-")
	if neg {
		s = s[1:]
	}
	hi := 18
	if adjacent {
		hi = it.n
	}
	v, rest, ok := digits(s, 1, hi, 0)
	if !ok || adjacent && len(s)-len(rest) < it.n {
		return s, false
	}
	width := len(s) - len(rest)
	if neg {
		v = -v
	}
	switch it.letter {
	case 'y', 'Y':
		if it.n <= 2 && width == 2 && !neg {
			v = twoDigitYear(v)
		}
		f.year = v
	case 'M', 'L':
		f.month = v
	case 'd':
		f.day = v
	case 'D':
		f.doy, f.hasDoy = v, true
	case 'H', 'k':
		f.hour = v
		if it.letter == 'k' && v == 24 {
			f.hour = 0
		}
		f.hasHour = true
	case 'h', 'K':
		f.hour12, f.hasHour12 = v, true
		if it.letter == 'h' && v == 12 {
			f.hour12 = 0
		}
	case 'm':
		f.minute = v
	case 's':
		f.second = v
	case 'S':
		f.nanos = v * 1e6
	}
	return rest, true
}

func parseAnyName(s string, names []string, dst *int64) (string, bool) {
	for i, name := range names {
		for _, n := range []string{name, name[:3]} {
			if len(s) >= len(n) && strings.EqualFold(s[:len(n)], n) {
				*dst = int64(i + 1)
				return s[len(n):], true
			}
		}
	}
	return s, false
}

// twoDigitYear is the year within 80 years before and 20 years after now.
func twoDigitYear(v int64) int64 {
	first := int64(time.Now().Year()) - 80
	y := first - first%100 + v
	if y < first {
		y += 100
	}
	return y
}

// lenient puts leniently parsed fields together: what is out of range rolls over.
func (f *timeFields) lenient(zone *time.Location) int64 {
	months := f.year*12 + f.month - 1
	y, m := types.FloorDiv(months, 12), types.FloorMod(months, 12)
	days := types.DaysFromCivil(int(y), int(m)+1, 1) + f.day - 1
	if f.hasDoy {
		days = types.DaysFromCivil(int(f.year), 1, 1) + f.doy - 1
	}
	hour := f.hour
	if f.hasHour12 && !f.hasHour {
		hour = f.hour12 + 12*f.ampm
	}
	sec := days*86400 + hour*3600 + f.minute*60 + f.second
	sec += types.FloorDiv(f.nanos, 1e9)
	if f.hasOff {
		sec -= f.offset
	} else {
		sec = types.LocalToInstant(sec, zone)
	}
	return sec*1000 + types.FloorMod(f.nanos, 1e9)/1e6
}
