package exec

import (
	"context"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// stopwatch measures the parts of a restore. Only the attempt's own goroutine uses it, but for state.
type stopwatch struct {
	parts checkpoint.Restored
	lap   time.Time
	state maxInt64 // when the last operator so far had its state back, unix ns
}

func (s *stopwatch) begin(now time.Time) { s.parts.Begun, s.lap = now, now }

// end ends a part now: it began where the one before ended.
func (s *stopwatch) end(part *time.Duration, now time.Time) {
	if now.Before(s.lap) { // the clock was set back
		now = s.lap
	}
	*part, s.lap = now.Sub(s.lap), now
}

// built ends the part before the tasks start. Nothing is read yet.
func (at *attempt) built() {
	at.watch.parts.Again = at.rereads()
	at.watch.end(&at.watch.parts.Sources, at.job.o.Now())
}

// opened ends the last two parts: all operators and writers are open.
func (s *stopwatch) opened(now time.Time) {
	back := s.lap
	if ns := s.state.v.Load(); ns != 0 {
		back = time.Unix(0, ns)
	}
	if back.After(now) {
		back = now
	}
	s.end(&s.parts.State, back)
	s.end(&s.parts.Writers, now)
}

// hasState notes that m, or the rows in flight to it, are restored.
func (at *attempt) hasState(m *member) {
	if m.sink == nil {
		at.watch.state.raise(at.job.o.Now().UnixNano())
	}
}

func newAttempt(j *Job, ctx context.Context, cancel context.CancelFunc) *attempt {
	at := &attempt{job: j, ctx: ctx, cancel: cancel, done: ctx.Done(), sources: map[checkpoint.OperatorID]connectors.Source{},
		events: make(chan checkpoint.Event, 64), failed: make(chan error, 1), commits: make(chan checkpoint.Commit, 1),
		notices: make(notices, 1), ready: make(chan struct{}), givenUp: map[checkpoint.ID]bool{}, walk: newWalk(j.o.Now), hurry: newHurry()}
	at.watch.begin(j.o.Now())
	return at
}

// running tells that rows flow: how long a restore took, and what is read again.
func (at *attempt) running(cp *checkpoint.Checkpoint) {
	at.watch.opened(at.job.o.Now())
	if cp == nil {
		return
	}
	r := &at.watch.parts
	r.From = cp.ID
	at.job.o.Log.Info("the job is restored", "job", at.job.o.Name, "checkpoint", cp.ID, "took", r.Took(), "metadata", r.Metadata,
		"transactions", r.Transactions, "sources", r.Sources, "state", r.State, "writers", r.Writers, "rows read again", r.Again)
}
