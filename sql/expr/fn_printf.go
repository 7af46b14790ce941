package expr

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func printfFuncs() []*Func {
	return []*Func{stringFn("PRINTF", "PRINTF(format, value, …)",
		"The values in a format of java.util.Formatter: %d %s %f %e %x %o %c %b %n %% with flags, width and precision. NULL for a format that does not fit the values.",
		spec{params: "s|x*", ret: types.StringType, nullable: true, sees: true, check: printfCheck, eval: func(b *site) func(Session) Eval {
			ts := make([]types.Type, len(b.args))
			for i, a := range b.args {
				ts[i] = a.Type()
			}
			return func(Session) Eval {
				return textEval(func(dst []byte, x row) ([]byte, *diag.Error) {
					if x.null(0) {
						return dst, isNull
					}
					f := formatter{dst: dst, x: x, types: ts}
					if !f.run(x.str(0)) {
						return dst, isNull
					}
					return f.dst, nil
				})
			}
		}})}
}

func printfCheck(b *site) error {
	for i, a := range b.args {
		if a.Type().Kind == types.Null {
			b.args[i] = convert(a, types.StringType)
		}
	}
	return nil
}

// formatter is java.util.Formatter with Locale.US. It reports false for what Java throws on.
type formatter struct {
	dst   []byte
	x     row
	types []types.Type
	next  int // the ordinary index
	last  int // the argument used last, for %<
}

type formatSpec struct {
	arg         int // explicit 1-based index, 0 for none
	relative    bool
	left, plus  bool
	space, zero bool
	alt, group  bool
	paren       bool
	width, prec int // -1 for none
	conv        byte
}

func (f *formatter) run(format string) bool {
	for format != "" {
		i := strings.IndexByte(format, '%')
		if i < 0 {
			f.dst = append(f.dst, format...)
			return true
		}
		f.dst = append(f.dst, format[:i]...)
		s, rest, ok := parseFormat(format[i+1:])
		if !ok || !f.one(s) {
			return false
		}
		format = rest
	}
	return true
}

func parseFormat(s string) (f formatSpec, rest string, ok bool) {
	f.width, f.prec = -1, -1
	number := func() int {
		n := 0
		for n < len(s) && n < 9 && s[n] >= '0' && s[n] <= '9' {
			n++
		}
		v, err := strconv.Atoi(s[:n])
		if err != nil {
			return -1
		}
		s = s[n:]
		return v
	}
	if strings.HasPrefix(s, "<") {
		f.relative, s = true, s[1:]
	} else if s != "" && s[0] != '0' {
		saved := s
		if n := number(); n > 0 && strings.HasPrefix(s, "$") {
			f.arg, s = n, s[1:]
		} else {
			s = saved
		}
	}
flags:
	for s != "" {
		switch s[0] {
		case '-':
			f.left = true
		case '+':
			f.plus = true
		case ' ':
			f.space = true
		case '0':
			f.zero = true
		case '#':
			f.alt = true
		case ',':
			f.group = true
		case '(':
			f.paren = true
		default:
			break flags
		}
		s = s[1:]
	}
	f.width = number()
	if strings.HasPrefix(s, ".") {
		s = s[1:]
		if f.prec = number(); f.prec < 0 {
			return f, s, false
		}
	}
	if s == "" || f.width > maxText/4 || f.prec > 10000 {
		return f, s, false
	}
	f.conv = s[0]
	if (f.left || f.zero) && f.width < 0 || f.left && f.zero || f.plus && f.space {
		return f, s, false
	}
	return f, s[1:], true
}

