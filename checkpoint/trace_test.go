package checkpoint

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
)

// life drives a coordinator with two subtasks and its traces through events, a second apart.
type life struct {
	c      *Coordinator
	t      *Traces
	now    time.Time
	failed error
}

func newLife(cfg CoordinatorConfig) *life {
	a, b := subtask("src/0"), subtask("out/0")
	cfg.Subtasks, cfg.Sources = []SubtaskID{a, b}, []SubtaskID{a}
	l := &life{now: epoch, t: NewTraces(nil, 3), c: NewCoordinator(cfg, nil, true, epoch)}
	l.t.Begin(2, 0, epoch)
	return l
}

// at applies e at a second of the test and performs nothing.
func (l *life) at(second int, e func(now time.Time) Event) {
	l.now = epoch.Add(time.Duration(second) * time.Second)
	ev := e(l.now)
	l.t.Event(ev)
	for _, a := range l.c.Step(ev) {
		l.t.Action(a, l.now)
		if f, ok := a.(Fail); ok {
			l.failed = f.Err
		}
	}
}

func due(now time.Time) Event  { return Due{Now: now} }
func tick(now time.Time) Event { return Tick{Now: now} }
func ack(id ID, s string) func(time.Time) Event {
	return func(now time.Time) Event {
		return Acked{ID: id, Snapshot: Snapshot{Subtask: subtask(s), State: []byte("1234")}, Now: now}
	}
}
func decline(id ID, s string, notReady bool, reason string) func(time.Time) Event {
	return func(now time.Time) Event {
		d := Declined{ID: id, Subtask: subtask(s), NotReady: notReady, Now: now}
		if notReady {
			d.Reason = reason
		} else {
			d.Err = errors.New(reason)
		}
		return d
	}
}
func published(id ID) func(time.Time) Event {
	return func(now time.Time) Event { return Published{ID: id, Now: now} }
}

// TestFiveCauses: a checkpoint that does not complete says why: which of the five causes, at which subtask, after how long;
// and only what failed or expired counts against the tolerated failures.
func TestFiveCauses(t *testing.T) {
	type step struct {
		second int
		event  func(time.Time) Event
	}
	for _, tc := range []struct {
		state  TraceState
		cfg    CoordinatorConfig
		steps  []step
		cause  string
		by     string
		took   time.Duration
		failed int // in a row
		left   int
		fatal  string // the job's failure
	}{
		{TraceDeclined, CoordinatorConfig{TolerableFailed: 2}, []step{{0, due}, {1, decline(1, "out/0", true, "the last snapshot is still being written")}},
			"the last snapshot is still being written", "[out/0]", time.Second, 0, 2, ""},
		{TraceExpired, CoordinatorConfig{Timeout: time.Minute, TolerableFailed: 2}, []step{{0, due}, {5, ack(1, "src/0")}, {60, tick}},
			"no answer within 1m0s", "[out/0]", time.Minute, 1, 1, ""},
		{TraceFailed, CoordinatorConfig{TolerableFailed: 2}, []step{{0, due}, {2, decline(1, "out/0", false, "no space left on device")}},
			"no space left on device", "[out/0]", 2 * time.Second, 1, 1, ""},
		{TraceFailed, CoordinatorConfig{TolerableFailed: -1}, []step{{0, due}, {1, ack(1, "src/0")}, {1, ack(1, "out/0")},
			{4, func(now time.Time) Event { return PublishFailed{ID: 1, Err: errors.New("disk full"), Now: now} }}},
			"disk full", "[]", 4 * time.Second, 1, -1, ""},
		{TraceSubsumed, CoordinatorConfig{MaxConcurrent: 2, TolerableFailed: 2}, []step{{0, due}, {1, due}, {2, ack(2, "src/0")}, {2, ack(2, "out/0")},
			{3, ack(1, "src/0")}, {3, decline(1, "out/0", false, "late")}},
			"", "", 0, 0, 0, ""},
		{TraceAborted, CoordinatorConfig{TolerableFailed: 2}, []step{{0, due}, {3, func(now time.Time) Event { return StopRequested{Mode: StopNow, Now: now} }}},
			"the job is stopping", "[]", 3 * time.Second, 0, 2, ""},
		{TraceFailed, CoordinatorConfig{}, []step{{0, due}, {2, decline(1, "out/0", false, "no space left on device")}},
			"no space left on device", "[out/0]", 2 * time.Second, 1, 0, "checkpoint 1 failed at out/0: no space left on device"},
	} {
		t.Run(fmt.Sprint(tc.state, tc.cause), func(t *testing.T) {
			if tc.state == TraceSubsumed {
				subsumed(t)
				return
			}
			l := newLife(tc.cfg)
			for _, s := range tc.steps {
				l.at(s.second, s.event)
			}
			x := l.t.Find(1)
			if x == nil || x.State != tc.state || x.Cause != tc.cause || fmt.Sprint(x.By) != tc.by || x.Duration(l.now) != tc.took {
				t.Errorf("%+v", x)
			}
			inARow, left := l.c.Failures()
			if inARow != tc.failed || left != tc.left {
				t.Errorf("%d failed in a row, %d left; want %d, %d", inARow, left, tc.failed, tc.left)
			}
			if got := fmt.Sprint(l.failed); tc.fatal == "" && l.failed != nil || tc.fatal != "" && got != tc.fatal {
				t.Errorf("the job's failure is %q, want %q", got, tc.fatal)
			}
		})
	}
}

