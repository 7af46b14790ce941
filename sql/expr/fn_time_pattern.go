package expr

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/types"
)

// Patterns of java.time.format.DateTimeFormatter and java.text.SimpleDateFormat, English names.

// patItem is a run of one pattern letter, literal text, or an optional section.
type patItem struct {
	letter byte // 0 for text and sections
	n      int
	text   string
	opt    []patItem
}

// timePattern is a compiled pattern. simple is the SimpleDateFormat dialect: S is a number of milliseconds, u the day of
// the week, and there are no optional sections.
type timePattern struct {
	items  []patItem
	simple bool
}

const (
	modernLetters = "GuyDMLdQqYwWEecFaBhKkHmsSAnNVvzOXxZp"
	simpleLetters = "GyYMLwWDdFEuaHkKhmsSzZX"
)

// fraction is the longest run of S.
func (p *timePattern) fraction() int {
	n := 0
	for _, it := range p.items {
		if it.letter == 'S' {
			n = max(n, it.n)
		}
	}
	return n
}

func compilePattern(src string, simple bool) (*timePattern, error) {
	p := &timePattern{simple: simple}
	items, rest, err := p.parse(src, 0)
	if err == nil && rest != "" {
		err = fmt.Errorf("']' without '['")
	}
	p.items = items
	return p, err
}

func (p *timePattern) parse(src string, depth int) (items []patItem, rest string, err error) {
	letters := modernLetters
	if p.simple {
		letters = simpleLetters
	}
	text := func(s string) {
		if n := len(items); n > 0 && items[n-1].letter == 0 && items[n-1].opt == nil {
			items[n-1].text += s
			return
		}
		items = append(items, patItem{text: s})
	}
	for src != "" {
		c := src[0]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			n := 1
			for n < len(src) && src[n] == c {
				n++
			}
			if strings.IndexByte(letters, c) < 0 {
				return nil, "", fmt.Errorf("unknown pattern letter '%c'", c)
			}
			if !p.simple && (c == 'p' || c == 'B' || c == 'v' || c == 'W' || c == 'F' || !modernCount(c, n)) {
				return nil, "", fmt.Errorf("%d times the letter '%c' is not possible", n, c)
			}
			items = append(items, patItem{letter: c, n: n})
			src = src[n:]
		case c == '\'':
			lit, tail, ok := quotedText(src)
			if !ok {
				return nil, "", fmt.Errorf("a quote is not closed")
			}
			text(lit)
			src = tail
		case c == '[' && !p.simple:
			if depth > 20 {
				return nil, "", fmt.Errorf("too many nested optional sections")
			}
			opt, tail, err := p.parse(src[1:], depth+1)
			if err != nil {
				return nil, "", err
			}
			items = append(items, patItem{opt: append(opt, patItem{})})
			src = strings.TrimPrefix(tail, "]")
		case c == ']' && !p.simple:
			if depth == 0 {
				return items, src, nil
			}
			return items, src, nil
		case strings.IndexByte("{}#", c) >= 0 && !p.simple:
			return nil, "", fmt.Errorf("'%c' is reserved", c)
		default:
			text(src[:1])
			src = src[1:]
		}
	}
	return items, "", nil
}

// modernCount reports whether DateTimeFormatter takes n of the letter.
func modernCount(c byte, n int) bool {
	switch c {
	case 'd', 'h', 'H', 'k', 'K', 'm', 's', 'w':
		return n <= 2
	case 'D':
		return n <= 3
	case 'S':
		return n <= 9
	case 'a':
		return n == 1
	case 'V':
		return n == 2
	case 'z', 'O':
		return n == 1 || n == 4
	case 'A', 'n', 'N', 'u', 'y', 'Y':
		return n <= 19
	}
	return n <= 5
}

// quotedText reads 'text' with two quotes for one; two quotes alone is a quote.
func quotedText(s string) (text, rest string, ok bool) {
	if strings.HasPrefix(s, "''") {
		return "'", s[2:], true
	}
	var sb strings.Builder
	for s = s[1:]; s != ""; {
		switch {
		case strings.HasPrefix(s, "''"):
			sb.WriteByte('\'')
			s = s[2:]
		case s[0] == '\'':
			return sb.String(), s[1:], true
		default:
			sb.WriteByte(s[0])
			s = s[1:]
		}
	}
	return "", "", false
}

// format appends the local time sec, nanos. ok is false when the pattern asks for a zone: a TIMESTAMP has none.
func (p *timePattern) format(dst []byte, sec, nanos int64, zone *time.Location) (_ []byte, ok bool) {
	return p.formatItems(dst, p.items, sec, nanos, zone)
}

func (p *timePattern) formatItems(dst []byte, items []patItem, sec, nanos int64, zone *time.Location) (_ []byte, ok bool) {
	for _, it := range items {
		switch {
		case it.opt != nil:
			if out, ok := p.formatItems(dst, it.opt, sec, nanos, zone); ok {
				dst = out
			}
		case it.letter == 0:
			dst = append(dst, it.text...)
		default:
			if dst, ok = p.formatLetter(dst, it, sec, nanos, zone); !ok {
				return dst, false
			}
		}
	}
	return dst, true
}

