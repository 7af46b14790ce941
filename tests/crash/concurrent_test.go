package crash

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

// twoPrepared waits until every writer of the prepared PostgreSQL sink has two prepared transactions, of the checkpoints it
// returns: two others are committed, and the third commit is held up.
func (f *fixture) twoPrepared(p *harness.Process) (first, second checkpoint.ID) {
	f.t.Helper()
	f.until(p, "two checkpoints are complete and neither is committed", func() bool {
		var waiting []checkpoint.ID
		committed := 0
		for _, x := range f.trace() {
			switch {
			case x.Committables == 0: // no commit is carried out for it
			case x.State == checkpoint.TraceCompleted:
				waiting = append(waiting, x.ID)
			case x.State == checkpoint.TraceCommitted:
				committed++
			}
		}
		if committed != 2 || len(waiting) != 2 {
			return false
		}
		first, second = slices.Min(waiting), slices.Max(waiting)
		return true
	})
	if n := len(f.pg.PreparedTransactions(f.t, f.db)); n < 3 { // 4, unless a writer had no row for one
		f.t.Errorf("%d prepared transactions of 2 writers with two checkpoints each", n)
	}
	return first, second
}

// TestTwoCheckpointsAtATime: with 'execution.checkpointing.max-concurrent-checkpoints' = 2 every writer, of Kafka and of
// PostgreSQL, has two transactions to commit while a commit is held up; then they are committed in order.
func TestTwoCheckpointsAtATime(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, setup{sinks: "kpw", settings: twoAtATime})
	held := filepath.Join(t.TempDir(), "held")
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	p := f.start("commit.before:3:hold=" + held)
	first, second := f.twoPrepared(p)
	if open := len(f.openTransactions()); open < 2 {
		t.Errorf("%d open Kafka transactions", open)
	}
	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	var one, two checkpoint.Trace
	f.until(p, "both are committed", func() bool {
		one, two = f.trace()[first], f.trace()[second]
		return two.State == checkpoint.TraceCommitted
	})
	f.wait(p)
	f.check(rows)
	if one.State != checkpoint.TraceCommitted || two.State != checkpoint.TraceCommitted || !two.Completed.Before(one.Committed) || two.Committed.Before(one.Committed) {
		t.Errorf("the later one was not complete before the first was committed, or not committed after it: %+v, %+v", one, two)
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
	t.Parallel()
	f := newFixtureWith(t, setup{sinks: "kpw", settings: twoAtATime})
	p := f.start("commit.before:3:hang")
	first, second := f.twoPrepared(p)
	p.Kill()
	show := harness.Start(t, harness.Command{Path: f.bin, Args: []string{"checkpoint", "show", f.state}})
	f.wait(show)
	for _, id := range []checkpoint.ID{first, second} {
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
	for _, id := range []checkpoint.ID{first, second} {
		if x := f.trace()[id]; x.State != checkpoint.TraceCommitted || x.Committed.Before(x.Completed) {
			t.Errorf("%+v", x)
		}
	}
}

// TestUsualSettings: the block of settings that Flink's users copy runs as it is, to the last row: checkpoints of ten seconds,
// transactions of fifteen minutes under a prefix of the user's.
func TestUsualSettings(t *testing.T) {
	t.Parallel()
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
