package sql

import "fmt"

// primary emits one operand without prefix operators and accesses.
func (p *parser) primary() {
	t := p.cur()
	switch t.kind {
	case tokInt, tokDecimal, tokApprox, tokString, tokUnicode, tokHex:
		p.sk.leaf(p.literal())
	case tokIdent:
		if !p.wordPrimary(t) {
			p.nameOrCall(t)
		}
	case tokQuoted:
		p.nameOrCall(t)
	default:
		if !t.op("(") {
			p.failTok("an expression")
		}
		p.parenthesised(t)
	}
}

func (p *parser) literal() *Literal {
	t := p.cur()
	l := &Literal{Place: Place{t.pos}, Text: t.text}
	p.i++
	switch t.kind {
	case tokInt:
		l.Kind = LitInteger
	case tokDecimal:
		l.Kind = LitDecimal
	case tokApprox:
		l.Kind = LitApprox
	case tokUnicode:
		l.Text = p.unescape(t)
	case tokHex:
		l.Kind = LitBinary
		for _, c := range []byte(t.text) {
			if !isDigit(c) && !('a' <= c|0x20 && c|0x20 <= 'f') {
				p.failHint(t.pos, "write X'00FF', two digits from 0 to F for a byte", "%q is not a hexadecimal digit", rune(c))
			}
		}
		if len(t.text)%2 != 0 {
			p.failHint(t.pos, "write two digits for each byte", "binary literal has an odd number of hexadecimal digits")
		}
	}
	return l
}

// reservedCalls are calls of other dialects on reserved words, with what to write.
var reservedCalls = map[string]string{
	"CONVERT":   "write CAST(x AS type)",
	"DAY":       "write EXTRACT(DAY FROM x) or DAYOFMONTH(x)",
	"TIMESTAMP": "write CAST(x AS TIMESTAMP(3)) or TO_TIMESTAMP(x)",
	"TIME":      "write CAST(x AS TIME)",
	"ON":        "DISTINCT ON does not exist; number the rows with ROW_NUMBER() OVER (PARTITION BY ..) and keep the first",
	"INTERVAL":  "write INTERVAL '1' DAY",
	"UNNEST":    "write it in FROM: FROM t CROSS JOIN UNNEST(t.a) AS u (x)",
	"VALUES":    "write VALUES (..) as a query",
}

// nameOrCall emits a column or a function call.
func (p *parser) nameOrCall(t *token) {
	if p.peek(1).op("(") && t.kind == tokIdent {
		if reserved[t.up] && !reservedFunctions[t.up] {
			hint := reservedCalls[t.up]
			if hint == "" {
				hint = "quote it as " + QuoteIdent(t.text)
			}
			p.failHint(t.pos, hint, "%s is a reserved word and no function", t.up)
		}
		p.i++
		p.call(Path{{t.text, t.pos}}, t.up)
		return
	}
	if !p.isName(t) {
		if hint := p.hintFor(t); hint != "" {
			p.failTok("an expression")
		}
		p.failHint(t.pos, p.nameHint("an expression", "to use it as a name, quote it as "), "expected an expression, found the reserved word %s", t.up)
	}
	path := p.path("a name")
	if p.cur().op("(") {
		p.call(path, "")
		return
	}
	p.sk.leaf(&Ident{Place{t.pos}, path})
}

// parenthesised emits (expr), (a, b), (query) or (a - b) DAY TO SECOND.
func (p *parser) parenthesised(t *token) {
	if p.parenQuery(p.i) {
		p.i++
		q := p.queryExpr()
		p.wantOp(")")
		p.sk.leaf(&Subquery{Place{t.pos}, q})
		return
	}
	start := len(p.sk.text)
	p.i++
	p.sk.emit("(")
	elems := 0
	p.list(func() {
		if elems++; elems > 1 {
			p.sk.emit(",")
		}
		p.walk(false)
	})
	p.wantOp(")")
	switch {
	case elems > 1:
		n := p.sk.wrap(start, true)
		p.sk.close(n, func(a []Expr) Expr { return &RowExpr{Place{t.pos}, a} })
	case p.cur().kind == tokIdent && reserved[p.cur().up] && timeUnits[p.cur().up] != "":
		n := p.sk.wrap(start, true)
		typ := p.intervalType(p.intervalRange())
		p.sk.close(n, func(a []Expr) Expr {
			b, ok := a[0].(*Binary)
			if !ok || b.Op != "-" {
				p.failHint(t.pos, "write (a - b) "+typ.Unit, "an interval of two times must be a difference in parentheses")
			}
			return &TimeDiff{Place: Place{t.pos}, L: b.L, R: b.R, Type: typ}
		})
	default:
		p.sk.emit(")")
	}
}

