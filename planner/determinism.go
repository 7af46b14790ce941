package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// The analysis of non-deterministic updates (Flink: StreamNonDeterministicUpdatePlanVisitor). A change that takes a row
// back, -U or -D, has to meet the row it takes back: the one who keeps the row finds it by some of its columns, and what
// passes the row on decides the same twice. The pass goes from the sink to the sources with the columns that must have
// in such a change the values they had before, and finds what cannot keep that: calls of UUID or CURRENT_TIMESTAMP,
// metadata that a source gives to every change, tables that are looked up.
//
// It differs from Flink's where that one would let a wrong result pass: conditions count whatever the sink asks for,
// because a dropped change is dropped for every sink; and where an operator here finds its rows by less.

// purpose is what a column has to be the same for; the columns that need not be have nil.
type purpose struct {
	text string // a clause: who finds rows by what, and what becomes of them otherwise
	// sink reports that the table written finds rows by all of their columns; kept, that rows for it are kept so.
	sink, kept bool
}

// needs are the purposes of a node's output columns.
type needs []*purpose

// add sets p for the columns that have no purpose yet.
func (n needs) add(p *purpose, cols ...int) {
	for _, c := range cols {
		if n[c] == nil {
			n[c] = p
		}
	}
}

// all sets p for all columns.
func (n needs) all(p *purpose) { n.add(p, upTo(0, len(n))...) }

func (n needs) addExprs(p *purpose, list ...expr.Expr) {
	for _, e := range list {
		if e != nil {
			n.add(p, expr.ColumnsOf(e)...)
		}
	}
}

// risk is something that differs when a row is taken back.
type risk struct {
	pos    diag.Pos
	what   string // what differs and why
	effect string // who misses the row
	hint   string // an edit that removes it
}

// determinism is the analysis of one sink.
type determinism struct {
	b       *builder
	target  *sinkTarget
	resolve bool // lookup joins may keep what they found
	kept    bool // one of them has been told to
	risks   []risk
}

// determinist is a node whose inputs need other columns than the output's of the same place, or which can itself be what
// differs. need has a purpose for the columns of the output; out is to be filled for those of every input, and counts for
// inputs with changes. It is called where the node or an input has changes. Default: the same columns where there are as
// many, else all.
type determinist interface {
	determine(d *determinism, p *phys, need needs, out []needs)
}

// determine analyses what the sink is about to be given and applies the strategy. With TRY_RESOLVE, lookup joins keep
// what they found, and again says that the tree has changed by that; what is left is an error. Otherwise the risks are
// recorded for EXPLAIN and as notices.
func (b *builder) determine(in *phys, t *sinkTarget, m connectors.SinkMode, c choice) (again bool, err error) {
	d := &determinism{b: b, target: t, resolve: b.conf.Enum(keyNonDeterministic) == "TRY_RESOLVE"}
	d.visit(in, d.start(in, m, c))
	if !d.resolve {
		t.Risks = d.risks
		for _, r := range d.risks {
			b.notices = append(b.notices, fmt.Sprintf("%s: %s: %s; %s; '%s' = 'TRY_RESOLVE' %s", r.pos, t.name(), r.what, r.effect, keyNonDeterministic, r.remedy()))
		}
		return false, nil
	}
	if len(d.risks) > 0 {
		r := d.risks[0]
		return false, diag.New(diag.Semantic, r.pos, "%s", r.what).WithDetail("%s", r.effect).WithHint("%s", r.hint)
	}
	return d.kept, nil
}

// remedy says what TRY_RESOLVE makes of the risk.
func (r risk) remedy() string {
	if r.hint == "" {
		return "keeps the rows that were found"
	}
	return "makes this an error"
}

// line is the risk in EXPLAIN.
func (r risk) line() string {
	return fmt.Sprintf("%s (%s); %s", r.what, r.pos, r.effect)
}

// name is the sink in messages.
func (t *sinkTarget) name() string {
	if t.Collect {
		return "the result of SELECT"
	}
	return "table " + t.Table.Name
}

