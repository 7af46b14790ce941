package sql

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/diag"
)

// maxDepth bounds the nesting of brackets, CASE, prefix operators and data types. Go cannot recover from a stack
// overflow, and every later stage walks the tree recursively too.
const maxDepth = 500

// maxOperators bounds the operators, joins and set operations of one statement, which can form a tree of that depth.
const maxOperators = 50000

// parser is a recursive descent over the tokens of one statement. Syntax errors unwind as bailout panics that catch
// turns into the returned error; no panic leaves the package.
type parser struct {
	src       string // the whole script, for text slices
	toks      []token
	i         int
	match     []int32 // index of the closing bracket for each opening one
	query     []int8  // parenQuery's answers: 0 unknown, 1 no, 2 yes
	depth     int
	operators int       // of the whole statement
	sk        *skeleton // of the expression being walked
}

type bailout struct{ err *diag.Error }

// catch converts a panic into *err. Anything but a bailout is a bug of ours, and is reported as one.
func catch(err *error) {
	switch r := recover().(type) {
	case nil:
	case bailout:
		*err = r.err
	default:
		*err = diag.New(diag.Internal, diag.Pos{}, "the SQL parser failed: %v", r).
			WithHint("this is a bug in streamsql; please report the statement")
	}
}

// newParser prepares toks, which end in tokEOF. It reports bad tokens and unbalanced brackets.
func newParser(src string, toks []token) *parser {
	p := &parser{src: src, toks: toks, match: make([]int32, len(toks)), query: make([]int8, len(toks))}
	var stack []int
	for i := range toks {
		t := &toks[i]
		if t.kind == tokBad {
			panic(bailout{t.err})
		}
		if t.kind != tokOp {
			continue
		}
		switch t.text {
		case "(", "[":
			if stack = append(stack, i); len(stack) > maxDepth {
				p.failHint(t.pos, "split the statement", "more than %d nested brackets", maxDepth)
			}
		case ")", "]":
			if len(stack) == 0 {
				p.failHint(t.pos, "remove it, or open the bracket before", "'%s' without an opening bracket", t.text)
			}
			o := stack[len(stack)-1]
			if toks[o].text == "(" != (t.text == ")") {
				p.failHint(t.pos, fmt.Sprintf("it would close the '%s' at %s", toks[o].text, toks[o].pos), "unexpected '%s'", t.text)
			}
			p.match[o] = int32(i)
			stack = stack[:len(stack)-1]
		}
	}
	if len(stack) > 0 {
		open := toks[stack[len(stack)-1]]
		p.failHint(open.pos, "write "+map[string]string{"(": "')'", "[": "']'"}[open.text]+" behind what it holds", "'%s' is never closed", open.text)
	}
	return p
}

func (p *parser) fail(pos diag.Pos, format string, args ...any) {
	panic(bailout{diag.New(diag.Syntax, pos, format, args...)})
}

func (p *parser) failHint(pos diag.Pos, hint, format string, args ...any) {
	e := diag.New(diag.Syntax, pos, format, args...)
	e.Hint = hint
	panic(bailout{e})
}

// refuse rejects by name a part of Flink SQL that streamsql does not have.
func (p *parser) refuse(pos diag.Pos, what, hint string) {
	e := diag.New(diag.Unsupported, pos, "%s is not supported", what)
	e.Hint = hint
	panic(bailout{e})
}

// failTok reports the current token where want was needed.
func (p *parser) failTok(want string) {
	t := p.cur()
	hint := p.hintFor(t)
	switch {
	case want == "'='" && t.kind != tokEOF:
		hint = ""
	case hint == "":
		hint = p.edit(want)
	}
	p.failHint(p.errorPos(t), hint, "expected %s, found %s", want, p.describe(t))
}

// errorPos is the place of t; where the text has ended lines before, the place behind the last token.
func (p *parser) errorPos(t *token) diag.Pos {
	if t.kind != tokEOF || p.i == 0 {
		return t.pos
	}
	last := p.toks[p.i-1]
	text := p.src[last.pos.Offset:last.end]
	if strings.Contains(text, "\n") || !strings.Contains(p.src[last.end:t.pos.Offset], "\n") {
		return t.pos
	}
	return diag.Pos{Offset: last.end, Line: last.pos.Line, Col: last.pos.Col + utf8.RuneCountInString(text)}
}

