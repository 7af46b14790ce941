package checkpoint

import "unsafe"

// index maps hashes to row locations: open addressing with linear probing. A slot is the low half of the hash (which
// also decides the home position, so that growing and deleting touch no row) and location+1; 0 is empty. The upper half
// of the hash is left to the row's comparison: its top bits are the key group, nearly constant within a subtask.
type index struct {
	budget *MemoryBudget
	slots  []uint64
	raw    []byte
	mask   uint64
	n      int
}

const firstSlots = 64

func newIndex(budget *MemoryBudget) index {
	x := index{budget: budget}
	x.slots, x.raw = allocSlots(firstSlots)
	x.mask = firstSlots - 1
	x.count(firstSlots)
	budget.tables.Add(1)
	return x
}

func allocSlots(n int) (slots []uint64, raw []byte) {
	if n*8 >= hugePage {
		if b, raw := offHeap(n * 8); b != nil {
			return unsafe.Slice((*uint64)(unsafe.Pointer(unsafe.SliceData(b))), n), raw
		}
	}
	return make([]uint64, n), nil
}

// count counts n more slots in the budget.
func (x *index) count(n int) {
	x.budget.add(int64(n) * 8)
	x.budget.index.Add(int64(n) * 8)
}

func slotOf(hash uint64, loc uint32) uint64 { return hash<<32 | uint64(loc+1) }

// add puts loc for hash; the caller knows that its key is not in the index.
func (x *index) add(hash uint64, loc uint32) {
	if x.n*2 >= len(x.slots) {
		x.resize(len(x.slots) * 2)
	}
	x.put(slotOf(hash, loc))
	x.n++
}

func (x *index) put(s uint64) {
	p := s >> 32 & x.mask
	for x.slots[p] != 0 {
		p = (p + 1) & x.mask
	}
	x.slots[p] = s
}

// reserve makes room for n more, a guess: no more than an eighth of the memory, and half of what all indexes may take before rows
// go to Pebble. What it does not make room for, add does.
func (x *index) reserve(n int) {
	room := min(x.budget.limit/8, x.budget.limit/4-x.budget.index.Load()) / 8 // slots
	size := len(x.slots)
	for size < (x.n+n)*2 && int64(size)*2 <= room {
		size *= 2
	}
	if size > len(x.slots) {
		x.resize(size)
	}
}

// fit gives back what was reserved in vain.
func (x *index) fit() {
	size := firstSlots
	for size < x.n*2 {
		size *= 2
	}
	if size < len(x.slots) {
		x.resize(size)
	}
}

// vacant is the empty slot that add would fill; ok is false if one with the lower half of the hash comes first.
func (x *index) vacant(hash uint64) (p uint64, ok bool) {
	if x.n*2 >= len(x.slots) {
		x.resize(len(x.slots) * 2)
	}
	for p = hash & x.mask; ; p = (p + 1) & x.mask {
		s := x.slots[p]
		if s == 0 {
			return p, true
		}
		if uint32(s>>32) == uint32(hash) {
			return 0, false
		}
	}
}

// putAt is add at the slot that vacant found.
func (x *index) putAt(p, hash uint64, loc uint32) {
	x.slots[p] = slotOf(hash, loc)
	x.n++
}

func (x *index) resize(n int) {
	old, oldRaw := x.slots, x.raw
	x.slots, x.raw = allocSlots(n)
	x.mask = uint64(n - 1)
	x.count(n - len(old))
	for _, s := range old {
		if s != 0 {
			x.put(s)
		}
	}
	if oldRaw != nil {
		freeOffHeap(oldRaw)
	}
}

// shrink gives memory back after many deletions.
func (x *index) shrink() {
	n := len(x.slots)
	for n > firstSlots && x.n*8 < n {
		n /= 2
	}
	if n < len(x.slots) {
		x.resize(n)
	}
}

// match sets found to the first slot for each of hashes that has its lower half, 0 if there is none. The homes are read before
// anything is decided on them, so that their cache misses overlap.
func (x *index) match(hashes, found []uint64) {
	slots, mask := x.slots, x.mask
	found = found[:len(hashes)]
	for i, h := range hashes {
		found[i] = slots[h&mask]
	}
	for i, h := range hashes {
		s := found[i]
		if s == 0 || uint32(s>>32) == uint32(h) {
			continue
		}
		for p := (h + 1) & mask; ; p = (p + 1) & mask {
			if s = slots[p]; s == 0 || uint32(s>>32) == uint32(h) {
				break
			}
		}
		found[i] = s
	}
}

// at finds the slot that holds loc.
func (x *index) at(hash uint64, loc uint32) uint64 {
	want := slotOf(hash, loc)
	p := hash & x.mask
	for x.slots[p] != want {
		if x.slots[p] == 0 {
			panic("checkpoint: row missing from its index")
		}
		p = (p + 1) & x.mask
	}
	return p
}

// has tells whether the index names loc.
func (x *index) has(hash uint64, loc uint32) bool {
	want := slotOf(hash, loc)
	for p := hash & x.mask; x.slots[p] != 0; p = (p + 1) & x.mask {
		if x.slots[p] == want {
			return true
		}
	}
	return false
}

// move replaces the location of a row.
func (x *index) move(hash uint64, from, to uint32) { x.slots[x.at(hash, from)] = slotOf(hash, to) }

// remove takes loc out and closes the gap, so that no probe needs to skip deleted slots.
func (x *index) remove(hash uint64, loc uint32) {
	p := x.at(hash, loc)
	x.n--
	for q := (p + 1) & x.mask; ; q = (q + 1) & x.mask {
		s := x.slots[q]
		if s == 0 {
			break
		}
		// s may fill the gap unless its home lies cyclically in (p, q].
		if home := s >> 32 & x.mask; (q-home)&x.mask >= (q-p)&x.mask {
			x.slots[p] = s
			p = q
		}
	}
	x.slots[p] = 0
}

func (x *index) close() {
	if x.slots != nil {
		x.budget.tables.Add(-1)
	}
	x.count(-len(x.slots))
	if x.raw != nil {
		freeOffHeap(x.raw)
	}
	x.slots, x.raw = nil, nil
}
