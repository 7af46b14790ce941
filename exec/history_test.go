package exec_test

import (
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// held stops in its first batch until it is released.
type held struct {
	pass
	once    *sync.Once
	entered chan struct{}
	release chan struct{}
}

func (h *held) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	h.once.Do(func() {
		close(h.entered)
		<-h.release
	})
	return out.Emit(b)
}

// TestWhereTheBarrierWaits: of a checkpoint in progress one sees which subtasks have not answered, what each is doing about
// the barrier and since when; those that the barrier has not come near are not blamed. When it is complete, one sees who
// was slow, and how long the inputs were aligned.
func TestWhereTheBarrierWaits(t *testing.T) {
	bus := memory.NewBus()
	fill(bus.Feed("a"), 1, 10)
	g := newGraph(bus)
	h := &held{once: &sync.Once{}, entered: make(chan struct{}), release: make(chan struct{})}
	a, b := g.source("a", 1, nil), g.source("b", 1, nil)
	slow := g.op("slow", 1, func() exec.Operator { return h }, hash(a))
	both := g.op("both", 1, newPass, hash(slow), hash(b))
	next := g.op("next", 1, newPass, hash(both))
	g.sink("out", 1, forward(next))
	j := start(t, g.g, exec.JobOptions{})
	<-h.entered
	answer := make(chan error, 1)
	ctx := patient(t)
	go func() { _, err := j.Checkpoint(ctx); answer <- err }()
	want := "slow (subtask 0) has rows to process before the barrier; both (subtask 0) has the barrier on 1 of 2 inputs"
	var got string
	for deadline := time.Now().Add(patience); got != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("the barrier waits at %q, want %q", got, want)
		}
		if cs := j.Checkpoints(); len(cs) > 0 {
			var parts []string
			for _, w := range cs[0].Waiting {
				parts = append(parts, w.String())
				if w.Since.Before(cs[0].Triggered) {
					t.Fatalf("%+v waits since before the trigger %v", w, cs[0].Triggered)
				}
			}
			got = strings.Join(parts, "; ")
		}
	}
	if x := j.Checkpoints()[0]; x.State != checkpoint.TraceInProgress || x.Answered != 2 || x.Of != 6 || !strings.HasPrefix(x.Why(time.Now()), "slow (subtask 0) has rows") {
		t.Errorf("%+v", x)
	}
	close(h.release)
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	x := j.Checkpoints()[0]
	if x.State != checkpoint.TraceCommitted || len(x.Waiting) > 0 || !x.Committed.After(x.Triggered) || x.Committed.Before(x.Completed) || x.Bytes == 0 || x.Kind != checkpoint.KindCheckpoint {
		t.Errorf("%+v", x)
	}
	i := slices.IndexFunc(x.Subtasks, func(s checkpoint.SubtaskTrace) bool { return s.Name == "both" })
	if i < 0 || x.Subtasks[i].Align <= 0 || x.Subtasks[i].Total < x.Subtasks[i].Align {
		t.Errorf("%+v", x.Subtasks)
	}
	if s := x.Slowest(); s.Name == "a" || s.Name == "b" || s.Total != slices.MaxFunc(x.Subtasks, func(a, b checkpoint.SubtaskTrace) int { return int(a.Total - b.Total) }).Total {
		t.Errorf("the slowest is %+v", s)
	}
	if c := j.Status().Checkpoint; c.Counts != (exec.CheckpointCounts{Completed: 1}) || c.Counts.Rate() != 1 || c.P50 <= 0 || c.P99 < c.P50 {
		t.Errorf("%+v", c)
	}
	bus.Feed("a").Close()
	bus.Feed("b").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if x := j.Checkpoints()[0]; x.Kind != checkpoint.KindFinal || x.State != checkpoint.TraceCommitted {
		t.Errorf("the last checkpoint is %+v", x)
	}
}