// failWord reports the current token where one of words was needed.
func (p *parser) failWord(words ...string) {
	t := p.cur()
	n := len(words) - 1
	want := strings.Join(words[:n], ", ") + " or " + words[n]
	if w := diag.Nearest(t.text, words); t.kind == tokIdent && w != "" {
		p.failHint(t.pos, "did you mean "+w+"?", "expected %s, found %s", want, t.text)
	}
	p.failTok(want)
}

func (p *parser) describe(t *token) string {
	switch t.kind {
	case tokEOF:
		return "the end of the statement"
	case tokIdent:
		if reserved[t.up] {
			return "the keyword " + t.up
		}
		return t.text
	case tokHint:
		return "a hint"
	}
	s := p.src[t.pos.Offset:t.end]
	if len(s) > 40 {
		s = s[:40] + "..."
	}
	if t.kind == tokOp {
		return "'" + s + "'"
	}
	return s
}

// foreignWords are words of other dialects in a place where Flink SQL has nothing.
var foreignWords = map[string]string{
	"DIV":     "write CAST(a / b AS BIGINT), or a / b for two integers",
	"MOD":     "write MOD(a, b) or a % b",
	"XOR":     "write a <> b for booleans",
	"REGEXP":  "write REGEXP(a, pattern)",
	"RLIKE":   "write REGEXP(a, pattern)",
	"ILIKE":   "write LOWER(a) LIKE LOWER(pattern)",
	"ISNULL":  "write IS NULL",
	"NOTNULL": "write IS NOT NULL",
	"COLLATE": "collations do not exist in Flink SQL",
	"AT":      "there is no AT TIME ZONE; use TIMESTAMP_LTZ and the setting table.local-time-zone",
	"MEMBER":  "write ARRAY_CONTAINS(b, a)",
	"MINUS":   "write EXCEPT",
	"EMIT":    "window results are emitted by the watermark; there are no early ones",
}

// foreignClauses are those that may also be names, as aliases.
var foreignClauses = map[string]string{
	"SEMI": "write WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
	"ANTI": "write WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k)",
	"ASOF": "write a JOIN b FOR SYSTEM_TIME AS OF a.ts ON a.k = b.k",
}

func (p *parser) hintFor(t *token) string {
	switch {
	case t.kind == tokString && p.i > 0 && p.toks[p.i-1].kind == tokString:
		return "string literals are joined only across a line break; use ||"
	case t.op("?"):
		return "parameters do not exist in Flink SQL; write the value"
	case t.kind == tokIdent && foreignWords[t.up] != "":
		return foreignWords[t.up]
	case t.kind == tokIdent && foreignClauses[t.up] != "":
		return foreignClauses[t.up]
	case t.kind == tokHint:
		return "OPTIONS follows the table name, other hints follow SELECT"
	}
	return ""
}

// clauses are the words that begin the parts of a query.
var clauses = []string{"FROM", "WHERE", "GROUP", "HAVING", "ORDER", "LIMIT", "UNION", "JOIN", "SELECT", "INTO", "VALUES"}

// edit says what to write instead of the current token where want was needed; "" = want says it already.
func (p *parser) edit(want string) string {
	switch want {
	case "an expression", "an expression in the select list":
		if h := p.trailingComma(); h != "" {
			return h
		}
		return "write a column, a constant or a function call there"
	case "a data type":
		return "write a type such as INT, STRING or TIMESTAMP(3)"
	case "a time unit such as SECOND, MINUTE, HOUR or DAY":
		return p.unitHint()
	case "a column name":
		return p.trailingComma()
	case "a whole number after LIMIT", "a whole number after OFFSET":
		return "write a count of rows, such as " + strings.TrimPrefix(want, "a whole number after ") + " 10"
	case "';' or the end of the statement":
		if t := &p.toks[max(p.i-1, 0)]; t.up == "TOP" && p.cur().kind == tokInt {
			return "write LIMIT " + p.cur().text + " at the end of the query"
		}
		if k := p.peek(-2); p.i >= 2 && (k.is("LIMIT") || k.is("OFFSET")) && p.cur().kind == tokOp {
			return k.up + " takes a number and no expression"
		}
		if t := p.cur(); p.startsQuery(t) || t.is("INSERT") || t.is("CREATE") || t.is("DROP") || t.is("SET") || t.is("SHOW") || t.is("EXPLAIN") || t.is("DESCRIBE") {
			return "end the statement before " + t.up + " by ';'"
		}
		for _, i := range []int{p.i - 1, p.i} { // a misspelt word was taken for an alias
			t := &p.toks[max(i, 0)]
			if t.kind != tokIdent || reserved[t.up] || len(t.text) < 4 {
				continue
			}
			if w := diag.Nearest(t.text, clauses); w != "" && w != t.up {
				return "did you mean " + w + " instead of " + t.text + "?"
			}
		}
		return "remove what stands there, or end the statement before it by ';'"
	}
	return p.missing(want)
}

