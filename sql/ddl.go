package sql

import "strings"

func (p *parser) create() Stmt {
	at := p.here()
	p.i++
	if p.accept("OR") {
		t := p.cur()
		p.want("REPLACE")
		p.refuse(t.pos, "CREATE OR REPLACE", "DROP it first, with IF EXISTS")
	}
	temporary := p.accept("TEMPORARY")
	system := temporary && p.accept("SYSTEM")
	t := p.cur()
	switch {
	case p.accept("FUNCTION"):
		return p.createFunction(at, temporary, system)
	case system:
		p.failTok("FUNCTION after TEMPORARY SYSTEM")
	case p.accept("TABLE"):
		return p.createTable(at, temporary)
	case p.accept("VIEW"):
		return p.createView(at, temporary)
	case !temporary && p.accept("DATABASE"):
		d := &CreateDatabase{Place: at, IfNotExists: p.ifNotExists(), Path: p.path("a database name")}
		d.Comment = p.comment()
		if p.accept("WITH") {
			d.Options = p.options()
		}
		return d
	case t.is("CATALOG"):
		p.refuse(t.pos, "CREATE CATALOG", "tables live in default_catalog; name the external system in the options of each table")
	case t.is("MATERIALIZED"), t.is("MODEL"), t.is("CONNECTION"):
		p.refuse(t.pos, "CREATE "+objectWords(t), "CREATE TABLE and INSERT INTO it")
	}
	p.failWord("TABLE", "VIEW", "FUNCTION", "DATABASE")
	return nil
}

// objectWords names the kind of object that t starts.
func objectWords(t *token) string {
	if t.is("MATERIALIZED") {
		return "MATERIALIZED TABLE"
	}
	return t.up
}

func (p *parser) ifNotExists() bool {
	if p.accept("IF") {
		p.want("NOT", "EXISTS")
		return true
	}
	return false
}

func (p *parser) ifExists() bool {
	if p.accept("IF") {
		p.want("EXISTS")
		return true
	}
	return false
}

func (p *parser) comment() string {
	if p.accept("COMMENT") {
		return p.str("a comment")
	}
	return ""
}

// options reads ('key' = 'value', ..); a key may occur once.
func (p *parser) options() (l []Option) {
	seen := map[string]Option{}
	p.wantOp("(")
	for {
		if p.cur().op(")") {
			if l == nil {
				p.failHint(p.pos(), "write ('key' = 'value')", "options are empty")
			}
			p.failHint(p.pos(), "remove the comma", "expected an option after ','")
		}
		o := p.option()
		if first, ok := seen[o.Key]; ok {
			p.failHint(o.KeyPos, "remove one; the first is at "+first.KeyPos.String(), "option %s is given twice", QuoteString(o.Key))
		}
		seen[o.Key] = o
		l = append(l, o)
		if p.acceptOp(",") {
			continue
		}
		if !p.cur().op(")") {
			p.failTok("',' or ')' after the option")
		}
		p.i++
		return l
	}
}

func (p *parser) createView(at Place, temporary bool) Stmt {
	v := &CreateView{Place: at, Temporary: temporary, IfNotExists: p.ifNotExists()}
	v.Path = p.tablePath("a view name")
	if p.cur().op("(") {
		v.Columns = p.identList("a column name")
	}
	v.Comment = p.comment()
	p.want("AS")
	v.Query, v.QueryText = p.queryWithText()
	return v
}

func (p *parser) queryWithText() (Query, string) {
	start := p.cur().pos.Offset
	q := p.queryExpr()
	return q, p.textFrom(start)
}

func (p *parser) createFunction(at Place, temporary, system bool) Stmt {
	f := &CreateFunction{Place: at, Temporary: temporary, System: system, IfNotExists: p.ifNotExists()}
	f.Path = p.tablePath("a function name")
	p.want("AS")
	f.Class = p.str("a class name")
	if p.accept("LANGUAGE") {
		if f.Language = p.acceptAny("JAVA", "SCALA", "PYTHON", "SQL"); f.Language == "" {
			p.failTok("JAVA, SCALA or PYTHON")
		}
	}
	if p.accept("USING") {
		p.list(func() {
			if p.acceptAny("JAR", "FILE", "ARTIFACT") == "" {
				p.failTok("JAR")
			}
			f.Jars = append(f.Jars, p.str("a resource"))
		})
	}
	return f
}

