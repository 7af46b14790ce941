package sql

import (
	"strings"
)

// from parses the table references behind FROM. Joins and commas associate to the left on one level, as in Flink.
func (p *parser) from() TableRef {
	l := p.tablePrimary()
	for {
		j, ok := p.joinWords()
		if !ok {
			return l
		}
		p.countOperator()
		j.L, j.R = l, p.tablePrimary()
		p.joinCondition(j)
		l = j
	}
}

// joinWords consumes a comma or [NATURAL] [kind] JOIN and reports whether there was one.
func (p *parser) joinWords() (*Join, bool) {
	j := &Join{Place: p.here()}
	start := p.i
	switch {
	case p.acceptOp(","):
		j.Kind = CommaJoin
		return j, true
	case p.accept("CROSS"):
		j.Kind = CrossJoin
		p.want("JOIN")
		return j, true
	}
	j.Natural = p.accept("NATURAL")
	switch p.acceptAny("INNER", "LEFT", "RIGHT", "FULL") {
	case "LEFT":
		j.Kind = LeftJoin
	case "RIGHT":
		j.Kind = RightJoin
	case "FULL":
		j.Kind = FullJoin
	}
	if j.Kind != InnerJoin {
		p.accept("OUTER")
	}
	if p.accept("JOIN") {
		return j, true
	}
	if p.i != start {
		p.failTok("JOIN")
	}
	return nil, false
}

func (p *parser) joinCondition(j *Join) {
	needs := j.Kind != CrossJoin && j.Kind != CommaJoin && !j.Natural
	t := p.cur()
	switch {
	case !needs:
		if t.is("ON") || t.is("USING") {
			name := j.Kind.String() + " JOIN"
			if j.Natural {
				name = "NATURAL JOIN"
			} else if j.Kind == CommaJoin {
				name = "a comma"
			}
			p.failHint(t.pos, "write JOIN .. ON, or move the condition to WHERE", "%s cannot have a condition", name)
		}
	case p.accept("ON"):
		j.On = p.expr()
	case p.accept("USING"):
		j.Using = p.identList("a column name")
	default:
		p.failHint(t.pos, "write ON condition; for all pairs of rows write CROSS JOIN",
			"%s JOIN needs ON or USING, found %s", j.Kind, p.describe(t))
	}
}

func (p *parser) tablePrimary() TableRef {
	defer p.enter()()
	t := p.cur()
	lateral := p.accept("LATERAL")
	var ref TableRef
	switch c := p.cur(); {
	case c.is("TABLE") && p.peek(1).op("("):
		p.i += 2
		f := &TableFunc{Place: Place{t.pos}, Lateral: lateral, Call: p.tableCall()}
		p.wantOp(")")
		p.alias(&f.Alias)
		ref = f
	case c.is("UNNEST"):
		ref = p.unnest(t)
	case c.op("(") && p.parenQuery(p.i), c.op("(") && lateral:
		p.i++
		d := &Derived{Place: Place{t.pos}, Lateral: lateral, Query: p.queryExpr()}
		p.wantOp(")")
		ref = p.withAlias(d, &d.Alias)
	case c.op("("):
		p.i++
		r := p.from()
		p.wantOp(")")
		return r
	case p.startsQuery(c) && !c.is("TABLE"):
		p.failHint(c.pos, "write ("+c.up+" ..) AS t", "a query in FROM needs parentheses")
	case c.name() && p.callAhead():
		f := &TableFunc{Place: Place{t.pos}, Lateral: lateral, Call: p.tableCall()}
		p.alias(&f.Alias)
		ref = f
	case lateral:
		p.failTok("TABLE(f(..)) or a query in parentheses after LATERAL")
	default:
		p.accept("TABLE")
		ref = p.table()
	}
	p.refuseAfterTable()
	return ref
}

// callAhead reports that a dotted name and a parenthesis follow.
func (p *parser) callAhead() bool {
	n := 0
	for p.peek(n).name() && p.peek(n+1).op(".") {
		n += 2
	}
	return p.peek(n).name() && p.peek(n+1).op("(") && !p.peek(n).is("MATCH_RECOGNIZE")
}

