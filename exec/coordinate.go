package exec

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// loop carries out what the coordinator decides until the attempt ends. Everything that touches the store happens on
// this goroutine; commits run on their own, off the barrier's path.
type loop struct {
	at    *attempt
	job   *Job
	coord *checkpoint.Coordinator

	started   map[checkpoint.ID]time.Time
	published map[checkpoint.ID][]checkpoint.Snapshot // of sources, until the commit is confirmed
	files     map[checkpoint.StateFile]bool           // of the newest checkpoint
	ended     *checkpoint.Stop
	stopSent  bool
	aligned   checkpoint.ID // under way, to be in a hurry later; 0 = none
	hurryAt   time.Time     // when
}

// reserver is a store that makes ids durable before their barrier is sent.
type reserver interface {
	Reserve(ctx context.Context, id checkpoint.ID) error
}

// collector is a store with garbage.
type collector interface {
	Collect(ctx context.Context) error
}

// run is the coordination of one attempt. It returns how the job stopped, or why the attempt failed.
func (l *loop) run(ctx context.Context) (checkpoint.StopMode, error) {
	if err := l.step(ctx, checkpoint.Tick{Now: l.job.o.Now()}); err != nil {
		return 0, err
	}
	if err := l.requests(ctx); err != nil {
		return 0, err
	}
	timer := time.NewTimer(maxTickWait)
	defer timer.Stop()
	for l.ended == nil {
		l.hurry(l.job.o.Now())
		var tick <-chan time.Time
		if wake, ok := l.nextWake(); ok {
			timer.Reset(max(0, min(wake.Sub(l.job.o.Now()), maxTickWait)))
			tick = timer.C
		}
		var err error
		select {
		case e := <-l.at.events:
			err = l.step(ctx, e)
		case <-tick:
			err = l.step(ctx, checkpoint.Tick{Now: l.job.o.Now()})
		case <-l.job.wake:
			err = l.requests(ctx)
		case err = <-l.at.failed:
		case <-ctx.Done():
			err = ctx.Err()
		}
		if err != nil {
			return 0, err
		}
	}
	return l.ended.Mode, nil
}

// maxTickWait bounds a sleep, so that a clock that a test sets is noticed.
const maxTickWait = time.Second

// requests tells the coordinator what Stop and Checkpoint asked for.
func (l *loop) requests(ctx context.Context) error {
	l.job.mu.Lock()
	stop := l.job.stop
	due, savepoint := false, false
	for _, w := range l.job.waiting {
		if w.id == 0 {
			due, savepoint = true, savepoint || w.savepoint
		}
	}
	l.job.mu.Unlock()
	if due && stop == nil {
		if err := l.step(ctx, checkpoint.Due{Now: l.job.o.Now(), Savepoint: savepoint}); err != nil {
			return err
		}
	}
	if stop != nil && !l.stopSent {
		l.stopSent = true
		return l.step(ctx, checkpoint.StopRequested{Now: l.job.o.Now(), Mode: *stop})
	}
	return nil
}

// step applies an event and performs the actions, feeding their results back.
func (l *loop) step(ctx context.Context, e checkpoint.Event) error {
	for queue := []checkpoint.Event{e}; len(queue) > 0; queue = queue[1:] {
		l.job.history.event(queue[0])
		for _, a := range l.coord.Step(queue[0]) {
			inARow, left := l.coord.Failures()
			l.job.history.action(a, inARow, left, l.job.o.Now())
			result, err := l.perform(ctx, a)
			if err != nil {
				return err
			}
			if result != nil {
				queue = append(queue, result)
			}
		}
	}
	return nil
}

// perform carries out one action. A result that is known at once is returned as an event.
func (l *loop) perform(ctx context.Context, a checkpoint.Action) (checkpoint.Event, error) {
	store, now := l.job.o.Store, l.job.o.Now
	switch a := a.(type) {
	case checkpoint.Inject:
		return nil, l.inject(ctx, a)
	case checkpoint.Publish:
		if err := l.publish(ctx, a.Checkpoint); err != nil {
			return checkpoint.PublishFailed{ID: a.Checkpoint.ID, Err: err, Now: now()}, nil
		}
		return checkpoint.Published{ID: a.Checkpoint.ID, Now: now()}, nil
	case checkpoint.Commit:
		l.at.commits <- a // never blocks: at most one is outstanding
	case checkpoint.Confirm:
		if err := store.Confirm(ctx, a.ID); err != nil {
			return checkpoint.ConfirmFailed{ID: a.ID, Err: err, Now: now()}, nil
		}
		if err := checkpoint.Failpoint("confirm.after"); err != nil {
			return nil, err
		}
		return checkpoint.Confirmed{ID: a.ID, Now: now()}, nil
	case checkpoint.NotifyCommitted:
		l.committed(a.ID)
	case checkpoint.Abort:
		l.aborted(a)
	case checkpoint.Fail:
		return nil, a.Err
	case checkpoint.Stop:
		l.ended = &a
	}
	return nil, nil
}

