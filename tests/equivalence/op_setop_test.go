package equivalence

func init() {
	register("set operation", 3, func(g *gen, depth int) query {
		a := g.query(depth - 1)
		if a.width() > 3 {
			a = g.fit(a, 2)
		}
		ops := []string{"UNION", "INTERSECT", "INTERSECT ALL", "EXCEPT", "EXCEPT ALL"}
		return setOp{ops[g.r.IntN(len(ops))], a, g.fit(g.query(g.r.IntN(depth)), a.width())}
	})
}

// setOp is every set operation but UNION ALL.
type setOp struct {
	op   string
	a, b query
}

func (s setOp) width() int  { return s.a.width() }
func (s setOp) sql() string { return "(" + s.a.sql() + ") " + s.op + " (" + s.b.sql() + ")" }

func (s setOp) eval(t tables) (out []row) {
	na, nb, first := map[string]int{}, map[string]int{}, map[string]row{}
	for _, r := range s.a.eval(t) {
		na[r.String()]++
		first[r.String()] = r
	}
	for _, r := range s.b.eval(t) {
		nb[r.String()]++
		first[r.String()] = r
	}
	for k, r := range first {
		n := 0
		switch s.op {
		case "UNION":
			n = 1
		case "INTERSECT":
			n = min(na[k], nb[k], 1)
		case "INTERSECT ALL":
			n = min(na[k], nb[k])
		case "EXCEPT":
			if nb[k] == 0 {
				n = min(na[k], 1)
			}
		case "EXCEPT ALL":
			n = max(na[k]-nb[k], 0)
		}
		for range n {
			out = append(out, r)
		}
	}
	return out
}
