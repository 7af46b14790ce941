package expr

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// jsonPath is a path of the SQL/JSON functions: lax or strict, then a JsonPath expression in Jayway's dialect. Functions
// other than length() and filters with regular expressions are not supported.
type jsonPath struct {
	lax   bool
	steps []pathStep
	many  bool // the result is a list
	plain bool // only single names and indexes
}

type stepKind uint8

const (
	stepNames    stepKind = iota // .name, ['a'], ['a','b']
	stepIndexes                  // [0], [-1], [0,2]
	stepSlice                    // [1:3]
	stepWildcard                 // [*], .*
	stepDeep                     // ..: the value and everything below it
	stepFilter                   // [?(…)]
	stepLength                   // .length()
)

type pathStep struct {
	kind           stepKind
	names          []string
	indexes        []int
	from, to       int
	hasFrom, hasTo bool
	filter         *pathFilter
}

type pathParser struct {
	s     string
	pos   int
	depth int
}

func (p *pathParser) fail(what string) error {
	return fmt.Errorf("%s at position %d of the path", what, p.pos+1)
}

// parseJSONPath parses [lax|strict] $….
func parseJSONPath(s string) (*jsonPath, error) {
	out := &jsonPath{}
	body := strings.TrimSpace(s)
	if word, rest, ok := strings.Cut(body, " "); ok {
		switch strings.ToLower(word) {
		case "lax":
			out.lax, body = true, strings.TrimSpace(rest)
		case "strict":
			body = strings.TrimSpace(rest)
		}
	}
	p := &pathParser{s: body}
	if !p.accept("$") {
		return nil, p.fail("expected $")
	}
	steps, err := p.steps()
	if err != nil {
		return nil, err
	}
	if p.pos < len(p.s) {
		return nil, p.fail("unexpected character")
	}
	out.steps, out.plain = steps, true
	for _, st := range steps {
		out.many = out.many || st.many()
		out.plain = out.plain && (st.kind == stepNames && len(st.names) == 1 || st.kind == stepIndexes && len(st.indexes) == 1)
		if st.kind == stepLength {
			out.many = false
		}
	}
	return out, nil
}

func (st *pathStep) many() bool {
	switch st.kind {
	case stepNames:
		return false // several names make one object
	case stepIndexes:
		return len(st.indexes) > 1
	case stepLength:
		return false
	}
	return true
}

func (p *pathParser) accept(t string) bool {
	if strings.HasPrefix(p.s[p.pos:], t) {
		p.pos += len(t)
		return true
	}
	return false
}

func (p *pathParser) space() {
	for p.pos < len(p.s) && p.s[p.pos] == ' ' {
		p.pos++
	}
}

// steps parses as many steps as follow.
func (p *pathParser) steps() ([]pathStep, error) {
	var out []pathStep
	for p.pos < len(p.s) {
		switch {
		case p.accept(".."):
			out = append(out, pathStep{kind: stepDeep})
			if p.pos >= len(p.s) {
				return nil, p.fail("expected a name behind ..")
			}
			if p.s[p.pos] == '[' {
				continue
			}
			st, err := p.dotted()
			if err != nil {
				return nil, err
			}
			out = append(out, st)
		case p.accept("."):
			if p.pos < len(p.s) && p.s[p.pos] == '[' { // $.['x']
				continue
			}
			st, err := p.dotted()
			if err != nil {
				return nil, err
			}
			out = append(out, st)
		case p.accept("["):
			st, err := p.bracket()
			if err != nil {
				return nil, err
			}
			out = append(out, st)
		default:
			return out, nil
		}
	}
	return out, nil
}

func (p *pathParser) dotted() (pathStep, error) {
	if p.accept("*") {
		return pathStep{kind: stepWildcard}, nil
	}
	start := p.pos
	for p.pos < len(p.s) && strings.IndexByte(".[]() =<>!&|,'\"", p.s[p.pos]) < 0 {
		p.pos++
	}
	name := p.s[start:p.pos]
	if p.accept("(") {
		if name != "length" || !p.accept(")") {
			return pathStep{}, fmt.Errorf("function %s() of a path: %w", name, errUnsupportedRegex)
		}
		return pathStep{kind: stepLength}, nil
	}
	if name == "" {
		return pathStep{}, p.fail("expected a name")
	}
	return pathStep{kind: stepNames, names: []string{name}}, nil
}

