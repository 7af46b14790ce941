package sql

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
)

// statement parses one statement up to its end.
func (p *parser) statement() Stmt {
	t := p.cur()
	at := Place{t.pos}
	switch {
	case p.startsQuery(t), t.op("("):
		return &QueryStmt{at, p.queryExpr()}
	case t.is("INSERT"), t.is("UPSERT"):
		return p.insert()
	case t.is("EXPLAIN"):
		return p.explain()
	case t.is("EXECUTE"):
		return p.execute()
	case t.is("BEGIN"), t.is("STATEMENT"):
		return p.statementSet()
	case t.is("CREATE"):
		return p.create()
	case t.is("DROP"):
		return p.drop()
	case t.is("ALTER"):
		return p.alter()
	case t.is("SHOW"):
		return p.show()
	case t.is("DESCRIBE"), t.is("DESC"):
		return p.describeStmt()
	case t.is("USE"):
		return p.use()
	case t.is("SET"):
		return p.set()
	case t.is("RESET"):
		return p.reset()
	case t.is("STOP"):
		return p.stopJob()
	}
	if w := p.clientWord(); w != "" {
		return &ClientCommand{at, w}
	}
	p.unknownStatement()
	return nil
}

// clientWord reads QUIT, EXIT, CLEAR or HELP, which are statements only when nothing else follows.
func (p *parser) clientWord() string {
	if p.peek(1).kind != tokEOF {
		return ""
	}
	return p.acceptAny("QUIT", "EXIT", "CLEAR", "HELP")
}

// refusedStatements are statements of Flink that streamsql does not have, by their first words, with what to do instead.
var refusedStatements = []struct{ words, hint string }{
	{"ADD JAR", "register Go functions through the streamsql package instead of JARs"},
	{"REMOVE JAR", "there are no JARs"},
	{"UPDATE", "results change through upsert sinks: INSERT INTO a table with a PRIMARY KEY"},
	{"DELETE", "results change through upsert sinks: INSERT INTO a table with a PRIMARY KEY"},
	{"MERGE", "INSERT INTO a table with a PRIMARY KEY"},
	{"TRUNCATE", "remove the rows in the external system"},
	{"ANALYZE", "plans here do not depend on statistics"},
	{"CALL", "there are no procedures"},
	{"LOAD", "all functions are built in"},
	{"UNLOAD", "all functions are built in"},
	{"COMPILE", "a restored job checks its plan against the checkpoint"},
	{"REFRESH", "materialized tables do not exist; INSERT INTO a table"},
	{"END", "END closes BEGIN STATEMENT SET or EXECUTE STATEMENT SET BEGIN, which is not open"},
}

var statementWords = strings.Fields(`SELECT INSERT EXPLAIN EXECUTE BEGIN CREATE DROP ALTER SHOW DESCRIBE DESC USE SET RESET
	STOP WITH VALUES QUIT EXIT CLEAR HELP`)

func (p *parser) unknownStatement() {
	t := p.cur()
	for _, r := range refusedStatements {
		if words := strings.Fields(r.words); p.accept(words...) {
			if words[0] == "END" {
				p.failHint(t.pos, r.hint, "END without an open statement set")
			}
			p.refuse(t.pos, r.words, r.hint)
		}
	}
	p.foreignStatement()
	hint := "statements start with SELECT, INSERT, CREATE, DROP, ALTER, SHOW, DESCRIBE, EXPLAIN, EXECUTE, SET, RESET or USE"
	if t.kind == tokIdent {
		if w := diag.Nearest(t.text, statementWords); w != "" {
			hint = "did you mean " + w + "?"
		}
	}
	p.failHint(t.pos, hint, "expected a statement, found %s", p.describe(t))
}

func (p *parser) insert() *Insert {
	s := &Insert{Place: p.here()}
	if p.cur().is("UPSERT") {
		p.refuse(p.pos(), "UPSERT", "INSERT INTO a table with a PRIMARY KEY")
	}
	p.want("INSERT")
	if !p.accept("OVERWRITE") {
		p.want("INTO")
	} else {
		s.Overwrite = true
	}
	s.Target = p.tablePath("a table name")
	s.Hints = p.hints()
	if p.accept("PARTITION") {
		s.Partition = p.partitionSpec()
	}
	if p.cur().op("(") && !p.parenQuery(p.i) {
		p.parens(func() { s.Columns = append(s.Columns, p.path("a column name")) })
	}
	if t := p.cur(); !p.startsQuery(t) && !t.op("(") {
		p.failTok("SELECT, VALUES, WITH or TABLE")
	}
	s.Query = p.queryExpr()
	if s.ConflictPos = p.cur().pos; p.accept("ON") {
		s.Deduplicate = true
		p.onConflict(s.ConflictPos)
	}
	return s
}

