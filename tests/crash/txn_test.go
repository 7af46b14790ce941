package crash

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: streamsql txn says of every transaction that a killed job left whose it is and what must become of it, ends it
// only where that is proven to be safe, and a restart is exact afterwards. Method: a job with one checkpoint, its last,
// which holds all rows, is killed on either side of the publish; a suspended one still runs.

// oneCheckpoint is a job whose only checkpoint is the last one.
func oneCheckpoint(t *testing.T) *fixture {
	return newFixtureWith(t, setup{sinks: "kp", rate: 1_000_000,
		settings: "SET 'execution.checkpointing.interval' = '5 min';\nSET 'execution.checkpointing.timeout' = '1 min';"})
}

// txn runs streamsql txn and returns its output, which must come with the exit code.
func (f *fixture) txn(code int, args ...string) *harness.Process {
	f.t.Helper()
	p := harness.Start(f.t, harness.Command{Path: f.bin, Args: append([]string{"txn"}, args...)})
	if got, err := p.Wait(patience); err != nil || got != code {
		f.t.Fatalf("txn %v: exit code %d, want %d, %v\n%s", args, got, code, err, p.Output())
	}
	return p
}

type txnLine struct {
	ID, Job, Lineage, Verdict, Why, System string
	Checkpoint                             uint64
	ListedBy                               uint64 `json:"listed_by"`
	TimeoutMS                              int64  `json:"timeout_ms"`
}

// txns lists the transactions of the test's own job until no killed process looks alive to Kafka any more.
func (f *fixture) txns(verdict string, args ...string) (out []txnLine) {
	f.t.Helper()
	for deadline := time.Now().Add(patience); ; {
		p := f.txn(0, append([]string{"list", "-o", "json"}, args...)...)
		var all []txnLine
		if err := json.Unmarshal([]byte(p.Stdout()), &all); err != nil {
			f.t.Fatalf("%v in\n%s", err, p.Output())
		}
		kafka, postgres := f.mine(all)
		out = append(kafka, postgres...)
		waiting := false
		for _, l := range out {
			if waiting = waiting || l.Verdict == "running" && verdict != "running"; l.Verdict != verdict && !waiting {
				f.t.Errorf("%s is %s (%s), want %s", l.ID, l.Verdict, l.Why, verdict)
			}
		}
		if !waiting {
			return out
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("a killed process looks alive for ever: %+v", out)
		}
	}
}

// mine are the lines of the test's own job: the broker is shared, and lists of a database are its own.
func (f *fixture) mine(all []txnLine) (kafka, postgres []txnLine) {
	for _, l := range all {
		switch {
		case strings.HasPrefix(l.System, "postgres"):
			postgres = append(postgres, l)
		case l.Job == f.name || strings.Contains(l.ID, f.name+"-"):
			kafka = append(kafka, l)
		}
	}
	return kafka, postgres
}

func TestTxnListed(t *testing.T) {
	t.Parallel()
	f := oneCheckpoint(t)
	f.crashAt("publish.after")
	where := []string{f.file, "--state-dir", f.state}
	kafka, postgres := f.mine(f.txns("listed", where...))
	if len(kafka) != 1 || len(postgres) != 2 {
		t.Fatalf("%d transactions of Kafka and %d of PostgreSQL, want 1 and 2", len(kafka), len(postgres))
	}
	for _, l := range append(kafka, postgres...) {
		if l.Checkpoint != 1 || l.ListedBy != 1 || l.Job != f.name || len(l.Lineage) != 36 {
			t.Errorf("%+v", l)
		}
	}
	if kafka[0].TimeoutMS == 0 || postgres[0].TimeoutMS != 0 {
		t.Errorf("timeouts %d and %d", kafka[0].TimeoutMS, postgres[0].TimeoutMS)
	}
	if p := f.txn(1, append([]string{"abort", "--id", kafka[0].ID, "--id", postgres[0].ID}, where...)...); !strings.Contains(p.Stderr(), "is not aborted: listed") {
		t.Errorf("abort: %s", p.Output())
	}
	f.txn(0, append([]string{"abort", "--orphans"}, where...)...)
	f.txn(0, append([]string{"commit", "--listed"}, where...)...)
	f.check(rows)
	if left := f.txns("committed", where...); len(left) != 3 {
		t.Errorf("after the commit: %+v", left)
	}
	again := f.finish()
	for _, told := range []string{"kafka: transaction of the restored checkpoint", "postgres: output of the restored checkpoint", "prepared transaction ssql:", ", age ", "outcome=committed"} {
		if !strings.Contains(again.Stderr(), told) {
			t.Errorf("the restart does not say %q:\n%s", told, again.Stderr())
		}
	}
	f.check(rows)
	if left, _ := f.mine(f.txns("", where...)); len(left) > 0 {
		t.Errorf("after the end: %+v", left)
	}
}

func TestTxnOrphans(t *testing.T) {
	t.Parallel()
	f := oneCheckpoint(t)
	f.crashAt("publish.before")
	where := []string{f.file, "--state-dir", f.state}
	kafka, postgres := f.mine(f.txns("orphan", where...))
	if len(kafka) != 1 || len(postgres) != 2 {
		t.Fatalf("%d transactions of Kafka and %d of PostgreSQL, want 1 and 2", len(kafka), len(postgres))
	}
	f.txn(1, append([]string{"commit", "--id", kafka[0].ID, "--id", postgres[0].ID}, where...)...)
	f.txn(0, append([]string{"commit", "--listed"}, where...)...)
	if len(f.openTransactions()) != 1 || len(f.pg.PreparedTransactions(t, f.db)) != 2 {
		t.Error("a refused commit did something")
	}
	f.txn(0, append([]string{"abort", "--orphans"}, where...)...)
	f.check(0)
	f.finish()
	f.check(rows)
}

