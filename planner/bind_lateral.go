package planner

import (
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// isLateral reports an element of FROM that is computed for each row of what stands before it.
func isLateral(r sql.TableRef) bool {
	switch r := r.(type) {
	case *sql.Unnest:
		return true
	case *sql.Derived:
		return r.Lateral
	case *sql.TableFunc:
		return !isWindowFunc(r.Call)
	}
	return false
}

// lateral binds l [LEFT] JOIN r for a lateral r; ls is the scope of l.
func (b *binder) lateral(l Node, ls *scope, r sql.TableRef, left bool) (Node, *scope, error) {
	switch r := r.(type) {
	case *sql.Unnest:
		return b.unnest(l, ls, r, left)
	case *sql.Derived:
		return b.lateralQuery(l, ls, r, left)
	case *sql.TableFunc:
		return b.tableCall(l, ls, r, left)
	}
	return nil, nil, diag.New(diag.Internal, r.Position(), "not a lateral element of FROM")
}

// lateralJoin tells how a join with a lateral right side pads; only joins that keep the left side's rows in order of
// evaluation can be: CROSS, comma, and INNER and LEFT ON TRUE (Flink: Correlate).
func lateralJoin(j *sql.Join) (left bool, err error) {
	switch j.Kind {
	case sql.CrossJoin, sql.CommaJoin:
	case sql.InnerJoin, sql.LeftJoin:
		if _, query := j.R.(*sql.Derived); query && j.On != nil && j.Kind == sql.InnerJoin {
			break
		}
		if l, ok := j.On.(*sql.Literal); !ok || l.Kind != sql.LitBool || l.Text != "TRUE" || j.Using != nil || j.Natural {
			return false, diag.New(diag.Unsupported, j.Pos, "a join with UNNEST or LATERAL takes the condition ON TRUE only").
				WithHint("write JOIN ... ON TRUE, and put the condition into WHERE")
		}
	default:
		return false, diag.New(diag.Unsupported, j.Pos, "%s JOIN with UNNEST or LATERAL is not supported", j.Kind).
			WithDetail("the right side is computed from each row of the left, so no row of it can stand alone").
			WithHint("use CROSS JOIN, or LEFT JOIN ... ON TRUE")
	}
	return j.Kind == sql.LeftJoin, nil
}

// unnest binds UNNEST(collection) [WITH ORDINALITY] over the rows of l.
func (b *binder) unnest(l Node, ls *scope, r *sql.Unnest, left bool) (Node, *scope, error) {
	x, err := b.expr(ls, r.X)
	if err != nil {
		return nil, nil, err
	}
	cols := op.UnnestColumns(x.Type())
	if cols == nil {
		return nil, nil, diag.New(diag.Semantic, r.X.Position(), "UNNEST needs an ARRAY, MAP or MULTISET, this has type %s", x.Type().WithNull(true)).
			WithHint("name a column that holds a collection, or make one: ARRAY[x]")
	}
	n := &Unnest{In: l, Arg: x, Left: left, Ordinal: r.Ordinality}
	for _, c := range cols {
		n.Entry = append(n.Entry, Field{Name: c.Name, Type: c.Type.WithNull(c.Type.Nullable || left)})
	}
	if r.Ordinality {
		n.Entry = append(n.Entry, Field{Name: "ORDINALITY", Type: types.IntType.WithNull(left)})
	}
	s, err := lateralScope(ls, n.Entry, r.Alias, "UNNEST")
	return n, s, err
}

// lateralScope names the columns made for each row and puts them behind those of ls.
func lateralScope(ls *scope, made []Field, a sql.Alias, what string) (*scope, error) {
	name := "" // without an alias the columns have no table
	if a.Name != nil {
		name = a.Name.Text
	}
	if names := a.Columns; names != nil {
		if len(names) != len(made) {
			return nil, diag.New(diag.Semantic, names[0].Pos, "the alias of %s names %s, it has %d", what, plural(len(names), "column"), len(made)).
				WithHint("name every column, or none").
				WithDetail("its columns: %s", strings.Join(fieldNames(made), ", "))
		}
		for i, c := range names {
			made[i].Name = c.Text
		}
	}
	return &scope{cols: append(ls.cols[:len(ls.cols):len(ls.cols)], scopeOf(name, made).cols...)}, nil
}

// tableCall binds a call of a table function, once for each row of l.
func (b *binder) tableCall(l Node, ls *scope, r *sql.TableFunc, left bool) (Node, *scope, error) {
	name := strings.ToUpper(r.Call.Name.Last())
	f := b.p.funcs.LookupTable(name)
	if f == nil || len(r.Call.Name) != 1 {
		return nil, nil, b.unknownTableFunc(r.Call, name)
	}
	if c := r.Call; c.Star || c.Distinct || c.Filter != nil || c.Over != nil || c.Within != nil {
		return nil, nil, diag.New(diag.Semantic, c.Pos, "%s is a table function and takes neither *, DISTINCT, FILTER nor OVER", name).WithHint("%s", f.Usage)
	}
	args, err := b.exprs(ls, r.Call.Args)
	if err != nil {
		return nil, nil, err
	}
	n := &Correlate{In: l, Func: name, Left: left}
	if n.Call, err = f.Bind(&expr.CallSite{Name: name, Args: args, Session: b.session}); err != nil {
		return nil, nil, diag.At(err, r.Call.Pos)
	}
	for _, c := range n.Call.Columns {
		n.Made = append(n.Made, Field{Name: c.Name, Type: c.Type.WithNull(c.Type.Nullable || left)})
	}
	s, err := lateralScope(ls, n.Made, r.Alias, name)
	return n, s, err
}

// readsFile are the functions by which other databases read a file.
var readsFile = map[string]bool{"READ_CSV": true, "READ_CSV_AUTO": true, "READ_JSON": true, "READ_JSON_AUTO": true, "READ_NDJSON": true,
	"READ_PARQUET": true, "PARQUET_SCAN": true, "READ_TEXT": true, "FILE": true}

// flinkTableFuncs say what to write in place of table functions that only Flink has.
var flinkTableFuncs = map[string]string{
	"TO_CHANGELOG":   "INSERT INTO a kafka table WITH ('format' = 'debezium-json'): each message has the kind of the change",
	"FROM_CHANGELOG": "read the topic by a table WITH ('format' = 'debezium-json'), its rows are changes",
	"ML_PREDICT":     "register a Go function that calls the model (TableFunc1), or look results up: JOIN t FOR SYSTEM_TIME AS OF",
	"ML_EVALUATE":    "aggregate predictions and labels: SELECT AVG(ABS(predicted - label)) FROM t",
	"VECTOR_SEARCH":  "register a Go function that asks the store (TableFunc1)",
	"SNAPSHOT":       "join the table as it is now: JOIN t FOR SYSTEM_TIME AS OF",
}

// unknownTableFunc says why name cannot stand in FROM.
func (b *binder) unknownTableFunc(c *sql.Call, name string) error {
	if b.p.funcs.Lookup(name) != nil || expr.IsFlinkAgg(name) {
		return diag.New(diag.Semantic, c.Pos, "%s is not a table function", name).WithDetail("it gives one value, and FROM needs rows").
			WithHint("call it in SELECT")
	}
	if readsFile[name] && len(c.Args) > 0 {
		if l, ok := c.Args[0].(*sql.Literal); ok && l.Kind == sql.LitString {
			return sql.FileError(l.Text, l.Pos)
		}
	}
	if edit, flink := flinkTableFuncs[name]; flink {
		return diag.New(diag.Unsupported, c.Pos, "table function %s is not supported", name).WithDetail("Flink SQL has it, streamsql does not").
			WithHint("%s", edit)
	}
	if name == "GENERATE_SERIES" || name == "RANGE" {
		return diag.New(diag.Semantic, c.Pos, "unknown table function %s", name).
			WithHint("CREATE TABLE n (i BIGINT) WITH ('connector' = 'datagen', 'fields.i.kind' = 'sequence', 'fields.i.start' = '1', 'fields.i.end' = '10')")
	}
	return diag.New(diag.Semantic, c.Pos, "unknown table function %s", name).
		WithHint("TUMBLE, HOP, CUMULATE and SESSION are built in; a Go program registers others (TableFunc1)")
}

// oneRow is what a FROM clause that starts with UNNEST reads: one row without columns.
func oneRow() Node { return &Values{Rows: [][]expr.Expr{{}}} }

// lateralQuery binds LATERAL (query): a join on what the query compares with columns of l.
func (b *binder) lateralQuery(l Node, ls *scope, r *sql.Derived, left bool) (Node, *scope, error) {
	q, err := b.correlated(r.Query, ls)
	if err != nil {
		return nil, nil, err
	}
	width := len(l.Fields())
	mark := -1
	if left && q.empty != nil {
		mark = width + q.mark()
	}
	right, on, err := q.over(l, l, func(e expr.Expr) expr.Expr { return e })
	if err != nil {
		return nil, nil, err
	}
	var j Node = &Join{L: l, R: right, Kind: InnerJoin, Cond: on}
	if left {
		j.(*Join).Kind = LeftJoin
		if j, err = q.filled(j, width, mark); err != nil {
			return nil, nil, err
		}
	}
	// The conditions' own columns stay behind the query's, without a name.
	f := j.Fields()
	rs := scopeOf("", f[width:width+q.o.width])
	if r.Alias.Name != nil {
		rs = scopeOf(r.Alias.Name.Text, f[width:width+q.o.width])
	}
	for i := range rs.cols {
		rs.cols[i].field.Name = q.n.Fields()[i].Name
		if r.Alias.Columns != nil && i < len(r.Alias.Columns) {
			rs.cols[i].field.Name = r.Alias.Columns[i].Text
		}
	}
	if n := len(r.Alias.Columns); n != 0 && n != q.o.width {
		return nil, nil, diag.New(diag.Semantic, r.Alias.Columns[0].Pos, "the alias names %d columns, the query has %d", n, q.o.width)
	}
	return firstColumns(j, width+q.o.width), &scope{cols: append(ls.cols[:len(ls.cols):len(ls.cols)], rs.cols...)}, nil
}

// filled puts the values over no rows where the join n pads the rows of an aggregation, which has one for every row of
// the left side; mark is the column that is NULL there.
func (r subquery) filled(n Node, width, mark int) (Node, error) {
	if r.empty == nil {
		return n, nil
	}
	f := n.Fields()
	p := take(n, upTo(0, len(f))).(*Project)
	for i := range r.empty {
		if !r.fills(i) {
			continue
		}
		x, err := orEmpty(col(f, mark), r.fill(i), p.Exprs[width+i])
		if err != nil {
			return nil, err
		}
		p.Exprs[width+i] = x
	}
	return p, nil
}
