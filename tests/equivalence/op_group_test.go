package equivalence

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
)

func init() {
	register("filter", 2, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		return filter{in, randomCondition(g.r, in.width(), 2)}
	})
	register("distinct", 2, func(g *gen, depth int) query { return distinct{g.query(depth - 1)} })
	register("union all", 2, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		return union{in, g.fit(g.query(depth-1), in.width())}
	})
	register("project", 2, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		exprs := make([]scalar, 1+g.r.IntN(4))
		for i := range exprs {
			exprs[i] = randomExpr(g.r, in.width(), 2)
		}
		return project{in, exprs}
	})
	register("group", 5, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		q := group{in: in, keys: g.r.IntN(min(in.width(), 2) + 1), calls: randomCalls(g.r, in.width())}
		if g.r.IntN(4) == 0 {
			p := randomCondition(g.r, q.width(), 1)
			q.having = &p
		}
		return q
	})
}

// call is an aggregate function of a column; fn "COUNT(*)" has none.
type call struct {
	fn       string
	col      int
	distinct bool
	filter   *scalar
}

// wraps are what makes the results of functions BIGINTs; arguments what makes their arguments from a column.
var (
	wraps = map[string]string{
		"VAR_POP": scaled, "VAR_SAMP": scaled, "STDDEV_POP": scaled, "STDDEV_SAMP": scaled,
		"LISTAGG": "CAST(CHAR_LENGTH(%s) AS BIGINT)", "ARRAY_AGG": "CAST(CARDINALITY(%s) AS BIGINT)", "COLLECT": "CAST(CARDINALITY(%s) AS BIGINT)",
	}
	arguments = map[string]string{
		"VAR_POP": "CAST(%s %% 100 AS DOUBLE)", "VAR_SAMP": "CAST(%s %% 100 AS DOUBLE)", "STDDEV_POP": "CAST(%s %% 100 AS DOUBLE)", "STDDEV_SAMP": "CAST(%s %% 100 AS DOUBLE)",
		"LISTAGG": "CAST(%s AS STRING)",
	}
)

// scaled has no multiple of 1/1000 near a border, where the last bits of a DOUBLE would matter.
const scaled = "CAST(FLOOR(%s * 1000 + 0.1237) AS BIGINT)"

func (c call) sql() string { return c.over("") }

// over is the call with an OVER clause.
func (c call) over(over string) string {
	out := c.fn
	if c.fn != "COUNT(*)" {
		d, arg := "", fmt.Sprintf("c%d", c.col)
		if c.distinct {
			d = "DISTINCT "
		}
		if f := arguments[c.fn]; f != "" {
			arg = fmt.Sprintf(f, arg)
		}
		out = fmt.Sprintf("%s(%s%s)", c.fn, d, arg)
	}
	if c.filter != nil {
		out += " FILTER (WHERE " + c.filter.sql + ")"
	}
	out += over
	if f := wraps[c.fn]; f != "" {
		out = fmt.Sprintf(f, out)
	}
	return out
}

func (c call) eval(rows []row) value {
	var vals []int64 // not NULL
	seen := map[value]bool{}
	n := int64(0) // with NULL
	for _, r := range rows {
		if c.filter != nil && !isTrue(c.filter.eval(r)) {
			continue
		}
		x := r[c.col]
		if c.fn == "COUNT(*)" {
			n++
			continue
		}
		if strings.Contains(arguments[c.fn], "100") {
			x.v %= 100
		}
		if c.distinct && seen[x] {
			continue
		}
		seen[x] = true
		n++
		if !x.null {
			vals = append(vals, x.v)
		}
	}
	switch {
	case c.fn == "COUNT(*)":
		return value{v: n}
	case c.fn == "COUNT":
		return value{v: int64(len(vals))}
	case c.fn == "COLLECT": // CARDINALITY of a MULTISET counts equal elements once
		delete(seen, null)
		return value{v: int64(len(seen))}
	case c.fn == "ARRAY_AGG":
		return value{v: n, null: n == 0}
	case len(vals) == 0:
		return null
	}
	return summarize(c.fn, vals)
}

