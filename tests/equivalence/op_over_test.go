package equivalence

import (
	"fmt"
	"slices"
	"strings"
)

func init() {
	register("over by value", 4, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		o := over{in: in, order: []orderKey{{col: g.r.IntN(in.width()), nullsFirst: true}}, lo: unbounded}
		switch g.r.IntN(3) {
		case 0: // rows of equal order are all equal
			o.order = g.totalOrder(in.width())
			o.rows, o.numbered = true, true
			o.calls = randomCalls(g.r, in.width())
			o.funcs = g.overFuncs(in.width(), true)
		case 1: // the key of u
			if in = (filter{scan{"u"}, randomCondition(g.r, 3, 1)}); g.r.IntN(2) == 0 {
				in = scan{"u"}
			}
			o.in, o.order[0].col, o.rows, o.numbered = in, 0, true, true
			o.calls = runningCalls(g.r, 3)
			o.funcs = g.overFuncs(3, false)
		default:
			o.calls = runningCalls(g.r, in.width())
		}
		o.partition = g.r.Perm(in.width())[:g.r.IntN(min(2, in.width())+1)]
		return g.narrow(o)
	})
	registerLeaf("over by time", 4, func(g *gen, _ int) query {
		o := over{in: nil, timed: &timed{}, order: []orderKey{{col: 2}}, calls: orderedCalls(g.r, 3), lo: unbounded}
		unique := g.r.IntN(2) == 0
		if *o.timed = g.timed("e", unique); unique && g.r.IntN(3) == 0 {
			*o.timed = g.filtered("p")
		}
		o.in = *o.timed
		o.partition = g.r.Perm(2)[:g.r.IntN(2)]
		if unique {
			o.rows, o.numbered, g.unique = true, true, true
			if g.r.IntN(3) > 0 {
				o.lo, g.punctual = g.r.Int64N(5), true
			} else {
				o.funcs = g.overFuncs(3, true)
			}
			if o.timed.table == "p" { // rows of one millisecond are peers
				o.funcs = nil
			}
			return g.narrow(o)
		}
		if g.r.IntN(3) > 0 {
			o.lo, g.punctual = g.r.Int64N(12), true
		}
		for i := range o.calls { // rows of one time have no order
			if fn := o.calls[i].fn; fn == "FIRST_VALUE" || fn == "LAST_VALUE" {
				o.calls[i].fn = "SUM"
			}
		}
		return g.narrow(o)
	})
}

// unbounded is the lower bound UNBOUNDED PRECEDING.
const unbounded = -1

// over adds aggregates over the rows of a frame to each row. The frame ends at the current row.
type over struct {
	in        query
	timed     *timed // the input if the order is event time
	partition []int
	order     []orderKey
	rows      bool // ROWS, else RANGE
	numbered  bool // the order is total
	lo        int64
	calls     []call
	funcs     []overFunc
}

// overFunc is a function of the rows up to the current one.
type overFunc struct {
	sql  string
	eval func(rows []row, order []orderKey) value // the last row is the current one
}

// overFuncs are some functions over a total order.
func (g *gen) overFuncs(n int, lag bool) (out []overFunc) {
	for range g.r.IntN(3) {
		switch c := g.r.IntN(n); g.r.IntN(4) {
		case 0:
			out = append(out, overFunc{"ROW_NUMBER()", func(rows []row, _ []orderKey) value { return value{v: int64(len(rows))} }})
		case 1:
			out = append(out, overFunc{"RANK()", rankOf})
		case 2:
			out = append(out, overFunc{"DENSE_RANK()", denseRankOf})
		case 3:
			if !lag {
				continue
			}
			k := g.r.IntN(4)
			out = append(out, overFunc{fmt.Sprintf("LAG(c%d, %d)", c, k), func(rows []row, _ []orderKey) value {
				if k >= len(rows) {
					return null
				}
				return rows[len(rows)-1-k][c]
			}})
		}
	}
	return out
}

func rankOf(rows []row, order []orderKey) value {
	n := int64(1)
	for _, r := range rows {
		if compareRows(order, r, rows[len(rows)-1]) < 0 {
			n++
		}
	}
	return value{v: n}
}

func denseRankOf(rows []row, order []orderKey) value {
	n := int64(1)
	for i := 1; i < len(rows); i++ {
		if compareRows(order, rows[i-1], rows[i]) < 0 {
			n++
		}
	}
	return value{v: n}
}

func (o over) width() int { return o.in.width() + len(o.calls) + len(o.funcs) }

func (o over) sql() string {
	by, order := "", orderSQL(o.order)
	if o.timed != nil {
		order = "ts"
	}
	if len(o.partition) > 0 {
		names := make([]string, len(o.partition))
		for i, c := range o.partition {
			names[i] = fmt.Sprintf("c%d", c)
		}
		by = "PARTITION BY " + strings.Join(names, ", ") + " "
	}
	frame := " RANGE"
	if o.rows {
		frame = " ROWS"
	}
	switch {
	case o.lo == unbounded:
		frame += " BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
	case o.rows:
		frame += fmt.Sprintf(" BETWEEN %d PRECEDING AND CURRENT ROW", o.lo)
	default:
		frame += fmt.Sprintf(" BETWEEN INTERVAL '%d' SECOND PRECEDING AND CURRENT ROW", o.lo)
	}
	var items []string
	for i := range o.in.width() {
		items = append(items, fmt.Sprintf("c%d", i))
	}
	for _, c := range o.calls {
		items = append(items, fmt.Sprintf("%s AS c%d", c.over(" OVER ("+by+"ORDER BY "+order+frame+")"), len(items)))
	}
	for _, f := range o.funcs {
		items = append(items, fmt.Sprintf("%s OVER (%sORDER BY %s) AS c%d", f.sql, by, order, len(items)))
	}
	return "SELECT " + strings.Join(items, ", ") + " FROM (" + o.in.sql() + ")"
}

func (o over) eval(t tables) (out []row) {
	for _, rows := range partitions(o.in.eval(t), o.partition) {
		checkPairs(len(rows), len(rows))
		slices.SortStableFunc(rows, func(a, b row) int { return compareRows(o.order, a, b) })
		for i, r := range rows {
			var frame []row
			for j, x := range rows {
				if o.inFrame(rows, i, j) {
					frame = append(frame, x)
				}
			}
			n := append(row{}, r...)
			for _, c := range o.calls {
				n = append(n, c.eval(frame))
			}
			for _, f := range o.funcs {
				n = append(n, f.eval(rows[:i+1], o.order))
			}
			out = append(out, n)
		}
	}
	return checkRows(out)
}

// inFrame reports row j in the frame of row i.
func (o over) inFrame(rows []row, i, j int) bool {
	switch {
	case o.rows:
		return j <= i && (o.lo == unbounded || int64(i-j) <= o.lo)
	case compareRows(o.order, rows[j], rows[i]) > 0:
		return false
	}
	c := o.order[0].col
	return o.lo == unbounded || rows[i][c].v-rows[j][c].v <= o.lo
}
