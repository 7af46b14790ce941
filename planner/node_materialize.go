package planner

import (
	"fmt"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
)

// materialize keeps the rows of each primary key and shows the sink the last one (Flink: SinkUpsertMaterializer).
type materialize struct {
	In       Node
	Key      []int
	InputKey []int
	target   *sinkTarget
}

func (n *materialize) Inputs() []Node { return []Node{n.In} }

func (n *materialize) withInputs([]Node) Node { return n }

func (n *materialize) Fields() []Field { return n.In.Fields() }

func (n *materialize) label() string {
	s := fmt.Sprintf("SinkMaterialize(key=[%s]", keyNames(n.In.Fields(), n.Key))
	if n.InputKey != nil {
		s += fmt.Sprintf(", rowsBy=[%s]", keyNames(n.In.Fields(), n.InputKey))
	}
	return s + ")"
}

func (n *materialize) identity(w *identity) { w.put("key", n.Key, n.InputKey) }

func (n *materialize) slug() string   { return "materialize" }
func (n *materialize) stateful() bool { return true }

func (n *materialize) grows(ttl int64) string {
	if ttl > 0 {
		return ""
	}
	return "the sink's rows are kept by its primary key; '" + keyStateTTL + "' bounds that, or a primary key that contains the query's key"
}

func (n *materialize) modify(*phys, Kinds) Kinds { return AllKinds }

func (n *materialize) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, n.wants(), apply)
}

// wants is what the input must send. Where its key is the sink's, a row of a key replaces the one before it.
func (n *materialize) wants() demand {
	if len(n.InputKey) == len(n.Key) && subset(n.InputKey, n.Key) {
		return demand{Update: OnlyAfter}
	}
	return full
}

func (n *materialize) upsertKeys(*phys) [][]int { return [][]int{n.Key} }

func (n *materialize) distribute(b *builder, p *phys) error {
	par := p.in[0].par
	if n.target.Parallel > 0 {
		par = n.target.Parallel
	}
	b.exchange(p, 0, par, n.Key)
	p.par, p.dist = par, n.Key
	return nil
}

func (n *materialize) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewMaterialize(op.MaterializeSpec{Input: p.schema(0), Key: n.Key, InputKey: n.InputKey, TTL: l.ttl()})
}
