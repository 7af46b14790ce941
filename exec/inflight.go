package exec

import (
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
)

// Barriers that overtake (unaligned checkpoints). The first barrier n that arrives on any channel passes at once, between
// two batches: the operator's snapshot holds the rows processed so far. The messages before barrier n that are not processed
// yet are in flight: those queued at the gate, and, of channels whose barrier n has not come, those that still arrive until
// it does. They are recorded, as bytes, into the checkpoint, and are processed after the barrier all the same. A restore
// processes them before anything new. So nothing of before the barrier is lost, and nothing is processed twice:
//
//	rows before barrier n  =  rows the snapshot has seen  +  rows in flight
//
// What a sink writes of them after the barrier belongs to its next pre-commit; rows behind the barrier do too.

// capture records what of the channels is in flight for a checkpoint.
type capture struct {
	id   checkpoint.ID
	open int    // channels whose barrier has not come
	head []byte // the channels as they were
	body []byte // messages
	seq  []uint64
	rows int64
}

// complete tells whether nothing more will be in flight.
func (c *capture) complete() bool { return c.open == 0 }

// empty tells whether nothing was in flight.
func (c *capture) empty() bool { return len(c.body) == 0 }

// waiting is the newest barrier that arrived and has not passed.
func (g *gate) waiting() (checkpoint.Barrier, bool) {
	return g.newest, !g.pinned && g.newest.ID > g.passed
}

// overtake passes b, which waits, on at once, and starts to record what is in flight. Older barriers that wait are passed
// on before it: of checkpoints that were given up, as there is one unaligned checkpoint at a time.
func (g *gate) overtake(b checkpoint.Barrier) []gateEvent {
	g.events = g.events[:0]
	g.forgetCapture()
	g.release()
	c := &capture{id: b.ID, seq: make([]uint64, len(g.inputs))}
	c.head = appendChannels(nil, g)
	var older []checkpoint.Barrier
	for i := range g.inputs {
		in := &g.inputs[i]
		in.missing = !in.ended && in.last.ID < b.ID
		if in.missing && in.last.ID > g.passed {
			older = append(older, in.last)
		}
	}
	for k := g.at; k < len(g.replay); k++ {
		m := &g.replay[k]
		in := &g.inputs[m.input]
		switch {
		case !in.missing, m.kind == msgNone:
		case m.kind == msgBarrier:
			if m.barrier.ID > g.passed && m.barrier.ID < b.ID {
				older = append(older, m.barrier)
			}
			in.last = m.barrier
			in.missing = m.barrier.ID < b.ID
			m.kind = msgNone
		case m.kind == msgEnd:
			in.missing = false
		default:
			c.add(m)
		}
	}
	for i := range g.inputs {
		if g.inputs[i].missing {
			c.open++
		}
	}
	g.capture, g.passed = c, b.ID
	slices.SortFunc(older, func(x, y checkpoint.Barrier) int { return int(x.ID) - int(y.ID) })
	for _, o := range slices.CompactFunc(older, func(x, y checkpoint.Barrier) bool { return x.ID == y.ID }) {
		g.events = append(g.events, gateEvent{kind: msgGivenUp, barrier: o})
	}
	g.events = append(g.events, gateEvent{kind: msgBarrier, barrier: b})
	return g.events
}

// record notes a message that arrives on a channel whose barrier is missing, and tells whether it goes on.
func (g *gate) record(in *gateInput, m *message) bool {
	switch m.kind {
	case msgBarrier:
		if m.barrier.ID > in.last.ID {
			in.last = m.barrier
		}
		if m.barrier.ID >= g.capture.id {
			in.missing = false
			g.capture.open--
		}
		return m.barrier.ID > g.capture.id
	case msgEnd:
		in.missing = false
		g.capture.open--
	default:
		g.capture.add(m)
	}
	return true
}

// forgetCapture ends the recording of a checkpoint that is given up.
func (g *gate) forgetCapture() {
	if g.capture == nil {
		return
	}
	g.capture = nil
	for i := range g.inputs {
		g.inputs[i].missing = false
	}
}