func (p *pathParser) bracket() (st pathStep, err error) {
	p.space()
	switch {
	case p.accept("*"):
		st.kind = stepWildcard
	case p.accept("?"):
		p.space()
		if !p.accept("(") {
			return st, p.fail("expected ( behind ?")
		}
		st.kind = stepFilter
		if st.filter, err = p.or(); err != nil {
			return st, err
		}
		p.space()
		if !p.accept(")") {
			return st, p.fail("expected )")
		}
	case p.pos < len(p.s) && (p.s[p.pos] == '\'' || p.s[p.pos] == '"'):
		st.kind = stepNames
		for {
			p.space()
			name, err := p.quoted()
			if err != nil {
				return st, err
			}
			st.names = append(st.names, name)
			p.space()
			if !p.accept(",") {
				break
			}
		}
	default:
		if err := p.numbers(&st); err != nil {
			return st, err
		}
	}
	p.space()
	if !p.accept("]") {
		return st, p.fail("expected ]")
	}
	return st, nil
}

func (p *pathParser) quoted() (string, error) {
	if p.pos >= len(p.s) || p.s[p.pos] != '\'' && p.s[p.pos] != '"' {
		return "", p.fail("expected a quoted name")
	}
	quote := p.s[p.pos]
	var sb strings.Builder
	for p.pos++; p.pos < len(p.s); p.pos++ {
		c := p.s[p.pos]
		switch {
		case c == quote:
			p.pos++
			return sb.String(), nil
		case c == '\\' && p.pos+1 < len(p.s):
			p.pos++
			sb.WriteByte(p.s[p.pos])
		default:
			sb.WriteByte(c)
		}
	}
	return "", p.fail("a quote is not closed")
}

func (p *pathParser) integer() (int, bool) {
	p.space()
	start := p.pos
	if p.pos < len(p.s) && p.s[p.pos] == '-' {
		p.pos++
	}
	for p.pos < len(p.s) && p.s[p.pos] >= '0' && p.s[p.pos] <= '9' {
		p.pos++
	}
	v, err := strconv.ParseInt(p.s[start:p.pos], 10, 32)
	if err != nil {
		p.pos = start
	}
	p.space()
	return int(v), err == nil
}

func (p *pathParser) numbers(st *pathStep) error {
	v, ok := p.integer()
	if p.accept(":") {
		st.kind, st.from, st.hasFrom = stepSlice, v, ok
		st.to, st.hasTo = p.integer()
		if !st.hasFrom && !st.hasTo {
			return p.fail("expected an index")
		}
		return nil
	}
	if !ok {
		return p.fail("expected an index, a quoted name, * or a filter")
	}
	st.kind, st.indexes = stepIndexes, []int{v}
	for p.accept(",") {
		if v, ok = p.integer(); !ok {
			return p.fail("expected an index")
		}
		st.indexes = append(st.indexes, v)
	}
	return nil
}

// find is the value of the path in d, found = false where a part of a definite path is missing. Lists become a new array.
func (p *jsonPath) find(d *jsonDoc, root int32) (at int32, found bool) {
	if p.plain {
		return d.walkPlain(root, p.steps)
	}
	list, ok := walkPath(d, root, []int32{root}, p.steps)
	if !p.many {
		if !ok || len(list) == 0 {
			return 0, false
		}
		return list[len(list)-1], true
	}
	if !ok && !p.lax {
		return 0, false
	}
	return d.array(list), true
}

// walkPlain follows single names and indexes, the frequent case.
func (d *jsonDoc) walkPlain(at int32, steps []pathStep) (int32, bool) {
	for i := range steps {
		kind := d.nodes[at].kind
		switch st := &steps[i]; {
		case st.kind == stepNames && kind == jsonObject:
			at = d.member(at, st.names[0])
		case st.kind == stepIndexes && kind == jsonArray:
			at = d.element(at, st.indexes[0])
		default:
			return 0, false
		}
		if at < 0 {
			return 0, false
		}
	}
	return at, true
}

// array makes an array of copies of nodes.
func (d *jsonDoc) array(list []int32) int32 {
	at, last := d.add(jsonNode{kind: jsonArray}), int32(-1)
	for _, m := range list {
		n := d.nodes[m]
		n.next = -1
		d.nodes = append(d.nodes, n)
		c := int32(len(d.nodes) - 1)
		d.link(at, last, c)
		last = c
	}
	return at
}

