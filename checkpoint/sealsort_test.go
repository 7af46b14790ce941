package checkpoint

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// Rows are in the order of their hashes, then keys, however many there are and however often hashes agree.
func TestSortEnts(t *testing.T) {
	for _, n := range []int{0, 1, 2, 100, radixSize, 5000, 20_000} {
		for _, mask := range []uint64{^uint64(0), 0xff << 56, 0xffff, 1<<63 | 7<<radixShift | 3, 0} {
			r := rand.New(rand.NewPCG(uint64(n), mask))
			tb := &table{a: newArena(NewMemoryBudget(1 << 30)), head: rowHeadSize}
			var ents []sealEnt
			for range n {
				h := r.Uint64() & mask
				loc, err := tb.newRow(h, []byte{byte(r.Uint32()), byte(r.Uint32())}, 0, 0, 0)
				if err != nil {
					t.Fatal(err)
				}
				ents = append(ents, sealEnt{hash: h, loc: loc})
			}
			got := tb.sortEnts(slices.Clone(ents))
			if len(got) != n || !slices.IsSortedFunc(got, func(x, y sealEnt) int {
				return cmp.Or(cmp.Compare(x.hash, y.hash), bytes.Compare(tb.rowKey(x.loc), tb.rowKey(y.loc)))
			}) {
				t.Fatalf("%d rows, hashes of %x: %d rows, not in order", n, mask, len(got))
			}
			locs := func(es []sealEnt) (out []uint32) {
				for _, e := range es {
					out = append(out, e.loc)
				}
				slices.Sort(out)
				return out
			}
			if !slices.Equal(locs(got), locs(ents)) {
				t.Fatalf("%d rows, hashes of %x: other rows than before", n, mask)
			}
		}
	}
}
