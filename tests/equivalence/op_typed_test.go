package equivalence

import (
	"fmt"
	"slices"
	"strings"
)

// Every operator of the other files over keys, arguments, orders and rows of other types than BIGINT.
func init() {
	register("typed set", 2, func(g *gen, depth int) query {
		by := g.codes(1+g.r.IntN(3), true, false)
		a := encode(g.fit(g.query(depth-1), len(by)), by)
		if g.r.IntN(3) == 0 {
			return decode(distinct{a}, by)
		}
		ops := []string{"UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"}
		return decode(setOp{ops[g.r.IntN(len(ops))], a, encode(g.fit(g.query(g.r.IntN(depth)), len(by)), by)}, by)
	})
	register("typed group", 3, func(g *gen, depth int) query {
		by := append(g.codes(g.r.IntN(3), true, false), g.codes(1+g.r.IntN(2), false, false)...)
		keys := len(by) - 1
		for keys > 0 && (!by[keys-1].group || keys > 2) {
			keys--
		}
		calls, codes := g.typedCalls(by)
		q := group{in: encode(g.fit(g.query(depth-1), len(by)), by), keys: keys, calls: calls}
		return decode(q, append(slices.Clone(by[:keys]), codes...))
	})
	register("typed join", 3, func(g *gen, depth int) query {
		lc, rc := g.codes(1+g.r.IntN(3), false, false), g.codes(1+g.r.IntN(3), false, false)
		a, b := g.r.IntN(len(lc)), g.r.IntN(len(rc))
		lc[a] = g.code(true, true)
		rc[b] = lc[a]
		l, r := encode(g.fit(g.query(depth-1), len(lc)), lc), encode(g.fit(g.query(g.r.IntN(depth)), len(rc)), rc)
		op := []string{"=", "=", "=", "IS NOT DISTINCT FROM"}[g.r.IntN(4)]
		cond := compare(op, a, len(lc)+b)
		if g.r.IntN(4) == 0 {
			cond = logic("AND", cond, compare([]string{"<", ">="}[g.r.IntN(2)], a, len(lc)+b), 0)
		}
		switch g.r.IntN(6) {
		case 0:
			return decode(semi{l: l, r: r, not: g.r.IntN(2) == 0, lcol: a, rcol: b}, lc)
		case 1:
			return decode(semi{l: l, r: r, not: g.r.IntN(2) == 0, lcol: -1, cond: &cond}, lc)
		}
		return decode(join{[]string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l, r, cond}, append(slices.Clone(lc), rc...))
	})
	register("typed top-n", 2, func(g *gen, depth int) query {
		by := g.codes(1+g.r.IntN(3), true, true)
		k := rank{in: encode(g.fit(g.query(depth-1), len(by)), by), order: g.totalOrder(len(by)), lo: 1, hi: 1 + g.r.Int64N(4)}
		if g.r.IntN(2) == 0 {
			k.partition = []int{g.r.IntN(len(by))}
		}
		return decode(k, by)
	})
	register("typed over", 2, func(g *gen, depth int) query {
		by := g.codes(1+g.r.IntN(3), true, true)
		calls, codes := g.typedCalls(by)
		o := over{in: encode(g.fit(g.query(depth-1), len(by)), by), order: g.totalOrder(len(by)), rows: true, numbered: true, lo: unbounded, calls: calls}
		o.partition = g.r.Perm(len(by))[:g.r.IntN(2)]
		return decode(o, append(slices.Clone(by), codes...))
	})
	registerLeaf("typed and timed", 4, typedTimed)
}

// compare is a comparison of two columns whose code keeps order.
func compare(op string, a, b int) scalar {
	x, y := column(a), column(b)
	if op == "IS NOT DISTINCT FROM" {
		return scalar{"(" + x.sql + " " + op + " " + y.sql + ")", func(r row) value { return truth(r[a] == r[b]) }}
	}
	return binary(op, x, y, func(x, y int64) value {
		return truth(op == "=" && x == y || op == "<" && x < y || op == ">=" && x >= y)
	})
}

