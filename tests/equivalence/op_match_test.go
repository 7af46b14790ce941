package equivalence

import (
	"fmt"
	"slices"
	"strings"
)

func init() {
	registerLeaf("match", 4, func(g *gen, _ int) query {
		g.unique = true
		m := match{in: g.timed("e", true), partition: g.r.IntN(3) - 1, first: g.matchTest("a", false), middle: g.matchTest("b", true), last: g.matchTest("c", true)}
		m.quantifier = quantifiers[g.r.IntN(len(quantifiers))]
		m.skip = []string{"", "PAST LAST ROW", "TO NEXT ROW", "TO LAST c"}[g.r.IntN(4)]
		if g.r.IntN(4) == 0 {
			m.in = g.filtered("p")
		} else if g.r.IntN(3) == 0 {
			m.within = 1 + g.r.Int64N(20)
		}
		return m
	})
}

// match is MATCH_RECOGNIZE (a b… c): the end of a match says which rows are of which variable.
type match struct {
	in                  timed
	partition           int // column, -1 = none
	first, middle, last matchTest
	quantifier          quantifier
	skip                string
	within              int64 // seconds, 0 = any
}

// quantifier is how many rows b has.
type quantifier struct {
	sql    string
	lo, hi int
	// exclusive: a row that b takes is never c's.
	exclusive bool
}

// quantifiers has no reluctant ones: Flink, and so the engine (tests/flink, match/held*), holds a match back while one that
// begins earlier may still end, and then does not always take the shortest. The plain evaluation does not follow that.
var quantifiers = []quantifier{
	{"", 1, 1, false}, {"?", 0, 1, false}, {"+", 1, 1 << 30, true}, {"*", 0, 1 << 30, true}, {"{2}", 2, 2, false}, {"{1,3}", 1, 3, true}, {"{2,}", 2, 1 << 30, true},
}

// matchTest is the condition of a variable: of its own row and the first one of the match.
type matchTest struct {
	sql  string
	test func(first, own row) bool
}

func (g *gen) matchTest(variable string, others bool) matchTest {
	col, k := g.r.IntN(2), constant(g.r.Int64N(5))
	op := []string{"=", "<", ">=", "<>"}[g.r.IntN(4)]
	holds := func(x, y value) bool {
		return !x.null && !y.null && (op == "=" && x == y || op == "<" && x.v < y.v || op == ">=" && x.v >= y.v || op == "<>" && x != y)
	}
	if g.r.IntN(6) == 0 {
		return matchTest{"", func(_, _ row) bool { return true }}
	}
	if own := fmt.Sprintf("%s.c%d %s ", variable, col, op); others && g.r.IntN(2) == 0 {
		other := g.r.IntN(2)
		return matchTest{own + fmt.Sprintf("a.c%d", other), func(first, r row) bool { return holds(r[col], first[other]) }}
	} else {
		return matchTest{own + k.sql, func(_, r row) bool { return holds(r[col], k.eval(nil)) }}
	}
}

func (m match) width() int { return 7 }

func (m match) sql() string {
	by, key := "", "a.c1"
	if m.partition >= 0 {
		by = fmt.Sprintf("PARTITION BY c%d ", m.partition)
		key = fmt.Sprintf("a.c%d", m.partition)
	}
	skip, within := "", ""
	if m.skip != "" {
		skip = "AFTER MATCH SKIP " + m.skip + " "
	}
	if m.within > 0 {
		within = fmt.Sprintf(" WITHIN INTERVAL '%d' SECOND", m.within)
	}
	var define []string
	for i, t := range []matchTest{m.first, m.middle, m.last} {
		if t.sql != "" {
			define = append(define, "abc"[i:i+1]+" AS "+t.sql)
		}
	}
	if define == nil {
		define = []string{"a AS TRUE"}
	}
	return fmt.Sprintf(`SELECT m0 AS c0, m1 AS c1, m2 AS c2, m3 AS c3, m4 AS c4, m5 AS c5, m6 AS c6 FROM (%s) MATCH_RECOGNIZE (%sORDER BY ts
  MEASURES %s AS m0, a.c2 AS m1, c.c2 AS m2, COUNT(b.c2) AS m3, SUM(b.c1) AS m4, LAST(b.c0) AS m5, FIRST(b.c2) AS m6
  %sPATTERN (a b%s c)%s DEFINE %s)`, m.in.sql(), by, key, skip, m.quantifier.sql, within, strings.Join(define, ", "))
}

func (m match) eval(t tables) (out []row) {
	by, key := []int{}, 1
	if m.partition >= 0 {
		by, key = []int{m.partition}, m.partition
	}
	for _, rows := range partitions(m.in.eval(t), by) {
		slices.SortFunc(rows, func(a, b row) int { return int(a[2].v - b[2].v) })
		for start := 0; start < len(rows); {
			end, open := m.find(rows, start)
			if open {
				break // what comes later waits for it, for ever
			}
			if end < 0 {
				start++
				continue
			}
			b := rows[start+1 : end]
			o := row{rows[start][key], rows[start][2], rows[end][2], {v: int64(len(b))}, call{fn: "SUM", col: 1}.eval(b), null, null}
			if len(b) > 0 {
				o[5], o[6] = b[len(b)-1][0], b[0][2]
			}
			out = append(out, o)
			switch m.skip {
			case "PAST LAST ROW":
				start = end + 1
			case "TO LAST c":
				start = end
			default:
				start++
			}
		}
	}
	return out
}

// find is the end of the match that begins at start, -1 without one; open if it could still come.
func (m match) find(rows []row, start int) (end int, open bool) {
	a := rows[start]
	if !m.first.test(a, a) {
		return -1, false
	}
	for i := start + 1; i < len(rows); i++ {
		n, r := i-start-1, rows[i] // b has n rows so far
		if m.within > 0 && r[2].v-a[2].v >= m.within {
			return -1, false
		}
		isB := m.middle.test(a, r)
		if n >= m.quantifier.lo && m.last.test(a, r) && !(m.quantifier.exclusive && isB) {
			return i, false
		}
		if !isB || n >= m.quantifier.hi {
			return -1, false
		}
	}
	return -1, m.within == 0
}
