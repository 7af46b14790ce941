package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
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
	switch n := n.(type) {
	case *Scan:
		return pruneScan(n, need)
	case *Values:
		return pruneValues(n, need)
	case *Calc:
		return pruneCalc(n, need)
	case *Aggregate:
		return pruneAggregate(n, need)
	case *WindowAggregate:
		in := make([]bool, len(n.In.Fields()))
		in[n.Window.Time] = true
		aggs, m := keepAggs(n.Keys, n.Aggs, need, in)
		x, im := prune(n.In, in)
		c := *n
		c.In, c.Keys, c.Window.Time = x, remapInts(n.Keys, im), im[n.Window.Time]
		c.Aggs, c.Names = remapAggs(n.Aggs, aggs, im), pick(n.Names, aggs)
		for i := range 3 {
			m = append(m, len(n.Keys)+len(aggs)+i)
		}
		return &c, m
	case *WindowTVF:
		width := len(n.In.Fields())
		in := slices.Clone(need[:width])
		in[n.Window.Time] = true
		x, im := prune(n.In, in)
		c := *n
		c.In, c.Window.Time = x, im[n.Window.Time]
		w := len(x.Fields())
		return &c, append(slices.Clone(im), w, w+1, w+2)
	case *Union:
		return pruneUnion(n, need)
	case *Sort:
		in := slices.Clone(need)
		for _, k := range n.Keys {
			in[k.Col] = true
		}
		x, im := prune(n.In, in)
		c := *n
		c.In, c.Keys = x, slices.Clone(n.Keys)
		for i := range c.Keys {
			c.Keys[i].Col = im[c.Keys[i].Col]
		}
		return &c, im
	}
	in := n.Inputs()
	outs := make([]Node, len(in))
	for i, c := range in { // sinks: everything
		all := make([]bool, len(c.Fields()))
		for j := range all {
			all[j] = true
		}
		x, im := prune(c, all)
		outs[i] = exactly(x, im, c.Fields())
	}
	return n.withInputs(outs), upTo(0, len(need))
}

// pruneScan keeps what is needed, the rowtime and what its watermark reads, and the key of an upsert source. A scan
// always reads something: rows have to be counted.
func pruneScan(n *Scan, need []bool) (Node, []int) {
	keep := map[int]bool{}
	for i, c := range n.Cols {
		if need[i] {
			keep[c] = true
		}
	}
	if n.Info.Rowtime >= 0 {
		keep[n.Info.Rowtime] = true
		for _, c := range expr.ColumnsOf(n.Info.Watermark) {
			keep[c] = true
		}
	}
	if n.Info.Mode != types.AppendOnly {
		for i, f := range n.Info.Fields {
			if slices.Contains(n.Info.Table.PrimaryKey, f.Name) {
				keep[i] = true
			}
		}
	}
	if len(keep) == 0 {
		keep[cheapest(n)] = true
	}
	s, m := *n, make([]int, len(n.Cols))
	s.Cols = nil
	for i, c := range n.Cols {
		m[i] = -1
		if keep[c] {
			m[i] = len(s.Cols)
			s.Cols = append(s.Cols, c)
		}
	}
	return &s, m
}

// cheapest is the first column of fixed width, else the first.
func cheapest(n *Scan) int {
	for _, c := range n.Cols {
		if n.Info.Computed[c] == nil && n.Info.Fields[c].Type.Phys() != types.PhysStr {
			return c
		}
	}
	return n.Cols[0]
}

func pruneValues(n *Values, need []bool) (Node, []int) {
	v, m := &Values{Rows: make([][]expr.Expr, len(n.Rows))}, make([]int, len(need))
	for i, k := range need {
		m[i] = -1
		if !k {
			continue
		}
		m[i] = len(v.Schema)
		v.Schema = append(v.Schema, n.Schema[i])
		for r := range n.Rows {
			v.Rows[r] = append(v.Rows[r], n.Rows[r][i])
		}
	}
	return v, m
}

