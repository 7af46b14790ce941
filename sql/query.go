package sql

// parenQuery reports that the parenthesis at token i holds a query, maybe inside more parentheses.
func (p *parser) parenQuery(i int) bool {
	if p.query[i] != 0 {
		return p.query[i] == 2
	}
	k := i + 1
	t := &p.toks[k]
	yes := p.startsQuery(t) && !(t.is("TABLE") && p.toks[k+1].op("("))
	if t.op("(") && p.parenQuery(k) {
		n := p.afterParen(k)
		yes = n.op(")") || setOpLevel(n) > 0 || n.is("ORDER") || n.is("LIMIT") || n.is("OFFSET") || n.is("FETCH")
	}
	p.query[i] = 1
	if yes {
		p.query[i] = 2
	}
	return yes
}

func (p *parser) startsQuery(t *token) bool {
	return t.is("SELECT") || t.is("WITH") || t.is("VALUES") || t.is("TABLE")
}

// queryExpr parses a query with its WITH, ORDER BY and limits.
func (p *parser) queryExpr() Query {
	defer p.enter()()
	t := p.cur()
	if !p.accept("WITH") {
		return p.queryBody()
	}
	if p.cur().is("RECURSIVE") {
		p.refuse(p.pos(), "WITH RECURSIVE", "Flink SQL has no recursive queries")
	}
	w := &With{Place: Place{t.pos}}
	p.list(func() {
		c := CTE{Name: p.ident("a name for the query")}
		if p.cur().op("(") {
			c.Columns = p.identList("a column name")
		}
		p.want("AS")
		p.wantOp("(")
		c.Query = p.queryExpr()
		p.wantOp(")")
		w.CTEs = append(w.CTEs, c)
	})
	w.Query = p.queryBody()
	return w
}

func (p *parser) queryBody() Query {
	start := p.i
	q := p.setOps(1)
	tail := p.tail()
	if tail.IsZero() {
		return q
	}
	switch x := q.(type) {
	case *Select:
		if x.Tail.IsZero() {
			x.Tail = tail
			return q
		}
	case *SetOp:
		if x.Tail.IsZero() {
			x.Tail = tail
			return q
		}
	case *Values:
		if x.Tail.IsZero() {
			x.Tail = tail
			return q
		}
	}
	// A query in parentheses with its own limits or WITH: the outer clauses apply to its result.
	at := Place{p.toks[start].pos}
	return &Select{Place: at, Items: []SelectItem{{X: &Star{Place: at}}}, From: &Derived{Place: at, Query: q}, Tail: tail}
}

func (p *parser) tail() (t Tail) {
	if p.accept("ORDER") {
		p.want("BY")
		t.Order = p.orderItems()
	}
	number := func(what string) *Literal {
		if p.cur().kind != tokInt {
			p.failTok("a whole number after " + what)
		}
		return p.literal()
	}
	limited := false
	for {
		at := p.pos()
		switch word := p.acceptAny("LIMIT", "FETCH", "OFFSET"); word {
		case "":
			return t
		case "OFFSET":
			if t.Offset != nil {
				p.failHint(at, "keep one of them", "OFFSET is given twice")
			}
			t.Offset = number("OFFSET")
			p.acceptAny("ROWS", "ROW")
		default:
			if limited {
				p.failHint(at, "keep one of them", "%s after another LIMIT or FETCH", word)
			}
			limited = true
			t.Limit = p.limit(word, number)
		}
	}
}

func (p *parser) limit(word string, number func(string) *Literal) *Literal {
	if word == "LIMIT" {
		if p.accept("ALL") {
			return nil
		}
		n := number(word)
		if p.cur().op(",") {
			p.failHint(p.pos(), "write LIMIT count OFFSET start", "LIMIT start, count does not exist in Flink SQL")
		}
		return n
	}
	if p.acceptAny("FIRST", "NEXT") == "" {
		p.failTok("FIRST or NEXT")
	}
	n := &Literal{Place: p.here(), Kind: LitInteger, Text: "1"}
	if p.cur().kind == tokInt {
		n = number(word)
	}
	if p.acceptAny("ROWS", "ROW") == "" {
		p.failTok("ROWS")
	}
	p.want("ONLY")
	return n
}

