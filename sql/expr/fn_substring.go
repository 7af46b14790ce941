package expr

import (
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The string functions whose result is a piece of an argument or a position in it. Positions are 1-based code points.
func substringFuncs() []*Func {
	return []*Func{
		stringFn("SUBSTRING", "SUBSTRING(string FROM start [FOR length])",
			"length code points from start on; a negative start counts from the end, 0 is 1; NULL for a negative length.",
			spec{params: "sI|I", retOf: varchar(0), nullable: true, eval: pieces(substring)}, "SUBSTR"),
		stringFn("LEFT", "LEFT(string, n)", "The first n code points; empty for n <= 0.",
			spec{params: "si", retOf: varchar(0), eval: pieces(func(x row) (string, *diag.Error) {
				s := x.str(0)
				return s[:cutRunes(s, x.i64(1))], nil
			})}),
		stringFn("RIGHT", "RIGHT(string, n)", "The last n code points; empty for n <= 0.",
			spec{params: "si", retOf: varchar(0), eval: pieces(func(x row) (string, *diag.Error) {
				s, n := x.str(0), x.i64(1)
				if n <= 0 {
					return "", nil
				}
				return s[cutRunes(s, int64(utf8.RuneCountInString(s))-n):], nil
			})}),
		{Name: "TRIM", Category: "string", Usage: "TRIM([BOTH | LEADING | TRAILING] [characters FROM] string)",
			Doc: "The string without characters of a set (default: the space) at its ends.", Bind: bindTrim},
		stringFn("BTRIM", "BTRIM(string [, characters])", "The string without characters of a set (default: the space) at both ends.",
			spec{params: "s|s", ret: types.StringType, eval: trimEval(true, true)}),
		stringFn("LTRIM", "LTRIM(string [, characters])", "The string without leading characters of a set (default: the space).",
			spec{params: "s|s", retOf: varchar(0), eval: trimEval(true, false)}),
		stringFn("RTRIM", "RTRIM(string [, characters])", "The string without trailing characters of a set (default: the space).",
			spec{params: "s|s", retOf: varchar(0), eval: trimEval(false, true)}),
		stringFn("POSITION", "POSITION(part IN string [FROM start])", "The position of the first occurrence of part, 0 if there is none.",
			spec{params: "ss|i", ret: types.IntType, eval: ints(locate)}),
		stringFn("LOCATE", "LOCATE(part, string [, start])", "The position of the first occurrence of part at or behind start, 0 if there is none.",
			spec{params: "ss|i", ret: types.IntType, eval: ints(locate)}),
		stringFn("INSTR", "INSTR(string, part [, start [, n]])",
			"The position of the n-th occurrence of part (default the first) at or behind start; a negative start searches backwards from the end. 0 if there is none.",
			spec{params: "ss|ii", ret: types.IntType, eval: ints(instr)}),
		stringFn("SPLIT_INDEX", "SPLIT_INDEX(string, delimiter, index)",
			"The piece of the string with the 0-based index, between whole delimiters; NULL outside. The delimiter may be a character code.",
			spec{params: "sxi", ret: types.StringType, nullable: true, check: splitDelimiter, eval: splitIndexEval}),
		{Name: "SPLIT", Category: "collection", Usage: "SPLIT(string, delimiter)",
			Doc: "The pieces of the string between delimiters, as an array; an empty delimiter gives the characters, an empty string no pieces.",
			Bind: fn("SPLIT(string, delimiter)", spec{params: "ss", ret: types.ArrayOf(types.StringType), eval: datums(func(*site) func(row) (types.Datum, *diag.Error) {
				return func(x row) (types.Datum, *diag.Error) {
					s, sep := x.str(0), x.str(1)
					if s == "" {
						return types.Datum{List: []types.Datum{}}, nil
					}
					return stringList(strings.Split(s, sep)), nil
				}
			})})},
	}
}

func stringList(parts []string) types.Datum {
	list := make([]types.Datum, len(parts))
	for i, p := range parts {
		list[i] = types.StrDatum(p)
	}
	return types.Datum{List: list}
}

func substring(x row) (string, *diag.Error) {
	s, start := x.str(0), x.i64(1)
	n := int64(len(s))
	if x.has(2) {
		if n = x.i64(2); n < 0 {
			return "", isNull
		}
	}
	switch {
	case start == 0:
		start = 1
	case start < 0:
		count := int64(utf8.RuneCountInString(s))
		if start = count + start + 1; start < 1 {
			return "", nil
		}
	}
	s = s[cutRunes(s, start-1):]
	return s[:cutRunes(s, n)], nil
}

func bindTrim(c *CallSite) (Bound, error) {
	const usage = "TRIM([BOTH | LEADING | TRAILING] [characters FROM] string)"
	lead, trail := true, true
	for _, w := range c.Options.Words {
		lead, trail = w != "TRAILING", w != "LEADING"
	}
	args := c.Args
	if len(args) == 2 { // characters FROM string
		args = []Expr{args[1], args[0]}
	}
	b, err := fn(usage, spec{params: "s|s", retOf: varchar(0), eval: trimEval(lead, trail)})(
		&CallSite{Name: c.Name, Args: args, Options: c.Options, Session: c.Session})
	if err != nil {
		return b, wrongArgs(c, usage)
	}
	return b, nil
}

func trimEval(lead, trail bool) func(*site) func(Session) Eval {
	return pieces(func(x row) (string, *diag.Error) {
		s, set := x.str(0), " "
		if x.has(1) {
			set = x.str(1)
		}
		if lead {
			s = strings.TrimLeft(s, set)
		}
		if trail {
			s = strings.TrimRight(s, set)
		}
		return s, nil
	})
}

// locate is POSITION and LOCATE: part, string, start.
func locate(x row) (int64, *diag.Error) {
	part, s, from := x.str(0), x.str(1), int64(1)
	if x.has(2) {
		if from = x.i64(2); from < 1 {
			return 0, nil
		}
	}
	if part == "" {
		return 1, nil
	}
	if from > 1 && from > int64(utf8.RuneCountInString(s))+1 {
		return 0, nil
	}
	skip := cutRunes(s, from-1)
	i := strings.Index(s[skip:], part)
	if i < 0 {
		return 0, nil
	}
	return from + int64(utf8.RuneCountInString(s[skip:skip+i])), nil
}

func instr(x row) (int64, *diag.Error) {
	s, part, from, nth := x.str(0), x.str(1), int64(1), int64(1)
	if x.has(2) {
		from = x.i64(2)
	}
	if x.has(3) {
		nth = x.i64(3)
	}
	if nth <= 0 {
		return 0, badValue("INSTR", "the occurrence must be positive, it is %d", nth).WithHint("count occurrences from 1")
	}
	switch {
	case from == 0:
		return 0, nil
	case from > 0:
		return instrForward(s, part, from, nth), nil
	}
	return instrBackward(s, part, -from, nth), nil
}

func instrForward(s, part string, from, nth int64) int64 {
	if from > int64(utf8.RuneCountInString(s))+1 {
		return 0
	}
	at := cutRunes(s, from-1)
	for {
		i := strings.Index(s[at:], part)
		if i < 0 {
			return 0
		}
		at += i
		if nth--; nth == 0 {
			return int64(utf8.RuneCountInString(s[:at])) + 1
		}
		_, n := utf8.DecodeRuneInString(s[at:])
		if n == 0 {
			return 0
		}
		at += n
	}
}

// instrBackward looks for occurrences that start at or before the code point fromEnd places from the end.
func instrBackward(s, part string, fromEnd, nth int64) int64 {
	count := int64(utf8.RuneCountInString(s))
	if fromEnd > count {
		return 0
	}
	at := cutRunes(s, count-fromEnd)
	for {
		if strings.HasPrefix(s[at:], part) {
			if nth--; nth == 0 {
				return int64(utf8.RuneCountInString(s[:at])) + 1
			}
		}
		if at == 0 {
			return 0
		}
		_, n := utf8.DecodeLastRuneInString(s[:at])
		at -= n
	}
}

func splitDelimiter(b *site) error {
	t := b.args[1].Type()
	switch {
	case t.Kind == types.Null:
		b.args[1] = convert(b.args[1], types.StringType)
	case !t.IsString() && !(t.IsInteger() && t.Kind != types.BigInt):
		return wrongArgs(b.CallSite, "SPLIT_INDEX(string, delimiter, index)")
	}
	return nil
}

func splitIndexEval(b *site) func(Session) Eval {
	byCode := b.args[1].Type().IsInteger()
	e := perRow(vecStr, func(x row) (string, *diag.Error) {
		s, i := x.str(0), x.i64(2)
		var sep string
		if byCode {
			c := x.i64(1)
			if c < 1 || c > 255 {
				return "", isNull
			}
			sep = latin1[c]
		} else {
			sep = x.str(1)
		}
		if s == "" || i < 0 {
			return "", isNull
		}
		if sep == "" { // it separates nothing, unlike in SPLIT
			if i > 0 {
				return "", isNull
			}
			return s, nil
		}
		for ; i > 0; i-- {
			at := strings.Index(s, sep)
			if at < 0 {
				return "", isNull
			}
			s = s[at+len(sep):]
		}
		s, _, _ = strings.Cut(s, sep)
		return s, nil
	})
	return func(Session) Eval { return e }
}

var latin1 = func() (t [256]string) {
	for i := range t {
		t[i] = string(rune(i))
	}
	return t
}()