// missing says what to add where want stands for itself or for a kind of name; "" when it does not.
func (p *parser) missing(want string) string {
	switch want {
	case "DO", "DEDUPLICATE", "CONFLICT":
		return "write ON CONFLICT DO DEDUPLICATE"
	case "a table name":
		return "write the name of a table or view there, or a query in brackets"
	case "a query":
		return "write SELECT ... there"
	case "SELECT, VALUES, WITH or TABLE":
		return "write what is inserted: SELECT ..., or VALUES (...)"
	case "a query, INSERT or STATEMENT SET after EXPLAIN":
		return "write the statement to explain, such as EXPLAIN SELECT ..."
	case "an option value in single quotes":
		return "write 'key' = 'value'"
	case "BEGIN":
		return "write EXECUTE STATEMENT SET BEGIN INSERT ...; INSERT ...; END"
	case "'(' after IN":
		return "write IN (value, ...) or IN (SELECT ...)"
	case "TABLE, VIEW, FUNCTION or DATABASE":
		return "write DROP TABLE or DROP VIEW and the name"
	case "SYSTEM_TIME":
		return "write FOR SYSTEM_TIME AS OF and the time attribute of the table to the left; rows cannot be locked"
	case "THEN":
		return "write CASE WHEN condition THEN value ... END"
	}
	t := p.cur()
	switch {
	case want == "'('" && p.i > 0 && p.toks[p.i-1].is("AS") && p.startsQuery(t):
		return "put the query in brackets: AS (SELECT ...)"
	case want == "AND" && !p.isName(t):
		return "write BETWEEN and both bounds: x BETWEEN 1 AND 9"
	case t.kind == tokEOF && want == "BY":
		return "write " + p.toks[max(p.i-1, 0)].up + " BY and what belongs behind it"
	case t.kind == tokEOF && isWord(want):
		return "write " + want + " and what belongs behind it"
	case t.kind == tokEOF && (len(want) == 3 || !strings.Contains(want, "'")): // one character in quotes, or words
		words, _, _ := strings.Cut(strings.Trim(want, "'"), " after ")
		return "write " + words + " there"
	case slices.Contains(joints, want) && p.isName(t):
		return "write " + want + " before " + t.text
	}
	return ""
}

// joints are the words that can be left out by mistake between two parts of a clause.
var joints = []string{"AND", "BY", "WHERE", "ON", "THEN", "FROM", "INTO", "BEGIN"}

