package op

import (
	"math"
	"math/bits"
	"slices"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// wordTable finds rows of fixed size by keys of a few words, a batch at a time. It is emptied often and keeps its memory.
type wordTable struct {
	stride, size int // words of a key, bytes of a row
	n            int
	words        []uint64
	rows         []byte
	slots        []uint64 // upper half of the hash, lower half 1 + row; 0 = free; a power of two many
	hashes       []uint64 // of a batch
	runs         bool     // equal keys are likely to follow one another
}

func (t *wordTable) at(i int32) []byte { return t.rows[int(i)*t.size : (int(i)+1)*t.size] }

func (t *wordTable) reset() {
	t.n, t.words, t.rows = 0, t.words[:0], t.rows[:0]
	clear(t.slots)
}

// hashWords is a hash of a key that is good enough for a table in memory.
func hashWords(key []uint64) uint64 {
	h := uint64(0x9e3779b97f4a7c15)
	for _, w := range key {
		hi, lo := bits.Mul64(w^0xa0761d6478bd642f, h^0xe7037ed1a0b428db)
		h = hi ^ lo
	}
	return h
}

// find sets at to the rows of keys, stride words each, and creates those that are missing, as zeros; fresh gets the places of
// the keys that were.
func (t *wordTable) find(keys []uint64, at, fresh []int32) []int32 {
	n := len(at)
	for 2*(t.n+n) > len(t.slots) {
		t.grow()
	}
	if t.runs {
		fresh = t.findRuns(keys, at, fresh)
	} else {
		fresh = t.findEach(keys, at, fresh)
	}
	old, size := len(t.rows), t.n*t.size
	t.rows = slices.Grow(t.rows, size-old)[:size]
	clear(t.rows[old:])
	return fresh
}

func (t *wordTable) findEach(keys []uint64, at, fresh []int32) []int32 {
	n, s := len(at), t.stride
	t.hashes = resize(t.hashes, n)
	for i := range t.hashes {
		t.hashes[i] = hashWords(keys[i*s : i*s+s])
	}
	mask := uint64(len(t.slots) - 1)
	for i, h := range t.hashes {
		// The first slot is that of most keys.
		if slot := t.slots[h&mask]; slot != 0 && (slot^h)>>32 == 0 {
			if k := int(uint32(slot)) - 1; sameWords(t.words[k*s:k*s+s], keys[i*s:]) {
				at[i] = int32(k)
				continue
			}
		}
		k := t.row(h, keys[i*s:i*s+s])
		if k < 0 {
			k, fresh = int32(t.n-1), append(fresh, int32(i))
		}
		at[i] = k
	}
	return fresh
}

// findRuns is findEach for keys that often are the one before.
func (t *wordTable) findRuns(keys []uint64, at, fresh []int32) []int32 {
	s, last := t.stride, int32(-1)
	for i := range at {
		key := keys[i*s : i*s+s]
		if last < 0 || !sameWords(key, keys[(i-1)*s:]) {
			if last = t.row(hashWords(key), key); last < 0 {
				last, fresh = int32(t.n-1), append(fresh, int32(i))
			}
		}
		at[i] = last
	}
	return fresh
}

// row is the row of a key, -1 when it is new: then it is the last. There is a free slot.
func (t *wordTable) row(h uint64, key []uint64) int32 {
	mask, s := uint64(len(t.slots)-1), t.stride
	for p := h & mask; ; p = (p + 1) & mask {
		slot := t.slots[p]
		if slot == 0 {
			t.slots[p] = h&^math.MaxUint32 | uint64(t.n+1)
			t.words = append(t.words, key...)
			t.n++
			return -1
		}
		if (slot^h)>>32 != 0 {
			continue
		}
		if k := int(uint32(slot)) - 1; sameWords(t.words[k*s:k*s+s], key) {
			return int32(k)
		}
	}
}

// sameWords compares key to what b begins with.
func sameWords(key, b []uint64) bool {
	b = b[:len(key)]
	diff := uint64(0)
	for i, w := range key {
		diff |= w ^ b[i]
	}
	return diff == 0
}

func (t *wordTable) grow() {
	t.slots = make([]uint64, max(256, 2*len(t.slots)))
	mask := uint64(len(t.slots) - 1)
	for k := range t.n {
		h := hashWords(t.words[k*t.stride : (k+1)*t.stride])
		p := h & mask
		for t.slots[p] != 0 {
			p = (p + 1) & mask
		}
		t.slots[p] = h&^math.MaxUint32 | uint64(k+1)
	}
}

// keyWords turns columns into keys for a wordTable: keys are equal when the columns are, NULL with NULL. A text is the number
// it was given when it was first seen.
type keyWords struct {
	cols   []int
	ids    []*textIDs // per column; nil for other types
	stride int
	wide   bool // nulls have a word of their own
	words  []uint64
}

func newKeyWords(s *types.Schema, cols []int) *keyWords {
	k := &keyWords{cols: cols, stride: 1 + len(cols), wide: len(cols) > 8}
	for _, c := range cols {
		var ids *textIDs
		switch s.Columns[c].Type.Phys() {
		case types.PhysStr:
			ids = &textIDs{ids: map[string]uint64{}}
		case types.PhysI128:
			k.stride++
		}
		k.ids = append(k.ids, ids)
	}
	if k.wide {
		k.stride += (len(cols) + 63) / 64
	}
	return k
}

// bytes is what is kept of texts.
func (k *keyWords) bytes() (n int) {
	for _, t := range k.ids {
		if t != nil {
			n += t.size
		}
	}
	return n
}

// forget makes the keys so far invalid, so that texts need not be kept for ever.
func (k *keyWords) forget() {
	for _, t := range k.ids {
		if t != nil && t.size > maxTextBytes {
			t.forget()
		}
	}
}

// encode makes the keys of the rows of b. cells, nil = none, is a column before the others: 55 bits of each count.
func (k *keyWords) encode(b *batch.Batch, cells []int64) []uint64 {
	n, s := b.Len(), k.stride
	k.words = resize(k.words, n*s)
	words := k.words
	if len(words) == 0 {
		return words
	}
	if k.wide || cells == nil {
		clear(words)
	}
	for i, c := range cells {
		words[i*s] = uint64(c) << 8
	}
	at, nulls := 1, 0
	if k.wide {
		at += (len(k.cols) + 63) / 64
		nulls = 1
	}
	for j, c := range k.cols {
		v := b.Cols[c]
		k.column(b, v, k.ids[j], words[at:])
		if v.Valid != nil {
			for i := range n {
				if !v.IsNull(b.Row(i)) {
					continue
				}
				row := words[i*s : i*s+s]
				row[nulls+j>>6] |= 1 << (j & 63)
				if row[at] = 0; v.Type.Phys() == types.PhysI128 {
					row[at+1] = 0
				}
			}
		}
		if at++; v.Type.Phys() == types.PhysI128 {
			at++
		}
	}
	return words
}

// column stores a column; words begins with the word of the first row.
func (k *keyWords) column(b *batch.Batch, v *batch.Vec, ids *textIDs, words []uint64) {
	n, s := b.Len(), k.stride
	switch v.Type.Phys() {
	case types.PhysI64:
		if b.Sel == nil && !v.Const {
			for i, x := range v.I64[:n] {
				words[i*s] = uint64(x)
			}
			return
		}
		for i := range n {
			words[i*s] = uint64(v.I64[v.Idx(b.Row(i))])
		}
	case types.PhysF64:
		for i := range n {
			words[i*s] = math.Float64bits(v.F64[v.Idx(b.Row(i))])
		}
	case types.PhysBool:
		for i := range n {
			words[i*s] = uint64(boolWord(v.Bool[v.Idx(b.Row(i))]))
		}
	case types.PhysI128:
		for i := range n {
			x := v.I128[v.Idx(b.Row(i))]
			words[i*s], words[i*s+1] = x.Lo, uint64(x.Hi)
		}
	case types.PhysStr:
		for i := range n {
			words[i*s] = ids.id(v.Str[v.Idx(b.Row(i))])
		}
	}
}

// textIDs gives numbers to texts.
type textIDs struct {
	ids   map[string]uint64
	texts []string // by number
	last  uint64   // number of the last text asked for + 1
	free  []byte   // room for copies
	size  int
}

const maxTextBytes = 1 << 20 // kept from one time the table is emptied to the next

func (t *textIDs) id(s string) uint64 {
	if t.last > 0 && s == t.texts[t.last-1] {
		return t.last - 1
	}
	id, ok := t.ids[s]
	if !ok {
		id, s = uint64(len(t.texts)), t.keep(s)
		t.ids[s], t.texts = id, append(t.texts, s)
		t.size += len(s) + 64
	}
	t.last = id + 1
	return id
}

// keep is a copy of s.
func (t *textIDs) keep(s string) string {
	if len(s) == 0 {
		return ""
	}
	if len(s) > cap(t.free)-len(t.free) {
		t.free = make([]byte, 0, max(len(s), 16<<10))
	}
	at := len(t.free)
	t.free = append(t.free, s...)
	return unsafe.String(&t.free[at], len(s)) // these bytes are never written again
}

func (t *textIDs) forget() {
	clear(t.ids)
	clear(t.texts)
	t.texts, t.last, t.free, t.size = t.texts[:0], 0, nil, 0
}
