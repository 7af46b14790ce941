package equivalence

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func init() {
	register("top-n", 4, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		k := rank{in: in, order: g.totalOrder(in.width()), lo: 1, hi: 1 + g.r.Int64N(4), shown: g.r.IntN(2) == 0}
		for i := range in.width() {
			if g.r.IntN(4) == 0 {
				k.partition = append(k.partition, i)
			}
		}
		if g.r.IntN(5) == 0 {
			k.lo = min(2, k.hi)
		}
		return k
	})
	registerLeaf("top-n of inserts", 2, func(g *gen, _ int) query {
		k := rank{in: scan{[]string{"a", "e", "p"}[g.r.IntN(3)]}, order: g.totalOrder(3), lo: 1, hi: 1 + g.r.Int64N(4), shown: g.r.IntN(2) == 0, partition: g.r.Perm(3)[:g.r.IntN(2)]}
		if g.r.IntN(3) == 0 {
			k.in = filter{k.in, randomCondition(g.r, 3, 1)}
		}
		if g.r.IntN(5) == 0 {
			k.lo = min(2, k.hi)
		}
		return k
	})
	register("limit", 1, func(g *gen, depth int) query {
		in := g.query(depth - 1)
		return rank{in: in, order: g.totalOrder(in.width()), lo: 1 + g.r.Int64N(2)*2, hi: 3 + g.r.Int64N(4), limit: true}
	})
	registerLeaf("deduplication", 2, func(g *gen, _ int) query {
		g.unique = true
		d := dedup{in: g.timed("e", true), partition: g.r.IntN(2), last: g.r.IntN(2) == 0}
		if g.r.IntN(3) == 0 {
			d.in = g.filtered("p")
		}
		g.punctual = g.punctual || d.last
		return d
	})
}

// orderKey is a column of an ORDER BY.
type orderKey struct {
	col        int
	desc       bool
	nulls      string // "", FIRST or LAST
	nullsFirst bool
}

func (k orderKey) sql() string {
	out := fmt.Sprintf("c%d", k.col)
	if k.desc {
		out += " DESC"
	}
	if k.nulls != "" {
		out += " NULLS " + k.nulls
	}
	return out
}

// totalOrder is an order of rows of n columns that leaves only equal rows undecided.
func (g *gen) totalOrder(n int) []orderKey {
	out := make([]orderKey, n)
	for i, c := range g.r.Perm(n) {
		k := orderKey{col: c, desc: g.r.IntN(2) == 0}
		k.nullsFirst = !k.desc // NULL is the least value
		switch g.r.IntN(6) {
		case 0:
			k.nulls, k.nullsFirst = "FIRST", true
		case 1:
			k.nulls, k.nullsFirst = "LAST", false
		}
		out[i] = k
	}
	return out
}

func orderSQL(keys []orderKey) string {
	items := make([]string, len(keys))
	for i, k := range keys {
		items[i] = k.sql()
	}
	return strings.Join(items, ", ")
}

// compareRows is the order of two rows by keys.
func compareRows(keys []orderKey, a, b row) int {
	for _, k := range keys {
		x, y := a[k.col], b[k.col]
		if x.null || y.null {
			if x.null == y.null {
				continue
			}
			if x.null == k.nullsFirst {
				return -1
			}
			return 1
		}
		if c := cmp.Compare(x.v, y.v); c != 0 {
			if k.desc {
				return -c
			}
			return c
		}
	}
	return 0
}

// partitions are the rows by the values of columns.
func partitions(rows []row, by []int) map[string][]row {
	out := map[string][]row{}
	for _, r := range rows {
		k := make(row, len(by))
		for i, c := range by {
			k[i] = r[c]
		}
		out[k.String()] = append(out[k.String()], r)
	}
	return out
}

// rank is Top-N by ROW_NUMBER over a total order, with limit ORDER BY with LIMIT and OFFSET.
type rank struct {
	in        query
	partition []int
	order     []orderKey
	lo, hi    int64
	shown     bool // the number is a column
	limit     bool
}

func (k rank) width() int {
	if k.shown {
		return k.in.width() + 1
	}
	return k.in.width()
}

func (k rank) sql() string {
	if k.limit {
		return fmt.Sprintf("(SELECT * FROM (%s) ORDER BY %s LIMIT %d OFFSET %d)", k.in.sql(), orderSQL(k.order), k.hi-k.lo+1, k.lo-1)
	}
	var by, cols []string
	for _, c := range k.partition {
		by = append(by, fmt.Sprintf("c%d", c))
	}
	over := "ORDER BY " + orderSQL(k.order)
	if by != nil {
		over = "PARTITION BY " + strings.Join(by, ", ") + " " + over
	}
	for i := range k.width() {
		cols = append(cols, fmt.Sprintf("c%d", i))
	}
	where := fmt.Sprintf("c%d <= %d", k.in.width(), k.hi)
	if k.lo > 1 {
		where = fmt.Sprintf("c%d >= %d AND ", k.in.width(), k.lo) + where
	}
	return fmt.Sprintf("SELECT %s FROM (SELECT *, ROW_NUMBER() OVER (%s) AS c%d FROM (%s)) WHERE %s", strings.Join(cols, ", "), over, k.in.width(), k.in.sql(), where)
}

func (k rank) eval(t tables) (out []row) {
	for _, rows := range partitions(k.in.eval(t), k.partition) {
		slices.SortFunc(rows, func(a, b row) int { return compareRows(k.order, a, b) })
		for i, r := range rows {
			n := int64(i) + 1
			if n < k.lo || n > k.hi {
				continue
			}
			if k.shown {
				r = append(append(row{}, r...), value{v: n})
			}
			out = append(out, r)
		}
	}
	return out
}

// dedup keeps the first or last row in event time of each value of a column.
type dedup struct {
	in        timed
	partition int
	last      bool
}

func (d dedup) width() int { return 3 }

func (d dedup) sql() string {
	dir := "ASC"
	if d.last {
		dir = "DESC"
	}
	return fmt.Sprintf("SELECT c0, c1, c2 FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY c%d ORDER BY ts %s) AS rn FROM (%s)) WHERE rn = 1", d.partition, dir, d.in.sql())
}

func (d dedup) eval(t tables) (out []row) {
	for _, rows := range partitions(d.in.eval(t), []int{d.partition}) {
		best := rows[0]
		for _, r := range rows {
			if (r[2].v > best[2].v) == d.last && r[2].v != best[2].v {
				best = r
			}
		}
		out = append(out, best)
	}
	return out
}