func isWord(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

func (p *parser) cur() *token { return &p.toks[p.i] }

func (p *parser) peek(n int) *token {
	if p.i+n < 0 {
		return &p.toks[0]
	}
	if p.i+n >= len(p.toks) {
		return &p.toks[len(p.toks)-1]
	}
	return &p.toks[p.i+n]
}

func (p *parser) pos() diag.Pos { return p.cur().pos }
func (p *parser) here() Place   { return Place{p.cur().pos} }

// prevEnd is the offset behind the last consumed token.
func (p *parser) prevEnd() int { return p.toks[p.i-1].end }

// textFrom is the script from off to the last consumed token.
func (p *parser) textFrom(off int) string { return p.src[off:p.prevEnd()] }

// accept consumes the words if all of them come next.
func (p *parser) accept(words ...string) bool {
	for n, w := range words {
		if !p.peek(n).is(w) {
			return false
		}
	}
	p.i += len(words)
	return true
}

// acceptAny consumes the next word if it is one of words and returns it, else "".
func (p *parser) acceptAny(words ...string) string {
	for _, w := range words {
		if p.accept(w) {
			return w
		}
	}
	return ""
}

func (p *parser) want(words ...string) {
	for _, w := range words {
		if !p.accept(w) {
			t := p.cur()
			if t.kind == tokIdent && !reserved[t.up] && diag.Nearest(t.text, []string{w}) != "" {
				p.failHint(t.pos, "did you mean "+w+"?", "expected %s, found %s", w, t.text)
			}
			p.failTok(w)
		}
	}
}

func (p *parser) acceptOp(o string) bool {
	if p.cur().op(o) {
		p.i++
		return true
	}
	return false
}

func (p *parser) wantOp(o string) {
	if !p.acceptOp(o) {
		p.failTok("'" + o + "'")
	}
}

// list calls f for each element of a comma list.
func (p *parser) list(f func()) {
	for f(); p.acceptOp(","); f() {
	}
}

// parens calls f for each element of (x, ..).
func (p *parser) parens(f func()) {
	p.wantOp("(")
	p.list(f)
	p.wantOp(")")
}

// enter counts one level of recursion; call the result on the way out.
func (p *parser) enter() func() {
	if p.depth++; p.depth > 2*maxDepth {
		p.failHint(p.pos(), "split the statement", "nested too deeply")
	}
	return func() { p.depth-- }
}

// isName reports that t can be an identifier: quoted, or a word that is not reserved.
func (p *parser) isName(t *token) bool {
	return t.kind == tokQuoted || t.kind == tokIdent && !reserved[t.up]
}

func (p *parser) ident(what string) Name {
	t := p.cur()
	if !p.isName(t) {
		if t.kind == tokIdent {
			p.failHint(t.pos, p.nameHint(what, "quote it as "), "expected %s, found %s, which is a reserved word", what, t.up)
		}
		p.failTok(what)
	}
	p.i++
	return Name{t.text, t.pos}
}

// path reads a dotted name.
func (p *parser) path(what string) Path {
	if t := p.cur(); t.kind == tokString && what == "a table name" {
		if !strings.ContainsAny(t.text, "./") {
			p.failHint(t.pos, "write "+QuoteIdent(t.text), "a table name is not a string")
		}
		panic(bailout{FileError(t.text, t.pos)})
	}
	c := Path{p.ident(what)}
	for p.cur().op(".") && p.peek(1).name() {
		p.i++
		c = append(c, p.ident(what))
	}
	return c
}

// tablePath reads a name of at most catalog.database.name.
func (p *parser) tablePath(what string) Path {
	c := p.path(what)
	if len(c) > 3 {
		p.failHint(c[0].Pos, "write catalog.database.name, or the name alone", "name %s has %d parts: at most catalog.database.name is possible", c.Plain(), len(c))
	}
	return c
}

func (p *parser) identList(what string) (l []Name) {
	p.parens(func() { l = append(l, p.ident(what)) })
	return l
}

func (p *parser) str(what string) string {
	t := p.cur()
	if t.kind != tokString && t.kind != tokUnicode {
		if t.name() {
			p.failHint(t.pos, "write "+QuoteString(t.text), "expected %s in single quotes, found %s", what, p.describe(t))
		}
		p.failTok(what + " in single quotes")
	}
	p.i++
	if t.kind == tokUnicode {
		return p.unescape(t)
	}
	return t.text
}

// unescape undoes \XXXX and \+XXXXXX in U&'..', with the escape character of a following UESCAPE.
func (p *parser) unescape(t *token) string {
	esc := byte('\\')
	if p.accept("UESCAPE") {
		e := p.cur()
		if e.kind != tokString || len(e.text) != 1 || strings.ContainsAny(e.text, "0123456789abcdefABCDEF+'\" \t\n") {
			p.failTok("one character in single quotes that is no hex digit, plus sign, quote or space")
		}
		esc = e.text[0]
		p.i++
	}
	var sb strings.Builder
	s := t.text
	for i := 0; i < len(s); {
		if s[i] != esc {
			sb.WriteByte(s[i])
			i++
			continue
		}
		r, n := unicodeEscape(s[i+1:], esc)
		if n == 0 {
			p.failHint(t.pos, "write \\00e9 or \\+0000e9; a backslash is \\\\", "invalid Unicode escape in %s", p.describe(t))
		}
		sb.WriteRune(r)
		i += 1 + n
	}
	return sb.String()
}

// unicodeEscape decodes what follows the escape character and returns the bytes it took, 0 when invalid.
func unicodeEscape(s string, esc byte) (rune, int) {
	if s != "" && s[0] == esc {
		return rune(esc), 1
	}
	width, skip := 4, 0
	if s != "" && s[0] == '+' {
		width, skip = 6, 1
	}
	if len(s) < skip+width {
		return 0, 0
	}
	var r rune
	for _, c := range []byte(strings.ToLower(s[skip : skip+width])) {
		d := strings.IndexByte("0123456789abcdef", c)
		if d < 0 {
			return 0, 0
		}
		r = r<<4 | rune(d)
	}
	if r > 0x10ffff || 0xd800 <= r && r < 0xe000 {
		return 0, 0
	}
	return r, skip + width
}
