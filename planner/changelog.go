package planner

import (
	"slices"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Changelog-mode inference, after Flink's: kinds go bottom-up while the tree is built (deriveKinds); the update and
// delete kinds go top-down from the sink's demand by settle, which answers whether the tree can give what is asked.

// deriveKinds sets the modify kinds a node gives from those of its inputs.
func (p *phys) deriveKinds() {
	var in Kinds
	for _, c := range p.in {
		in |= c.trait.Kinds
	}
	switch n := p.op.(type) {
	case *Values, *WindowAggregate, *Sort:
		p.trait.Kinds = Inserts
	case *Aggregate:
		p.trait.Kinds = Inserts | Updates
		if in != Inserts {
			p.trait.Kinds |= Deletes
		}
	case *normalize:
		p.trait.Kinds = AllKinds
	case *materialize:
		p.trait.Kinds = AllKinds
	default:
		_ = n
		p.trait.Kinds = in
	}
}

// demand is what a consumer asks of its input.
type demand struct {
	Update UpdateKind // NoUpdate: the consumer takes either form
	// KeyDeletes: deletes may carry the key columns only.
	KeyDeletes bool
}

// full is the demand of operators that retract: every change with the old row.
var full = demand{Update: BeforeAndAfter}

// settle makes the tree below p give what d asks, and reports whether it can. With apply false it only answers. A node
// whose stream has no updates satisfies any update demand.
func (p *phys) settle(d demand, apply bool) bool {
	t := Trait{Kinds: p.trait.Kinds}
	if t.Kinds&Updates != 0 {
		t.Update = d.Update
	}
	if t.Kinds&Deletes != 0 {
		t.Delete = DeleteFull
	}
	ok := true
	switch n := p.op.(type) {
	case *Scan:
		// A scan gives what its source declares; consumers adapt it. It is shared, so nothing is decided here.
		declared := p.trait
		return declared.Kinds == Inserts || declared.Update == d.Update
	case *normalize:
		n.removed = apply && n.removable(p, d)
		if n.removable(p, d) {
			t.Delete = DeleteKey
		}
	case *Calc:
		if d.Update == OnlyAfter && n.Cond != nil && t.Kinds&^Inserts != 0 && !filterInsideKey(n.Cond, p.in[0].keys) {
			return false
		}
		ok = p.settleInput(0, d, apply)
		t.Delete = p.in[0].deleteKind(d, t.Kinds)
	case *WindowTVF:
		ok = p.settleInput(0, demand{Update: d.Update}, apply)
	case *Union:
		for i := range p.in {
			ok = ok && p.settleInput(i, demand{Update: d.Update}, apply)
		}
	case *Aggregate, *WindowAggregate, *Sort, *materialize:
		ok = p.settleInput(0, full, apply)
	case *constraint:
		ok = p.settleInput(0, demand{Update: d.Update}, apply)
	case *dropBefore:
		ok = d.Update == OnlyAfter
	}
	if apply && ok {
		p.trait = t
	}
	return ok
}

// deleteKind is what deletes of p carry under demand d.
func (p *phys) deleteKind(d demand, k Kinds) DeleteKind {
	if k&Deletes == 0 {
		return NoDelete
	}
	switch n := p.op.(type) {
	case *normalize:
		if n.removable(p, d) {
			return DeleteKey
		}
	case *Calc:
		return p.in[0].deleteKind(d, k)
	}
	return DeleteFull
}

// settleInput settles input i. A scan with -U under a demand for +U only gets a filter of -U rows.
func (p *phys) settleInput(i int, d demand, apply bool) bool {
	c := p.in[i]
	if s, ok := c.op.(*Scan); ok && d.Update == OnlyAfter && c.trait.Update == BeforeAndAfter {
		if apply {
			f := wrap(&dropBefore{In: s}, c)
			f.trait = Trait{c.trait.Kinds, OnlyAfter, c.trait.Delete}
			f.keys = c.keys
			p.in[i] = f
		}
		return true
	}
	return c.settle(d, apply)
}

// removable tells whether the rows of an upsert source can pass to the consumer as they are.
func (n *normalize) removable(p *phys, d demand) bool {
	s, ok := p.in[0].op.(*Scan)
	return ok && d.Update == OnlyAfter && d.KeyDeletes && s.Info.Mode == types.Upsert && !s.Info.readsMetadata(s.Cols)
}

// filterInsideKey reports that all columns of cond are in one of the keys: an update of a row then passes the filter
// before and after or neither.
func filterInsideKey(cond expr.Expr, keys [][]int) bool {
	cols := expr.ColumnsOf(cond)
	return expr.IsDeterministic(cond) && slices.ContainsFunc(keys, func(k []int) bool { return subset(cols, k) })
}

// subset reports a ⊆ b.
func subset(a, b []int) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
