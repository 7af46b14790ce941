package sql

import "strings"

// niladic are the functions written without parentheses. USER and its like are none: Flink cannot run them, and they
// would hide a column of that name.
var niladic = wordSet(`CURRENT_TIMESTAMP CURRENT_DATE CURRENT_TIME LOCALTIME LOCALTIMESTAMP`)

// call emits a function call; the cursor is on the opening parenthesis. up is the upper-case name of an unquoted
// single-part function, "" for others, which have no special syntax.
func (p *parser) call(name Path, up string) {
	c := p.callArgs(name, up)
	for {
		switch {
		case p.accept("WITHIN", "GROUP"):
			p.wantOp("(")
			p.want("ORDER", "BY")
			c.Within = p.orderItems()
			p.wantOp(")")
			continue
		case p.accept("FILTER"):
			p.wantOp("(")
			p.want("WHERE")
			c.Filter = p.expr()
			p.wantOp(")")
			continue
		case p.accept("IGNORE", "NULLS"):
			c.Nulls = IgnoreNulls
			continue
		case p.accept("RESPECT", "NULLS"):
			c.Nulls = RespectNulls
			continue
		case p.cur().is("OVER"):
			p.over(c)
		}
		return
	}
}

func (p *parser) over(c *Call) {
	p.i++
	if !p.cur().op("(") {
		w := &Window{Place: p.here(), Bare: true}
		n := p.ident("a window name")
		w.Ref = &n
		c.Over = w
		return
	}
	p.i++
	c.Over = p.windowSpec()
	p.wantOp(")")
}

// callArgs emits the marker of a call with its arguments. The returned call gets its Args when the skeleton is
// converted; the clauses behind the parenthesis may be set before that.
func (p *parser) callArgs(name Path, up string) *Call {
	c := &Call{Place: Place{name[0].Pos}, Name: name}
	p.i++
	n := p.sk.open(c.Pos)
	special := specialCalls[up]
	switch {
	case special != nil:
		special(p, c)
	case p.acceptOp("*"):
		c.Star = true
	default:
		quantified := true
		if p.accept("DISTINCT") {
			c.Distinct = true
		} else {
			quantified = p.accept("ALL")
		}
		if quantified && p.cur().op(")") {
			p.failTok("an expression")
		}
		p.args(")", p.arg)
	}
	if up == "ARRAY_AGG" { // Flink's place for it
		switch {
		case p.accept("IGNORE", "NULLS"):
			c.Nulls = IgnoreNulls
		case p.accept("RESPECT", "NULLS"):
			c.Nulls = RespectNulls
		}
	}
	if p.cur().is("ORDER") {
		p.refuse(p.pos(), "ORDER BY inside a call", "only LISTAGG(..) WITHIN GROUP (ORDER BY ..) can sort")
	}
	p.wantOp(")")
	p.sk.close(n, func(a []Expr) Expr { c.Args = a; return c })
	return c
}

// arg emits one argument: an expression, name => value, TABLE t, a query with partitioning, or DESCRIPTOR(..).
func (p *parser) arg() {
	t, n := p.cur(), p.peek(1)
	switch {
	case t.name() && n.op("=>"):
		p.i += 2
		m := p.sk.open(t.pos)
		p.arg()
		p.sk.close(m, func(a []Expr) Expr { return &NamedArg{Place{t.pos}, Name{t.text, t.pos}, a[0]} })
	case t.is("TABLE"), t.op("(") && p.parenQuery(p.i) && p.afterParen(p.i).is("PARTITION"):
		p.sk.leaf(p.tableArg())
	case t.is("DESCRIPTOR") && n.op("("):
		p.i++
		p.sk.leaf(&Descriptor{Place{t.pos}, p.identList("a column")})
	case t.is("MODEL") && n.name() && (p.peek(2).op(",") || p.peek(2).op(")")):
		p.refuse(t.pos, "MODEL as an argument of ML_PREDICT and the like", "register a Go function that calls the model, or look its results up: JOIN t FOR SYSTEM_TIME AS OF")
	case t.is("DEFAULT"):
		p.refuse(t.pos, "DEFAULT as an argument", "leave the argument out by naming the others: f(a => 1)")
	case t.is("SELECT"), t.is("WITH"):
		p.failHint(t.pos, "write f((SELECT ..))", "a query as an argument needs its own parentheses")
	default:
		p.walk(false)
	}
}

// afterParen is the token behind the bracket that token i opens.
func (p *parser) afterParen(i int) *token { return &p.toks[p.match[i]+1] }

