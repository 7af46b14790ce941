package sql

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// expr parses one expression.
func (p *parser) expr() Expr { return p.skeletonOf(false) }

// arithExpr parses an expression without AND, comparisons and predicates, as frame bounds need it.
func (p *parser) arithExpr() Expr { return p.skeletonOf(true) }

func (p *parser) skeletonOf(arith bool) Expr {
	outer := p.sk
	p.sk = &skeleton{}
	p.walk(arith)
	e := p.sk.tree()
	p.sk = outer
	return e
}

func (p *parser) exprList() (l []Expr) {
	p.list(func() { l = append(l, p.expr()) })
	return l
}

// walk emits one expression into the skeleton: a flat sequence of operands and operators, whose structure TiDB decides.
// With arith it ends before the first operator that is not arithmetic.
func (p *parser) walk(arith bool) {
	defer p.enter()()
	for {
		p.operand(arith)
		if !arith {
			p.predicates()
		}
		if !p.infix(arith) {
			return
		}
		if p.operators++; p.operators > maxOperators {
			p.failHint(p.pos(), "split the statement; a long OR of equalities can be an IN list", "more than %d operators in one statement", maxOperators)
		}
	}
}

// operand emits prefix operators and a primary.
func (p *parser) operand(arith bool) {
	depth := p.depth
	for {
		t := p.cur()
		if !t.op("-") && !t.op("+") && (arith || !t.is("NOT")) {
			break
		}
		p.enter()
		op := t.text
		if t.kind == tokIdent {
			op = t.up
		}
		p.sk.prefix(op, t.pos)
		p.i++
	}
	start := len(p.sk.text)
	p.primary()
	p.access(start)
	p.depth = depth
}

// infix emits an infix operator and reports whether there was one.
func (p *parser) infix(arith bool) bool {
	t := p.cur()
	if t.kind == tokOp {
		switch t.text {
		case "+", "-", "*", "/", "%", "||":
		case "=", "<>", "<", ">", "<=", ">=":
			if arith {
				return false
			}
		default:
			return false
		}
		p.i++
		p.sk.infix(t.text, t.pos)
		return true
	}
	if arith {
		return false
	}
	switch {
	case t.is("OR"), t.is("AND"):
		p.i++
		p.sk.infix(t.up, t.pos)
		return true
	case p.accept("IS", "DISTINCT", "FROM"):
		p.sk.infix("IS DISTINCT FROM", t.pos)
		return true
	case p.accept("IS", "NOT", "DISTINCT", "FROM"):
		p.sk.infix("IS NOT DISTINCT FROM", t.pos)
		return true
	}
	return false
}

// predicates emits what follows an operand: LIKE, BETWEEN, IN, ANY and the IS family.
func (p *parser) predicates() {
	seen := ""
	for {
		t := p.cur()
		not := t.is("NOT")
		word := t
		if not {
			word = p.peek(1)
		}
		switch {
		case word.is("BETWEEN"), word.is("IN"), word.is("LIKE"), word.is("SIMILAR"), p.atQuantified():
			if seen != "" {
				p.failHint(t.pos, "put the first predicate in parentheses", "%s directly after %s", strings.ToUpper(word.text), seen)
			}
			if seen = word.up; seen == "" {
				seen = "ANY or ALL"
			}
			if not {
				p.i++
			}
			p.predicate(t.pos, not)
		case t.is("OVERLAPS"):
			if seen != "" {
				p.failHint(t.pos, "put the first predicate in parentheses", "OVERLAPS directly after %s", seen)
			}
			seen = t.up
			p.overlaps()
		case t.is("IS") && !p.peek(1).is("DISTINCT") && !(p.peek(1).is("NOT") && p.peek(2).is("DISTINCT")):
			p.i++
			p.isPredicate(t.pos)
		default:
			return
		}
	}
}

// atQuantified reports a comparison with ANY, SOME or ALL.
func (p *parser) atQuantified() bool {
	t, n := p.cur(), p.peek(1)
	if t.kind != tokOp || infixText[t.text] == "" || !p.peek(2).op("(") {
		return false
	}
	switch t.text {
	case "=", "<>", "<", ">", "<=", ">=":
		return n.is("ANY") || n.is("SOME") || n.is("ALL")
	}
	return false
}

func (p *parser) predicate(pos diag.Pos, not bool) {
	t := p.cur()
	p.i++
	switch {
	case t.is("BETWEEN"):
		n := p.sk.predicate(pos, not)
		sym := p.acceptAny("SYMMETRIC", "ASYMMETRIC") == "SYMMETRIC"
		p.walk(true)
		p.want("AND")
		p.sk.emit(",")
		p.walk(true)
		p.sk.closePredicate(n, func(a []Expr) Expr {
			return &Between{Place: Place{a[0].Position()}, X: a[0], Lo: a[1], Hi: a[2], Not: not, Symmetric: sym}
		})
	case t.is("IN"):
		p.inPredicate(pos, not)
	case t.is("LIKE"), t.is("SIMILAR"):
		if t.is("SIMILAR") {
			p.want("TO")
		}
		n := p.sk.predicate(pos, not)
		p.walk(true)
		if p.accept("ESCAPE") {
			p.sk.emit(",")
			p.walk(true)
		}
		p.sk.closePredicate(n, func(a []Expr) Expr {
			l := &Like{Place: Place{a[0].Position()}, X: a[0], Pattern: a[1], Similar: t.is("SIMILAR"), Not: not}
			if len(a) == 3 {
				l.Escape = a[2]
			}
			return l
		})
	default:
		p.quantified(t)
	}
}

