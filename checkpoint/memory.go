package checkpoint

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"

	"github.com/streamsql/streamsql/sql/diag"
)

// MemoryBudget is the memory that the resident rows of all state tables of a process, or a job, share. Tables over it
// write changed rows to disk early and evict cold ones. The floor is what one batch of keys needs in each table. Safe for
// concurrent use.
type MemoryBudget struct {
	limit  int64
	used   atomic.Int64
	index  atomic.Int64 // of used, what indexes take
	tables atomic.Int64

	mu     sync.Mutex
	blocks map[int64]*blockCache // by the size that was asked for; 0 = the common one
}

// blockCache is a cache while backends with rows on disk use it.
type blockCache struct {
	cache *pebble.Cache
	size  int64
	users int
}

// NewMemoryBudget makes a budget of limit bytes; 0 means a quarter of the machine's memory.
func NewMemoryBudget(limit int64) *MemoryBudget {
	if limit <= 0 {
		limit = physicalMemory() / 4
	}
	return &MemoryBudget{limit: limit}
}

// CheckMemoryBudget refuses a configured budget that is larger than the machine.
func CheckMemoryBudget(limit int64) error {
	if ram := physicalMemory(); limit > ram {
		return errorf(diag.Config, "%d bytes of memory for state are more than this machine's %d", limit, ram).
			WithHint("give at most %d", ram/2)
	}
	return nil
}

// Limit is the budget in bytes, Used what is taken.
func (m *MemoryBudget) Limit() int64 { return m.limit }

// Used is the number of bytes taken now.
func (m *MemoryBudget) Used() int64 { return m.used.Load() }

func (m *MemoryBudget) add(n int64) { m.used.Add(n) }

// coldChunk is how large a chunk that a table gathers rows in may be: those of all tables are an eighth of the memory.
func (m *MemoryBudget) coldChunk() int64 { return m.limit / (8 * max(m.tables.Load(), 1)) }

// earlyBytes is how many bytes of changed rows of a table are worth an early write: those of all tables that are not are a
// sixteenth of the memory.
func (m *MemoryBudget) earlyBytes() int64 {
	return max(firstChunk, min(m.limit/(16*max(m.tables.Load(), 1)), 4<<20))
}

// over is how many bytes are taken beyond the limit, 0 if none.
func (m *MemoryBudget) over() int64 { return max(0, m.used.Load()-m.limit) }

// blockCacheSize is the part of the budget for blocks of state on disk. It should hold the Bloom filters, 10 bits for each
// key: without them every read of a spilled table would fetch a filter anew.
func (m *MemoryBudget) blockCacheSize() int64 { return min(max(m.limit/8, 64<<10), 256<<20) }

// acquireBlocks is the block cache that all backends share who ask for the same size, 0 = the common one; each gives it back
// with releaseBlocks. A cache takes at most half of the memory.
func (m *MemoryBudget) acquireBlocks(size int64) *pebble.Cache {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.blocks[size]
	if b == nil {
		b = &blockCache{size: m.blockCacheSize()}
		if size > 0 {
			b.size = min(size, m.limit/2)
		}
		b.cache = pebble.NewCache(b.size)
		m.add(b.size)
		if m.blocks == nil {
			m.blocks = map[int64]*blockCache{}
		}
		m.blocks[size] = b
	}
	b.users++
	return b.cache
}

func (m *MemoryBudget) releaseBlocks(size int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.blocks[size]
	if b.users--; b.users == 0 {
		b.cache.Unref() // databases that are still open hold their own references
		delete(m.blocks, size)
		m.add(-b.size)
	}
}