// Without the state directory nothing is proven: only force ends a transaction. What was aborted although a checkpoint
// lists it is lost to a restart, which stops and says so: there is no checkpoint before it to go back to.
func TestTxnUnknownAndForce(t *testing.T) {
	t.Parallel()
	f := oneCheckpoint(t)
	f.crashAt("publish.after")
	f.txns("listed", f.file, "--state-dir", f.state) // waits until the killed process looks dead
	where := []string{"--bootstrap-servers", f.k.Addr(), "--url", f.pg.DSN(f.db)}
	p := f.txn(0, append([]string{"list", "-o", "json"}, where...)...)
	var all []txnLine
	if err := json.Unmarshal([]byte(p.Stdout()), &all); err != nil {
		t.Fatal(err)
	}
	kafka, postgres := f.mine(all)
	ids := []string{}
	for _, l := range append(kafka, postgres...) {
		if l.Verdict != "unknown" {
			t.Errorf("%+v", l)
		}
		ids = append(ids, "--id", l.ID)
	}
	if len(ids) != 6 {
		t.Fatalf("%+v", all)
	}
	f.txn(1, append(append([]string{"abort"}, ids...), where...)...)
	f.txn(1, append(append([]string{"commit"}, ids...), where...)...)
	f.txn(2, append([]string{"abort", "--orphans", "--force"}, where...)...)
	f.txn(1, "abort", "--id", "nothing", f.file, "--state-dir", f.state)
	// One of them without the job's directory: nobody has that on record. The others with it, which notes them first.
	p = f.txn(0, append(append([]string{"abort", "--force"}, ids[:2]...), where...)...)
	if !strings.Contains(p.Stdout(), "aborted by force, on nobody's record") {
		t.Errorf("txn abort --force without a directory:\n%s", p.Output())
	}
	p = f.txn(0, append([]string{"abort", "--force", f.file, "--state-dir", f.state}, ids[2:]...)...)
	if n := strings.Count(p.Stdout(), "aborted by force, on record in "+f.state); n != 2 {
		t.Errorf("%d of 2 are said to be on record:\n%s", n, p.Output())
	}
	show := harness.Start(t, harness.Command{Path: f.bin, Args: []string{"checkpoint", "show", f.state}})
	if code, err := show.Wait(patience); err != nil || code != 0 || strings.Count(show.Stdout(), "guarantee given up: ") != 2 ||
		strings.Count(show.Stdout(), "output that checkpoint 1 lists was aborted by hand") != 2 {
		t.Errorf("checkpoint show: %d, %v\n%s", code, err, show.Output())
	}
	f.check(0)
	lost := f.txns("lost", f.file, "--state-dir", f.state)
	if len(lost) != 3 {
		t.Errorf("%+v", lost)
	}
	f.refused(f.start(""), 1, "output of checkpoint 1 cannot be committed", "outcome=aborted")
}

func TestTxnRunning(t *testing.T) {
	t.Parallel()
	f := oneCheckpoint(t)
	job := f.suspended("publish.after:1")
	where := []string{f.file, "--state-dir", f.state}
	kafka, postgres := f.mine(f.txns("running", where...))
	if len(kafka) != 1 || len(postgres) != 2 {
		t.Fatalf("%d transactions of Kafka and %d of PostgreSQL, want 1 and 2", len(kafka), len(postgres))
	}
	f.txn(1, append([]string{"abort", "--force", "--id", kafka[0].ID, "--id", postgres[0].ID}, where...)...)
	f.txn(1, append([]string{"commit", "--id", kafka[0].ID, "--id", postgres[0].ID}, where...)...)
	f.resume(job)
	f.wait(job)
	f.check(rows)
}

// A killed job leaves a transaction open that holds back every reader of committed records until its timeout of a quarter
// of an hour. The next start ends it before it reads its first row.
func TestRestartMovesTheLastStableOffset(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, setup{sinks: "k", rate: 50, settings: "SET 'execution.checkpointing.interval' = '5 min';\nSET 'execution.checkpointing.timeout' = '1 min';"})
	job := f.start("")
	for deadline := time.Now().Add(patience); f.heldBack() == 0; {
		if !job.Alive() || time.Now().After(deadline) {
			t.Fatalf("no transaction was opened\n%s", job.Output())
		}
	}
	job.Kill()
	if len(f.openTransactions()) != 1 || f.heldBack() == 0 {
		t.Fatalf("%v, %d records held back", f.openTransactions(), f.heldBack())
	}
	if p := f.txn(0, "list", f.file, "--state-dir", f.state); !strings.Contains(p.Stdout(), "(holds back ") {
		t.Errorf("txn list: %s", p.Output())
	}
	begin := time.Now()
	again := f.suspended("source.poll:1")
	if open := f.openTransactions(); len(open) > 0 || f.heldBack() > 0 {
		t.Errorf("after the restart: %v, %d records held back", open, f.heldBack())
	}
	t.Logf("from the start of the process to no record held back: %v", time.Since(begin))
	again.Kill()
	f.finish()
	f.check(rows)
}
