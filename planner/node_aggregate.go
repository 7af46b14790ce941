package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Aggregate groups by the columns Keys; the output is the keys, then the aggregates. No keys: one global group.
// Distinct marks SELECT DISTINCT and UNION.
type Aggregate struct {
	In       Node
	Keys     []int
	Aggs     []expr.Agg
	Names    []string // of the aggregates
	Distinct bool
	TTL      *int64 // the STATE_TTL hint in ms, nil = table.exec.state.ttl
	// Always: the query's own aggregation without GROUP BY, which gives a row over no rows too where results are final.
	Always bool
	global bool  // its input is a localAggregate
	place  []int // key columns that state lies by, where the input is distributed by these; nil = by all
}

func (n *Aggregate) Inputs() []Node { return []Node{n.In} }

func (n *Aggregate) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. Grouping loses time attributes, but for window_time beside window_start and window_end.
func (n *Aggregate) Fields() []Field {
	out := aggFields(n.In.Fields(), n.Keys, n.Aggs, n.Names)
	if g, ok := n.window(); ok && g.time >= 0 {
		out[g.time].Time = Rowtime
		if g.origin.windowSpec().Proctime {
			out[g.time].Time = Proctime
		}
	}
	return out
}

func (n *Aggregate) label() string {
	return fmt.Sprintf("Aggregate(groupBy=[%s], select=[%s])", keyNames(n.In.Fields(), n.Keys), aggList(n.Aggs, n.Names))
}

func (n *Aggregate) identity(w *identity) {
	w.put("keys", n.Keys)
	w.put("aggs", n.Aggs)
}

// fold makes one row of an aggregation without keys over input that is empty by its text, such as WHERE FALSE: Flink gives
// out that row, although the same aggregation over a table without rows gives none.
func (n *Aggregate) fold(*optimizer) (Node, error) {
	if len(n.Keys) > 0 || !emptyByText(n.In) {
		return n, nil
	}
	row := make([]expr.Expr, len(n.Aggs))
	for i, a := range n.Aggs {
		switch {
		case a.User != nil:
			return n, nil
		case a.Kind == expr.AggCount || a.Kind == expr.AggCountStar:
			row[i] = &expr.Literal{Value: types.IntDatum(0), T: a.Type}
		case a.Type.Nullable:
			row[i] = &expr.Literal{Value: types.NullDatum, T: a.Type}
		default:
			return n, nil
		}
	}
	return &Values{Rows: [][]expr.Expr{row}, Schema: n.Fields()}, nil
}

func emptyByText(n Node) bool {
	switch n := n.(type) {
	case *Values:
		return len(n.Rows) == 0
	case *Project:
		return emptyByText(n.In)
	case *Filter:
		return emptyByText(n.In)
	}
	return false
}

func aggFields(in []Field, keys []int, aggs []expr.Agg, names []string) []Field {
	out := make([]Field, 0, len(keys)+len(aggs))
	for _, k := range keys {
		out = append(out, Field{Name: in[k].Name, Type: in[k].Type})
	}
	for i, a := range aggs {
		out = append(out, Field{Name: names[i], Type: a.Type})
	}
	return out
}

func aggList(aggs []expr.Agg, names []string) string {
	s := make([]string, len(aggs))
	for i, a := range aggs {
		s[i] = a.Text + " AS " + names[i]
	}
	return strings.Join(s, ", ")
}

func (n *Aggregate) slug() string   { return "aggregate" }
func (n *Aggregate) stateful() bool { return true }
func (n *Aggregate) updates() bool  { return !n.fuses() }
func (n *Aggregate) physicalLabel() string {
	if n.global {
		return "GlobalGroup" + n.label()
	}
	return "Group" + n.label()
}

// grows: only groups can become more and more; one alone is as large as what its functions keep.
func (n *Aggregate) grows(ttl int64) string {
	if n.fuses() || len(n.Keys) == 0 || hinted(n.TTL, ttl) != 0 {
		return ""
	}
	return "an aggregation keeps a row for every group it has met; '" + keyStateTTL + "' or the hint STATE_TTL bounds that, or windows"
}

func (n *Aggregate) modify(_ *phys, in Kinds) Kinds {
	if in != Inserts {
		return AllKinds
	}
	return Inserts | Updates
}

func (n *Aggregate) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

func (n *Aggregate) upsertKeys(*phys) [][]int { return [][]int{upTo(0, len(n.Keys))} }

// miniBatch are the settings of mini-batches, zero when they are off.
func (b *builder) miniBatch() (m op.MiniBatch, err error) {
	if !b.conf.Bool(keyMiniBatch) || b.conf.Batch() {
		return m, nil
	}
	m.Size, m.Latency = b.conf.Int(keyMiniSize), b.conf.Duration(keyMiniLatency).Milliseconds()
	if m.Size <= 0 || m.Latency <= 0 {
		return m, diag.New(diag.Config, diag.Pos{}, "mini-batches need '%s' and '%s'", keyMiniSize, keyMiniLatency).
			WithDetail("'%s' is true", keyMiniBatch).WithHint("SET '%s' = '5000' and SET '%s' = '1 s'", keyMiniSize, keyMiniLatency)
	}
	return m, nil
}

func (n *Aggregate) distribute(b *builder, p *phys) error {
	mini, err := b.miniBatch()
	if err != nil {
		return err
	}
	if err := retractable(n.Aggs, p.in[0]); err != nil {
		return err
	}
	place := b.keyedWithin(p, n.Keys)
	p.dist = upTo(0, len(n.Keys))
	if place != nil {
		p.dist = indexesIn(n.Keys, place)
	}
	// Without mini-batches each batch's changes leave at once: there is no time to combine in.
	global := place == nil && mini.Size > 0 && b.splitPhases(p, &localAggregate{In: n.In, Keys: n.Keys, Aggs: n.Aggs, Names: n.Names})
	if global || place != nil {
		c := *n
		c.global, c.place, p.op = global, place, &c
	}
	return nil
}

// indexesIn is where each of cols is in list.
func indexesIn(list, cols []int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = slices.Index(list, c)
	}
	return out
}

// pushFilter moves conditions on the group keys below.
func (n *Aggregate) pushFilter(c expr.Expr) (Node, bool) {
	m := make([]int, len(n.Keys))
	copy(m, n.Keys)
	if len(n.Keys) == 0 || !below(c, len(n.Keys)) {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, expr.Remap(c, m))}), true
}

func (n *Aggregate) prune(need []bool) (Node, []int) { return pruneAggregate(n, need) }

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

func (n *Aggregate) lower(l *lowering, x *exec.Node, p *phys) {
	mini, _ := l.b.miniBatch() // distribute has checked it
	x.Operator = op.NewGroupAggregate(op.GroupAggSpec{Input: p.schema(0), Keys: n.Keys, Place: n.place, Aggs: n.Aggs, InputMode: p.mode(0),
		EmitUpdateBefore: p.before(), TTL: hinted(n.TTL, l.ttl()), Output: x.Output, Mini: mini, Partial: partial(p)})
}
