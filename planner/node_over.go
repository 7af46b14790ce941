package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// Over adds to every row of the input what Calls compute over the rows of its partition, in Order. The output is the
// input's columns, then the calls. All calls of a node have the same partition and order; frames may differ.
type Over struct {
	In        Node
	Partition []int
	Order     []SortKey
	Calls     []overCall
	// Windows is the number of different windows in the SELECT block: partition, order and frame.
	Windows int
	// Final computes the calls when the input has ended, over any window.
	Final bool
	Pos   diag.Pos // of the first OVER
}

// overCall is a call of Over and the name of its column.
type overCall struct {
	expr.OverCall
	Name string
}

// Inputs implements Node.
func (n *Over) Inputs() []Node { return []Node{n.In} }

func (n *Over) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. Time attributes stay.
func (n *Over) Fields() []Field {
	out := append([]Field(nil), n.In.Fields()...)
	for _, c := range n.Calls {
		out = append(out, Field{Name: c.Name, Type: c.Agg.Type})
	}
	return out
}

func (n *Over) label() string {
	in := n.In.Fields()
	order := make([]string, len(n.Order))
	for i, k := range n.Order {
		order[i] = sortKeyText(k, in)
	}
	calls := make([]string, len(n.Calls))
	for i, c := range n.Calls {
		calls[i] = c.Agg.Text
		if n.framesDiffer() {
			calls[i] += " " + n.frameText(c.Frame)
		}
		calls[i] += " AS " + c.Name
	}
	s := fmt.Sprintf("Over(partitionBy=[%s], orderBy=[%s]", keyNames(in, n.Partition), strings.Join(order, ", "))
	if !n.framesDiffer() {
		s += ", window=[" + n.frameText(n.Calls[0].Frame) + "]"
	}
	return s + ", select=[" + strings.Join(calls, ", ") + "])"
}

func (n *Over) identity(w *identity) {
	w.put("partition", n.Partition)
	w.put("order", n.Order)
	for _, c := range n.Calls {
		w.put("call", c.Func.String(), c.Frame.Rows, c.Frame.Lo, c.Frame.Hi, c.Offset, c.Default, c.Agg)
	}
	w.put("final", n.Final)
}

func (n *Over) framesDiffer() bool {
	return slices.ContainsFunc(n.Calls, func(c overCall) bool { return c.Frame != n.Calls[0].Frame })
}

// frameText is a frame as SQL: distances in time as intervals.
func (n *Over) frameText(f expr.Frame) string {
	if f.Rows || len(n.Order) == 0 || !n.In.Fields()[n.Order[0].Col].Type.IsTimestamp() {
		return f.String()
	}
	bound := func(d int64) string {
		switch {
		case d == expr.UnboundedPreceding:
			return "UNBOUNDED PRECEDING"
		case d == expr.UnboundedFollowing:
			return "UNBOUNDED FOLLOWING"
		case d < 0:
			return millis(-d) + " PRECEDING"
		case d > 0:
			return millis(d) + " FOLLOWING"
		}
		return "CURRENT ROW"
	}
	return "RANGE BETWEEN " + bound(f.Lo) + " AND " + bound(f.Hi)
}

// sortKeyText is a sort key as SQL, with what SQL does not say left out: ASC and NULLS FIRST of ASC, NULLS LAST of DESC.
func sortKeyText(k SortKey, in []Field) string {
	s := in[k.Col].Name
	if k.Desc {
		s += " DESC"
	}
	if k.NullsFirst && k.Desc {
		s += " NULLS FIRST"
	}
	if !k.NullsFirst && !k.Desc {
		s += " NULLS LAST"
	}
	return s
}

// by is what the rows are ordered by, for a window with one order column.
func (n *Over) by() op.OverOrder {
	switch n.In.Fields()[n.Order[0].Col].Time {
	case Rowtime:
		return op.OverByRowtime
	case Proctime:
		return op.OverByProctime
	}
	return op.OverByValue
}

func (n *Over) slug() string   { return "over" }
func (n *Over) stateful() bool { return true }

func (n *Over) updates() bool {
	if n.Final {
		return false
	}
	return len(n.Order) != 1 || n.by() == op.OverByValue || updating(n.In)
}

// grows: a RANGE frame that begins at a distance lets go of what is older.
func (n *Over) grows(ttl int64) string {
	grow := n.updates() || slices.ContainsFunc(n.Calls, func(c overCall) bool { return c.Frame.Rows || c.Frame.Lo == expr.UnboundedPreceding })
	switch {
	case n.Final || ttl > 0 || !grow:
		return ""
	case n.updates():
		return "an OVER window in the order of values keeps all rows; '" + keyStateTTL + "' bounds that, or the order of a time attribute"
	case len(n.Partition) == 0:
		return ""
	}
	return "an OVER window keeps something of every partition it has met; '" + keyStateTTL + "' bounds that"
}

