package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/tests/harness"
)

// twoAtATime lets a second checkpoint be taken, and pre-committed, while the commit of the first is held up.
const twoAtATime = `SET 'execution.checkpointing.max-concurrent-checkpoints' = '2';
SET 'execution.checkpointing.interval' = '400 ms';`

// trace reads the lives of the job's last checkpoints as another process does, by id; none before there are any.
func (f *fixture) trace() map[checkpoint.ID]checkpoint.Trace {
	f.t.Helper()
	jobs, err := filepath.Glob(filepath.Join(f.state, "jobs", "*"))
	if err != nil {
		f.t.Fatal(err)
	}
	out := map[checkpoint.ID]checkpoint.Trace{}
	for _, j := range jobs {
		list, err := checkpoint.ReadTraces(vfs.Default, j)
		if err != nil {
			f.t.Fatal(err)
		}
		for _, x := range list {
			out[x.ID] = x
		}
	}
	return out
}

// twoPrepared waits until one writer of the prepared PostgreSQL sink has two prepared transactions, of two checkpoints.
func (f *fixture) twoPrepared(p *harness.Process) {
	f.t.Helper()
	f.until(p, "two checkpoints are complete and neither is committed", func() bool {
		waiting := 0
		for _, x := range f.trace() {
			if x.State == checkpoint.TraceCompleted && x.Committables > 0 {
				waiting++
			}
		}
		return waiting == 2
	})
	if n := len(f.pg.PreparedTransactions(f.t, f.db)); n < 3 { // 4, unless a writer had no row for one
		f.t.Errorf("%d prepared transactions of 2 writers with two checkpoints each", n)
	}
}

// TestTwoCheckpointsAtATime: with 'execution.checkpointing.max-concurrent-checkpoints' = 2 every writer, of Kafka and of
// PostgreSQL, has two transactions to commit while a commit is held up; then they are committed in order.
func TestTwoCheckpointsAtATime(t *testing.T) {
	f := newFixtureWith(t, setup{sinks: "kpw", settings: twoAtATime})
	held := filepath.Join(t.TempDir(), "held")
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := f.start("commit.before:3:hold=" + held)
	f.twoPrepared(p)
	if open := len(f.openTransactions()); open < 2 {
		t.Errorf("%d open Kafka transactions", open)
	}
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	var three, four checkpoint.Trace
	f.until(p, "both are committed", func() bool {
		three, four = f.trace()[3], f.trace()[4]
		return four.State == checkpoint.TraceCommitted
	})
	f.wait(p)
	f.check(rows)
	if three.State != checkpoint.TraceCommitted || four.State != checkpoint.TraceCommitted || !four.Completed.Before(three.Committed) || four.Committed.Before(three.Committed) {
		t.Errorf("checkpoint 4 was not complete before 3 was committed, or not committed after it: %+v, %+v", three, four)
	}
	for _, x := range f.trace() {
		if x.Committed.Before(x.Completed) || x.CommitBegun.Before(x.Completed) || x.Completed.Before(x.Triggered) {
			t.Errorf("committed before it was complete: %+v", x)
		}
	}
}

// TestKilledWithTwoCheckpointsToCommit: the process dies when two checkpoints are complete and neither is committed. The
// restore commits both, in order, and every row is there once.
func TestKilledWithTwoCheckpointsToCommit(t *testing.T) {
	f := newFixtureWith(t, setup{sinks: "kpw", settings: twoAtATime})
	p := f.start("commit.before:3:hang")
	f.twoPrepared(p)
	p.Kill()
	show := harness.Start(t, harness.Command{Path: f.bin, Args: []string{"checkpoint", "show", f.state}})
	f.wait(show)
	for _, id := range []int{3, 4} {
		if want := fmt.Sprintf("of checkpoint %d, pre-committed", id); !strings.Contains(show.Stdout(), want) {
			t.Errorf("no %q in\n%s", want, show.Stdout())
		}
	}
	before := f.world()
	f.crashAt("restore.aborted")
	after := f.world()
	if after.rows["k"] <= before.rows["k"] {
		t.Errorf("restore committed nothing: %d rows, before %d", after.rows["k"], before.rows["k"])
	}
	after.sameRows(t, after.rows["k"])
	after.nothingOpen(t)
	f.finish()
	f.check(rows)
	for _, id := range []checkpoint.ID{3, 4} {
		if x := f.trace()[id]; x.State != checkpoint.TraceCommitted || x.Committed.Before(x.Completed) {
			t.Errorf("%+v", x)
		}
	}
}

// TestUsualSettings: the block of settings that Flink's users copy runs as it is, to the last row: checkpoints of ten seconds,
// transactions of fifteen minutes under a prefix of the user's.
func TestUsualSettings(t *testing.T) {
	prefix := harness.UniqueName(t) + "-gmv-1"
	f := newFixtureWith(t, setup{sinks: "k", settings: `SET 'execution.checkpointing.mode' = 'EXACTLY_ONCE';
SET 'execution.checkpointing.interval' = '10s';
SET 'execution.checkpointing.timeout' = '10min';
SET 'execution.checkpointing.min-pause' = '5s';`, kafka: `, 'sink.transactional-id-prefix' = '` + prefix + `', 'properties.enable.idempotence' = 'true',
  'properties.transaction.timeout.ms' = '900000', 'properties.isolation.level' = 'read_committed'`})
	p := f.finish()
	f.check(rows)
	if open := f.k.OpenTransactions(t, prefix); len(open) > 0 {
		t.Errorf("open transactions: %v", open)
	}
	if strings.Contains(p.Output(), "has no effect") {
		t.Errorf("a setting has no effect:\n%s", p.Output())
	}
}