func (p *parser) tableArg() *TableArg {
	a := &TableArg{Place: p.here()}
	switch {
	case p.accept("TABLE") && !p.cur().op("("):
		a.Table = p.tablePath("a table name")
	default:
		if !p.parenQuery(p.i) {
			p.failTok("a table name or a query")
		}
		p.i++
		a.Query = p.queryExpr()
		p.wantOp(")")
	}
	if p.accept("PARTITION") {
		p.want("BY")
		if p.acceptOp("(") {
			a.Partition = p.exprList()
			p.wantOp(")")
		} else {
			a.Partition = []Expr{p.expr()}
		}
	}
	if p.accept("ORDER") {
		p.want("BY")
		if p.acceptOp("(") {
			a.Order = p.orderItems()
			p.wantOp(")")
		} else {
			a.Order = []OrderItem{p.orderItem()}
		}
	}
	return a
}

// specialCalls are the functions with words among their arguments.
var specialCalls map[string]func(p *parser, c *Call)

func init() {
	specialCalls = map[string]func(p *parser, c *Call){
		"SUBSTRING": func(p *parser, c *Call) { p.wordArgs("FROM", "FOR") },
		"OVERLAY":   func(p *parser, c *Call) { p.wordArgs("PLACING", "FROM", "FOR") },
		"POSITION":  (*parser).positionArgs,
		"TRIM":      (*parser).trimArgs,
		"EXTRACT":   (*parser).extractArgs,
		"CEIL":      (*parser).roundArgs, "CEILING": (*parser).roundArgs, "FLOOR": (*parser).roundArgs,
		"TIMESTAMPADD": (*parser).unitArgs, "TIMESTAMPDIFF": (*parser).unitArgs,
		"JSON_VALUE": (*parser).jsonQueryArgs, "JSON_QUERY": (*parser).jsonQueryArgs, "JSON_EXISTS": (*parser).jsonQueryArgs,
		"JSON_OBJECT": (*parser).jsonObjectArgs, "JSON_OBJECTAGG": (*parser).jsonObjectArgs,
		"JSON_ARRAY": (*parser).jsonArrayArgs, "JSON_ARRAYAGG": (*parser).jsonArrayArgs,
	}
}

// nextArg emits a further argument of a call with special syntax.
func (p *parser) nextArg() {
	p.sk.emit(",")
	p.walk(false)
}

// wordArgs emits x WORD y WORD z, where a comma may stand for each word.
func (p *parser) wordArgs(words ...string) {
	p.walk(false)
	for _, w := range words {
		if p.accept(w) || p.acceptOp(",") {
			p.nextArg()
		}
	}
}

func (p *parser) positionArgs(*Call) {
	p.walk(true)
	p.want("IN")
	p.nextArg()
	if p.accept("FROM") {
		p.nextArg()
	}
}

func (p *parser) trimArgs(c *Call) {
	c.Trim = p.acceptAny("BOTH", "LEADING", "TRAILING")
	if c.Trim != "" && p.accept("FROM") {
		p.walk(false)
		return
	}
	p.walk(false)
	if p.accept("FROM") {
		p.nextArg()
	} else if c.Trim != "" {
		p.failTok("FROM")
	}
}

func (p *parser) extractArgs(c *Call) {
	c.Unit = p.fieldUnit()
	p.want("FROM")
	p.walk(false)
}

func (p *parser) roundArgs(c *Call) {
	p.walk(false)
	switch {
	case p.accept("TO"):
		c.Unit = p.fieldUnit()
	case p.acceptOp(","):
		p.nextArg()
	}
}

func (p *parser) unitArgs(c *Call) {
	c.Unit = p.fieldUnit()
	p.wantOp(",")
	p.walk(false)
	p.wantOp(",")
	p.nextArg()
}

// jsonQueryArgs emits the arguments of JSON_VALUE, JSON_QUERY and JSON_EXISTS and reads their clauses.
func (p *parser) jsonQueryArgs(c *Call) {
	name := strings.ToUpper(c.Name.Last())
	p.walk(false)
	p.wantOp(",")
	p.nextArg()
	o := &JSONOptions{}
	if name != "JSON_EXISTS" && p.accept("RETURNING") {
		t := p.dataType()
		o.Returning = &t
	}
	if name == "JSON_QUERY" {
		o.Wrapper = p.jsonWrapper()
	}
	for !p.cur().op(")") {
		at := p.pos()
		b := p.jsonBehavior(name)
		p.want("ON")
		dst := &o.OnError
		if name != "JSON_EXISTS" && p.accept("EMPTY") {
			dst = &o.OnEmpty
		} else {
			p.want("ERROR")
		}
		if dst.Kind != "" {
			p.failHint(at, "keep one of them", "ON %s is given twice", p.toks[p.i-1].up)
		}
		*dst = b
	}
	c.setJSON(o)
}

