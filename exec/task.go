package exec

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// task is the goroutine that runs a chain of subtasks. It is fed by a gate or reads a source.
type task struct {
	at     *attempt
	head   *member
	all    []*member // head and everything chained behind it
	timers []*member // those with processing-time timers
	sinks  []*member
	box    *mailbox
	inside atomic.Pointer[member] // whose code runs, nil = the runtime's own
	acks   chan *cut              // to the goroutine that finishes snapshots

	inbox  *inbox // gate tasks
	gate   *gate
	spare  []message // for inbox.drain
	cut    *cut      // of the barrier that overtook, until all in flight is recorded
	replay []replayed
	source *sourceReader // source tasks
	exited bool
	quiet  bool // the last barrier passed: no timer may produce rows any more
}

// run is the task's life. The attempt waits for it.
func (t *task) run(ctx context.Context, opened func()) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = t.recovered(p)
		}
		for _, m := range t.all {
			err = errors.Join(err, m.close())
		}
	}()
	if err := t.open(); err != nil {
		return err
	}
	if err := t.loadFlights(ctx); err != nil {
		return err
	}
	opened()
	if err := t.replayChained(); err != nil {
		return err
	}
	if t.source != nil {
		return t.source.run(ctx)
	}
	return t.runGate()
}

func (t *task) open() error {
	for _, m := range t.all {
		if m.op == nil {
			continue
		}
		s := &subtask{m: m, at: t.at, counters: &t.at.job.counters,
			log: t.at.job.o.Log.With("node", m.node.Name, "subtask", m.id.Index)}
		before := m.enter()
		err := m.op.Open(s)
		m.leave(before)
		if err != nil {
			return m.wrap(err)
		}
		t.at.hasState(m)
		if p, ok := m.op.(ProcessingTimer); ok {
			m.timer = p
			t.timers = append(t.timers, m)
		}
		// Event time goes on where the checkpoint left it: a row that was late then must not become early now.
		if w := m.restore.watermark(m.id.Index, m.node.Parallelism); w > NoWatermark {
			m.wm.Set(int64(w))
			if m == t.head {
				t.gate.out, t.gate.again = w, true
			}
			if err := m.op.OnWatermark(w, &m.out); err != nil {
				return m.wrap(err)
			}
		}
	}
	return nil
}

// close releases the member's operator and state. Errors count only where they can mean lost output: never here, as
// nothing that a checkpoint lists depends on Close.
func (m *member) close() error {
	defer m.leave(m.enter())
	if m.op != nil {
		if err := m.op.Close(); err != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, io.ErrClosedPipe) {
			return m.wrap(err)
		}
	}
	if m.state != nil {
		return m.wrap(m.state.Close())
	}
	return nil
}

// runGate feeds the chain from its inbox until every channel ended or the job says exit.
func (t *task) runGate() error {
	for !t.exited {
		if err := t.housekeeping(); err != nil || t.exited {
			return err
		}
		if err := t.arrivals(); err != nil {
			return err
		}
		if b, ok := t.overtaking(); ok {
			t.at.walk.arrived(b.ID, t)
			if err := t.perform(t.gate.overtake(b)); err != nil {
				return err
			}
			continue
		}
		m, ok := t.gate.replayed()
		if !ok {
			// The task waits: what it buffers must not wait with it.
			t.head.flush()
			if err := t.wait(); err != nil {
				return err
			}
			continue
		}
		if m.kind == msgBarrier {
			t.at.walk.arrived(m.barrier.ID, t)
		}
		if err := t.perform(t.gate.accept(m)); err != nil {
			return err
		}
	}
	return nil
}

// wait blocks for a message, a command, a timer or a hurry.
func (t *task) wait() error {
	var tick <-chan time.Time
	if d, ok := t.nextTimer(); ok {
		timer := time.NewTimer(d)
		defer timer.Stop()
		tick = timer.C
	}
	var arrived, raised <-chan struct{}
	if t.gate != nil {
		raised = t.at.hurry.watch()
		if _, ok := t.overtaking(); ok {
			return nil
		}
		arrived = t.inbox.signal
	}
	select {
	case <-arrived:
	case <-t.box.signal:
		return t.commands()
	case <-tick:
	case <-raised:
	case <-t.at.done:
		return errStopping
	}
	return nil
}

// housekeeping runs due timers and commands between messages. It is cheap when there are none.
func (t *task) housekeeping() error {
	select {
	case <-t.at.done:
		return errStopping
	case <-t.box.signal:
		if err := t.commands(); err != nil {
			return err
		}
	default:
	}
	if len(t.timers) > 0 && !t.quiet {
		return t.fireTimers()
	}
	return nil
}

// maxTimerWait bounds a sleep for a timer, so that a clock set by a test, or stepped, is noticed.
const maxTimerWait = 50 * time.Millisecond

