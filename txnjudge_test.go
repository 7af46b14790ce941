package streamsql

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: the verdict about a transaction follows from what the directories of jobs say, and from nothing else. Method: a
// table over what is at hand; the transactions are named by letters, which committables have for their payload.

// letters is a system whose committables are names of transactions.
type letters struct{}

func (letters) Name() string { return "letters" }
func (letters) List(context.Context, []string) ([]connectors.Txn, error) {
	return nil, errors.New("not asked")
}
func (letters) Belongs(t *connectors.Txn, o *connectors.TxnOwner) (job, lineage bool) {
	for _, l := range o.Lineages {
		lineage = lineage || l == t.Lineage
	}
	return t.Job == o.JobID, t.Job == o.JobID && lineage
}
func (letters) Identity(c *checkpoint.Committable) (string, bool) { return string(c.Payload), true }
func (letters) Describe(c *checkpoint.Committable, _ time.Time) string {
	return string(c.Payload)
}
func (letters) Outcome(context.Context, *checkpoint.Committable) (checkpoint.Outcome, string, error) {
	return 0, "", errors.New("not asked")
}
func (letters) Abort(context.Context, *connectors.Txn) error          { return errors.New("not asked") }
func (letters) Commit(context.Context, *checkpoint.Committable) error { return errors.New("not asked") }
func (letters) Close() error                                          { return nil }

// chk is a checkpoint that lists the transactions named by the letters of pending.
func chk(id checkpoint.ID, pending string) *checkpoint.Checkpoint {
	c := &checkpoint.Checkpoint{ID: id, Lineage: "l1"}
	for _, l := range strings.Split(pending, "") {
		c.Pending = append(c.Pending, checkpoint.Committable{Checkpoint: id, Lineage: "l1", Payload: []byte(l)})
	}
	return c
}

func TestJudgeTxn(t *testing.T) {
	mine := connectors.Txn{ID: "id", Job: "j", Lineage: "l1", Identity: "a", Unique: true}
	with := func(f func(*connectors.Txn)) connectors.Txn { x := mine; f(&x); return x }
	known := connectors.TxnOwner{JobID: "j", Lineages: []string{"l0", "l1"}}
	for _, c := range []struct {
		name string
		txn  connectors.Txn
		job  *txnJob
		want TxnVerdict
		why  string
	}{
		{"no directory", mine, nil, TxnUnknown, "no state directory"},
		{"another job", with(func(x *connectors.Txn) { x.Job = "k" }), &txnJob{owner: known, newest: chk(3, "a")}, TxnUnknown, "no state directory"},
		{"another life of the job", with(func(x *connectors.Txn) { x.Lineage = "l9" }), &txnJob{owner: known, newest: chk(3, "a")}, TxnUnknown, "earlier life"},
		{"listed", mine, &txnJob{owner: known, newest: chk(3, "ba"), confirmed: 2}, TxnListed, "checkpoint 3"},
		{"listed, the process of the job holds the directory", mine, &txnJob{owner: known, newest: chk(3, "a"), pid: 7}, TxnRunning, "process 7"},
		{"listed, this process holds the directory", mine, &txnJob{owner: known, newest: chk(3, "a"), held: true}, TxnListed, "checkpoint 3"},
		{"listed, somebody uses the id", with(func(x *connectors.Txn) { x.Live = "process 9" }), &txnJob{owner: known, newest: chk(3, "a")}, TxnRunning, "process 9"},
		{"no directory, somebody uses the id", with(func(x *connectors.Txn) { x.Live = "process 9" }), nil, TxnRunning, "process 9"},
		{"decided", with(func(x *connectors.Txn) { x.Final = true }), &txnJob{owner: known, newest: chk(3, "a")}, TxnEnding, ""},
		{"no checkpoint", mine, &txnJob{owner: known}, TxnOrphan, "no checkpoint"},
		{"not listed", mine, &txnJob{owner: known, newest: chk(3, "b")}, TxnOrphan, "checkpoint 3, the newest"},
		{"not listed, the job runs", mine, &txnJob{owner: known, newest: chk(3, "b"), pid: 7}, TxnRunning, "process 7"},
		{"listed and noted as committed", mine, &txnJob{owner: known, newest: chk(3, "a"), confirmed: 3}, TxnUnknown, "restored from a backup"},
		{"listed before and noted as committed", mine, &txnJob{owner: known, newest: chk(4, "b"), older: []*checkpoint.Checkpoint{chk(3, "a")}, confirmed: 3}, TxnUnknown, "checkpoint 3"},
		// Before TV2 every transaction of an id has the same identity: this one is a later one.
		{"the identity was listed before", with(func(x *connectors.Txn) { x.Unique = false }), &txnJob{owner: known, newest: chk(4, "b"), older: []*checkpoint.Checkpoint{chk(3, "a")}, confirmed: 3},
			TxnOrphan, "checkpoint 4, the newest"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var jobs []*txnJob
			if c.job != nil {
				jobs = append(jobs, c.job)
			}
			r := judgeTxn(c.txn, letters{}, jobs)
			if r.Verdict != c.want || !strings.Contains(r.Why, c.why) || r.Why == "" || r.Do == "" {
				t.Errorf("%s: %s; do: %s\nwant %s with %q", r.Verdict, r.Why, r.Do, c.want, c.why)
			}
		})
	}
}

// By a copy of checkpoints that count in a store nothing is committed or aborted: another machine may know better.
func TestTxnOfACopyIsNotDecided(t *testing.T) {
	dir := t.TempDir()
	owner, err := checkpoint.OwnDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	r := TxnReport{job: &txnJob{dir: dir}}
	if err := r.decidable(); err != nil {
		t.Error(err)
	}
	objects, err := checkpoint.OpenDirObjects(vfs.Default, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := checkpoint.OpenRemote(context.Background(), owner, objects, "job", checkpoint.StoreOptions{}); err != nil {
		t.Fatal(err)
	}
	x := &Txns{}
	r.job.held, r.Verdict = true, TxnOrphan
	for name, err := range map[string]error{"abort": x.Abort(context.Background(), r, false), "commit": x.Commit(context.Background(), r)} {
		if diag.CodeOf(err) != diag.Conflict || !strings.Contains(err.Error(), objects.String()) {
			t.Errorf("%s: %v, want a refusal that names the storage", name, err)
		}
	}
}
