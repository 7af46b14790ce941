package op

import (
	"slices"
	"strconv"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// distinctSet counts, per group and value of one argument, how often each DISTINCT aggregate over it has seen the
// value; its FILTER makes an aggregate's counts its own. An aggregate takes a value when its count leaves zero and
// gives it back when it returns to zero. A row is one i64 counter per aggregate (slot); where nothing is ever given back,
// one bit per aggregate, in a word, see addBits.
type distinctSet struct {
	table checkpoint.Table
	arg   int
	typ   types.Type // of the argument
	full  int        // sets of the argument before this one
	slots int
	keys  checkpoint.Keys
	refs  []checkpoint.Ref
	// Of a set of bits:
	bits    bool
	members []*accumulator // by slot
	counts  uint64         // the slots of COUNT
	fresh   []uint64       // per row of the batch, the bits it has set
	sent    rowBits        // of values from local aggregates
	owners  [][]byte       // the rows of their groups
	// index lists the keys of every window, to forget them with it; nil without windows. A value that is in a window stays
	// until then, so that none is listed twice.
	index *cellIndex
}

// probe looks up (group, value) for every row of the batch whose argument is not NULL; others get no key bytes of a
// value, only the group's, and are never counted.
func (d *distinctSet) probe(b *batch.Batch, groups *checkpoint.Keys) error {
	d.keys.Reset()
	v := b.Cols[d.arg]
	for i := 0; i < groups.Len(); i++ {
		start := len(d.keys.Buf)
		d.keys.Buf = append(d.keys.Buf, groups.Key(i)...)
		d.keys.Buf = exec.AppendColumn(d.keys.Buf, v, b.Row(i))
		d.keys.Ends = append(d.keys.Ends, int32(len(d.keys.Buf)))
		// The group's hash, so that its values live and move in the group's key group.
		d.keys.Hashes = append(d.keys.Hashes, subHash(groups.Hashes[i], d.keys.Buf[start:]))
	}
	d.refs = resize(d.refs, d.keys.Len())
	return d.table.Probe(&d.keys, d.refs)
}

// subHash is the hash of a key that belongs to a group: the group's key group, so that it lives and moves with it, and
// otherwise spread by the key.
func subHash(group uint64, key []byte) uint64 { return inGroupOf(group, checkpoint.HashKey(key)) }

// inGroupOf is hash in the key group of group.
func inGroupOf(group, hash uint64) uint64 {
	const keyGroupBits = uint64(checkpoint.KeyGroups-1) << 57
	return group&keyGroupBits | hash&^keyGroupBits
}

// row finds or creates the counters of row i.
func (d *distinctSet) row(i int) (checkpoint.Ref, error) {
	if d.refs[i] != checkpoint.NoRow {
		return d.refs[i], nil
	}
	size := 8 * d.slots
	if d.bits {
		size = 8
	}
	r, created, err := d.table.Insert(&d.keys, i, size)
	if err != nil {
		return r, err
	}
	d.refs[i] = r
	if created {
		clear(d.table.Mutable(r))
		if d.index != nil {
			key := d.keys.Key(i)
			return r, d.index.add(windowEnd(key), d.keys.Hashes[i], key[8:])
		}
	}
	return r, nil
}

// first clears mask[i] for rows whose value the aggregate in slot has counted before, and counts the others. With
// counting it keeps the number of rows per value, which retractions will need.
func (d *distinctSet) first(slot int, counting bool, mask []bool) error {
	for i := range mask {
		if !mask[i] {
			continue
		}
		r, err := d.row(i)
		if err != nil {
			return err
		}
		n := word(d.table.Value(r), 8*slot)
		mask[i] = n == 0
		if n == 0 || counting {
			setWord(d.table.Mutable(r), 8*slot, n+1)
		}
	}
	return nil
}

// count changes the count of row i's value and reports whether it left or returned to zero. Rows whose counters are
// all zero stay until sweep: the batch still refers to them.
func (d *distinctSet) count(slot, i int, sign int64) (bool, error) {
	r, err := d.row(i)
	if err != nil {
		return false, err
	}
	row := d.table.Mutable(r)
	n := word(row, 8*slot) + sign
	setWord(row, 8*slot, n)
	return sign > 0 && n == 1 || sign < 0 && n == 0, nil
}

// sweep removes the values of the batch that nobody counts any more.
func (d *distinctSet) sweep() {
	if d.index != nil {
		return
	}
	slices.Sort(d.refs)
	last := checkpoint.NoRow
	for _, r := range d.refs {
		if r == checkpoint.NoRow || r == last {
			continue
		}
		last = r
		zero := true
		for _, x := range d.table.Value(r) {
			zero = zero && x == 0
		}
		if zero {
			d.table.Delete(r)
		}
	}
	d.refs = d.refs[:0]
}

// dropWindow removes the values of the window ending at end.
func (d *distinctSet) dropWindow(end int64) error {
	d.keys.Reset()
	err := d.index.visit(end, 0, checkpoint.KeyGroups, func(group int, key []byte) error {
		addCellKey(&d.keys, end, key, uint64(group)<<57)
		if d.keys.Len() < batch.Size {
			return nil
		}
		return d.drop()
	})
	if err != nil {
		return err
	}
	if err := d.drop(); err != nil {
		return err
	}
	return d.index.drop(end)
}

// drop removes the rows of the keys collected.
func (d *distinctSet) drop() error {
	d.refs = resize(d.refs, d.keys.Len())
	if err := d.table.Probe(&d.keys, d.refs); err != nil {
		return err
	}
	for _, r := range d.refs {
		if r != checkpoint.NoRow {
			d.table.Delete(r)
		}
	}
	d.keys.Reset()
	return nil
}

// openIndexes opens the indexes of the distinct sets, whose keys begin with windowKey; state is the name of the main table.
func (c *aggCore) openIndexes(s exec.Subtask, state string) (err error) {
	for _, d := range c.distinct {
		if d.index, err = openCellIndex(s, state+".distinct."+strconv.Itoa(d.arg)+".index"); err != nil {
			return err
		}
	}
	return nil
}
