package planner

import (
	"fmt"

	"github.com/streamsql/streamsql/sql/expr"
)

// What each kind of node needs of its inputs, and finds by itself, in the analysis of determinism.go.

func (n *Calc) determine(d *determinism, p *phys, need needs, out []needs) {
	d.condition(n.Cond, p)
	d.columns(p, n.Exprs, need, out[0])
	out[0].addExprs(passes, n.Cond)
}

// A row with NULL that is dropped now has to be dropped when it is taken back.
func (n *constraint) determine(_ *determinism, _ *phys, need needs, out []needs) {
	copy(out[0], need)
	if n.Drop {
		out[0].add(passes, n.notNull()...)
	}
}

// The normaliser takes back the rows it keeps by their key.
func (n *normalize) determine(*determinism, *phys, needs, []needs) {}

// The values of a row are taken out of what they went into.
func (n *Aggregate) determine(_ *determinism, p *phys, _ needs, out []needs) {
	needsOfAggs(p, n.Keys, n.Aggs, out[0])
}

func (n *WindowAggregate) determine(_ *determinism, p *phys, _ needs, out []needs) {
	needsOfAggs(p, n.Keys, n.Aggs, out[0])
	needsOfWindow(p, n.Window, out[0])
}

func needsOfAggs(p *phys, keys []int, aggs []expr.Agg, out needs) {
	out.add(&purpose{text: shortLabel(p) + " finds the group by it, so the row stays in its old group"}, keys...)
	for _, a := range aggs {
		why := &purpose{text: fmt.Sprintf("%s takes another value out of %s than it put in", shortLabel(p), a.Text)}
		if a.Arg >= 0 {
			out.add(why, a.Arg)
		}
		if a.Filter >= 0 {
			out.add(why, a.Filter)
		}
	}
}

func needsOfWindow(p *phys, w window, out needs) {
	reads := make([]bool, len(out))
	w.reads(reads)
	for c, r := range reads {
		if r {
			out.add(&purpose{text: shortLabel(p) + " finds the window by it, so the row stays in its old window"}, c)
		}
	}
}

func (n *WindowTVF) determine(_ *determinism, p *phys, need needs, out []needs) {
	copy(out[0], need[:len(out[0])])
	needsOfWindow(p, n.Window, out[0])
}

// Rows only get better by their key where -U is not sent; else a row is found by all of its columns.
func (n *Rank) determine(_ *determinism, p *phys, _ needs, out []needs) {
	if n.improving(p) && p.settleInput(0, demand{Update: OnlyAfter}, false) {
		return
	}
	out[0].all(rowsOf(p))
}

func (n *Over) determine(_ *determinism, p *phys, _ needs, out []needs) { out[0].all(rowsOf(p)) }

func (n *Sort) determine(_ *determinism, p *phys, _ needs, out []needs) { out[0].all(rowsOf(p)) }

// A side finds its row by a unique key where it has one and the join key is the same, else by the whole row; and what it
// meets on the other side by the join key and the condition.
func (n *Join) determine(d *determinism, p *phys, need needs, out []needs) {
	d.condition(n.Cond, p)
	left := len(out[0])
	pair := make(needs, left+len(out[1]))
	copy(pair, need)
	pair.addExprs(&purpose{text: "Join finds by it what the row was joined with, so old pairs stay"}, n.Cond)
	copy(out[0], pair[:left])
	copy(out[1], pair[left:])
	for i, o := range out {
		o.add(stays("Join finds a row by its join key"), n.keyCols(i)...)
		if n.unique(p, i) == nil {
			o.all(rowsOf(p))
		}
	}
}

// Rows of the left side wait for their time; the version of the right side that they meet is the one that is kept. Of the
// right side's changes only the key counts, which is its upsert key.
func (n *TemporalJoin) determine(d *determinism, p *phys, need needs, out []needs) {
	left := len(out[0])
	copy(out[0], need[:left])
	if !changes(p.in[0]) {
		return
	}
	d.condition(n.Cond, p)
	why := &purpose{text: "TemporalJoin finds the version by it, so the row is taken back with another one than it met"}
	out[0].add(why, n.LTime)
	for _, k := range n.Keys {
		out[0].add(why, k.L)
	}
	if n.Cond != nil {
		for _, c := range expr.ColumnsOf(n.Cond) {
			if c < left {
				out[0].add(passes, c)
			}
		}
	}
}

// The table can have other rows when a left row is taken back than when it came, and another key may be asked for. That
// matters where a column of the table's is needed, or its rows decide how often the left row leaves. Rows that were kept
// are found by the left row's key.
func (n *LookupJoin) determine(d *determinism, p *phys, need needs, out []needs) {
	left := len(out[0])
	copy(out[0], need[:left])
	effect := "where the table has no row for it then, the change is dropped and the old row stays"
	depends := n.Kind == InnerJoin || len(p.keys) == 0
	for c, w := range need[left:] {
		if w != nil {
			depends = true
			effect = fmt.Sprintf("column %s can have another value then; %s", p.fields[left+c].Name, w.text)
			break
		}
	}
	if !depends {
		return
	}
	d.condition(n.Cond, p)
	if n.Cond != nil {
		for _, c := range expr.ColumnsOf(n.Cond) {
			if c < left {
				out[0].add(passes, c)
			}
		}
	}
	if len(p.in[0].keys) == 0 {
		out[0].all(rowsOf(p))
	}
	switch {
	case n.Keep:
	case d.resolve:
		keep := *n
		keep.Keep = true
		p.op, d.kept = &keep, true
	default:
		d.report(risk{pos: n.Pos, what: fmt.Sprintf("table %s can have other rows when a row is taken back", n.Info.Table.Name),
			effect: byItself(p) + effect})
	}
}

// The id of a copy is made of nothing.
func (n *Expand) determine(_ *determinism, _ *phys, need needs, out []needs) {
	copy(out[0], need[:len(out[0])])
}

// The entries of a collection are as many as there were.
func (n *Unnest) determine(d *determinism, p *phys, need needs, out []needs) {
	copy(out[0], need[:len(out[0])])
	d.arguments(p, "UNNEST", out[0], n.Arg)
}

func (n *Correlate) determine(d *determinism, p *phys, need needs, out []needs) {
	copy(out[0], need[:len(out[0])])
	d.arguments(p, n.Func, out[0], n.Call.Args...)
}

// arguments reports arguments of a table function that differ for every change, and needs what the others read.
func (d *determinism) arguments(p *phys, function string, out needs, args ...expr.Expr) {
	for _, e := range args {
		if c := d.volatileCall(e); c != nil {
			d.report(risk{c.Pos, fmt.Sprintf("%s gives %s another argument when a row is taken back", c, function),
				byItself(p) + "the rows made of it then are others, so the old ones stay",
				"use a column of the row instead of " + c.String()})
			continue
		}
		out.addExprs(&purpose{text: function + " makes rows of it, so others are taken back than were sent"}, e)
	}
}

// The number of copies stands behind the columns.
func (n *Replicate) determine(_ *determinism, _ *phys, need needs, out []needs) {
	copy(out[0], need)
	out[0].add(&purpose{text: "Replicate takes back as many copies as it says, so some stay"}, len(need))
}
