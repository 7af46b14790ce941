package exec

import "github.com/streamsql/streamsql/checkpoint"

// messageKind says what a message carries.
type messageKind uint8

const (
	msgRows messageKind = iota
	msgWatermark
	msgStatus // the channel became idle or active
	msgBarrier
	msgEnd     // nothing follows on the channel
	msgPortEnd // of a gate to its task: event time has ended on all channels of a port
	msgGivenUp // of a gate to its task: a barrier whose checkpoint a newer one has ended
	msgNone    // a barrier that overtook the messages before it was here
	msgAfresh  // of a restore: what was in flight on the channel is over, its producer says anew what event time is
)

// message is what travels on an exchange.
type message struct {
	kind      messageKind
	input     int // index of the channel at its consumer
	idle      bool
	rows      *pooled
	watermark Watermark
	barrier   checkpoint.Barrier
}

// gate turns the messages of a task's input channels into what the task's operators see: rows, one watermark, one
// barrier per checkpoint. It does no I/O; the task feeds it.
//
// Alignment (exactly once): a channel that delivered barrier n is blocked, its later messages are held, until every
// live channel delivered n; then the barrier is passed on and the held messages follow in order. What is held is
// bounded by the channels' credits. At least once: nothing is blocked, the barrier passes when the last channel
// delivered it.
//
// A barrier that overtakes (gate.overtake) does not wait: see inflight.go.
type gate struct {
	mode     Mode
	pinned   bool // barriers never overtake here: build.go says where
	inputs   []gateInput
	aligning checkpoint.ID // of the alignment in progress, 0 = none
	barrier  checkpoint.Barrier
	passed   checkpoint.ID // of the newest barrier passed on
	held     []message
	replay   []message // from at on
	at       int
	popped   int                // messages taken from replay since the last release
	newest   checkpoint.Barrier // that arrived
	capture  *capture           // of the newest barrier that overtook, until it is complete and taken
	out      Watermark          // last watermark passed on
	again    bool               // out is of before a restart: those behind have not heard of it since
	idle     bool               // last status passed on
	over     []bool             // by port: its end was passed on
	events   []gateEvent
}

// gateInput is the state of one channel.
type gateInput struct {
	port     int
	blocked  bool
	last     checkpoint.Barrier // newest barrier delivered
	wm       Watermark
	idle     bool
	catching bool // became active below the gate's watermark: does not count until it caught up
	ended    bool
	heldAt   int    // 1 + index into held of its newest held message
	tailAt   int    // 1 + popped + index into replay of its newest message there
	from     int    // subtask of the producer
	shape    uint64 // of its rows: shapeOf
	missing  bool   // the barrier that overtook has not come yet: what arrives is in flight
}

// gateEvent is what the task has to do next. For rows, port and rows are set, for the end of a port, port.
type gateEvent struct {
	kind      messageKind
	port      int
	idle      bool
	rows      *pooled
	watermark Watermark
	barrier   checkpoint.Barrier
}

// newGate makes the gate of a task whose channel i leads to input port ports[i].
func newGate(mode Mode, ports []int) *gate {
	g := &gate{mode: mode, out: NoWatermark, inputs: make([]gateInput, len(ports))}
	for i, p := range ports {
		g.inputs[i] = gateInput{port: p, wm: NoWatermark}
		if p >= len(g.over) {
			g.over = append(g.over, make([]bool, p+1-len(g.over))...)
		}
	}
	return g
}

// replayed is the next message that was held and may now be accepted.
func (g *gate) replayed() (message, bool) {
	if g.at == len(g.replay) {
		return message{}, false
	}
	m := g.replay[g.at]
	g.replay[g.at] = message{}
	g.at++
	g.popped++
	switch {
	case g.at == len(g.replay):
		g.replay, g.at = g.replay[:0], 0
	case g.at >= 256 && g.at > len(g.replay)/2:
		n := copy(g.replay, g.replay[g.at:])
		clear(g.replay[n:])
		g.replay, g.at = g.replay[:n], 0
	}
	return m, true
}

// arrive takes a message that arrived. It is accepted in its turn; but a barrier is seen, and what is in flight for one that
// overtook is recorded, at once.
func (g *gate) arrive(m message) {
	in := &g.inputs[m.input]
	if in.missing && !g.record(in, &m) {
		return
	}
	if m.kind == msgBarrier && m.barrier.ID > g.newest.ID {
		g.newest = m.barrier
	}
	if at := in.tailAt - g.popped; at > 0 && g.replay[g.at+at-1].merge(m) {
		return
	}
	g.replay = append(g.replay, m)
	in.tailAt = g.popped + len(g.replay) - g.at
}

