package planner

// windowJoin is the node for a join whose keys are the start and the end of windows of one specification on both sides, by
// event time; nil for another join. A join by one of the two only is a regular join, as in Flink.
func windowJoin(n *Join) timed {
	for _, s := range n.Keys {
		l, r := windowSide(n.L, s.L, 0), windowSide(n.R, s.R, 0)
		if l == nil || r == nil {
			continue
		}
		w := l.windowSpec()
		if w.Proctime || !w.same(r.windowSpec()) {
			continue
		}
		for _, e := range n.Keys {
			if windowSide(n.L, e.L, 1) == l && windowSide(n.R, e.R, 1) == r {
				return &WindowJoin{L: n.L, R: n.R, Kind: n.Kind, Keys: n.Keys, Cond: n.Cond, Start: s, End: e, Window: w, Pos: n.Pos}
			}
		}
	}
	return nil
}

// windowSide is where column c of n comes from if it is a window's start (which = 0) or end (1).
func windowSide(n Node, c, which int) windowOrigin {
	if o, at := traceWindow(n, c); o != nil && at == o.windowAt()+which {
		return o
	}
	return nil
}

// passWindow implements windowPasser for a join that will be a WindowJoin.
func (n *Join) passWindow(c int) (Node, int, bool) {
	x, err := n.sink().keyed()
	if p, ok := x.(*Project); ok {
		x = p.In
	}
	j, ok := x.(*Join)
	if err != nil || !ok {
		return nil, 0, false
	}
	if w, ok := timedJoin(j).(*WindowJoin); !ok || w == nil {
		return nil, 0, false
	}
	return (&WindowJoin{L: n.L, R: n.R, Kind: n.Kind}).passWindow(c)
}
