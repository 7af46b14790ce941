package planner

import (
	"slices"
)

// Changelog-mode inference, after Flink's: kinds go bottom-up while the tree is built (deriveKinds); the update and
// delete kinds go top-down from the sink's demand by settle, which answers whether the tree can give what is asked.

// deriveKinds sets the modify kinds a node gives from those of its inputs.
func (p *phys) deriveKinds() {
	var in Kinds
	for _, c := range p.in {
		in |= c.trait.Kinds
	}
	p.trait.Kinds = in
	if n, ok := p.op.(modifier); ok {
		p.trait.Kinds = n.modify(p, in)
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
	if n, own := p.op.(settler); own {
		ok = n.settle(p, d, &t, apply)
	} else {
		for i := range p.in {
			ok = ok && p.settleInput(i, demand{Update: d.Update}, apply)
		}
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
	if n, ok := p.op.(deleter); ok {
		return n.deleteKind(p, d, k)
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

// subset reports a ⊆ b.
func subset(a, b []int) bool {
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
