package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// hasQuery reports a subquery in e.
func hasQuery(e sql.Expr) bool {
	found := false
	walkSQL(e, func(x sql.Expr) bool {
		switch x := x.(type) {
		case *sql.Subquery, *sql.Exists, *sql.Quantified:
			found = true
		case *sql.In:
			found = found || x.Query != nil
		}
		return !found
	})
	return found
}

// onQuery binds a join whose condition has subqueries; s is the scope of both sides without the NULLs of missing rows, and
// left the number of the left side's columns. Of an inner join such conditions are those of a WHERE. Of an outer join they
// are values, which the side that they depend on gets as columns.
func (b *binder) onQuery(j *Join, s *scope, on sql.Expr, left int) (Node, *scope, error) {
	if j.Kind == InnerJoin {
		var queries []sql.Expr
		for _, c := range sqlConjuncts(on) {
			if hasQuery(c) {
				queries = append(queries, c)
				continue
			}
			x, err := b.condition(s, c, "ON")
			if err != nil {
				return nil, nil, err
			}
			if j.Cond != nil {
				x = expr.And(j.Cond, x)
			}
			j.Cond = x
		}
		var n Node = j
		for _, c := range queries {
			var err error
			if n, err = b.where(n, s, c); err != nil {
				return nil, nil, err
			}
		}
		return n, rescoped(s, n), nil
	}
	saved := b.subs
	subs := &subqueries{}
	b.subs = subs
	cond, err := b.condition(s, on, "ON")
	b.subs = saved
	if err != nil {
		return nil, nil, err
	}
	n, err := subs.attachSides(j, cond, left, on.Position())
	if err != nil {
		return nil, nil, err
	}
	return n, rescoped(s, n), nil
}

// rescoped is s over the columns of n.
func rescoped(s *scope, n Node) *scope {
	out := &scope{cols: slices.Clone(s.cols)}
	for i, f := range n.Fields() {
		out.cols[i].field.Type, out.cols[i].field.Time = f.Type, f.Time
	}
	return out
}

// attachSides joins the subqueries to the sides of j and makes cond, which has their values, its condition. Those that
// depend on neither side go to the right one.
func (q *subqueries) attachSides(j *Join, cond expr.Expr, left int, pos diag.Pos) (Node, error) {
	var sides [2]subqueries
	side, place := make([]int, len(q.joins)), make([]int, len(q.joins))
	for i, s := range q.joins {
		l, r := s.dependsOn(left)
		if l && r {
			return nil, diag.New(diag.Unsupported, pos, "a subquery in ON of an outer join that depends on both sides is not supported").
				WithHint("compute it in a query over one side, and join that: LEFT JOIN (SELECT t.*, (SELECT ...) AS x FROM t) AS t ON ...")
		}
		if side[i] = 1; l {
			side[i] = 0
		} else {
			s.o.refs = slices.Clone(s.o.refs)
			for c, x := range s.o.refs {
				s.o.refs[c] = shiftColumns(x, left, -left)
			}
		}
		of := &sides[side[i]]
		place[i] = len(of.joins)
		of.joins = append(of.joins, s)
	}
	var err error
	if j.L, err = sides[0].attach(j.L); err != nil {
		return nil, err
	}
	right := len(j.R.Fields())
	if j.R, err = sides[1].attach(j.R); err != nil {
		return nil, err
	}
	lw := len(j.L.Fields())
	j.Cond = expr.Rewrite(cond, func(x expr.Expr) expr.Expr {
		c, ok := x.(*expr.Column)
		at := 0
		switch {
		case !ok || c.Index < left || c.Index >= outerBase:
			return x
		case c.Index < subBase:
			at = c.Index - left + lw
		default:
			v := q.values[c.Index-subBase]
			at = sides[side[v.join]].at[place[v.join]] + v.column
			if side[v.join] == 1 {
				at += lw
			}
		}
		return &expr.Column{Index: at, Name: c.Name, T: c.T}
	})
	return take(j, upTo(0, left), upTo(lw, lw+right)), nil
}

// dependsOn reports whether s reads columns of the left and of the right side of a join; the value of another subquery
// counts as both.
func (s subquery) dependsOn(left int) (l, r bool) {
	for _, x := range s.o.refs {
		for _, c := range expr.ColumnsOf(x) {
			l = l || c < left || c >= subBase && c < outerBase
			r = r || c >= left && c < outerBase
		}
	}
	return l, r
}
