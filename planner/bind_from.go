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
			return nil, nil, diag.New(diag.Unsupported, r.AsOf.Position(), "FOR SYSTEM_TIME AS OF is not supported").
				WithDetail("temporal and lookup joins are not supported yet")
		}
		n, err := b.table(r.Path, r.Hints)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, r.Path.Last(), r.Alias, r.Pos)
	case *sql.Derived:
		if r.Lateral {
			return nil, nil, diag.New(diag.Unsupported, r.Pos, "LATERAL (query) is not supported").WithDetail("correlated queries are not supported yet")
		}
		n, err := b.query(r.Query)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, "", r.Alias, r.Pos)
	case *sql.TableFunc:
		n, err := b.tableFunc(r)
		if err != nil {
			return nil, nil, err
		}
		return aliased(n, "", r.Alias, r.Pos)
	case *sql.Join:
		return b.join(r)
	}
	return nil, nil, refuseTableRef(r)
}

func refuseTableRef(r sql.TableRef) error {
	switch r := r.(type) {
	case *sql.Unnest:
		return diag.New(diag.Unsupported, r.Pos, "UNNEST is not supported yet").WithHint("take elements by index: arr[1], m['key']")
	case *sql.MatchRecognize:
		return diag.New(diag.Unsupported, r.Pos, "MATCH_RECOGNIZE is not supported")
	}
	return diag.New(diag.Unsupported, r.Position(), "this element of FROM is not supported")
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
		return b.scan(t, path.Position())
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
			WithDetail("through %s", strings.Join(append(b.views, v.Name), " -> "))
	}
	ctes, group := b.ctes, b.group
	b.views, b.ctes, b.group = append(b.views, v.Name), nil, nil
	defer func() { b.views, b.ctes, b.group = b.views[:len(b.views)-1], ctes, group }()
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

// tableFunc binds TABLE(f(...)): TUMBLE; everything else is refused by name.
func (b *binder) tableFunc(r *sql.TableFunc) (Node, error) {
	name := strings.ToUpper(r.Call.Name.Last())
	switch name {
	case "TUMBLE":
		return b.tumble(r.Call)
	case "HOP", "CUMULATE", "SESSION":
		return nil, diag.New(diag.Unsupported, r.Call.Pos, "the window function %s is not supported yet", name).
			WithHint("use TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE)")
	}
	return nil, diag.New(diag.Unsupported, r.Call.Pos, "table function %s is not supported", name).
		WithHint("TUMBLE is the only table function")
}

// tumbleArgs are the arguments of TUMBLE by position, also when written by name.
func tumbleArgs(c *sql.Call) ([]sql.Expr, error) {
	order := []string{"DATA", "TIMECOL", "SIZE", "OFFSET"}
	out := make([]sql.Expr, len(order))
	for i, a := range c.Args {
		at := i
		if n, ok := a.(*sql.NamedArg); ok {
			if at = slices.Index(order, strings.ToUpper(n.Name.Text)); at < 0 {
				return nil, diag.New(diag.Semantic, n.Pos, "TUMBLE has no argument %s", n.Name.Text).WithHint("DATA, TIMECOL, SIZE, OFFSET")
			}
			a = n.X
		}
		if at >= len(order) || out[at] != nil {
			return nil, diag.New(diag.Semantic, a.Position(), "TUMBLE takes three or four arguments").WithHint(tumbleUsage)
		}
		out[at] = a
	}
	if out[0] == nil || out[1] == nil || out[2] == nil {
		return nil, diag.New(diag.Semantic, c.Pos, "TUMBLE takes three or four arguments").WithHint(tumbleUsage)
	}
	return out, nil
}

const tumbleUsage = "write TUMBLE(TABLE t, DESCRIPTOR(ts), INTERVAL '1' MINUTE [, offset])"

