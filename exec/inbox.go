package exec

import (
	"sync"
	"sync/atomic"
)

// inbox is a task's queue of messages of all its channels, in the order they were sent. Sending never waits: rows are
// bounded by the credits of their channel, and a watermark or status replaces one right before it. So a barrier is in
// its consumer's inbox as soon as it is made, however far behind the consumer is.
type inbox struct {
	some   atomic.Bool // list is not empty; may be late
	mu     sync.Mutex
	list   []message
	last   []int         // by channel: 1 + index into list of its newest message, 0 = none
	signal chan struct{} // has a token while list is not empty
}

func newInbox(channels int) *inbox {
	return &inbox{last: make([]int, channels), signal: make(chan struct{}, 1)}
}

// put adds m. Its rows are the consumer's now.
func (b *inbox) put(m message) {
	b.mu.Lock()
	if at := b.last[m.input]; at > 0 && b.list[at-1].merge(m) {
		b.mu.Unlock()
		return
	}
	b.list = append(b.list, m)
	b.last[m.input] = len(b.list)
	b.some.Store(true)
	b.mu.Unlock()
	select {
	case b.signal <- struct{}{}:
	default:
	}
}

// drain takes all messages and leaves the empty slice spare in their place.
func (b *inbox) drain(spare []message) []message {
	if !b.some.Load() {
		return spare[:0]
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	list := b.list
	b.list = spare[:0]
	b.some.Store(false)
	clear(b.last)
	return list
}

// merge makes m, a control message, take the place of the one right before it on its channel. It reports whether it could.
func (o *message) merge(m message) bool {
	switch {
	case o.kind != m.kind:
		return false
	case m.kind == msgWatermark:
		o.watermark = max(o.watermark, m.watermark)
	case m.kind == msgStatus:
		o.idle = m.idle
	default:
		return false
	}
	return true
}
