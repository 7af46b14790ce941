package expr

import (
	"errors"
	"strings"
	"testing"
)

func TestRegexpFunctions(t *testing.T) {
	checkText(t, "UTC", [][2]string{
		{"REGEXP('foobar', 'ob')", "TRUE"}, {"REGEXP('foobar', '')", "FALSE"}, {"REGEXP('a', '(')", "plan:no regular expression"}, {"REGEXP('a', '(' || '')", "FALSE"}, {"REGEXP(CAST(NULL AS STRING), 'a')", "NULL"},
		{"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)', 2)", "bar"}, {"REGEXP_EXTRACT('foothebar', 'foo(.*?)(bar)')", "foothebar"}, {"REGEXP_EXTRACT('a', 'b')", "NULL"}, {"REGEXP_EXTRACT('a', 'a', 1)", "NULL"},
		{"REGEXP_EXTRACT('b', '(a)|b', 1)", "NULL"}, {"REGEXP_EXTRACT('', '^$')", ""}, {"REGEXP_REPLACE('fooobar', 'oo', '$')", "f$obar"}, {"REGEXP_REPLACE('abc', '', '-')", "-a-b-c-"},
		{"REGEXP_REPLACE('a', '(' || '', 'x')", "NULL"}, {"REGEXP_REPLACE('a😀b', '[^a-z]', '')", "ab"}, {"REGEXP_COUNT('baaac', 'a*')", "4"}, {"REGEXP_COUNT('abc123xyz456', '\\d')", "6"}, {"REGEXP_COUNT('a', '(')", "NULL"},
		{"REGEXP_INSTR('a.b.c.d', '\\.')", "2"}, {"REGEXP_INSTR('😀b', 'b')", "3"}, {"REGEXP_INSTR('a', 'x')", "0"}, {"REGEXP_SUBSTR('100-200', '\\d+$')", "200"},
		{"REGEXP_EXTRACT_ALL('abcdeabde', '(abcdeabde)|([a-z]*)', 2)", "[NULL, ]"}, {"REGEXP_EXTRACT_ALL('100-200, 300-400', '(\\d+)-(\\d+)')", "[100, 300]"}, {"REGEXP_EXTRACT_ALL('a', 'a')", "NULL"}, {"REGEXP_EXTRACT_ALL('a', '(b)')", "[]"},
		{"STR_TO_MAP('k1=v1,k2=v2')", "{k1=v1, k2=v2}"}, {"STR_TO_MAP('k1:v1|k2', '\\|', ':')", "{k1=v1, k2=NULL}"}, {"STR_TO_MAP('')", "{}"}, {"STR_TO_MAP('a=1,a=2')", "{a=2}"}, {"STR_TO_MAP('a=b=c')", "{a=b=c}"},
		{"STR_TO_MAP('a', '(', ':')", "plan:is no regular expression"}, {"REGEXP('a', '\\X')", "plan:cannot be used"},
	})
}

