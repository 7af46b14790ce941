package planner

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// insert binds INSERT INTO: the query's columns by position, cast to the table's.
func (b *binder) insert(st *sql.Insert) (*Sink, error) {
	t, err := b.p.cat.Table(st.Target)
	if err != nil {
		return nil, err
	}
	if t, err = b.hinted(t, st.Hints); err != nil {
		return nil, err
	}
	if st.Overwrite {
		return nil, diag.New(diag.Unsupported, st.Pos, "INSERT OVERWRITE is not supported").
			WithDetail("a running job only adds to or updates a table").WithHint("write INSERT INTO; empty the table first where needed")
	}
	t, followed, err := b.follow(t, st.Target.Position())
	if err != nil {
		return nil, err
	}
	target, err := b.p.sink(t, st.Target.Position())
	if err != nil {
		return nil, err
	}
	target.Followed = followed
	if st.Deduplicate {
		target.Conflict = st.ConflictPos
	}
	n, err := b.query(st.Query)
	if err != nil {
		return nil, err
	}
	cols, err := insertColumns(st, t)
	if err != nil {
		return nil, err
	}
	return b.fitColumns(st, target, n, cols)
}

// sink resolves t for writing.
func (p *Planner) sink(t *catalog.Table, pos diag.Pos) (*sinkTarget, error) {
	c, err := p.connector(t, pos)
	if err != nil {
		return nil, err
	}
	if c.NewSink == nil || c.SinkModes == nil {
		return nil, tableError("sink", t, pos, diag.New(diag.Semantic, pos, "connector '%s' cannot be written, only read", c.Name).
			WithHint("write into a table with another connector, such as 'print' or 'kafka'"))
	}
	if err := checkPromise(t, c, pos); err != nil {
		return nil, err
	}
	if c.Check != nil {
		if err := c.Check(t, connectors.UseSink); err != nil {
			return nil, tableError("sink", t, pos, err)
		}
	}
	if err := checkMetadata(t, c, connectors.UseSink); err != nil {
		return nil, tableError("sink", t, pos, err)
	}
	target := &sinkTarget{Table: t, Connector: c, ID: t.Name, Pos: sql.At(pos)}
	all := t.Schema()
	keep := t.Persisted()
	target.Columns = selectColumns(all, keep)
	if v, ok := t.Options.Get("sink.parallelism"); ok {
		n, err := strconv.Atoi(strings.TrimSpace(v))
		if err != nil || n < 1 || n > maxParallelism {
			return nil, diag.New(diag.Config, optionPos(t, "sink.parallelism", pos), "table %s: option 'sink.parallelism': '%s' is not valid", t.Name, v).
				WithDetail("a number from 1 to %d is expected", maxParallelism)
		}
		target.Parallel = n
	}
	return target, nil
}

// insertColumns maps each persisted column of t to the query column that fills it (-1 = none, -2-i = partition value i).
func insertColumns(st *sql.Insert, t *catalog.Table) ([]int, error) {
	persisted := t.Persisted()
	out := make([]int, len(persisted))
	for i := range out {
		out[i] = -1
	}
	at := func(n sql.Name) (int, error) {
		for i, p := range persisted {
			if t.Columns[p].Name == n.Text {
				return i, nil
			}
		}
		return 0, notInsertable(t, n)
	}
	static := map[int]bool{}
	for i, p := range st.Partition {
		if err := checkPartition(t, p); err != nil {
			return nil, err
		}
		j, err := at(p.Column)
		if err != nil {
			return nil, err
		}
		if p.Value != nil {
			out[j], static[j] = -2-i, true
		}
	}
	if st.Columns == nil {
		next := 0
		for i := range out {
			if !static[i] {
				out[i] = next
				next++
			}
		}
		return out, nil
	}
	for i, path := range st.Columns {
		if len(path) != 1 {
			return nil, diag.New(diag.Unsupported, path.Position(), "inserting into the nested field %s is not supported", path.Plain()).
				WithHint("insert the whole row: ROW(...)")
		}
		j, err := at(path[0])
		if err != nil {
			return nil, err
		}
		if out[j] != -1 {
			return nil, diag.New(diag.Semantic, path.Position(), "column %s is given twice", path.Last()).WithHint("name each column once")
		}
		out[j] = i
	}
	return out, nil
}

func notInsertable(t *catalog.Table, n sql.Name) error {
	if c := t.Column(n.Text); c != nil {
		kind := "a computed column"
		if c.Kind == catalog.Metadata {
			kind = "a VIRTUAL metadata column"
		}
		return diag.New(diag.Semantic, n.Pos, "column %s of table %s cannot be inserted: it is %s", n.Text, t.Name, kind).
			WithHint("leave it out of the column list")
	}
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	e := diag.New(diag.Semantic, n.Pos, "column %s of table %s does not exist", n.Text, t.Name).WithDetail("columns: %s", strings.Join(names, ", "))
	e.WithHint("name a column of the table")
	if near := diag.Nearest(n.Text, names); near != "" {
		e.WithHint("did you mean %s?", near)
	}
	return e
}

