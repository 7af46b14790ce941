package planner

import (
	"slices"
	"strconv"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// distribute sets parallelism and exchanges, inputs first. Keyed operators get their rows by key group of exactly their
// key columns, because key groups own state; an input that is distributed by the same columns already is forwarded.
func (b *builder) distribute(p *phys) error {
	if p.par > 0 {
		return nil // a shared scan
	}
	for _, in := range p.in {
		if err := b.distribute(in); err != nil {
			return err
		}
	}
	switch n := p.op.(type) {
	case *Scan:
		return b.scanParallelism(p, n)
	case *Values:
		p.par = 1
	case *Aggregate:
		b.keyed(p, n.Keys)
		p.dist = upTo(0, len(n.Keys))
	case *WindowAggregate:
		b.keyed(p, n.Keys)
		p.dist = upTo(0, len(n.Keys))
	case *normalize:
		if n.removed {
			p.par, p.dist = p.in[0].par, p.in[0].dist
			return nil
		}
		b.keyed(p, n.Key)
		p.dist = n.Key
	case *Sort:
		b.exchange(p, 0, 1, nil)
		p.par = 1
	case *Union:
		for _, in := range p.in {
			p.par = max(p.par, in.par)
		}
		for i, in := range p.in {
			if in.par != p.par {
				b.exchange(p, i, p.par, rowKey(in))
			}
		}
	case *materialize:
		par := p.in[0].par
		if n.target.Parallel > 0 {
			par = n.target.Parallel
		}
		b.exchange(p, 0, par, n.Key)
		p.par, p.dist = par, n.Key
	case *Sink:
		return b.sinkParallelism(p, n.Target)
	case *Calc:
		p.par = p.in[0].par
		p.dist = projectDist(p.in[0].dist, n)
	default:
		p.par, p.dist = p.in[0].par, p.in[0].dist
	}
	return nil
}

func (b *builder) scanParallelism(p *phys, n *Scan) error {
	p.par = b.conf.Parallelism()
	t := n.Info.Table
	v, ok := t.Options.Get("scan.parallelism")
	if !ok {
		return nil
	}
	k, err := strconv.Atoi(v)
	if err != nil || k < 1 || k > maxParallelism {
		return diag.New(diag.Config, optionPos(t, "scan.parallelism", n.Info.Pos), "table %s: option 'scan.parallelism': '%s' is not valid", t.Name, v).
			WithDetail("a number from 1 to %d is expected", maxParallelism)
	}
	p.par = k
	return nil
}

// keyed gives p an exchange by keys; without keys it is one subtask.
func (b *builder) keyed(p *phys, keys []int) {
	if len(keys) == 0 {
		p.par = 1
		b.exchange(p, 0, 1, nil)
		return
	}
	p.par = b.conf.Parallelism()
	in := p.in[0]
	if in.par == p.par && (slices.Equal(in.dist, keys) || p.par == 1) {
		return
	}
	p.ship[0] = exec.Edge{Ship: exec.Hash, Keys: keys}
}

// exchange brings input i of p to parallelism par: by key where one is given, because changes of one row must stay in
// order; else row by row.
func (b *builder) exchange(p *phys, i, par int, keys []int) {
	in := p.in[i]
	switch {
	case in.par == par && (keys == nil || par == 1 || slices.Equal(in.dist, keys)):
		p.ship[i] = exec.Edge{Ship: exec.Forward}
	case par == 1 || len(keys) == 0:
		p.ship[i] = exec.Edge{Ship: exec.Rebalance}
	default:
		p.ship[i] = exec.Edge{Ship: exec.Hash, Keys: keys}
	}
}

// rowKey are the columns by which an updating stream may be redistributed without reordering the changes of a row: an
// upsert key, else all columns; nil for append-only streams, which need no order.
func rowKey(p *phys) []int {
	if p.trait.Kinds == Inserts {
		return nil
	}
	if k := smallest(p.keys); len(k) > 0 {
		return k
	}
	return upTo(0, len(p.fields))
}

// projectDist follows distribution columns through a projection; lost when one is not a plain column of the output.
func projectDist(dist []int, n *Calc) []int {
	if dist == nil {
		return nil
	}
	out := make([]int, len(dist))
	for i, d := range dist {
		out[i] = -1
		for j, e := range n.Exprs {
			if c, ok := e.(*expr.Column); ok && c.Index == d {
				out[i] = j
				break
			}
		}
		if out[i] < 0 {
			return nil
		}
	}
	return out
}

func (b *builder) sinkParallelism(p *phys, t *sinkTarget) error {
	in := p.in[0]
	par := in.par
	switch {
	case t.Collect:
		par = 1
	case t.Parallel > 0:
		par = t.Parallel
	}
	p.par = par
	if len(t.Delivery.Key) > 0 {
		key := sinkKey(t, t.Delivery)
		if in.par == par && len(in.dist) > 0 && subset(in.dist, key) {
			return nil // rows of one key are in one subtask already, and a sink has no key groups
		}
		b.exchange(p, 0, par, key)
		return nil
	}
	if par != in.par && par > 1 && in.trait.Kinds != Inserts && len(t.Table.PrimaryKey) == 0 {
		return diag.New(diag.Semantic, t.Pos.Pos, "table %s: 'sink.parallelism' = %d differs from the query's parallelism %d", t.Table.Name, par, in.par).
			WithDetail("the query updates rows, and without a primary key their order would be lost").
			WithHint("declare a primary key on %s, or remove 'sink.parallelism'", t.Table.Name)
	}
	if par == in.par {
		return nil
	}
	keys := rowKey(in)
	if pk := t.Table.PrimaryKey; keys != nil && len(pk) > 0 {
		keys = nil
		for _, k := range pk {
			keys = append(keys, t.Columns.Index(k))
		}
	}
	b.exchange(p, 0, par, keys)
	return nil
}