func (p *parser) createTable(at Place, temporary bool) Stmt {
	t := &CreateTable{Place: at, Temporary: temporary, IfNotExists: p.ifNotExists()}
	t.Path = p.tablePath("a table name")
	if p.acceptOp("(") {
		if p.cur().op(")") {
			p.failHint(p.pos(), "declare columns: (name type, ...)", "table without columns")
		}
		if p.isName(p.cur()) && (p.peek(1).op(",") || p.peek(1).op(")")) {
			p.list(func() { t.Names = append(t.Names, p.ident("a column name")) })
		} else {
			d := &tableElements{}
			p.list(func() { p.tableElement(d, false) })
			t.Columns, t.PrimaryKey, t.Watermark = d.columns, d.key, d.watermark
		}
		p.wantOp(")")
	}
	t.Comment = p.comment()
	if p.accept("DISTRIBUTED") {
		t.Distribution = p.distribution()
	}
	if p.accept("PARTITIONED") {
		p.want("BY")
		t.PartitionBy = p.identList("a column name")
	}
	if p.accept("WITH") {
		t.Options = p.options()
	}
	if c := p.cur(); c.is("LIKE") {
		t.Like = p.likeClause()
	} else if p.accept("AS") {
		t.As, _ = p.queryWithText()
	}
	if t.Names != nil && t.As == nil {
		p.failHint(t.Names[0].Pos, "write the type behind the column name", "column %s has no type", QuoteIdent(t.Names[0].Text))
	}
	if t.Columns == nil && t.Names == nil && t.Like == nil && t.As == nil && t.PrimaryKey == nil {
		p.failTok("'(' and the columns, LIKE or AS")
	}
	return t
}

// tableElements collects what stands between the parentheses of CREATE TABLE or ALTER TABLE ADD.
type tableElements struct {
	columns   []ColumnDef
	key       *PrimaryKey
	watermark *WatermarkDef
	dist      *Distribution
}

// tableElement reads a column, a constraint or a watermark. placed allows FIRST and AFTER behind a column.
func (p *parser) tableElement(d *tableElements, placed bool) {
	t := p.cur()
	switch {
	case t.is("WATERMARK") && p.peek(1).is("FOR"):
		if d.watermark != nil {
			p.failHint(t.pos, "the first is at "+d.watermark.Pos.String(), "a table has at most one WATERMARK")
		}
		d.watermark = p.watermark()
	case t.is("CONSTRAINT"), t.is("PRIMARY"), t.is("UNIQUE"), t.is("FOREIGN"), t.is("CHECK"):
		k := p.tableConstraint()
		p.setKey(d, k)
	case t.is("WATERMARK"):
		p.failHint(t.pos, "write WATERMARK FOR column AS expression", "expected FOR after WATERMARK, found %s", p.describe(p.peek(1)))
	case t.is("PERIOD"):
		p.refuse(t.pos, "PERIOD", "declare a WATERMARK for event time")
	default:
		c := p.column(d)
		if placed {
			if c.First = p.accept("FIRST"); !c.First && p.accept("AFTER") {
				n := p.ident("a column name")
				c.After = &n
			}
		}
		d.columns = append(d.columns, c)
	}
}

func (p *parser) setKey(d *tableElements, k *PrimaryKey) {
	if d.key != nil {
		p.failHint(k.Pos, "the first is at "+d.key.Pos.String(), "a table has at most one PRIMARY KEY")
	}
	seen := map[string]bool{}
	for _, c := range k.Columns {
		if seen[c.Text] {
			p.failHint(c.Pos, "list it once", "column %s occurs twice in the PRIMARY KEY", QuoteIdent(c.Text))
		}
		seen[c.Text] = true
	}
	d.key = k
}

func (p *parser) watermark() *WatermarkDef {
	w := &WatermarkDef{Place: p.here()}
	p.i += 2
	w.Column = p.path("a column name")
	p.want("AS")
	start := p.cur().pos.Offset
	w.Expr = p.expr()
	w.ExprText = p.textFrom(start)
	return w
}

