package sql

func (p *parser) drop() Stmt {
	d := &Drop{Place: p.here()}
	p.i++
	d.Temporary = p.accept("TEMPORARY")
	d.System = d.Temporary && p.accept("SYSTEM")
	t := p.cur()
	switch {
	case p.accept("TABLE"):
		d.Kind = TableObject
	case p.accept("VIEW"):
		d.Kind = ViewObject
	case p.accept("FUNCTION"):
		d.Kind = FunctionObject
	case !d.Temporary && p.accept("DATABASE"):
		d.Kind = DatabaseObject
	case t.is("CATALOG"), t.is("MATERIALIZED"), t.is("MODEL"), t.is("CONNECTION"):
		p.refuse(t.pos, "DROP "+objectWords(t), "DROP takes TABLE, VIEW, FUNCTION or DATABASE")
	default:
		p.failWord("TABLE", "VIEW", "FUNCTION", "DATABASE")
	}
	if d.System && d.Kind != FunctionObject {
		p.fail(t.pos, "only a FUNCTION can be TEMPORARY SYSTEM")
	}
	d.IfExists = p.ifExists()
	d.Path = p.tablePath("a name")
	if d.Kind == DatabaseObject && p.acceptAny("RESTRICT", "CASCADE") == "CASCADE" {
		d.Cascade = true
	}
	return d
}

func (p *parser) alter() Stmt {
	at := p.here()
	p.i++
	t := p.cur()
	switch {
	case p.accept("TABLE"):
		a := &AlterTable{Place: at, IfExists: p.ifExists(), Path: p.tablePath("a table name")}
		a.Action = p.alterAction()
		return a
	case p.accept("VIEW"):
		return p.alterView(at)
	case p.accept("DATABASE"):
		a := &AlterDatabase{Place: at, Path: p.path("a database name")}
		p.want("SET")
		a.Options = p.options()
		return a
	case t.is("FUNCTION"), t.is("CATALOG"), t.is("MATERIALIZED"), t.is("MODEL"), t.is("CONNECTION"):
		p.refuse(t.pos, "ALTER "+objectWords(t), "DROP it and CREATE it again")
	}
	p.failWord("TABLE", "VIEW", "DATABASE")
	return nil
}

func (p *parser) alterView(at Place) Stmt {
	a := &AlterView{Place: at, Path: p.tablePath("a view name")}
	switch {
	case p.accept("RENAME"):
		p.want("TO")
		a.NewName = p.tablePath("a view name")
	case p.accept("AS"):
		a.Query, a.QueryText = p.queryWithText()
	default:
		p.failTok("RENAME TO or AS")
	}
	return a
}

func (p *parser) alterAction() AlterAction {
	at := p.here()
	switch {
	case p.accept("RENAME", "TO"):
		return &RenameTable{at, p.tablePath("a table name")}
	case p.accept("RENAME"):
		r := &RenameColumn{Place: at, From: p.path("a column name")}
		p.want("TO")
		r.To = p.ident("a column name")
		return r
	case p.accept("ADD"):
		return p.addElements(&AddElements{Place: at})
	case p.accept("MODIFY"):
		return p.addElements(&AddElements{Place: at, Modify: true})
	case p.accept("DROP"):
		return p.alterDrop(at)
	case p.accept("SET"):
		return &SetOptions{at, p.options()}
	case p.accept("RESET"):
		r := &ResetOptions{Place: at}
		if p.cur().op("(") && p.peek(1).op(")") {
			p.failHint(p.pos(), "write RESET ('key')", "RESET without keys")
		}
		p.parens(func() {
			o := Option{KeyPos: p.pos()}
			o.Key = p.str("an option key")
			r.Options = append(r.Options, o)
		})
		return r
	}
	p.failWord("RENAME", "ADD", "MODIFY", "DROP", "SET", "RESET")
	return nil
}

func (p *parser) addElements(a *AddElements) AlterAction {
	if t := p.cur(); t.is("PARTITION") || t.is("IF") {
		p.refuse(t.pos, "ADD PARTITION", "partitions are made by writing to the table")
	}
	d := &tableElements{}
	element := func() {
		t := p.cur()
		if !p.accept("DISTRIBUTION") {
			p.tableElement(d, true)
			return
		}
		if d.dist != nil {
			p.failHint(t.pos, "keep one of them", "DISTRIBUTION is given twice")
		}
		d.dist = p.distribution()
	}
	if p.acceptOp("(") {
		p.list(element)
		p.wantOp(")")
	} else {
		element()
	}
	a.Columns, a.PrimaryKey, a.Watermark, a.Distribution = d.columns, d.key, d.watermark, d.dist
	return a
}

func (p *parser) alterDrop(at Place) AlterAction {
	t := p.cur()
	switch {
	case p.accept("PRIMARY", "KEY"):
		return &DropPrimaryKey{Place: at}
	case p.accept("CONSTRAINT"):
		n := p.ident("a constraint name")
		return &DropPrimaryKey{at, &n}
	case p.accept("WATERMARK"):
		return &DropWatermark{at}
	case t.is("PARTITION"), t.is("DISTRIBUTION"), t.is("IF"):
		p.refuse(t.pos, "DROP "+t.up, "DROP the table and CREATE it again")
	}
	d := &DropColumns{Place: at}
	if p.cur().op("(") {
		p.parens(func() { d.Columns = append(d.Columns, p.path("a column name")) })
	} else {
		d.Columns = []Path{p.path("a column name")}
	}
	return d
}