// subsumed is the fifth cause: a later checkpoint is complete first. It harms nothing, and its output is committed with the
// later one's.
func subsumed(t *testing.T) {
	l := newLife(CoordinatorConfig{MaxConcurrent: 2})
	l.at(0, due)
	l.at(1, due)
	// Subtask out/0 declines 1 with what it had pre-committed: that answer is needed, but 1 cannot complete any more. Here both
	// are answered in the wrong order: 2 is complete when the last answer to 1 comes in.
	l.at(2, ack(2, "src/0"))
	l.at(2, ack(2, "out/0"))
	l.at(3, ack(1, "src/0"))
	l.at(4, ack(1, "out/0"))
	one, two := l.t.Find(1), l.t.Find(2)
	if one.State != TraceSubsumed || two.State != TraceInProgress {
		t.Fatalf("%+v %+v", one, two)
	}
	l.at(5, published(2))
	if n, _ := l.c.Failures(); n != 0 || l.failed != nil || two.State != TraceCompleted {
		t.Errorf("%d failures, %v, %+v", n, l.failed, two)
	}
}

// TestTolerableFailures counts down what is left, and starts over when a checkpoint completes.
func TestTolerableFailures(t *testing.T) {
	l := newLife(CoordinatorConfig{TolerableFailed: 2, Timeout: 10 * time.Second, MinPause: time.Second})
	lefts := []int{}
	note := func() { _, left := l.c.Failures(); lefts = append(lefts, left) }
	second := 1
	expire := func(id ID) {
		l.at(second, due)
		second += 11
		l.at(second, tick)
		for _, s := range []string{"src/0", "out/0"} { // the late answers change nothing
			l.at(second, ack(id, s))
		}
		second += 2
		note()
	}
	expire(1)
	expire(2)
	l.at(second, due)
	l.at(second, ack(3, "src/0"))
	l.at(second, ack(3, "out/0"))
	l.at(second, published(3))
	note()
	l.at(second, func(now time.Time) Event { return CommitDone{ID: 3, Now: now} })
	l.at(second, func(now time.Time) Event { return Confirmed{ID: 3, Now: now} })
	second += 2
	expire(4)
	expire(5)
	if l.failed != nil {
		t.Fatal(l.failed)
	}
	expire(6)
	if want := []int{1, 0, 2, 1, 0, 0}; !slices.Equal(lefts, want) {
		t.Errorf("left %v, want %v", lefts, want)
	}
	if l.failed == nil || !strings.Contains(l.failed.Error(), "checkpoint 6 expired") {
		t.Errorf("the job's failure is %v", l.failed)
	}
	var states []string
	for _, x := range slices.Backward(l.t.List()) {
		states = append(states, string(x.State))
	}
	if got := strings.Join(states, " "); got != "EXPIRED EXPIRED COMMITTED EXPIRED EXPIRED EXPIRED" {
		t.Error(got)
	}
}

