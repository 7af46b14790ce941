package checkpoint

import (
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2"
)

// compactions decides when Pebble may compact. Nobody reads the files of a state that is all in memory but a restore, and
// compacting at its usual pace rewrites the whole state every few checkpoints: it waits until the newer files are as large as
// half of the rest. Once rows are on disk only, Pebble goes at its own pace.
type compactions struct {
	due atomic.Bool

	mu       sync.Mutex
	idle     sync.Cond              // granting became false
	db       pebble.DBForCompaction // set before any other call
	running  bool
	granting bool // outside mu, as calls into db must be
	closed   bool
	runs     int // compactions that were let run
}

var _ pebble.CompactionScheduler = (*compactions)(nil)

func newCompactions() *compactions {
	c := &compactions{}
	c.idle.L = &c.mu
	return c
}

// Register implements pebble.CompactionScheduler.
func (c *compactions) Register(_ int, db pebble.DBForCompaction) {
	c.mu.Lock()
	c.db = db
	c.mu.Unlock()
}

// Unregister implements pebble.CompactionScheduler.
func (c *compactions) Unregister() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.closed = true; c.granting; {
		c.idle.Wait()
	}
}

// TrySchedule implements pebble.CompactionScheduler.
func (c *compactions) TrySchedule() (bool, pebble.CompactionGrantHandle) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.running || c.granting || !c.due.Load() {
		return false, nil // grant comes back to it
	}
	c.running = true
	c.runs++
	return true, c
}

// UpdateGetAllowedWithoutPermission implements pebble.CompactionScheduler.
func (c *compactions) UpdateGetAllowedWithoutPermission() {}

// grant lets a compaction that was refused run, if one may.
func (c *compactions) grant() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.running || c.granting || c.db == nil || !c.due.Load() {
		return
	}
	c.running, c.granting = true, true
	c.mu.Unlock()
	waits, _ := c.db.GetWaitingCompaction()
	runs := waits && c.db.Schedule(c)
	c.mu.Lock()
	if c.granting = false; runs {
		c.runs++
	} else {
		c.running = false
	}
	c.idle.Broadcast()
}

// Done implements pebble.CompactionGrantHandle.
func (c *compactions) Done() {
	c.mu.Lock()
	c.running = false
	c.mu.Unlock()
	c.grant()
}

// Started implements pebble.CompactionGrantHandle.
func (c *compactions) Started() {}

// MeasureCPU implements pebble.CompactionGrantHandle.
func (c *compactions) MeasureCPU(pebble.CompactionGoroutineKind) {}

// CumulativeStats implements pebble.CompactionGrantHandle.
func (c *compactions) CumulativeStats(pebble.CompactionGrantHandleStats) {}

const (
	// Newer files of up to so many bytes are not worth a compaction.
	smallFiles = 32 << 20
	// manyFiles is how many a restore should have to merge at most.
	manyFiles = 64
)

// paceCompactions sees whether there is reason to compact. cutMu is held.
func (b *Backend) paceCompactions() {
	m := b.db.Metrics()
	rest := int64(0)
	for _, l := range m.Levels[1:] {
		rest += l.TablesSize
	}
	newer := m.Levels[0]
	b.compactions.due.Store(b.spilled.Load() || newer.TablesSize > max(smallFiles, rest/2) || newer.TablesCount > manyFiles)
	b.compactions.grant()
}

// noteSpilled lets Pebble compact at its own pace from now on.
func (b *Backend) noteSpilled() {
	b.cutMu.Lock()
	defer b.cutMu.Unlock()
	if b.spilled.Store(true); b.db != nil {
		b.paceCompactions()
	}
}