// tumble binds TUMBLE(TABLE t, DESCRIPTOR(ts), size [, offset]).
func (b *binder) tumble(c *sql.Call) (Node, error) {
	args, err := tumbleArgs(c)
	if err != nil {
		return nil, err
	}
	in, err := b.tableArg(args[0])
	if err != nil {
		return nil, err
	}
	d, ok := args[1].(*sql.Descriptor)
	if !ok || len(d.Columns) != 1 {
		return nil, diag.New(diag.Semantic, args[1].Position(), "the second argument of TUMBLE is DESCRIPTOR(rowtime column)").WithHint(tumbleUsage)
	}
	s := scopeOf("", in.Fields())
	i, _, err := s.resolve(sql.Path{d.Columns[0]})
	if err != nil {
		return nil, err
	}
	if err := checkRowtimeColumn(s.cols[i].field, d.Columns[0]); err != nil {
		return nil, err
	}
	w := window{Time: i}
	if w.Size, err = b.millisArg(args[2], "size"); err != nil {
		return nil, err
	}
	if w.Size <= 0 {
		return nil, diag.New(diag.Semantic, args[2].Position(), "the size of a window must be positive")
	}
	if args[3] != nil {
		if w.Offset, err = b.millisArg(args[3], "offset"); err != nil {
			return nil, err
		}
		if w.Offset >= w.Size || w.Offset <= -w.Size {
			return nil, diag.New(diag.Semantic, args[3].Position(), "the offset of a window must be smaller than its size")
		}
	}
	for _, f := range in.Fields() {
		if f.Name == "window_start" || f.Name == "window_end" || f.Name == "window_time" {
			// Flink renames the older columns; the newest window's names are the plain ones.
			return &WindowTVF{In: renameWindow(in), Window: w}, nil
		}
	}
	return &WindowTVF{In: in, Window: w}, nil
}

// renameWindow renames the window columns of an earlier window: window_start becomes window_start0.
func renameWindow(in Node) Node {
	f := in.Fields()
	p := &Project{In: in}
	for i := range f {
		name := f[i].Name
		if name == "window_start" || name == "window_end" || name == "window_time" {
			name += "0"
		}
		p.Exprs, p.Names = append(p.Exprs, col(f, i)), append(p.Names, name)
	}
	return p
}

func (b *binder) tableArg(e sql.Expr) (Node, error) {
	if q, ok := e.(*sql.Subquery); ok {
		return b.query(q.Query)
	}
	t, ok := e.(*sql.TableArg)
	if !ok {
		return nil, diag.New(diag.Semantic, e.Position(), "the first argument of TUMBLE is TABLE t or (query)").WithHint(tumbleUsage)
	}
	if t.Partition != nil || t.Order != nil {
		return nil, diag.New(diag.Semantic, t.Pos, "TUMBLE takes neither PARTITION BY nor ORDER BY").WithHint("group by the column: GROUP BY key, window_start, window_end")
	}
	if t.Query != nil {
		return b.query(t.Query)
	}
	return b.table(t.Table, nil)
}

func checkRowtimeColumn(f Field, n sql.Name) error {
	switch {
	case f.Time == Rowtime:
		return nil
	case f.Time == Proctime:
		return diag.New(diag.Unsupported, n.Pos, "a processing-time window over %s is not supported", f.Name).
			WithDetail("its results would depend on when rows arrive and change when the job recovers").
			WithHint("declare a WATERMARK on a TIMESTAMP(3) column of the table and window over that")
	case f.Type.IsTimestamp():
		return diag.New(diag.Semantic, n.Pos, "column %s is a timestamp without a watermark", f.Name).
			WithDetail("a window needs a time attribute; computing on one, aggregating or joining makes it a plain timestamp").
			WithHint("declare WATERMARK FOR %s AS %s - INTERVAL '5' SECOND on the table, and pass the column through unchanged", f.Name, f.Name)
	}
	return diag.New(diag.Semantic, n.Pos, "column %s has type %s and cannot be the time of a window", f.Name, f.Type).
		WithHint("use a TIMESTAMP(3) or TIMESTAMP_LTZ(3) column with a WATERMARK")
}

// millisArg is a constant day-time interval in milliseconds.
func (b *binder) millisArg(e sql.Expr, what string) (int64, error) {
	x, err := b.expr(&scope{}, e)
	if err != nil {
		return 0, err
	}
	x, err = b.fold(x)
	if err != nil {
		return 0, diag.At(err, e.Position())
	}
	l, ok := x.(*expr.Literal)
	if !ok || l.T.Kind != types.IntervalDayTime || l.Value.IsNull {
		return 0, diag.New(diag.Semantic, e.Position(), "the window %s must be a constant interval of days to seconds", what).
			WithHint("INTERVAL '1' MINUTE; months and years have no fixed length")
	}
	return l.Value.I64, nil
}