// overlaps parses OVERLAPS and the period behind it. Both operands have to be rows of two values.
func (p *parser) overlaps() {
	t := p.cur()
	p.i++
	n := p.sk.predicate(t.pos, false)
	p.walk(true)
	p.sk.closePredicate(n, func(a []Expr) Expr {
		for _, x := range a {
			if r, ok := x.(*RowExpr); !ok || len(r.Elems) != 2 {
				p.failHint(x.Position(), "write (start, end) OVERLAPS (start, end); an end may be an INTERVAL", "OVERLAPS compares two periods")
			}
		}
		return &Binary{Place: Place{a[0].Position()}, Op: "OVERLAPS", OpPos: t.pos, L: a[0], R: a[1]}
	})
}

func (p *parser) inPredicate(pos diag.Pos, not bool) {
	if !p.cur().op("(") {
		p.failTok("'(' after IN")
	}
	n := p.sk.predicate(pos, not)
	if p.parenQuery(p.i) {
		p.i++
		q := p.queryExpr()
		p.wantOp(")")
		p.sk.closePredicate(n, func(a []Expr) Expr {
			return &In{Place: Place{a[0].Position()}, X: a[0], Query: q, Not: not}
		})
		return
	}
	p.i++
	p.args(")", func() { p.walk(false) })
	if p.toks[p.i-1].op("(") {
		p.failHint(p.pos(), "an empty list is never true; write FALSE", "expected an expression in the IN list, found ')'")
	}
	p.wantOp(")")
	p.sk.closePredicate(n, func(a []Expr) Expr {
		return &In{Place: Place{a[0].Position()}, X: a[0], List: a[1:], Not: not}
	})
}

func (p *parser) quantified(op *token) {
	all := p.cur().is("ALL")
	p.i++
	if !p.parenQuery(p.i) {
		p.failHint(p.peek(1).pos, "write x IN (1, 2) for = ANY (1, 2)", "expected a subquery after %s", p.toks[p.i-1].up)
	}
	p.i++
	q := p.queryExpr()
	p.wantOp(")")
	n := p.sk.predicate(op.pos, false)
	p.sk.closePredicate(n, func(a []Expr) Expr {
		return &Quantified{Place: Place{a[0].Position()}, X: a[0], Op: op.text, OpPos: op.pos, All: all, Query: q}
	})
}

func (p *parser) isPredicate(pos diag.Pos) {
	not := p.accept("NOT")
	what := p.acceptAny("NULL", "TRUE", "FALSE", "UNKNOWN", "JSON")
	switch {
	case what == "JSON":
		if kind := p.acceptAny("VALUE", "OBJECT", "ARRAY", "SCALAR"); kind != "" {
			what += " " + kind
		}
	case what == "":
		p.failTok("NULL, TRUE, FALSE, UNKNOWN, JSON or DISTINCT FROM after IS")
	}
	p.sk.is(pos, func(a []Expr) Expr {
		return &Is{Place: Place{a[0].Position()}, X: a[0], What: what, Not: not}
	})
}

// args emits a comma list up to closer; the list may be empty.
func (p *parser) args(closer string, f func()) {
	if p.cur().op(closer) {
		return
	}
	p.list(func() {
		if p.toks[p.i-1].op(",") {
			p.sk.emit(",")
		}
		f()
	})
}

// access emits [index] and .field behind the primary that starts at start.
func (p *parser) access(start int) {
	type step struct {
		field Name // zero for an index
		pos   diag.Pos
	}
	var steps []step
	n := -1
	for {
		t := p.cur()
		field := t.op(".") && p.peek(1).name()
		if !field && !t.op("[") {
			break
		}
		if n < 0 {
			n = p.sk.wrap(start, false)
		}
		if len(steps) >= maxDepth {
			p.fail(t.pos, "more than %d accesses in a row", maxDepth)
		}
		p.i++
		if field {
			f := p.ident("a field name")
			steps = append(steps, step{f, f.Pos})
			continue
		}
		steps = append(steps, step{pos: t.pos})
		p.sk.emit(",")
		p.walk(false)
		p.wantOp("]")
	}
	if n < 0 {
		return
	}
	p.sk.close(n, func(a []Expr) Expr {
		x, rest := a[0], a[1:]
		for _, s := range steps {
			at := Place{x.Position()}
			if s.field.Text != "" {
				x = &FieldAccess{Place: at, X: x, Name: s.field}
				continue
			}
			x, rest = &Item{Place: at, X: x, Index: rest[0]}, rest[1:]
		}
		return x
	})
}
