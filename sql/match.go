package sql

// matchRecognize parses MATCH_RECOGNIZE (..) behind its input.
func (p *parser) matchRecognize(in TableRef) TableRef {
	m := &MatchRecognize{Place: p.here(), Input: in}
	p.i++
	p.wantOp("(")
	if p.accept("PARTITION") {
		p.want("BY")
		m.Partition = p.exprList()
	}
	if p.accept("ORDER") {
		p.want("BY")
		m.Order = p.orderItems()
	}
	if p.accept("MEASURES") {
		p.list(func() {
			x := Measure{Semantics: p.acceptAny("FINAL", "RUNNING"), X: p.expr()}
			p.want("AS")
			x.Name = p.ident("the name of the measure")
			m.Measures = append(m.Measures, x)
		})
	}
	p.rowsPerMatch(m)
	p.afterMatch(m)
	p.pattern(m)
	if p.accept("WITHIN") {
		if !p.cur().is("INTERVAL") {
			p.failTok("INTERVAL")
		}
		m.Within = p.interval()
	}
	if p.accept("SUBSET") {
		p.list(func() {
			s := Subset{Name: p.ident("a pattern variable")}
			p.wantOp("=")
			s.Of = p.identList("a pattern variable")
			m.Subsets = append(m.Subsets, s)
		})
	}
	p.want("DEFINE")
	p.list(func() {
		d := Definition{Name: p.ident("a pattern variable")}
		p.want("AS")
		d.Cond = p.expr()
		m.Definitions = append(m.Definitions, d)
	})
	p.wantOp(")")
	p.alias(&m.Alias)
	return m
}

func (p *parser) rowsPerMatch(m *MatchRecognize) {
	switch {
	case p.accept("ONE"):
		p.want("ROW", "PER", "MATCH")
	case p.cur().is("ALL"):
		m.AllRows = true
		p.i++
		p.want("ROWS", "PER", "MATCH")
	default:
		return
	}
	m.RowsSet = true
}

// afterMatch reads AFTER MATCH SKIP ..; the words are kept without a variable, which goes to SkipTo.
func (p *parser) afterMatch(m *MatchRecognize) {
	if !p.accept("AFTER") {
		return
	}
	p.want("MATCH", "SKIP")
	if p.accept("PAST") {
		p.want("LAST", "ROW")
		m.AfterMatch = "PAST LAST ROW"
		return
	}
	p.want("TO")
	if p.accept("NEXT") {
		p.want("ROW")
		m.AfterMatch = "TO NEXT ROW"
		return
	}
	m.AfterMatch = "TO"
	if (p.cur().is("FIRST") || p.cur().is("LAST")) && p.isName(p.peek(1)) && !p.peek(1).is("PATTERN") {
		m.AfterMatch += " " + p.cur().up
		p.i++
	}
	n := p.ident("a pattern variable")
	m.SkipTo = &n
}

// pattern keeps the text of PATTERN (..).
func (p *parser) pattern(m *MatchRecognize) {
	p.want("PATTERN")
	if !p.cur().op("(") {
		p.failTok("'('")
	}
	m.PatternPos = p.pos()
	start := p.cur().pos.Offset
	p.i = int(p.match[p.i]) + 1
	m.Pattern = p.textFrom(start)
}