// onConflict reads CONFLICT DO DEDUPLICATE. Of the other ways only the words are known.
func (p *parser) onConflict(pos diag.Pos) {
	if p.accept("DUPLICATE") {
		p.refuse(pos, "ON DUPLICATE KEY", "declare PRIMARY KEY (..) NOT ENFORCED on the target to replace rows by key")
	}
	p.want("CONFLICT")
	p.want("DO")
	switch t := p.cur(); {
	case p.accept("DEDUPLICATE"):
	case t.is("NOTHING"):
		p.refuse(pos, "ON CONFLICT DO NOTHING", "write ON CONFLICT DO DEDUPLICATE for the last row of each key; for the first: SELECT .. FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY key ORDER BY ts) AS rn FROM ..) WHERE rn = 1")
	case t.is("ERROR"):
		p.refuse(pos, "ON CONFLICT DO ERROR", "write ON CONFLICT DO DEDUPLICATE: the last row of each primary key is written")
	default:
		p.failTok("DEDUPLICATE")
	}
}

// partitionSpec reads (k = v, ..); the value may be absent.
func (p *parser) partitionSpec() (l []PartitionSpec) {
	p.parens(func() {
		s := PartitionSpec{Column: p.ident("a partition column")}
		if p.acceptOp("=") {
			switch p.cur().kind {
			case tokString, tokUnicode, tokInt, tokDecimal:
				s.Value = p.literal()
			case tokIdent:
				if t := p.cur(); t.is("DATE") && p.peek(1).kind == tokString {
					p.i++
					s.Value = p.literal()
					s.Value.Kind = LitDate
					break
				}
				fallthrough
			default:
				p.failTok("a literal")
			}
		}
		l = append(l, s)
	})
	return l
}

func (p *parser) explain() *Explain {
	e := &Explain{Place: p.here()}
	p.i++
	if p.accept("PLAN") {
		p.want("FOR")
	} else {
		for {
			t := p.cur()
			d := p.acceptAny(string(ExplainCost), string(ExplainChangelog), string(ExplainJSON), string(ExplainAdvice), string(ExplainGuarantees))
			if d == "" {
				break
			}
			for _, have := range e.Details {
				if string(have) == d {
					p.failHint(t.pos, "keep one of them", "%s is given twice", d)
				}
			}
			e.Details = append(e.Details, ExplainDetail(d))
			if !p.acceptOp(",") {
				break
			}
		}
	}
	p.explainForeign()
	t := p.cur()
	switch {
	case p.startsQuery(t), t.op("("), t.is("INSERT"), t.is("STATEMENT"), t.is("EXECUTE"), t.is("BEGIN"):
		e.Stmt = p.statement()
	case t.is("CREATE"):
		c, ok := p.create().(*CreateTable)
		if !ok || c.As == nil {
			p.failHint(t.pos, "EXPLAIN takes a query, an INSERT or a statement set", "EXPLAIN of a definition is not supported")
		}
		e.Stmt = c
	default:
		p.failTok("a query, INSERT or STATEMENT SET after EXPLAIN")
	}
	return e
}

// execute parses EXECUTE STATEMENT SET, and EXECUTE in front of a query or INSERT, which changes nothing.
func (p *parser) execute() Stmt {
	t, n := p.cur(), p.peek(1)
	switch {
	case n.is("STATEMENT"):
		return p.statementSet()
	case n.is("PLAN"):
		p.refuse(t.pos, "EXECUTE PLAN", "a restored job checks its plan against the checkpoint")
	}
	p.i++
	if !p.startsQuery(n) && !n.op("(") && !n.is("INSERT") {
		p.failTok("STATEMENT SET, a query or INSERT after EXECUTE")
	}
	return p.statement()
}

