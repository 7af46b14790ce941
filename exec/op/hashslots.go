package op

import (
	"math/bits"
	"slices"
)

// hashSlots are the slots of a hash table in memory: the upper half of a hash, which also says where it belongs, and a number in the lower
// half; 0 = free. Behind a slot that is taken comes the next one. They are a power of two many. That the upper bits order them makes a table
// that doubles read and write from front to back.
type hashSlots struct {
	all   []uint64
	shift int
}

const minSlots = 64

// home is where the slot of a hash is, or those that are taken before it begin.
func (s *hashSlots) home(h uint64) uint64 { return h >> (s.shift & 63) }

// empty makes them size free slots.
func (s *hashSlots) empty(size int) {
	if size <= cap(s.all) {
		s.all = s.all[:size]
		clear(s.all)
	} else {
		s.all = make([]uint64, size)
	}
	s.shift = 64 - bits.Len(uint(size-1))
}

// firsts sets first to what is at home for each of hashes: in a pass of its own, so that misses of the cache overlap.
func (s *hashSlots) firsts(hashes, first []uint64) {
	first = first[:len(hashes)]
	for i, h := range hashes {
		first[i] = s.all[s.home(h)]
	}
}

// put takes a slot that is free.
func (s *hashSlots) put(slot uint64) {
	mask := uint64(len(s.all) - 1)
	p := s.home(slot)
	for s.all[p] != 0 {
		p = (p + 1) & mask
	}
	s.all[p] = slot
}

// double makes them twice as many; false when they are free now, because the old ones were in the same memory.
func (s *hashSlots) double() bool {
	old := s.all
	size := max(minSlots, 2*len(old))
	s.empty(size)
	if size <= cap(old) {
		return false
	}
	for _, slot := range old {
		if slot != 0 {
			s.put(slot)
		}
	}
	return true
}

// grown is s with room for n more. It doubles: what slices grow by beyond a few KiB would copy a table that becomes large four times.
func grown[T any](s []T, n int) []T {
	if len(s)+n <= cap(s) {
		return s
	}
	return slices.Grow(s, max(n, len(s)))
}
