package exec

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
)

// member is one subtask of a chain: an operator (sinks are operators here) or the source at its head.
type member struct {
	node    *Node
	id      checkpoint.SubtaskID
	op      Operator // nil for sources
	task    *task    // that runs it
	timer   ProcessingTimer
	delay   WatermarkDelayer
	sink    *sinkOperator       // op, when it is a sink
	state   *checkpoint.Backend // opened with the first table; nil without keyed state
	out     output
	rowsIn  *Counter
	wm      *Counter
	restore restored
}

// restored is what the checkpoint a job starts from holds for one operator.
type restored struct {
	was       checkpoint.OperatorID // its id there
	snapshots []checkpoint.Snapshot // of all its subtasks, by old index; nil on a fresh start
}

// frameState puts the member's watermark before the operator's own state.
func frameState(w Watermark, state []byte) []byte {
	return append(binary.AppendVarint(make([]byte, 0, len(state)+binary.MaxVarintLen64), int64(w)), state...)
}

// unframeState undoes frameState. The bytes were checked against the manifest's checksum.
func unframeState(b []byte) (Watermark, []byte) {
	w, n := binary.Varint(b)
	if n <= 0 {
		return NoWatermark, nil
	}
	if len(b) == n {
		return Watermark(w), nil
	}
	return Watermark(w), b[n:]
}

// states is the small state by old subtask index, nil on a fresh start.
func (r restored) states() [][]byte {
	if r.snapshots == nil {
		return nil
	}
	out := make([][]byte, len(r.snapshots))
	for i := range r.snapshots {
		_, out[i] = unframeState(r.snapshots[i].State)
	}
	return out
}

// watermark is the event time that subtask index of so many had reached: its own, when there were as many, else what all old
// ones had reached.
func (r restored) watermark(index, parallelism int) Watermark {
	if len(r.snapshots) == 0 {
		return NoWatermark
	}
	if len(r.snapshots) == parallelism {
		w, _ := unframeState(r.snapshots[index].State)
		return w
	}
	low := MaxWatermark
	for i := range r.snapshots {
		w, _ := unframeState(r.snapshots[i].State)
		low = min(low, w)
	}
	return low
}

// output is what follows a member: chained members by direct call, others by exchange.
type output struct {
	chained []*member
	ships   []*shipper
	rows    *Counter
	done    <-chan struct{} // closed when the attempt ends
}

// Emit implements Emitter.
func (o *output) Emit(b *batch.Batch) error {
	n := b.Len()
	if n == 0 {
		return nil
	}
	select {
	case <-o.done: // an operator can have very much to emit at once
		return errStopping
	default:
	}
	o.rows.Add(int64(n))
	for _, m := range o.chained {
		if err := m.process(0, b); err != nil {
			return err
		}
	}
	for _, s := range o.ships {
		if err := s.Emit(b); err != nil {
			return err
		}
	}
	return nil
}

// control sends m over the exchanges, behind the rows emitted so far.
func (o *output) control(m message) {
	for _, s := range o.ships {
		s.control(m)
	}
}

func (m *member) process(port int, b *batch.Batch) error {
	m.rowsIn.Add(int64(b.Len()))
	before := m.enter()
	err := m.op.Process(port, b, &m.out)
	m.leave(before)
	return m.wrap(err)
}

// watermark lets the member and everything chained behind it act on w.
func (m *member) watermark(w Watermark) error {
	m.wm.Set(int64(w))
	if m.op != nil {
		before := m.enter()
		err := m.op.OnWatermark(w, &m.out)
		m.leave(before)
		if err != nil {
			return m.wrap(err)
		}
	}
	if m.delay != nil {
		if w = m.delay.OutputWatermark(w); w == NoWatermark {
			return nil
		}
	}
	for _, c := range m.out.chained {
		if err := c.watermark(w); err != nil {
			return err
		}
	}
	m.out.control(message{kind: msgWatermark, watermark: w})
	return nil
}

// status passes on that the input became idle or active.
func (m *member) status(idle bool) error {
	if h, ok := m.op.(IdleHandler); ok && idle {
		if err := h.OnIdle(&m.out); err != nil {
			return m.wrap(err)
		}
	}
	for _, c := range m.out.chained {
		if err := c.status(idle); err != nil {
			return err
		}
	}
	m.out.control(message{kind: msgStatus, idle: idle})
	return nil
}

// portEnd tells the operator that event time has ended on one of its ports.
func (m *member) portEnd(port int) error {
	e, ok := m.op.(PortEnder)
	if !ok {
		return nil
	}
	defer m.leave(m.enter())
	return m.wrap(e.OnPortEnd(port, &m.out))
}

// cut is the part of a checkpoint that one task contributes.
type cut struct {
	id    checkpoint.ID
	parts []cutPart
	pause time.Duration // what it took of the task's goroutine
}

// cutPart is one subtask's: finish completes the snapshot off the task's goroutine, nil when it is complete. notReady
// says that the subtask declines.
type cutPart struct {
	snapshot checkpoint.Snapshot
	notReady bool
	givenUp  bool // its checkpoint was: finish it, and decline
	finish   func(context.Context) ([]checkpoint.StateFile, error)
}

