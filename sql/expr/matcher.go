package expr

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
)

// matcher is a compiled LIKE or SIMILAR TO pattern.
type matcher struct {
	re    *regexp.Regexp // SIMILAR TO
	parts []likePart     // LIKE
}

// likePart is a piece of a LIKE pattern: any (%), one (_), or text.
type likePart struct {
	any, one bool
	text     string
}

// newMatcher compiles a pattern; esc is the escape character or "".
func newMatcher(pat, esc string, similar bool) (*matcher, *diag.Error) {
	if utf8.RuneCountInString(esc) > 1 {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "invalid escape character '%s'", esc).
			WithHint("ESCAPE takes one character")
	}
	if similar {
		return newSimilar(pat, esc)
	}
	m := &matcher{}
	text := ""
	flush := func() {
		if text != "" {
			m.parts = append(m.parts, likePart{text: text})
			text = ""
		}
	}
	for rest := pat; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		c := rest[:size]
		rest = rest[size:]
		switch {
		case c == esc && esc != "":
			_, size := utf8.DecodeRuneInString(rest)
			next := rest[:size]
			if next != "%" && next != "_" && next != esc {
				return nil, badEscape(pat, esc)
			}
			text += next
			rest = rest[size:]
		case c == "%":
			flush()
			if k := len(m.parts); k == 0 || !m.parts[k-1].any {
				m.parts = append(m.parts, likePart{any: true})
			}
		case c == "_":
			flush()
			m.parts = append(m.parts, likePart{one: true})
		default:
			text += c
		}
	}
	flush()
	return m, nil
}

func badEscape(pat, esc string) *diag.Error {
	return diag.New(diag.Semantic, diag.Pos{}, "invalid escape sequence in pattern '%s'", pat).
		WithHint("'%s' may only stand before %%, _ or itself", esc)
}

func (m *matcher) match(s string) bool {
	if m.re != nil {
		return m.re.MatchString(s)
	}
	parts := m.parts
	switch {
	case len(parts) == 0:
		return s == ""
	case len(parts) == 1 && parts[0].text != "":
		return s == parts[0].text
	case len(parts) == 2 && parts[1].any && parts[0].text != "":
		return strings.HasPrefix(s, parts[0].text)
	case len(parts) == 2 && parts[0].any && parts[1].text != "":
		return strings.HasSuffix(s, parts[1].text)
	case len(parts) == 3 && parts[0].any && parts[2].any && parts[1].text != "":
		return strings.Contains(s, parts[1].text)
	}
	return likeMatch(parts, s)
}

// likeMatch walks the pattern, going back to the last % when a later part does not fit: no more than len(s) times.
func likeMatch(parts []likePart, s string) bool {
	i, back, mark := 0, -1, ""
	for {
		switch {
		case i < len(parts) && parts[i].any:
			if i++; i == len(parts) {
				return true
			}
			back, mark = i, s
			continue
		case i == len(parts) && s == "":
			return true
		case i < len(parts):
			if rest, ok := parts[i].eat(s); ok {
				i, s = i+1, rest
				continue
			}
		}
		if back < 0 || mark == "" {
			return false
		}
		_, size := utf8.DecodeRuneInString(mark)
		mark = mark[size:]
		i, s = back, mark
	}
}

// eat matches one part at the front of s. _ is any code point but a line terminator, as in Flink.
func (p likePart) eat(s string) (string, bool) {
	if !p.one {
		return strings.CutPrefix(s, p.text)
	}
	r, size := utf8.DecodeRuneInString(s)
	switch r {
	case '\n', '\r', '\u0085', '\u2028', '\u2029':
		return s, false
	}
	return s[size:], size > 0
}

var similarClasses = strings.NewReplacer("[:ALPHA:]", `\pL`, "[:alpha:]", `\pL`, "[:UPPER:]", `\p{Lu}`, "[:upper:]", `\p{Lu}`,
	"[:LOWER:]", `\p{Ll}`, "[:lower:]", `\p{Ll}`, "[:DIGIT:]", `\d`, "[:digit:]", `\d`, "[:SPACE:]", " ", "[:space:]", " ",
	"[:WHITESPACE:]", `\s`, "[:whitespace:]", `\s`, "[:ALNUM:]", `\pL\d`, "[:alnum:]", `\pL\d`)

// newSimilar translates a SIMILAR TO pattern to a regular expression over the whole string.
func newSimilar(pat, esc string) (*matcher, *diag.Error) {
	var sb strings.Builder
	sb.WriteString(`\A(?:`)
	for rest := pat; rest != ""; {
		_, size := utf8.DecodeRuneInString(rest)
		c := rest[:size]
		rest = rest[size:]
		switch {
		case c == esc && esc != "":
			_, size := utf8.DecodeRuneInString(rest)
			next := rest[:size]
			if next == "" || !strings.Contains("[]()|^-+*_%?{}"+esc, next) {
				return nil, badEscape(pat, esc)
			}
			sb.WriteString(regexp.QuoteMeta(next))
			rest = rest[size:]
		case c == "%":
			sb.WriteString(`(?s:.*)`)
		case c == "_":
			sb.WriteString(".")
		case c == "$" || c == `\`:
			sb.WriteString(`\` + c)
		case c == "[":
			set, after := cutSet(rest)
			sb.WriteString("[" + similarClasses.Replace(set))
			rest = after
		default:
			sb.WriteString(c)
		}
	}
	sb.WriteString(`)\z`)
	re, err := regexp.Compile(sb.String())
	if err != nil {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "invalid SIMILAR TO pattern '%s'", pat).Wrap(err)
	}
	return &matcher{re: re}, nil
}

// cutSet cuts s behind the bracket that ends a character set; [:CLASS:] may stand inside.
func cutSet(s string) (set, rest string) {
	for i := 0; i < len(s); i++ {
		switch {
		case strings.HasPrefix(s[i:], "[:"):
			if j := strings.Index(s[i:], ":]"); j > 0 {
				i += j + 1
			}
		case s[i] == ']':
			return s[:i+1], s[i+1:]
		}
	}
	return s, ""
}

// matcherCache keeps the patterns of a LIKE whose pattern is a column.
type matcherCache struct {
	similar bool
	m       map[[2]string]*matcher
}

const maxMatchers = 1000

func (c *matcherCache) get(pat, esc string) (*matcher, *diag.Error) {
	key := [2]string{pat, esc}
	if m := c.m[key]; m != nil {
		return m, nil
	}
	m, err := newMatcher(pat, esc, c.similar)
	if err != nil {
		err.Code = diag.Data
		return nil, err
	}
	if c.m == nil || len(c.m) >= maxMatchers {
		c.m = map[[2]string]*matcher{}
	}
	c.m[[2]string{strings.Clone(pat), strings.Clone(esc)}] = m
	return m, nil
}
