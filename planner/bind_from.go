package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// from binds the FROM clause; without one there is a single row without columns.
func (b *binder) from(q *sql.Select) (Node, *scope, error) {
	if q.From == nil {
		return &Values{Rows: [][]expr.Expr{{}}}, &scope{}, nil
	}
	return b.tableRef(q.From)
}

func (b *binder) tableRef(r sql.TableRef) (Node, *scope, error) {
	switch r := r.(type) {
	case *sql.Table:
		if r.AsOf != nil {
			return nil, nil, refuseAsOf(r)
		}
		n, err := b.table(r.Path, r.Hints)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, r.Path.Last(), r.Alias, r.Pos)
	case *sql.Derived:
		n, err := b.query(r.Query)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, "", r.Alias, r.Pos)
	case *sql.Unnest:
		return b.unnest(oneRow(), &scope{}, r, false)
	case *sql.TableFunc:
		if !isWindowFunc(r.Call) {
			return b.tableCall(oneRow(), &scope{}, r, false)
		}
		name := strings.ToUpper(r.Call.Name.Last())
		n, err := b.windowTVF(name, windowFunctions[name], r.Call)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, "", r.Alias, r.Pos)
	case *sql.Join:
		return b.join(r)
	case *sql.MatchRecognize:
		return b.matchRecognize(r)
	}
	return nil, nil, diag.New(diag.Unsupported, r.Position(), "this element of FROM is not supported")
}

// aliased gives a node its name and column names in the query.
func aliased(n Node, name string, a sql.Alias, pos diag.Pos) (Node, *scope, error) {
	of := sql.Name{Text: name, Pos: pos}
	if a.Name != nil {
		name, of = a.Name.Text, *a.Name
	}
	n, err := renameColumns(n, a.Columns, of)
	if err != nil {
		return nil, nil, err
	}
	return n, scopeOf(name, n.Fields()), nil
}

// table binds a name in FROM: a CTE, else a view, else a table.
func (b *binder) table(path sql.Path, hints []sql.Hint) (Node, error) {
	if len(path) == 1 {
		for i := len(b.ctes) - 1; i >= 0; i-- {
			if n, ok := b.ctes[i][path[0].Text]; ok {
				if len(hints) > 0 {
					return nil, hintRefused(hints[0], path.Plain()+" is a WITH query")
				}
				return n, nil
			}
		}
	}
	o, err := b.p.cat.Lookup(path)
	if err != nil {
		return nil, b.withCTEs(err, path)
	}
	switch o := o.(type) {
	case *catalog.View:
		if len(hints) > 0 {
			return nil, hintRefused(hints[0], path.Plain()+" is a view")
		}
		return b.view(o, path)
	case *catalog.Table:
		t, err := b.hinted(o, hints)
		if err != nil {
			return nil, err
		}
		return b.scan(t, b.here(path.Position()))
	}
	return nil, diag.New(diag.Internal, path.Position(), "unknown kind of object %s", path.Plain())
}

// withCTEs adds WITH queries to the suggestions for an unknown name.
func (b *binder) withCTEs(err error, path sql.Path) error {
	var names []string
	for _, m := range b.ctes {
		for n := range m {
			names = append(names, n)
		}
	}
	slices.Sort(names)
	var e *diag.Error
	if near := diag.Nearest(path.Last(), names); near != "" && asDiag(err, &e) {
		e.WithHint("did you mean %s?", near)
	}
	return err
}

func hintRefused(h sql.Hint, why string) error {
	return diag.New(diag.Semantic, h.Pos, "hint %s cannot be applied: %s", h.Name, why).WithHint("put the hint behind the table's name")
}

// hinted applies OPTIONS hints to a table.
func (b *binder) hinted(t *catalog.Table, hints []sql.Hint) (*catalog.Table, error) {
	for _, h := range hints {
		if h.Name != "OPTIONS" {
			return nil, diag.New(diag.Unsupported, h.Pos, "hint %s is not supported", h.Name).WithHint("OPTIONS('key'='value') is")
		}
		if !b.conf.Bool(keyHints) {
			return nil, diag.New(diag.Config, h.Pos, "OPTIONS hints are turned off").WithHint("SET '%s' = 'true'", keyHints)
		}
		for _, o := range h.Options {
			if o.Key == "connector" && o.Value != t.Connector() {
				return nil, diag.New(diag.Semantic, o.KeyPos, "a hint cannot change the connector of table %s", t.Name)
			}
		}
		t = t.WithOptions(h.Options)
	}
	return t, nil
}

// view expands a view: its text is bound in a clean scope.
func (b *binder) view(v *catalog.View, path sql.Path) (Node, error) {
	if slices.Contains(b.views, v.Name) {
		return nil, diag.New(diag.Semantic, path.Position(), "view %s refers to itself", v.Name).
			WithHint("drop one of the views and define it without the others").
			WithDetail("through %s", strings.Join(append(b.views, v.Name), " -> "))
	}
	ctes := b.ctes
	b.views, b.ctes = append(b.views, v.Name), nil
	defer func(pos diag.Pos) { b.views, b.ctes, b.viewPos = b.views[:len(b.views)-1], ctes, pos }(b.viewPos)
	b.viewPos = b.here(path.Position())
	defer b.enter(nil, nil, nil)()
	q, err := sql.ParseQuery(v.Query)
	var n Node
	if err == nil {
		n, err = b.query(q)
	}
	if err == nil && v.Columns != nil {
		names := make([]sql.Name, len(v.Columns))
		for i, c := range v.Columns {
			names[i] = sql.Name{Text: c}
		}
		n, err = renameColumns(n, names, sql.Name{Text: v.Name})
	}
	if err != nil {
		return nil, elsewhere(err, path.Position(), "view "+v.Name+" cannot be used")
	}
	return n, nil
}

// scan reads all columns of a table; rules drop what is not needed.
func (b *binder) scan(t *catalog.Table, pos diag.Pos) (Node, error) {
	key := scanKey(t)
	info, ok := b.tables[key]
	if !ok {
		var err error
		if info, err = b.p.source(t, pos, b.conf.Batch(), b.session); err != nil {
			return nil, err
		}
		if b.conf.Bool(keyCDCDuplicate) && info.Mode != types.AppendOnly && len(t.PrimaryKey) == 0 {
			return nil, tableError("source", t, pos, diag.New(diag.Semantic, pos, "'%s' = 'true' needs a primary key", keyCDCDuplicate).
				WithHint("declare PRIMARY KEY (...) NOT ENFORCED on %s, by which repeated events are recognised", t.Name))
		}
		for _, other := range b.tables {
			if other.Table.Name == t.Name {
				info.ID = t.Name + "#" + shortHash(key) // the same table under other options
			}
		}
		b.tables[key] = info
	}
	return &Scan{Info: info, Cols: upTo(0, len(info.Fields))}, nil
}
