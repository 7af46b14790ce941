package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// JoinKind is the kind of a Join.
type JoinKind = op.JoinKind

// The joins.
const (
	InnerJoin = op.InnerJoin
	LeftJoin  = op.LeftJoin
	RightJoin = op.RightJoin
	FullJoin  = op.FullJoin
	SemiJoin  = op.SemiJoin
	AntiJoin  = op.AntiJoin
)

// JoinKey is a pair of columns, of the left and of the right input, that a join compares for equality. Their values have
// the same encoding. NullSafe lets NULL equal NULL (IS NOT DISTINCT FROM).
type JoinKey struct {
	L, R     int
	NullSafe bool
}

// Join joins two inputs. The output is the fields of L, then those of R; of semi and anti joins it is those of L. As
// bound, all of the condition is Cond; the rule join-conditions takes the keys out of it.
type Join struct {
	L, R Node
	Kind JoinKind
	Keys []JoinKey
	Cond expr.Expr // over the fields of L, then those of R; nil = none
	// TTL is the STATE_TTL hint of each side in ms, nil = table.exec.state.ttl.
	TTL [2]*int64
	Pos diag.Pos

	known joinFields
}

// joinFields are the fields of a join and what they were derived from, which a copy of the node may have changed: a
// chain of joins asks for them more often than it is long.
type joinFields struct {
	l, r   Node
	kind   JoinKind
	cond   expr.Expr
	keys   int
	fields []Field
}

// Inputs implements Node.
func (n *Join) Inputs() []Node { return []Node{n.L, n.R} }

func (n *Join) withInputs(in []Node) Node { c := *n; c.L, c.R = in[0], in[1]; return &c }

// Fields implements Node. Time attributes are lost on both sides, because rows wait in state for any time, but for the
// joins that event time bounds. A name that the left side has already gets a number, as in Flink.
func (n *Join) Fields() []Field {
	k := &n.known
	if k.fields == nil || k.l != n.L || k.r != n.R || k.kind != n.Kind || k.cond != n.Cond || k.keys != len(n.Keys) {
		*k = joinFields{n.L, n.R, n.Kind, n.Cond, len(n.Keys), n.deriveFields()}
	}
	return slices.Clone(k.fields)
}

func (n *Join) deriveFields() []Field {
	out := n.allFields()
	keeps := func(TimeAttr) bool { return false }
	if x := n.timedNode(); x != nil {
		keeps = x.keepsTime
	}
	for i := range out {
		if !keeps(out[i].Time) {
			out[i].Time = NoTime
		}
	}
	return out
}

// allFields are the output with all time attributes.
func (n *Join) allFields() []Field {
	l := n.L.Fields()
	if n.Kind.HalfJoin() {
		return slices.Clone(l)
	}
	taken := make(map[string]bool, len(l))
	return joinedFields(joinedFields(nil, l, taken, n.Kind.PadsRight()), n.R.Fields(), taken, n.Kind.PadsLeft())
}

// joinedFields appends one side's fields to out.
func joinedFields(out, side []Field, taken map[string]bool, nullable bool) []Field {
	for _, f := range side {
		if taken != nil {
			f.Name = unique(f.Name, taken)
		}
		if nullable {
			f.Type = f.Type.WithNull(true)
		}
		out = append(out, f)
	}
	return out
}

// sideFields are the fields the condition is over: both sides' own, whatever the kind.
func (n *Join) sideFields() []Field {
	taken := map[string]bool{}
	return joinedFields(joinedFields(nil, n.L.Fields(), taken, false), n.R.Fields(), taken, false)
}

// keyCols are the key columns of one side: 0 left, 1 right.
func (n *Join) keyCols(side int) []int {
	out := make([]int, len(n.Keys))
	for i, k := range n.Keys {
		out[i] = [2]int{k.L, k.R}[side]
	}
	return out
}

func (n *Join) label() string {
	all, left := n.sideFields(), len(n.L.Fields())
	var where []string
	for _, k := range n.Keys {
		op := "="
		if k.NullSafe {
			op = "IS NOT DISTINCT FROM"
		}
		where = append(where, fmt.Sprintf("(%s %s %s)", all[k.L].Name, op, all[left+k.R].Name))
	}
	if n.Cond != nil {
		for _, c := range expr.Conjuncts(n.Cond) {
			where = append(where, "("+renamed(c, all).String()+")")
		}
	}
	s := fmt.Sprintf("Join(joinType=[%s]", n.Kind)
	if where != nil {
		s += ", where=[" + strings.Join(where, " AND ") + "]"
	}
	return s + ", select=[" + strings.Join(fieldNames(n.Fields()), ", ") + "])"
}