func setOpLevel(t *token) int {
	switch t.up {
	case "UNION", "EXCEPT":
		return 1
	case "INTERSECT":
		return 2
	}
	return 0
}

// setOps parses set operations of at least level min; all associate to the left.
func (p *parser) setOps(min int) Query {
	l := p.queryTerm()
	for {
		t := p.cur()
		level := setOpLevel(t)
		if level == 0 || level < min {
			return l
		}
		p.i++
		s := &SetOp{Place: Place{t.pos}, Op: t.up, L: l}
		if s.All = p.accept("ALL"); !s.All {
			p.accept("DISTINCT")
		}
		p.countOperator()
		s.R = p.setOps(level + 1)
		l = s
	}
}

func (p *parser) countOperator() {
	if p.operators++; p.operators > maxOperators {
		p.failHint(p.pos(), "split the statement", "more than %d operators in one statement", maxOperators)
	}
}

func (p *parser) queryTerm() Query {
	t := p.cur()
	switch {
	case t.op("("):
		p.i++
		q := p.queryExpr()
		p.wantOp(")")
		return q
	case t.is("VALUES"):
		return p.values()
	case t.is("TABLE"):
		p.i++
		at := Place{t.pos}
		tab := &Table{Place: p.here(), Path: p.tablePath("a table name")}
		return &Select{Place: at, Items: []SelectItem{{X: &Star{Place: at}}}, From: tab}
	case t.is("SELECT"):
		return p.selectBlock()
	}
	p.failTok("a query")
	return nil
}

func (p *parser) values() *Values {
	v := &Values{Place: p.here()}
	p.i++
	p.list(func() {
		at, operators := p.pos(), p.operators
		row := p.valuesRow()
		p.operators = operators // rows do not nest, so that their operators do not make the tree deeper
		if len(v.Rows) > 0 && len(row) != len(v.Rows[0]) {
			values := "values"
			if len(row) == 1 {
				values = "value"
			}
			p.failHint(at, "give every row as many values; NULL fills a gap", "row %d of VALUES has %d %s, the first has %d",
				len(v.Rows)+1, len(row), values, len(v.Rows[0]))
		}
		v.Rows = append(v.Rows, row)
	})
	return v
}

// valuesRow reads (a, b), ROW(a, b) or a single expression.
func (p *parser) valuesRow() []Expr {
	open := p.i
	if p.cur().is("ROW") {
		open++
	}
	if !p.toks[open].op("(") || open == p.i && p.parenQuery(open) || !endsRow(p.afterParen(open)) {
		return []Expr{p.expr()}
	}
	p.i = open + 1
	row := p.exprList()
	p.wantOp(")")
	return row
}

// endsRow reports that t cannot continue an expression.
func endsRow(t *token) bool {
	return t.kind == tokEOF || t.op(",") || t.op(")") || t.op(";") || setOpLevel(t) > 0 ||
		t.is("ORDER") || t.is("LIMIT") || t.is("OFFSET") || t.is("FETCH")
}

func (p *parser) orderItems() (l []OrderItem) {
	p.list(func() { l = append(l, p.orderItem()) })
	return l
}

func (p *parser) orderItem() OrderItem {
	it := OrderItem{X: p.expr()}
	it.Desc = p.acceptAny("ASC", "DESC") == "DESC"
	if p.accept("NULLS") {
		if it.Nulls = p.acceptAny("FIRST", "LAST"); it.Nulls == "" {
			p.failTok("FIRST or LAST")
		}
	}
	return it
}