// statementSet parses [EXECUTE] STATEMENT SET BEGIN ..; END and BEGIN STATEMENT SET; ..; END.
func (p *parser) statementSet() *StatementSet {
	s := &StatementSet{Place: p.here()}
	if p.accept("BEGIN") {
		if t := p.cur(); t.kind == tokEOF || t.is("TRANSACTION") || t.is("WORK") {
			p.failHint(t.pos, "there are no transactions to open: what a job writes is committed with its checkpoints; BEGIN STATEMENT SET runs several INSERTs as one job",
				"expected STATEMENT SET after BEGIN, found %s", p.describe(t))
		}
		p.want("STATEMENT", "SET")
		p.wantOp(";")
	} else {
		p.accept("EXECUTE")
		p.want("STATEMENT", "SET", "BEGIN")
	}
	for !p.accept("END") {
		if !p.cur().is("INSERT") {
			if p.cur().kind == tokEOF {
				p.failHint(p.pos(), "the statement set at "+s.Pos.String()+" ends with END;", "expected INSERT or END, found the end of the script")
			}
			p.failHint(p.pos(), "only INSERT can be in a statement set", "expected INSERT or END, found %s", p.describe(p.cur()))
		}
		s.Inserts = append(s.Inserts, p.insert())
		p.wantOp(";")
	}
	if len(s.Inserts) == 0 {
		p.failHint(s.Pos, "write INSERT statements between BEGIN and END", "the statement set is empty")
	}
	return s
}

// showKinds are the words behind SHOW; longer ones first. like says whether a pattern may follow, from whether
// FROM or IN may.
var showKinds = []struct {
	words            string
	kind             ShowKind
	object           bool
	from, like, fold bool
}{
	{"CREATE TABLE", ShowCreateTable, true, false, false, false},
	{"CREATE VIEW", ShowCreateView, true, false, false, false},
	{"CURRENT CATALOG", ShowCurrentCatalog, false, false, false, false},
	{"CURRENT DATABASE", ShowCurrentDatabase, false, false, false, false},
	{"USER FUNCTIONS", ShowUserFunctions, false, true, true, true},
	{"BUILTIN FUNCTIONS", ShowBuiltinFunctions, false, false, true, true},
	{"FULL MODULES", ShowFullModules, false, false, false, false},
	{"TABLES", ShowTables, false, true, true, false},
	{"VIEWS", ShowViews, false, true, true, false},
	{"FUNCTIONS", ShowFunctions, false, true, true, true},
	{"JOBS", ShowJobs, false, false, false, false},
	{"CHECKPOINTS", ShowCheckpoints, false, false, false, false},
	{"CATALOGS", ShowCatalogs, false, false, true, true},
	{"DATABASES", ShowDatabases, false, true, true, true},
	{"COLUMNS", ShowColumns, false, true, true, false},
	{"PARTITIONS", ShowPartitions, true, false, false, false},
	{"MODULES", ShowModules, false, false, false, false},
	{"JARS", ShowJars, false, false, false, false},
}

func (p *parser) show() *Show {
	s := &Show{Place: p.here()}
	p.i++
	for _, k := range showKinds {
		if !p.accept(strings.Fields(k.words)...) {
			continue
		}
		s.Kind = k.kind
		if k.object {
			s.Path = p.tablePath("a table name")
		}
		if k.from && p.acceptAny("FROM", "IN") != "" {
			s.Path = p.tablePath("a name")
		}
		if k.kind == ShowCheckpoints && p.accept("FOR") {
			p.want("JOB")
			s.Job = p.str("a job id")
		}
		if k.kind == ShowColumns && s.Path == nil {
			p.failTok("FROM and a table name")
		}
		if k.like {
			p.showLike(s, k.fold)
		}
		return s
	}
	t := p.cur()
	if t.is("PROCEDURES") || t.is("MODELS") || t.is("CONNECTIONS") || t.is("MATERIALIZED") {
		p.refuse(t.pos, "SHOW "+t.up, "SHOW takes TABLES, VIEWS, CREATE TABLE, CREATE VIEW, FUNCTIONS, JOBS, CHECKPOINTS, DATABASES, CATALOGS or COLUMNS")
	}
	if t.is("CREATE") && p.peek(1).name() {
		p.i++
		p.failWord("TABLE", "VIEW")
	}
	var words []string
	for _, k := range showKinds {
		words = append(words, strings.Fields(k.words)[0])
	}
	hint := "SHOW takes TABLES, VIEWS, CREATE TABLE, CREATE VIEW, FUNCTIONS, JOBS, CHECKPOINTS, DATABASES, CATALOGS or COLUMNS"
	if w := foreignShows[t.up]; t.kind == tokIdent && w != "" {
		hint = "write " + w
	} else if w := diag.Nearest(t.text, words); t.kind == tokIdent && w != "" {
		hint = "did you mean SHOW " + w + "?"
	}
	p.failHint(t.pos, hint, "expected what to show, found %s", p.describe(t))
	return nil
}

