package equivalence

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// value is a nullable BIGINT, the only type of the queries: types are what tests/slt is for.
type value struct {
	null bool
	v    int64
}

type row []value

// String is the row as keys and messages show it.
func (r row) String() string {
	cells := make([]string, len(r))
	for i, c := range r {
		cells[i] = "NULL"
		if !c.null {
			cells[i] = fmt.Sprint(c.v)
		}
	}
	return strings.Join(cells, ", ")
}

// tables are the final input, by table.
type tables map[string][]row

// batchMode is among tables when the query runs in batch mode.
const batchMode = "batch mode"

// query is a node of a query: how SQL says it, and what it means.
type query interface {
	width() int
	sql() string // a SELECT with columns c0, c1, …
	eval(tables) []row
}

// scalar is an expression over a row; a condition is 1, 0 or NULL.
type scalar struct {
	sql  string
	eval func(row) value
}

func column(i int) scalar {
	return scalar{fmt.Sprintf("c%d", i), func(r row) value { return r[i] }}
}

var null = value{null: true}

func truth(b bool) value {
	if b {
		return value{v: 1}
	}
	return value{}
}

// binary applies f where both sides are not NULL.
func binary(op string, a, b scalar, f func(x, y int64) value) scalar {
	return scalar{"(" + a.sql + " " + op + " " + b.sql + ")", func(r row) value {
		x, y := a.eval(r), b.eval(r)
		if x.null || y.null {
			return null
		}
		return f(x.v, y.v)
	}}
}

func constant(n int64) scalar {
	return scalar{fmt.Sprintf("CAST(%d AS BIGINT)", n), func(row) value { return value{v: n} }}
}

// randomExpr is a BIGINT expression over n columns.
func randomExpr(r *rand.Rand, n, depth int) scalar {
	c := column(r.IntN(n))
	if depth == 0 {
		return c
	}
	a, k := randomExpr(r, n, depth-1), constant(r.Int64N(5))
	switch r.IntN(8) {
	case 0:
		return binary("+", a, c, func(x, y int64) value { return value{v: x + y} })
	case 1:
		return binary("*", a, k, func(x, y int64) value { return value{v: x * y} })
	case 2:
		return binary("-", c, a, func(x, y int64) value { return value{v: x - y} })
	case 3:
		return scalar{"COALESCE(" + a.sql + ", " + k.sql + ")", func(r row) value {
			if v := a.eval(r); !v.null {
				return v
			}
			return k.eval(r)
		}}
	case 4:
		p := randomCondition(r, n, 1)
		return scalar{"CASE WHEN " + p.sql + " THEN " + a.sql + " ELSE " + c.sql + " END", func(r row) value {
			if v := p.eval(r); !v.null && v.v == 1 {
				return a.eval(r)
			}
			return c.eval(r)
		}}
	case 5:
		return scalar{"NULLIF(" + a.sql + ", " + k.sql + ")", func(r row) value {
			if v := a.eval(r); v != k.eval(r) {
				return v
			}
			return null
		}}
	case 6:
		return binary("%", a, constant(3), func(x, y int64) value { return value{v: x % y} })
	}
	return c
}

func randomCondition(r *rand.Rand, n, depth int) scalar {
	a, b := column(r.IntN(n)), column(r.IntN(n))
	if r.IntN(2) == 0 {
		b = constant(r.Int64N(5))
	}
	if depth > 0 && r.IntN(2) == 0 {
		p, q := randomCondition(r, n, depth-1), randomCondition(r, n, depth-1)
		if r.IntN(2) == 0 {
			return logic("AND", p, q, 0)
		}
		return logic("OR", p, q, 1)
	}
	switch r.IntN(6) {
	case 0:
		return binary("=", a, b, func(x, y int64) value { return truth(x == y) })
	case 1:
		return binary("<", a, b, func(x, y int64) value { return truth(x < y) })
	case 2:
		return binary(">=", a, b, func(x, y int64) value { return truth(x >= y) })
	case 3:
		return scalar{"(" + a.sql + " IS NULL)", func(r row) value { return truth(a.eval(r).null) }}
	case 4:
		p := binary("<>", a, b, func(x, y int64) value { return truth(x != y) })
		return scalar{"(NOT " + p.sql + ")", func(r row) value {
			v := p.eval(r)
			if v.null {
				return v
			}
			return truth(v.v == 0)
		}}
	}
	return scalar{"(" + a.sql + " IS DISTINCT FROM " + b.sql + ")", func(r row) value { return truth(a.eval(r) != b.eval(r)) }}
}

// logic is AND (decided by 0) or OR (decided by 1).
func logic(op string, p, q scalar, decides int64) scalar {
	return scalar{"(" + p.sql + " " + op + " " + q.sql + ")", func(r row) value {
		x, y := p.eval(r), q.eval(r)
		switch {
		case !x.null && x.v == decides || !y.null && y.v == decides:
			return value{v: decides}
		case x.null || y.null:
			return null
		}
		return value{v: 1 - decides}
	}}
}

// scan reads a table; all have three columns.
type scan struct{ table string }

func (s scan) width() int  { return 3 }
func (s scan) sql() string { return "SELECT c0, c1, c2 FROM " + s.table }
func (s scan) eval(t tables) (out []row) {
	for _, r := range t[s.table] {
		out = append(out, r[:3:3]) // late rows are longer
	}
	return out
}

type filter struct {
	in   query
	cond scalar
}

func (f filter) width() int { return f.in.width() }
func (f filter) sql() string {
	return "SELECT * FROM (" + f.in.sql() + ") WHERE " + f.cond.sql
}
func (f filter) eval(t tables) (out []row) {
	for _, r := range f.in.eval(t) {
		if v := f.cond.eval(r); !v.null && v.v == 1 {
			out = append(out, r)
		}
	}
	return out
}

type project struct {
	in    query
	exprs []scalar
}

func (p project) width() int { return len(p.exprs) }
func (p project) sql() string {
	items := make([]string, len(p.exprs))
	for i, x := range p.exprs {
		items[i] = fmt.Sprintf("%s AS c%d", x.sql, i)
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + p.in.sql() + ")"
}
func (p project) eval(t tables) (out []row) {
	for _, r := range p.in.eval(t) {
		o := make(row, len(p.exprs))
		for i, x := range p.exprs {
			o[i] = x.eval(r)
		}
		out = append(out, o)
	}
	return out
}

type union struct{ a, b query }

func (u union) width() int          { return u.a.width() }
func (u union) sql() string         { return "(" + u.a.sql() + ") UNION ALL (" + u.b.sql() + ")" }
func (u union) eval(t tables) []row { return append(append([]row{}, u.a.eval(t)...), u.b.eval(t)...) }

type distinct struct{ in query }

func (d distinct) width() int  { return d.in.width() }
func (d distinct) sql() string { return "SELECT DISTINCT * FROM (" + d.in.sql() + ")" }
func (d distinct) eval(t tables) (out []row) {
	seen := map[string]bool{}
	for _, r := range d.in.eval(t) {
		if k := r.String(); !seen[k] {
			seen[k] = true
			out = append(out, r)
		}
	}
	return out
}