func (p *parser) selectBlock() *Select {
	s := &Select{Place: p.here()}
	p.i++
	s.Hints = p.hints()
	if p.cur().is("STREAM") {
		p.failHint(p.pos(), "remove it; every query here is a stream", "SELECT STREAM does not exist in Flink SQL")
	}
	if s.Distinct = p.accept("DISTINCT"); !s.Distinct {
		p.accept("ALL")
	}
	p.list(func() { s.Items = append(s.Items, p.selectItem()) })
	if p.accept("FROM") {
		s.From = p.from()
	}
	if p.accept("WHERE") {
		s.Where = p.expr()
	}
	if p.accept("GROUP") {
		p.want("BY")
		p.groupAll(s.Items)
		p.list(func() { s.GroupBy = append(s.GroupBy, p.groupItem()) })
	}
	if p.accept("HAVING") {
		s.Having = p.expr()
	}
	if p.accept("WINDOW") {
		p.list(func() {
			w := NamedWindow{Name: p.ident("a window name")}
			p.want("AS")
			p.wantOp("(")
			w.Window = p.windowSpec()
			p.wantOp(")")
			s.Windows = append(s.Windows, w)
		})
	}
	if p.accept("QUALIFY") {
		s.Qualify = p.expr()
	}
	return s
}

func (p *parser) selectItem() SelectItem {
	at := p.here()
	if p.acceptOp("*") {
		p.afterStar()
		return SelectItem{X: &Star{Place: at}}
	}
	if n := p.starPath(); n > 0 {
		s := &Star{Place: at}
		for range n {
			s.Qualifier = append(s.Qualifier, p.ident("a table name"))
			p.i++
		}
		p.i++
		p.afterStar()
		return SelectItem{X: s}
	}
	if p.cur().op(",") || p.cur().is("FROM") || p.cur().kind == tokEOF {
		p.failTok("an expression in the select list")
	}
	it := SelectItem{X: p.expr()}
	if p.accept("AS") {
		if t := p.cur(); t.kind == tokString {
			p.failHint(t.pos, "write "+QuoteIdent(t.text), "an alias is a name, not a string")
		}
		n := p.ident("an alias")
		it.Alias = &n
	} else if p.isName(p.cur()) && foreignWords[p.cur().up] == "" {
		n := p.ident("an alias")
		it.Alias = &n
	} else if t := p.cur(); t.kind == tokIdent && reserved[t.up] && !t.is("FROM") && (p.peek(1).op(",") || p.peek(1).is("FROM")) {
		p.ident("an alias") // says that it is reserved
	}
	return it
}

// starPath is the number of names before .* when the cursor is on such a path, else 0.
func (p *parser) starPath() int {
	n := 0
	for p.isName(p.peek(2*n)) && p.peek(2*n+1).op(".") {
		n++
		if p.peek(2 * n).op("*") {
			return n
		}
	}
	return 0
}

func (p *parser) groupItem() GroupItem {
	g := GroupItem{Place: p.here()}
	t := p.cur()
	switch {
	case p.accept("GROUPING", "SETS"):
		g.Kind = GroupSets
	case t.is("CUBE") && p.peek(1).op("("):
		p.i++
		g.Kind = GroupCube
	case t.is("ROLLUP") && p.peek(1).op("("):
		p.i++
		g.Kind = GroupRollup
	case t.op("(") && p.peek(1).op(")"):
		p.i += 2
		return g
	case t.op("(") && !p.parenQuery(p.i) && p.endsGroup(p.afterParen(p.i)):
		p.i++
		g.Exprs = p.exprList()
		p.wantOp(")")
		return g
	default:
		g.Exprs = []Expr{p.expr()}
		if p.cur().is("WITH") {
			p.failHint(p.pos(), "write GROUP BY ROLLUP (..)", "WITH ROLLUP does not exist in Flink SQL")
		}
		return g
	}
	defer p.enter()()
	p.parens(func() { g.Items = append(g.Items, p.groupItem()) })
	return g
}

func (p *parser) endsGroup(t *token) bool {
	return endsClause(t)
}
