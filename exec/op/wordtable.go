package op

import (
	"math"
	"math/bits"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// wordTable finds rows of fixed size by keys of a few words, a batch at a time. It is emptied often and keeps its memory.
type wordTable struct {
	stride, size int // words of a key, bytes of a row
	n            int
	words        []uint64
	rows         []byte
	slots        hashSlots // of 1 + row
	runs         bool      // equal keys are likely to follow one another
	work         *wordWork
}

// wordWork is what find needs for a batch. Tables that are not used at the same time may share it.
type wordWork struct {
	hashes, first []uint64 // per key, what its slot had at first
}

func (t *wordTable) at(i int32) []byte { return t.rows[int(i)*t.size : (int(i)+1)*t.size] }

// memory is the number of bytes it takes.
func (t *wordTable) memory() int64 {
	return int64(8*cap(t.words) + cap(t.rows) + 8*cap(t.slots.all))
}

func (t *wordTable) reset() {
	size := len(t.slots.all)
	for size > minSlots && size > 16*t.n { // a large table does not make small ones expensive
		size /= 2
	}
	t.n, t.words, t.rows = 0, t.words[:0], t.rows[:0]
	t.slots.empty(size)
}

// expect makes room for n keys, of a table that is empty.
func (t *wordTable) expect(n int) {
	if size := 1 << bits.Len(uint(max(2*n, minSlots)-1)); size > len(t.slots.all) {
		t.slots.empty(size)
	}
}

// hashWords is a hash of a key that is good enough for a table in memory.
func hashWords(key []uint64) uint64 {
	h := hashSeed
	for _, w := range key {
		h = mixWord(h, w)
	}
	return h
}

const hashSeed = uint64(0x9e3779b97f4a7c15)

func mixWord(h, w uint64) uint64 {
	hi, lo := bits.Mul64(w^0xa0761d6478bd642f, h^0xe7037ed1a0b428db)
	return hi ^ lo
}

// hashPair is hashWords of two words.
func hashPair(x, y uint64) uint64 { return mixWord(mixWord(hashSeed, x), y) }

// find sets at to the rows of keys, stride words each, and creates those that are missing, as zeros; fresh gets the places of
// the keys that were.
func (t *wordTable) find(keys []uint64, at, fresh []int32) []int32 {
	if len(t.slots.all) == 0 {
		t.slots.empty(minSlots)
	}
	old := t.n
	if t.runs {
		fresh = t.findRuns(keys, at, fresh)
	} else {
		fresh = t.findEach(keys, at, fresh)
	}
	from, to := old*t.size, t.n*t.size
	t.rows = grown(t.rows, to-from)[:to]
	clear(t.rows[from:])
	return fresh
}

// findEach reads hashes and first slots in passes of their own, so that misses of the cache overlap.
func (t *wordTable) findEach(keys []uint64, at, fresh []int32) []int32 {
	t.hash(keys, len(at))
	t.work.first = resize(t.work.first, len(at))
	t.slots.firsts(t.work.hashes, t.work.first)
	if t.stride == 2 {
		return t.findPairs(keys, at, fresh)
	}
	s := t.stride
	for i, h := range t.work.hashes {
		if slot := t.work.first[i]; slot != 0 && (slot^h)>>32 == 0 {
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

// findPairs is the rest of findEach for keys of two words.
func (t *wordTable) findPairs(keys []uint64, at, fresh []int32) []int32 {
	keys = keys[:2*len(at)]
	for i, h := range t.work.hashes {
		slot := t.work.first[i]
		if k := int(uint32(slot)) - 1; slot != 0 && (slot^h)>>32 == 0 && t.words[2*k] == keys[2*i] && t.words[2*k+1] == keys[2*i+1] {
			at[i] = int32(k)
			continue
		}
		k := t.row(h, keys[2*i:2*i+2])
		if k < 0 {
			k, fresh = int32(t.n-1), append(fresh, int32(i))
		}
		at[i] = k
	}
	return fresh
}

// hash sets hashes to those of n keys, as hashWords makes them.
func (t *wordTable) hash(keys []uint64, n int) {
	if t.work == nil {
		t.work = &wordWork{}
	}
	t.work.hashes = resize(t.work.hashes, n)
	s, hashes := t.stride, t.work.hashes
	if s != 2 {
		for i := range hashes {
			hashes[i] = hashWords(keys[i*s : i*s+s])
		}
		return
	}
	keys = keys[:2*len(hashes)]
	for i := range hashes {
		hashes[i] = hashPair(keys[2*i], keys[2*i+1])
	}
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

// row is the row of a key, -1 when it is new: then it is the last.
func (t *wordTable) row(h uint64, key []uint64) int32 {
	slots, mask, s := t.slots.all, uint64(len(t.slots.all)-1), t.stride
	for p := t.slots.home(h); ; p = (p + 1) & mask {
		slot := slots[p]
		if slot == 0 {
			t.words = append(grown(t.words, s), key...)
			t.n++
			if slots[p] = h&^math.MaxUint32 | uint64(t.n); 2*t.n > len(slots) {
				t.grow()
			}
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

// lookup is find for keys that are not to be created: at is -1 for those.
func (t *wordTable) lookup(keys []uint64, at []int32) {
	if t.n == 0 {
		for i := range at {
			at[i] = -1
		}
		return
	}
	t.hash(keys, len(at))
	s, slots, mask := t.stride, t.slots.all, uint64(len(t.slots.all)-1)
	for i, h := range t.work.hashes {
		key := keys[i*s : i*s+s]
		at[i] = -1
		for p := t.slots.home(h); slots[p] != 0; p = (p + 1) & mask {
			slot := slots[p]
			if k := int(uint32(slot)) - 1; (slot^h)>>32 == 0 && sameWords(t.words[k*s:k*s+s], key) {
				at[i] = int32(k)
				break
			}
		}
	}
}

func (t *wordTable) grow() {
	if !t.slots.double() {
		t.fill()
	}
}

// place puts the rows into the slots again, when words of keys have changed.
func (t *wordTable) place() {
	clear(t.slots.all)
	t.fill()
}

// fill puts all rows into the slots, which are free.
func (t *wordTable) fill() {
	for k := range t.n {
		h := hashWords(t.words[k*t.stride : (k+1)*t.stride])
		t.slots.put(h&^math.MaxUint32 | uint64(k+1))
	}
}

// keyWords turns columns into keys for a wordTable: keys are equal when the columns are, NULL with NULL. A text is the number
// it was given when it was first seen.
//
// The first word has a bit for each column that is NULL and above them the cell or, without cells, the first text. A key of more
// columns than there are bits has words of bits behind it.
type keyWords struct {
	cols   []int
	ids    []*textIDs // per column; nil for other types
	at     []int      // per column, its word
	first  int        // the column in the first word, -1 = none
	stride int
	wide   bool      // NULL has words of its own
	nulls  *rowMasks // what is known of NULL in the batches, or in those they are parts of; may be nil
	words  []uint64
}

// newKeyWords makes keys of columns of s; cells tells whether there are some.
func newKeyWords(s *types.Schema, cols []int, cells bool) *keyWords {
	k := &keyWords{cols: cols, first: -1, stride: 1, wide: len(cols) > 8}
	if k.wide {
		k.stride += (len(cols) + 63) / 64
	}
	for j, c := range cols {
		var ids *textIDs
		p := s.Columns[c].Type.Phys()
		if p == types.PhysStr {
			ids = newTextIDs()
		}
		k.ids = append(k.ids, ids)
		if ids != nil && !cells && k.first < 0 {
			k.first, k.at = j, append(k.at, 0)
			continue
		}
		k.at = append(k.at, k.stride)
		if k.stride++; p == types.PhysI128 {
			k.stride++
		}
	}
	return k
}

// bytes is what is kept of texts.
func (k *keyWords) bytes() (n int) {
	for _, t := range k.ids {
		if t != nil {
			n += t.size()
		}
	}
	return n
}

// forget makes the keys so far invalid, so that texts need not be kept for ever.
func (k *keyWords) forget() {
	for _, t := range k.ids {
		if t != nil && t.size() > maxTextBytes {
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
	if k.wide || cells == nil && k.first < 0 {
		clear(words)
	}
	for i, c := range cells {
		words[i*s] = uint64(c) << 8
	}
	if k.first >= 0 {
		k.column(b, b.Cols[k.cols[k.first]], k.ids[k.first], words)
		for i := range n {
			words[i*s] <<= 8
		}
	}
	for j, c := range k.cols {
		v := b.Cols[c]
		if j != k.first {
			k.column(b, v, k.ids[j], words[k.at[j]:])
		}
		if v.Valid != nil && (k.nulls == nil || k.nulls.hasNull(v)) {
			k.setNulls(b, v, j)
		}
	}
	return words
}

// decode appends the columns of rows, whose keys are in words, to cols. The keys were made with cells.
func (k *keyWords) decode(words []uint64, rows []int32, cols []*batch.ColBuilder) {
	s, at, nulls := k.stride, 1, 0
	if k.wide {
		at += (len(k.cols) + 63) / 64
		nulls = 1
	}
	for j, c := range cols {
		if k.ids[j] != nil {
			k.ids[j].decode(words[at:], s, rows, c)
		} else {
			decodeWords(words[at:], s, rows, c)
		}
		bit := uint64(1) << (j & 63)
		for i, r := range rows {
			if words[int(r)*s+nulls+j>>6]&bit != 0 {
				c.Nullify(c.Len() - len(rows) + i)
			}
		}
		if at++; c.Type.Phys() == types.PhysI128 {
			at++
		}
	}
}

// decodeWords appends to c the values that begin at the words r·stride, r of rows.
func decodeWords(words []uint64, stride int, rows []int32, c *batch.ColBuilder) {
	first := c.AppendN(len(rows))
	switch c.Type.Phys() {
	case types.PhysI64:
		dst := c.I64[first:]
		for i, r := range rows {
			dst[i] = int64(words[int(r)*stride])
		}
	case types.PhysF64:
		for i, r := range rows {
			c.F64[first+i] = math.Float64frombits(words[int(r)*stride])
		}
	case types.PhysBool:
		for i, r := range rows {
			c.Bool[first+i] = words[int(r)*stride] != 0
		}
	case types.PhysI128:
		for i, r := range rows {
			c.I128[first+i] = types.Int128{Lo: words[int(r)*stride], Hi: int64(words[int(r)*stride+1])}
		}
	}
}

// setNulls marks the rows where column j, which is v, is NULL.
func (k *keyWords) setNulls(b *batch.Batch, v *batch.Vec, j int) {
	s, nulls := k.stride, 0
	if k.wide {
		nulls = 1
	}
	for i := range b.Len() {
		if !v.IsNull(b.Row(i)) {
			continue
		}
		row, at := k.words[i*s:i*s+s], k.at[j]
		switch {
		case j == k.first:
			row[0] &= 1<<8 - 1
		case v.Type.Phys() == types.PhysI128:
			row[at+1] = 0
			fallthrough
		default:
			row[at] = 0
		}
		row[nulls+j>>6] |= 1 << (j & 63)
	}
}

// column stores a column; words begins with the word of the first row.
func (k *keyWords) column(b *batch.Batch, v *batch.Vec, ids *textIDs, words []uint64) {
	n, s := b.Len(), k.stride
	switch v.Type.Phys() {
	case types.PhysI64:
		switch {
		case v.Const:
			for i := range n {
				words[i*s] = uint64(v.I64[0])
			}
		case b.Sel == nil:
			for i, x := range v.I64[:n] {
				words[i*s] = uint64(x)
			}
		default:
			for i, r := range b.Sel {
				words[i*s] = uint64(v.I64[r])
			}
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
		ids.number(b, v, words, s)
	}
}
