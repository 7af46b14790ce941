package op

import (
	"math/bits"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
)

// maxBits is how many aggregates share a set of bits.
const maxBits = 64

// join gives a the next slot.
func (d *distinctSet) join(a *accumulator) {
	a.slot = d.slots
	d.slots++
	if !d.bits {
		return
	}
	d.members = append(d.members, a)
	if a.acc == accCount {
		d.counts |= 1 << a.slot
	}
}

// addBits is first for all aggregates over the argument at once, of a set whose rows are bits: one access per value,
// however many aggregates there are. fresh[i] gets the bits of the aggregates that take row i.
func (d *distinctSet) addBits(b *batch.Batch) error {
	d.wanted(b)
	for i, want := range d.fresh {
		if want == 0 {
			continue
		}
		r := d.refs[i]
		if r == checkpoint.NoRow {
			var err error
			if r, err = d.row(i); err != nil {
				return err
			}
		}
		seen := uint64(word(d.table.Value(r), 0))
		if want &^= seen; want != 0 {
			setWord(d.table.Mutable(r), 0, int64(seen|want))
		}
		d.fresh[i] = want
	}
	return nil
}

// wanted sets fresh to the bits of the aggregates whose inputs the rows of b are.
func (d *distinctSet) wanted(b *batch.Batch) {
	d.fresh = resize(d.fresh, b.Len())
	clear(d.fresh)
	for _, a := range d.members {
		d.mask = resize(d.mask, b.Len())
		a.wantsAll(b, d.mask)
		for i, m := range d.mask {
			if m {
				d.fresh[i] |= 1 << a.slot
			}
		}
	}
}

// countBits adds the rows that addBits found new to the counts of the aggregates that are no more than that.
func (d *distinctSet) countBits(rows [][]byte) {
	for i, fresh := range d.fresh {
		for fresh &= d.counts; fresh != 0; fresh &= fresh - 1 {
			off := d.members[bits.TrailingZeros64(fresh)].off
			setWord(rows[i], off, word(rows[i], off)+1)
		}
	}
}

// wantsAll sets mask to wants of each row of b.
func (a *accumulator) wantsAll(b *batch.Batch, mask []bool) {
	if a.Filter < 0 {
		for i := range mask {
			mask[i] = true
		}
	} else if f := b.Cols[a.Filter]; f.Valid == nil && !f.Const {
		if b.Sel == nil {
			copy(mask, f.Bool)
		} else {
			for i, r := range b.Sel[:len(mask)] {
				mask[i] = f.Bool[r]
			}
		}
	} else {
		for i := range mask {
			r := b.Row(i)
			mask[i] = !f.IsNull(r) && f.Bool[f.Idx(r)]
		}
	}
	if a.Arg < 0 || a.nulls || b.Cols[a.Arg].Valid == nil {
		return
	}
	v := b.Cols[a.Arg]
	for i := range mask {
		mask[i] = mask[i] && !v.IsNull(b.Row(i))
	}
}