func (f *formatter) one(s formatSpec) bool {
	switch s.conv {
	case '%':
		return s.prec < 0 && f.pad(s, "%")
	case 'n':
		f.dst = append(f.dst, '\n')
		return s.width < 0 && s.prec < 0
	}
	arg := s.arg
	switch {
	case s.relative:
		arg = f.last
	case arg == 0:
		f.next++
		arg = f.next
	}
	f.last = arg
	if arg == 0 || arg >= len(f.x.args) {
		return false
	}
	var text string
	ok := true
	if conv := s.conv | 0x20; f.x.null(arg) {
		text = "null"
		if conv == 'b' {
			text = "false"
		}
		s.zero = false
		ok = strings.IndexByte("bhscdoxefga", conv) >= 0
		if strings.IndexByte("bhs", conv) >= 0 {
			text = clip(text, s.prec)
		}
	} else {
		text, ok = f.value(arg, &s, conv)
	}
	if !ok {
		return false
	}
	if s.conv >= 'A' && s.conv <= 'Z' {
		if strings.IndexByte("BHSCXEGA", s.conv) < 0 {
			return false
		}
		text = string(appendUpper(nil, text))
	}
	return f.pad(s, text)
}

func clip(s string, prec int) string {
	if prec >= 0 {
		return s[:cutRunes(s, int64(prec))]
	}
	return s
}

func (f *formatter) pad(s formatSpec, text string) bool {
	fill := s.width - utf8.RuneCountInString(text)
	if !s.left {
		for ; fill > 0; fill-- {
			f.dst = append(f.dst, ' ')
		}
	}
	f.dst = append(f.dst, text...)
	for ; fill > 0; fill-- {
		f.dst = append(f.dst, ' ')
	}
	return true
}

func (f *formatter) value(arg int, s *formatSpec, conv byte) (string, bool) {
	t := f.types[arg]
	switch conv {
	case 's', 'b', 'h':
		if s.plus || s.space || s.zero || s.group || s.paren || s.alt {
			return "", false
		}
	}
	switch conv {
	case 's':
		return clip(f.text(arg), s.prec), true
	case 'b':
		return clip(strconv.FormatBool(t.Kind != types.Boolean || f.x.bool(arg)), s.prec), true
	case 'c':
		if s.prec >= 0 || !t.IsInteger() || t.Kind == types.BigInt {
			return "", false
		}
		r := f.x.i64(arg)
		return string(rune(r)), r >= 0 && r <= utf8.MaxRune
	case 'd', 'x', 'o':
		return f.integer(arg, s, conv)
	case 'f', 'e', 'g':
		return f.number(arg, s, conv)
	}
	return "", false
}

// text is the Java toString of the internal value: numbers, epoch days, milliseconds, ISO time stamps.
func (f *formatter) text(arg int) string {
	t, x := f.types[arg], f.x
	switch t.Kind {
	case types.Boolean:
		return strconv.FormatBool(x.bool(arg))
	case types.Date, types.Time, types.IntervalDayTime, types.IntervalYearMonth:
		return strconv.FormatInt(x.i64(arg), 10)
	case types.Timestamp, types.TimestampLTZ:
		sec, nanos := types.SplitTimestamp(x.datum(arg), t.Precision)
		return string(types.AppendISOTimestamp(nil, sec, nanos, false))
	case types.Char, types.Varchar:
		return x.str(arg)
	}
	return Text(x.datum(arg), t, Session{})
}

func (f *formatter) integer(arg int, s *formatSpec, conv byte) (string, bool) {
	t := f.types[arg]
	if s.prec >= 0 || !t.IsInteger() && t.Kind != types.Date && t.Kind != types.Time && !t.IsInterval() {
		return "", false
	}
	v := f.x.i64(arg)
	if conv == 'd' {
		return s.signed(v < 0, strings.TrimPrefix(strconv.FormatInt(v, 10), "-"), 0), true
	}
	if s.plus || s.space || s.group || s.paren {
		return "", false
	}
	u, base, prefix := uint64(v), 16, "0x"
	switch t.Kind {
	case types.TinyInt:
		u &= 1<<8 - 1
	case types.SmallInt:
		u &= 1<<16 - 1
	case types.BigInt, types.IntervalDayTime:
	default:
		u &= 1<<32 - 1
	}
	if conv == 'o' {
		base, prefix = 8, "0"
	}
	text := strconv.FormatUint(u, base)
	if !s.alt {
		prefix = ""
	}
	for s.zero && len(text)+len(prefix) < s.width {
		text = "0" + text
	}
	return prefix + text, true
}

