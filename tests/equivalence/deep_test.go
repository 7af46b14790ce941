package equivalence

// A deep trial joins many rows of few keys in little memory, so that what a join keeps of a key is more than a page. Its result
// is aggregated, to be small.

// deep is the inner join of a and p by column c0 and a residual condition, grouped by c1 of a.
type deep struct {
	group
	cond scalar
}

func randomDeep(g *gen) query {
	d := deep{cond: scalar{"TRUE", func(row) value { return truth(true) }}}
	if g.r.IntN(2) == 0 {
		d.cond = randomCondition(g.r, 6, 1)
	}
	key := column(g.r.IntN(2))
	on := binary("=", key, column(3+g.r.IntN(2)), func(x, y int64) value { return truth(x == y) })
	kind := []string{"INNER", "INNER", "INNER", "LEFT", "FULL"}[g.r.IntN(5)]
	d.in, d.keys, d.calls = bigJoin{join{kind, scan{"a"}, scan{"p"}, logic("AND", on, d.cond, 0)}}, g.r.IntN(2), callsOf(g.r, runningFns, 6)
	return d.group
}

// bigJoin is a join of more pairs than others.
type bigJoin struct{ join }

func (j bigJoin) eval(t tables) (out []row) {
	left, right := j.l.eval(t), j.r.eval(t)
	matched := make([]bool, len(right))
	for _, l := range left {
		found := false
		for i, r := range right {
			if x := both(l, r); isTrue(j.cond.eval(x)) {
				found, matched[i] = true, true
				out = append(out, x)
			}
		}
		if !found && j.kind != "INNER" {
			out = append(out, both(l, nulls(3)))
		}
	}
	for i, r := range right {
		if !matched[i] && j.kind == "FULL" {
			out = append(out, both(nulls(3), r))
		}
	}
	return out
}
