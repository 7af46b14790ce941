package planner

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// patternVar is a variable of PATTERN with its place.
type patternVar struct {
	op.MatchVariable
	pos diag.Pos
}

// patternParser reads the text of PATTERN: variables with quantifiers, one behind the other. What else SQL has there is
// refused by name, as Flink does.
type patternParser struct {
	src  string
	i    int
	base diag.Pos // of src
	vars []patternVar
	err  error
}

// parsePattern reads m.Pattern, which begins and ends with a parenthesis.
func parsePattern(m *sql.MatchRecognize) ([]patternVar, error) {
	p := &patternParser{src: m.Pattern, base: m.PatternPos}
	p.group(true)
	if p.blank(); p.err == nil && p.i < len(p.src) {
		p.unexpected()
	}
	if p.err == nil {
		p.check()
	}
	return p.vars, p.err
}

// at is the place of offset i of the text in the statement.
func (p *patternParser) at(i int) diag.Pos {
	pos := p.base
	before := p.src[:i]
	pos.Offset += i
	if n := strings.Count(before, "\n"); n > 0 {
		pos.Line += n
		pos.Col = 1
		before = before[strings.LastIndexByte(before, '\n')+1:]
	}
	pos.Col += utf8.RuneCountInString(before)
	return pos
}

// fail keeps the first error.
func (p *patternParser) fail(i int, code diag.Code, format string, args ...any) *diag.Error {
	e := diag.New(code, p.at(i), format, args...)
	if p.err == nil {
		p.err = e
	}
	return e
}

func (p *patternParser) unexpected() {
	rest := p.src[p.i:]
	if rest == "" {
		p.fail(p.i, diag.Syntax, "the pattern ends too early").WithHint("write PATTERN (A B+ C)")
		return
	}
	r, _ := utf8.DecodeRuneInString(rest)
	switch r {
	case '^', '$':
		p.fail(p.i, diag.Unsupported, "%c is not supported in PATTERN", r).
			WithDetail("it would tie matches to the first or last row of a partition, which an endless input does not have").
			WithHint("remove it")
	default:
		p.fail(p.i, diag.Syntax, "unexpected %q in PATTERN", string(r)).WithHint("a pattern is variables with quantifiers: PATTERN (A B+ C{1,3} D)")
	}
}

// blank passes white space and comments.
func (p *patternParser) blank() {
	for p.i < len(p.src) {
		rest := p.src[p.i:]
		end := ""
		switch {
		case strings.HasPrefix(rest, "--"):
			end = "\n"
		case strings.HasPrefix(rest, "/*"):
			end = "*/"
		default:
			r, n := utf8.DecodeRuneInString(rest)
			if !unicode.IsSpace(r) {
				return
			}
			p.i += n
			continue
		}
		if k := strings.Index(rest, end); k >= 0 {
			p.i += k + len(end)
		} else {
			p.i = len(p.src)
		}
	}
}

// accept passes s if it is next.
func (p *patternParser) accept(s string) bool {
	p.blank()
	if !strings.HasPrefix(p.src[p.i:], s) {
		return false
	}
	p.i += len(s)
	return true
}

// group reads ( ... ). Only a group of one variable may have a quantifier.
func (p *patternParser) group(outer bool) {
	if !p.accept("(") {
		p.unexpected()
		return
	}
	from := len(p.vars)
	for p.err == nil && !p.accept(")") {
		p.term()
	}
	if p.err != nil {
		return
	}
	start := p.i
	if len(p.vars) == from {
		p.fail(start-1, diag.Syntax, "the pattern has an empty group").WithHint("name the variables a match is made of: PATTERN (A B+ C)")
		return
	}
	if outer {
		return
	}
	plain := len(p.vars) == from+1 && p.vars[from].Min == 1 && p.vars[from].Max == 1
	x := &patternVar{}
	if plain {
		x = &p.vars[from]
	}
	if p.quantifier(x) && !plain {
		p.fail(start, diag.Unsupported, "a quantifier of a group is not supported").
			WithDetail("Flink SQL has it not either: only single variables can repeat").
			WithHint("repeat the variable: A+ in place of (A)+; a group (A B){2} of fixed length can be written out: A1 B1 A2 B2")
	}
}

func (p *patternParser) term() {
	p.blank()
	rest := p.src[p.i:]
	switch {
	case strings.HasPrefix(rest, "("):
		p.group(false)
	case strings.HasPrefix(rest, "{-"):
		p.fail(p.i, diag.Unsupported, "the exclusion {- ... -} is not supported in PATTERN").
			WithDetail("it matters for ALL ROWS PER MATCH only, which is not supported either").WithHint("remove {- and -}")
	case strings.HasPrefix(rest, "|"):
		p.fail(p.i, diag.Unsupported, "alternation with | is not supported in PATTERN").
			WithDetail("Flink SQL has it not either").WithHint("use one variable and put the alternatives into its condition: DEFINE B AS ... OR ...")
	default:
		p.variable()
	}
}

