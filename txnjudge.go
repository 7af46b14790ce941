package streamsql

import (
	"fmt"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// TxnVerdict says what may be done with a transaction that a job left, and is proven by what is at hand.
type TxnVerdict string

// The verdicts.
const (
	// TxnRunning: a process runs its job, which ends it itself.
	TxnRunning TxnVerdict = "running"
	// TxnListed: the newest checkpoint lists it: it must be committed.
	TxnListed TxnVerdict = "listed"
	// TxnOrphan: its lineage is known and no checkpoint lists it: its rows are produced again, it may be aborted.
	TxnOrphan TxnVerdict = "orphan"
	// TxnEnding: its system has decided and is about to end it.
	TxnEnding TxnVerdict = "ending"
	// TxnCommitted: a checkpoint lists it and it is committed; the next start notes that.
	TxnCommitted TxnVerdict = "committed"
	// TxnLost: a checkpoint lists it and it was aborted, or nobody can tell; the next start decides what follows.
	TxnLost TxnVerdict = "lost"
	// TxnUnknown: nothing at hand proves anything.
	TxnUnknown TxnVerdict = "unknown"
)

// TxnReport is a transaction, whose it is, and what may be done with it.
type TxnReport struct {
	connectors.Txn
	JobID, JobName string        // "" = not known
	Lineage        string        // in full where known
	Listed         checkpoint.ID // the checkpoint that lists it, 0 = none
	StateDir       string        // of its job, "" = not at hand
	Verdict        TxnVerdict
	Why, Do        string // for people

	system      connectors.TxnSystem
	job         *txnJob
	committable *checkpoint.Committable
}

// txnJob is what a job's directory says.
type txnJob struct {
	dir       string
	owner     connectors.TxnOwner
	newest    *checkpoint.Checkpoint // nil = none
	older     []*checkpoint.Checkpoint
	confirmed checkpoint.ID
	pid       int  // of the process that runs the job, 0 = none
	held      bool // kept from running by this process
}

// name is the job's name where known.
func (j *txnJob) name() string {
	if len(j.owner.Names) > 0 {
		return j.owner.Names[0]
	}
	return ""
}

// pending are the committables that are not known to be committed, in checkpoint order.
func (j *txnJob) pending() []checkpoint.Committable {
	if j.newest == nil || j.newest.ID <= j.confirmed {
		return nil
	}
	return j.newest.Pending
}

// find is the committable of list that stands for the transaction with identity, and its place; -1 when there is none.
func find(list []checkpoint.Committable, sys connectors.TxnSystem, identity string) int {
	for i := range list {
		if id, ok := sys.Identity(&list[i]); ok && id == identity {
			return i
		}
	}
	return -1
}

// judgeTxn says what the jobs at hand prove about t. The newest manifest decides: it lists everything pre-committed that
// is not known to be committed, so what it does not list was never part of a checkpoint. An id of Kafka before TV2 names
// later transactions too, for which older manifests mean nothing.
func judgeTxn(t connectors.Txn, sys connectors.TxnSystem, jobs []*txnJob) TxnReport {
	r := TxnReport{Txn: t, Verdict: TxnUnknown, system: sys}
	otherLife := false
	for _, j := range jobs {
		job, lineage := sys.Belongs(&t, &j.owner)
		if !job {
			continue
		}
		r.JobID, r.JobName, r.StateDir = j.owner.JobID, j.name(), j.dir
		if otherLife = !lineage; lineage {
			r.job = j
			break
		}
	}
	switch {
	case t.Final:
		r.Verdict, r.Why = TxnEnding, "the coordinator has decided and writes its end to the partitions"
		r.Do = "nothing; list again in a moment"
	case t.Live != "":
		r.Verdict, r.Why = TxnRunning, "in use by "+t.Live
		r.Do = "nothing while the job runs"
		if r.job != nil && r.job.pid == 0 {
			r.Why += "; nobody holds its state directory, so that it was killed and will not look alive for long"
			r.Do = "list again in some seconds"
		}
	case r.job != nil:
		r.judge(sys)
	case otherLife:
		r.Why = "it is of an earlier life of the job, whose checkpoints are not in " + r.StateDir
		r.Do = "find the state directory of that life and give it with --state-dir; if there is none any more, abort it with --force"
	default:
		r.Why = "no state directory at hand knows its job"
		r.Do = "give its job's file and --state-dir; if its state directory is gone for good, abort it with --force"
	}
	return r
}

// judge is judgeTxn for a transaction of a lineage that r.job knows.
func (r *TxnReport) judge(sys connectors.TxnSystem) {
	j := r.job
	if j.newest != nil {
		r.Lineage = j.newest.Lineage
	}
	if i := find(j.pending(), sys, r.Identity); i >= 0 {
		r.committable, r.Listed, r.Lineage = &j.pending()[i], j.newest.ID, j.pending()[i].Lineage
		r.Checkpoint = r.committable.Checkpoint
	}
	switch {
	case j.pid != 0 && !j.held:
		r.Verdict, r.Why = TxnRunning, fmt.Sprintf("process %d runs its job", j.pid)
		r.Do = "nothing while the job runs"
	case r.committable != nil:
		r.Verdict, r.Why = TxnListed, fmt.Sprintf("checkpoint %d is durable and lists it: its rows are not produced again", j.newest.ID)
		r.Do = "run the job again, or commit it; never abort it"
	case r.Unique && j.listedBefore(sys, r.Identity) != 0:
		id := j.listedBefore(sys, r.Identity)
		r.Why = fmt.Sprintf("checkpoint %d lists it and is noted as committed, and yet it is open: was the system restored from a backup?", id)
		r.Do = "find out whether its rows are there before ending it by hand"
	case j.newest == nil:
		r.Verdict, r.Why = TxnOrphan, "its job has published no checkpoint: all its rows are produced again"
		r.Do = "run the job again, or abort it"
	default:
		r.Verdict, r.Why = TxnOrphan, fmt.Sprintf("checkpoint %d, the newest, does not list it: its rows are produced again", j.newest.ID)
		r.Do = "run the job again, or abort it"
	}
}

// listedBefore is the retained checkpoint that lists the transaction although its output is known to be committed.
func (j *txnJob) listedBefore(sys connectors.TxnSystem, identity string) checkpoint.ID {
	list := j.older
	if j.newest != nil && j.newest.ID <= j.confirmed {
		list = append([]*checkpoint.Checkpoint{j.newest}, list...)
	}
	for _, c := range list {
		if find(c.Pending, sys, identity) >= 0 {
			return c.ID
		}
	}
	return 0
}

// judgeGone is the report of a committable whose transaction its system does not hold open.
func judgeGone(c *checkpoint.Committable, j *txnJob, sys connectors.TxnSystem, o checkpoint.Outcome, why string) TxnReport {
	r := TxnReport{JobID: j.owner.JobID, JobName: j.name(), Lineage: c.Lineage, Listed: j.newest.ID, StateDir: j.dir, system: sys, job: j, committable: c}
	r.Txn = connectors.Txn{ID: string(c.Sink), System: sys.Name(), State: o.String(), Started: c.CreatedAt, Checkpoint: c.Checkpoint, Detail: sys.Describe(c, time.Now())}
	r.Why, r.Do = why, "run the job again: it goes back to the checkpoint before when that is exact, else it stops and says what is lost"
	switch o {
	case checkpoint.OutcomeCommitted:
		r.Verdict, r.Why, r.Do = TxnCommitted, "it is committed", "nothing; the next start of the job notes it"
	case checkpoint.OutcomeOpen:
		r.Verdict, r.Why, r.Do = TxnEnding, "its end is being written", "nothing; list again in a moment"
	case checkpoint.OutcomeAborted:
		r.Verdict, r.Why = TxnLost, "it was aborted: it timed out, or somebody ended it"
	default:
		r.Verdict = TxnLost
	}
	return r
}
