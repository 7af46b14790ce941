package checkpoint

// filter is a Bloom filter over hashes of keys that may be on disk only: about 10 bits a key, one cache line a lookup.
// It grows by layers of doubled size; a key that is reported present is not added again.
type filter struct {
	budget *MemoryBudget
	layers []filterLayer
	keys   int // added
}

type filterLayer struct {
	lines []filterLine
	room  int // keys until it is full
}

type filterLine [8]uint64

const (
	keysPerLine = 48 // 512 bits
	firstLines  = 16
	filterBits  = 6
)

func (f *filter) has(hash uint64) bool {
	for i := range f.layers {
		l := &f.layers[i]
		if l.lines[lineOf(hash, len(l.lines))].has(hash) {
			return true
		}
	}
	return false
}

func (f *filter) add(hash uint64) {
	if f.has(hash) {
		return
	}
	n := len(f.layers)
	if n == 0 || f.layers[n-1].room == 0 {
		lines := firstLines
		if n > 0 {
			lines = 2 * len(f.layers[n-1].lines)
		}
		f.layers = append(f.layers, filterLayer{lines: make([]filterLine, lines), room: lines * keysPerLine})
		f.budget.add(int64(lines) * 64)
		n++
	}
	l := &f.layers[n-1]
	l.lines[lineOf(hash, len(l.lines))].add(hash)
	l.room--
	f.keys++
}

func (f *filter) reset() {
	for _, l := range f.layers {
		f.budget.add(-int64(len(l.lines)) * 64)
	}
	f.layers, f.keys = nil, 0
}

// mixed decorrelates the bits used here from those the index and the key group use.
func mixed(hash uint64) uint64 {
	hash ^= hash >> 29
	hash *= 0xbf58476d1ce4e5b9
	return hash ^ hash>>32
}

// lineOf maps hash to one of n lines, a power of two.
func lineOf(hash uint64, n int) int { return int(mixed(hash) & uint64(n-1)) }

func (l *filterLine) has(hash uint64) bool {
	h := mixed(hash) * 0x9e3779b97f4a7c15
	for range filterBits {
		if l[h>>61]&(1<<(h>>55&63)) == 0 {
			return false
		}
		h = h<<9 | h>>55
	}
	return true
}

func (l *filterLine) add(hash uint64) {
	h := mixed(hash) * 0x9e3779b97f4a7c15
	for range filterBits {
		l[h>>61] |= 1 << (h >> 55 & 63)
		h = h<<9 | h>>55
	}
}