// accept takes the next message and returns what to do, in order; the slice is valid until the next accept.
func (g *gate) accept(m message) []gateEvent {
	g.events = g.events[:0]
	in := &g.inputs[m.input]
	if in.blocked {
		g.hold(in, m)
		return nil
	}
	switch m.kind {
	case msgNone:
	case msgAfresh:
		in.wm, in.idle, in.catching = NoWatermark, false, false
		g.advance()
	case msgRows:
		if in.idle {
			g.setIdle(in, false)
		}
		g.events = append(g.events, gateEvent{kind: msgRows, port: in.port, rows: m.rows})
	case msgWatermark:
		in.wm = max(in.wm, m.watermark)
		if in.catching && in.wm >= g.out {
			in.catching = false
		}
		g.portEnd(in)
		g.advance()
	case msgStatus:
		g.setIdle(in, m.idle)
	case msgBarrier:
		g.onBarrier(in, m.barrier)
	case msgEnd:
		in.ended = true
		in.wm = MaxWatermark
		g.align()
		g.portEnd(in)
		g.advance()
		if g.allEnded() {
			g.events = append(g.events, gateEvent{kind: msgEnd})
		}
	}
	return g.events
}

// hold keeps m until its channel is unblocked. A newer watermark replaces an older one right before it, so that
// control messages, which need no credit, cannot pile up.
func (g *gate) hold(in *gateInput, m message) {
	if m.kind == msgWatermark && in.heldAt > 0 && g.held[in.heldAt-1].merge(m) {
		return
	}
	g.held = append(g.held, m)
	in.heldAt = len(g.held)
}

func (g *gate) onBarrier(in *gateInput, b checkpoint.Barrier) {
	if b.ID <= in.last.ID || b.ID <= g.passed {
		return // a late or repeated barrier separates nothing
	}
	in.last = b
	if g.mode == ExactlyOnce {
		if g.aligning != 0 && b.ID > g.aligning {
			// The older checkpoint was given up before this channel's barrier was made: start over with the newer. The
			// older one must not pass any more, even if its last barrier comes: channels were unblocked.
			g.release()
			g.passed = b.ID - 1
		}
		if b.ID < g.aligning {
			return
		}
		g.aligning, g.barrier = b.ID, b
		in.blocked = true
	}
	g.align()
}

// align passes on the barriers that every live channel has delivered.
func (g *gate) align() {
	low := checkpoint.Barrier{}
	for i := range g.inputs {
		in := &g.inputs[i]
		if in.ended {
			continue
		}
		if low.ID == 0 || in.last.ID < low.ID {
			low = in.last
		}
		if low.ID == 0 {
			return
		}
	}
	if low.ID == 0 { // every channel ended: an alignment in progress has nobody left to wait for
		if low = g.barrier; g.aligning == 0 {
			return
		}
	}
	if low.ID <= g.passed {
		return
	}
	g.passed = low.ID
	g.events = append(g.events, gateEvent{kind: msgBarrier, barrier: low})
	if g.mode == ExactlyOnce {
		g.release()
	}
}

// release unblocks all channels; what was held comes before what is still to be replayed.
func (g *gate) release() {
	g.aligning = 0
	for i := range g.inputs {
		in := &g.inputs[i]
		in.blocked, in.heldAt, in.tailAt = false, 0, 0
	}
	g.popped = 0
	if len(g.held) > 0 {
		g.replay, g.at = append(g.held, g.replay[g.at:]...), 0
		g.held = nil
	}
}

func (g *gate) setIdle(in *gateInput, idle bool) {
	if in.idle == idle {
		return
	}
	in.idle = idle
	in.catching = !idle && in.wm < g.out
	g.advance()
}

// advance passes on the watermark and the status that follow from the channels'. Channels at the maximum take no part:
// while others are idle the maximum must not end event time for them.
func (g *gate) advance() {
	low, high := MaxWatermark, NoWatermark
	unfinished, active, counted := 0, 0, 0
	for i := range g.inputs {
		in := &g.inputs[i]
		if in.wm == MaxWatermark {
			continue
		}
		unfinished++
		high = max(high, in.wm)
		if in.idle {
			continue
		}
		active++
		if !in.catching {
			counted++
			low = min(low, in.wm)
		}
	}
	idle := unfinished > 0 && active == 0
	switch {
	case unfinished == 0:
		low = MaxWatermark
	case idle:
		low = high
	case counted == 0:
		low = g.out
	}
	if low > g.out || g.again && low == g.out {
		if g.idle && !idle {
			g.emitStatus(false)
		}
		g.out, g.again = low, false
		g.events = append(g.events, gateEvent{kind: msgWatermark, watermark: low})
	}
	if idle != g.idle {
		g.emitStatus(idle)
	}
}

// portEnd passes on that event time has ended on the port of in, once it has on all its channels.
func (g *gate) portEnd(in *gateInput) {
	if in.wm != MaxWatermark || len(g.over) == 1 || g.over[in.port] {
		return
	}
	for i := range g.inputs {
		if o := &g.inputs[i]; o.port == in.port && o.wm != MaxWatermark {
			return
		}
	}
	g.over[in.port] = true
	g.events = append(g.events, gateEvent{kind: msgPortEnd, port: in.port})
}

func (g *gate) emitStatus(idle bool) {
	g.idle = idle
	g.events = append(g.events, gateEvent{kind: msgStatus, idle: idle})
}

func (g *gate) allEnded() bool {
	for i := range g.inputs {
		if !g.inputs[i].ended {
			return false
		}
	}
	return true
}
