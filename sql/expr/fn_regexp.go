package expr

import (
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The functions of regular expressions. A pattern that Java rejects gives NULL (REGEXP: FALSE) when it comes from data.
func regexpFuncs() []*Func {
	return []*Func{
		stringFn("REGEXP", "REGEXP(string, pattern)", "Whether the pattern is found in the string; FALSE for an empty pattern.",
			spec{params: "ss", ret: types.BoolType, check: checkPattern, eval: regexEval(vecBool, func(x row, re *regex) (bool, *diag.Error) {
				switch {
				case re == nil || x.str(1) == "":
					return false, nil
				}
				return re.test(x.str(0))
			})}),
		stringFn("REGEXP_EXTRACT", "REGEXP_EXTRACT(string, pattern [, group])",
			"The text of a group (default 0, the whole) of the first match; NULL without a match.",
			spec{params: "ss|i", ret: types.StringType, nullable: true, check: checkPattern, eval: regexEval(vecStr, regexpExtract)}),
		{Name: "REGEXP_EXTRACT_ALL", Category: "string", Usage: "REGEXP_EXTRACT_ALL(string, pattern [, group])",
			Doc: "The texts of a group (default 1) of all matches, as an array; NULL if there is no such group.",
			Bind: fn("REGEXP_EXTRACT_ALL(string, pattern [, group])", spec{params: "ss|i", ret: types.ArrayOf(types.StringType),
				nullable: true, check: knownPattern, eval: func(b *site) func(Session) Eval {
					return func(Session) Eval {
						c := &regexCache{}
						return datumEval(b.ret, func(x row) (types.Datum, *diag.Error) { return regexpExtractAll(x, c) })
					}
				}})},
		stringFn("REGEXP_REPLACE", "REGEXP_REPLACE(string, pattern, replacement)",
			"All matches replaced by the text of replacement, in which $ and \\ have no meaning.",
			spec{params: "sss", ret: types.StringType, nullable: true, check: checkPattern, eval: func(*site) func(Session) Eval {
				return func(Session) Eval {
					c := &regexCache{}
					return textEval(func(dst []byte, x row) ([]byte, *diag.Error) { return regexpReplace(dst, x, c) })
				}
			}}),
		stringFn("REGEXP_COUNT", "REGEXP_COUNT(string, pattern)", "The number of matches.",
			spec{params: "ss", ret: types.IntType, nullable: true, check: knownPattern, eval: regexEval(vecI64, func(x row, re *regex) (n int64, err *diag.Error) {
				if re == nil {
					return 0, isNull
				}
				err = re.all(x.str(0), func([]int) { n++ })
				return n, err
			})}),
		stringFn("REGEXP_INSTR", "REGEXP_INSTR(string, pattern)", "The position of the first match in UTF-16 units, from 1; 0 without a match.",
			spec{params: "ss", ret: types.IntType, nullable: true, check: knownPattern, eval: regexEval(vecI64, func(x row, re *regex) (int64, *diag.Error) {
				if re == nil {
					return 0, isNull
				}
				loc, err := re.find(x.str(0), 0)
				if loc == nil {
					return 0, err
				}
				return utf16Len(x.str(0)[:loc[0]]) + 1, nil
			})}),
		stringFn("REGEXP_SUBSTR", "REGEXP_SUBSTR(string, pattern)", "The text of the first match; NULL without one.",
			spec{params: "ss", ret: types.StringType, nullable: true, check: knownPattern, eval: regexEval(vecStr, regexpExtract)}),
		{Name: "STR_TO_MAP", Category: "string", Usage: "STR_TO_MAP(string [, entries, keyValue])",
			Doc: "A map from text such as a=1,b=2. The delimiters are patterns; the defaults are ',' and '='. An entry without the second delimiter has a NULL value.",
			Bind: fn("STR_TO_MAP(string [, entries, keyValue])", spec{params: "s|ss", ret: types.MapOf(types.StringType, types.StringType),
				check: strToMapCheck, eval: strToMapEval})},
	}
}

func utf16Len(s string) int64 {
	n := int64(utf8.RuneCountInString(s))
	for i := 0; i < len(s); i++ {
		if s[i] >= 0xF0 {
			n++
		}
	}
	return n
}

// knownPattern refuses a constant pattern that Java has and streamsql does not; checkPattern also what Java rejects.
func knownPattern(b *site) error { return patternCheck(b, false) }
func checkPattern(b *site) error { return patternCheck(b, true) }

func patternCheck(b *site, strict bool) error {
	d, ok := b.literal(1)
	if !ok {
		return nil
	}
	_, err := compileRegex(d.Str)
	switch {
	case errors.Is(err, errUnsupportedRegex):
		return diag.New(diag.Unsupported, diag.Pos{}, "the regular expression '%s' cannot be used", d.Str).WithDetail("%s", err).
			WithHint("write it with the constructs docs/sql/functions.md lists")
	case err != nil && strict:
		return badCall(b.CallSite, "'%s' is no regular expression", d.Str).WithDetail("%s", err)
	}
	return nil
}

// rowRegex is the pattern of the row, nil when Java rejects it.
func rowRegex(x row, c *regexCache) (*regex, *diag.Error) {
	re, err := c.get(x.str(1))
	if errors.Is(err, errUnsupportedRegex) {
		return nil, diag.New(diag.Data, diag.Pos{}, "the regular expression '%s' cannot be used", x.str(1)).WithDetail("%s", err)
	}
	return re, nil
}

// regexEval looks a pattern up once a batch if it is the same for all rows.
func regexEval[T any](dst func(*batch.Vec) []T, f func(row, *regex) (T, *diag.Error)) func(*site) func(Session) Eval {
	return func(*site) func(Session) Eval {
		return func(Session) Eval {
			c := &regexCache{}
			var re *regex
			var bad *diag.Error
			each := perRow(dst, func(x row) (T, *diag.Error) {
				if !x.args[1].Const {
					re, bad = rowRegex(x, c)
				}
				if bad != nil {
					var zero T
					return zero, bad
				}
				return f(x, re)
			})
			return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
				if args[1].Const && len(rows) > 0 {
					re, bad = rowRegex(row{args, int(rows[0])}, c)
				}
				each(args, rows, n, out, fail)
			}
		}
	}
}

