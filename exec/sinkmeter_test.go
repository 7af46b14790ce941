package exec_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
)

// logged keeps the lines of a log.
type logged struct {
	slog.Handler
	mu sync.Mutex
	sb strings.Builder
}

func newLogged() *logged {
	l := &logged{}
	l.Handler = slog.NewTextHandler(l, nil)
	return l
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.sb.Write(p)
}

func (l *logged) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.sb.String(), text)
}

// TestSinkStatus: a sink tells which transactions are open, since when, and whether they are pre-committed; what durable
// checkpoints list that is not committed, and since when; and how long its pre-commits and commits take. A transaction that has
// used half of its timeout is warned of once, before its pre-commit and not again after it.
func TestSinkStatus(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(1)
	q := bus.Queue("out")
	q.SetTransactionTimeout(time.Second) // it is looked at every twentieth of it
	var clock testClock
	release, commits := make(chan struct{}), make(chan struct{}, 10)
	q.OnOp(func(op memory.Op) {
		if op == memory.OpPreCommit {
			clock.advance(20 * time.Millisecond)
		}
		if op == memory.OpCommit {
			commits <- struct{}{}
			<-release
			clock.advance(30 * time.Millisecond)
		}
	})
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	log := newLogged()
	j := start(t, g.g, exec.JobOptions{Now: clock.now, Log: slog.New(log)})
	ctx := patient(t)
	until := func(what string, done func(s exec.SinkStatus) bool) exec.SinkStatus {
		t.Helper()
		for {
			s := j.Status().Sinks[0]
			if done(s) {
				return s
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%s: %+v", what, s)
			case <-time.After(time.Millisecond):
			}
		}
	}
	f.Append(0, row(1, 1, 0))
	s := until("a transaction is open", func(s exec.SinkStatus) bool { return len(s.Open) == 1 })
	if s.ID != "out" || s.Node != "to out" || s.Timeout != time.Second || s.Open[0].ID != "subtask 0" || s.Open[0].PreCommitted || s.Open[0].Age != 0 ||
		s.Pending != 0 || s.Commit.Samples != 0 {
		t.Errorf("%+v", s)
	}
	const warning = "a transaction has used more than half of its timeout"
	clock.advance(500 * time.Millisecond)
	if s := j.Status().Sinks[0]; s.Open[0].Age != 500*time.Millisecond {
		t.Errorf("%+v", s)
	}
	clock.advance(time.Millisecond)
	until("the warning", func(exec.SinkStatus) bool { return log.count(warning) > 0 })
	// Its commit is held up: the output is pending, in the same transaction.
	answer := make(chan error, 1)
	go func() { _, err := j.Checkpoint(ctx); answer <- err }()
	s = until("output is pending", func(s exec.SinkStatus) bool { return s.Pending == 1 })
	if len(s.Open) != 1 || !s.Open[0].PreCommitted || s.Open[0].Age < 521*time.Millisecond || s.PreCommit != (exec.Latency{P50: 20 * time.Millisecond, P99: 20 * time.Millisecond, Samples: 1}) {
		t.Errorf("%+v", s)
	}
	<-commits
	clock.advance(time.Second)
	if s := j.Status().Sinks[0]; s.OldestPending < time.Second || s.OldestPending > s.Open[0].Age {
		t.Errorf("%+v", s)
	}
	close(release)
	if err := <-answer; err != nil {
		t.Fatal(err)
	}
	s = until("all is committed", func(s exec.SinkStatus) bool { return s.Pending == 0 })
	if len(s.Open) != 0 || s.OldestPending != 0 || s.Commit != (exec.Latency{P50: 1030 * time.Millisecond, P99: 1030 * time.Millisecond, Samples: 1}) {
		t.Errorf("%+v", s)
	}
	// The next one is another transaction, although it has the same name.
	f.Append(0, row(1, 2, 0))
	until("another transaction is open", func(s exec.SinkStatus) bool { return len(s.Open) == 1 })
	clock.advance(600 * time.Millisecond)
	until("the second warning", func(exec.SinkStatus) bool { return log.count(warning) > 1 })
	f.Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	if n := log.count(warning); n != 2 || log.count(`sink="to out"`) == 0 {
		t.Errorf("%d warnings of 2 transactions", n)
	}
	if s := j.Status().Sinks[0]; len(s.Open) != 0 || s.Pending != 0 || s.Commit != (exec.Latency{P50: 30 * time.Millisecond, P99: 1030 * time.Millisecond, Samples: 2}) {
		t.Errorf("after the end: %+v", s)
	}
}
