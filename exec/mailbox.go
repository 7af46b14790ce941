package exec

import (
	"sync"

	"github.com/streamsql/streamsql/checkpoint"
)

// commandKind says what the job tells a task.
type commandKind uint8

const (
	cmdInject    commandKind = iota // sources: start checkpoint barrier.ID here; last: no rows follow
	cmdCommitted                    // checkpoint id is durable and committed
	cmdAddSplit                     // sources: read one more split
	cmdExit                         // the job is done: end
	cmdGivenUp                      // checkpoint id will not complete
	cmdWake                         // an operator's work outside the task goroutine is done
)

// command is sent from the job to a task. It never blocks the job: a task stuck in a sink must not stop the others.
type command struct {
	kind    commandKind
	barrier checkpoint.Barrier
	last    bool // cmdInject: read no more
	drain   bool // cmdInject: end event time first
	id      checkpoint.ID
	split   checkpoint.Position
	wake    *member // cmdWake
}

// mailbox is a task's queue of commands. It is bounded by what the job may have under way: a few per checkpoint,
// and one wake-up per operator that asks for them.
type mailbox struct {
	mu     sync.Mutex
	list   []command
	signal chan struct{} // has a token while list is not empty
}

func newMailbox() *mailbox { return &mailbox{signal: make(chan struct{}, 1)} }

func (m *mailbox) put(c command) {
	m.mu.Lock()
	m.list = append(m.list, c)
	m.mu.Unlock()
	select {
	case m.signal <- struct{}{}:
	default:
	}
}

// take empties the mailbox.
func (m *mailbox) take() []command {
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.list
	m.list = nil
	return l
}
