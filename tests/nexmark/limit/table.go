package main

import "math/bits"

func hash1(k uint64) uint64 {
	hi, lo := bits.Mul64(k^0x9e3779b97f4a7c15, 0xa0761d6478bd642f)
	return hi ^ lo
}

func hash2(a, b uint64) uint64 {
	hi, lo := bits.Mul64(a^0x9e3779b97f4a7c15, b^0xa0761d6478bd642f)
	return hash1(hi ^ lo)
}

// table numbers keys of one or two words in the order they come. A slot has the upper half of the hash and the number plus one.
// A batch is looked up in passes (hash, slot, key) so that the misses of the cache overlap.
type table struct {
	slots  []uint64
	a, b   []uint64 // keys by number; b only of two words
	hashes []uint64
	first  []uint64
	found  []uint32
}

func newTable() *table { return &table{slots: make([]uint64, 1024)} }

func (t *table) len() int { return len(t.a) }

func (t *table) reset() {
	clear(t.slots)
	t.a, t.b = t.a[:0], t.b[:0]
}

func (t *table) grow() {
	t.slots = make([]uint64, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for i, k := range t.a {
		h := hash1(k)
		if len(t.b) > 0 {
			h = hash2(k, t.b[i])
		}
		p := h & mask
		for t.slots[p] != 0 {
			p = (p + 1) & mask
		}
		t.slots[p] = h>>32<<32 | uint64(i+1)
	}
}

func (t *table) room(n int) {
	for 2*(t.len()+n) > len(t.slots) {
		t.grow()
	}
	if cap(t.found) < n {
		t.hashes, t.first, t.found = make([]uint64, n), make([]uint64, n), make([]uint32, n)
	}
	t.hashes, t.first, t.found = t.hashes[:n], t.first[:n], t.found[:n]
}

// find gives the numbers of keys, new ones too.
func (t *table) find(ks []int64) []uint32 {
	t.room(len(ks))
	mask := uint64(len(t.slots) - 1)
	for i, k := range ks {
		t.hashes[i] = hash1(uint64(k))
	}
	for i, h := range t.hashes {
		t.first[i] = t.slots[h&mask]
	}
	for i, k := range ks {
		s, h := t.first[i], t.hashes[i]
		if s != 0 && (s^h)>>32 == 0 && t.a[uint32(s)-1] == uint64(k) {
			t.found[i] = uint32(s) - 1
			continue
		}
		for p := h & mask; ; p = (p + 1) & mask {
			s := t.slots[p] // again: a row before may have filled it
			if s == 0 {
				t.a = append(t.a, uint64(k))
				t.slots[p] = h>>32<<32 | uint64(len(t.a))
				t.found[i] = uint32(len(t.a) - 1)
				break
			}
			if (s^h)>>32 == 0 && t.a[uint32(s)-1] == uint64(k) {
				t.found[i] = uint32(s) - 1
				break
			}
		}
	}
	return t.found
}

// find2 is find for keys of two words.
func (t *table) find2(as, bs []int64) []uint32 {
	t.room(len(as))
	mask := uint64(len(t.slots) - 1)
	for i, k := range as {
		t.hashes[i] = hash2(uint64(k), uint64(bs[i]))
	}
	for i, h := range t.hashes {
		t.first[i] = t.slots[h&mask]
	}
	for i, k := range as {
		h, k2 := t.hashes[i], uint64(bs[i])
		for p, s := h&mask, t.first[i]; ; s = t.slots[p] {
			if s == 0 {
				s = t.slots[p]
			}
			if s == 0 {
				t.a, t.b = append(t.a, uint64(k)), append(t.b, k2)
				t.slots[p] = h>>32<<32 | uint64(len(t.a))
				t.found[i] = uint32(len(t.a) - 1)
				break
			}
			if n := uint32(s) - 1; (s^h)>>32 == 0 && t.a[n] == uint64(k) && t.b[n] == k2 {
				t.found[i] = n
				break
			}
			p = (p + 1) & mask
		}
	}
	return t.found
}

// has is the number of a key, -1 when it is not there.
func (t *table) has(k int64) int {
	mask := uint64(len(t.slots) - 1)
	h := hash1(uint64(k))
	for p := h & mask; t.slots[p] != 0; p = (p + 1) & mask {
		if n := uint32(t.slots[p]) - 1; t.a[n] == uint64(k) {
			return int(n)
		}
	}
	return -1
}

// chunks are rows of type T by number, which never move.
type chunks[T any] struct {
	all [][]T
	n   int
}

const chunkRows = 1 << 16

func (c *chunks[T]) at(i uint32) *T { return &c.all[i/chunkRows][i%chunkRows] }

// upTo makes rows until there is one of number i.
func (c *chunks[T]) upTo(i uint32) *T {
	for int(i) >= c.n {
		if c.n%chunkRows == 0 {
			c.all = append(c.all, make([]T, chunkRows))
		}
		c.n++
	}
	return c.at(i)
}

// add makes a row and gives its number.
func (c *chunks[T]) add() (*T, uint32) {
	i := uint32(c.n)
	return c.upTo(i), i
}

// arena keeps bytes; a place in it is the chunk's number times its size plus the offset.
type arena struct {
	all [][]byte
	cur []byte
}

const arenaChunk = 4 << 20

func (a *arena) alloc(n int) ([]byte, uint64) {
	if len(a.cur)+n > cap(a.cur) {
		a.cur = make([]byte, 0, arenaChunk)
		a.all = append(a.all, a.cur[:arenaChunk])
	}
	at := len(a.cur)
	a.cur = a.cur[:at+n]
	return a.cur[at : at+n], uint64(len(a.all)-1)*arenaChunk + uint64(at)
}

func (a *arena) at(place uint64) []byte { return a.all[place/arenaChunk][place%arenaChunk:] }
