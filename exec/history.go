package exec

import (
	"fmt"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// history is what a job remembers of its checkpoints, for people. Its lock may be taken inside the job's, never the other
// way round.
type history struct {
	mu     sync.Mutex
	traces *checkpoint.Traces
	file   *checkpoint.TraceFile
	at     *attempt // the running one
	counts CheckpointCounts
	// failures of the running attempt's coordinator: how many in a row, and how many more are tolerated.
	inARow, left int
	warned       bool // of a p99 that takes much of a transaction's time
}

// CheckpointCounts are checkpoints by what became of them, since Run began.
type CheckpointCounts struct {
	Completed                                    int
	Declined, Expired, Failed, Subsumed, Aborted int
}

// Rate is the share of completed checkpoints among those that completed, expired, failed or were declined: 1 when there
// were none. A subsumed checkpoint did no harm, and an aborted one went down with its job.
func (c CheckpointCounts) Rate() float64 {
	all := c.Completed + c.Declined + c.Expired + c.Failed
	if all == 0 {
		return 1
	}
	return float64(c.Completed) / float64(all)
}

func (c *CheckpointCounts) add(cause checkpoint.AbortCause) {
	switch cause {
	case checkpoint.AbortDeclined:
		c.Declined++
	case checkpoint.AbortExpired:
		c.Expired++
	case checkpoint.AbortFailed:
		c.Failed++
	case checkpoint.AbortSubsumed:
		c.Subsumed++
	case checkpoint.AbortStopped:
		c.Aborted++
	}
}

// open reads what earlier processes left.
func (h *history) open(o *JobOptions) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traces, h.file = checkpoint.OpenTraces(o.Owner, o.Log)
	h.left = o.Checkpoints.TolerableFailed
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.file != nil {
		h.file.Write(h.traces)
		h.file.Close()
	}
}

// begin starts an attempt, which goes on from cp; all output up to there is committed.
func (h *history) begin(at *attempt, cp *checkpoint.Checkpoint, subtasks int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	last := ^checkpoint.ID(0) // a fresh start has committed what was published before
	if cp != nil {
		last = cp.ID
	}
	h.traces.Begin(subtasks, last, at.job.o.Now())
	if cp != nil {
		h.traces.Restore(at.watch.parts)
	}
	h.at, h.inARow, h.left = at, 0, at.job.o.Checkpoints.TolerableFailed
	h.file.Write(h.traces)
}

// end notes that the attempt is over, and why.
func (h *history) end(err error, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	reason := "the job stopped"
	if err != nil {
		reason = "the job failed"
	}
	for _, x := range h.traces.List() {
		if x.State == checkpoint.TraceInProgress {
			h.counts.Aborted++
		}
	}
	h.traces.Interrupt(reason, now)
	h.at = nil
	h.file.Write(h.traces)
}

// event notes what the coordinator is told.
func (h *history) event(e checkpoint.Event) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traces.Event(e)
	switch e := e.(type) {
	case checkpoint.Acked:
		if t := h.at.taskOf(e.Snapshot.Subtask); t != nil {
			h.traces.Walked(e.ID, e.Snapshot.Subtask, shortened(h.at.nameOf(e.Snapshot.Subtask)), h.at.walk.through(e.ID, t), e.Now)
		}
	case checkpoint.Published:
		h.counts.Completed++
	}
	h.file.Write(h.traces)
}

// action notes what the coordinator decides; inARow and left are its failures.
func (h *history) action(a checkpoint.Action, inARow, left int, now time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.inARow, h.left = inARow, left
	if x, ok := a.(checkpoint.Abort); ok {
		h.counts.add(x.Cause)
		if x.Cause == checkpoint.AbortExpired {
			h.traces.WaitedAt(x.ID, h.waiting(x.ID))
		}
	}
	h.traces.Action(a, now)
	h.file.Write(h.traces)
}

func (h *history) measured(id checkpoint.ID, bytes, fresh int64, over overtaken) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.traces.Measured(id, bytes, fresh)
	if over.Unaligned {
		h.traces.Overtaken(id, over.InFlight)
	}
}