// tableCall parses the call of a table function.
func (p *parser) tableCall() *Call {
	if !p.cur().name() || !p.callAhead() {
		p.failTok("a table function such as TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
	}
	e := p.expr()
	c, ok := e.(*Call)
	if !ok {
		p.failHint(e.Position(), "write TABLE(f(..))", "expected a table function")
	}
	return c
}

func (p *parser) unnest(t *token) TableRef {
	p.i++
	p.wantOp("(")
	u := &Unnest{Place: Place{t.pos}, X: p.expr()}
	p.wantOp(")")
	if p.accept("WITH") {
		p.want("ORDINALITY")
		u.Ordinality = true
	}
	p.alias(&u.Alias)
	return u
}

func (p *parser) table() TableRef {
	t := &Table{Place: p.here(), Path: p.tablePath("a table name")}
	t.Hints = p.hints()
	if p.accept("FOR") {
		p.want("SYSTEM_TIME", "AS", "OF")
		t.AsOf = p.expr()
	}
	return p.withAlias(t, &t.Alias)
}

// withAlias reads the alias of ref, or MATCH_RECOGNIZE around it.
func (p *parser) withAlias(ref TableRef, a *Alias) TableRef {
	if p.cur().is("MATCH_RECOGNIZE") {
		return p.matchRecognize(ref)
	}
	p.alias(a)
	if p.cur().is("MATCH_RECOGNIZE") {
		return p.matchRecognize(ref)
	}
	return ref
}

func (p *parser) alias(a *Alias) {
	if t := p.cur(); !p.accept("AS") && (!p.isName(t) || t.is("PIVOT") || t.is("UNPIVOT") || foreignWords[t.up] != "") {
		return
	}
	n := p.ident("an alias")
	a.Name = &n
	if p.cur().op("(") {
		a.Columns = p.identList("a column name")
	}
}

// refuseAfterTable names what may stand behind a table elsewhere.
func (p *parser) refuseAfterTable() {
	t := p.cur()
	switch {
	case t.kind == tokHint:
		p.failHint(t.pos, "move it between the table name and the alias", "a hint cannot follow the alias of a table")
	case t.is("TABLESAMPLE"):
		p.refuse(t.pos, "TABLESAMPLE", "filter with WHERE RAND() < 0.1")
	case t.is("PIVOT"), t.is("UNPIVOT"):
		p.refuse(t.pos, t.up, "aggregate with FILTER or CASE")
	case t.is("FOR") && p.peek(1).is("SYSTEM_TIME"):
		p.failHint(t.pos, "write t FOR SYSTEM_TIME AS OF o.ts AS alias", "FOR SYSTEM_TIME must follow the table name directly")
	}
}

// hints parses a hint token if one is next.
func (p *parser) hints() []Hint {
	t := p.cur()
	if t.kind != tokHint {
		return nil
	}
	p.i++
	lex := newLexer(p.src[:t.end-2])
	lex.off, lex.mark = t.pos.Offset+3, t.pos
	var toks []token
	for {
		h := lex.next()
		toks = append(toks, h)
		if h.kind == tokEOF {
			break
		}
	}
	q := newParser(p.src, toks)
	var hs []Hint
	for q.cur().kind != tokEOF {
		hs = append(hs, q.hint())
		if !q.acceptOp(",") && q.cur().kind != tokEOF {
			q.failTok("',' or the end of the hint")
		}
	}
	if hs == nil {
		p.failHint(t.pos, "name a hint, or remove /*+ */", "hint is empty")
	}
	return hs
}

func (p *parser) hint() Hint {
	h := Hint{Place: p.here()}
	if !p.cur().name() {
		p.failTok("the name of a hint")
	}
	h.Name = strings.ToUpper(p.cur().text)
	p.i++
	if !p.cur().op("(") {
		return h
	}
	if p.peek(1).op(")") {
		p.i += 2
		return h
	}
	p.parens(func() {
		t := p.cur()
		if n := p.peek(1); n.op("=") {
			if t.kind != tokString {
				p.failTok("a key in single quotes")
			}
			h.Options = append(h.Options, p.option())
			return
		}
		switch t.kind {
		case tokString, tokIdent, tokQuoted, tokInt:
			p.i++
			h.Args = append(h.Args, Name{t.text, t.pos})
		default:
			p.failTok("an argument of the hint")
		}
	})
	return h
}

// option reads 'key' = 'value'.
func (p *parser) option() Option {
	o := Option{KeyPos: p.pos()}
	o.Key = p.str("an option key")
	p.wantOp("=")
	o.ValuePos = p.pos()
	if k := p.cur().kind; k == tokInt || k == tokDecimal || k == tokIdent {
		p.failHint(o.ValuePos, "write "+QuoteString(p.cur().text), "the value of option %s is a string in single quotes, found %s", QuoteString(o.Key), p.cur().text)
	}
	o.Value = p.str("an option value")
	return o
}