func (l *loop) inject(ctx context.Context, a checkpoint.Inject) error {
	id := a.Barrier.ID
	if r, ok := l.job.o.Store.(reserver); ok {
		if err := r.Reserve(ctx, id); err != nil {
			return err
		}
	}
	l.started[id] = l.job.o.Now()
	last := l.stopSent || a.Barrier.Final
	if last {
		l.at.last.raise(int64(id))
	}
	l.job.mu.Lock()
	for _, w := range l.job.waiting {
		if w.id == 0 && (a.Savepoint || !w.savepoint) {
			w.id = id
		}
	}
	l.job.mu.Unlock()
	l.aligned = 0
	if o := &l.job.o.Checkpoints; o.Unaligned && !a.Savepoint && !last {
		l.aligned, l.hurryAt = id, l.started[id].Add(o.AlignedTimeout)
		l.hurry(l.started[id])
	}
	for _, t := range l.at.tasks {
		if t.source != nil {
			t.box.put(command{kind: cmdInject, barrier: a.Barrier, last: last, drain: a.Barrier.Final})
		}
	}
	return nil
}

// hurry lets the barriers of the checkpoint under way overtake, when they have been aligned for long enough. Those of
// savepoints and of the job's last checkpoint never do: a savepoint stands alone, and no rows may follow the last barrier.
func (l *loop) hurry(now time.Time) {
	if l.aligned != 0 && !now.Before(l.hurryAt) {
		l.at.hurry.raise(l.aligned)
		l.aligned = 0
	}
}

// nextWake is when the coordinator needs a tick, or a checkpoint has to hurry.
func (l *loop) nextWake() (time.Time, bool) {
	at, ok := l.coord.NextWake()
	if l.aligned != 0 && (!ok || l.hurryAt.Before(at)) {
		return l.hurryAt, true
	}
	return at, ok
}

func (l *loop) publish(ctx context.Context, c *checkpoint.Checkpoint) error {
	if err := checkpoint.Failpoint("publish.before"); err != nil {
		return err
	}
	c.Operators, c.Job, c.Ancestors = l.job.g.Operators, checkpoint.JobInfo{ID: l.job.o.ID, Name: l.job.o.Name}, l.at.ancestors
	c.Degraded = l.at.degraded
	if err := l.job.o.Store.Publish(ctx, c); err != nil {
		return err
	}
	if err := checkpoint.Failpoint("publish.after"); err != nil {
		return err
	}
	var sources []checkpoint.Snapshot
	for _, s := range c.Subtasks {
		if len(s.Positions) > 0 {
			sources = append(sources, s)
		}
	}
	l.published[c.ID] = sources
	if l.aligned == c.ID {
		l.aligned = 0
	}
	bytes, added := l.measure(c)
	now, pause := l.job.o.Now(), l.at.walk.pause(c.ID)
	over := l.at.walk.overtaken(c.ID)
	l.job.mu.Lock()
	l.job.last.Last, l.job.last.At, l.job.last.Bytes = c.ID, now, bytes
	l.job.last.Written += added
	l.job.last.Duration, l.job.last.Pause = now.Sub(l.started[c.ID]), pause
	l.job.last.Alignment, l.job.last.Unaligned, l.job.last.InFlight = over.Alignment, over.Unaligned, over.InFlight
	if over.Unaligned {
		l.job.last.Overtaken++
	}
	l.job.last.Completed++
	l.job.last.Pending = len(c.Pending)
	l.job.mu.Unlock()
	for _, m := range l.job.sinks {
		m.published(c.Pending)
	}
	l.job.history.measured(c.ID, bytes, added, over)
	l.at.forget(c.ID)
	return nil
}

// measure is the size of a checkpoint, and of what the one before it of this attempt did not have.
func (l *loop) measure(c *checkpoint.Checkpoint) (bytes, added int64) {
	files := map[checkpoint.StateFile]bool{}
	for _, s := range c.Subtasks {
		bytes, added = bytes+int64(len(s.State)), added+int64(len(s.State))
		for _, f := range s.Files {
			bytes += f.Size
			_, f.Path, _ = strings.Cut(f.Path, "/") // without the checkpoint's directory
			if files[f] = true; !l.files[f] {
				added += f.Size
			}
		}
	}
	l.files = files
	return bytes, added
}

