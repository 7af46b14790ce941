package kafka

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/batch"
)

// slab is the records of one batch and the memory behind them. It returns to its list when the last is acknowledged.
type slab struct {
	list        *slabList
	slot        *slot
	recs        []kgo.Record
	values, key format.Messages
	left        atomic.Int64
	promise     func(*kgo.Record, error)
}

// delivered is called once for each record. Dropping the last reference makes the memory reusable, so the slot is
// told first.
func (b *slab) delivered(r *kgo.Record, err error) {
	b.slot.delivered(r, err)
	b.release(1)
}

func (b *slab) release(n int64) {
	if b.left.Add(-n) != 0 {
		return
	}
	clear(b.recs)
	b.slot = nil
	b.list.put(b)
}

// memory is the bytes that the slab holds.
func (b *slab) memory() int {
	return cap(b.recs)*int(unsafe.Sizeof(kgo.Record{})) + cap(b.values.Buf) + cap(b.key.Buf)
}

// keptSlabBytes is what a sink's unused slabs may hold: what its producer buffers and as much again, for what is under way
// when the buffer empties. A sync.Pool is emptied by collections, and has no bound between them.
const keptSlabBytes = 2 * defaultBufferBytes

// slabList is the slabs that a sink's writers may use again. Promises of several producers return them.
type slabList struct {
	mu   sync.Mutex
	free []*slab
	kept int // bytes
}

// get is a slab for n records, empty.
func (l *slabList) get(n int) *slab {
	b := l.take()
	if b == nil {
		b = &slab{list: l}
		b.promise = b.delivered
	}
	b.values.Reset()
	b.key.Reset()
	if cap(b.recs) < n {
		b.recs = make([]kgo.Record, max(n, min(n+n/8, batch.Size))) // batches of a stream differ a little
	}
	b.recs = b.recs[:n]
	return b
}

func (l *slabList) take() *slab {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := len(l.free) - 1
	if last < 0 {
		return nil
	}
	b := l.free[last]
	l.free[last] = nil
	l.free = l.free[:last]
	l.kept -= b.memory()
	return b
}

// put takes a slab back, unless enough are there: one that held a very large row goes at once.
func (l *slabList) put(b *slab) {
	n := b.memory()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.kept+n <= keptSlabBytes {
		l.free = append(l.free, b)
		l.kept += n
	}
}
