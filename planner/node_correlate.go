package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// Correlate repeats every row of its input for each row that a table function makes of it: the output is the input's
// columns, then Made.
type Correlate struct {
	In   Node
	Func string
	Call expr.BoundTable // its arguments are over the input
	Made []Field
	Left bool // rows for which the function makes none stay
}

// Inputs implements Node.
func (n *Correlate) Inputs() []Node { return []Node{n.In} }

func (n *Correlate) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Correlate) Fields() []Field { return append(slices.Clone(n.In.Fields()), n.Made...) }

func (n *Correlate) label() string {
	kind := "INNER"
	if n.Left {
		kind = "LEFT"
	}
	return fmt.Sprintf("Correlate(joinType=[%s], invocation=[%s(%s)], rowType=[%s])", kind, n.Func, exprList(n.Call.Args),
		strings.Join(fieldNames(n.Made), ", "))
}

func (n *Correlate) identity(w *identity) {
	w.put("call", n.Func, n.Call.Args)
	w.put("left", n.Left)
}

func (n *Correlate) slug() string   { return "correlate" }
func (n *Correlate) stateful() bool { return false }

func (n *Correlate) pushFilter(c expr.Expr) (Node, bool) {
	return filterInput(n, n.In, c)
}

// prune keeps all columns that the function makes.
func (n *Correlate) prune(need []bool) (Node, []int) {
	x, im, m := pruneMade(n.In, need, n.Call.Args...)
	c := *n
	c.In = x
	c.Call.Args = make([]expr.Expr, len(n.Call.Args))
	for i, a := range n.Call.Args {
		c.Call.Args[i] = expr.Remap(a, im)
	}
	return &c, m
}

func (n *Correlate) lower(l *lowering, x *exec.Node, _ *phys) {
	x.Operator = op.NewCorrelate(op.CorrelateSpec{Call: n.Call, Left: n.Left, Session: l.b.session, Output: x.Output})
}
