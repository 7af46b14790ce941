package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// TemporalJoin joins each row of L with the version of R that was valid at the row's event time.
type TemporalJoin struct {
	L, R         Node
	Kind         JoinKind // inner or left
	LTime, RTime int      // rowtime columns of each side
	Keys         []JoinKey
	Cond         expr.Expr // over the fields of L, then those of R; as bound all of the condition
	Table        string    // of R, for errors
	Pos          diag.Pos
}

// Inputs implements Node.
func (n *TemporalJoin) Inputs() []Node { return []Node{n.L, n.R} }

func (n *TemporalJoin) withInputs(in []Node) Node { c := *n; c.L, c.R = in[0], in[1]; return &c }

func (n *TemporalJoin) withCond(e expr.Expr) asOfNode { c := *n; c.Cond = e; return &c }

// Fields implements Node. The left side keeps its time attributes, the right side's are plain timestamps.
func (n *TemporalJoin) Fields() []Field { return asOfFields(n.L.Fields(), n.rightFields(), n.Kind) }

func (n *TemporalJoin) rightFields() []Field {
	return joinedFields(nil, plainTimes(n.R.Fields()), nil, false)
}

// plainTimes are fields without time attributes.
func plainTimes(f []Field) []Field {
	out := slices.Clone(f)
	for i := range out {
		out[i].Time = NoTime
	}
	return out
}

// asOfFields are the output of a join as of a time of the left side.
func asOfFields(l, r []Field, kind JoinKind) []Field {
	taken := make(map[string]bool, len(l))
	return joinedFields(joinedFields(nil, l, taken, false), r, taken, kind == LeftJoin)
}

// asOfText is the condition of such a join, for labels.
func asOfText(l, r []Field, keys []JoinKey, cond expr.Expr) string {
	all := asOfFields(l, r, InnerJoin)
	var where []string
	for _, k := range keys {
		where = append(where, fmt.Sprintf("(%s = %s)", all[k.L].Name, all[len(l)+k.R].Name))
	}
	if cond != nil {
		for _, c := range expr.Conjuncts(cond) {
			where = append(where, "("+renamed(c, all).String()+")")
		}
	}
	return strings.Join(where, " AND ")
}

func (n *TemporalJoin) label() string {
	l := n.L.Fields()
	return fmt.Sprintf("TemporalJoin(joinType=[%s], asOf=[%s], where=[%s], select=[%s])", n.Kind, l[n.LTime].Name,
		asOfText(l, n.rightFields(), n.Keys, n.Cond), strings.Join(fieldNames(n.Fields()), ", "))
}

func (n *TemporalJoin) identity(w *identity) {
	w.put("kind", n.Kind.String())
	w.put("time", n.LTime, n.RTime)
	w.put("keys", n.Keys)
	w.put("on", n.Cond)
}

func (n *TemporalJoin) slug() string   { return "temporal-join" }
func (n *TemporalJoin) stateful() bool { return true }
func (n *TemporalJoin) updates() bool  { return updating(n.L) }

func (n *TemporalJoin) grows(ttl int64) string {
	if ttl != 0 {
		return ""
	}
	return "a temporal join keeps the newest version of every key of " + n.Table + "; '" + keyStateTTL + "' forgets keys without rows on either side"
}

// pushFilter: what reads the left side only decides about whole left rows. Nothing may go below the right side: an older
// version would take the place of one that is filtered out.
func (n *TemporalJoin) pushFilter(c expr.Expr) (Node, bool) {
	x := *n
	left, cond, ok := pushAsOf(n.L, n.rightFields(), &x.Kind, n.Cond, c)
	x.L, x.Cond = left, cond
	return &x, ok
}

// pushAsOf moves conjunct c, over the output of a join as of a time of the left side, into the join or below it.
func pushAsOf(l Node, r []Field, kind *JoinKind, cond, c expr.Expr) (Node, expr.Expr, bool) {
	left := len(l.Fields())
	c = retype(c, asOfFields(l.Fields(), r, InnerJoin))
	if *kind == LeftJoin && neverTrue(c, func(i int) bool { return i >= left }) {
		*kind = InnerJoin
	}
	switch {
	case sidesOf(c, left)&rightSide == 0:
		return addFilter(l, c), cond, true
	case *kind == InnerJoin && cond != nil:
		return l, expr.And(cond, c), true
	case *kind == InnerJoin:
		return l, c, true
	}
	return l, cond, false
}

// asOfJoins is the rule that takes the conditions of joins as of a time apart.
func (o *optimizer) asOfJoins(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		switch n := n.(type) {
		case *TemporalJoin:
			return n.keyed()
		case *LookupJoin:
			return n.keyed(o)
		}
		return n, nil
	})
}

// keyed makes keys of the condition's equalities; sides that are not columns are computed below the join.
func (n *TemporalJoin) keyed() (Node, error) {
	if n.Cond == nil {
		return nil, n.noKey(nil)
	}
	if n.Keys != nil {
		return n, nil
	}
	x, err := (&Join{L: n.L, R: n.R, Kind: n.Kind, Cond: n.Cond}).keyed()
	if err != nil {
		return nil, err
	}
	p, computed := x.(*Project)
	if computed {
		x = p.In
	}
	j := x.(*Join)
	if len(j.Keys) == 0 {
		return nil, n.noKey(nil)
	}
	c := *n
	c.L, c.R, c.Keys, c.Cond = j.L, j.R, j.Keys, j.Cond
	if !computed {
		return &c, nil
	}
	return p.withInputs([]Node{&c}), nil
}

