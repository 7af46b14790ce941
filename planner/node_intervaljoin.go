package planner

import (
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// IntervalJoin joins rows of two insert-only inputs whose times are near: what a Join that intervalJoin recognises becomes.
type IntervalJoin struct {
	L, R     Node
	Kind     JoinKind // inner or outer
	Keys     []JoinKey
	Cond     expr.Expr // over the fields of L, then those of R; nil = none
	Interval interval
	Mixed    bool // the two times are of different types
	Pos      diag.Pos
}

// join is the same join as a regular one, for what the two share.
func (n *IntervalJoin) join() *Join {
	return &Join{L: n.L, R: n.R, Kind: n.Kind, Keys: n.Keys, Cond: n.Cond}
}

// Inputs implements Node.
func (n *IntervalJoin) Inputs() []Node { return []Node{n.L, n.R} }

func (n *IntervalJoin) withInputs(in []Node) Node { c := *n; c.L, c.R = in[0], in[1]; return &c }

// Fields implements Node. The time attributes of both sides stay.
func (n *IntervalJoin) Fields() []Field {
	out := n.join().allFields()
	for i := range out {
		if !n.keepsTime(out[i].Time) {
			out[i].Time = NoTime
		}
	}
	return out
}

// keepsTime implements timed. A join by processing time keeps rows for a time that event time knows nothing of: event
// times become plain timestamps.
func (n *IntervalJoin) keepsTime(t TimeAttr) bool { return t != Rowtime || !n.Interval.Proctime }

func (n *IntervalJoin) label() string {
	all, left := n.join().sideFields(), len(n.L.Fields())
	s := strings.Replace(n.join().label(), "Join(", "IntervalJoin(", 1)
	return strings.Replace(s, ", ", ", interval=["+n.Interval.text(all[:left], all[left:])+"], ", 1)
}

func (n *IntervalJoin) identity(w *identity) {
	n.join().identity(w)
	v := n.Interval
	w.put("interval", v.L, v.R, v.Lower, v.Upper, v.Proctime)
}

func (n *IntervalJoin) slug() string   { return "interval-join" }
func (n *IntervalJoin) stateful() bool { return true }
func (n *IntervalJoin) updates() bool  { return false }

func (n *IntervalJoin) modify(*phys, Kinds) Kinds { return Inserts }

func (n *IntervalJoin) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	ok := true
	for i := range p.in {
		ok = p.settleInput(i, full, apply) && ok
	}
	return ok
}

func (n *IntervalJoin) upsertKeys(p *phys) [][]int { return n.join().upsertKeys(p) }

func (n *IntervalJoin) distribute(b *builder, p *phys) error {
	if n.Mixed {
		l, r := n.L.Fields()[n.Interval.L], n.R.Fields()[n.Interval.R]
		return diag.New(diag.Semantic, n.Pos, "an interval join needs the same rowtime type on both sides: %s is %s, %s is %s",
			l.Name, l.Type.WithNull(true), r.Name, r.Type.WithNull(true)).
			WithDetail("TIMESTAMP is a wall clock, TIMESTAMP_LTZ an instant: how far apart they are depends on the session's time zone").
			WithHint("declare both rowtime columns as TIMESTAMP_LTZ(3), or both as TIMESTAMP(3), with a watermark")
	}
	for i, in := range p.in {
		if kinds := in.trait.Kinds &^ Inserts; kinds != 0 {
			return diag.New(diag.Semantic, n.Pos, "an interval join does not support consuming %s changes produced by %s", kinds.words(), origin(in).op.label()).
				WithDetail("the %s side changes rows it gave before; an interval join forgets rows by their time and cannot take pairs back", [2]string{"left", "right"}[i]).
				WithHint("join insert-only streams and aggregate the result; or make it a regular join, which keeps all rows: compare CAST(%s AS TIMESTAMP(6))", n.timeName(i))
		}
	}
	return n.join().distribute(b, p)
}

// timeName is the time attribute of one side.
func (n *IntervalJoin) timeName(side int) string {
	if side == 0 {
		return n.L.Fields()[n.Interval.L].Name
	}
	return n.R.Fields()[n.Interval.R].Name
}

func (n *IntervalJoin) prune(need []bool) (Node, []int) {
	lw, rw := len(n.L.Fields()), len(n.R.Fields())
	both := make([]bool, lw+rw)
	copy(both, need)
	mark(both, n.Cond)
	for _, k := range n.Keys {
		both[k.L], both[lw+k.R] = true, true
	}
	both[n.Interval.L], both[lw+n.Interval.R] = true, true
	l, lm := prune(n.L, both[:lw])
	r, rm := prune(n.R, both[lw:])
	c := *n
	c.L, c.R, c.Keys = l, r, make([]JoinKey, len(n.Keys))
	for i, k := range n.Keys {
		c.Keys[i] = JoinKey{lm[k.L], rm[k.R], k.NullSafe}
	}
	c.Interval.L, c.Interval.R = lm[n.Interval.L], rm[n.Interval.R]
	m := joinMap(lm, rm, len(l.Fields()))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, m)
	}
	return &c, m
}

// joinMap maps old columns of both sides to new ones, from the maps of each and the left side's new width.
func joinMap(lm, rm []int, left int) []int {
	m := append(make([]int, 0, len(lm)+len(rm)), lm...)
	for _, x := range rm {
		if x >= 0 {
			x += left
		}
		m = append(m, x)
	}
	return m
}

func (n *IntervalJoin) lower(l *lowering, x *exec.Node, p *phys) {
	j := n.join()
	spec := op.IntervalJoinSpec{Left: p.schema(0), Right: p.schema(1), LeftKeys: j.keyCols(0), RightKeys: j.keyCols(1),
		LeftOuter: n.Kind.PadsLeft(), RightOuter: n.Kind.PadsRight(), Lower: n.Interval.Lower, Upper: n.Interval.Upper,
		Proctime: n.Interval.Proctime, LeftTime: n.Interval.L, RightTime: n.Interval.R, Cond: n.Cond,
		MinCleanup: l.b.conf.Duration(keyIntervalCleanup).Milliseconds(), Session: l.b.session, Output: x.Output}
	for _, k := range n.Keys {
		spec.NullSafe = append(spec.NullSafe, k.NullSafe)
	}
	x.Operator = op.NewIntervalJoin(spec)
}