var (
	monthNames = strings.Fields("January February March April May June July August September October November December")
	dayNames   = strings.Fields("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
)

// name is a name in the width that n letters ask for: 3 short, 4 long, 5 one letter; SimpleDateFormat knows two.
func (p *timePattern) name(names []string, i int64, n int) string {
	s := names[i]
	switch {
	case p.simple && n >= 4 || n == 4:
		return s
	case n == 5:
		return s[:1]
	}
	return s[:3]
}

func (p *timePattern) formatLetter(dst []byte, it patItem, sec, nanos int64, zone *time.Location) ([]byte, bool) {
	days := types.FloorDiv(sec, 86400)
	number := func(v int64, width int) ([]byte, bool) { return appendNumber(dst, v, width), true }
	hour := hourOf(sec)
	switch it.letter {
	case 'G':
		if it.n == 4 && !p.simple {
			return append(dst, "Anno Domini"...), true
		}
		return append(dst, "AD"...), true
	case 'u':
		if p.simple {
			return number(isoWeekday(days), it.n)
		}
		return p.formatYear(dst, dateField("YEAR", days), it.n), true
	case 'y':
		return p.formatYear(dst, dateField("YEAR", days), it.n), true
	case 'Y':
		y, _ := usWeek(days)
		return p.formatYear(dst, y, it.n), true
	case 'M', 'L':
		if it.n >= 3 {
			return append(dst, p.name(monthNames, dateField("MONTH", days)-1, it.n)...), true
		}
		return number(dateField("MONTH", days), it.n)
	case 'Q', 'q':
		q := dateField("QUARTER", days)
		switch it.n {
		case 3:
			return append(dst, 'Q', byte('0'+q)), true
		case 4:
			return append(dst, []string{"1st quarter", "2nd quarter", "3rd quarter", "4th quarter"}[q-1]...), true
		}
		return number(q, it.n%5)
	case 'w':
		_, w := usWeek(days)
		return number(w, it.n)
	case 'W':
		first := days - dateField("DAY", days) + 1
		return number((dateField("DAY", days)+types.FloorMod(first+4, 7)-1)/7+1, it.n)
	case 'D':
		return number(dateField("DOY", days), it.n)
	case 'd':
		return number(dateField("DAY", days), it.n)
	case 'F':
		return number((dateField("DAY", days)-1)/7+1, it.n)
	case 'E', 'e', 'c':
		if it.letter != 'E' && it.n <= 2 {
			return number(types.FloorMod(days+4, 7)+1, it.n)
		}
		return append(dst, p.name(dayNames, isoWeekday(days)-1, it.n)...), true
	case 'a':
		if hour < 12 {
			return append(dst, "AM"...), true
		}
		return append(dst, "PM"...), true
	case 'h':
		return number((hour+11)%12+1, it.n)
	case 'K':
		return number(hour%12, it.n)
	case 'k':
		return number((hour+23)%24+1, it.n)
	case 'H':
		return number(hour, it.n)
	case 'm':
		return number(minuteOf(sec), it.n)
	case 's':
		return number(secondOf(sec), it.n)
	case 'S':
		if p.simple {
			return number(nanos/1e6, it.n)
		}
		digits := strconv.FormatInt(1e9+nanos, 10)[1:]
		return append(dst, digits[:it.n]...), true
	case 'A':
		return number(types.FloorMod(sec, 86400)*1000+nanos/1e6, it.n)
	case 'n':
		return number(nanos, it.n)
	case 'N':
		return number(types.FloorMod(sec, 86400)*1e9+nanos, it.n)
	}
	return p.formatZone(dst, it, sec, zone)
}

func (p *timePattern) formatZone(dst []byte, it patItem, sec int64, zone *time.Location) ([]byte, bool) {
	if !p.simple {
		return dst, false
	}
	t := time.Unix(types.LocalToInstant(sec, zone), 0).In(zone)
	name, off := t.Zone()
	if it.letter == 'z' {
		return append(dst, name...), true
	}
	if it.letter == 'X' && off == 0 {
		return append(dst, 'Z'), true
	}
	sign := byte('+')
	if off < 0 {
		sign, off = '-', -off
	}
	dst = appendNumber(append(dst, sign), int64(off/3600), 2)
	if it.letter == 'X' && it.n == 1 {
		return dst, true
	}
	if it.letter == 'X' && it.n == 3 {
		dst = append(dst, ':')
	}
	return appendNumber(dst, int64(off/60%60), 2), true
}

// formatYear: yy is two digits; four and more letters fill with zeros.
func (p *timePattern) formatYear(dst []byte, y int64, n int) []byte {
	if n == 2 {
		return appendNumber(dst, types.FloorMod(y, 100), 2)
	}
	if !p.simple && n >= 4 && y > 9999 {
		dst = append(dst, '+')
	}
	return appendNumber(dst, y, n)
}

// appendNumber appends v with zeros in front up to width digits.
func appendNumber(dst []byte, v int64, width int) []byte {
	if v < 0 {
		dst, v = append(dst, '-'), -v
	}
	var buf [20]byte
	b := strconv.AppendInt(buf[:0], v, 10)
	for i := len(b); i < width; i++ {
		dst = append(dst, '0')
	}
	return append(dst, b...)
}

// usWeek is the week of the year where weeks start on Sunday and week 1 holds January 1st.
func usWeek(days int64) (year, week int64) {
	y, _, _ := types.CivilFromDays(days)
	for _, c := range []int{y + 1, y} {
		jan1 := types.DaysFromCivil(c, 1, 1)
		if start := jan1 - types.FloorMod(jan1+4, 7); days >= start {
			return int64(c), (days-start)/7 + 1
		}
	}
	return int64(y), 1
}
