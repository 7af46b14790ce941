package expr

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// stringFn is a row of the string tables.
func stringFn(name, usage, doc string, sp spec, aliases ...string) *Func {
	return &Func{Name: name, Aliases: aliases, Category: "string", Usage: usage, Doc: doc, Bind: fn(usage, sp)}
}

func stringFuncs() []*Func {
	return []*Func{
		stringFn("UPPER", "UPPER(string)", "The string in upper case; the length may change (ß is SS).",
			spec{params: "s", retOf: argType(0), eval: func(*site) func(Session) Eval { return caseEval('a', appendUpper) }}),
		stringFn("LOWER", "LOWER(string)", "The string in lower case.",
			spec{params: "s", retOf: argType(0), eval: func(*site) func(Session) Eval { return caseEval('A', appendLower) }}),
		stringFn("INITCAP", "INITCAP(string)", "Every word with a capital first letter and small others; words are runs of ASCII letters and digits.",
			spec{params: "s", retOf: argType(0), eval: texts(initcap)}),
		stringFn("CHAR_LENGTH", "CHAR_LENGTH(string)", "The number of code points.",
			spec{params: "s", ret: types.IntType, eval: ints(func(x row) (int64, *diag.Error) { return runeCount(x.str(0)), nil })}, "CHARACTER_LENGTH"),
		stringFn("CONCAT", "CONCAT(string, …)", "The strings one after the other; NULL if any is NULL.",
			spec{params: "s*", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				for i := range x.args {
					dst = append(dst, x.str(i)...)
				}
				return dst, nil
			})}),
		stringFn("CONCAT_WS", "CONCAT_WS(separator [, string, …])",
			"The strings that are not NULL with the separator between them; NULL only if the separator is.",
			spec{params: "s|s*", ret: types.StringType, sees: true, eval: texts(concatWS)}),
		stringFn("REVERSE", "REVERSE(string)", "The code points in reverse order.",
			spec{params: "s", ret: types.StringType, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				for s := x.str(0); s != ""; {
					_, n := utf8.DecodeLastRuneInString(s)
					dst = append(dst, s[len(s)-n:]...)
					s = s[:len(s)-n]
				}
				return dst, nil
			})}),
		stringFn("REPEAT", "REPEAT(string, n)", "The string n times; empty for n <= 0.",
			spec{params: "si", ret: types.StringType, eval: texts(repeat)}),
		stringFn("REPLACE", "REPLACE(string, search, replacement)",
			"Every occurrence of search replaced, from left to right; an empty search is found around every code point.",
			spec{params: "sss", ret: types.StringType, eval: texts(replace)}),
		stringFn("TRANSLATE", "TRANSLATE(string, from, to)",
			"Every code point of from replaced by the one at its place in to, or deleted where to is shorter. A NULL from changes nothing, a NULL to deletes.",
			spec{params: "sss", ret: types.StringType, sees: true, eval: texts(translate)}),
		stringFn("OVERLAY", "OVERLAY(string PLACING replacement FROM start [FOR length])",
			"The string with length code points (default: those of replacement) from start on replaced. A start outside the string changes nothing.",
			spec{params: "ssi|i", retOf: overlayType, eval: texts(overlay)}),
		stringFn("LPAD", "LPAD(string, length, pad)", "The string filled on the left with pad, or cut, to length code points; NULL for a negative length or an empty pad.",
			spec{params: "sis", ret: types.StringType, nullable: true, eval: texts(padder(true))}),
		stringFn("RPAD", "RPAD(string, length, pad)", "The string filled on the right with pad, or cut, to length code points; NULL for a negative length or an empty pad.",
			spec{params: "sis", ret: types.StringType, nullable: true, eval: texts(padder(false))}),
		stringFn("STARTSWITH", "STARTSWITH(value, start)", "Whether a string or bytes start with another; the empty one always does.",
			spec{params: "qq", ret: types.BoolType, check: sameFamily, eval: bools(func(x row) (bool, *diag.Error) {
				return strings.HasPrefix(x.str(0), x.str(1)), nil
			})}),
		stringFn("ENDSWITH", "ENDSWITH(value, end)", "Whether a string or bytes end with another; the empty one always does.",
			spec{params: "qq", ret: types.BoolType, check: sameFamily, eval: bools(func(x row) (bool, *diag.Error) {
				return strings.HasSuffix(x.str(0), x.str(1)), nil
			})}),
		stringFn("ASCII", "ASCII(string)", "The first byte as a signed number (so negative outside ASCII), 0 for the empty string.",
			spec{params: "s", ret: types.IntType, eval: ints(func(x row) (int64, *diag.Error) {
				if s := x.str(0); s != "" {
					return int64(int8(s[0])), nil
				}
				return 0, nil
			})}),
		stringFn("CHR", "CHR(n)", "The character of Latin-1 code n modulo 256; empty for negative n.",
			spec{params: "l", ret: types.StringType, nullable: true, eval: texts(func(dst []byte, x row) ([]byte, *diag.Error) {
				if n := x.i64(0); n >= 0 {
					return utf8.AppendRune(dst, rune(n%256)), nil
				}
				return dst, nil
			})}),
		stringFn("ELT", "ELT(index, value, …)", "The value at the 1-based index; NULL outside.",
			spec{params: "Iq*", sees: true, nullable: true, retOf: eltType, check: eltCheck, eval: pieces(func(x row) (string, *diag.Error) {
				if x.null(0) || x.i64(0) < 1 || x.i64(0) >= int64(len(x.args)) || x.null(int(x.i64(0))) {
					return "", isNull
				}
				return x.str(int(x.i64(0))), nil
			})}),
		stringFn("IS_ALPHA", "IS_ALPHA(string)", "Whether the string consists of letters only and is not empty; FALSE for NULL.",
			spec{params: "x", ret: types.BoolType, notNull: true, sees: true, eval: textTest(func(s string) bool {
				return allRunes(s, unicode.IsLetter)
			})}),
		stringFn("IS_DIGIT", "IS_DIGIT(string)", "Whether the string consists of digits only and is not empty; FALSE for NULL.",
			spec{params: "x", ret: types.BoolType, notNull: true, sees: true, eval: textTest(func(s string) bool {
				return allRunes(s, unicode.IsDigit)
			})}),
		stringFn("IS_DECIMAL", "IS_DECIMAL(string)", "Whether the string can be read as a number; FALSE for NULL.",
			spec{params: "x", ret: types.BoolType, notNull: true, sees: true, eval: textTest(func(s string) bool {
				_, ok := types.ParseFloat(s, 64)
				return ok
			})}),
	}
}

