package exec_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// everySecond passes rows on and rings every second of processing time from Open on, as a window or a deadline does.
type everySecond struct {
	pass
	next  int64
	rings *atomic.Int64
	now   func() int64
}

func (e *everySecond) Open(s exec.Subtask) error {
	e.now, e.next = s.Now, s.Now()+1000
	return nil
}
func (e *everySecond) Process(_ int, b *batch.Batch, out exec.Emitter) error { return out.Emit(b) }
func (e *everySecond) NextTimer() (int64, bool)                              { return e.next, true }
func (e *everySecond) OnTimer(now int64, _ exec.Emitter) error {
	e.rings.Add(1)
	e.next = now + 1000
	return nil
}

// TestClockJumps: a clock that jumps forward by hours, and one that is set back and was promised not to be, lose no row and
// end no job: timers ring, once each, when the clock has come there; and checkpoints by the clock go on at once after a
// step back.
func TestClockJumps(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(3)
	var clock testClock
	var rings atomic.Int64
	g := newGraph(bus)
	mid := g.op("timers", 2, func() exec.Operator { return &everySecond{rings: &rings} }, hash(g.source("in", 2, rowtime(false, 200, 1000))))
	g.sink("out", 2, forward(g.op("count", 2, func() exec.Operator { return &counter{} }, hash(mid))))
	j := start(t, g.g, exec.JobOptions{Now: clock.now, Restart: quickRestart(), Checkpoints: exec.CheckpointConfig{Interval: time.Second, Timeout: time.Hour}})
	ctx := patient(t)
	rows := 0
	wait := func(what string, done func(s exec.Status) bool) {
		t.Helper()
		for s := j.Status(); !done(s); s = j.Status() {
			select {
			case <-ctx.Done():
				t.Fatalf("not within the test's patience: %s: %+v", what, s)
			case <-time.After(time.Millisecond):
			}
		}
	}
	for _, jump := range []time.Duration{time.Second, 3 * time.Hour, -2 * time.Hour, time.Second, 40 * 24 * time.Hour, -80 * 24 * time.Hour} {
		for range 60 {
			f.Append(rows%3, row(int64(rows%7), int64(rows), int64(rows)))
			rows++
		}
		wait("rows are read", func(s exec.Status) bool { return s.Splits != nil && records(s) == int64(rows) })
		before, rang := j.Status(), rings.Load()
		clock.advance(jump)
		switch {
		case jump < 0:
			// Nothing is due now. Two seconds on, a checkpoint is: the step back does not count.
			if _, err := j.Checkpoint(ctx); err != nil {
				t.Fatal(err)
			}
			done := j.Status().Checkpoint.Completed
			clock.advance(2 * time.Second)
			wait("a checkpoint by the clock", func(s exec.Status) bool { return s.Checkpoint.Completed > done })
		case jump >= time.Second:
			wait("a checkpoint by the clock", func(s exec.Status) bool { return s.Checkpoint.Completed > before.Checkpoint.Completed })
		}
		// Timers of both subtasks ring when the clock is past them; after a step back they wait until it is.
		if jump >= time.Hour {
			wait("the timers ring", func(exec.Status) bool { return rings.Load() >= rang+2 })
		}
		if n := rings.Load() - rang; n > 4 {
			t.Errorf("jump by %s: %d timers rang, want one of each subtask", jump, n)
		}
	}
	f.Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if s := j.Status(); s.Restarts != 0 || s.LateDropped != 0 || s.Checkpoint.Counts.Expired+s.Checkpoint.Counts.Failed != 0 {
		t.Errorf("%+v", s)
	}
	if n := len(bus.Queue("out").Rows()); n != rows {
		t.Errorf("%d rows, want %d", n, rows)
	}
}

func records(s exec.Status) (n int64) {
	for _, sp := range s.Splits {
		n += sp.Records
	}
	return n
}
