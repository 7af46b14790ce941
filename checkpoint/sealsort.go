package checkpoint

import (
	"bytes"
	"cmp"
	"slices"
)

const (
	radixBits  = 11
	radixSize  = 1 << radixBits
	radixShift = 64 - 3*radixBits
)

// sortEnts orders copied rows by hash, and those with equal hashes by key: by the upper half of the hashes with a radix
// sort, the few that agree there by comparison. The order may be in other memory; t is what the rows are read with.
func (t *table) sortEnts(ents []sealEnt) []sealEnt {
	if len(ents) < radixSize {
		t.compareEnts(ents)
		return ents
	}
	var counts [3][radixSize]uint32
	for _, e := range ents {
		h := e.hash >> radixShift
		counts[0][h%radixSize]++
		counts[1][h>>radixBits%radixSize]++
		counts[2][h>>(2*radixBits)]++
	}
	other := make([]sealEnt, len(ents))
	for pass := range counts {
		starts := &counts[pass]
		at := uint32(0)
		for d, n := range starts {
			starts[d] = at
			at += n
		}
		shift := radixShift + pass*radixBits
		for _, e := range ents {
			d := e.hash >> shift % radixSize
			other[starts[d]] = e
			starts[d]++
		}
		ents, other = other, ents
	}
	for start, i := 0, 1; i <= len(ents); i++ {
		if i < len(ents) && ents[i].hash>>radixShift == ents[start].hash>>radixShift {
			continue
		}
		if i-start > 1 {
			t.compareEnts(ents[start:i])
		}
		start = i
	}
	return ents
}

func (t *table) compareEnts(ents []sealEnt) {
	slices.SortFunc(ents, func(x, y sealEnt) int {
		if c := cmp.Compare(x.hash, y.hash); c != 0 {
			return c
		}
		return bytes.Compare(t.rowKey(x.loc), t.rowKey(y.loc))
	})
}

// ahead is how many rows are looked at before the first of them is written.
const ahead = 64

// touch reads the beginning of rows that are far apart in memory, so that their cache misses overlap.
func (t *table) touch(ents []sealEnt) (sum uint32) {
	for _, e := range ents[:min(ahead, len(ents))] {
		sum += t.a.head(e.loc).vlen
	}
	return sum
}
