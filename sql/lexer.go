package sql

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
)

type tokenKind uint8

const (
	tokEOF     tokenKind = iota
	tokIdent             // unquoted word, keyword or not
	tokQuoted            // `name`
	tokString            // 'text', fragments on following lines joined
	tokUnicode           // U&'text', escapes not yet undone
	tokHex               // X'1F'
	tokInt
	tokDecimal
	tokApprox
	tokOp
	tokHint // /*+ inside */
	tokBad  // not a token of the dialect; err says why
)

// token is one lexical element. text is the word or operator as written, or the value of a literal or quoted name.
type token struct {
	kind tokenKind
	text string
	up   string // upper-case text of tokIdent, else ""
	pos  diag.Pos
	end  int // offset behind the token
	err  *diag.Error
	open bool // tokBad: a quote or comment that never ends
}

func (t *token) is(word string) bool { return t.up == word }
func (t *token) op(o string) bool    { return t.kind == tokOp && t.text == o }
func (t *token) name() bool          { return t.kind == tokIdent || t.kind == tokQuoted }

// lexer cuts a script into tokens. It never fails: what is no token becomes a tokBad, so that the statements around it
// can still be told apart.
type lexer struct {
	src  string
	off  int
	mark diag.Pos // the last place whose line and column are known
}

func newLexer(src string) *lexer { return &lexer{src: src, mark: diag.Pos{Line: 1, Col: 1}} }

// byteOrderMark stands at the start of a UTF-8 file that a Windows editor saved.
const byteOrderMark = "\ufeff"

// place is the position of off, which must not be before any offset asked for earlier.
func (l *lexer) place(off int) diag.Pos {
	m := &l.mark
	if m.Offset == 0 && off > 0 && strings.HasPrefix(l.src, byteOrderMark) {
		m.Offset = len(byteOrderMark) // no column of its own: editors do not show it
	}
	for m.Offset < off {
		c := l.src[m.Offset]
		if c == '\n' {
			m.Line++
			m.Col = 0
			m.Offset++
			m.Col++
			continue
		}
		_, w := utf8.DecodeRuneInString(l.src[m.Offset:])
		m.Offset += w
		m.Col++
	}
	p := *m
	p.Offset = off
	return p
}