func regexpExtract(x row, re *regex) (string, *diag.Error) {
	if re == nil {
		return "", isNull
	}
	g := int64(0)
	if x.has(2) {
		g = x.i64(2)
	}
	if g < 0 || g > int64(re.groups) {
		return "", isNull
	}
	loc, err := re.find(x.str(0), 0)
	switch {
	case err != nil:
		return "", err
	case loc == nil || loc[2*g] < 0:
		return "", isNull
	}
	return x.str(0)[loc[2*g]:loc[2*g+1]], nil
}

func regexpExtractAll(x row, c *regexCache) (types.Datum, *diag.Error) {
	re, err := rowRegex(x, c)
	if err != nil {
		return types.Datum{}, err
	}
	g := int64(1)
	if x.has(2) {
		g = x.i64(2)
	}
	if re == nil || g < 0 || g > int64(re.groups) {
		return types.NullDatum, nil
	}
	s, out := x.str(0), types.Datum{}
	err = re.all(s, func(loc []int) {
		if loc[2*g] < 0 {
			out.List = append(out.List, types.NullDatum)
		} else {
			out.List = append(out.List, types.StrDatum(s[loc[2*g]:loc[2*g+1]]))
		}
	})
	return out, err
}

func regexpReplace(dst []byte, x row, c *regexCache) ([]byte, *diag.Error) {
	re, err := rowRegex(x, c)
	switch {
	case err != nil:
		return dst, err
	case re == nil:
		return dst, isNull
	}
	s, rep, at, from := x.str(0), x.str(2), 0, len(dst)
	var long *diag.Error
	err = re.all(s, func(loc []int) {
		if long = outgrown("REGEXP_REPLACE", len(dst)-from+len(rep), s); long != nil {
			return
		}
		dst = append(append(dst, s[at:loc[0]]...), rep...)
		at = loc[1]
	})
	if long != nil {
		return dst, long
	}
	return append(dst, s[at:]...), err
}

func strToMapCheck(b *site) error {
	if len(b.args) == 2 {
		return wrongArgs(b.CallSite, "STR_TO_MAP(string [, entries, keyValue])")
	}
	for i := 1; i < len(b.args); i++ {
		if d, ok := b.literal(i); ok {
			if _, err := compileRegex(d.Str); err != nil {
				return badCall(b.CallSite, "the delimiter '%s' is no regular expression", d.Str).WithDetail("%s", err).
					WithHint("put a backslash before a character with a meaning: '\\|'")
			}
		}
	}
	return nil
}

func strToMapEval(b *site) func(Session) Eval {
	return func(Session) Eval {
		entries, kvs := &splitter{fallback: ","}, &splitter{fallback: "="}
		return datumEval(b.ret, func(x row) (types.Datum, *diag.Error) {
			out := types.Datum{}
			if x.str(0) == "" {
				return out, nil
			}
			list, err := entries.split(x, 1, x.str(0), 0)
			if err != nil {
				return out, err
			}
			at := map[string]int{}
			for _, e := range list {
				kv, err := kvs.split(x, 2, e, 2)
				if err != nil {
					return out, err
				}
				v := types.NullDatum
				if len(kv) == 2 {
					v = types.StrDatum(kv[1])
				}
				if i, ok := at[kv[0]]; ok {
					out.List[i] = v
					continue
				}
				out.List = append(out.List, types.StrDatum(kv[0]), v)
				at[kv[0]] = len(out.List) - 1
			}
			return out, nil
		})
	}
}

// splitter is Java's String.split with a pattern of the row.
type splitter struct {
	fallback string
	cache    regexCache
}

func (sp *splitter) split(x row, arg int, s string, limit int) ([]string, *diag.Error) {
	sep := sp.fallback
	if x.has(arg) {
		sep = x.str(arg)
	}
	var out []string
	if !strings.ContainsAny(sep, `\[](){}.*+?^$|`) && sep != "" {
		if limit > 0 {
			out = strings.SplitN(s, sep, limit)
		} else {
			out = strings.Split(s, sep)
		}
	} else {
		re, err := sp.cache.get(sep)
		if err != nil {
			return nil, badValue("STR_TO_MAP", "the delimiter '%s' is no regular expression", sep).WithDetail("%s", err)
		}
		at := 0
		if derr := re.all(s, func(loc []int) {
			if loc[1] == 0 || loc[0] >= len(s) && loc[0] == loc[1] || limit > 0 && len(out) == limit-1 {
				return
			}
			out = append(out, s[at:loc[0]])
			at = loc[1]
		}); derr != nil {
			return nil, derr
		}
		out = append(out, s[at:])
	}
	for limit == 0 && len(out) > 1 && out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out, nil
}