// nextTimer is how long to sleep until the next processing-time timer is worth a look.
func (t *task) nextTimer() (time.Duration, bool) {
	if t.quiet {
		return 0, false
	}
	var first int64
	found := false
	for _, m := range t.timers {
		if at, ok := m.timer.NextTimer(); ok && (!found || at < first) {
			first, found = at, true
		}
	}
	if !found {
		return 0, false
	}
	d := time.Duration(first-t.at.nowMs()) * time.Millisecond
	return max(0, min(d, maxTimerWait)), true
}

func (t *task) fireTimers() error {
	now := t.at.nowMs()
	for _, m := range t.timers {
		if at, ok := m.timer.NextTimer(); ok && at <= now {
			before := m.enter()
			err := m.timer.OnTimer(now, &m.out)
			m.leave(before)
			if err != nil {
				return m.wrap(err)
			}
		}
	}
	return nil
}

func (t *task) commands() error {
	for _, c := range t.box.take() {
		switch c.kind {
		case cmdCommitted:
			for _, m := range t.sinks {
				if err := m.sink.writer.Committed(t.at.ctx, c.id); err != nil {
					return m.wrap(err)
				}
			}
		case cmdExit:
			t.exited = true
		case cmdGivenUp:
			if err := t.giveUp(c.id); err != nil {
				return err
			}
		case cmdWake:
			if w, ok := c.wake.op.(Waker); ok {
				if err := w.OnWake(&c.wake.out); err != nil {
					return c.wake.wrap(err)
				}
			}
		default:
			if t.source != nil {
				if err := t.source.command(c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// perform carries out what the gate says.
func (t *task) perform(events []gateEvent) error {
	for _, e := range events {
		var err error
		switch e.kind {
		case msgRows:
			err = t.head.process(e.port, &e.rows.Batch)
			e.rows.release()
		case msgWatermark:
			err = t.head.watermark(e.watermark)
		case msgStatus:
			err = t.head.status(e.idle)
		case msgBarrier:
			err = t.barrier(e.barrier)
		case msgGivenUp:
			t.decline(e.barrier.ID)
			err = t.head.barrier(e.barrier, nil)
		case msgPortEnd:
			err = t.head.portEnd(e.port)
		case msgEnd:
			err = t.head.end()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// barrier takes the chain's part of a checkpoint, unless it was given up meanwhile.
func (t *task) barrier(b checkpoint.Barrier) error {
	t.at.walk.aligned(b.ID, t)
	t.quiet = t.quiet || t.at.isLast(b.ID)
	if t.cut != nil { // its checkpoint was given up, or this barrier would not be here
		if err := t.giveUp(t.cut.id); err != nil {
			return err
		}
	}
	if t.at.abandoned(b.ID) {
		t.gate.forgetCapture()
		t.decline(b.ID)
		return t.head.barrier(b, nil)
	}
	c := &cut{id: b.ID}
	if err := t.head.barrier(b, c); err != nil {
		return err
	}
	if t.gate.capture != nil {
		t.cut = c
		return t.recorded()
	}
	return t.submit(c)
}

// decline answers a barrier that came after its checkpoint was given up.
func (t *task) decline(id checkpoint.ID) {
	for _, m := range t.all {
		t.at.send(checkpoint.Declined{ID: id, Subtask: m.id, NotReady: true, Reason: "given up before the barrier came",
			Now: t.at.job.o.Now()})
	}
}

// submit hands a cut to the task's finisher, which acknowledges its snapshots in checkpoint order.
func (t *task) submit(c *cut) error {
	t.at.walk.taken(c.id, t, c.pause)
	select {
	case t.acks <- c:
		return nil
	case <-t.at.done:
		return errStopping
	}
}

// finish completes cuts off the task's goroutine: only the synchronous part of a snapshot stops the rows.
func (t *task) finish(ctx context.Context) error {
	for {
		select {
		case c := <-t.acks:
			for _, p := range c.parts {
				t.answer(ctx, c.id, p)
			}
		case <-t.at.done:
			return errStopping
		}
	}
}

// answer completes one subtask's snapshot. A snapshot that cannot be written costs the checkpoint, not the task: its
// rows stay for the next one. What was pre-committed at the barrier is carried in either case.
func (t *task) answer(ctx context.Context, id checkpoint.ID, p cutPart) {
	now := t.at.job.o.Now
	declined := checkpoint.Declined{ID: id, Subtask: p.snapshot.Subtask, Committables: p.snapshot.Committables}
	if p.notReady {
		declined.NotReady, declined.Reason, declined.Now = true, checkpoint.ErrSealing.Error(), now()
		t.at.send(declined)
		return
	}
	if p.finish != nil {
		files, err := p.finish(ctx)
		if err != nil {
			declined.Err, declined.Now = err, now()
			t.at.send(declined)
			return
		}
		p.snapshot.Files = files
	}
	if p.givenUp {
		declined.NotReady, declined.Reason, declined.Now = true, "given up while rows in flight were recorded", now()
		t.at.send(declined)
		return
	}
	t.at.send(checkpoint.Acked{ID: id, Snapshot: p.snapshot, Now: now()})
}
