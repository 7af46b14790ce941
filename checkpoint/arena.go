package checkpoint

import (
	"slices"
	"unsafe"
)

// An arena holds rows back to back in chunks. A row's location is chunk number and offset in 8-byte units packed into 31
// bits, so that it is a Ref and half a slot of the hash index. Rows hold no pointers: the garbage collector sees a few
// slices, or nothing when the chunks are outside its heap.
type arena struct {
	budget *MemoryBudget
	max    int // bytes of a full-grown chunk
	chunks []chunk
	base   []unsafe.Pointer // of each chunk; nil = unused number
	unused []uint32         // chunk numbers to use again
	freed  []uint32         // chunk numbers that lists may still name, see reuse
	cur    int              // chunk that new rows go to; -1 = none
	bytes  int64            // allocated
	live   int64            // in rows that are not dead
	pins   *pins            // nil: there never was a view

	// Chunks that are not in memory (table_cold.go). next is the one in memory that rows for them are gathered in, -1 = none.
	next     int
	thin     int // where nextThin looks next
	coldUsed int64
	coldLive int64
}

type chunk struct {
	mem  []byte
	raw  []byte // mapping to release; nil: mem is on the Go heap
	used int
	live int
	// cold: the chunk is at at in the table's coldFile; oldest is the least stamp of its rows.
	cold   bool
	at     int64
	oldest int64
}

const (
	unitShift  = 3
	chunkShift = 18 // units per chunk number: 2 MiB
	chunkMask  = 1<<chunkShift - 1
	maxChunks  = 1 << (31 - chunkShift)
	firstChunk = 4 << 10
)

// rowHead begins every row; a stamp (8 bytes, only in tables with TTL), the key and the value follow, the latter two
// padded to 8 bytes.
type rowHead struct {
	hash  uint64 // of a moved row: its new location
	klen  uint32
	vlen  uint32
	units uint32 // size of the whole row
	flags uint32
}

const (
	rowDirty    uint32 = 1 << iota // changed since the last seal
	rowDisk                        // a version is or will be in Pebble, so that a deletion needs a tombstone
	rowDeleted                     // a tombstone
	rowMoved                       // forwarding only: see hash
	rowDead                        // no longer reachable
	rowRef                         // used since the eviction hand passed
	rowSeqShift = 16               // upper half: number of the seal that copied it last
	rowHeadSize = 24
)

func newArena(budget *MemoryBudget) arena {
	limit := min(max(budget.limit/16, firstChunk), hugePage)
	size := firstChunk
	for int64(size)*2 <= limit {
		size *= 2
	}
	return arena{budget: budget, max: size, cur: -1, next: -1}
}

func align8(n int) int { return (n + 7) &^ 7 }

func (a *arena) head(loc uint32) *rowHead {
	return (*rowHead)(unsafe.Add(a.base[loc>>chunkShift], uintptr(loc&chunkMask)<<unitShift))
}

// bytesOf is the whole row at loc.
func (a *arena) bytesOf(loc uint32) []byte {
	h := a.head(loc)
	return unsafe.Slice((*byte)(unsafe.Pointer(h)), int(h.units)<<unitShift)
}

// span is n bytes at loc, for a row that is not written yet.
func (a *arena) span(loc uint32, n int) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(a.head(loc))), n)
}

// alloc makes room for a row of n bytes, a multiple of 8; ok is false when all locations are taken. The memory is not
// zeroed.
func (a *arena) alloc(n int) (loc uint32, ok bool) {
	if a.cur >= 0 {
		c := &a.chunks[a.cur]
		if c.used+n <= len(c.mem) {
			return a.take(a.cur, n), true
		}
	}
	size := firstChunk
	for size < a.max && int64(size) < a.bytes {
		size *= 2
	}
	i, ok := a.addChunk(max(size, n), 0)
	if !ok {
		return 0, false
	}
	if size > n { // a chunk made for one large row does not replace the one being filled
		a.cur = i
	}
	return a.take(i, n), true
}

// take makes room for n bytes in chunk i, which has it.
func (a *arena) take(i, n int) uint32 {
	c := &a.chunks[i]
	loc := uint32(i)<<chunkShift | uint32(c.used>>unitShift)
	c.used += n
	c.live += n
	a.live += int64(n)
	return loc
}

// coldSize is the size of a chunk to gather rows in that leave memory, the first of which has n bytes.
func (a *arena) coldSize(n int) int {
	size, limit := firstChunk, a.budget.coldChunk()
	for size < a.max && int64(size) < a.coldUsed && int64(size)*2 <= limit {
		size *= 2
	}
	return max(size, n)
}

