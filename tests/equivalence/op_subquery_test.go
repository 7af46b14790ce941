package equivalence

import "fmt"

func init() {
	register("scalar subquery", 2, func(g *gen, depth int) query {
		l, r := g.query(depth-1), g.query(g.r.IntN(depth))
		s := scalarQuery{l: l, r: r, call: randomCalls(g.r, r.width())[0]}
		s.call.filter = nil
		if s.call.fn == "COLLECT" { // of no rows NULL, as Flink's join gives it, not the empty multiset
			s.call.fn = "SUM"
		}
		if g.r.IntN(3) == 0 {
			s.call.fn, s.call.distinct = "MAX", false // never 0 of no rows
			return s
		}
		c := binary("=", column(g.r.IntN(l.width())), column(l.width()+g.r.IntN(r.width())), func(x, y int64) value { return truth(x == y) })
		s.cond = &c
		if g.r.IntN(4) == 0 {
			s.orElse = 1 + g.r.Int64N(9)
		}
		return s
	})
	register("unnest", 1, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		u := unnest{in: in, ordinal: g.r.IntN(2) == 0}
		for range 1 + g.r.IntN(3) {
			u.elems = append(u.elems, randomExpr(g.r, in.width(), 1))
		}
		return g.narrow(u)
	})
}

// scalarQuery adds an aggregate of r, with cond of its rows that belong to the row of l, as the last column.
type scalarQuery struct {
	l, r query
	call call
	cond *scalar
	// orElse, if not 0, is the value in place of NULL.
	orElse int64
}

func (s scalarQuery) width() int { return s.l.width() + 1 }

func (s scalarQuery) sql() string {
	where := ""
	if s.cond != nil {
		where = " WHERE " + ofSides(s.cond.sql, s.l.width())
	}
	agg := ofSides(s.call.sql(), 0)
	if s.orElse > 0 {
		agg = fmt.Sprintf("COALESCE(%s, %d) + 1", agg, s.orElse)
	}
	return fmt.Sprintf("SELECT l.*, (SELECT %s FROM (%s) AS r%s) AS c%d FROM (%s) AS l", agg, s.r.sql(), where, s.l.width(), s.l.sql())
}

func (s scalarQuery) eval(t tables) (out []row) {
	left, right := s.l.eval(t), s.r.eval(t)
	checkPairs(len(left), len(right))
	for _, l := range left {
		var rows []row
		for _, r := range right {
			if s.cond == nil || isTrue(s.cond.eval(both(l, r))) {
				rows = append(rows, r)
			}
		}
		v := s.call.eval(rows)
		if s.orElse > 0 {
			if v.null {
				v = value{v: s.orElse}
			}
			v.v++
		}
		out = append(out, append(append(row{}, l...), v))
	}
	return out
}

// unnest adds a row per element of an array of expressions, with ordinal also its number.
type unnest struct {
	in      query
	elems   []scalar
	ordinal bool
}

func (u unnest) width() int {
	if u.ordinal {
		return u.in.width() + 2
	}
	return u.in.width() + 1
}

func (u unnest) sql() string {
	list := ""
	for i, e := range u.elems {
		if i > 0 {
			list += ", "
		}
		list += ofSides(e.sql, u.in.width())
	}
	n, cols := u.in.width(), "l.*, x.c%d"
	names := fmt.Sprintf("c%d", n)
	if cols = fmt.Sprintf(cols, n); u.ordinal {
		names += ", o"
		cols += fmt.Sprintf(", CAST(x.o AS BIGINT) AS c%d", n+1)
		return fmt.Sprintf("SELECT %s FROM (%s) AS l CROSS JOIN UNNEST(ARRAY[%s]) WITH ORDINALITY AS x(%s)", cols, u.in.sql(), list, names)
	}
	return fmt.Sprintf("SELECT %s FROM (%s) AS l CROSS JOIN UNNEST(ARRAY[%s]) AS x(%s)", cols, u.in.sql(), list, names)
}

func (u unnest) eval(t tables) (out []row) {
	for _, r := range u.in.eval(t) {
		for i, e := range u.elems {
			o := append(append(row{}, r...), e.eval(r))
			if u.ordinal {
				o = append(o, value{v: int64(i) + 1})
			}
			out = append(out, o)
		}
	}
	return checkRows(out)
}
