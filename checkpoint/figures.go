package checkpoint

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
)

// StoreFigures are how the state of tasks is held: what is in memory, and the Pebbles of those that have rows on disk, added
// up. Counts are since their Pebbles were opened.
type StoreFigures struct {
	// MemoryUsed is what resident rows and the block cache take of MemoryLimit; both are shared by all jobs of a process.
	MemoryUsed, MemoryLimit int64
	// CacheHits and CacheMisses are reads of blocks that were and were not in the block cache, CacheSize its bytes.
	CacheHits, CacheMisses, CacheSize int64
	Databases                         int   // tasks with rows on disk
	Files, Bytes                      int64 // of their tables
	NewFiles                          int64 // of Files, those that no compaction has merged yet
	MemtableBytes                     int64
	Compactions                       int64
	CompactionDebt                    int64 // bytes that have to be compacted until the levels are in shape
	Stalls                            int64 // times that writes were held back
	StallTime                         time.Duration
}

// CacheHitRatio is the share of reads that found their block in the cache, 1 when there were none.
func (f *StoreFigures) CacheHitRatio() float64 {
	if f.CacheHits+f.CacheMisses == 0 {
		return 1
	}
	return float64(f.CacheHits) / float64(f.CacheHits+f.CacheMisses)
}

// Meter reads the figures of backends while they work. The zero value is ready; it is safe for concurrent use.
type Meter struct {
	mu   sync.Mutex
	open map[*Backend]bool
}

// Figures adds up the backends that are open, with those of the budget they share.
func (m *Meter) Figures(budget *MemoryBudget) StoreFigures {
	f := StoreFigures{MemoryUsed: budget.Used(), MemoryLimit: budget.Limit()}
	budget.blockFigures(&f)
	m.mu.Lock()
	defer m.mu.Unlock()
	for b := range m.open {
		b.figures.addTo(&f)
	}
	return f
}

func (m *Meter) add(b *Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.open == nil {
		m.open = map[*Backend]bool{}
	}
	m.open[b] = true
}

func (m *Meter) remove(b *Backend) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.open, b)
}

// blockFigures adds those of the block caches.
func (m *MemoryBudget) blockFigures(f *StoreFigures) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, b := range m.blocks {
		c := b.cache.Metrics()
		f.CacheHits += c.Hits
		f.CacheMisses += c.Misses
		f.CacheSize += c.Size
	}
}

// figures are those of one backend's Pebble.
type figures struct {
	mu sync.Mutex // held while db is asked, so that it is not closed meanwhile
	db *pebble.DB // nil = none, or about to be closed

	stalls, stalled atomic.Int64 // how often, and for how long in all, in ns
	since           atomic.Int64 // when the present stall began, in ns; 0 = there is none
}

// show names the Pebble to ask, nil before it is closed.
func (f *figures) show(db *pebble.DB) {
	f.mu.Lock()
	f.db = db
	f.mu.Unlock()
}

func (f *figures) addTo(out *StoreFigures) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out.Stalls += f.stalls.Load()
	out.StallTime += time.Duration(f.stalled.Load())
	if since := f.since.Load(); since != 0 {
		out.StallTime += max(0, time.Duration(time.Now().UnixNano()-since))
	}
	if f.db == nil {
		return
	}
	m := f.db.Metrics()
	out.Databases++
	for _, l := range m.Levels {
		out.Files += l.TablesCount
		out.Bytes += l.TablesSize
	}
	out.NewFiles += m.Levels[0].TablesCount
	out.MemtableBytes += int64(m.MemTable.Size)
	out.Compactions += m.Compact.Count
	out.CompactionDebt += int64(m.Compact.EstimatedDebt)
}

// listener counts the times that Pebble holds writes back.
func (f *figures) listener() *pebble.EventListener {
	return &pebble.EventListener{
		WriteStallBegin: func(pebble.WriteStallBeginInfo) {
			f.stalls.Add(1)
			f.since.Store(time.Now().UnixNano())
		},
		WriteStallEnd: func() {
			if since := f.since.Swap(0); since != 0 {
				f.stalled.Add(max(0, time.Now().UnixNano()-since))
			}
		},
	}
}
