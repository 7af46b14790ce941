package exec

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// credits is how many batches may be under way on one channel, held ones included.
const credits = 4

// errStopping ends a task whose attempt is over: it is nobody's failure.
var errStopping = errors.New("the job is stopping")

// channel carries messages from one subtask to another. Its batches are its credits: a producer takes an empty one,
// fills and sends it, and the consumer gives it back.
type channel struct {
	to     *inbox // of the consumer, shared by its channels
	input  int    // index at the consumer
	from   *task  // the producer
	schema *types.Schema
	free   chan *pooled
	made   int          // batches made so far but for the overdraft; the producer's
	over   atomic.Int32 // batches beyond the credits
	poison bool
}

func newChannel(to *inbox, input int, s *types.Schema, poison bool) *channel {
	return &channel{to: to, input: input, schema: s, free: make(chan *pooled, credits), poison: poison}
}

// take waits for an empty batch.
func (c *channel) take() (*pooled, error) {
	select {
	case p := <-c.free:
		return p, nil
	default:
	}
	if c.made < credits {
		c.made++
		return newPooled(c.schema, c), nil
	}
	return c.from.room(c)
}

// release gives a batch back to its producer. Those of the overdraft, and those restored from a checkpoint, have none.
func (p *pooled) release() {
	if p.home == nil {
		return
	}
	if p.home.poison {
		p.poison()
	}
	if p.extra {
		p.home.over.Add(-1)
		return
	}
	p.reset()
	p.home.free <- p
}

func (c *channel) send(m message) {
	m.input = c.input
	c.to.put(m)
}

// shipper distributes the output of one subtask over the subtasks of one consumer.
type shipper struct {
	ship   Ship
	to     []*channel
	open   []*pooled // per target: rows not yet sent
	enc    *KeyEncoder
	keys   checkpoint.Keys
	target [checkpoint.KeyGroups]uint16 // subtask per key group
	rows   [][]int32                    // per target: rows of the batch at hand
	next   int                          // Rebalance: target of the batch being filled
	dirty  bool
	since  time.Time // when the oldest unsent row came
}

func newShipper(ship Ship, keys []int, to []*channel) *shipper {
	s := &shipper{ship: ship, to: to, open: make([]*pooled, len(to)), rows: make([][]int32, len(to))}
	if ship == Hash {
		s.enc = NewKeyEncoder(keys)
		for g := range s.target {
			s.target[g] = uint16(checkpoint.SubtaskOf(g, len(to)))
		}
	}
	return s
}

// Emit implements Emitter: it copies the rows of b.
func (s *shipper) Emit(b *batch.Batch) error {
	if !s.dirty {
		s.dirty, s.since = true, time.Now()
	}
	if s.ship != Hash || len(s.to) == 1 {
		return s.put(s.next, b, s.all(b))
	}
	hashes := s.enc.Hashes(b, &s.keys)
	for t := range s.rows {
		s.rows[t] = s.rows[t][:0]
	}
	if b.Sel == nil {
		for i, h := range hashes {
			t := s.target[checkpoint.KeyGroup(h)]
			s.rows[t] = append(s.rows[t], int32(i))
		}
	} else {
		for i, h := range hashes {
			t := s.target[checkpoint.KeyGroup(h)]
			s.rows[t] = append(s.rows[t], b.Sel[i])
		}
	}
	for t, rows := range s.rows {
		if err := s.put(t, b, rows); err != nil {
			return err
		}
	}
	return nil
}

// all lists the rows of b that count.
func (s *shipper) all(b *batch.Batch) []int32 {
	if b.Sel != nil {
		return b.Sel
	}
	rows := s.rows[0]
	if cap(rows) < b.N {
		rows = make([]int32, max(b.N, batch.Size))
		for i := range rows {
			rows[i] = int32(i)
		}
		s.rows[0] = rows
	}
	return rows[:b.N]
}

// put copies rows to target t, sending batches as they fill.
func (s *shipper) put(t int, b *batch.Batch, rows []int32) error {
	for len(rows) > 0 {
		p := s.open[t]
		if p == nil {
			var err error
			if p, err = s.to[t].take(); err != nil {
				return err
			}
			s.open[t] = p
		}
		n := min(len(rows), batch.Size-p.N)
		p.add(b, rows[:n])
		rows = rows[n:]
		if p.N >= batch.Size {
			s.sendOpen(t)
			if s.ship == Rebalance {
				t = s.next
			}
		}
	}
	return nil
}

func (s *shipper) sendOpen(t int) {
	p := s.open[t]
	s.open[t] = nil
	if s.ship == Rebalance {
		s.next = (t + 1) % len(s.to)
	}
	s.to[t].send(message{kind: msgRows, rows: p})
}

// flush sends what is buffered. It does not wait.
func (s *shipper) flush() {
	if !s.dirty {
		return
	}
	s.dirty = false
	for t, p := range s.open {
		if p != nil && p.N > 0 {
			s.sendOpen(t)
		}
	}
}

// control sends m to every target, behind the rows emitted so far. It does not wait.
func (s *shipper) control(m message) {
	s.flush()
	for _, c := range s.to {
		c.send(m)
	}
}
