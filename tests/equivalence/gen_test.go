package equivalence

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
)

// gen writes the query of a seed.
type gen struct {
	r *rand.Rand
	// unique is set by queries that need every row of e and f at a time of its own, because rows of one time have no order.
	unique bool
	// punctual is set by queries for which a late row may count, or not.
	punctual bool
	// batch restricts queries to tables without changes.
	batch bool
	// shared are queries that may be used again, views those that have a name.
	shared []query
	views  []*view
}

// operator is a kind of query above others, or, with leaf, above tables only.
type operator struct {
	name   string
	weight int
	leaf   bool
	make   func(g *gen, depth int) query // depth ≥ 1
}

// operators is the table of them; each file of the folder adds its own.
var operators []operator

func register(name string, weight int, f func(g *gen, depth int) query) {
	operators = append(operators, operator{name: name, weight: weight, make: f})
}

func registerLeaf(name string, weight int, f func(g *gen, depth int) query) {
	operators = append(operators, operator{name: name, weight: weight, leaf: true, make: f})
}

// tableNames are the tables that any query can read. e and f are append tables with event time, whose late rows have a fourth
// column; w is one with changes; v, a
// versioned table, is read by temporal joins only: its rows have a fourth column, which is 1 in a delete. p has processing time:
// its third column counts its rows.
var tableNames = []string{"a", "r", "u", "e", "f", "w", "p"}

// query is a random query of at most depth operators above its tables.
func (g *gen) query(depth int) query {
	if depth == 0 {
		return scan{tableNames[g.r.IntN(len(tableNames))]}
	}
	if len(g.shared) > 0 && g.r.IntN(6) == 0 {
		return g.shared[g.r.IntN(len(g.shared))]
	}
	q := g.operator(depth)
	switch g.r.IntN(12) {
	case 0:
		v := &view{fmt.Sprintf("view%d", len(g.views)), q}
		g.views = append(g.views, v)
		q = v
		g.shared = append(g.shared, q)
	case 1, 2:
		g.shared = append(g.shared, q)
	}
	return q
}

// view is a query with a name.
type view struct {
	name string
	q    query
}

func (v *view) width() int          { return v.q.width() }
func (v *view) sql() string         { return "SELECT * FROM " + v.name }
func (v *view) eval(t tables) []row { return v.q.eval(t) }

// operator is a random operator above others.
func (g *gen) operator(depth int) query {
	total := 0
	for _, o := range operators {
		total += o.weight
	}
	for n := g.r.IntN(total); ; {
		for _, o := range operators {
			if n -= o.weight; n < 0 {
				return o.make(g, depth)
			}
		}
	}
}

// fit is q with n columns.
func (g *gen) fit(q query, n int) query {
	if q.width() == n && g.r.IntN(2) == 0 {
		return q
	}
	exprs := make([]scalar, n)
	for i := range exprs {
		exprs[i] = randomExpr(g.r, q.width(), g.r.IntN(2))
	}
	return project{q, exprs}
}

// narrow keeps rows short.
func (g *gen) narrow(q query) query {
	if q.width() <= 6 {
		return q
	}
	return g.fit(q, 2+g.r.IntN(3))
}

// maxRows bounds the rows of any operator of a query, so that a seed takes well below a second.
const maxRows = 4000

// maxPairs bounds the pairs of rows that an operator compares.
const maxPairs = 300_000

type tooManyRows struct{}

func checkPairs(n, m int) {
	if n*m > maxPairs {
		panic(tooManyRows{})
	}
}

// checkRows stops an evaluation that gets too large.
func checkRows(rows []row) []row {
	if len(rows) > maxRows {
		panic(tooManyRows{})
	}
	return rows
}

// evaluate is the result of q, unless it gets too large.
func evaluate(q query, t tables) (rows []row, ok bool) {
	defer func() {
		if p := recover(); p != nil {
			if _, is := p.(tooManyRows); !is {
				panic(p)
			}
			rows, ok = nil, false
		}
	}()
	return checkRows(q.eval(t)), true
}

