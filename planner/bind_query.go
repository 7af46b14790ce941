package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// query binds a query.
func (b *binder) query(q sql.Query) (Node, error) {
	switch q := q.(type) {
	case *sql.Select:
		return b.selectQuery(q)
	case *sql.Values:
		n, err := b.values(q)
		if err != nil {
			return nil, err
		}
		return b.tail(n, q.Tail, q.Pos)
	case *sql.SetOp:
		return b.setOp(q)
	case *sql.With:
		return b.with(q)
	}
	return nil, diag.New(diag.Internal, q.Position(), "unknown kind of query %T", q)
}

// with binds common table expressions; each sees the ones before it.
func (b *binder) with(q *sql.With) (Node, error) {
	scope := map[string]Node{}
	b.ctes = append(b.ctes, scope)
	defer func() { b.ctes = b.ctes[:len(b.ctes)-1] }()
	for _, c := range q.CTEs {
		if _, twice := scope[c.Name.Text]; twice {
			return nil, diag.New(diag.Semantic, c.Name.Pos, "WITH defines %s twice", c.Name.Text).
				WithHint("give the second query another name")
		}
		n, err := b.query(c.Query)
		if err != nil {
			return nil, err
		}
		if n, err = renameColumns(n, c.Columns, c.Name); err != nil {
			return nil, err
		}
		scope[c.Name.Text] = n
	}
	return b.query(q.Query)
}

// renameColumns gives the columns of n the names of a column list; nil keeps them.
func renameColumns(n Node, names []sql.Name, of sql.Name) (Node, error) {
	if names == nil {
		return n, nil
	}
	in := n.Fields()
	if len(names) != len(in) {
		return nil, diag.New(diag.Semantic, of.Pos, "%s has %s, its query has %s", of.Text, plural(len(names), "column name"), plural(len(in), "column")).
			WithHint("name every column of the query, or leave the list out").
			WithDetail("columns of the query: %s", strings.Join(fieldNames(in), ", "))
	}
	p := &Project{In: n}
	for i, name := range names {
		if slices.Contains(p.Names, name.Text) {
			return nil, diag.New(diag.Semantic, name.Pos, "column %s is listed twice", name.Text).
				WithHint("give each column a name of its own")
		}
		p.Exprs = append(p.Exprs, col(in, i))
		p.Names = append(p.Names, name.Text)
	}
	return p, nil
}

// values binds VALUES: the columns get the common type of their rows.
func (b *binder) values(q *sql.Values) (Node, error) {
	width := len(q.Rows[0])
	n := &Values{Rows: make([][]expr.Expr, len(q.Rows))}
	for r, row := range q.Rows {
		if len(row) != width {
			return nil, diag.New(diag.Semantic, row[0].Position(), "row %d of VALUES has %s, row 1 has %d", r+1, plural(len(row), "column"), width).
				WithHint("give every row as many values; NULL fills a gap")
		}
		x, err := b.exprs(&scope{}, row)
		if err != nil {
			return nil, err
		}
		n.Rows[r] = x
	}
	for c := range width {
		ts := make([]types.Type, len(n.Rows))
		for r := range n.Rows {
			ts[r] = n.Rows[r][c].Type()
		}
		t, err := expr.CommonType(ts)
		if err != nil {
			if ts[0].Kind != types.Null || len(ts) > 1 && !allNull(ts) {
				return nil, diag.At(err, q.Rows[0][c].Position())
			}
			t = types.Type{Kind: types.Null, Nullable: true} // an INSERT gives it the column's type
		}
		for r := range n.Rows {
			if n.Rows[r][c], err = expr.ImplicitCast(n.Rows[r][c], t); err != nil {
				return nil, diag.At(err, q.Rows[r][c].Position())
			}
		}
		n.Schema = append(n.Schema, Field{Name: fmt.Sprintf("EXPR$%d", c), Type: t})
	}
	return n, nil
}

func allNull(ts []types.Type) bool {
	for _, t := range ts {
		if t.Kind != types.Null {
			return false
		}
	}
	return true
}

// castTo converts the columns of n to the types of want, adding a projection only where one is needed.
func castTo(n Node, want []Field) (Node, error) {
	in := n.Fields()
	p := &Project{In: n}
	same := true
	for i, f := range in {
		e, err := expr.ImplicitCast(col(in, i), want[i].Type)
		if err != nil {
			return nil, err
		}
		if _, plain := e.(*expr.Column); !plain {
			same = false
		}
		p.Exprs, p.Names = append(p.Exprs, e), append(p.Names, f.Name)
	}
	if same {
		return n, nil
	}
	return p, nil
}

// distinct groups by all columns.
func distinct(n Node) Node {
	f := n.Fields()
	return &Aggregate{In: n, Keys: upTo(0, len(f)), Distinct: true}
}
