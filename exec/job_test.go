package exec_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
)

// fill appends n rows to each of the feed's splits and returns them all.
func fill(f *memory.Feed, splits, n int) (all []memory.Row) {
	f.SetSplits(splits)
	for s := range splits {
		var rows []memory.Row
		for i := range n {
			v := int64(s*n + i)
			rows = append(rows, row(v%17, v, v))
		}
		f.Append(s, rows...)
		all = append(all, rows...)
	}
	return all
}

// TestBoundedEndCommitsTail: a bounded job without periodic checkpoints writes everything, by its final checkpoint,
// through every shape of exchange.
func TestBoundedEndCommitsTail(t *testing.T) {
	for _, p := range [][3]int{{1, 1, 1}, {2, 1, 2}, {1, 4, 1}, {2, 2, 2}, {4, 3, 2}} {
		for _, edge := range []func(int) exec.Edge{hash, rebalance} {
			e := edge(0)
			t.Run(fmt.Sprintf("%s/%v", e.Ship, p), func(t *testing.T) {
				bus := memory.NewBus()
				want := fill(bus.Feed("in"), 3, 5000)
				bus.Feed("in").Close()
				g := newGraph(bus)
				src := g.source("in", p[0], nil)
				mid := g.op("mid", p[1], newPass, edge(src))
				if p[1] == p[2] {
					g.sink("out", p[2], forward(mid))
				} else {
					g.sink("out", p[2], edge(mid))
				}
				if err := start(t, g.g, exec.JobOptions{}).wait(); err != nil {
					t.Fatal(err)
				}
				same(t, bus.Queue("out").Rows(), want)
				if n := bus.Queue("out").Undecided(); n != 0 {
					t.Fatalf("%d transactions left", n)
				}
			})
		}
	}
}

// points are the failpoints of a running job and of its restore, in the order of the protocol.
var points = []string{"source.poll", "barrier.inject", "precommit.before", "precommit.after", "publish.before",
	"publish.after", "commit.before", "commit.during", "commit.after", "confirm.after"}

// TestRestartAtEveryFailpoint: a failure at each point, at its first and at a later visit, leaves every row in the sink
// once. The job restarts in the same process.
func TestRestartAtEveryFailpoint(t *testing.T) {
	for k, point := range points {
		for _, hit := range []int{1, 2, 5} {
			concurrent := 1 + (k+hit)%2 // every point with one and with two checkpoints in flight
			t.Run(fmt.Sprintf("%s/%d/%d", point, hit, concurrent), func(t *testing.T) {
				bus := memory.NewBus()
				want := fill(bus.Feed("in"), 3, 3000)
				g := newGraph(bus)
				mid := g.op("mid", 2, newPass, hash(g.source("in", 2, nil)))
				g.sink("out", 2, forward(mid))
				g.sink("other", 1, rebalance(mid))
				arm(t, fmt.Sprintf("%s:%d:error", point, hit))
				j := start(t, g.g, exec.JobOptions{Restart: quickRestart(), Checkpoints: exec.CheckpointConfig{Interval: time.Millisecond, MaxConcurrent: concurrent}})
				// How many checkpoints have rows for both writers, so that a commit has a middle, is up to the scheduler.
				for i, ctx := 0, patient(t); i < 6 || !checkpoint.FailpointHit() && ctx.Err() == nil; i++ {
					for k := range 17 {
						more := row(int64(k), int64(100_000+17*i+k), 0)
						bus.Feed("in").Append(k%3, more)
						want = append(want, more)
					}
					if _, err := j.Checkpoint(ctx); err != nil && !restarted(err) {
						t.Fatal(err)
					}
				}
				bus.Feed("in").Close()
				if err := j.wait(); err != nil {
					t.Fatal(err)
				}
				if !checkpoint.FailpointHit() {
					t.Fatal("the failpoint did not act")
				}
				same(t, bus.Queue("out").Rows(), want)
				same(t, bus.Queue("other").Rows(), want)
				if n := bus.Queue("out").Undecided() + bus.Queue("other").Undecided(); n != 0 {
					t.Fatalf("%d transactions left", n)
				}
			})
		}
	}
}

// restarted tells a checkpoint that was given up because the job failed from others.
func restarted(err error) bool { return err != nil }

func arm(t *testing.T, spec string) {
	t.Helper()
	if err := checkpoint.SetFailpoint(spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = checkpoint.SetFailpoint("") })
}

func quickRestart() exec.RestartStrategy {
	r := exec.DefaultRestart(exec.RestartFixedDelay)
	r.Attempts, r.Delay = 10, time.Millisecond
	return r
}