// maxPathMatches bounds what a path such as $..*..* can find.
const maxPathMatches = 1 << 20

// walkPath applies steps to every value of list. ok is false when a definite step found nothing.
func walkPath(d *jsonDoc, root int32, list []int32, steps []pathStep) (_ []int32, ok bool) {
	many := false
	for i := range steps {
		st := &steps[i]
		var next []int32
		for _, at := range list {
			var hit bool
			if next, hit = st.apply(d, root, at, next); !hit && !many {
				return nil, false
			}
			if len(next) > maxPathMatches {
				return nil, false
			}
		}
		many = many || st.many()
		if st.kind == stepLength && many { // of the list
			next, many = []int32{d.number(len(list))}, false
		}
		list = next
	}
	return list, true
}

func (d *jsonDoc) number(n int) int32 {
	return d.add(jsonNode{kind: jsonNumber, text: strconv.Itoa(n)})
}

// apply appends what the step finds in at. hit is false when there is nothing where a definite path needs something.
func (st *pathStep) apply(d *jsonDoc, root, at int32, out []int32) (_ []int32, hit bool) {
	n := d.nodes[at]
	switch st.kind {
	case stepNames:
		return st.applyNames(d, at, out)
	case stepIndexes:
		if n.kind != jsonArray {
			return out, false
		}
		for _, i := range st.indexes {
			if m := d.element(at, i); m >= 0 {
				out, hit = append(out, m), true
			}
		}
		return out, hit || len(st.indexes) > 1
	case stepLength:
		switch n.kind {
		case jsonArray, jsonObject:
			return append(out, d.number(int(n.count))), true
		case jsonString:
			return append(out, d.number(utf8.RuneCountInString(n.text))), true
		}
		return out, false
	case stepDeep:
		return d.below(at, out), true
	case stepSlice:
		if n.kind != jsonArray {
			return out, false
		}
		from, to := st.bounds(int(n.count))
		i := 0
		for m := n.first; m >= 0; m = d.nodes[m].next {
			if i >= from && i < to {
				out = append(out, m)
			}
			i++
		}
		return out, true
	}
	if n.kind == jsonObject && st.kind == stepFilter {
		if st.filter.eval(d, root, at) {
			out = append(out, at)
		}
		return out, true
	}
	for m := n.first; m >= 0; m = d.nodes[m].next {
		if st.kind == stepWildcard || st.filter.eval(d, root, m) {
			out = append(out, m)
		}
	}
	return out, true
}

func (st *pathStep) bounds(n int) (from, to int) {
	to = n
	if st.hasFrom {
		if from = st.from; from < 0 {
			from = max(0, n+from)
		}
	}
	if st.hasTo {
		if to = st.to; to < 0 {
			to = n + to
		}
	}
	return from, to
}

func (st *pathStep) applyNames(d *jsonDoc, at int32, out []int32) ([]int32, bool) {
	if d.nodes[at].kind != jsonObject {
		return out, false
	}
	if len(st.names) == 1 {
		m := d.member(at, st.names[0])
		if m < 0 {
			return out, false
		}
		return append(out, m), true
	}
	obj, last := d.add(jsonNode{kind: jsonObject}), int32(-1)
	for _, name := range st.names {
		if m := d.member(at, name); m >= 0 {
			n := d.nodes[m]
			n.next = -1
			d.nodes = append(d.nodes, n)
			c := int32(len(d.nodes) - 1)
			d.link(obj, last, c)
			last = c
		}
	}
	return append(out, obj), true
}

// element is element i of array at, counted from the end when negative; -1 if there is none.
func (d *jsonDoc) element(at int32, i int) int32 {
	if i < 0 {
		i += int(d.nodes[at].count)
	}
	if i < 0 || i >= int(d.nodes[at].count) {
		return -1
	}
	m := d.nodes[at].first
	for ; i > 0; i-- {
		m = d.nodes[m].next
	}
	return m
}

// below appends at and everything below it.
func (d *jsonDoc) below(at int32, out []int32) []int32 {
	out = append(out, at)
	for m := d.nodes[at].first; m >= 0; m = d.nodes[m].next {
		out = d.below(m, out)
	}
	return out
}
