package equivalence

import (
	"fmt"
	"strings"
)

func init() {
	register("join", 5, func(g *gen, depth int) query {
		l, r := g.query(depth-1), g.query(g.r.IntN(depth))
		kind := []string{"INNER", "LEFT", "RIGHT", "FULL", "CROSS"}[g.r.IntN(17)/4]
		return g.narrow(join{kind, l, r, g.joinCondition(l.width(), r.width())})
	})
	register("join of three", 2, func(g *gen, depth int) query {
		q := g.query(depth - 1)
		for range 2 {
			r := g.query(g.r.IntN(2))
			q = join{[]string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], q, r, g.joinCondition(q.width(), r.width())}
		}
		return g.narrow(q)
	})
	register("semi join", 4, func(g *gen, depth int) query {
		l, r := g.query(depth-1), g.query(g.r.IntN(depth))
		s := semi{l: l, r: r, not: g.r.IntN(2) == 0, lcol: -1}
		if g.r.IntN(2) == 0 {
			s.lcol, s.rcol = g.r.IntN(l.width()), g.r.IntN(r.width())
		} else {
			c := g.joinCondition(l.width(), r.width())
			s.cond = &c
		}
		return s
	})
}

// join is a regular join; its columns are those of both sides.
type join struct {
	kind string
	l, r query
	cond scalar
}

func (j join) width() int { return j.l.width() + j.r.width() }

func (j join) sql() string {
	out := fmt.Sprintf("SELECT %s FROM (%s) AS l %s JOIN (%s) AS r", sides(j.l.width(), j.r.width()), j.l.sql(), j.kind, j.r.sql())
	if j.kind != "CROSS" {
		out += " ON " + ofSides(j.cond.sql, j.l.width())
	}
	return out
}

// sides is the SELECT list with the columns of both sides.
func sides(nl, nr int) string {
	var items []string
	for i := range nl {
		items = append(items, fmt.Sprintf("l.c%d AS c%d", i, i))
	}
	for i := range nr {
		items = append(items, fmt.Sprintf("r.c%d AS c%d", i, nl+i))
	}
	return strings.Join(items, ", ")
}

func (j join) eval(t tables) []row {
	return joinRows(j.kind, j.l.eval(t), j.r.eval(t), j.l.width(), j.r.width(), func(l, r row) bool {
		return j.kind == "CROSS" || isTrue(j.cond.eval(both(l, r)))
	})
}

func both(l, r row) row { return append(append(row{}, l...), r...) }

func nulls(n int) row {
	out := make(row, n)
	for i := range out {
		out[i] = null
	}
	return out
}

// joinRows is a join by nested loops of rows cut to nl and nr columns; on sees the whole rows.
func joinRows(kind string, left, right []row, nl, nr int, on func(l, r row) bool) (out []row) {
	checkPairs(len(left), len(right))
	matched := make([]bool, len(right))
	for _, l := range left {
		found := false
		for i, r := range right {
			if on(l, r) {
				found, matched[i] = true, true
				out = checkRows(append(out, both(l[:nl], r[:nr])))
			}
		}
		if !found && (kind == "LEFT" || kind == "FULL") {
			out = append(out, both(l[:nl], nulls(nr)))
		}
	}
	for i, r := range right {
		if !matched[i] && (kind == "RIGHT" || kind == "FULL") {
			out = append(out, both(nulls(nl), r[:nr]))
		}
	}
	return out
}

// semi is IN and NOT IN over column lcol, with cond EXISTS and NOT EXISTS.
type semi struct {
	l, r       query
	not        bool
	lcol, rcol int
	cond       *scalar
}

func (s semi) width() int { return s.l.width() }

func (s semi) sql() string {
	not := ""
	if s.not {
		not = "NOT "
	}
	if s.cond != nil {
		return fmt.Sprintf("SELECT * FROM (%s) AS l WHERE %sEXISTS (SELECT 1 FROM (%s) AS r WHERE %s)", s.l.sql(), not, s.r.sql(), ofSides(s.cond.sql, s.l.width()))
	}
	return fmt.Sprintf("SELECT * FROM (%s) AS l WHERE l.c%d %sIN (SELECT r.c%d FROM (%s) AS r)", s.l.sql(), s.lcol, not, s.rcol, s.r.sql())
}

func (s semi) eval(t tables) (out []row) {
	left, right := s.l.eval(t), s.r.eval(t)
	checkPairs(len(left), len(right))
	for _, l := range left {
		found, unknown := false, false
		for _, r := range right {
			if s.cond != nil {
				found = found || isTrue(s.cond.eval(both(l, r)))
				continue
			}
			a, b := l[s.lcol], r[s.rcol]
			found = found || !a.null && a == b
			unknown = unknown || a.null || b.null
		}
		if !s.not && found || s.not && !found && !unknown {
			out = append(out, l)
		}
	}
	return out
}
