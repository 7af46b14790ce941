package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
)

// pruneColumns drops columns and aggregates nobody reads, down to the scans' decoders.
func (o *optimizer) pruneColumns(n Node) (Node, error) {
	width := len(n.Fields())
	need := make([]bool, width)
	for i := range need {
		need[i] = true
	}
	out, m := prune(n, need)
	return exactly(out, m, n.Fields()), nil
}

// exactly projects n so that column i is m[i].
func exactly(n Node, m []int, want []Field) Node {
	f := n.Fields()
	c := &Calc{In: n, Names: fieldNames(want)}
	for i := range want {
		c.Exprs = append(c.Exprs, col(f, m[i]))
	}
	return mergeCalc(c)
}

func mark(need []bool, es ...expr.Expr) {
	for _, e := range es {
		if e == nil {
			continue
		}
		for _, c := range expr.ColumnsOf(e) {
			need[c] = true
		}
	}
}

// prune rebuilds n with at least the needed columns; m maps old columns to new ones (-1 = dropped).
func prune(n Node, need []bool) (out Node, m []int) {
	if p, ok := n.(pruner); ok {
		return p.prune(need)
	}
	in := n.Inputs()
	outs := make([]Node, len(in))
	for i, c := range in {
		all := make([]bool, len(c.Fields()))
		for j := range all {
			all[j] = true
		}
		x, im := prune(c, all)
		outs[i] = exactly(x, im, c.Fields())
	}
	return n.withInputs(outs), upTo(0, len(need))
}

// pruneMade prunes in, the input of a node that puts columns it makes of args behind the input's; those all stay. im maps
// the columns of in, m those of the node.
func pruneMade(in Node, need []bool, args ...expr.Expr) (x Node, im, m []int) {
	width := len(in.Fields())
	keep := slices.Clone(need[:width])
	mark(keep, args...)
	x, im = prune(in, keep)
	w := len(x.Fields())
	return x, im, append(slices.Clone(im), upTo(w, w+len(need)-width)...)
}

func remapInts(list, m []int) []int {
	out := make([]int, len(list))
	for i, x := range list {
		out[i] = m[x]
	}
	return out
}

func pick(names []string, keep []int) []string {
	var out []string
	for _, i := range keep {
		out = append(out, names[i])
	}
	return out
}

// shareScans gives the scans of one table in all roots the same columns, so that it is read once. Each reader keeps its
// own columns by a Calc, and its filter; the source may only apply what all readers agree on, and applies what it can.
func shareScans(roots []Node, conf *Config) ([]Node, error) {
	cols, pushed, uses, marked := map[string][]int{}, map[string]expr.Expr{}, map[string]int{}, map[string]bool{}
	nested := map[string][]expr.Expr{}
	collect := func(n Node) (Node, error) {
		s, ok := n.(*Scan)
		if !ok {
			return n, nil
		}
		k := s.Info.Key
		switch {
		case uses[k] == 0:
			pushed[k] = s.Pushed
		case pushed[k] == nil || s.Pushed == nil:
			pushed[k] = nil
		case !expr.Equal(pushed[k], s.Pushed):
			or, err := expr.NewBinary("OR", pushed[k], s.Pushed)
			if err != nil {
				return nil, err
			}
			pushed[k] = or
		}
		uses[k]++
		marked[k] = marked[k] || !s.Unmarked
		for _, c := range s.Cols {
			if !slices.Contains(cols[k], c) {
				cols[k] = append(cols[k], c)
			}
		}
		slices.Sort(cols[k])
		for _, e := range s.Nested {
			if indexExpr(nested[k], e) < 0 {
				nested[k] = append(nested[k], e)
			}
		}
		return n, nil
	}
	for _, r := range roots {
		if _, err := rewrite(r, collect); err != nil {
			return nil, err
		}
	}
	out := make([]Node, len(roots))
	for i, r := range roots {
		n, err := rewrite(r, func(n Node) (Node, error) {
			s, ok := n.(*Scan)
			if !ok {
				return mergeCalc(n), nil
			}
			shared := &Scan{Info: s.Info, Cols: cols[s.Info.Key], Nested: nested[s.Info.Key], Pushed: pushed[s.Info.Key],
				Unmarked: !marked[s.Info.Key]}
			shared.Pushed = shared.pushed(conf)
			f := shared.Fields()
			c := &Calc{In: shared, Own: s}
			stored := shared.stored()
			for _, e := range s.stored() {
				j := indexExpr(stored, e)
				c.Exprs, c.Names = append(c.Exprs, col(f, j)), append(c.Names, f[j].Name)
			}
			return mergeCalc(c), nil
		})
		if err != nil {
			return nil, err
		}
		out[i] = n
	}
	return out, nil
}