func (n *Join) identity(w *identity) {
	w.put("kind", n.Kind.String())
	w.put("keys", n.Keys)
	w.put("on", n.Cond)
}

// renamed gives the columns of e the names of fields, for printing.
func renamed(e expr.Expr, fields []Field) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Name != fields[c.Index].Name {
			return &expr.Column{Index: c.Index, Name: fields[c.Index].Name, T: c.T}
		}
		return x
	})
}

// detail says how the state of each side tells its rows apart, and its own time-to-live.
func (n *Join) detail(p *phys) string {
	s := ""
	for i, side := range []string{"left", "right"} {
		spec := "NoUniqueKey"
		if k := n.unique(p, i); k != nil && subset(k, n.keyCols(i)) {
			spec = "JoinKeyContainsUniqueKey"
		} else if k != nil {
			spec = "HasUniqueKey"
		}
		s += fmt.Sprintf(", %sInputSpec=[%s]", side, spec)
		if n.TTL[i] != nil {
			s += fmt.Sprintf(", %sStateTtl=[%s]", side, millis(*n.TTL[i]))
		}
	}
	return s
}

func (n *Join) grows(ttl int64) string {
	l, r := hinted(n.TTL[0], ttl) == 0, hinted(n.TTL[1], ttl) == 0
	if !l && !r {
		return ""
	}
	side := "both sides"
	if !r {
		side = "the left side"
	} else if !l {
		side = "the right side"
	}
	return "a join keeps the rows of " + side + " until they are deleted; '" + keyStateTTL + "' or the hint STATE_TTL('table'='1 d') bounds that"
}

func (n *Join) slug() string   { return "join" }
func (n *Join) stateful() bool { return true }

func (n *Join) updates() bool {
	return n.Kind != InnerJoin && n.Kind != SemiJoin || updating(n.L) || updating(n.R)
}

// modify: a row of an outer side is given with NULLs until it is matched, and one of an anti join until then.
func (n *Join) modify(_ *phys, in Kinds) Kinds {
	if n.Kind == InnerJoin || n.Kind == SemiJoin {
		return in
	}
	return AllKinds
}

// settle: +U without -U will do when an update of a side cannot change which rows of the other it meets: the side's key
// holds the join key and all the condition reads of it.
func (n *Join) settle(p *phys, d demand, t *Trait, apply bool) bool {
	ok := true
	for i := range p.in {
		ask, can := n.demand(p, i, d)
		ok = ok && can && p.settleInput(i, ask, apply)
	}
	t.Delete = n.deleteKind(p, d, t.Kinds)
	return ok
}

// demand is what the join asks of input i to give changes as d demands.
func (n *Join) demand(p *phys, i int, d demand) (ask demand, ok bool) {
	keeps := n.keepsPairs(p, i)
	if d.Update == OnlyAfter {
		return demand{Update: OnlyAfter, KeyDeletes: d.KeyDeletes && keeps}, keeps || p.in[i].trait.Kinds&Updates == 0
	}
	return full, true
}

// keepsPairs reports that updates of input i by key leave the pairs of rows as they are.
func (n *Join) keepsPairs(p *phys, i int) bool {
	reads := n.keyCols(i)
	if n.Cond != nil {
		if !expr.IsDeterministic(n.Cond) {
			return false
		}
		left := len(p.in[0].fields)
		for _, c := range expr.ColumnsOf(n.Cond) {
			if c < left && i == 0 {
				reads = append(reads, c)
			} else if c >= left && i == 1 {
				reads = append(reads, c-left)
			}
		}
	}
	return slices.ContainsFunc(p.in[i].keys, func(k []int) bool { return subset(reads, k) })
}