// noKey refuses a join whose condition does not compare the versioned table's key.
func (n *TemporalJoin) noKey(keys [][]int) error {
	e := diag.New(diag.Semantic, n.Pos, "the join with %s FOR SYSTEM_TIME AS OF must compare its key", n.Table).
		WithDetail("versions are told apart by the table's primary key, or by the PARTITION BY of the query that makes them")
	key := smallest(keys)
	if len(key) == 0 {
		return e.WithHint("declare PRIMARY KEY (...) NOT ENFORCED on %s, and compare each column of it with = in ON", n.Table)
	}
	f := n.R.Fields()
	parts := make([]string, len(key))
	for i, k := range key {
		parts[i] = n.Table + "." + f[k].Name + " = ..."
	}
	return e.WithHint("write ON %s", strings.Join(parts, " AND "))
}

func (n *TemporalJoin) modify(p *phys, _ Kinds) Kinds { return p.in[0].trait.Kinds }

// settle: the left side's changes come out as they are; of the right side's updates the new row will do.
func (n *TemporalJoin) settle(p *phys, d demand, t *Trait, apply bool) bool {
	ok := p.settleInput(0, demand{Update: d.Update}, apply)
	right := demand{Update: OnlyAfter}
	if !p.settleInput(1, right, false) {
		right = full
	}
	return p.settleInput(1, right, apply) && ok
}

// upsertKeys: there is one version at most for a left row.
func (n *TemporalJoin) upsertKeys(p *phys) [][]int {
	var out [][]int
	for _, k := range p.in[0].keys {
		for _, key := range n.Keys {
			if !slices.Contains(k, key.L) {
				k = nil
				break
			}
		}
		if k != nil {
			out = append(out, k)
		}
	}
	return out
}

// versions takes the normaliser of an upsert source away: every change of a key is a version.
func (n *TemporalJoin) versions(p *phys) *phys {
	if _, ok := p.op.(*normalize); ok {
		if _, direct := p.in[0].op.(*Scan); direct {
			return p.in[0]
		}
	}
	if c, ok := p.op.(*Calc); ok && c.Cond == nil {
		p.in[0] = n.versions(p.in[0])
		p.deriveKinds()
	}
	return p
}

// distribute settles the keys: just those of the versioned table, as its versions live by them. Other equalities are
// tested per version.
func (n *TemporalJoin) distribute(b *builder, p *phys) error {
	c := *n
	key := c.versionKey(p.in[1].keys)
	if key == nil {
		return n.noKey(p.in[1].keys)
	}
	c.Keys = nil
	left, l, r := len(p.in[0].fields), p.in[0].fields, p.in[1].fields
	for _, k := range n.Keys {
		if slices.Contains(key, k.R) && !k.NullSafe && !slices.ContainsFunc(c.Keys, func(x JoinKey) bool { return x.R == k.R }) {
			c.Keys = append(c.Keys, k)
			continue
		}
		op := "="
		if k.NullSafe {
			op = "IS NOT DISTINCT FROM"
		}
		eq, err := expr.NewBinary(op, col(l, k.L), &expr.Column{Index: left + k.R, Name: r[k.R].Name, T: r[k.R].Type})
		if err != nil {
			return err
		}
		if c.Cond != nil {
			eq = expr.And(c.Cond, eq)
		}
		c.Cond = eq
	}
	p.op = &c
	b.keyedInput(p, 0, c.keyCols(0))
	b.keyedInput(p, 1, c.keyCols(1))
	p.dist = c.keyCols(0)
	return nil
}

// versionKey is the key of the right side that the condition compares, nil when it compares none.
func (n *TemporalJoin) versionKey(keys [][]int) []int {
	var compared []int
	for _, k := range n.Keys {
		if !k.NullSafe {
			compared = append(compared, k.R)
		}
	}
	for _, k := range keys {
		if len(k) > 0 && subset(k, compared) {
			return k
		}
	}
	return nil
}

func (n *TemporalJoin) keyCols(side int) []int {
	return (&Join{Keys: n.Keys}).keyCols(side)
}

func (n *TemporalJoin) prune(need []bool) (Node, []int) {
	lw, rw := len(n.L.Fields()), len(n.R.Fields())
	both := make([]bool, lw+rw)
	copy(both, need)
	mark(both, n.Cond)
	for _, k := range n.Keys {
		both[k.L], both[lw+k.R] = true, true
	}
	both[n.LTime], both[lw+n.RTime] = true, true
	l, lm := prune(n.L, both[:lw])
	r, rm := prune(n.R, both[lw:])
	c := *n
	c.L, c.R, c.Keys = l, r, make([]JoinKey, len(n.Keys))
	for i, k := range n.Keys {
		c.Keys[i] = JoinKey{lm[k.L], rm[k.R], k.NullSafe}
	}
	c.LTime, c.RTime = lm[n.LTime], rm[n.RTime]
	m := joinMap(lm, rm, len(l.Fields()))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, m)
	}
	return &c, m
}

func (n *TemporalJoin) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewTemporalJoin(op.TemporalJoinSpec{Left: p.schema(0), Right: p.schema(1), LeftKeys: n.keyCols(0),
		RightKeys: n.keyCols(1), LeftTime: n.LTime, RightTime: n.RTime, Outer: n.Kind == LeftJoin, Cond: n.Cond,
		TTL: l.ttl(), Session: l.b.session, Output: x.Output})
}
