package crash

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/tests/harness"
)

// The tests of this file wait for a minute: its name makes them begin first.

// A transaction that times out takes rows away that a checkpoint counts on. The broker's clock is the real one: the
// shortest timeout that preflight admits is a minute and the checkpoint's own times.
const shortTimeout = `,
  'properties.transaction.timeout.ms' = '62000'`

const shortCheckpoints = `SET 'execution.checkpointing.timeout' = '1500 ms';
SET 'execution.checkpointing.tolerable-failed-checkpoints' = '1000';`

// timeOut waits until the broker has aborted what the dead job left open.
func (f *fixture) timeOut() {
	f.t.Helper()
	for deadline := time.Now().Add(patience); len(f.openTransactions()) > 0; time.Sleep(200 * time.Millisecond) {
		if time.Now().After(deadline) {
			f.t.Fatalf("still open: %v", f.openTransactions())
		}
	}
}

// Everything of the newest checkpoint is undone: the job goes back one checkpoint, and is exact.
func TestTransactionTimeoutRewinds(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, setup{settings: shortCheckpoints, kafka: shortTimeout})
	f.crashAt("publish.after:3")
	before := f.world()
	if before.open == 0 {
		t.Fatal("nothing was open at the crash")
	}
	f.timeOut()
	p := f.finish()
	if !strings.Contains(p.Output(), "going back") {
		t.Errorf("the log does not tell of the rewind:\n%s", p.Output())
	}
	f.check(rows)
}

// Another sink has committed its part of the checkpoint, so that going back would repeat it: the job stops and names
// what is lost, again and again, until the user decides.
func TestTransactionTimeoutWithCommittedSiblingStops(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, setup{sinks: "fk", settings: shortCheckpoints, kafka: shortTimeout})
	f.crashAt("commit.during:3") // the first sink is committed, the second is not
	if w := f.world(); w.open == 0 || w.rows["f"] == w.rows["k"] {
		t.Fatalf("the crash did not come between the commits of files and kafka: %+v", w)
	}
	f.timeOut()
	before := f.world()
	for range 2 {
		f.refused(f.start(""), 1, "cannot be committed", "sink k, checkpoint", "aborted", "sink.recovery.on-lost-transaction")
	}
	after := f.world()
	if fmt.Sprint(before) != fmt.Sprint(after) {
		t.Errorf("a refused start changed something: %+v, before %+v", after, before)
	}
	// The user decides for rows twice: none is lost, those of the files since the checkpoint are there again, and it is on record.
	p := f.finish("-D", "streamsql.on-degraded=at-least-once")
	if !strings.Contains(p.Output(), "a guarantee is given up") {
		t.Errorf("the log does not tell:\n%s", p.Output())
	}
	for sink, ids := range f.visible() {
		seen := map[string]bool{}
		for _, id := range ids {
			seen[id] = true
		}
		if len(seen) != rows || (len(ids) > rows) != (sink == "f") {
			t.Errorf("sink %s: %d rows, %d different ones, want %d", sink, len(ids), len(seen), rows)
		}
	}
	show := harness.Start(t, harness.Command{Path: f.bin, Args: []string{"checkpoint", "show", f.state}})
	f.wait(show)
	if !strings.Contains(show.Output(), "output in between was written again, as 'streamsql.on-degraded' = 'at-least-once' allows (sink k, checkpoint") {
		t.Errorf("checkpoint show lacks the record:\n%s", show.Output())
	}
}

// Somebody aborts a transaction between pre-commit and commit, under the running job: it goes back by itself, exactly.
func TestForeignAbortRewindsTheRunningJob(t *testing.T) {
	t.Parallel()
	// Commits go by the name of the sink: k is the first to find out, and nothing of the checkpoint is visible then.
	// The interval is long enough for rows in every checkpoint, also on a busy machine: an empty one has no transaction.
	f := newFixtureWith(t, setup{sinks: "kpw", settings: `SET 'execution.checkpointing.interval' = '400 ms';`})
	p := f.suspended("publish.after:3")
	open := f.openTransactions()
	if len(open) == 0 {
		t.Fatal("nothing is open")
	}
	cl := f.k.Client(t)
	for id := range open {
		req := kmsg.NewPtrInitProducerIDRequest()
		req.TransactionalID, req.TransactionTimeoutMillis = kmsg.StringPtr(id), 60_000
		req.ProducerID, req.ProducerEpoch = -1, -1
		f.until(p, "the transaction is aborted", func() bool {
			resp, err := req.RequestWith(t.Context(), cl)
			if err == nil {
				err = kerr.ErrorForCode(resp.ErrorCode)
			}
			if err != nil && !errors.Is(err, kerr.ConcurrentTransactions) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	f.resume(p)
	f.wait(p)
	if !strings.Contains(p.Output(), "going back") {
		t.Errorf("the log does not tell of the rewind:\n%s", p.Output())
	}
	f.check(rows)
}
