package kafka

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"github.com/streamsql/streamsql/sql/diag"
)

// Below transaction.version 2 a commit leaves the epoch of an id as it is. A request to end a transaction of the id that the
// broker carries out late, however late, would then end the next one: EndTxn names the id, the producer and the epoch, and
// nothing else. So an id is initialised again between two transactions, which raises its epoch, and the broker refuses
// whatever is left of the one before (Jepsen's Bufstream 0.1.0 report; KIP-890 part 2 makes the broker itself do it).
//
// That happens where the slot-reuse rule lets go of the id: from then on no manifest asks for the outcome of its last
// transaction by EndTxn. It happens beside the job, so that no barrier and no row waits for it as long as another id
// is free. A new client takes the id over: kgo initialises again by itself only after an error, and in its own order.

// renews reports whether the group's ids are initialised again before their next transaction.
func (g *txnGroup) renews() bool { return g.cluster.tv < 2 }

const (
	renewRetry   = 100 * time.Millisecond
	renewTimeout = 10 * time.Second // of one attempt; the next one asks anew who owns the job
)

// renewAll initialises the ids of the slots it is handed, one after the other, until ctx ends.
func (g *txnGroup) renewAll(ctx context.Context, done chan<- struct{}) {
	defer close(done)
	for {
		select {
		case <-ctx.Done():
			return
		case s := <-g.worn:
			g.renew(ctx, s)
		}
	}
}

// renew makes s free under a new epoch. It is repeated while the broker cannot answer; an answer that will not change takes the
// slot out of use.
func (g *txnGroup) renew(ctx context.Context, s *slot) {
	for wait := renewRetry; ; wait = min(2*wait, 5*time.Second) {
		fresh, err := g.reopen(ctx, s.id)
		if err == nil {
			g.renewed(s, fresh)
			return
		}
		if ctx.Err() != nil {
			return
		}
		if !passing(err) {
			g.log.Warn("kafka: transactional id cannot be used again", "id", s.id, "error", err)
			g.burn(s)
			return
		}
		g.log.Warn("kafka: transactional id is not initialised yet, trying again", "id", s.id, "error", err)
		if sleep(ctx, wait) != nil {
			return
		}
	}
}

// reopen is openSlot for a process that still owns the job: in one that was suspended and replaced, initialising would abort what
// its replacement has prepared.
func (g *txnGroup) reopen(ctx context.Context, id string) (*slot, error) {
	if g.owned != nil {
		if err := g.owned(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, renewTimeout)
	defer cancel()
	return openSlot(ctx, g.c, id, g.timeoutMs)
}

// passing reports whether trying again can help.
func passing(err error) bool {
	if c := diag.CodeOf(err); c == diag.Conflict || c == diag.Config {
		return false
	}
	return !errors.Is(err, kerr.TransactionalIDAuthorizationFailed)
}

// renewed gives s the producer of fresh and frees it.
func (g *txnGroup) renewed(s, fresh *slot) {
	g.mu.Lock()
	old := s.cl
	s.cl, s.pid, s.epoch, s.state = fresh.cl, fresh.pid, fresh.epoch, slotFree
	g.wake()
	g.mu.Unlock()
	old.Close()
}

// burn takes s out of use.
func (g *txnGroup) burn(s *slot) {
	g.mu.Lock()
	s.state = slotBurned
	g.wake() // whoever waits for an id may have too few left
	g.mu.Unlock()
	s.cl.Close()
}

// endRenewals waits until nothing is initialised any more.
func (g *txnGroup) endRenewals() {
	g.mu.Lock()
	cancel, done := g.cancel, g.done
	g.cancel, g.done = nil, nil
	g.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}