// deleteKind: a side's deletes by key come out as such. Those of the right side of a semi join do not come out.
func (n *Join) deleteKind(p *phys, d demand, k Kinds) DeleteKind {
	if k&Deletes == 0 {
		return NoDelete
	}
	for i, in := range p.in {
		if ask, ok := n.demand(p, i, d); ok && in.deleteKind(ask, in.trait.Kinds) == DeleteKey && (i == 0 || !n.Kind.HalfJoin()) {
			return DeleteKey
		}
	}
	return DeleteFull
}

// upsertKeys: keys of a side that hold its join key survive the exchange. Together they identify a pair; one side's alone
// does if the other has one row at most for it, and the side is not given with NULLs.
func (n *Join) upsertKeys(p *phys) [][]int {
	var side [2][][]int
	var one [2]bool
	for i, in := range p.in {
		keys := n.keyCols(i)
		for _, k := range in.keys {
			one[i] = one[i] || subset(k, keys)
			if subset(keys, k) {
				side[i] = append(side[i], k)
			}
		}
	}
	if n.Kind.HalfJoin() {
		return side[0]
	}
	for i, k := range side[1] {
		side[1][i] = shift(k, len(p.in[0].fields))
	}
	return n.pairKeys(side, one)
}

// shift adds by to each column.
func shift(cols []int, by int) []int {
	out := make([]int, len(cols))
	for i, c := range cols {
		out[i] = c + by
	}
	return out
}

// pairKeys are the keys of the output, from those of the sides in output columns and whether each is unique on its join
// key.
func (n *Join) pairKeys(side [2][][]int, one [2]bool) [][]int {
	var out [][]int
	add := func(k []int) {
		if len(out) < maxKeys && !slices.ContainsFunc(out, func(x []int) bool { return slices.Equal(x, k) }) {
			out = append(out, k)
		}
	}
	if one[1] && !n.Kind.PadsRight() {
		for _, k := range side[0] {
			add(k)
		}
	}
	if one[0] && !n.Kind.PadsLeft() {
		for _, k := range side[1] {
			add(k)
		}
	}
	for _, l := range side[0] {
		for _, r := range side[1] {
			add(slices.Concat(l, r))
		}
	}
	return out
}

func (n *Join) distribute(b *builder, p *phys) error {
	b.keyedInput(p, 0, n.keyCols(0))
	b.keyedInput(p, 1, n.keyCols(1))
	switch {
	case n.Kind == RightJoin:
		p.dist = shift(n.keyCols(1), len(p.in[0].fields))
	case n.Kind != FullJoin:
		p.dist = n.keyCols(0)
	}
	if len(p.dist) == 0 {
		p.dist = nil
	}
	return nil
}

func (n *Join) prune(need []bool) (Node, []int) {
	lw, rw := len(n.L.Fields()), len(n.R.Fields())
	both := make([]bool, lw+rw)
	copy(both, need)
	if n.Cond != nil {
		mark(both, n.Cond)
	}
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
	m := append(make([]int, 0, lw+rw), lm...)
	for _, x := range rm {
		if x >= 0 {
			x += len(l.Fields())
		}
		m = append(m, x)
	}
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, m)
	}
	return &c, m[:len(need)]
}

// unique is the key by which the state of input i keeps its rows, nil for none: one inside the join key means one row
// per join key; others have to survive the exchange.
func (n *Join) unique(p *phys, i int) []int {
	keys := n.keyCols(i)
	var best []int
	for _, k := range p.in[i].keys {
		if subset(k, keys) {
			return k
		}
		if subset(keys, k) && (best == nil || len(k) < len(best)) {
			best = k
		}
	}
	return best
}

func (n *Join) lower(l *lowering, x *exec.Node, p *phys) {
	mini, _ := l.b.miniBatch() // without a size there is none, as of a Top-N
	spec := op.JoinSpec{Kind: n.Kind, Cond: n.Cond, Session: l.b.session, Output: x.Output, Mini: mini}
	for i, in := range []*op.JoinInput{&spec.Left, &spec.Right} {
		*in = op.JoinInput{Schema: p.schema(i), Keys: n.keyCols(i), Unique: n.unique(p, i), TTL: hinted(n.TTL[i], l.ttl()),
			InsertOnly: p.mode(i) == types.AppendOnly}
	}
	for _, k := range n.Keys {
		spec.NullSafe = append(spec.NullSafe, k.NullSafe)
	}
	x.Operator = op.NewJoin(spec)
}