// TestCommitFollowsCompletion: with two checkpoints under way the commits follow the completions, in order, and each
// completion follows its pre-commit.
func TestCommitFollowsCompletion(t *testing.T) {
	l := newLife(CoordinatorConfig{MaxConcurrent: 2})
	l.at(0, due)
	l.at(1, due)
	for i, s := range []string{"src/0", "out/0"} {
		l.at(2+i, ack(1, s))
	}
	l.at(4, published(1))
	for i, s := range []string{"src/0", "out/0"} {
		l.at(5+i, ack(2, s))
	}
	l.at(7, published(2))
	l.at(8, func(now time.Time) Event { return CommitFailed{ID: 1, Err: errors.New("broker is away"), Now: now} })
	l.at(9, func(now time.Time) Event { return CommitDone{ID: 1, Now: now} })
	l.at(9, func(now time.Time) Event { return Confirmed{ID: 1, Now: now} })
	l.at(10, func(now time.Time) Event { return CommitDone{ID: 2, Now: now} })
	var last time.Time
	for _, x := range slices.Backward(l.t.List()) {
		if x.State != TraceCommitted || !x.PreCommitted.After(x.Triggered) || !x.Completed.After(x.PreCommitted) || x.CommitBegun.Before(x.Completed) ||
			!x.Committed.After(x.Completed) || !x.Committed.After(last) {
			t.Errorf("%+v", x)
		}
		last = x.Committed
	}
	if one := l.t.Find(1); one.Commits != 2 || one.Duration(l.now) != 4*time.Second || one.Subtasks[0].Total != 3*time.Second || one.Subtasks[0].Subtask != subtask("out/0") {
		t.Errorf("%+v", one)
	}
	if s := l.t.Summary(); s.P50 != 4*time.Second || s.P99 != 6*time.Second || s.CommitP99 != 5*time.Second || s.Samples != 2 {
		t.Errorf("%+v", s)
	}
}

// TestTraceFile: what a process noted is there for the next one and for readers, whatever state the process left the file
// in; a directory that cannot be written costs the trace only.
func TestTraceFile(t *testing.T) {
	mem := vfs.NewMem()
	owner, err := Own(mem, "/job")
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	ts, file := OpenTraces(owner, log)
	l := newLife(CoordinatorConfig{MaxConcurrent: 2})
	l.t = ts
	ts.Begin(2, 0, epoch)
	l.at(0, due)
	l.at(0, due)
	file.Write(ts)
	for _, s := range []string{"src/0", "out/0"} {
		l.at(1, ack(1, s))
	}
	l.at(2, published(1))
	file.Write(ts)
	read := func() string {
		list, err := ReadTraces(mem, "/job")
		if err != nil {
			t.Fatal(err)
		}
		var sb strings.Builder
		for _, x := range list {
			fmt.Fprintf(&sb, "%d %s %s;", x.ID, x.State, x.Cause)
		}
		return sb.String()
	}
	if got := read(); got != "2 IN_PROGRESS ;1 COMPLETED ;" {
		t.Errorf("while it runs: %s", got)
	}
	// The process dies in the middle of a line.
	if _, err := file.f.Write([]byte(`{"id":2,"state":"COMM`)); err != nil {
		t.Fatal(err)
	}
	if got := read(); got != "2 IN_PROGRESS ;1 COMPLETED ;" {
		t.Errorf("with a torn line: %s", got)
	}
	ts, file = OpenTraces(owner, log)
	ts.Begin(2, 1, epoch.Add(time.Minute))
	file.Write(ts)
	if got := read(); got != "2 ABORTED the process that took it ended;1 COMMITTED ;" {
		t.Errorf("after the restart: %s", got)
	}
	for range 3 * traceLimit / 300 {
		ts.touch(ts.Find(1))
		file.Write(ts)
	}
	if st, err := mem.Stat("/job/trace"); err != nil || st.Size() > traceLimit+1000 {
		t.Errorf("%v, %v bytes", err, st.Size())
	}
	file.Close()

	full := errorfs.Wrap(mem, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "trace") {
			return errors.New("no space left on device")
		}
		return nil
	}))
	owner.fs = full
	ts, file = OpenTraces(owner, log)
	ts.touch(ts.Find(1))
	file.Write(ts)
	if got := read(); got != "2 ABORTED the process that took it ended;1 COMMITTED ;" {
		t.Errorf("on a full disk: %s", got)
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestDiscardedTrace: a job that went back before a completed checkpoint says so.
func TestDiscardedTrace(t *testing.T) {
	ts := NewTraces([]*Trace{{ID: 1, State: TraceCompleted}, {ID: 2, State: TraceCompleted}, {ID: 3, State: TraceCompleted}}, 1)
	ts.Begin(1, 2, epoch)
	var got []string
	for _, x := range ts.List() {
		got = append(got, fmt.Sprintf("%d %s %d", x.ID, x.State, x.CommittedWith))
	}
	if s := strings.Join(got, ", "); s != "3 DISCARDED 0, 2 COMMITTED 0, 1 COMMITTED 2" {
		t.Error(s)
	}
}

func FuzzTraces(f *testing.F) {
	f.Add([]byte("{\"id\":1,\"state\":\"COMPLETED\"}\n{\"id\":1"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, x := range decodeTraces(data) {
			_ = x.Why(epoch)
			_ = x.Duration(epoch)
		}
	})
}