// TestConcurrentCheckpoints: with two at a time the second is taken, and pre-committed by every writer, while the commit of
// the first is held up; the commits follow in order, and a third waits until the first is confirmed.
func TestConcurrentCheckpoints(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 2, 50)
	g := newGraph(bus)
	g.sink("out", 2, hash(g.source("in", 2, nil)))
	var mu sync.Mutex
	var order []string
	release := make(chan struct{})
	commits := 0
	bus.Queue("out").OnOp(func(op memory.Op) {
		mu.Lock()
		if op == memory.OpPreCommit || op == memory.OpCommit {
			order = append(order, string(op))
		}
		first := false
		if op == memory.OpCommit {
			commits++
			first = commits == 1
		}
		mu.Unlock()
		if first {
			<-release
		}
	})
	j := start(t, g.g, exec.JobOptions{Checkpoints: exec.CheckpointConfig{MaxConcurrent: 2}})
	waitRows(t, j, 100)
	answers := make(chan error, 3)
	ctx := patient(t)
	for i := range 2 {
		go func() { _, err := j.Checkpoint(ctx); answers <- err }()
		awaitState(t, j, checkpoint.ID(i+1), checkpoint.TraceCompleted)
	}
	if cs := j.Checkpoints(); len(cs) != 2 || cs[1].CommitBegun.IsZero() || !cs[0].CommitBegun.IsZero() {
		t.Fatalf("%+v", cs)
	}
	go func() { _, err := j.Checkpoint(ctx); answers <- err }()
	close(release)
	for range 3 {
		if err := <-answers; err != nil {
			t.Fatal(err)
		}
	}
	bus.Feed("in").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
	mu.Lock()
	defer mu.Unlock()
	if first := slices.Index(order, string(memory.OpCommit)); first < 2 || slices.Index(order[first+1:], string(memory.OpPreCommit)) < 0 {
		t.Errorf("the operations of the sink are %v", order)
	}
	var last time.Time
	for _, x := range slices.Backward(j.Checkpoints()) {
		if x.State != checkpoint.TraceCommitted || x.Committed.Before(last) || x.CommittedWith != 0 {
			t.Errorf("%+v", x)
		}
		last = x.Committed
	}
}

// awaitState waits until a checkpoint has come to a state.
func awaitState(t *testing.T, j *running, id checkpoint.ID, want checkpoint.TraceState) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(time.Millisecond) {
		for _, x := range j.Checkpoints() {
			if x.ID == id && x.State == want {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("checkpoint %d does not become %s: %+v", id, want, j.Checkpoints())
		}
	}
}

// TestFailedJobAbortsItsCheckpoint: what was in progress when the job failed is aborted, not failed.
func TestFailedJobAbortsItsCheckpoint(t *testing.T) {
	bus := memory.NewBus()
	fill(bus.Feed("in"), 1, 10)
	bus.Queue("out").Fail(memory.OpPreCommit, fmt.Errorf("broken pipe"))
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	j := start(t, g.g, exec.JobOptions{Restart: quickRestart()})
	waitRows(t, j, 10)
	if _, err := j.Checkpoint(patient(t)); err != nil { // the one after the restart
		t.Fatal(err)
	}
	cs := j.Checkpoints()
	if len(cs) != 2 || cs[1].State != checkpoint.TraceAborted || cs[1].Cause != "the job failed" || cs[0].State != checkpoint.TraceCommitted {
		t.Errorf("%+v", cs)
	}
	if c := j.Status().Checkpoint.Counts; c != (exec.CheckpointCounts{Completed: 1, Aborted: 1}) {
		t.Errorf("%+v", c)
	}
}

// TestCheckpointsTakeMuchOfTheTransactionTimeout: checkpoints that take more than half of the time that a sink's transactions
// leave them are warned of, in the status and once in the log, before a transaction is lost.
func TestCheckpointsTakeMuchOfTheTransactionTimeout(t *testing.T) {
	for _, tc := range []struct {
		timeout time.Duration
		want    string
	}{
		{2 * time.Minute, ""}, // half of it is not more than half
		{119 * time.Second, "checkpoints take 1m0s (p99), more than half of the 1m59s that to out leaves them: transaction timeout 1m59s less checkpoint interval 0s"},
		{0, ""}, // never
	} {
		bus := memory.NewBus()
		fill(bus.Feed("in"), 1, 10)
		g := newGraph(bus)
		g.sink("out", 1, hash(g.source("in", 1, nil)))
		var clock testClock // each checkpoint takes a minute
		bus.Queue("out").SetTransactionTimeout(tc.timeout)
		bus.Queue("out").OnOp(func(op memory.Op) {
			if op == memory.OpPreCommit {
				clock.advance(time.Minute)
			}
		})
		var log lines
		j := start(t, g.g, exec.JobOptions{Now: clock.now, Log: slog.New(slog.NewTextHandler(&log, nil))})
		for i := range 7 {
			if s := j.Status().Checkpoint.Warning; i < 5 && s != "" {
				t.Errorf("after %d checkpoints: %q", i, s)
			}
			if _, err := j.Checkpoint(patient(t)); err != nil {
				t.Fatal(err)
			}
		}
		if s := j.Status().Checkpoint; s.Warning != tc.want || s.P99 != time.Minute {
			t.Errorf("timeout %s: %q, p99 %s", tc.timeout, s.Warning, s.P99)
		}
		want := 0
		if tc.want != "" {
			want = 1
		}
		if n := strings.Count(log.String(), "checkpoints take much of the transaction timeout"); n != want {
			t.Errorf("timeout %s: %d warnings\n%s", tc.timeout, n, log.String())
		}
		bus.Feed("in").Close()
		if err := j.wait(); err != nil {
			t.Fatal(err)
		}
	}
}

// lines is a log that may be read while it is written.
type lines struct {
	mu sync.Mutex
	sb strings.Builder
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sb.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sb.String()
}