// chill gives up the memory of chunk i, whose rows are at at in the table's coldFile.
func (a *arena) chill(i int, at int64) {
	c := a.chunks[i]
	a.freeChunk(i)
	a.freed = a.freed[:len(a.freed)-1]
	a.chunks[i] = chunk{used: c.used, live: c.live, cold: true, at: at}
	a.coldUsed += int64(c.used)
	a.coldLive += int64(c.live)
}

// coldDead takes n bytes of rows out of cold chunk i and tells whether they were the last.
func (a *arena) coldDead(i, n int) bool {
	a.chunks[i].live -= n
	a.coldLive -= int64(n)
	return a.chunks[i].live == 0
}

// nextThin goes round the chunks to a cold one less than half of which are rows.
func (a *arena) nextThin() (i int, ok bool) {
	for range a.chunks {
		if a.thin++; a.thin >= len(a.chunks) {
			a.thin = 0
		}
		if c := &a.chunks[a.thin]; c.cold && 2*c.live < c.used {
			return a.thin, true
		}
	}
	return 0, false
}

// dropCold ends cold chunk i.
func (a *arena) dropCold(i int) {
	a.coldUsed -= int64(a.chunks[i].used)
	a.chunks[i] = chunk{}
	a.freed = append(a.freed, uint32(i))
}

// numbers is how many chunk numbers are in use.
func (a *arena) numbers() int { return len(a.chunks) - len(a.unused) - len(a.freed) }

// growLast makes the row at loc n bytes large where it is, if it is the newest of its chunk and there is room: one that was
// just inserted, which gets its value next.
func (a *arena) growLast(loc uint32, n int) bool {
	if int(loc>>chunkShift) != a.cur {
		return false
	}
	c, h := &a.chunks[a.cur], a.head(loc)
	off, old := int(loc&chunkMask)<<unitShift, int(h.units)<<unitShift
	if off+old != c.used || off+n > len(c.mem) {
		return false
	}
	h.units = uint32(n >> unitShift)
	c.used += n - old
	c.live += n - old
	a.live += int64(n - old)
	return true
}

// addChunk adds a chunk of size bytes, whose number is at least least.
func (a *arena) addChunk(size, least int) (int, bool) {
	var c chunk
	if size == hugePage {
		c.mem, c.raw = offHeapChunk()
	}
	if c.mem == nil {
		c.mem = unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(make([]uint64, (size+7)/8)))), size)
	}
	i := len(a.chunks)
	k := len(a.unused) - 1
	for k >= 0 && int(a.unused[k]) < least {
		k--
	}
	if k >= 0 {
		i = int(a.unused[k])
		a.unused = slices.Delete(a.unused, k, k+1)
		a.chunks[i], a.base[i] = c, unsafe.Pointer(unsafe.SliceData(c.mem))
	} else {
		if i == maxChunks {
			if c.raw != nil {
				freeOffHeap(c.raw)
			}
			return 0, false
		}
		a.chunks = append(a.chunks, c)
		a.base = append(a.base, unsafe.Pointer(unsafe.SliceData(c.mem)))
	}
	a.bytes += int64(size)
	a.budget.add(int64(size))
	return i, true
}

// sparse tells whether rows are less than half of what chunks take, but for the two that are being filled.
func (a *arena) sparse() bool {
	if a.bytes <= 64<<10 || a.live*2 >= a.bytes {
		return false
	}
	bytes, live := a.bytes, a.live
	for _, i := range [2]int{a.cur, a.next} {
		if i >= 0 {
			bytes, live = bytes-int64(len(a.chunks[i].mem)), live-int64(a.chunks[i].live)
		}
	}
	return live*2 < bytes
}

// freeChunk releases chunk i. Its number is not used again before reuse is called, so that lists can be cleaned of its
// locations in one pass over many chunks.
func (a *arena) freeChunk(i int) {
	c := &a.chunks[i]
	a.bytes -= int64(len(c.mem))
	a.live -= int64(c.live)
	a.budget.add(-int64(len(c.mem)))
	switch {
	case c.raw == nil:
	case a.pins != nil:
		a.pins.free(c.raw)
	default:
		freeOffHeap(c.raw)
	}
	a.chunks[i], a.base[i] = chunk{}, nil
	a.freed = append(a.freed, uint32(i))
	if a.cur == i {
		a.cur = -1
	}
}

// reuse says that no list names a location in a freed chunk any more.
func (a *arena) reuse() {
	a.unused = append(a.unused, a.freed...)
	a.freed = a.freed[:0]
}

// kill takes the row at loc out of the live count.
func (a *arena) kill(loc uint32) {
	n := int(a.head(loc).units) << unitShift
	a.chunks[loc>>chunkShift].live -= n
	a.live -= int64(n)
}

func (a *arena) close() {
	for i := range a.chunks {
		if a.chunks[i].mem != nil {
			a.freeChunk(i)
		}
	}
	a.chunks, a.base, a.unused, a.freed, a.cur, a.next = nil, nil, nil, nil, -1, -1
}
