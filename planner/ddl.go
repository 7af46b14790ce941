package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// CreateTable adds a table to the catalog; text is the statement as written. created is false when it exists and IF NOT
// EXISTS was given. Options are checked when the table is used, as in Flink; what would fail then is returned as notices
// now.
func (p *Planner) CreateTable(st *sql.CreateTable, text string, conf *Config) (created bool, notices []string, err error) {
	t, err := p.defineTable(st, text, conf)
	if err != nil {
		return false, nil, err
	}
	created, err = p.cat.Create(t, st.IfNotExists, st.Path.Position())
	if err != nil || !created {
		return created, nil, err
	}
	return true, p.tableNotices(t), nil
}

// defineTable builds and types the table without adding it.
func (p *Planner) defineTable(st *sql.CreateTable, text string, conf *Config) (*catalog.Table, error) {
	if st.As != nil {
		return nil, diag.New(diag.Unsupported, st.As.Position(), "CREATE TABLE AS is not supported").
			WithHint("CREATE TABLE with its columns, then INSERT INTO %s SELECT ...", st.Path.Last())
	}
	name, err := catalog.Resolve(st.Path)
	if err != nil {
		return nil, err
	}
	var base *catalog.Table
	if st.Like != nil {
		if base, err = p.cat.Table(st.Like.Table); err != nil {
			return nil, err
		}
	}
	t, err := catalog.Define(st, base, text)
	if err != nil {
		return nil, err
	}
	t.Name = name
	info, err := p.typeTable(t, definitions(st), watermarkExpr(st), expr.Session{Zone: conf.Zone()})
	if err != nil {
		return nil, err
	}
	for i := range t.Columns {
		if t.Columns[i].Kind == catalog.Computed {
			t.Columns[i].Type = info.Fields[i].Type
		}
	}
	if base != nil {
		t.Text = catalog.Expanded(t) // must not depend on the base table when the catalog is read again
	}
	return t, nil
}

func definitions(st *sql.CreateTable) map[string]sql.Expr {
	out := map[string]sql.Expr{}
	for _, c := range st.Columns {
		if c.Kind == sql.ComputedColumn {
			out[c.Name.Text] = c.Expr
		}
	}
	return out
}

func watermarkExpr(st *sql.CreateTable) sql.Expr {
	if st.Watermark == nil {
		return nil
	}
	return st.Watermark.Expr
}

// tableNotices tells early what using the table will fail on: CREATE accepts bad options, so that a script may ALTER them. It
// also tells which options have another name now.
func (p *Planner) tableNotices(t *catalog.Table) []string {
	c, err := p.connector(t, diag.Pos{})
	if err != nil {
		return []string{remark(err, "")}
	}
	var old []string
	for _, o := range c.Options {
		if _, written := t.Options.Get(o.Key); written && o.Deprecated != "" {
			old = append(old, fmt.Sprintf("table %s: option '%s' is an old name; use '%s'", t.Name, o.Key, o.Deprecated))
		}
	}
	if c.Check == nil {
		return old
	}
	var first error
	for _, use := range []connectors.Use{connectors.UseSource, connectors.UseSink} {
		if use == connectors.UseSource && c.NewSource == nil || use == connectors.UseSink && c.NewSink == nil {
			continue
		}
		if err := c.Check(t, use); err == nil {
			return old
		} else if first == nil {
			first = err
		}
	}
	if first == nil {
		return old
	}
	return append(old, "table "+t.Name+" cannot be used as it is: "+remark(first, "table "+t.Name+": "))
}

// remark is an error as a line of text with its hint, without the words it begins with.
func remark(err error, begin string) string {
	var d *diag.Error
	if !asDiag(err, &d) {
		return err.Error()
	}
	at, c := d.Pos.String(), *d
	c.Pos = diag.Pos{}
	text := strings.TrimPrefix(c.Error(), begin)
	if at != "" {
		text += " (at " + at + ")"
	}
	if d.Hint != "" {
		text += "; " + d.Hint
	}
	return text
}

// CreateView adds a view. Its query is bound once, so that a view that cannot work is refused where it is written.
func (p *Planner) CreateView(st *sql.CreateView, text string, conf *Config) (created bool, err error) {
	v, err := viewOf(st, text)
	if err != nil {
		return false, err
	}
	b := p.binder(conf)
	n, err := b.query(st.Query)
	if err != nil {
		return false, err
	}
	if _, err := renameColumns(n, st.Columns, sql.Name{Text: v.Name, Pos: st.Path.Position()}); err != nil {
		return false, err
	}
	return p.cat.Create(v, st.IfNotExists, st.Path.Position())
}

func viewOf(st *sql.CreateView, text string) (*catalog.View, error) {
	name, err := catalog.Resolve(st.Path)
	if err != nil {
		return nil, err
	}
	v := &catalog.View{Name: name, Temporary: st.Temporary, Query: st.QueryText, Comment: st.Comment, Text: text}
	for _, c := range st.Columns {
		v.Columns = append(v.Columns, c.Text)
	}
	return v, nil
}

// Load fills the catalog from its file. Views are not bound: what they read may have been dropped since, which their
// next use reports.
func (p *Planner) Load(conf *Config) error {
	return p.cat.Load(func(script string) error {
		stmts, err := sql.ParseScript(script)
		if err != nil {
			return err
		}
		for _, s := range stmts {
			switch st := s.Stmt.(type) {
			case *sql.CreateTable:
				t, err := p.defineTable(st, s.Text, conf)
				if err != nil {
					return err
				}
				if _, err := p.cat.Create(t, false, st.Path.Position()); err != nil {
					return err
				}
			case *sql.CreateView:
				v, err := viewOf(st, s.Text)
				if err != nil {
					return err
				}
				if _, err := p.cat.Create(v, false, st.Path.Position()); err != nil {
					return err
				}
			default:
				return diag.New(diag.Semantic, s.Pos, "the catalog file holds a statement that is no CREATE TABLE or VIEW")
			}
		}
		return nil
	})
}

// Describe lists the columns of a table or view, as DESCRIBE prints them.
func (p *Planner) Describe(path sql.Path, conf *Config) ([]catalog.DescribeRow, error) {
	o, err := p.cat.Lookup(path)
	if err != nil {
		return nil, err
	}
	if t, ok := o.(*catalog.Table); ok {
		info, err := p.typeTable(t, nil, nil, expr.Session{Zone: conf.Zone()})
		if err != nil {
			return nil, err
		}
		proctime := map[string]bool{}
		for _, f := range info.Fields {
			proctime[f.Name] = f.Time == Proctime
		}
		return catalog.Describe(t, func(c catalog.Column) bool { return proctime[c.Name] }), nil
	}
	b := p.binder(conf)
	n, err := b.table(path, nil)
	if err != nil {
		return nil, err
	}
	var out []catalog.DescribeRow
	for _, f := range n.Fields() {
		g := f
		g.Type = f.Type.WithNull(true)
		out = append(out, catalog.DescribeRow{Name: f.Name, Type: g.typeText(), Null: f.Type.Nullable})
	}
	return out, nil
}

// Catalog is the catalog the planner reads and CREATE writes.
func (p *Planner) Catalog() *catalog.Catalog { return p.cat }

// Functions is the registry of functions.
func (p *Planner) Functions() *expr.Registry { return p.funcs }
