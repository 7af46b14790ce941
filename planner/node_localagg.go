package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// localAggregate is the half of a two-phase aggregation that stands before the exchange. It is placed when the exchanges are
// known and has no logical counterpart: its other half, with the state, is the aggregation itself, which so has the
// same id and the same state in one phase and in two.
type localAggregate struct {
	In     Node
	Keys   []int
	Aggs   []expr.Agg
	Names  []string
	Window *window // nil: GROUP BY without a window
}

func (n *localAggregate) Inputs() []Node { return []Node{n.In} }

func (n *localAggregate) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node: the input's, and the accumulators.
func (n *localAggregate) Fields() []Field {
	return append(slices.Clip(n.In.Fields()), Field{Name: "$partial", Type: op.PartialType})
}

func (n *localAggregate) label() string {
	in := n.In.Fields()
	keys, sel := keyNames(in, n.Keys), aggList(n.Aggs, n.Names)
	if n.Window == nil {
		return fmt.Sprintf("LocalGroupAggregate(groupBy=[%s], select=[%s])", keys, sel)
	}
	return fmt.Sprintf("LocalWindowAggregate(groupBy=[%s], window=[%s], select=[%s])", keys, n.Window.text(in), sel)
}

func (n *localAggregate) identity(*identity) {} // not in an identity: two phases have the state of one

func (n *localAggregate) slug() string   { return "local" }
func (n *localAggregate) stateful() bool { return false }

func (n *localAggregate) lower(l *lowering, x *exec.Node, p *phys) {
	spec := op.LocalAggSpec{Input: p.schema(0), Keys: n.Keys, Aggs: n.Aggs, Session: l.b.session, Output: x.Output}
	if n.Window != nil {
		w := n.Window.lower()
		spec.Window = &w
	} else {
		spec.Mini, _ = l.b.miniBatch() // Aggregate.distribute has checked it
	}
	x.Operator = op.NewLocalAggregate(spec)
}

// splitPhases puts local before p, an aggregation whose exchange is known, where p may be done in two phases and
// 'table.optimizer.agg-phase-strategy' does not say otherwise; it reports whether it did. p must then be given an op that
// takes the accumulators.
func (b *builder) splitPhases(p *phys, local *localAggregate) bool {
	in := p.in[0]
	switch strategy := b.conf.Enum(keyAggPhase); {
	case strategy == "ONE_PHASE", in.trait.Kinds != Inserts, !op.Combinable(local.Aggs, local.Window == nil), slices.Equal(in.dist, local.Keys) && in.dist != nil:
		return false
	case p.ship[0].Ship == exec.Forward && strategy != "TWO_PHASE":
		return false // nothing is exchanged, one phase combines as well
	}
	p.in[0] = &phys{op: local, in: []*phys{in}, ship: make([]exec.Edge, 1), fields: local.Fields(), trait: in.trait, keys: in.keys,
		par: in.par, dist: in.dist, index: -1}
	return true
}

// partial tells whether the last column of p's input holds accumulators.
func partial(p *phys) bool {
	_, ok := p.in[0].op.(*localAggregate)
	return ok
}