func checkPartition(t *catalog.Table, p sql.PartitionSpec) error {
	if t.Connector() != "filesystem" || len(t.Partitions) == 0 {
		return diag.New(diag.Semantic, p.Column.Pos, "table %s is not partitioned", t.Name).
			WithDetail("PARTITION (...) is for filesystem tables with PARTITIONED BY").
			WithHint("add the value to the query's columns instead")
	}
	for _, c := range t.Partitions {
		if c == p.Column.Text {
			return nil
		}
	}
	return diag.New(diag.Semantic, p.Column.Pos, "%s is not a partition column of table %s", p.Column.Text, t.Name).
		WithDetail("partition columns: %s", strings.Join(t.Partitions, ", ")).WithHint("write PARTITION (%s = 'value')", t.Partitions[0])
}

// fitColumns projects the query onto the table's columns.
func (b *binder) fitColumns(st *sql.Insert, target *sinkTarget, n Node, from []int) (*Sink, error) {
	in := n.Fields()
	t := target.Table
	given := 0
	for _, f := range from {
		if f >= 0 {
			given++
		}
	}
	if st.Columns != nil {
		given = len(st.Columns)
	}
	if given != len(in) {
		return nil, columnCount(st, target, in, given)
	}
	target.Given = make([]types.Type, len(from))
	for i, c := range target.Columns.Columns {
		target.Given[i] = c.Type
		if from[i] >= 0 {
			target.Given[i] = in[from[i]].Type
		}
	}
	if v, ok := n.(*Values); ok {
		n = typeValues(v, from, target)
		in = n.Fields()
	}
	p := &Project{In: n}
	for i, c := range target.Columns.Columns {
		var x expr.Expr
		var err error
		switch f := from[i]; {
		case f >= 0:
			x = col(in, f)
		case f <= -2:
			if x, err = literal(st.Partition[-2-f].Value); err == nil {
				x, err = expr.NewCast(x, c.Type, false)
			}
		case !c.Type.Nullable:
			return nil, diag.New(diag.Semantic, st.Target.Position(), "column %s of table %s is NOT NULL and gets no value", c.Name, t.Name).
				WithHint("add it to the column list and the query")
		default:
			x, err = expr.NewCast(expr.NewNullLiteral(), c.Type, false)
		}
		if err == nil {
			x, err = expr.SinkCast(x, c.Type)
		}
		if err != nil {
			var e *diag.Error
			if asDiag(err, &e) {
				name := c.Name
				if from[i] >= 0 {
					name += fmt.Sprintf(" (query column %d, %s)", from[i]+1, in[from[i]].Name)
				}
				e.Message = fmt.Sprintf("column %s of table %s: %s", name, t.Name, e.Message)
			}
			return nil, diag.At(err, st.Query.Position())
		}
		p.Exprs, p.Names = append(p.Exprs, x), append(p.Names, c.Name)
	}
	return &Sink{In: p, Target: target}, nil
}

// typeValues gives the constants of INSERT ... VALUES the types of their columns one by one, where that is possible: NULL
// has no type of its own, and texts of different lengths need no common one.
func typeValues(v *Values, from []int, target *sinkTarget) Node {
	out := &Values{Rows: make([][]expr.Expr, len(v.Rows)), Schema: append([]Field(nil), v.Schema...)}
	for r, row := range v.Rows {
		out.Rows[r] = append([]expr.Expr(nil), row...)
	}
	for i, f := range from {
		if f < 0 {
			continue
		}
		t := target.Columns.Columns[i].Type
		cells, nullable := make([]expr.Expr, len(v.Rows)), false
		for r, row := range v.Rows {
			x, err := expr.SinkCast(row[f], t)
			if err != nil {
				cells = nil // the projection above names the column and the types
				break
			}
			cells[r], nullable = x, nullable || x.Type().Nullable
		}
		if cells == nil {
			continue
		}
		for r := range cells {
			out.Rows[r][f] = cells[r]
		}
		out.Schema[f].Type = t.WithNull(nullable)
	}
	return out
}

func columnCount(st *sql.Insert, target *sinkTarget, in []Field, want int) error {
	list := func(names []string, text func(i int) string) string {
		out := make([]string, len(names))
		for i, n := range names {
			out[i] = n + " " + text(i)
		}
		return strings.Join(out, ", ")
	}
	e := diag.New(diag.Semantic, st.Query.Position(), "the query has %s, table %s takes %d", plural(len(in), "column"), target.Table.Name, want)
	e.WithDetail("query: [%s]; table: [%s]", list(fieldNames(in), func(i int) string { return in[i].Type.String() }),
		list(target.Columns.Names(), func(i int) string { return target.Columns.Columns[i].Type.String() }))
	return e.WithHint("name the columns the query fills: INSERT INTO %s (a, b) SELECT ...", target.Table.Name)
}