// signed adds sign, grouping and zeros to the digits of a number; tail is the length of what grouping leaves alone.
func (s *formatSpec) signed(neg bool, digits string, tail int) string {
	if s.group {
		whole := digits[:len(digits)-tail]
		for i := len(whole) - 3; i > 0; i -= 3 {
			whole = whole[:i] + "," + whole[i:]
		}
		digits = whole + digits[len(digits)-tail:]
	}
	open, end := "", ""
	switch {
	case neg && s.paren:
		open, end = "(", ")"
	case neg:
		open = "-"
	case s.plus:
		open = "+"
	case s.space:
		open = " "
	}
	for s.zero && len(open)+len(digits)+len(end) < s.width {
		digits = "0" + digits
	}
	return open + digits + end
}

func (f *formatter) number(arg int, s *formatSpec, conv byte) (string, bool) {
	t := f.types[arg]
	if t.Phys() != types.PhysF64 && t.Kind != types.Decimal {
		return "", false
	}
	r, neg := new(big.Rat), false
	if t.Kind == types.Decimal {
		r.SetString(Text(f.x.datum(arg), t, Session{}))
		neg = r.Sign() < 0
	} else {
		v := f.x.f64(arg)
		if math.IsNaN(v) || math.IsInf(v, 0) {
			s.zero, s.group = false, false
			if math.IsNaN(v) {
				return "NaN", true
			}
			return s.signed(v < 0, "Infinity", 0), true
		}
		bits := 64
		if t.Kind == types.Float {
			bits = 32
		}
		r.SetString(strconv.FormatFloat(v, 'e', -1, bits)) // Java rounds the shortest decimal text, half up
		neg = math.Signbit(v)
	}
	r.Abs(r)
	prec := s.prec
	if prec < 0 {
		prec = 6
	}
	switch conv {
	case 'f':
		text := ratFixed(r, prec)
		tail := 0
		if prec > 0 {
			tail = prec + 1
		}
		if s.alt && prec == 0 {
			text, tail = text+".", 1
		}
		return s.signed(neg, text, tail), true
	case 'e':
		if s.group {
			return "", false
		}
		return s.signed(neg, ratExp(r, prec), 0), true
	}
	if prec == 0 {
		prec = 1
	}
	exp := 0
	if r.Sign() != 0 {
		text := ratExp(r, prec-1)
		exp, _ = strconv.Atoi(text[strings.IndexByte(text, 'e')+1:])
	}
	if exp >= -4 && exp < prec {
		text := ratFixed(r, max(0, prec-exp-1))
		tail := 0
		if i := strings.IndexByte(text, '.'); i >= 0 {
			tail = len(text) - i
		}
		return s.signed(neg, text, tail), true
	}
	return s.signed(neg, ratExp(r, prec-1), 0), true
}

// ratFixed is r >= 0 with prec digits behind the point, rounded half up.
func ratFixed(r *big.Rat, prec int) string { return r.FloatString(prec) }

// ratExp is r >= 0 as d.ddde±xx with prec digits behind the point, rounded half up.
func ratExp(r *big.Rat, prec int) string {
	if r.Sign() == 0 {
		return "0" + strings.TrimSuffix("."+strings.Repeat("0", prec), ".") + "e+00"
	}
	exp := len(r.Num().String()) - len(r.Denom().String())
	for range 3 {
		scale := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil))
		m := new(big.Rat)
		if exp >= 0 {
			m.Quo(r, scale)
		} else {
			m.Mul(r, scale)
		}
		text := m.FloatString(prec)
		whole, _, _ := strings.Cut(text, ".")
		switch {
		case whole == "0":
			exp--
		case len(whole) > 1:
			exp++
		default:
			return fmt.Sprintf("%se%+03d", text, exp)
		}
	}
	return ""
}