// barrier takes the snapshots of the chain: each member emits what it buffers, is sealed, and passes the barrier on.
// With c nil the checkpoint was given up and the barrier only travels on.
func (m *member) barrier(b checkpoint.Barrier, c *cut) error {
	if c != nil && m.op != nil {
		if err := m.snapshot(b, c); err != nil {
			return m.wrap(err)
		}
	}
	for _, next := range m.out.chained {
		if err := next.barrier(b, c); err != nil {
			return err
		}
	}
	m.out.control(message{kind: msgBarrier, barrier: b})
	return nil
}

func (m *member) snapshot(b checkpoint.Barrier, c *cut) error {
	defer m.leave(m.enter())
	began := time.Now()
	defer func() { c.pause += time.Since(began) }()
	state, err := m.op.OnBarrier(b, &m.out)
	if err != nil {
		return err
	}
	part := cutPart{snapshot: checkpoint.Snapshot{Subtask: m.id, State: frameState(Watermark(m.wm.Load()), state)}}
	if m.sink != nil {
		part.snapshot.Committables = m.sink.take()
	}
	if m.state != nil {
		seal := m.state.Seal
		if b.Final {
			seal = m.state.SealLast
		}
		part.finish, err = seal(b.ID)
		if errors.Is(err, checkpoint.ErrSealing) {
			part.notReady, err = true, nil
		}
		if err != nil {
			return err
		}
	}
	c.parts = append(c.parts, part)
	return nil
}

// end tells everything behind that nothing follows.
func (m *member) end() error {
	for _, c := range m.out.chained {
		if err := c.end(); err != nil {
			return err
		}
	}
	m.out.control(message{kind: msgEnd})
	return nil
}

// flush sends what exchanges buffer.
func (m *member) flush() {
	for _, c := range m.out.chained {
		c.flush()
	}
	for _, s := range m.out.ships {
		s.flush()
	}
}

// flushOlder sends what exchanges have buffered since before t.
func (m *member) flushOlder(t time.Time) {
	for _, c := range m.out.chained {
		c.flushOlder(t)
	}
	for _, s := range m.out.ships {
		if s.dirty && s.since.Before(t) {
			s.flush()
		}
	}
}

// each calls f for the member and everything chained behind it, in order.
func (m *member) each(f func(*member)) {
	f(m)
	for _, c := range m.out.chained {
		c.each(f)
	}
}

// subtask implements Subtask for a member.
type subtask struct {
	m        *member
	at       *attempt
	counters *registry
	log      *slog.Logger
}

func (s *subtask) ID() checkpoint.SubtaskID { return s.m.id }
func (s *subtask) Parallelism() int         { return s.m.node.Parallelism }
func (s *subtask) Restored() [][]byte       { return s.m.restore.states() }
func (s *subtask) Now() int64               { return s.at.nowMs() }
func (s *subtask) Log() *slog.Logger        { return s.log }

func (s *subtask) Counter(name string) *Counter { return s.counters.counter(s.m.id, name) }

// context ends with the attempt.
func (s *subtask) context() context.Context { return s.at.ctx }

// wake puts the command into the task's mailbox.
func (s *subtask) wake() {
	if s.m.task != nil {
		s.m.task.box.put(command{kind: cmdWake, wake: s.m})
	}
}

func (s *subtask) OwnsKeyGroup(g int) bool {
	return checkpoint.SubtaskOf(g, s.m.node.Parallelism) == s.m.id.Index
}

// Table opens the subtask's keyed state with the first table.
func (s *subtask) Table(o checkpoint.TableOptions) (checkpoint.Table, error) {
	if s.m.state == nil {
		o := &s.at.job.o
		st, err := checkpoint.OpenBackend(o.Owner, stateName(s.m.id), checkpoint.BackendOptions{
			Budget: o.Memory, OwnsKeyGroup: s.OwnsKeyGroup, Now: s.Now, Log: s.log, RestoredAs: s.m.restore.was, Meter: &s.at.job.store, Disk: o.Disk,
		})
		if err != nil {
			return nil, err
		}
		s.m.state = st
		var files []checkpoint.StateFile
		for _, sn := range s.m.restore.snapshots {
			for _, f := range sn.Files {
				if !f.InFlight() {
					files = append(files, f)
				}
			}
		}
		if len(files) > 0 {
			if err := st.Restore(s.at.ctx, files); err != nil {
				return nil, err
			}
		}
	}
	return s.m.state.Table(s.m.id.Operator, o)
}

// stateName is the subtask's name as a file name: the operator's id is free text, so a hash keeps it unique.
func stateName(id checkpoint.SubtaskID) string {
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, string(id.Operator))
	return fmt.Sprintf("%.40s-%08x-%d", safe, uint32(checkpoint.HashKey([]byte(id.Operator))), id.Index)
}

// registry keeps the counters of a job: they survive restarts.
type registry struct {
	mu sync.Mutex
	m  map[counterKey]*Counter
}

type counterKey struct {
	id   checkpoint.SubtaskID
	name string
}

func (r *registry) counter(id checkpoint.SubtaskID, name string) *Counter {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := counterKey{id, name}
	c := r.m[k]
	if c == nil {
		c = &Counter{}
		r.m[k] = c
	}
	return c
}