// typedCalls are aggregate functions that columns of codes have, and the codes of their results.
func (g *gen) typedCalls(by []code) (calls []call, out []code) {
	for range 1 + g.r.IntN(3) {
		c := call{fn: "COUNT(*)", col: g.r.IntN(len(by))}
		code := plain
		switch k := by[c.col]; g.r.IntN(4) {
		case 0:
			if k.group && k.order { // an ARRAY[NULL] is not NULL
				c.fn, c.distinct = "COUNT", g.r.IntN(2) == 0
			}
		case 1, 2:
			if k.order && !strings.Contains(k.to, "BYTES") { // Flink has no MIN of BYTES
				c.fn, code = []string{"MIN", "MAX"}[g.r.IntN(2)], k
			}
		case 3:
			if k.sum {
				c.fn, code = "SUM", k
				c.distinct = g.r.IntN(4) == 0
			}
		}
		if g.r.IntN(4) == 0 && by[c.col].order {
			x := column(c.col)
			c.filter = &scalar{"(" + x.sql + " IS NOT NULL)", func(r row) value { return truth(!x.eval(r).null) }}
		}
		calls, out = append(calls, c), append(out, code)
	}
	return calls, out
}

// typedRows is a table with event time whose first two columns are in codes.
func (g *gen) typedRows(table string, by []code) timed {
	q := encode(project{scan{table}, []scalar{column(0), column(1)}}, by[:2]).(recoded)
	text := fmt.Sprintf("SELECT %s AS c0, %s AS c1, c2, ts FROM (SELECT %s AS c0, %s AS c1, c2, ts FROM %s)",
		fmt.Sprintf(by[0].to, "c0"), fmt.Sprintf(by[1].to, "c1"), q.in.(project).exprs[0].sql, q.in.(project).exprs[1].sql, table)
	return timed{table: table, query: &timedQuery{text: text, rows: func(t tables) (out []row) {
		in := onTime(t[table])
		for i, r := range q.eval(tables{table: in}) {
			out = append(out, append(append(row{}, r...), in[i][2]))
		}
		return out
	}}}
}

// typedTimed is an operator of event time over columns of codes.
func typedTimed(g *gen, _ int) query {
	by := append(g.codes(2, true, true), plain)
	in := g.typedRows("e", by)
	calls, codes := g.typedCalls(by)
	ends := []code{plain, plain}
	switch g.r.IntN(6) {
	case 0:
		w := windowed{tvf: g.tvf(in, true), keys: g.r.IntN(3), calls: calls}
		if w.tvf.kind == "SESSION" {
			w.keys = w.tvf.keys
		}
		return decode(w, slices.Concat(by[:w.keys], ends, codes))
	case 1:
		w := windowRank{tvf: g.tvf(in, false), keys: g.r.IntN(2), order: g.totalOrder(3), n: 1 + g.r.Int64N(3)}
		return decode(w, slices.Concat(by, ends, []code{plain}))
	case 2:
		rc := append(g.codes(2, true, true), plain)
		a, b := g.r.IntN(2), g.r.IntN(2)
		rc[b] = by[a]
		lo := g.r.Int64N(12) - 6
		g.punctual = true
		j := intervalJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l: in, r: g.typedRows("f", rc), lo: lo, hi: lo + g.r.Int64N(8), cond: compare("=", a, 3+b)}
		return decode(j, slices.Concat(by, rc))
	case 3:
		l := g.tvf(in, false)
		r := l
		r.in = g.typedRows("f", by)
		a := g.r.IntN(2)
		return decode(windowJoin{kind: []string{"INNER", "LEFT", "RIGHT", "FULL"}[g.r.IntN(4)], l: l, r: r, cond: compare("=", a, 3+a)}, slices.Concat(by, by))
	case 4:
		g.unique, g.punctual = true, true
		return decode(dedup{in: in, partition: g.r.IntN(2), last: g.r.IntN(2) == 0}, by)
	}
	g.punctual = true
	o := over{timed: &in, in: in, order: []orderKey{{col: 2}}, calls: calls, lo: g.r.Int64N(12), partition: g.r.Perm(2)[:g.r.IntN(2)]}
	if g.r.IntN(2) == 0 {
		g.unique, o.rows = true, true
		o.lo = g.r.Int64N(5) - 1
		for i := range o.calls {
			if c := &o.calls[i]; c.fn == "MIN" || c.fn == "MAX" {
				c.fn = []string{"MIN", "MAX", "FIRST_VALUE", "LAST_VALUE"}[g.r.IntN(4)]
			}
		}
	}
	return decode(o, slices.Concat(by, codes))
}
