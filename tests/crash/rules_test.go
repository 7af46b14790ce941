package crash

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: the four rules of recovery, each seen at work and not only in its result. Method: stop the first run where the
// rule's condition holds, stop the next run when restore has applied the rule and nothing was written since
// (restore.aborted), and compare what readers see at the two moments; then finish and compare everything.

// world is what can be seen outside at one moment: numbers of visible rows, and what is open.
type world struct {
	rows     map[string]int // by sink
	written  int            // rows of the Kafka sink, of undecided and aborted transactions too
	open     int            // Kafka transactions
	prepared int
	pending  int // files
}

func (f *fixture) world() world {
	f.t.Helper()
	w := world{rows: map[string]int{}, open: len(f.openTransactions()), prepared: len(f.pg.PreparedTransactions(f.t, f.db)), pending: len(f.hiddenFiles()),
		written: len(f.k.Values(f.t, f.name+"_out", harness.Uncommitted))}
	for sink, ids := range f.visible() {
		w.rows[sink] = len(ids)
	}
	f.t.Logf("rows %v, written to kafka %d, open transactions %d, prepared %d, files in progress %d", w.rows, w.written, w.open, w.prepared, w.pending)
	return w
}

// sameRows demands that every sink shows n rows.
func (w world) sameRows(t *testing.T, n int) {
	t.Helper()
	for sink, got := range w.rows {
		if got != n {
			t.Errorf("sink %s shows %d rows, want %d", sink, got, n)
		}
	}
}

// nothingOpen demands that no transaction, prepared transaction or file is undecided.
func (w world) nothingOpen(t *testing.T) {
	t.Helper()
	if w.open+w.prepared+w.pending != 0 {
		t.Errorf("left open: %d transactions, %d prepared, %d files", w.open, w.prepared, w.pending)
	}
}

// Rule 1: what is committed is skipped. The crash comes after the commit and before its confirmation, so that restore
// finds a checkpoint it must settle, whose output all exists.
func TestRecoveryCommittedIsSkipped(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.crashAt("commit.after:3")
	before := f.world()
	if before.rows["k"] == 0 {
		t.Fatal("nothing was committed before the crash")
	}
	run := f.crashAt("restore.aborted")
	after := f.world()
	if !maps.Equal(before.rows, after.rows) {
		t.Errorf("restore changed what readers see: %v, before %v", after.rows, before.rows)
	}
	if after.written < before.written {
		t.Errorf("the topic shrank from %d to %d records", before.written, after.written)
	}
	after.sameRows(t, before.rows["k"])
	after.nothingOpen(t)
	if !strings.Contains(run.Output(), "outcome=committed") || strings.Contains(run.Output(), "outcome=open") {
		t.Errorf("the log does not say that the transaction was found committed:\n%s", run.Output())
	}
	f.finish()
	f.check(rows)
}

// Rule 2: what is prepared without a checkpoint is aborted, and its rows are produced again.
func TestRecoveryPreparedWithoutCheckpointIsAborted(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.crashAt("publish.before:3")
	before := f.world()
	if before.open == 0 || before.prepared == 0 || before.pending == 0 || before.written <= before.rows["k"] {
		t.Fatal("nothing was prepared at the crash")
	}
	f.crashAt("restore.aborted")
	after := f.world()
	if !maps.Equal(before.rows, after.rows) {
		t.Errorf("rows without a checkpoint became visible: %v, before %v", after.rows, before.rows)
	}
	after.nothingOpen(t)
	f.finish()
	f.check(rows)
	if n := len(f.k.Values(t, f.name+"_out", harness.Uncommitted)); n <= rows {
		t.Errorf("%d records in the topic, want more than %d: the aborted ones and their second copy", n, rows)
	}
}

// Rule 3: what is prepared and listed by a checkpoint is committed, however often restore is interrupted.
func TestRecoveryPreparedWithCheckpointIsCommittedAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.crashAt("publish.after:3")
	before := f.world()
	if before.open == 0 || before.prepared == 0 || before.pending == 0 {
		t.Fatal("nothing was prepared at the crash")
	}
	run := f.crashAt("restore.aborted")
	if !strings.Contains(run.Output(), "outcome=open") {
		t.Errorf("the log does not say that the transaction was found open:\n%s", run.Output())
	}
	after := f.world()
	if after.rows["k"] <= before.rows["k"] {
		t.Errorf("restore committed nothing: %d rows, before %d", after.rows["k"], before.rows["k"])
	}
	after.sameRows(t, after.rows["k"])
	after.nothingOpen(t)
	f.finish()
	f.check(rows)
}

// Rule 4: where no transaction is recorded, rows are written at least once, and only a sink where writing twice is
// writing once makes the result exact: a keyed table and a compacted topic end exact, a plain topic shows the repeats.
func TestRecoveryWithoutRecordRepeatsIntoAnIdempotentSink(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.k.CreateTopic(t, f.name+"_keyed", 2, map[string]string{"cleanup.policy": "compact"})
	f.k.CreateTopic(t, f.name+"_plain", 2, nil)
	head, _, _ := strings.Cut(f.fileText, "EXECUTE STATEMENT SET BEGIN")
	f.write(head + fmt.Sprintf(`
CREATE TABLE keyed (id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '%[1]s_keyed',
  'properties.bootstrap.servers' = '%[2]s', 'key.format' = 'json', 'value.format' = 'json', 'sink.delivery-guarantee' = 'at-least-once');
CREATE TABLE plain (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_plain', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json',
  'sink.delivery-guarantee' = 'at-least-once');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO u SELECT id, SUM(id * 2) FROM input GROUP BY id;
  INSERT INTO keyed SELECT id, SUM(id * 2) FROM input GROUP BY id;
  INSERT INTO plain SELECT id FROM input;
END;`, f.name, f.k.Addr()))
	// Written, and no checkpoint says so: the first checkpoint is not published, nor is the third.
	f.crashAt("publish.before")
	if n := f.pg.Rows(t, f.db, `SELECT count(*) FROM u`); n[0] == "0" {
		t.Fatal("the keyed table is empty before the first checkpoint: nothing will be repeated")
	}
	f.crashAt("publish.before:3")
	f.finish()

	f.once("u", rows, f.pg.Rows(t, f.db, `SELECT id FROM u WHERE twice = 2 * id`))
	last, records := map[string]string{}, f.k.Records(t, f.name+"_keyed", harness.Committed)
	for _, r := range records {
		last[string(r.Key)] = string(r.Value)
	}
	f.once("keyed", rows, f.ids(slices.Collect(maps.Values(last))))
	if len(records) <= rows {
		t.Errorf("%d records in the compacted topic: nothing was repeated, so the test shows nothing", len(records))
	}
	plain := f.ids(f.k.Values(t, f.name+"_plain", harness.Committed))
	distinct := map[string]bool{}
	for _, id := range plain {
		distinct[id] = true
	}
	if len(distinct) != rows || len(plain) <= rows {
		t.Errorf("plain topic: %d records, %d distinct; want %d distinct and repeats", len(plain), len(distinct), rows)
	}
	f.sinks = ""
	f.check(0)
}