// pays reports whether all queries stay small over tables of n rows.
func (g *gen) pays(outs []*output, n int) bool {
	t := tables{}
	for _, name := range append([]string{"v"}, tableNames...) {
		width := 3
		if name == "v" {
			width = 4
		}
		for i := range n {
			t[name] = append(t[name], row{randomValue(g.r), randomValue(g.r), {v: 20 + int64(i)/2}, {}}[:width])
		}
	}
	for _, o := range outs {
		for _, q := range o.in {
			if _, ok := evaluate(q, t); !ok {
				return false
			}
		}
	}
	return true
}

func randomValue(r *rand.Rand) value {
	if r.IntN(6) == 0 {
		return null
	}
	return value{v: r.Int64N(6)}
}

// whole is a random job, mostly of one query, that is neither too large nor of too many rows.
func (g *gen) whole() []*output {
	for {
		*g = gen{r: g.r, batch: g.batch}
		outs, n := []*output{}, 1
		if g.r.IntN(4) == 0 {
			n = 2 + g.r.IntN(2)
		}
		for i := range n {
			q := g.query(1 + g.r.IntN(5-n))
			if i > 0 && g.r.IntN(4) == 0 { // a second query into the sink before
				last := outs[len(outs)-1]
				last.in = append(last.in, g.fit(q, last.in[0].width()))
				continue
			}
			outs = append(outs, &output{name: fmt.Sprintf("s%d", i), in: []query{q}})
		}
		if g.short(outs) && (!g.batch || g.appends(outs)) && g.pays(outs, 40) {
			return outs
		}
	}
}

// appends reports whether all tables read are without changes: others are none of batch mode.
func (g *gen) appends(outs []*output) bool {
	for _, o := range outs {
		for _, q := range o.in {
			if readChanges.MatchString(q.sql()) {
				return false
			}
		}
	}
	return !slices.ContainsFunc(g.views, func(v *view) bool { return readChanges.MatchString(v.q.sql()) })
}

var readChanges = regexp.MustCompile(`\b(?:FROM|JOIN|TABLE) [ruwv](?:[^.\w]|$)`)

// short reports whether the SQL of all queries is of a length that can be read.
func (g *gen) short(outs []*output) bool {
	n := 0
	for _, v := range g.views {
		n += len(v.q.sql())
	}
	for _, o := range outs {
		for _, q := range o.in {
			n += len(q.sql())
		}
	}
	return n < 5000
}

var columnName = regexp.MustCompile(`\bc\d+\b`)

// ofSides is the SQL of an expression over the columns of l and behind them those of r, of which l has n.
func ofSides(sql string, n int) string {
	return columnName.ReplaceAllStringFunc(sql, func(c string) string {
		if i, _ := strconv.Atoi(c[1:]); i >= n {
			return fmt.Sprintf("r.c%d", i-n)
		}
		return "l." + c
	})
}

func isTrue(v value) bool { return !v.null && v.v == 1 }

// joinCondition is a condition between sides of nl and nr columns: mostly with an equality, often with more.
func (g *gen) joinCondition(nl, nr int) scalar {
	r := g.r
	equal := func() scalar {
		a, b := column(r.IntN(nl)), column(nl+r.IntN(nr))
		if r.IntN(6) == 0 {
			return scalar{"(" + a.sql + " IS NOT DISTINCT FROM " + b.sql + ")", func(x row) value { return truth(a.eval(x) == b.eval(x)) }}
		}
		return binary("=", a, b, func(x, y int64) value { return truth(x == y) })
	}
	var c scalar
	if r.IntN(8) == 0 {
		c = randomCondition(r, nl+nr, 1)
	} else {
		c = equal()
	}
	if r.IntN(4) == 0 {
		c = logic("AND", c, equal(), 0)
	}
	if r.IntN(3) == 0 {
		c = logic("AND", c, randomCondition(r, nl+nr, 1), 0)
	}
	return c
}
