package exec

import (
	"errors"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// credits is how many batches may be under way on one channel, held ones included.
const credits = 4

// queueSize is the capacity of a task's input queue, in messages of all its channels.
const queueSize = 16

// errStopping ends a task whose attempt is over: it is nobody's failure.
var errStopping = errors.New("the job is stopping")

// channel carries messages from one subtask to another. Its batches are its credits: a producer takes an empty one,
// fills and sends it, and the consumer gives it back.
type channel struct {
	queue  chan<- message // of the consumer, shared by its channels
	input  int            // index at the consumer
	done   <-chan struct{}
	schema *types.Schema
	free   chan *pooled
	made   int // batches made so far; the producer's
	poison bool
}

func newChannel(queue chan<- message, input int, s *types.Schema, done <-chan struct{}, poison bool) *channel {
	return &channel{queue: queue, input: input, done: done, schema: s, free: make(chan *pooled, credits), poison: poison}
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
	select {
	case p := <-c.free:
		return p, nil
	case <-c.done:
		return nil, errStopping
	}
}

// release gives a batch back to its producer.
func (p *pooled) release() {
	if p.home.poison {
		p.poison()
	}
	p.reset()
	p.home.free <- p
}

func (c *channel) send(m message) error {
	m.input = c.input
	select {
	case c.queue <- m:
		return nil
	case <-c.done:
		return errStopping
	}
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
			if err := s.sendOpen(t); err != nil {
				return err
			}
			if s.ship == Rebalance {
				t = s.next
			}
		}
	}
	return nil
}

func (s *shipper) sendOpen(t int) error {
	p := s.open[t]
	s.open[t] = nil
	if s.ship == Rebalance {
		s.next = (t + 1) % len(s.to)
	}
	return s.to[t].send(message{kind: msgRows, rows: p})
}

// flush sends what is buffered.
func (s *shipper) flush() error {
	if !s.dirty {
		return nil
	}
	s.dirty = false
	for t, p := range s.open {
		if p != nil && p.N > 0 {
			if err := s.sendOpen(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// control sends m to every target, behind the rows emitted so far.
func (s *shipper) control(m message) error {
	if err := s.flush(); err != nil {
		return err
	}
	for _, c := range s.to {
		if err := c.send(m); err != nil {
			return err
		}
	}
	return nil
}