// setJSON keeps o when any clause was written, so that absent clauses look alike however they came about.
func (c *Call) setJSON(o *JSONOptions) {
	if *o != (JSONOptions{}) {
		c.JSON = o
	}
}

func (p *parser) jsonWrapper() string {
	kind := ""
	switch {
	case p.accept("WITHOUT"):
		kind = "WITHOUT"
	case p.accept("WITH"):
		if kind = p.acceptAny("CONDITIONAL", "UNCONDITIONAL"); kind == "" {
			kind = "UNCONDITIONAL"
		}
	default:
		return ""
	}
	p.accept("ARRAY")
	p.want("WRAPPER")
	return kind
}

func (p *parser) jsonBehavior(name string) JSONBehavior {
	var words []string
	switch name {
	case "JSON_VALUE":
		if p.accept("DEFAULT") {
			return JSONBehavior{"DEFAULT", p.expr()}
		}
		words = []string{"NULL", "ERROR"}
	case "JSON_EXISTS":
		words = []string{"TRUE", "FALSE", "UNKNOWN", "ERROR"}
	default:
		if p.accept("EMPTY") {
			if p.accept("ARRAY") {
				return JSONBehavior{Kind: "EMPTY ARRAY"}
			}
			p.want("OBJECT")
			return JSONBehavior{Kind: "EMPTY OBJECT"}
		}
		words = []string{"NULL", "ERROR"}
	}
	w := p.acceptAny(words...)
	if w == "" {
		p.failTok("an ON EMPTY or ON ERROR clause of " + name)
	}
	return JSONBehavior{Kind: w}
}

// jsonOnNull reads NULL ON NULL or ABSENT ON NULL.
func (p *parser) jsonOnNull(o *JSONOptions) {
	if w := p.acceptAny("NULL", "ABSENT"); w != "" {
		o.OnNull = w
		p.want("ON", "NULL")
	}
}

func (p *parser) atOnNull() bool {
	return (p.cur().is("NULL") || p.cur().is("ABSENT")) && p.peek(1).is("ON")
}

func (p *parser) jsonObjectArgs(c *Call) {
	if !p.cur().op(")") && !p.atOnNull() {
		first := true
		p.list(func() {
			if p.cur().is("KEY") && !p.peek(1).is("VALUE") && !p.peek(1).op(".") {
				p.i++
			}
			if !first {
				p.sk.emit(",")
			}
			first = false
			p.walk(false)
			p.want("VALUE")
			p.nextArg()
		})
	}
	o := &JSONOptions{}
	p.jsonOnNull(o)
	c.setJSON(o)
}

func (p *parser) jsonArrayArgs(c *Call) {
	if !p.atOnNull() {
		p.args(")", func() { p.walk(false) })
	}
	o := &JSONOptions{}
	p.jsonOnNull(o)
	c.setJSON(o)
}

// windowSpec reads the inside of OVER (..).
func (p *parser) windowSpec() *Window {
	w := &Window{Place: p.here()}
	if p.isName(p.cur()) {
		n := p.ident("a window name")
		w.Ref = &n
	}
	if p.accept("PARTITION") {
		p.want("BY")
		w.Partition = p.exprList()
	}
	if p.accept("ORDER") {
		p.want("BY")
		w.Order = p.orderItems()
	}
	if p.cur().is("GROUPS") {
		p.refuse(p.pos(), "a GROUPS frame", "use ROWS or RANGE")
	}
	if w.Frame = p.acceptAny("ROWS", "RANGE"); w.Frame == "" {
		return w
	}
	w.Hi.Kind = CurrentRow
	if p.accept("BETWEEN") {
		w.Lo = p.bound()
		p.want("AND")
		w.Hi = p.bound()
	} else {
		w.Lo = p.bound()
	}
	if t := p.cur(); t.is("EXCLUDE") || t.is("ALLOW") || t.is("DISALLOW") {
		p.refuse(t.pos, t.up+" in a window frame", "remove it")
	}
	return w
}

func (p *parser) bound() Bound {
	switch {
	case p.accept("CURRENT"):
		p.want("ROW")
		return Bound{Kind: CurrentRow}
	case p.accept("UNBOUNDED"):
		if p.accept("FOLLOWING") {
			return Bound{Kind: UnboundedFollowing}
		}
		p.want("PRECEDING")
		return Bound{}
	}
	b := Bound{Kind: Preceding, X: p.arithExpr()}
	if p.accept("FOLLOWING") {
		b.Kind = Following
	} else if !p.accept("PRECEDING") {
		p.failTok("PRECEDING or FOLLOWING")
	}
	return b
}