// summarize is an aggregate of at least one value.
func summarize(fn string, vals []int64) value {
	sum, lo, hi := int64(0), vals[0], vals[0]
	for _, v := range vals {
		sum, lo, hi = sum+v, min(lo, v), max(hi, v)
	}
	switch fn {
	case "SUM":
		return value{v: sum}
	case "MIN":
		return value{v: lo}
	case "MAX":
		return value{v: hi}
	case "AVG":
		return value{v: sum / int64(len(vals))}
	case "FIRST_VALUE":
		return value{v: vals[0]}
	case "LAST_VALUE":
		return value{v: vals[len(vals)-1]}
	case "LISTAGG":
		n := len(vals) - 1 // commas
		for _, v := range vals {
			n += len(fmt.Sprint(v))
		}
		return value{v: int64(n)}
	}
	mean, squares := float64(sum)/float64(len(vals)), 0.0
	for _, v := range vals {
		squares += (float64(v) - mean) * (float64(v) - mean)
	}
	n := float64(len(vals))
	if strings.HasSuffix(fn, "_SAMP") {
		if n--; n == 0 {
			return null
		}
	}
	x := squares / n
	if strings.HasPrefix(fn, "STDDEV") {
		x = math.Sqrt(x)
	}
	return value{v: int64(math.Floor(x*1000 + 0.1237))}
}

// runningFns can run over rows in an order that changes, plainFns have the same result in any order.
var (
	runningFns = []string{"COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG", "VAR_POP", "STDDEV_SAMP"}
	plainFns   = []string{"COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG", "COUNT(*)", "COUNT", "SUM", "MIN", "MAX", "AVG",
		"VAR_POP", "VAR_SAMP", "STDDEV_POP", "STDDEV_SAMP", "LISTAGG", "ARRAY_AGG", "COLLECT"}
	orderedFns = append([]string{"FIRST_VALUE", "LAST_VALUE", "FIRST_VALUE", "LAST_VALUE"}, plainFns...)
)

func callsOf(r *rand.Rand, fns []string, n int) []call {
	calls := make([]call, 1+r.IntN(3))
	for i := range calls {
		c := call{fn: fns[r.IntN(len(fns))], col: r.IntN(n)}
		_, argument := arguments[c.fn]
		c.distinct = c.fn != "COUNT(*)" && !strings.HasSuffix(c.fn, "_VALUE") && (!argument || c.fn == "LISTAGG") && r.IntN(3) == 0
		if r.IntN(3) == 0 {
			p := randomCondition(r, n, 1)
			c.filter = &p
		}
		calls[i] = c
	}
	return calls
}

// randomCalls are calls over rows in no order, now and then in a shape that an operator takes a way of its own for.
func randomCalls(r *rand.Rand, n int) []call {
	calls := callsOf(r, plainFns, n)
	switch r.IntN(12) {
	case 0:
		return []call{{fn: "COUNT(*)"}}
	case 1: // all of them of different values
		for i := range calls {
			calls[i] = call{fn: []string{"COUNT", "SUM", "MAX"}[r.IntN(3)], col: r.IntN(n), distinct: true, filter: calls[i].filter}
		}
	case 2: // the same with another filter, or without
		c := calls[0]
		c.filter = nil
		if r.IntN(2) == 0 {
			p := randomCondition(r, n, 1)
			c.filter = &p
		}
		return []call{calls[0], c}
	}
	return calls
}

// orderedCalls are calls over rows in a total order.
func orderedCalls(r *rand.Rand, n int) []call { return callsOf(r, orderedFns, n) }

// runningCalls are calls over rows in an order where rows come in between.
func runningCalls(r *rand.Rand, n int) []call {
	calls := callsOf(r, runningFns, n)
	for i := range calls {
		calls[i].distinct = calls[i].distinct && r.IntN(4) == 0
	}
	return calls
}

// group is GROUP BY columns 0 to keys-1 with aggregate calls.
type group struct {
	in     query
	keys   int
	calls  []call
	having *scalar
}

func (g group) width() int { return g.keys + len(g.calls) }

func (g group) sql() string {
	var items, keys []string
	for i := range g.keys {
		items, keys = append(items, fmt.Sprintf("c%d", i)), append(keys, fmt.Sprintf("c%d", i))
	}
	for _, c := range g.calls {
		items = append(items, c.sql())
	}
	for i := range items {
		items[i] += fmt.Sprintf(" AS c%d", i)
	}
	out := "SELECT " + strings.Join(items, ", ") + " FROM (" + g.in.sql() + ")"
	if len(keys) > 0 {
		out += " GROUP BY " + strings.Join(keys, ", ")
	}
	if g.having != nil {
		out = "SELECT * FROM (" + out + ") WHERE " + g.having.sql
	}
	return out
}

func (g group) eval(t tables) (out []row) {
	groups := partitions(g.in.eval(t), []int{0, 1}[:g.keys])
	if _, batch := t[batchMode]; batch && g.keys == 0 && len(groups) == 0 {
		groups[""] = nil // the result of no rows is a row only when all of them are known
	}
	for _, rows := range groups {
		o := row{}
		if g.keys > 0 {
			o = append(o, rows[0][:g.keys]...)
		}
		for _, c := range g.calls {
			o = append(o, c.eval(rows))
		}
		if g.having == nil || isTrue(g.having.eval(o)) {
			out = append(out, o)
		}
	}
	return out
}
