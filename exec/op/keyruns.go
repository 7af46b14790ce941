package op

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// keyRuns finds stretches of rows with equal keys that follow one another, as those that a join emits do. What is done for a
// key is then done once for a stretch.
type keyRuns struct {
	cols   []int
	starts []int32 // place in the batch of the first row of each stretch
	rows   []int32 // the same, physical
	diff   []uint8 // per row, whether it begins one
	pause  int     // rows that are not looked at
}

const (
	runLength = 3  // rows of a stretch, on average, from which on finding them pays
	runPause  = 15 // times as many rows as have no such stretches are not looked at after them
)

// find reports whether b has stretches worth it. It knows keys of integers, times and the like without NULL; cells, nil = none,
// is a column before the others.
func (k *keyRuns) find(b *batch.Batch, cells []int64) bool {
	n := b.Len()
	if k.pause > 0 {
		k.pause -= n
		return false
	}
	k.diff = resize(k.diff, n)
	clear(k.diff)
	if cells != nil {
		markChanges(k.diff, cells)
	}
	for _, c := range k.cols {
		v := b.Cols[c]
		if v.Type.Phys() != types.PhysI64 || !v.Const && v.HasNull(b.N, b.Sel) {
			k.pause = runPause * n
			return false
		}
		switch {
		case v.Const: // NULL or not, one value
		case b.Sel == nil:
			markChanges(k.diff, v.I64[:n])
		default:
			last := v.I64[b.Sel[0]]
			for i, r := range b.Sel[:len(k.diff)] {
				x := v.I64[r]
				k.diff[i] |= differ(x, last)
				last = x
			}
		}
	}
	k.diff[0] = 1
	k.collect()
	if runLength*len(k.starts) > n {
		k.pause = runPause * n
		return false
	}
	k.rows = resize(k.rows, len(k.starts))
	for i, s := range k.starts {
		k.rows[i] = int32(b.Row(int(s)))
	}
	return true
}

func markChanges(diff []uint8, xs []int64) {
	last := xs[0]
	for i, x := range xs[:len(diff)] {
		diff[i] |= differ(x, last)
		last = x
	}
}

// differ is 1 for numbers that differ, without a branch.
func differ(x, y int64) uint8 {
	d := uint64(x ^ y)
	return uint8((d | -d) >> 63)
}

// collect fills starts without a branch: where stretches begin is hard to predict.
func (k *keyRuns) collect() {
	starts, n := resize(k.starts, len(k.diff)), 0
	for i, d := range k.diff {
		starts[n] = int32(i)
		n += int(d)
	}
	k.starts = starts[:n]
}
