package checkpoint

import (
	"sync"
	"unsafe"
)

// pins keep the chunks of an arena mapped while views of it exist, also when the arena has freed them. The arena belongs
// to the subtask, views to the writer of a seal; so this is locked.
type pins struct {
	mu     sync.Mutex
	views  int
	freed  [][]byte // mappings that the arena has freed meanwhile
	budget *MemoryBudget
}

// view is the arena as it is now, to read rows that will not change; end gives it back.
func (a *arena) view() (v arena, end func()) {
	if a.pins == nil {
		a.pins = &pins{budget: a.budget}
	}
	p := a.pins
	p.mu.Lock()
	p.views++
	p.mu.Unlock()
	// Chunks on the Go heap live as long as something points to them.
	return arena{budget: a.budget, base: append([]unsafe.Pointer(nil), a.base...), cur: -1}, p.end
}

func (p *pins) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.views--; p.views > 0 {
		return
	}
	for _, raw := range p.freed {
		p.budget.add(-int64(len(raw)))
		freeOffHeap(raw)
	}
	p.freed = nil
}

// free unmaps a chunk, at once or when the last view has ended.
func (p *pins) free(raw []byte) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.views > 0 {
		p.freed = append(p.freed, raw)
		p.budget.add(int64(len(raw)))
		return
	}
	freeOffHeap(raw)
}
