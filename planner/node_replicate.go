package planner

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// Replicate gives each row of In, without its last column, as often as that column says.
type Replicate struct{ In Node }

// Inputs implements Node.
func (n *Replicate) Inputs() []Node { return []Node{n.In} }

func (n *Replicate) withInputs(in []Node) Node { return &Replicate{In: in[0]} }

// Fields implements Node.
func (n *Replicate) Fields() []Field {
	f := n.In.Fields()
	return f[: len(f)-1 : len(f)-1]
}

func (n *Replicate) label() string {
	f := n.In.Fields()
	return "Replicate(times=[" + f[len(f)-1].Name + "])"
}

func (n *Replicate) identity(*identity) {}

func (n *Replicate) slug() string   { return "replicate" }
func (n *Replicate) stateful() bool { return false }

// settle: the copies of a row have no key, so an update has to take back the old number of them.
func (n *Replicate) settle(p *phys, d demand, t *Trait, apply bool) bool {
	if d.Update == OnlyAfter && t.Kinds&Updates != 0 {
		return false
	}
	return p.settleInput(0, full, apply)
}

func (n *Replicate) pushFilter(c expr.Expr) (Node, bool) {
	return &Replicate{In: addFilter(n.In, c)}, true
}

// prune keeps every column: rows that differ in one count apart.
func (n *Replicate) prune(need []bool) (Node, []int) {
	all := make([]bool, len(need)+1)
	for i := range all {
		all[i] = true
	}
	x, m := prune(n.In, all)
	return &Replicate{In: exactly(x, m, n.In.Fields())}, upTo(0, len(need))
}

func (n *Replicate) lower(_ *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewReplicate(p.schema(0))
}
