package exec

import (
	"fmt"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// walk follows the barriers through the tasks of an attempt: where each is now, and how long it took where it was. Tasks
// call it once or twice per barrier, never per row.
type walk struct {
	now func() time.Time

	mu sync.Mutex
	m  map[checkpoint.ID]map[*task]*passage
}

// passage is a barrier on its way through a task.
type passage struct {
	checkpoint.Passage
	channels int // that delivered it
	// recording tells that the barrier overtook and what is in flight is being recorded; over that it is.
	recording, over bool
	bytes, rows     int64 // in flight
}

// overtaken is what is known of a barrier at all gates: whether it overtook, how many bytes and rows, and the longest time
// from the first barrier at a gate to the last, or to the end of the recording.
type overtaken struct {
	Unaligned      bool
	InFlight, Rows int64
	Alignment      time.Duration
}

func newWalk(now func() time.Time) *walk {
	return &walk{now: now, m: map[checkpoint.ID]map[*task]*passage{}}
}

// of is the passage of a barrier through t. The caller holds the lock.
func (w *walk) of(id checkpoint.ID, t *task) *passage {
	byTask := w.m[id]
	if byTask == nil {
		byTask = map[*task]*passage{}
		w.m[id] = byTask
	}
	p := byTask[t]
	if p == nil {
		p = &passage{}
		byTask[t] = p
	}
	return p
}

// arrived notes that one more channel of t delivered barrier id; a source got it from the job. One that was held back
// arrives when it is first seen.
func (w *walk) arrived(id checkpoint.ID, t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of(id, t)
	p.channels++
	if p.Arrived.IsZero() {
		p.Arrived = w.now()
	}
}

// aligned notes that all channels of t that count have delivered it.
func (w *walk) aligned(id checkpoint.ID, t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of(id, t)
	p.Aligned = w.now()
	if p.Arrived.IsZero() {
		p.Arrived = p.Aligned
	}
}

// records notes that barrier id overtook in t, which now records what is in flight.
func (w *walk) records(id checkpoint.ID, t *task) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of(id, t).recording = true
}

// overtook notes what was in flight in t when barrier id overtook, once the last channel delivered it.
func (w *walk) overtook(id checkpoint.ID, t *task, bytes, rows int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of(id, t)
	p.recording, p.over, p.bytes, p.rows, p.Aligned = false, true, bytes, rows, w.now()
}

// overtaken sums up barrier id.
func (w *walk) overtaken(id checkpoint.ID) (o overtaken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.m[id] {
		o.Unaligned = o.Unaligned || p.over
		o.InFlight, o.Rows = o.InFlight+p.bytes, o.Rows+p.rows
		if !p.Aligned.IsZero() {
			o.Alignment = max(o.Alignment, p.Aligned.Sub(p.Arrived))
		}
	}
	return o
}

// taken notes that t has gone on with its rows, after a pause.
func (w *walk) taken(id checkpoint.ID, t *task, pause time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p := w.of(id, t)
	p.Taken, p.Pause = w.now(), pause
}

// through is how barrier id went through t.
func (w *walk) through(id checkpoint.ID, t *task) checkpoint.Passage {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p := w.m[id][t]; p != nil {
		return p.Passage
	}
	return checkpoint.Passage{}
}

// pause is the longest that a task stood still for id.
func (w *walk) pause(id checkpoint.ID) (d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.m[id] {
		d = max(d, p.Pause)
	}
	return d
}

// forget drops what is known of barriers up to id.
func (w *walk) forget(id checkpoint.ID) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.m {
		if k <= id {
			delete(w.m, k)
		}
	}
}

// waiting says where barrier id, sent at triggered, is now: the tasks that have it and have not answered, and those in
// front of which it is. Tasks that it has not come near are not listed: they cannot be what it waits for.
func (w *walk) waiting(id checkpoint.ID, triggered time.Time, tasks []*task, answered map[checkpoint.SubtaskID]bool) []checkpoint.Waiting {
	w.mu.Lock()
	defer w.mu.Unlock()
	byTask := w.m[id]
	var out []checkpoint.Waiting
	for _, t := range tasks {
		m := t.unanswered(answered)
		if m == nil {
			continue
		}
		x := checkpoint.Waiting{Subtask: m.id, Name: shortened(m.node.Name)}
		switch p := byTask[t]; {
		case p == nil && t.source != nil:
			x.What, x.Since = "has not sent the barrier", triggered
		case p == nil:
			if x.Since = passedBefore(t, byTask); x.Since.IsZero() {
				continue
			}
			x.What = "has rows to process before the barrier"
		case p.Aligned.IsZero():
			x.What, x.Since = fmt.Sprintf("has the barrier on %d of %d inputs", p.channels, len(t.gate.inputs)), p.Arrived
		case p.recording:
			x.What, x.Since = "records the rows that the barrier overtook", p.Aligned
		case p.Taken.IsZero():
			x.What, x.Since = "takes its snapshot", p.Aligned
		default:
			x.What, x.Since = "writes its snapshot", p.Taken
		}
		out = append(out, x)
	}
	return out
}

// unanswered is the first member of the chain that has not answered, nil when all have.
func (t *task) unanswered(answered map[checkpoint.SubtaskID]bool) *member {
	for _, m := range t.all {
		if !answered[m.id] {
			return m
		}
	}
	return nil
}

// passedBefore is when the first task that feeds t passed the barrier on, zero when none has.
func passedBefore(t *task, byTask map[*task]*passage) (first time.Time) {
	for from, p := range byTask {
		if p.Taken.IsZero() || !first.IsZero() && !p.Taken.Before(first) {
			continue
		}
		for _, m := range from.all {
			if feeds(m, t) {
				first = p.Taken
			}
		}
	}
	return first
}

// feeds tells whether m sends to t over an exchange.
func feeds(m *member, t *task) bool {
	for _, e := range t.head.node.Inputs {
		if t.at.job.g.Nodes[e.From] == m.node && (e.Ship != Forward || m.id.Index == t.head.id.Index) {
			return true
		}
	}
	return false
}
