package planner

import (
	"slices"

	"github.com/streamsql/streamsql/exec"
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
	if n, ok := p.op.(distributor); ok {
		return n.distribute(b, p)
	}
	p.par, p.dist = p.in[0].par, p.in[0].dist
	return nil
}

// keyed gives p an exchange by keys; without keys it is one subtask.
func (b *builder) keyed(p *phys, keys []int) { b.keyedInput(p, 0, keys) }

// keyedInput is keyed for input i of an operator with several; the keys of all inputs agree in number and types.
func (b *builder) keyedInput(p *phys, i int, keys []int) {
	if len(keys) == 0 {
		p.par = 1
		b.exchange(p, i, 1, nil)
		return
	}
	if p.keyedBy == nil {
		p.keyedBy = map[int][]int{}
	}
	p.keyedBy[i] = keys
	p.par = b.conf.Parallelism()
	in := p.in[i]
	if in.par == p.par && (slices.Equal(in.dist, keys) || p.par == 1) {
		p.ship[i].Keys = keys // forward, of rows that are where the keys say
		return
	}
	p.ship[i] = exec.Edge{Ship: exec.Hash, Keys: keys}
}

// keyedWithin is keyed for one input that is distributed by some of the keys already: rows with equal keys are together where they
// are, so that nothing is exchanged and state lies by those columns. It returns them, nil = rows go by all keys. What decides
// is what stands below, never the parallelism, which may change between runs.
func (b *builder) keyedWithin(p *phys, keys []int) []int {
	b.keyed(p, keys)
	by := p.in[0].dist
	if len(keys) == 0 || len(by) == 0 || slices.Equal(by, keys) || !subset(by, keys) {
		return nil
	}
	ship := exec.Hash
	if p.in[0].par == p.par {
		ship = exec.Forward
	}
	p.ship[0] = exec.Edge{Ship: ship, Keys: by}
	return by
}

// exchange brings input i of p to parallelism par: by key where one is given, because changes of one row must stay in
// order; else row by row.
func (b *builder) exchange(p *phys, i, par int, keys []int) {
	in := p.in[i]
	switch {
	case in.par == par && (keys == nil || par == 1 || slices.Equal(in.dist, keys)):
		p.ship[i] = exec.Edge{Ship: exec.Forward, Keys: keys}
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