// appendUpperUnicode follows String.toUpperCase of the root locale with its one-to-many mappings.
func appendUpperUnicode(dst []byte, s string) []byte {
	for _, r := range s {
		switch {
		case r == 'ß':
			dst = append(dst, "SS"...)
		case specialUpper[r] != "":
			dst = append(dst, specialUpper[r]...)
		default:
			dst = utf8.AppendRune(dst, unicode.ToUpper(r))
		}
	}
	return dst
}

// specialUpper are the unconditional one-to-many mappings of Unicode's SpecialCasing outside Greek iota forms.
var specialUpper = map[rune]string{
	'ŉ': "ʼN", 'ǰ': "J̌", 'ΐ': "Ϊ́", 'ΰ': "Ϋ́", 'և': "ԵՒ", 'ẖ': "H̱", 'ẗ': "T̈", 'ẘ': "W̊", 'ẙ': "Y̊", 'ẚ': "Aʾ",
	'ﬀ': "FF", 'ﬁ': "FI", 'ﬂ': "FL", 'ﬃ': "FFI", 'ﬄ': "FFL", 'ﬅ': "ST", 'ﬆ': "ST",
	'ﬓ': "ՄՆ", 'ﬔ': "ՄԵ", 'ﬕ': "ՄԻ", 'ﬖ': "ՎՆ", 'ﬗ': "ՄԽ",
}

