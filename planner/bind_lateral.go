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
		return nil, nil, diag.New(diag.Semantic, r.X.Position(), "UNNEST needs an ARRAY, MAP or MULTISET, this has type %s", x.Type().WithNull(true))
	}
	n := &Unnest{In: l, Arg: x, Left: left, Ordinal: r.Ordinality}
	for _, c := range cols {
		n.Entry = append(n.Entry, Field{Name: c.Name, Type: c.Type.WithNull(c.Type.Nullable || left)})
	}
	if r.Ordinality {
		n.Entry = append(n.Entry, Field{Name: "ORDINALITY", Type: types.IntType.WithNull(left)})
	}
	name := "" // without an alias the columns have no table
	if r.Alias.Name != nil {
		name = r.Alias.Name.Text
	}
	if names := r.Alias.Columns; names != nil {
		if len(names) != len(n.Entry) {
			return nil, nil, diag.New(diag.Semantic, names[0].Pos, "the alias of UNNEST names %d columns, an entry has %d", len(names), len(n.Entry)).
				WithDetail("columns of an entry: %s", strings.Join(fieldNames(n.Entry), ", "))
		}
		for i, c := range names {
			n.Entry[i].Name = c.Text
		}
	}
	s := &scope{cols: append(ls.cols[:len(ls.cols):len(ls.cols)], scopeOf(name, n.Entry).cols...)}
	return n, s, nil
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
	j := &Join{L: l, R: q.n, Kind: InnerJoin, Cond: q.o.join(q.on, width)}
	if left {
		j.Kind = LeftJoin
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
