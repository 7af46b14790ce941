package planner

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// Union is UNION ALL: rows of all inputs, whose types agree.
type Union struct {
	Ins []Node
	Out []Field
}

func (n *Union) Inputs() []Node { return n.Ins }

func (n *Union) withInputs(in []Node) Node { c := *n; c.Ins = in; return &c }

// Fields implements Node.
func (n *Union) Fields() []Field { return n.Out }

func (n *Union) label() string { return "UnionAll()" }

func (n *Union) identity(*identity) {}

func (n *Union) slug() string   { return "union" }
func (n *Union) stateful() bool { return false }

func (n *Union) pushFilter(c expr.Expr) (Node, bool) {
	u := &Union{Out: n.Out}
	for _, in := range n.Ins {
		u.Ins = append(u.Ins, addFilter(in, c))
	}
	return u, true
}

func (n *Union) distribute(b *builder, p *phys) error {
	for _, in := range p.in {
		p.par = max(p.par, in.par)
	}
	for i, in := range p.in {
		if in.par != p.par {
			b.exchange(p, i, p.par, rowKey(in))
		}
	}
	return nil
}

func (n *Union) prune(need []bool) (Node, []int) { return pruneUnion(n, need) }

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

func (n *Union) lower(_ *lowering, x *exec.Node, _ *phys) { x.Operator = op.NewUnion() }