func (p *parser) tableConstraint() *PrimaryKey {
	k := &PrimaryKey{Place: p.here()}
	if p.accept("CONSTRAINT") {
		n := p.ident("a constraint name")
		k.Name = &n
	}
	t := p.cur()
	if t.is("UNIQUE") || t.is("FOREIGN") || t.is("CHECK") {
		p.refuse(t.pos, "constraint "+t.up, "only PRIMARY KEY (..) NOT ENFORCED exists")
	}
	p.want("PRIMARY", "KEY")
	k.Columns = p.identList("a column name")
	p.notEnforced()
	return k
}

func (p *parser) notEnforced() {
	if p.accept("NOT", "ENFORCED") {
		return
	}
	p.failHint(p.pos(), "write PRIMARY KEY (..) NOT ENFORCED", "expected NOT ENFORCED after PRIMARY KEY: a stream cannot enforce a key, found %s", p.describe(p.cur()))
}

func (p *parser) column(d *tableElements) ColumnDef {
	c := ColumnDef{Name: p.ident("a column name")}
	if p.accept("AS") {
		c.Kind = ComputedColumn
		start := p.cur().pos.Offset
		c.Expr = p.expr()
		c.ExprText = p.textFrom(start)
		c.Comment = p.comment()
		return c
	}
	c.TypePos = p.pos()
	c.Type, c.NullSet = p.columnType()
	if p.accept("METADATA") {
		c.Kind = MetadataColumn
		if p.accept("FROM") {
			c.MetadataKey = p.str("a metadata key")
		}
		c.Virtual = p.accept("VIRTUAL")
	}
	for {
		t := p.cur()
		switch {
		case t.is("CONSTRAINT"), t.is("PRIMARY"):
			k := &PrimaryKey{Place: p.here(), Columns: []Name{c.Name}}
			if p.accept("CONSTRAINT") {
				n := p.ident("a constraint name")
				k.Name = &n
			}
			p.want("PRIMARY", "KEY")
			p.notEnforced()
			p.setKey(d, k)
			continue
		case t.is("UNIQUE"), t.is("REFERENCES"), t.is("CHECK"):
			p.refuse(t.pos, "constraint "+t.up, "only PRIMARY KEY NOT ENFORCED exists")
		case t.is("DEFAULT"):
			p.refuse(t.pos, "DEFAULT of a column", "write a computed column: name AS expression")
		}
		break
	}
	c.Comment = p.comment()
	return c
}

// distribution reads [BY [HASH|RANGE] (columns)] [INTO n BUCKETS] behind DISTRIBUTED.
func (p *parser) distribution() *Distribution {
	d := &Distribution{Place: p.here()}
	if p.accept("BY") {
		d.Kind = p.acceptAny("HASH", "RANGE")
		d.Columns = p.identList("a column name")
		if !p.accept("INTO") {
			return d
		}
	} else {
		p.want("INTO")
	}
	if p.cur().kind != tokInt {
		p.failTok("the number of buckets")
	}
	d.Buckets = p.cur().text
	p.i++
	p.want("BUCKETS")
	return d
}

var likeFeatures = strings.Fields("ALL CONSTRAINTS DISTRIBUTION GENERATED METADATA OPTIONS PARTITIONS WATERMARKS")

func (p *parser) likeClause() *LikeClause {
	l := &LikeClause{Place: p.here()}
	p.i++
	l.Table = p.tablePath("a table name")
	if !p.acceptOp("(") {
		return l
	}
	seen := map[string]bool{}
	for !p.acceptOp(")") {
		o := LikeOption{Pos: p.pos()}
		if o.Strategy = p.acceptAny("INCLUDING", "EXCLUDING", "OVERWRITING"); o.Strategy == "" {
			p.failTok("INCLUDING, EXCLUDING or OVERWRITING")
		}
		at := p.pos()
		if o.Feature = p.acceptAny(likeFeatures...); o.Feature == "" {
			p.failTok("one of " + strings.Join(likeFeatures, ", "))
		}
		if o.Strategy == "OVERWRITING" {
			switch o.Feature {
			case "GENERATED", "METADATA", "OPTIONS", "WATERMARKS":
			default:
				p.failHint(at, "write INCLUDING or EXCLUDING", "OVERWRITING does not apply to %s", o.Feature)
			}
		}
		if seen[o.Feature] {
			p.failHint(o.Pos, "keep one of them", "%s is given twice in LIKE", o.Feature)
		}
		seen[o.Feature] = true
		l.Options = append(l.Options, o)
	}
	return l
}