// start are the needs of the sink: the columns by which it finds the row to change.
func (d *determinism) start(in *phys, m connectors.SinkMode, c choice) needs {
	n := make(needs, len(in.fields))
	name := d.target.name()
	switch key := sinkKey(d.target, m); {
	case c.materialize && smallest(in.keys) != nil:
		key = append(key, smallest(in.keys)...)
		n.add(stays("rows for %s are kept by (%s)", name, keyNames(in.fields, key)), key...)
	case c.materialize:
		p := stays("rows for %s are kept whole, as the query has no key", name)
		p.kept = true
		n.all(p)
	case len(key) > 0:
		n.add(stays("%s finds a row by (%s)", name, keyNames(in.fields, key)), key...)
	case m.Changelog == types.Upsert && smallest(in.keys) != nil:
		key = smallest(in.keys)
		n.add(stays("rows of %s are found by (%s)", name, keyNames(in.fields, key)), key...)
	default:
		p := stays("rows of %s are found by all of their columns", name)
		p.sink = true
		n.all(p)
	}
	return n
}

// stays is the purpose of one who finds the old row.
func stays(format string, args ...any) *purpose {
	return &purpose{text: fmt.Sprintf(format, args...) + ", so the old row stays"}
}

// visit analyses p, of whose output the columns need must be the same. Nothing is ever taken back of rows that are only
// inserted, and the columns of an upsert key are the same in all changes of a row.
func (d *determinism) visit(p *phys, need needs) {
	if !changes(p) {
		need = make(needs, len(p.fields))
	}
	for _, k := range p.keys {
		for _, c := range k {
			need[c] = nil
		}
	}
	if s, ok := p.op.(*Scan); ok && changes(p) {
		d.scan(s, need)
	}
	out := make([]needs, len(p.in))
	for i, in := range p.in {
		out[i] = make(needs, len(in.fields))
	}
	if changes(p) || slices.ContainsFunc(p.in, changes) {
		d.inputs(p, need, out)
	}
	for i, in := range p.in {
		d.visit(in, out[i])
	}
}

func changes(p *phys) bool { return p.trait.Kinds != Inserts }

func (d *determinism) inputs(p *phys, need needs, out []needs) {
	if n, ok := p.op.(determinist); ok {
		n.determine(d, p, need, out)
		return
	}
	for _, o := range out {
		if len(need) == len(o) {
			copy(o, need)
		} else {
			o.all(rowsOf(p))
		}
	}
}

// rowsOf is the purpose of an operator that finds rows by all of their columns.
func rowsOf(p *phys) *purpose { return stays("%s finds a row by all of its columns", shortLabel(p)) }

// shortLabel is the operator's name in EXPLAIN.
func shortLabel(p *phys) string {
	name, _, _ := strings.Cut(physLabel(p), "(")
	return name
}

// passes is the purpose of what decides whether a row passes.
var passes = &purpose{text: "a condition reads it, so the change can be dropped where the row was not, and the old row stays"}

// volatileCall is the first call in e that gives another result when it is evaluated again, nil for none. In batch mode
// there is one time for the whole query.
func (d *determinism) volatileCall(e expr.Expr) *expr.Call { return volatileIn(d.b.conf, e) }

func volatileIn(conf *Config, e expr.Expr) *expr.Call {
	var found *expr.Call
	if e == nil {
		return nil
	}
	expr.Walk(e, func(x expr.Expr) bool {
		if c, ok := x.(*expr.Call); ok && found == nil && (c.Bound.Volatile || c.Bound.Dynamic && !conf.Batch()) {
			found = c
		}
		return found == nil
	})
	return found
}

// report records a risk once. One without a known place stands where the statement names the sink.
func (d *determinism) report(r risk) {
	if !r.pos.Known() {
		r.pos = d.target.Pos.Pos
	}
	if !slices.ContainsFunc(d.risks, func(x risk) bool { return x.pos == r.pos && x.what == r.what }) {
		d.risks = append(d.risks, r)
	}
}

// condition reports a condition over rows that are taken back, evaluated for every change.
func (d *determinism) condition(cond expr.Expr, p *phys) {
	c := d.volatileCall(cond)
	if c == nil {
		return
	}
	d.report(risk{c.Pos, fmt.Sprintf("%s can decide the condition %s differently when a row is taken back", c, conjunctOf(cond, c)),
		byItself(p) + "where the condition is not TRUE then, the change is dropped and the old row stays",
		"compare with a column of the row instead of " + c.String() + ", or apply the condition to rows that only insert, before they are changed"})
}

// conjunctOf is the part of cond that call c is in.
func conjunctOf(cond expr.Expr, c *expr.Call) expr.Expr {
	for _, e := range expr.Conjuncts(cond) {
		in := false
		expr.Walk(e, func(x expr.Expr) bool { in = in || x == expr.Expr(c); return !in })
		if in {
			return e
		}
	}
	return cond
}