func isLetter(r rune) bool {
	return r == '_' || r == '$' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || r >= 0x80 && r != utf8.RuneError && unicode.IsLetter(r)
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// skipBlank moves over white space and comments. It stops before hints and unterminated comments.
func (l *lexer) skipBlank() {
	for l.off < len(l.src) {
		rest := l.src[l.off:]
		switch {
		case strings.IndexByte(" \t\n\r\f", rest[0]) >= 0:
			l.off++
		case l.off == 0 && strings.HasPrefix(rest, byteOrderMark):
			l.off += len(byteOrderMark)
		case strings.HasPrefix(rest, "--"), strings.HasPrefix(rest, "//"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				l.off += n
			} else {
				l.off = len(l.src)
			}
		case strings.HasPrefix(rest, "/*") && !strings.HasPrefix(rest, "/*+"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return
			}
			l.off += n + 4
		default:
			return
		}
	}
}

// next returns the next token; tokEOF for ever at the end.
func (l *lexer) next() token {
	l.skipBlank()
	start := l.off
	t := token{pos: l.place(start)}
	if start >= len(l.src) {
		t.end = start
		return t
	}
	l.scan(&t, l.src[start:])
	t.end = l.off
	return t
}

// scan fills t from rest, which starts at l.off, and moves l.off behind the token.
func (l *lexer) scan(t *token, rest string) {
	c := rest[0]
	switch {
	case strings.HasPrefix(rest, "/*"):
		l.scanHint(t, rest)
	case c == '\'':
		t.kind = tokString
		l.scanString(t)
	case (c == 'U' || c == 'u') && strings.HasPrefix(rest[1:], "&'"):
		l.off += 2
		t.kind = tokUnicode
		l.scanString(t)
	case (c == 'X' || c == 'x') && strings.HasPrefix(rest[1:], "'"):
		l.off++
		t.kind = tokHex
		l.scanString(t)
	case c == '`':
		l.scanQuoted(t)
	case isDigit(c), c == '.' && len(rest) > 1 && isDigit(rest[1]):
		l.scanNumber(t, rest)
	default:
		if r, _ := utf8.DecodeRuneInString(rest); isLetter(r) {
			l.scanWord(t, rest)
			return
		}
		l.scanOp(t, rest)
	}
}

func (l *lexer) bad(t *token, width int, hint, format string, args ...any) {
	t.kind = tokBad
	t.err = diag.New(diag.Syntax, t.pos, format, args...)
	if hint != "" {
		t.err.Hint = hint
	}
	l.off += width
}

func (l *lexer) scanHint(t *token, rest string) {
	n := strings.Index(rest[2:], "*/")
	if n < 0 {
		l.bad(t, len(rest), "end it with */", "comment is not terminated")
		t.open = true
		return
	}
	t.kind, t.text = tokHint, rest[3:2+n]
	l.off += n + 4
}

// closing finds the end of a quoted text that starts at src[off] and returns the value and the offset behind it, or -1.
func closing(src string, off int, quote byte) (string, int) {
	i := off + 1
	for {
		n := strings.IndexByte(src[i:], quote)
		if n < 0 {
			return "", -1
		}
		i += n + 1
		if i >= len(src) || src[i] != quote {
			q := string(quote)
			return strings.ReplaceAll(src[off+1:i-1], q+q, q), i
		}
		i++
	}
}

// scanString reads a literal at l.off, which is its opening quote, and the fragments that continue it. As in standard
// SQL fragments join only across a line break.
func (l *lexer) scanString(t *token) {
	v, end := closing(l.src, l.off, '\'')
	if end < 0 {
		l.bad(t, len(l.src)-l.off, "end it with a single quote; a quote inside is written ''", "string literal is not terminated")
		t.open = true
		return
	}
	if !utf8.ValidString(v) {
		l.bad(t, end-l.off, "save the file as UTF-8, or write bytes as X'1F'", "string literal is not valid UTF-8")
		return
	}
	t.text, l.off = v, end
	if t.kind != tokString {
		return
	}
	for {
		save := l.off
		l.skipBlank()
		if !strings.HasPrefix(l.src[l.off:], "'") || !strings.Contains(l.src[save:l.off], "\n") {
			l.off = save
			return
		}
		v, end := closing(l.src, l.off, '\'')
		if end < 0 || !utf8.ValidString(v) {
			l.off = save
			return
		}
		t.text += v
		l.off = end
	}
}

func (l *lexer) scanQuoted(t *token) {
	v, end := closing(l.src, l.off, '`')
	switch {
	case end < 0:
		l.bad(t, len(l.src)-l.off, "end it with a backtick; a backtick inside is written ``", "quoted identifier is not terminated")
		t.open = true
	case !utf8.ValidString(v):
		l.bad(t, end-l.off, "save the file as UTF-8", "quoted identifier is not valid UTF-8")
	case v == "":
		l.bad(t, 2, "write a name between the backquotes", "identifier is empty")
	default:
		t.kind, t.text, l.off = tokQuoted, v, end
	}
}

func digitsEnd(s string, i int) int {
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	return i
}

func (l *lexer) scanNumber(t *token, rest string) {
	t.kind = tokInt
	i := digitsEnd(rest, 0)
	if i < len(rest) && rest[i] == '.' {
		t.kind, i = tokDecimal, digitsEnd(rest, i+1)
	}
	if i < len(rest) && (rest[i] == 'e' || rest[i] == 'E') {
		j := i + 1
		if j < len(rest) && (rest[j] == '+' || rest[j] == '-') {
			j++
		}
		if e := digitsEnd(rest, j); e > j {
			t.kind, i = tokApprox, e
		}
	}
	if r, _ := utf8.DecodeRuneInString(rest[i:]); i < len(rest) && isLetter(r) {
		number := i
		for i < len(rest) {
			r, w := utf8.DecodeRuneInString(rest[i:])
			if !isLetter(r) && !isDigit(rest[i]) {
				break
			}
			i += w
		}
		if reserved[strings.ToUpper(rest[number:i])] { // as in 1THEN or 2else: Flink ends the number here
			t.text = rest[:number]
			l.off += number
			return
		}
		l.bad(t, i, "an identifier that starts with a digit must be quoted: `"+rest[:i]+"`", "invalid number %s", rest[:i])
		return
	}
	t.text = rest[:i]
	l.off += i
}

func (l *lexer) scanWord(t *token, rest string) {
	i := 0
	for i < len(rest) {
		if c := rest[i]; c < utf8.RuneSelf {
			if !isLetter(rune(c)) && !isDigit(c) {
				break
			}
			i++
			continue
		}
		r, w := utf8.DecodeRuneInString(rest[i:])
		if !isLetter(r) && !unicode.IsMark(r) {
			break
		}
		i += w
	}
	t.kind, t.text = tokIdent, rest[:i]
	t.up = strings.ToUpper(t.text)
	l.off += i
}

// foreignOps are characters that other dialects use, with what to write in Flink SQL.
var foreignOps = map[string]string{
	"!=": "write <>",
	"==": "write =",
	"&&": "write AND",
	"::": "write CAST(x AS type)",
	":=": "write => for a named argument",
	"!":  "write NOT",
	"#":  "comments start with --",
	"@":  "variables do not exist in Flink SQL",
	":":  "write the value instead of a parameter, KEY k VALUE v in JSON_OBJECT",
	"&":  "bit operators do not exist in Flink SQL",
	"~":  "bit operators do not exist in Flink SQL",
}

func (l *lexer) scanOp(t *token, rest string) {
	if rest[0] == '"' {
		l.scanDoubleQuoted(t, rest)
		return
	}
	if len(rest) >= 2 {
		two := rest[:2]
		if hint, ok := foreignOps[two]; ok {
			l.bad(t, 2, hint, "operator %s does not exist in Flink SQL", two)
			return
		}
		switch two {
		case "<>", "<=", ">=", "=>", "||":
			t.kind, t.text = tokOp, two
			l.off += 2
			return
		}
	}
	if strings.IndexByte("()[]<>=+-*/%,;.?{}|^", rest[0]) >= 0 {
		t.kind, t.text = tokOp, rest[:1]
		l.off++
		return
	}
	r, w := utf8.DecodeRuneInString(rest)
	hint := foreignOps[rest[:w]]
	switch {
	case hint != "":
	case r == utf8.RuneError && w == 1, unicode.IsControl(r):
		hint = "a script is text in UTF-8; is this a binary file, or one saved as UTF-16?"
	case r == '\\':
		hint = shellHint(rest)
	case unicode.IsSpace(r) || !unicode.IsPrint(r):
		hint = "it looks like white space or nothing at all; replace it by a space"
	default:
		hint = "write text in single quotes, 'like this', and names with special characters in backticks"
	}
	l.bad(t, w, hint, "unexpected character %q", r)
}

// scanDoubleQuoted takes "x" as one bad token, so that a semicolon inside does not end the statement.
func (l *lexer) scanDoubleQuoted(t *token, rest string) {
	line := rest
	if n := strings.IndexByte(line, '\n'); n >= 0 {
		line = line[:n]
	}
	if v, end := closing(line, 0, '"'); end > 0 && v != "" {
		l.bad(t, end, "write "+QuoteString(v)+" for a string, "+QuoteIdent(v)+" for a name", "double quotes are not used in Flink SQL")
		return
	}
	l.bad(t, 1, "write 'x' for a string, `x` for a name", "double quotes are not used in Flink SQL")
}