func appendLowerUnicode(dst []byte, s string, from int) []byte {
	for i, r := range s[from:] {
		at := from + i
		switch r {
		case 'İ':
			dst = append(dst, "i̇"...)
		case 'Σ': // final at the end of a word
			before, _ := utf8.DecodeLastRuneInString(s[:at])
			after, _ := utf8.DecodeRuneInString(s[at+len("Σ"):])
			if at > 0 && unicode.IsLetter(before) && !unicode.IsLetter(after) {
				dst = append(dst, "ς"...)
			} else {
				dst = append(dst, "σ"...)
			}
		default:
			dst = utf8.AppendRune(dst, unicode.ToLower(r))
		}
	}
	return dst
}

func initcap(dst []byte, x row) ([]byte, *diag.Error) {
	inWord := false
	for i, s := 0, x.str(0); i < len(s); i++ {
		c := s[i]
		lower, upper := 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z'
		switch {
		case lower && !inWord:
			c -= 'a' - 'A'
		case upper && inWord:
			c += 'a' - 'A'
		}
		inWord = lower || upper || '0' <= c && c <= '9'
		dst = append(dst, c)
	}
	return dst, nil
}

func concatWS(dst []byte, x row) ([]byte, *diag.Error) {
	if x.null(0) {
		return dst, isNull
	}
	sep, first := x.str(0), true
	for i := 1; i < len(x.args); i++ {
		if x.null(i) {
			continue
		}
		if !first {
			dst = append(dst, sep...)
		}
		first = false
		dst = append(dst, x.str(i)...)
	}
	return dst, nil
}

// maxText bounds strings that a count makes long, so that one row cannot take all memory.
const maxText = 64 << 20

func tooLong(name string) *diag.Error {
	return badValue(name, "the result would be longer than 64 MiB").WithHint("bound the count, for example by LEAST(n, 1000)")
}

// outgrown is the error of a replacement that has made n bytes of the text s: one that makes a long text no longer is none.
func outgrown(name string, n int, s string) *diag.Error {
	if n <= max(maxText, len(s)) {
		return nil
	}
	return badValue(name, "the result would be longer than 64 MiB").WithHint("shorten the text or its replacement, for example by LEFT(string, 1000)")
}

func repeat(dst []byte, x row) ([]byte, *diag.Error) {
	s, n := x.str(0), x.i64(1)
	if n <= 0 || s == "" {
		return dst, nil
	}
	if n > maxText/int64(len(s)) {
		return dst, tooLong("REPEAT")
	}
	for ; n > 0; n-- {
		dst = append(dst, s...)
	}
	return dst, nil
}

func replace(dst []byte, x row) ([]byte, *diag.Error) {
	s, old, new := x.str(0), x.str(1), x.str(2)
	if most := len(s) + (len(s)+1)*len(new); most > maxText {
		if err := outgrown("REPLACE", len(s)+strings.Count(s, old)*(len(new)-len(old)), s); err != nil {
			return dst, err
		}
	}
	if old == "" {
		dst = append(dst, new...)
		for i, r := range s {
			dst = append(append(dst, s[i:i+max(1, utf8.RuneLen(r))]...), new...)
		}
		return dst, nil
	}
	for {
		i := strings.Index(s, old)
		if i < 0 {
			return append(dst, s...), nil
		}
		dst = append(append(dst, s[:i]...), new...)
		s = s[i+len(old):]
	}
}

func translate(dst []byte, x row) ([]byte, *diag.Error) {
	if x.null(0) {
		return dst, isNull
	}
	s := x.str(0)
	if x.null(1) || x.str(1) == "" {
		return append(dst, s...), nil
	}
	from, to := x.str(1), ""
	if !x.null(2) {
		to = x.str(2)
	}
	for i, r := range s {
		at := strings.IndexRune(from, r)
		if at < 0 {
			dst = append(dst, s[i:i+max(1, utf8.RuneLen(r))]...)
			continue
		}
		if b := nthRune(to, utf8.RuneCountInString(from[:at])); b != "" {
			dst = append(dst, b...)
		}
	}
	return dst, nil
}

// nthRune is code point n of s, "" beyond the end.
func nthRune(s string, n int) string {
	for i, r := range s {
		if n == 0 {
			return s[i : i+max(1, utf8.RuneLen(r))]
		}
		n--
	}
	return ""
}

