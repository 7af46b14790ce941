package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// Unnest repeats every row of its input for each entry of the collection Arg: the output is the input's columns, then
// Entry (Flink: Correlate over UNNEST).
type Unnest struct {
	In      Node
	Arg     expr.Expr
	Entry   []Field // columns of an entry; the last is the ordinality when Ordinal
	Left    bool    // rows without an entry stay
	Ordinal bool
}

// Inputs implements Node.
func (n *Unnest) Inputs() []Node { return []Node{n.In} }

func (n *Unnest) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Unnest) Fields() []Field { return append(slices.Clone(n.In.Fields()), n.Entry...) }

func (n *Unnest) label() string {
	kind := "INNER"
	if n.Left {
		kind = "LEFT"
	}
	with := ""
	if n.Ordinal {
		with = " WITH ORDINALITY"
	}
	return fmt.Sprintf("Unnest(joinType=[%s], collection=[%s%s], entry=[%s])", kind, n.Arg, with, strings.Join(fieldNames(n.Entry), ", "))
}

func (n *Unnest) identity(w *identity) {
	w.put("collection", n.Arg)
	w.put("left", n.Left, n.Ordinal)
}

func (n *Unnest) slug() string   { return "unnest" }
func (n *Unnest) stateful() bool { return false }

func (n *Unnest) pushFilter(c expr.Expr) (Node, bool) {
	return filterInput(n, n.In, c)
}

// prune keeps all columns of an entry: they come out of one value.
func (n *Unnest) prune(need []bool) (Node, []int) {
	x, im, m := pruneMade(n.In, need, n.Arg)
	c := *n
	c.In, c.Arg = x, expr.Remap(n.Arg, im)
	return &c, m
}

func (n *Unnest) lower(l *lowering, x *exec.Node, _ *phys) {
	x.Operator = op.NewUnnest(op.UnnestSpec{Arg: n.Arg, Left: n.Left, Ordinal: n.Ordinal, Session: l.b.session, Output: x.Output})
}
