package planner

import (
	"fmt"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/types"
)

// normalize turns an upsert source into a full changelog by its primary key (Flink: ChangelogNormalize).
type normalize struct {
	In      Node
	Key     []int
	removed bool // the consumer needs neither -U nor whole deletes: rows pass through
}

func (n *normalize) Inputs() []Node { return []Node{n.In} }

func (n *normalize) withInputs([]Node) Node { return n }

func (n *normalize) Fields() []Field { return n.In.Fields() }

func (n *normalize) label() string {
	return fmt.Sprintf("ChangelogNormalize(key=[%s])", keyNames(n.In.Fields(), n.Key))
}

func (n *normalize) identity(w *identity) { w.put("key", n.Key) }

func (n *normalize) grows(ttl int64) string {
	if n.removed || ttl > 0 {
		return ""
	}
	return "the newest row of every primary key of an upsert source is kept; '" + keyStateTTL + "' bounds that"
}

// dropBefore removes -U rows for a consumer that wants +U only.
type dropBefore struct{ In Node }

func (n *dropBefore) Inputs() []Node { return []Node{n.In} }

func (n *dropBefore) withInputs([]Node) Node { return n }

func (n *dropBefore) Fields() []Field { return n.In.Fields() }

func (n *dropBefore) label() string { return "DropUpdateBefore()" }

func (n *dropBefore) identity(*identity) {}

func (n *normalize) slug() string   { return "normalize" }
func (n *normalize) stateful() bool { return !n.removed }

func (n *normalize) modify(*phys, Kinds) Kinds { return AllKinds }

func (n *normalize) settle(p *phys, d demand, t *Trait, apply bool) bool {
	n.removed = apply && n.removable(p, d)
	if n.removable(p, d) {
		t.Delete = DeleteKey
	}
	return true
}

func (n *normalize) deleteKind(p *phys, d demand, _ Kinds) DeleteKind {
	if n.removable(p, d) {
		return DeleteKey
	}
	return DeleteFull
}

// removable tells whether the rows of an upsert source can pass to the consumer as they are.
func (n *normalize) removable(p *phys, d demand) bool {
	s, ok := p.in[0].op.(*Scan)
	return ok && d.Update == OnlyAfter && d.KeyDeletes && s.Info.Mode == types.Upsert && !s.Info.readsMetadata(s.Cols)
}

func (n *normalize) upsertKeys(*phys) [][]int { return [][]int{n.Key} }

func (n *normalize) distribute(b *builder, p *phys) error {
	if n.removed {
		p.par, p.dist = p.in[0].par, p.in[0].dist
		return nil
	}
	b.keyed(p, n.Key)
	p.dist = n.Key
	return nil
}

func (n *normalize) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewNormalize(op.NormalizeSpec{Input: p.schema(0), Key: n.Key, EmitUpdateBefore: p.before(), TTL: l.ttl()})
}

func (n *dropBefore) slug() string   { return "drop-before" }
func (n *dropBefore) stateful() bool { return false }

func (n *dropBefore) settle(_ *phys, d demand, _ *Trait, _ bool) bool { return d.Update == OnlyAfter }

func (n *dropBefore) upsertKeys(p *phys) [][]int { return p.in[0].keys }

func (n *dropBefore) lower(_ *lowering, x *exec.Node, _ *phys) { x.Operator = op.NewDropUpdateBefore() }
