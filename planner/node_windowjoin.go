package planner

import (
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowJoin joins rows of two insert-only inputs within windows, when these end: what a Join that agrees in the start
// and the end of equal windows becomes.
type WindowJoin struct {
	L, R       Node
	Kind       JoinKind
	Keys       []JoinKey // start and end of the windows among them
	Cond       expr.Expr // over the fields of L, then those of R; nil = none
	Start, End JoinKey   // of the windows
	Window     window    // what the windows are, over no input
	Pos        diag.Pos
}

// join is the same join as a regular one, for what the two share.
func (n *WindowJoin) join() *Join {
	return &Join{L: n.L, R: n.R, Kind: n.Kind, Keys: n.Keys, Cond: n.Cond}
}

// Inputs implements Node.
func (n *WindowJoin) Inputs() []Node { return []Node{n.L, n.R} }

func (n *WindowJoin) withInputs(in []Node) Node { c := *n; c.L, c.R = in[0], in[1]; return &c }

// Fields implements Node. The time attributes of both sides stay: rows leave before the watermark that ends their window.
func (n *WindowJoin) Fields() []Field { return n.join().allFields() }

// keepsTime implements timed.
func (n *WindowJoin) keepsTime(TimeAttr) bool { return true }

// passWindow implements windowPasser, but for the side that may be NULL.
func (n *WindowJoin) passWindow(c int) (Node, int, bool) {
	left := len(n.L.Fields())
	if c < left {
		return n.L, c, !n.Kind.PadsRight()
	}
	return n.R, c - left, !n.Kind.PadsLeft()
}

func (n *WindowJoin) label() string {
	s := strings.Replace(n.join().label(), "Join(", "WindowJoin(", 1)
	return strings.Replace(s, ", ", ", window=["+n.Window.kindText()+"], ", 1)
}

func (n *WindowJoin) identity(w *identity) {
	n.join().identity(w)
	w.put("columns", n.Start, n.End)
	w.put("window", n.Window)
}

func (n *WindowJoin) slug() string   { return "window-join" }
func (n *WindowJoin) stateful() bool { return true }
func (n *WindowJoin) updates() bool  { return false }

func (n *WindowJoin) modify(*phys, Kinds) Kinds { return Inserts }

func (n *WindowJoin) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	ok := true
	for i := range p.in {
		ok = p.settleInput(i, full, apply) && ok
	}
	return ok
}

func (n *WindowJoin) upsertKeys(p *phys) [][]int { return n.join().upsertKeys(p) }

func (n *WindowJoin) distribute(b *builder, p *phys) error {
	for i, in := range p.in {
		if kinds := in.trait.Kinds &^ Inserts; kinds != 0 {
			return diag.New(diag.Semantic, n.Pos, "a window join does not support consuming %s changes produced by %s", kinds.words(), origin(in).op.label()).
				WithDetail("the %s side changes rows it gave before; a window's pairs leave once, when it ends, and cannot be taken back", [2]string{"left", "right"}[i]).
				WithHint("aggregate each side by its window first, whose results are final; or make it a regular join, which keeps all rows: compare only one of window_start and window_end")
		}
	}
	return n.join().distribute(b, p)
}

func (n *WindowJoin) prune(need []bool) (Node, []int) {
	lw, rw := len(n.L.Fields()), len(n.R.Fields())
	both := make([]bool, lw+rw)
	copy(both, need)
	mark(both, n.Cond)
	for _, k := range n.Keys {
		both[k.L], both[lw+k.R] = true, true
	}
	l, lm := prune(n.L, both[:lw])
	r, rm := prune(n.R, both[lw:])
	c := *n
	c.L, c.R, c.Keys = l, r, make([]JoinKey, len(n.Keys))
	for i, k := range n.Keys {
		c.Keys[i] = JoinKey{lm[k.L], rm[k.R], k.NullSafe}
	}
	c.Start.L, c.Start.R = lm[n.Start.L], rm[n.Start.R]
	c.End.L, c.End.R = lm[n.End.L], rm[n.End.R]
	m := joinMap(lm, rm, len(l.Fields()))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, m)
	}
	if n.Kind.HalfJoin() {
		m = lm
	}
	return &c, m
}

func (n *WindowJoin) lower(l *lowering, x *exec.Node, p *phys) {
	spec := op.WindowJoinSpec{Inputs: [2]*types.Schema{p.schema(0), p.schema(1)}, Kind: n.Kind, End: [2]int{n.End.L, n.End.R},
		InstantEnd: n.Window.TimeKind == types.TimestampLTZ, Cond: n.Cond, Session: l.b.session, Output: x.Output}
	for i := range spec.Keys {
		spec.Keys[i] = n.join().keyCols(i)
	}
	for _, k := range n.Keys {
		spec.NullSafe = append(spec.NullSafe, k.NullSafe)
	}
	x.Operator = op.NewWindowJoin(spec)
}
