package kafka

import (
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"
)

// recordPool lets a client reuse the structs of records, which are larger than a small record is. The bytes of keys and
// values are not pooled: strings in columns alias them for as long as anybody keeps those.
type recordPool struct {
	mu   sync.Mutex
	free [][]kgo.Record
	kept int // records
}

// keptRecords is how many unused records a client keeps, 184 bytes each: those of a few fetched batches.
const keptRecords = 1 << 14

// GetRecords implements kgo.PoolRecords. It takes the smallest list that is large enough.
func (p *recordPool) GetRecords(n int) []kgo.Record {
	p.mu.Lock()
	defer p.mu.Unlock()
	best := -1
	for i, s := range p.free {
		if cap(s) >= n && (best < 0 || cap(s) < cap(p.free[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]kgo.Record, 0, n+n/8) // batches of one producer differ a little
	}
	s, last := p.free[best], len(p.free)-1
	p.free[best], p.free[last] = p.free[last], nil
	p.free = p.free[:last]
	p.kept -= cap(s)
	return s[:0]
}

// PutRecords implements kgo.PoolRecords. Newer lists displace older ones, which may be too small for what is fetched now.
func (p *recordPool) PutRecords(s []kgo.Record) {
	if cap(s) > keptRecords {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free = append(p.free, s)
	p.kept += cap(s)
	drop := 0
	for p.kept > keptRecords {
		p.kept -= cap(p.free[drop])
		drop++
	}
	if drop > 0 {
		n := copy(p.free, p.free[drop:])
		clear(p.free[n:])
		p.free = p.free[:n]
	}
}