func pruneCalc(n *Calc, need []bool) (Node, []int) {
	in := make([]bool, len(n.In.Fields()))
	mark(in, n.Cond)
	for i, e := range n.Exprs {
		if need[i] {
			mark(in, e)
		}
	}
	x, im := prune(n.In, in)
	c, m := &Calc{In: x}, make([]int, len(need))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, im)
	}
	for i, e := range n.Exprs {
		m[i] = -1
		if need[i] {
			m[i] = len(c.Exprs)
			c.Exprs, c.Names = append(c.Exprs, expr.Remap(e, im)), append(c.Names, n.Names[i])
		}
	}
	// A Calc that became the identity disappears, and its columns are the input's own.
	return mergeCalc(c), m
}

func pruneAggregate(n *Aggregate, need []bool) (Node, []int) {
	in := make([]bool, len(n.In.Fields()))
	if len(n.Keys) == 0 && !slices.Contains(need, true) {
		need = slices.Clone(need)
		need[0] = true // the row of a global aggregation must still come
	}
	aggs, m := keepAggs(n.Keys, n.Aggs, need, in)
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Keys = x, remapInts(n.Keys, im)
	c.Aggs, c.Names = remapAggs(n.Aggs, aggs, im), pick(n.Names, aggs)
	return &c, m
}

// keepAggs chooses the needed aggregates and marks what keys and they read; m maps keys and aggregates to their places.
func keepAggs(keys []int, aggs []expr.Agg, need, in []bool) (kept, m []int) {
	for i, k := range keys {
		in[k] = true
		m = append(m, i)
	}
	for i, a := range aggs {
		if !need[len(keys)+i] {
			m = append(m, -1)
			continue
		}
		m = append(m, len(keys)+len(kept))
		kept = append(kept, i)
		if a.Arg >= 0 {
			in[a.Arg] = true
		}
		if a.Filter >= 0 {
			in[a.Filter] = true
		}
	}
	return kept, m
}

func remapAggs(aggs []expr.Agg, keep, m []int) []expr.Agg {
	var out []expr.Agg
	for _, i := range keep {
		a := aggs[i]
		if a.Arg >= 0 {
			a.Arg = m[a.Arg]
		}
		if a.Filter >= 0 {
			a.Filter = m[a.Filter]
		}
		out = append(out, a)
	}
	return out
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

// pruneUnion gives every input exactly the needed columns.
func pruneUnion(n *Union, need []bool) (Node, []int) {
	u, m := &Union{}, make([]int, len(need))
	for i, k := range need {
		m[i] = -1
		if k {
			m[i] = len(u.Out)
			u.Out = append(u.Out, n.Out[i])
		}
	}
	for _, in := range n.Ins {
		x, im := prune(in, need)
		f := x.Fields()
		c := &Calc{In: x}
		for i, k := range need {
			if k {
				c.Exprs, c.Names = append(c.Exprs, col(f, im[i])), append(c.Names, n.Out[i].Name)
			}
		}
		u.Ins = append(u.Ins, mergeCalc(c))
	}
	return u, m
}

// shareScans gives the scans of one table in all roots the same columns, so that it is read once. Each reader keeps its
// own columns by a Calc, and its filter; the source may only apply what all readers agree on.
func shareScans(roots []Node) ([]Node, error) {
	cols, pushed, uses := map[string][]int{}, map[string]expr.Expr{}, map[string]int{}
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
		for _, c := range s.Cols {
			if !slices.Contains(cols[k], c) {
				cols[k] = append(cols[k], c)
			}
		}
		slices.Sort(cols[k])
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
			shared := &Scan{Info: s.Info, Cols: cols[s.Info.Key], Pushed: pushed[s.Info.Key]}
			f := shared.Fields()
			c := &Calc{In: shared}
			for _, x := range s.Cols {
				j := slices.Index(shared.Cols, x)
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