// wordPrimary emits operands that start with a keyword and reports whether t is one.
func (p *parser) wordPrimary(t *token) bool {
	n := p.peek(1)
	switch t.up {
	case "TRUE", "FALSE", "UNKNOWN", "NULL":
		p.i++
		kind := LitBool
		if t.up == "NULL" {
			kind = LitNull
		}
		p.sk.leaf(&Literal{Place{t.pos}, kind, t.up})
		return true
	case "INTERVAL":
		p.sk.leaf(p.interval())
		return true
	case "DATE", "TIME", "TIMESTAMP":
		if n.kind == tokString {
			p.i += 2
			kind := map[string]LitKind{"DATE": LitDate, "TIME": LitTime, "TIMESTAMP": LitTimestamp}[t.up]
			p.sk.leaf(&Literal{Place{t.pos}, kind, n.text})
			return true
		}
	case "TIMESTAMP_LTZ":
		if n.kind == tokString {
			p.failHint(t.pos, "write CAST("+QuoteString(n.text)+" AS TIMESTAMP_LTZ(3))", "TIMESTAMP_LTZ has no literal")
		}
	case "CASE":
		p.caseExpr(t)
		return true
	case "EXISTS":
		if !n.op("(") || !p.parenQuery(p.i+1) {
			p.failHint(n.pos, "write EXISTS (SELECT ..)", "expected a subquery after EXISTS")
		}
		p.i += 2
		q := p.queryExpr()
		p.wantOp(")")
		p.sk.leaf(&Exists{Place{t.pos}, q})
		return true
	case "CAST", "TRY_CAST", "SAFE_CAST":
		if n.op("(") {
			p.cast(t)
			return true
		}
	case "ARRAY", "MAP", "ROW", "MULTISET":
		return p.constructor(t, n)
	}
	if niladic[t.up] {
		if n.op("(") {
			p.failHint(n.pos, "remove the parentheses", "%s takes no parentheses", t.up)
		}
		p.i++
		p.sk.leaf(&Call{Place: Place{t.pos}, Name: Path{{t.up, t.pos}}, Niladic: true})
		return true
	}
	return false
}

func (p *parser) cast(t *token) {
	if t.up == "SAFE_CAST" {
		p.failHint(t.pos, "write TRY_CAST", "SAFE_CAST does not exist in Flink SQL")
	}
	p.i += 2
	n := p.sk.open(t.pos)
	p.walk(false)
	p.want("AS")
	c := &Cast{Place: Place{t.pos}, Try: t.up == "TRY_CAST", TypePos: p.pos()}
	c.Type = p.dataType()
	if p.cur().is("NOT") || p.cur().is("NULL") {
		p.failHint(p.pos(), "remove it; the result is nullable when the operand is", "nullability in a CAST type")
	}
	p.wantOp(")")
	p.sk.close(n, func(a []Expr) Expr { c.X = a[0]; return c })
}

// constructor emits ARRAY[..], MAP[..] or ROW(..) and reports whether t starts one.
func (p *parser) constructor(t, n *token) bool {
	closer := "]"
	switch {
	case n.op("[") && t.up != "ROW":
	case n.op("(") && t.up == "ROW":
		closer = ")"
	case n.op("(") && t.up != "MAP" && p.parenQuery(p.i+1):
		p.refuse(t.pos, t.up+" of a subquery", "aggregate with ARRAY_AGG or COLLECT in the subquery")
	default:
		return false
	}
	if t.up == "MULTISET" {
		p.refuse(t.pos, "MULTISET[..]", "use ARRAY[..], or the aggregate COLLECT")
	}
	p.i += 2
	m := p.sk.open(t.pos)
	p.args(closer, func() { p.walk(false) })
	p.wantOp(closer)
	at := Place{t.pos}
	p.sk.close(m, func(a []Expr) Expr {
		switch t.up {
		case "ARRAY":
			return &ArrayExpr{at, a}
		case "ROW":
			return &RowExpr{at, a}
		}
		if len(a)%2 != 0 {
			p.failHint(t.pos, "write MAP[key, value, ...]", "MAP needs pairs of key and value, found %d elements", len(a))
		}
		x := &MapExpr{Place: at}
		for i := 0; i < len(a); i += 2 {
			x.Keys, x.Values = append(x.Keys, a[i]), append(x.Values, a[i+1])
		}
		return x
	})
	return true
}

func (p *parser) caseExpr(t *token) {
	defer p.enter()()
	p.i++
	n := p.sk.open(t.pos)
	p.sk.emit("CASE ")
	operand := !p.cur().is("WHEN")
	if operand {
		p.walk(false)
	}
	if !p.cur().is("WHEN") {
		p.failTok("WHEN")
	}
	for p.accept("WHEN") {
		p.sk.emit(" WHEN ")
		p.whenValues(operand)
		p.want("THEN")
		p.sk.emit(" THEN ")
		p.walk(false)
	}
	if p.accept("ELSE") {
		p.sk.emit(" ELSE ")
		p.walk(false)
	}
	if !p.accept("END") {
		p.failHint(p.pos(), fmt.Sprintf("the CASE at %s ends with END", t.pos), "expected WHEN, ELSE or END, found %s", p.describe(p.cur()))
	}
	p.sk.emit(" END")
	p.sk.close(n, func(a []Expr) Expr {
		c := a[0].(*Case)
		c.Pos = t.pos
		c.Whens = spreadWhens(c.Whens)
		return c
	})
}

// whenValues emits the condition of a WHEN; behind an operand it may be several values: CASE x WHEN 1, 2 THEN.
func (p *parser) whenValues(operand bool) {
	at, start := p.pos(), len(p.sk.text)
	p.walk(false)
	if !operand || !p.cur().op(",") {
		return
	}
	n := p.sk.wrap(start, false)
	for p.acceptOp(",") {
		p.sk.emit(",")
		p.walk(false)
	}
	p.sk.close(n, func(a []Expr) Expr { return &valueList{Place{at}, a} })
}

// valueList is the values of one WHEN on their way to a WHEN each.
type valueList struct {
	Place
	values []Expr
}

func (*valueList) expr() {}

// spreadWhens gives every value of a list a WHEN of its own with the same result.
func spreadWhens(whens []When) []When {
	var out []When
	for _, w := range whens {
		l, ok := w.Cond.(*valueList)
		if !ok {
			out = append(out, w)
			continue
		}
		for _, v := range l.values {
			out = append(out, When{Cond: v, Then: w.Then})
		}
	}
	return out
}