// cutRunes is the byte offset of code point n of s, len(s) beyond the end.
func cutRunes(s string, n int64) int {
	if n <= 0 {
		return 0
	}
	if n >= int64(len(s)) {
		if n >= int64(utf8.RuneCountInString(s)) {
			return len(s)
		}
	}
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// overlayType is VARCHAR with the lengths of both strings added.
func overlayType(b *site) (types.Type, error) {
	n := b.args[0].Type().Precision + b.args[1].Type().Precision
	return types.Lengthed(types.Varchar, min(n, types.MaxLength)), nil
}

func overlay(dst []byte, x row) ([]byte, *diag.Error) {
	s, r, start := x.str(0), x.str(1), x.i64(2)
	count := int64(utf8.RuneCountInString(s))
	n := int64(utf8.RuneCountInString(r))
	if x.has(3) {
		n = x.i64(3)
	}
	if start <= 0 || start > count {
		return append(dst, s...), nil
	}
	dst = append(append(dst, s[:cutRunes(s, start-1)]...), r...)
	if end := start - 1 + n; n >= 0 && end < count {
		dst = append(dst, s[cutRunes(s, end):]...)
	}
	return dst, nil
}

func padder(left bool) func(dst []byte, x row) ([]byte, *diag.Error) {
	name := "RPAD"
	if left {
		name = "LPAD"
	}
	return func(dst []byte, x row) ([]byte, *diag.Error) {
		s, n, pad := x.str(0), x.i64(1), x.str(2)
		if n < 0 || pad == "" {
			return dst, isNull
		}
		have := int64(utf8.RuneCountInString(s))
		if n <= have {
			return append(dst, s[:cutRunes(s, n)]...), nil
		}
		if n > maxText/4 {
			return dst, tooLong(name)
		}
		if !left {
			dst = append(dst, s...)
		}
		for missing := n - have; missing > 0; {
			part := pad[:cutRunes(pad, missing)]
			dst = append(dst, part...)
			missing -= int64(utf8.RuneCountInString(part))
		}
		if left {
			dst = append(dst, s...)
		}
		return dst, nil
	}
}

// sameFamily refuses a string beside bytes.
func sameFamily(b *site) error {
	first := b.args[0].Type().IsBytes()
	for i, a := range b.args[1:] {
		l, isLit := a.(*Literal)
		if isLit && l.Value.IsNull {
			b.args[i+1] = convertNull(l, b.args[0].Type())
			continue
		}
		if l0, ok := b.args[0].(*Literal); ok && l0.Value.IsNull && i == 0 {
			b.args[0] = convertNull(l0, a.Type())
			first = a.Type().IsBytes()
		}
		if a.Type().IsBytes() != first {
			return badCall(b.CallSite, "strings and bytes are mixed").WithHint("DECODE(bytes, 'UTF-8') makes a string of bytes")
		}
	}
	return nil
}

func convertNull(_ *Literal, t types.Type) Expr {
	return &Literal{Value: types.NullDatum, T: t.WithNull(true)}
}

func eltType(b *site) (types.Type, error) {
	if len(b.args) < 2 {
		return types.Type{}, wrongArgs(b.CallSite, "ELT(index, value, …)")
	}
	ts := make([]types.Type, 0, len(b.args))
	for _, a := range b.args[1:] {
		ts = append(ts, a.Type())
	}
	return CommonType(ts)
}

func eltCheck(b *site) error {
	if d, ok := b.literal(0); ok && d.I64 < 0 {
		return badCall(b.CallSite, "the index is negative").WithHint("the first value has index 1")
	}
	return nil
}

// textTest is a test of the text of any value.
func textTest(f func(string) bool) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		t := b.args[0].Type()
		return func(s Session) Eval {
			return perRow(vecBool, func(x row) (bool, *diag.Error) {
				switch {
				case x.null(0):
					return false, nil
				case t.IsString():
					return f(x.str(0)), nil
				}
				return f(Text(x.datum(0), t, s)), nil
			})
		}
	}
}

func allRunes(s string, f func(rune) bool) bool {
	for _, r := range s {
		if !f(r) {
			return false
		}
	}
	return s != ""
}
