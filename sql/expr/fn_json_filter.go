package expr

import (
	"fmt"
	"strconv"
	"strings"
)

// The conditions of JSON paths: [?(@.a > 1 && @.b)].

// pathFilter is a condition: "||", "&&", "!", a comparison, or "" for the existence of left.
type pathFilter struct {
	op          string
	l, r        *pathFilter
	left, right pathOperand
}

// pathOperand is @path, $path or a literal.
type pathOperand struct {
	isPath, root bool
	steps        []pathStep
	lit          jsonNode
}

func (p *pathParser) or() (*pathFilter, error) {
	if p.depth++; p.depth > 50 {
		return nil, p.fail("the filter is nested too deeply")
	}
	defer func() { p.depth-- }()
	l, err := p.and()
	for err == nil {
		if p.space(); !p.accept("||") {
			return l, nil
		}
		var r *pathFilter
		if r, err = p.and(); err == nil {
			l = &pathFilter{op: "||", l: l, r: r}
		}
	}
	return nil, err
}

func (p *pathParser) and() (*pathFilter, error) {
	l, err := p.unary()
	for err == nil {
		if p.space(); !p.accept("&&") {
			return l, nil
		}
		var r *pathFilter
		if r, err = p.unary(); err == nil {
			l = &pathFilter{op: "&&", l: l, r: r}
		}
	}
	return nil, err
}

func (p *pathParser) unary() (*pathFilter, error) {
	p.space()
	if p.accept("!") {
		x, err := p.unary()
		return &pathFilter{op: "!", l: x}, err
	}
	if p.accept("(") {
		x, err := p.or()
		if err != nil {
			return nil, err
		}
		if p.space(); !p.accept(")") {
			return nil, p.fail("expected )")
		}
		return x, nil
	}
	f := &pathFilter{}
	var err error
	if f.left, err = p.operand(); err != nil {
		return nil, err
	}
	p.space()
	for _, op := range []string{"==", "!=", "<=", ">=", "<", ">"} {
		if p.accept(op) {
			f.op = op
			f.right, err = p.operand()
			return f, err
		}
	}
	if p.pos < len(p.s) && (p.s[p.pos] == '=' || p.s[p.pos] >= 'a' && p.s[p.pos] <= 'z') {
		return nil, fmt.Errorf("the operator at position %d of the path: %w", p.pos+1, errUnsupportedRegex)
	}
	if !f.left.isPath {
		return nil, p.fail("expected a comparison")
	}
	return f, nil
}

func (p *pathParser) operand() (o pathOperand, err error) {
	p.space()
	switch {
	case p.accept("@"):
		o.isPath = true
		o.steps, err = p.steps()
		return o, err
	case p.accept("$"):
		o.isPath, o.root = true, true
		o.steps, err = p.steps()
		return o, err
	case p.pos < len(p.s) && (p.s[p.pos] == '\'' || p.s[p.pos] == '"'):
		text, err := p.quoted()
		o.lit = jsonNode{kind: jsonString, text: text}
		return o, err
	}
	for _, w := range []string{"true", "false", "null"} {
		if p.accept(w) {
			o.lit = jsonNode{kind: jsonBool, text: w}
			if w == "null" {
				o.lit.kind = jsonNull
			}
			return o, nil
		}
	}
	n := jsonNumberLen(p.s[p.pos:])
	if n == 0 {
		return o, p.fail("expected a value")
	}
	o.lit = jsonNode{kind: jsonNumber, text: p.s[p.pos : p.pos+n]}
	p.pos += n
	return o, nil
}

func (f *pathFilter) eval(d *jsonDoc, root, at int32) bool {
	switch f.op {
	case "||":
		return f.l.eval(d, root, at) || f.r.eval(d, root, at)
	case "&&":
		return f.l.eval(d, root, at) && f.r.eval(d, root, at)
	case "!":
		return !f.l.eval(d, root, at)
	}
	l, ok := f.left.value(d, root, at)
	if f.op == "" {
		return ok
	}
	r, rok := f.right.value(d, root, at)
	if !ok || !rok {
		return f.op == "!=" && ok != rok
	}
	return compareJSON(l, r, f.op)
}

func (o *pathOperand) value(d *jsonDoc, root, at int32) (jsonNode, bool) {
	if !o.isPath {
		return o.lit, true
	}
	if o.root {
		at = root
	}
	list, ok := walkPath(d, root, []int32{at}, o.steps)
	if !ok || len(list) == 0 {
		return jsonNode{}, false
	}
	return d.nodes[list[0]], true
}

func compareJSON(l, r jsonNode, op string) bool {
	order, comparable := 0, false
	switch {
	case l.kind == jsonNumber && r.kind == jsonNumber:
		a, _ := strconv.ParseFloat(l.text, 64)
		b, _ := strconv.ParseFloat(r.text, 64)
		comparable = true
		if a < b {
			order = -1
		} else if a > b {
			order = 1
		}
	case l.kind == jsonString && r.kind == jsonString:
		order, comparable = strings.Compare(l.text, r.text), true
	case l.kind == r.kind && l.kind <= jsonBool:
		order, comparable = strings.Compare(l.text, r.text), true
		if op != "==" && op != "!=" {
			return false
		}
	}
	switch op {
	case "==":
		return comparable && order == 0
	case "!=":
		return !comparable || order != 0
	case "<":
		return comparable && order < 0
	case "<=":
		return comparable && order <= 0
	case ">":
		return comparable && order > 0
	}
	return comparable && order >= 0
}
