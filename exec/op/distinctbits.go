package op

import (
	"math/bits"

	"github.com/streamsql/streamsql/checkpoint"
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
// however many aggregates there are. wants are the bits of the aggregates whose inputs the rows are; fresh[i] gets those
// of the aggregates that take row i.
func (d *distinctSet) addBits(wants *rowBits) error {
	d.fresh = resize(d.fresh, len(wants.rows))
	for i, want := range wants.rows {
		if want != 0 {
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
		}
		d.fresh[i] = want
	}
	return nil
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