func (n *Over) physicalLabel() string {
	s := strings.Replace(n.label(), "Over(", "OverAggregate(", 1)
	if n.Final {
		s = strings.TrimSuffix(s, ")") + ", emit=[at the end of the input])"
	}
	return s
}

func (n *Over) modify(_ *phys, _ Kinds) Kinds {
	if n.Final || n.by() != op.OverByValue {
		return Inserts
	}
	return AllKinds
}

func (n *Over) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

// upsertKeys: a key of the input stays one if all rows of it are of one partition.
func (n *Over) upsertKeys(p *phys) [][]int {
	var out [][]int
	for _, k := range p.in[0].keys {
		if subset(n.Partition, k) {
			out = append(out, k)
		}
	}
	return out
}

func (n *Over) distribute(b *builder, p *phys) error {
	if kinds := p.in[0].trait.Kinds &^ Inserts; kinds != 0 && !n.Final && n.by() != op.OverByValue {
		name := n.In.Fields()[n.Order[0].Col].Name
		return diag.New(diag.Semantic, n.Pos, "OVER (... ORDER BY %s) does not support consuming %s changes produced by %s",
			name, kinds.words(), origin(p.in[0]).op.label()).
			WithDetail("%s is a time attribute: rows leave once, in order of time, and cannot be taken back", name).
			WithHint("order by a plain column: ORDER BY CAST(%s AS TIMESTAMP(3)), or put the OVER window below what updates its rows", name)
	}
	for _, c := range n.Calls {
		if u := c.Agg.User; u != nil && !u.Retracts && c.Frame.Lo != expr.UnboundedPreceding {
			return diag.New(diag.Semantic, n.Pos, "aggregate function %s cannot take back rows, and rows leave the frame %s", u.Name, n.frameText(c.Frame)).
				WithHint("give the function a Retract, or begin the frame at UNBOUNDED PRECEDING")
		}
	}
	b.keyed(p, n.Partition)
	p.dist = slices.Clone(n.Partition)
	return nil
}

// pushFilter moves conditions on the partition below: they keep or drop whole partitions.
func (n *Over) pushFilter(c expr.Expr) (Node, bool) {
	if !subset(expr.ColumnsOf(c), n.Partition) || len(n.Partition) == 0 {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, c)}), true
}

// prune drops calls nobody reads; without calls the window is gone.
func (n *Over) prune(need []bool) (Node, []int) {
	width := len(n.In.Fields())
	in := slices.Clone(need[:width])
	var calls []overCall
	at := make([]int, len(n.Calls)) // place among the calls kept
	for i, c := range n.Calls {
		at[i] = -1
		if !need[width+i] {
			continue
		}
		at[i] = len(calls)
		calls = append(calls, c)
		c.reads(in)
	}
	if len(calls) > 0 {
		for _, k := range n.Partition {
			in[k] = true
		}
		for _, k := range n.Order {
			in[k.Col] = true
		}
	}
	x, im := prune(n.In, in)
	if len(calls) == 0 {
		m := slices.Clone(im)
		for range n.Calls {
			m = append(m, -1)
		}
		return x, m
	}
	c := *n
	c.In, c.Partition, c.Order = x, remapInts(n.Partition, im), slices.Clone(n.Order)
	for i := range c.Order {
		c.Order[i].Col = im[c.Order[i].Col]
	}
	c.Calls = nil
	for _, call := range calls {
		c.Calls = append(c.Calls, call.remap(im))
	}
	m := slices.Clone(im)
	for _, p := range at {
		if p >= 0 {
			p += len(x.Fields())
		}
		m = append(m, p)
	}
	return &c, m
}

// reads marks the columns a call needs.
func (c overCall) reads(need []bool) {
	for _, i := range []int{c.Agg.Arg, c.Agg.Filter, c.Default} {
		if i >= 0 {
			need[i] = true
		}
	}
}

func (c overCall) remap(m []int) overCall {
	for _, i := range []*int{&c.Agg.Arg, &c.Agg.Filter, &c.Default} {
		if *i >= 0 {
			*i = m[*i]
		}
	}
	return c
}

func (n *Over) atEnd(*phys) bool { return n.Final }

func (n *Over) lower(l *lowering, x *exec.Node, p *phys) {
	spec := op.OverSpec{Input: p.schema(0), Partition: n.Partition, Calls: make([]expr.OverCall, len(n.Calls)),
		EmitUpdateBefore: p.before(), TTL: l.ttl(), Output: x.Output}
	for i, c := range n.Calls {
		spec.Calls[i] = c.OverCall
	}
	if n.Final {
		var keys []op.SortKey
		for _, k := range n.Order {
			keys = append(keys, op.SortKey(k))
		}
		x.Operator = op.NewOverFinal(spec, keys)
		return
	}
	spec.Order, spec.By, spec.Frame = op.SortKey(n.Order[0]), n.by(), n.Calls[0].Frame
	x.Operator = op.NewOver(spec)
}