// waiting says where the barrier of id is now. The caller holds the lock.
func (h *history) waiting(id checkpoint.ID) []checkpoint.Waiting {
	x := h.traces.Find(id)
	if x == nil || h.at == nil {
		return nil
	}
	answered := map[checkpoint.SubtaskID]bool{}
	for _, s := range x.Subtasks {
		answered[s.Subtask] = true
	}
	return h.at.walk.waiting(id, x.Triggered, h.at.tasks, answered)
}

// find is a copy of the trace of id.
func (h *history) find(id checkpoint.ID) checkpoint.Trace {
	h.mu.Lock()
	defer h.mu.Unlock()
	if x := h.traces.Find(id); x != nil {
		return *x
	}
	return checkpoint.Trace{ID: id}
}

// list are the traces, newest first, with where the barriers in progress are now.
func (h *history) list() []checkpoint.Trace {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.traces == nil {
		return nil
	}
	out := h.traces.List()
	for i := range out {
		if out[i].State == checkpoint.TraceInProgress {
			out[i].Waiting = h.waiting(out[i].ID)
		}
	}
	return out
}

// fill adds what is remembered to a status.
func (h *history) fill(s *CheckpointStatus) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s.Counts, s.FailedInARow, s.TolerableLeft = h.counts, h.inARow, h.left
	if h.traces != nil {
		sum := h.traces.Summary()
		s.Restore = h.traces.Restored()
		s.P50, s.P99, s.CommitP99 = sum.P50, sum.P99, sum.CommitP99
	}
}

// taskOf is the task that runs a subtask.
func (at *attempt) taskOf(id checkpoint.SubtaskID) *task {
	for _, t := range at.tasks {
		for _, m := range t.all {
			if m.id == id {
				return t
			}
		}
	}
	return nil
}

// nameOf is the name of a subtask's operator.
func (at *attempt) nameOf(id checkpoint.SubtaskID) string {
	for _, n := range at.job.g.Nodes {
		if n.ID == id.Operator {
			return n.Name
		}
	}
	return string(id.Operator)
}

// Checkpoints are the job's last checkpoints, newest first, those of earlier processes in the same state directory
// included: what became of each, and where the barriers of those in progress are now.
func (j *Job) Checkpoints() []checkpoint.Trace { return j.history.list() }

// minBudgetSamples is from how many checkpoints on their p99 is worth a warning.
const minBudgetSamples = 5

// checkBudget warns when checkpoints take more than half of the time that a sink's transactions have for one: what is
// left of the transaction timeout after the interval in which rows are written. It is a warning, once: a transaction that
// the other side gives up costs a restart, and output when the whole of a checkpoint's is not given up with it.
func (h *history) checkBudget(at *attempt) {
	h.mu.Lock()
	sum := h.traces.Summary()
	h.mu.Unlock()
	if sum.Samples < minBudgetSamples {
		return
	}
	var tightest *openSink
	var timeout time.Duration
	for _, s := range at.sinks {
		timed, ok := s.sink.(connectors.TimedSink)
		if !ok || s.committer == nil {
			continue
		}
		if t := timed.TransactionTimeout(); t > 0 && (tightest == nil || t < timeout) {
			tightest, timeout = s, t
		}
	}
	if tightest == nil {
		return
	}
	text := budgetWarning(shortened(tightest.node.Name), sum.P99, timeout, at.job.o.Checkpoints.Interval)
	at.job.mu.Lock()
	at.job.last.Warning = text
	at.job.mu.Unlock()
	if text != "" && !h.warned {
		at.job.o.Log.Warn("checkpoints take much of the transaction timeout", "job", at.job.o.Name, "sink", tightest.node.Name,
			"p99", sum.P99, "timeout", timeout, "interval", at.job.o.Checkpoints.Interval)
	}
	h.warned = text != ""
}

// budgetWarning is the warning about a sink, "" when there is none.
func budgetWarning(sink string, p99, timeout, interval time.Duration) string {
	budget := timeout - interval
	if timeout <= 0 || p99 <= budget/2 {
		return ""
	}
	return fmt.Sprintf("checkpoints take %s (p99), more than half of the %s that %s leaves them: transaction timeout %s less checkpoint interval %s",
		checkpoint.Short(p99), checkpoint.Short(max(0, budget)), sink, checkpoint.Short(timeout), checkpoint.Short(interval))
}
