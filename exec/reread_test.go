package exec_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
)

// TestReadAgain: a restart reads again what came after the barrier of the newest durable checkpoint, and nothing else: the
// rows of an interval and of a checkpoint that did not become durable, never more. Every row is in the sink once.
func TestReadAgain(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(3)
	g := newGraph(bus)
	g.sink("out", 2, hash(g.source("in", 2, nil)))
	r := quickRestart()
	r.Attempts = 100
	j := start(t, g.g, exec.JobOptions{Restart: r, Checkpoints: exec.CheckpointConfig{TolerableFailed: 0}})
	ctx := patient(t)
	var want []memory.Row
	var read, again int64 // as they must be
	add := func(n int) {
		t.Helper()
		for i := range n {
			x := row(int64(i), int64(len(want)), 0)
			want = append(want, x)
			f.Append(len(want)%3, x)
		}
		read += int64(n)
		untilRead(ctx, t, j, read)
	}
	durable := func() {
		t.Helper()
		if _, err := j.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// failed waits for the restart that spec causes and says how many rows came since the last durable barrier.
	failed := func(spec string, since int64, cause func()) {
		t.Helper()
		before := j.Status().Restarts
		arm(t, spec)
		cause()
		again += since
		read += since
		for s := j.Status(); s.Restarts == before || s.ReadAgain < again; s = j.Status() {
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %d rows were read again, want %d: %+v", spec, s.ReadAgain, again, s)
			case <-time.After(time.Millisecond):
			}
		}
		untilRead(ctx, t, j, read)
		if s := j.Status(); s.ReadAgain != again || s.Restarts != before+1 {
			t.Fatalf("%s: %d rows were read again, want %d, in %d restarts", spec, s.ReadAgain, again, s.Restarts-before)
		}
	}
	for round := range 4 {
		add(100)
		durable()
		add(50 + round)
		// The barrier passes, the manifest does not become durable: the interval and the checkpoint's own time.
		failed("publish.before:1:error", int64(50+round), func() { _, _ = j.Checkpoint(ctx) })
		// Again at once: the same rows, and those that came meanwhile.
		add(7)
		failed("barrier.inject:1:error", int64(57+round), func() { _, _ = j.Checkpoint(ctx) })
		durable()
		// Nothing came since: nothing is read again.
		failed("barrier.inject:1:error", 0, func() { _, _ = j.Checkpoint(ctx) })
		// What is durable is not read again, whether or not it is known to be committed.
		add(30)
		failed("confirm.after:1:error", 0, func() { _, _ = j.Checkpoint(ctx) })
		if x := j.Status().Checkpoint.Restore; x == nil || x.Again != 0 {
			t.Fatalf("%+v", x)
		}
	}
	f.Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
	s := j.Status()
	var perSplit int64
	for _, sp := range s.Splits {
		perSplit += sp.ReadAgain
	}
	if perSplit != s.ReadAgain || s.ReadAgain != again {
		t.Errorf("%d by splits, %d in all, want %d", perSplit, s.ReadAgain, again)
	}
}

// TestReadAgainAfterStart: what another process read after its last checkpoint is not known, and not counted; what this one
// reads is counted from where it began.
func TestReadAgainAfterStart(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(1)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	build := func() *exec.Graph {
		g := newGraph(bus)
		g.sink("out", 1, hash(g.source("in", 1, nil)))
		return g.g
	}
	ctx := patient(t)
	rows := func(from, n int) {
		for i := range n {
			f.Append(0, row(1, int64(from+i), 0))
		}
	}
	rows(0, 10)
	j := start(t, build(), exec.JobOptions{Owner: owner})
	untilRead(ctx, t, j, 10)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	rows(10, 5)
	untilRead(ctx, t, j, 15)
	j.Cancel()
	_ = j.wait()
	j = start(t, build(), exec.JobOptions{Owner: owner, Restart: quickRestart()})
	untilRead(ctx, t, j, 5)
	if s := j.Status(); s.ReadAgain != 0 || s.Checkpoint.Restore == nil || s.Checkpoint.Restore.Again != 0 {
		t.Fatalf("%+v", s)
	}
	rows(15, 3)
	untilRead(ctx, t, j, 8)
	arm(t, "barrier.inject:1:error")
	_, _ = j.Checkpoint(ctx)
	untilRead(ctx, t, j, 16)
	if s := j.Status(); s.ReadAgain != 8 || s.Checkpoint.Restore == nil || s.Checkpoint.Restore.Again != 8 || s.Restarts != 1 {
		t.Fatalf("%d read again, %+v", s.ReadAgain, s.Checkpoint.Restore)
	}
}

// TestRestoreParts: the time of a restore is told by its parts, which add up to the time until rows flow, and with the first
// commit behind it; in the status and in the trace of the first checkpoint after it. A fresh start tells nothing.
func TestRestoreParts(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(1)
	var clock testClock
	g := newGraph(bus)
	g.sink("out", 1, hash(g.op("slow", 1, func() exec.Operator { return &slowOpen{clock: &clock} }, hash(g.source("in", 1, nil)))))
	// The sink's calls take a second each, by the job's clock; so does the operator's Open.
	restoring := false
	bus.Queue("out").OnOp(func(op memory.Op) {
		if restoring && (op == memory.OpCommit || op == memory.OpAbort) {
			clock.advance(time.Second)
		}
	})
	j := start(t, g.g, exec.JobOptions{Now: clock.now, Restart: quickRestart()})
	ctx := patient(t)
	f.Append(0, row(1, 1, 0))
	untilRead(ctx, t, j, 1)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if x := j.Status().Checkpoint.Restore; x != nil {
		t.Fatalf("a fresh start was restored: %+v", x)
	}
	restoring = true
	f.Append(0, row(1, 2, 0))
	untilRead(ctx, t, j, 2)
	arm(t, "source.poll:1:error")
	f.Append(0, row(1, 3, 0))
	for s := j.Status(); s.Checkpoint.Restore == nil || s.ReadAgain < s.Checkpoint.Restore.Again; s = j.Status() {
		select {
		case <-ctx.Done():
			t.Fatalf("no restart: %+v", s)
		case <-time.After(time.Millisecond):
		}
	}
	x := j.Status().Checkpoint.Restore
	if x == nil || x.From != 1 || x.Transactions != time.Second || x.State != time.Second || x.Took() != 2*time.Second || x.FirstCommit != 0 || x.Again == 0 {
		t.Fatalf("%+v", x)
	}
	f.Append(0, row(1, 4, 0))
	untilRead(ctx, t, j, 4+x.Again) // something to commit
	clock.advance(10 * time.Second)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	clock.advance(time.Hour)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	x = j.Status().Checkpoint.Restore
	if x.FirstCommit != 11*time.Second || x.Took() != 2*time.Second {
		t.Fatalf("%+v", x)
	}
	text := fmt.Sprintf("restored from checkpoint 1 in 2s: metadata 0s, transactions 1s, sources 0s, state 1s, writers 0s; first commit 11s later; %d rows read again", x.Again)
	var traced []string
	for _, c := range j.Checkpoints() {
		if c.Restored != nil {
			traced = append(traced, fmt.Sprintf("%d was %s", c.ID-x.From, c.Restored))
		}
	}
	if len(traced) != 1 || traced[0][len("1 was "):] != text {
		t.Errorf("%q, want %q", traced, text)
	}
}

// slowOpen takes a second to open when there is something to restore.
type slowOpen struct {
	pass
	clock *testClock
}

func (s *slowOpen) Open(sub exec.Subtask) error {
	if len(sub.Restored()) > 0 {
		s.clock.advance(time.Second)
	}
	return nil
}