// TestRestoreFailpoints: a new process (a new Job on the same store) that dies at each point of the restore leaves every
// row in the sink once, when it is started again.
func TestRestoreFailpoints(t *testing.T) {
	for _, first := range []string{"publish.after", "commit.before", "commit.during", "commit.after", "confirm.after"} {
		for _, second := range []string{"restore.begin", "commit.before", "commit.during", "commit.after", "restore.committed", "restore.aborted"} {
			t.Run(first+"/"+second, func(t *testing.T) {
				bus := memory.NewBus()
				want := fill(bus.Feed("in"), 3, 1000)
				owner := checkpoint.OwnMemory()
				defer owner.Close()
				build := func(p int) *exec.Graph {
					g := newGraph(bus)
					mid := g.op("mid", p, newPass, hash(g.source("in", p, nil)))
					g.sink("out", p, forward(mid))
					g.sink("other", 1, rebalance(mid))
					return g.g
				}
				o := exec.JobOptions{Owner: owner}
				// Commits are retried by the job, so that a crash there is a cancel by the committer's failure.
				arm(t, first+":1:error")
				j := start(t, build(2), o)
				bus.Queue("out").OnOp(func(op memory.Op) {
					if checkpoint.FailpointHit() && op == memory.OpCommit {
						j.Cancel()
					}
				})
				_, _ = j.Checkpoint(patient(t))
				j.Cancel()
				_ = j.wait()
				bus.Queue("out").OnOp(nil)

				arm(t, second+":1:error")
				_ = start(t, build(1), o).waitOrCancel(second)
				arm(t, "")
				bus.Feed("in").Close()
				if err := start(t, build(3), o).wait(); err != nil {
					t.Fatal(err)
				}
				same(t, bus.Queue("out").Rows(), want)
				same(t, bus.Queue("other").Rows(), want)
				if n := bus.Queue("out").Undecided() + bus.Queue("other").Undecided(); n != 0 {
					t.Fatalf("%d transactions left", n)
				}
			})
		}
	}
}

// waitOrCancel lets a job run until its restore failed or it is past it.
func (r *running) waitOrCancel(string) error {
	deadline := time.Now().Add(patience)
	for {
		select {
		case err := <-r.done:
			return err
		case <-time.After(time.Millisecond):
		}
		if r.Status().State == exec.Running || time.Now().After(deadline) {
			r.Cancel()
			return r.wait()
		}
	}
}

// TestStopAndResume: stop with a final checkpoint, go on at another parallelism, read to the end; nothing twice, nothing
// missing.
func TestStopAndResume(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(4)
	var want []memory.Row
	build := func(p int) *exec.Graph {
		g := newGraph(bus)
		g.sink("out", 5-p, hash(g.op("mid", p, newPass, hash(g.source("in", p, nil)))))
		return g.g
	}
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	o := exec.JobOptions{Owner: owner, Checkpoints: exec.CheckpointConfig{Interval: 2 * time.Millisecond}}
	for _, p := range []int{1, 3, 2} {
		for i := range 3001 {
			r := row(int64(i%7), int64(len(want)), 0)
			f.Append(i%4, r)
			want = append(want, r)
		}
		j := start(t, build(p), o)
		if err := bus.Queue("out").Wait(patient(t), int64(len(want)-1500)); err != nil {
			t.Fatal(err)
		}
		if err := j.Stop(patient(t), exec.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		if s := j.Status().State; s != exec.Suspended {
			t.Fatalf("state %s", s)
		}
		if n := bus.Queue("out").Undecided(); n != 0 {
			t.Fatalf("%d transactions left", n)
		}
	}
	f.Close()
	for range 2 { // the second time there is nothing left to do
		if err := start(t, build(4), o).wait(); err != nil {
			t.Fatal(err)
		}
		same(t, bus.Queue("out").Rows(), want)
	}
}

// TestUserErrorsAreNotRetried: a bad record ends the job and names the place.
func TestUserErrorsAreNotRetried(t *testing.T) {
	bus := memory.NewBus()
	fill(bus.Feed("in"), 2, 100)
	bus.Feed("in").Fail(1, 40, diag.New(diag.Data, diag.Pos{}, "bad record"))
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 2, nil)))
	j := start(t, g.g, exec.JobOptions{Restart: quickRestart()})
	err := j.wait()
	var te *exec.TaskError
	if !errors.As(err, &te) || te.Split != "in-1" || te.Node != "in" || diag.CodeOf(err) != diag.Data {
		t.Fatalf("error %v", err)
	}
	if s := j.Status(); s.State != exec.Failed || s.Restarts != 0 {
		t.Fatalf("status %+v", s)
	}
}

// TestCancelBeforeRun: a job that is cancelled before its goroutine gets to Run ends all the same.
func TestCancelBeforeRun(t *testing.T) {
	bus := memory.NewBus()
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	j, err := exec.NewJob(g.g, exec.JobOptions{})
	if err != nil {
		t.Fatal(err)
	}
	j.Cancel()
	if err := j.Run(patient(t)); !errors.Is(err, context.Canceled) {
		t.Fatalf("Run returned %v", err)
	}
}