func (p *parser) showLike(s *Show, fold bool) {
	s.NotLike = p.accept("NOT")
	switch w := p.acceptAny("LIKE", "ILIKE"); {
	case w == "ILIKE" && !fold:
		p.failHint(p.toks[p.i-1].pos, "write LIKE", "SHOW %s has no ILIKE", s.Kind)
	case w != "":
		s.HasLike, s.ILike = true, w == "ILIKE"
		s.Like = p.str("a pattern")
	case s.NotLike:
		p.failTok("LIKE")
	}
}

func (p *parser) describeStmt() *Describe {
	d := &Describe{Place: p.here()}
	p.i++
	t := p.cur()
	switch {
	case t.is("JOB") && p.peek(1).kind == tokString:
		p.i++
		d.Job = p.str("a job id")
		return d
	case p.peek(1).name() && t.is("FUNCTION"):
		p.i++
		d.Function = true
		d.Extended = p.cur().is("EXTENDED") && p.peek(1).name() && p.accept("EXTENDED")
		d.Path = p.functionPath()
		return d
	case p.peek(1).name() && (t.is("CATALOG") || t.is("DATABASE") || t.is("MODEL")):
		p.refuse(t.pos, "DESCRIBE "+t.up, "DESCRIBE takes a table, a view, FUNCTION name or JOB 'id'")
	}
	d.Extended = p.accept("EXTENDED")
	d.Path = p.tablePath("a table name")
	return d
}

// functionPath reads the name of a function, which may be a reserved word such as ABS or LEFT.
func (p *parser) functionPath() Path {
	if t := p.cur(); t.kind == tokIdent && reserved[t.up] && !p.peek(1).op(".") {
		p.i++
		return Path{Name{t.text, t.pos}}
	}
	return p.path("a function name")
}

func (p *parser) use() *Use {
	u := &Use{Place: p.here()}
	p.i++
	if p.cur().is("MODULES") {
		p.refuse(p.pos(), "USE MODULES", "all functions are built in")
	}
	u.Catalog = p.cur().is("CATALOG") && p.peek(1).name()
	if u.Catalog {
		p.i++
		u.Path = Path{p.ident("a catalog name")}
		return u
	}
	u.Path = p.path("a database name")
	if len(u.Path) > 2 {
		p.failHint(u.Path[2].Pos, "write catalog.database, or the name alone", "a database name has at most two parts: catalog.database")
	}
	return u
}

func (p *parser) set() *Set {
	s := &Set{Place: p.here()}
	p.i++
	if p.cur().kind == tokEOF {
		return s
	}
	if at := p.pos(); p.cur().name() {
		key := p.bareKey()
		p.failHint(at, "write SET "+QuoteString(key)+" = 'value'", "the key of SET is a string in single quotes, found %s", key)
	}
	o := p.option()
	s.Option = &o
	return s
}

// bareKey reads a key that was not quoted: its words may be reserved ones, joined by dots and hyphens.
func (p *parser) bareKey() string {
	var b strings.Builder
	for t := p.cur(); t.name() || t.op(".") || t.op("-"); t = p.cur() {
		b.WriteString(t.text)
		p.i++
	}
	return b.String()
}

func (p *parser) reset() *Reset {
	r := &Reset{Place: p.here()}
	p.i++
	if p.cur().kind == tokEOF {
		return r
	}
	r.KeyPos = p.pos()
	if p.cur().name() {
		key := p.bareKey()
		p.failHint(r.KeyPos, "write RESET "+QuoteString(key), "the key of RESET is a string in single quotes, found %s", key)
	}
	if r.Key = p.str("a key"); r.Key == "" {
		p.failHint(r.KeyPos, "write RESET; to reset all keys", "key of RESET is empty")
	}
	return r
}

func (p *parser) stopJob() *StopJob {
	s := &StopJob{Place: p.here()}
	p.i++
	p.want("JOB")
	s.ID = p.str("a job id")
	for p.accept("WITH") {
		at := p.pos()
		switch p.acceptAny("SAVEPOINT", "DRAIN") {
		case "SAVEPOINT":
			s.Savepoint = true
		case "DRAIN":
			if !s.Savepoint {
				p.failHint(at, "write WITH SAVEPOINT WITH DRAIN", "WITH DRAIN needs WITH SAVEPOINT before it")
			}
			s.Drain = true
		default:
			p.failTok("SAVEPOINT or DRAIN")
		}
	}
	return s
}
