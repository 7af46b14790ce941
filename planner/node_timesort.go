package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
)

// TimeSort orders an endless input by a time attribute, ascending, and then by more columns.
type TimeSort struct {
	In   Node
	Keys []SortKey // the time attribute first
	Pos  diag.Pos
}

// Inputs implements Node.
func (n *TimeSort) Inputs() []Node { return []Node{n.In} }

func (n *TimeSort) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *TimeSort) Fields() []Field { return n.In.Fields() }

func (n *TimeSort) label() string {
	return fmt.Sprintf("TemporalSort(orderBy=[%s])", orderText(n.Keys, n.In.Fields()))
}

func (n *TimeSort) identity(w *identity) { w.put("keys", n.Keys) }

func (n *TimeSort) slug() string   { return "timesort" }
func (n *TimeSort) stateful() bool { return true }

func (n *TimeSort) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

func (n *TimeSort) upsertKeys(p *phys) [][]int { return p.in[0].keys }

func (n *TimeSort) distribute(b *builder, p *phys) error {
	if kinds := p.in[0].trait.Kinds &^ Inserts; kinds != 0 {
		name := n.In.Fields()[n.Keys[0].Col].Name
		return diag.New(diag.Semantic, n.Pos, "ORDER BY %s does not support consuming %s changes produced by %s",
			name, kinds.words(), origin(p.in[0]).op.label()).
			WithDetail("rows leave once, in order of time, and cannot be taken back").
			WithHint("add LIMIT, or bound the source (for kafka: 'scan.bounded.mode' = 'latest-offset')")
	}
	b.exchange(p, 0, 1, nil)
	p.par = 1
	return nil
}

func (n *TimeSort) prune(need []bool) (Node, []int) {
	in := slices.Clone(need)
	markRank(in, nil, n.Keys)
	x, m := prune(n.In, in)
	c := *n
	c.In, c.Keys = x, remapOrder(n.Keys, m)
	return &c, m
}

func (n *TimeSort) lower(_ *lowering, x *exec.Node, p *phys) {
	spec := op.TimeSortSpec{Input: p.schema(0), Time: n.Keys[0].Col, Keys: opKeys(n.Keys[1:])}
	if p.in[0].fields[spec.Time].Time == Proctime {
		spec.Time = -1
	}
	x.Operator = op.NewTimeSort(spec)
}
