package exec

import (
	"sync"
	"sync/atomic"

	"github.com/streamsql/streamsql/checkpoint"
)

// overdraft is how many batches a channel may have beyond its credits while a barrier waits for the batch at hand.
const overdraft = 16

// hurry says which checkpoint's barriers overtake the rows before them. There is one at a time: unaligned checkpoints do
// not run beside each other.
type hurry struct {
	id     atomic.Uint64
	mu     sync.Mutex
	raised chan struct{} // closed at the next raise
}

func newHurry() *hurry { return &hurry{raised: make(chan struct{})} }

// raise lets the barriers of checkpoint id overtake from now on, those under way included.
func (h *hurry) raise(id checkpoint.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.id.Store(uint64(id))
	close(h.raised)
	h.raised = make(chan struct{})
}

// watch is closed when another checkpoint is in a hurry. What the caller looks at after watch is not missed.
func (h *hurry) watch() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.raised
}

// overtakes tells whether barriers of checkpoint id overtake.
func (at *attempt) overtakes(id checkpoint.ID) bool {
	return id != 0 && checkpoint.ID(at.hurry.id.Load()) == id && !at.abandoned(id)
}

// hurried tells whether a barrier that overtakes waits until the task is done with the batch at hand.
func (t *task) hurried() bool {
	if t.source != nil {
		id := checkpoint.ID(t.at.hurry.id.Load())
		return id > t.source.injected && !t.at.abandoned(id)
	}
	_, ok := t.overtaking()
	return ok
}

// room waits for a batch to send on c when its credits are used up. While a barrier waits for that, the task gets some
// beyond the credits; and it takes in what arrives meanwhile, so that what is recorded of the channels becomes complete.
func (t *task) room(c *channel) (*pooled, error) {
	var arrived <-chan struct{}
	if t.inbox != nil {
		arrived = t.inbox.signal
	}
	for {
		raised := t.at.hurry.watch()
		if c.over.Load() < overdraft && t.hurried() {
			c.over.Add(1)
			p := newPooled(c.schema, c)
			p.extra = true
			return p, nil
		}
		select {
		case p := <-c.free:
			return p, nil
		case <-arrived:
			if err := t.arrivals(); err != nil {
				return nil, err
			}
		case <-raised:
		case <-t.at.done:
			return nil, errStopping
		}
	}
}
