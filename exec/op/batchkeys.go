package op

import (
	"bytes"
	"math/bits"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// batchKeys finds the distinct keys of a batch, so that an operator encodes and hashes each of them, and looks for its state,
// once for all its rows.
type batchKeys struct {
	enc    *exec.KeyEncoder
	cols   []int
	strict []int // of cols: rows with a NULL there have no key

	keys  checkpoint.Keys // in the order of their first rows
	first []int32         // per key, its first row in the batch, physical
	of    []int32         // per row of the batch that counts, which key it has; -1 = none

	slots []int32 // hash table: key + 1
	ints  []int64 // per key, its value if it is one integer column
	in    batch.Batch
	sizes []int32
	rows  []int32
}

func newBatchKeys(cols, strict []int) *batchKeys {
	// A nil selection would be all rows.
	return &batchKeys{enc: exec.NewKeyEncoder(cols), cols: cols, strict: strict, first: make([]int32, 0, 16), rows: make([]int32, 0, 16)}
}

// find finds the keys of b.
func (k *batchKeys) find(b *batch.Batch) {
	k.in = *b
	k.of, k.first = resize(k.of, b.Len()), k.first[:0]
	size := 16
	for size < 2*len(k.of) {
		size *= 2
	}
	k.slots = resize(k.slots, size)
	clear(k.slots)
	if len(k.cols) == 1 {
		if v := b.Cols[k.cols[0]]; v.Type.Phys() == types.PhysI64 && !v.Const {
			k.findInts(v)
			return
		}
	}
	k.findBytes()
}

// findInts is find for one integer column.
func (k *batchKeys) findInts(v *batch.Vec) {
	k.ints = k.ints[:0]
	shift, mask := 64-bits.Len(uint(len(k.slots)-1)), uint64(len(k.slots)-1)
	null := int32(-1)
	for i := range k.of {
		r := k.in.Row(i)
		if v.IsNull(r) {
			if null < 0 && len(k.strict) == 0 {
				null = int32(len(k.first))
				k.first, k.ints = append(k.first, int32(r)), append(k.ints, 0)
			}
			k.of[i] = null
			continue
		}
		x := v.I64[r]
		p := uint64(x) * 0x9e3779b97f4a7c15 >> shift
		for {
			g := k.slots[p] - 1
			if g < 0 {
				g = int32(len(k.first))
				k.slots[p] = g + 1
				k.first, k.ints = append(k.first, int32(r)), append(k.ints, x)
			} else if k.ints[g] != x {
				p = (p + 1) & mask
				continue
			}
			k.of[i] = g
			break
		}
	}
	firsts := batch.Batch{N: k.in.N, Sel: k.first, Cols: k.in.Cols}
	k.enc.Encode(&firsts, &k.keys)
}

// findBytes is find for all other keys, which are compared when they are encoded.
func (k *batchKeys) findBytes() {
	k.enc.Encode(&k.in, &k.keys)
	all, n, end := k.keys, int32(0), int32(0)
	mask := uint64(len(k.slots) - 1)
	for i, h := range all.Hashes {
		r := k.in.Row(i)
		if anyNull(&k.in, k.strict, r) {
			k.of[i] = -1
			continue
		}
		key := all.Key(i)
		for p := h & mask; ; p = (p + 1) & mask {
			g := k.slots[p] - 1
			if g < 0 {
				// Keys move to the front, never behind one that is still to be read.
				k.slots[p], k.of[i], k.first = n+1, n, append(k.first, int32(r))
				end += int32(copy(k.keys.Buf[end:], key))
				k.keys.Ends[n], k.keys.Hashes[n] = end, h
				n++
				break
			}
			if k.keys.Hashes[g] == h && bytes.Equal(k.keys.Key(int(g)), key) {
				k.of[i] = g
				break
			}
		}
	}
	k.keys.Buf, k.keys.Ends, k.keys.Hashes = k.keys.Buf[:end], k.keys.Ends[:n], k.keys.Hashes[:n]
}

// sorted lists the rows that have a key, physical, by key; those of key g are rows[ends[g-1]:ends[g]].
func (k *batchKeys) sorted() (rows, ends []int32) {
	k.sizes = resize(k.sizes, len(k.first)+1)
	clear(k.sizes)
	for _, g := range k.of {
		k.sizes[g+1]++
	}
	at := int32(0)
	next := k.sizes[1:]
	for g, n := range next {
		next[g] = at
		at += n
	}
	k.rows = resize(k.rows, int(at))
	for i, g := range k.of {
		if g >= 0 {
			k.rows[next[g]] = int32(k.in.Row(i))
			next[g]++
		}
	}
	return k.rows, next
}
