package equivalence

import "strings"

// focused are the kinds of queries that a run can be about alone (-focus), at parallelism 4, with periodic watermarks and
// restarts: for a mistake that one seed in thousands shows.
var focused = map[string]func(g *gen) query{
	// Both sides hold rows until event time passes them; a side that ends must not let the other's time pass rows held.
	"interval": func(g *gen) query {
		for {
			j := intervalJoin{kind: []string{"LEFT", "FULL"}[g.r.IntN(2)], l: g.timed("e", false), r: g.timed("f", false), lo: g.r.Int64N(6) - 6, hi: g.r.Int64N(6), cond: equalPlus(g)}
			if j.l.query != nil && strings.Contains(j.l.query.text, " OVER (") {
				g.punctual = true
				return j
			}
		}
	},
	// A join keeps rows in logs.
	"deep": randomDeep,
}