// committed tells tasks, sources and waiting callers that checkpoint id is durable and committed.
func (l *loop) committed(id checkpoint.ID) {
	for _, t := range l.at.tasks {
		if len(t.sinks) > 0 {
			t.box.put(command{kind: cmdCommitted, id: id})
		}
	}
	l.job.keep(id)
	l.at.notices.put(notice{id: id, sources: l.published[id]})
	for k := range l.published {
		if k <= id {
			delete(l.published, k)
		}
	}
	for k := range l.started {
		if k <= id {
			delete(l.started, k)
		}
	}
	l.job.mu.Lock()
	l.job.last.Committed, l.job.last.Pending = id, 0
	l.job.mu.Unlock()
	for _, m := range l.job.sinks {
		m.confirmed(id)
	}
	l.job.history.checkBudget(l.at)
	l.job.resolve(func(w *waiter) bool { return w.id != 0 && w.id <= id }, nil)
}

func (l *loop) aborted(a checkpoint.Abort) {
	l.at.abandon(a.ID)
	if l.job.o.Checkpoints.Unaligned {
		for _, t := range l.at.tasks {
			if t.gate != nil {
				t.box.put(command{kind: cmdGivenUp, id: a.ID})
			}
		}
	}
	trace := l.job.history.find(a.ID)
	why := trace.Why(l.job.o.Now())
	l.job.mu.Lock()
	if a.Cause != checkpoint.AbortSubsumed {
		l.job.last.GivenUp++
		l.job.last.Cause = fmt.Sprintf("checkpoint %d %s: %s", a.ID, a.Cause, why)
	}
	l.job.mu.Unlock()
	if a.Cause == checkpoint.AbortSubsumed {
		// A newer one covers it, and whoever waits for it.
		l.job.o.Log.Debug("checkpoint given up", "checkpoint", a.ID, "cause", a.Cause.String())
		return
	}
	inARow, left := l.coord.Failures()
	level := slog.LevelInfo // declined and aborted are part of a healthy life
	if a.Cause == checkpoint.AbortExpired || a.Cause == checkpoint.AbortFailed {
		level = slog.LevelWarn
	}
	l.job.o.Log.Log(context.Background(), level, "checkpoint given up", "checkpoint", a.ID, "cause", a.Cause.String(), "reason", why,
		"subtasks", a.Subtasks, "failed in a row", inARow, "tolerated more", left)
	l.job.resolve(func(w *waiter) bool { return w.id == a.ID }, fmt.Errorf("checkpoint %d %s: %s", a.ID, a.Cause, why))
}

// resolve answers the callers of Checkpoint that match.
func (j *Job) resolve(match func(*waiter) bool, err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	keep := j.waiting[:0]
	for _, w := range j.waiting {
		if match(w) {
			w.done <- err
		} else {
			keep = append(keep, w)
		}
	}
	j.waiting = keep
}

// commitLoop carries out commits, one at a time.
func (at *attempt) commitLoop(ctx context.Context) error {
	for {
		var c checkpoint.Commit
		select {
		case c = <-at.commits:
		case <-at.done:
			return errStopping
		}
		select {
		case <-time.After(c.After):
		case <-at.done:
			return errStopping
		}
		now := at.job.o.Now
		if err := committersOf(at.sinks).Commit(ctx, c.Pending); err != nil {
			if ctx.Err() != nil {
				return errStopping
			}
			at.job.o.Log.Warn("commit failed", "checkpoint", c.ID, "attempt", c.Attempt, "err", err)
			at.send(checkpoint.CommitFailed{ID: c.ID, Err: err, Now: now()})
			continue
		}
		at.send(checkpoint.CommitDone{ID: c.ID, Now: now()})
	}
}

// notice is a committed checkpoint for the sources.
type notice struct {
	id      checkpoint.ID
	sources []checkpoint.Snapshot
}

// noticeLoop tells sources about committed positions and lets the store collect its garbage. Neither may hold up a
// checkpoint; a notice that is overtaken by a newer one is dropped.
func (at *attempt) noticeLoop(ctx context.Context) error {
	for {
		var n notice
		select {
		case n = <-at.notices:
		case <-at.done:
			return errStopping
		}
		at.deliver(ctx, n)
		if c, ok := at.job.o.Store.(collector); ok {
			if err := c.Collect(ctx); err != nil && ctx.Err() == nil {
				at.job.o.Log.Warn("old checkpoints were not removed", "err", err)
			}
		}
	}
}

func (at *attempt) deliver(ctx context.Context, n notice) {
	bySource := map[checkpoint.OperatorID][]checkpoint.Position{}
	for _, s := range n.sources {
		bySource[s.Subtask.Operator] = append(bySource[s.Subtask.Operator], s.Positions...)
	}
	for op, src := range at.sources {
		if ps := bySource[op]; len(ps) > 0 {
			src.Committed(ctx, ps)
		}
	}
}

// notices is a queue of one notice: the newest wins.
type notices chan notice

func (q notices) put(n notice) {
	for {
		select {
		case q <- n:
			return
		default:
		}
		select {
		case <-q:
		default:
		}
	}
}