// TestJavaRegex: what java.util.regex finds first in a text; "<none>" for no match, "<bad>" for a pattern Java rejects,
// "<cannot>" for one that only Java takes. Both engines are asked where both can run the pattern.
func TestJavaRegex(t *testing.T) {
	for _, c := range [][3]string{
		{`\w+`, "é_a1é", "_a1"}, {`\s`, "\u00a0\x0b", "\x0b"}, {`(?i)É`, "é", "<none>"}, {`(?iu)É`, "é", "é"}, {`(?i)aB[c-d]`, "AbD", "AbD"},
		{`a$`, "a\n", "a"}, {`a$`, "a\r\n", "a"}, {`a$`, "a\nb", "<none>"}, {`(?m)a$`, "a\nb", "a"}, {`(?m)^b`, "a\nb", "b"}, {`(?m)^b`, "a\rb", "b"}, {`^b`, "a\nb", "<none>"}, {`a\Z`, "a\n", "a"}, {`a\z`, "a\n", "<none>"},
		{`a.b`, "a\rb", "<none>"}, {`a.b`, "a\u0085b", "<none>"}, {`(?s)a.b`, "a\nb", "a\nb"}, {`(?d)a.b`, "a\rb", "a\rb"}, {`(?s:a.)b.`, "a\nb\n", "<none>"},
		{`(?<=a)b`, "ab", "b"}, {`(?<!a)b`, "abb", "b"}, {`a(?=b)`, "acab", "a"}, {`a(?!b)`, "abac", "a"}, {`(?<=a+)b`, "ab", "<bad>"}, {`(?<=a{1,3})b`, "ab", "b"},
		{`(\w)\1`, "abccd", "cc"}, {`(?<x>a)\k<x>`, "baa", "aa"}, {`\k<y>`, "a", "<bad>"}, {`(?>a+)ab`, "aaab", "<none>"}, {`a++b`, "aab", "aab"}, {`a*+a`, "aaa", "<none>"}, {`a?+a`, "a", "<none>"}, {`a{1,2}+a`, "aa", "<none>"},
		{`\Qa.b\E+`, "a.bbb", "a.bbb"}, {`\Q.*`, "x.*", ".*"}, {`[\Q^]\E]+`, "a]^", "]^"},
		{`[a-z&&[^b]]+`, "bacb", "ac"}, {`[a[bc]]+`, "xabcx", "abc"}, {`[a-d&&b-z&&[^c]]+`, "abcd", "b"}, {`[^a&&[ab]]`, "ab", "b"}, {`[]a]`, "]", "]"}, {`[^]a]`, "]b", "b"}, {`[a-]`, "-", "-"}, {`[\d-x]`, "-", "-"}, {`[a-\d]`, "a", "<bad>"}, {`[b-a]`, "a", "<bad>"},
		{`\p{Alpha}+`, "éab", "ab"}, {`\p{Punct}`, "a!", "!"}, {`\p{IsAlphabetic}+`, "1éa", "éa"}, {`\p{IsGreek}`, "aΩ", "Ω"}, {`\p{Lu}`, "aB", "B"}, {`\pL+`, "1é", "é"}, {`\P{L}`, "a1", "1"}, {`\p{script=Han}`, "a中", "中"}, {`\p{Foo}`, "a", "<bad>"}, {`\p{InGreek}`, "a", "<cannot>"},
		{`\h\R`, "a \r\n", " \r\n"}, {`\v`, "a\u2028", "\u2028"}, {`\u0041\x42\x{1F600}\0103`, "AB😀C", "AB😀C"}, {`\uD83D\uDE00`, "😀", "😀"}, {`\cA`, "\x01", "\x01"}, {`\t\n\r\f\a\e`, "\t\n\r\f\a\x1b", "\t\n\r\f\a\x1b"},
		{`\bé`, " é", "<none>"}, {`\ba\b`, "b a", "a"}, {`\Ba`, "ba", "a"}, {`(?<!x)\bfoo\b`, "foo", "foo"}, {`(?x) a b # c`, "ab", "ab"}, {`(?-i)a(?i)b(?-i)c`, "aBc", "aBc"}, {`(a(?i)b)c`, "aBC", "<none>"},
		{`x{,3}`, "x", "<bad>"}, {`{`, "{", "<bad>"}, {`a{2`, "aa", "<bad>"}, {`}`, "}", "}"}, {`]`, "]", "]"}, {`*a`, "a", "<bad>"}, {`a**`, "a", "<bad>"}, {`(`, "(", "<bad>"}, {`)`, ")", "<bad>"}, {`[a`, "a", "<bad>"}, {`\i`, "i", "<bad>"}, {`a\`, "a", "<bad>"}, {`(?P<n>a)`, "a", "<bad>"}, {`(?<n>a)(?<n>b)`, "ab", "<bad>"}, {`\G`, "", "<cannot>"}, {`\1(a)`, "a", "<cannot>"},
		{`[[:alpha:]]+`, "xal:", "al:"}, {`(a|ab)(c|bcd)`, "abcd", "abcd"}, {`(a*)*`, "aa", "aa"}, {`(a|b*)*c`, "abc", "abc"}, {`a{1001}`, strings.Repeat("a", 1001), strings.Repeat("a", 1001)}, {``, "a", ""}, {`a|`, "b", ""}, {`[^\x00-\x{10FFFF}]`, "a", "<none>"}, {`a{0}b`, "b", "b"},
		{`\é\-\ `, "é- ", "é- "}, {`a$b?`, "a\n", "a"},
	} {
		pattern, text, want := c[0], c[1], c[2]
		re, err := compileRegex(pattern)
		switch {
		case errors.Is(err, errUnsupportedRegex):
			if want != "<cannot>" {
				t.Errorf("%q: %v", pattern, err)
			}
			continue
		case err != nil:
			if want != "<bad>" {
				t.Errorf("%q: %v", pattern, err)
			}
			continue
		}
		loc, derr := re.find(text, 0)
		got := "<none>"
		if loc != nil {
			got = text[loc[0]:loc[1]]
		}
		if derr != nil || got != want {
			t.Errorf("%q in %q: %q %v, want %q", pattern, text, got, derr, want)
		}
		if re.back != nil {
			if back, _ := re.findBack(text, 0); (back == nil) != (loc == nil) {
				t.Errorf("%q in %q: the engines differ", pattern, text)
			}
		}
	}
}

// TestRegexTimeout: a pattern that explodes is an error of the row, not a hang and not NULL.
func TestRegexTimeout(t *testing.T) {
	re, err := compileRegex(`(?=a)(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if _, derr := re.test(strings.Repeat("a", 40) + "!"); derr == nil || !strings.Contains(derr.Message, "took too long") {
		t.Errorf("got %v", derr)
	}
	if re, err = compileRegex(`(a+)+$`); err != nil || re.linear == nil {
		t.Fatalf("%v is not linear", err)
	}
	if ok, derr := re.test(strings.Repeat("a", 5000) + "!"); ok || derr != nil {
		t.Errorf("got %t %v", ok, derr)
	}
}

// FuzzJavaRegex: the front never panics, what it accepts compiles, and where both engines run a pattern they agree on
// whether there is a match.
func FuzzJavaRegex(f *testing.F) {
	for _, s := range []string{`a(b|c)*?d`, `[a-z&&[^b]]`, `\Qx\E*`, `(?i)x$`, `(?<n>a)\k<n>`, `\p{L}{2,3}+`, `(?<=ab)c`, `[^\d\s]`, `\x{1F600}`, `(?x) a #`} {
		f.Add(s, "abcd\n")
	}
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 60 || len(text) > 60 || strings.ToValidUTF8(pattern, "") != pattern || strings.ToValidUTF8(text, "") != text {
			return
		}
		re, err := compileRegex(pattern)
		if err != nil {
			return
		}
		loc, derr := re.find(text, 0)
		if derr != nil {
			return
		}
		if loc != nil && len(loc) != 2*re.groups+2 {
			t.Fatalf("%d bounds for %d groups", len(loc), re.groups)
		}
		if re.linear != nil && re.back != nil {
			found := loc != nil
			if back, derr := re.findBack(text, 0); derr == nil && (back != nil) != found {
				t.Errorf("%q in %q: linear %t, backtracking %t", pattern, text, found, back != nil)
			}
		}
		re.all(text, func([]int) {})
	})
}