// columns reports the needed ones among exprs, the columns of p's output, that are computed by other values for every
// change, and needs of the input what the others read.
func (d *determinism) columns(p *phys, exprs []expr.Expr, need, out needs) {
	for i, e := range exprs {
		if need[i] == nil {
			continue
		}
		if c := d.volatileCall(e); c != nil {
			d.report(d.computed(p.fields[i].Name, c, byItself(p), need[i], p.in[0]))
			continue
		}
		out.addExprs(need[i], e)
	}
}

// computed is the risk of column name, which is computed by c.
func (d *determinism) computed(name string, c *expr.Call, lead string, why *purpose, in *phys) risk {
	if name != "" && !strings.ContainsRune(name, '$') {
		name = "column " + name + " "
	} else {
		name = "" // made by the planner
	}
	key := smallest(in.keys)
	hint := "use a column of the row instead of " + c.String() + ", or compute it where rows are only inserted, before they are changed"
	switch {
	case why.kept:
		hint = "use a column of the row instead of " + c.String() + ", or declare the primary key of the changing table: rows are kept by it then"
	case why.sink && len(key) > 0:
		hint = "leave the column out, or write into a table that finds rows by key, such as 'connector' = 'upsert-kafka' with PRIMARY KEY (" + keyNames(in.fields, key) + ") NOT ENFORCED"
	case why.sink:
		hint = "leave the column out, or take one of the row instead of " + c.String()
	}
	return risk{c.Pos, fmt.Sprintf("%s gives %sanother value when its row is taken back", c, name), lead + why.text, hint}
}

// byItself begins the explanation of what p computes of changes.
func byItself(p *phys) string {
	return fmt.Sprintf("the -U or -D that takes back a row of %s is computed by itself; ", changer(p))
}

// changer names what changes the rows that p reads.
func changer(p *phys) string {
	for _, in := range p.in {
		if !changes(in) {
			continue
		}
		o := origin(in)
		if s, ok := o.op.(*Scan); ok {
			return "table " + s.Info.Table.Name
		}
		if n, ok := o.op.(*normalize); ok {
			return "table " + n.In.(*Scan).Info.Table.Name
		}
		return shortLabel(o)
	}
	return shortLabel(p)
}

// steadyMetadata are metadata columns with which every change of a row comes alike.
var steadyMetadata = []string{"database_name", "schema_name", "table_name", "source.database", "source.schema", "source.table", "topic"}

// scan reports needed columns that a source gives to every change anew, and computed columns of the table.
func (d *determinism) scan(s *Scan, need needs) {
	info := s.Info
	metadata := func(c int, name string, why *purpose) {
		col := info.Table.Columns[c]
		key := col.Key
		if col.Kind != catalog.Metadata || slices.ContainsFunc(steadyMetadata, func(k string) bool { return key == k || key == "value."+k }) {
			return
		}
		hint := "leave the column out, or SET '" + keyCDCDuplicate + "' = 'true', which keeps each row with its metadata by the primary key"
		if len(info.Table.PrimaryKey) == 0 {
			hint = "leave the column out; or declare PRIMARY KEY (...) NOT ENFORCED on " + info.Table.Name + " and SET '" + keyCDCDuplicate + "' = 'true', which keeps each row with its metadata by that key"
		}
		d.report(risk{info.Pos, fmt.Sprintf("column %s of table %s has another value when its row is taken back: '%s' belongs to the change, not to the row", name, info.Table.Name, key),
			bringsOwn(s) + why.text, hint})
	}
	for i, c := range s.Cols {
		switch e := info.Computed[c]; {
		case need[i] == nil:
		case e == nil:
			metadata(c, info.Fields[c].Name, need[i])
		default:
			name := info.Fields[c].Name
			if call := d.volatileCall(e); call != nil {
				r := d.computed(name, call, bringsOwn(s), need[i], &phys{})
				r.pos = info.Pos
				r.hint = "leave the column out, or SET '" + keyCDCDuplicate + "' = 'true', which keeps each row as it came by the primary key"
				d.report(r)
				continue
			}
			for _, m := range expr.ColumnsOf(e) {
				metadata(m, name, need[i])
			}
		}
	}
}

func bringsOwn(s *Scan) string {
	return fmt.Sprintf("the -U or -D that takes back a row of table %s brings its own; ", s.Info.Table.Name)
}