func (p *patternParser) variable() {
	start := p.i
	name := p.name()
	if name == "" {
		p.unexpected()
		return
	}
	if strings.EqualFold(name, "PERMUTE") && p.accept("(") {
		p.fail(start, diag.Unsupported, "PERMUTE is not supported in PATTERN").WithDetail("Flink SQL has it not either").
			WithHint("write one order of the variables")
		return
	}
	for _, v := range p.vars {
		if v.Name == name {
			p.fail(start, diag.Unsupported, "pattern variable %s stands twice in PATTERN", name).
				WithDetail("a variable is one place in the pattern, as in Flink").
				WithHint("give the second place a name of its own, with the same condition in DEFINE")
			return
		}
	}
	p.vars = append(p.vars, patternVar{MatchVariable: op.MatchVariable{Name: name, Min: 1, Max: 1}, pos: p.at(start)})
	p.quantifier(&p.vars[len(p.vars)-1])
}

// name reads an identifier, "" if there is none.
func (p *patternParser) name() string {
	rest := p.src[p.i:]
	if strings.HasPrefix(rest, "`") {
		var sb strings.Builder
		for k := 1; k < len(rest); k++ {
			if rest[k] != '`' {
				sb.WriteByte(rest[k])
				continue
			}
			if !strings.HasPrefix(rest[k:], "``") {
				p.i += k + 1
				return sb.String()
			}
			sb.WriteByte('`')
			k++
		}
		return ""
	}
	n := 0
	for k, r := range rest {
		if r != '_' && !unicode.IsLetter(r) && (k == 0 || r != '$' && !unicode.IsDigit(r)) {
			break
		}
		n = k + utf8.RuneLen(r)
	}
	p.i += n
	return rest[:n]
}

// quantifier reads the quantifier of v, if there is one.
func (p *patternParser) quantifier(v *patternVar) bool {
	p.blank()
	start := p.i
	switch {
	case p.accept("*"):
		v.Min, v.Max = 0, -1
	case p.accept("+"):
		v.Min, v.Max = 1, -1
	case p.accept("?"):
		v.Min, v.Max = 0, 1
	case strings.HasPrefix(p.src[p.i:], "{") && !strings.HasPrefix(p.src[p.i:], "{-"):
		p.i++
		p.bounds(v, start)
	default:
		return false
	}
	v.Reluctant = p.i < len(p.src) && p.src[p.i] == '?'
	if v.Reluctant {
		p.i++
	}
	if v.Reluctant && v.Min == 0 && v.Max == 1 {
		p.fail(start, diag.Unsupported, "the reluctant quantifier ?? is not supported").
			WithDetail("Flink SQL has it not either: an optional variable takes a row if it can").WithHint("write %s?", v.Name)
	}
	return true
}

// bounds reads n}, n,}, ,m} or n,m}.
func (p *patternParser) bounds(v *patternVar, start int) {
	low, some := p.number()
	v.Min, v.Max = low, low
	if p.accept(",") {
		high, limited := p.number()
		if v.Max = -1; limited {
			v.Max = high
		}
		some = some || limited
	}
	if !p.accept("}") || !some {
		if p.err == nil {
			p.unexpected()
		}
		return
	}
	if v.Max == 0 || v.Max > 0 && v.Max < v.Min {
		p.fail(start, diag.Semantic, "the quantifier {%d,%d} can never be met", v.Min, v.Max).
			WithDetail("the highest number of rows must be at least 1 and at least the lowest").WithHint("write for example {%d,%d}", v.Min, max(v.Min, 1))
	}
}

// maxRepeat bounds quantifiers: every repetition is a state of the automaton.
const maxRepeat = 1000

func (p *patternParser) number() (n int, ok bool) {
	p.blank()
	start := p.i
	for p.i < len(p.src) && p.src[p.i] >= '0' && p.src[p.i] <= '9' {
		p.i++
	}
	if p.i == start {
		return 0, false
	}
	n, err := strconv.Atoi(p.src[start:p.i])
	if err != nil || n > maxRepeat {
		p.fail(start, diag.Unsupported, "a quantifier of more than %d rows is not supported", maxRepeat).
			WithHint("write {n,} or +, and count in the condition: COUNT(*)")
		return 0, true
	}
	return n, true
}

// check refuses what Flink cannot match.
func (p *patternParser) check() {
	empty, repeats := true, 0
	for i := range p.vars {
		v := &p.vars[i]
		empty = empty && v.Min == 0
		repeats += max(v.Min, v.Max, 1)
		if i > 0 && v.Min == 0 && p.vars[i-1].Greedy() {
			last := p.vars[i-1].Name
			p.err = diag.New(diag.Unsupported, v.pos, "optional variable %s follows greedy variable %s", v.Name, last).
				WithDetail("Flink SQL has it not either").
				WithHint("make %s reluctant by a ? behind its quantifier, or let %s have at least one row", last, v.Name)
			return
		}
	}
	last := &p.vars[len(p.vars)-1]
	switch {
	case empty:
		p.err = diag.New(diag.Semantic, p.base, "the pattern can match no row at all").
			WithDetail("every one of its variables may be left out").WithHint("let one variable have at least one row: %s+ in place of %s*", last.Name, last.Name)
	case last.Greedy():
		p.err = diag.New(diag.Semantic, last.pos, "the last variable %s is greedy", last.Name).
			WithDetail("its match would never end while rows go on to fit").
			WithHint("put a ? behind its quantifier to take as few rows as possible, or end the pattern with a variable for the row behind: DEFINE Z AS NOT (...)")
	case repeats > 4*maxRepeat:
		p.err = diag.New(diag.Unsupported, p.base, "the quantifiers of the pattern allow too many rows").
			WithDetail("together more than %d", 4*maxRepeat).WithHint("use + or {n,}")
	}
}
