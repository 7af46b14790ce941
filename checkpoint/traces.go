package checkpoint

import (
	"cmp"
	"slices"
	"time"
)

// Traces follows the checkpoints of a job by what its coordinator is told and decides. It does no I/O, has no clock, and
// nothing depends on it. Not safe for concurrent use.
type Traces struct {
	list  []*Trace // by id
	fence uint64
	of    int // subtasks
	// changed are those that have to be written to the file.
	changed []*Trace
	// restored is of the running attempt, carrier the trace that holds it.
	restored *Restored
	carrier  *Trace
}

// keptTraces bounds how many checkpoints are remembered.
const keptTraces = 100

// NewTraces goes on from what was remembered, by id. What was in progress went down with its process.
func NewTraces(old []*Trace, fence uint64) *Traces {
	t := &Traces{list: old, fence: fence}
	for _, x := range t.list {
		if x.State == TraceInProgress {
			x.State, x.Cause = TraceAborted, "the process that took it ended"
		}
	}
	return t
}

// Begin starts an attempt of the job with so many subtasks that goes on from checkpoint restored, 0 = none, all of whose
// output is committed by now. Later ones that had completed were discarded.
func (t *Traces) Begin(subtasks int, restored ID, now time.Time) {
	t.of, t.restored, t.carrier = subtasks, nil, nil
	for _, x := range t.list {
		switch {
		case x.State != TraceCompleted:
		case x.ID <= restored:
			x.State, x.Committed = TraceCommitted, now
			if x.ID != restored && t.Find(restored) != nil {
				x.CommittedWith = restored
			}
			t.touch(x)
		default:
			x.State, x.Ended = TraceDiscarded, now
			x.Cause = "its output was aborted; the job went back before it"
			t.touch(x)
		}
	}
}

// Find is the trace of id, nil when it is not remembered.
func (t *Traces) Find(id ID) *Trace {
	for _, x := range slices.Backward(t.list) {
		if x.ID == id {
			return x
		}
	}
	return nil
}

// List are the traces, newest first. They are copies.
func (t *Traces) List() []Trace {
	out := make([]Trace, 0, len(t.list))
	for _, x := range slices.Backward(t.list) {
		c := *x
		c.Subtasks, c.Waiting = slices.Clone(x.Subtasks), slices.Clone(x.Waiting)
		out = append(out, c)
	}
	return out
}

// Changed are the traces that changed since the last call.
func (t *Traces) Changed() []*Trace {
	out := t.changed
	t.changed = nil
	return out
}

func (t *Traces) touch(x *Trace) {
	if !slices.Contains(t.changed, x) {
		t.changed = append(t.changed, x)
	}
}

// Event notes what the coordinator is told.
func (t *Traces) Event(e Event) {
	switch e := e.(type) {
	case Acked:
		x := t.open(e.ID)
		if x == nil || slices.ContainsFunc(x.Subtasks, func(s SubtaskTrace) bool { return s.Subtask == e.Snapshot.Subtask }) {
			return
		}
		x.Answered++
		x.Subtasks = append(x.Subtasks, SubtaskTrace{Subtask: e.Snapshot.Subtask, Name: string(e.Snapshot.Subtask.Operator),
			Total: max(0, e.Now.Sub(x.Triggered)), Bytes: sizeOf(&e.Snapshot)})
		if x.Answered == x.Of {
			x.PreCommitted = e.Now
		}
	case Published:
		if x := t.open(e.ID); x != nil {
			x.State, x.Completed = TraceCompleted, e.Now
			sortSlowest(x.Subtasks)
			t.touch(x)
		}
	case CommitDone:
		t.firstCommit(e.Now)
		for _, x := range t.list {
			if x.State == TraceCompleted && x.ID <= e.ID {
				x.State, x.Committed = TraceCommitted, e.Now
				if x.ID != e.ID {
					x.CommittedWith = e.ID
				}
				t.touch(x)
			}
		}
	}
}

// Passage is how a barrier went through a subtask's task. Times are zero where they are not known.
type Passage struct {
	Arrived, Aligned, Taken time.Time     // first barrier, last barrier, end of the part that stops the rows
	Pause                   time.Duration // that part
}

// Walked adds what is known of how the barrier of id went through a subtask that has acked it at now.
func (t *Traces) Walked(id ID, s SubtaskID, name string, p Passage, now time.Time) {
	x := t.Find(id)
	if x == nil {
		return
	}
	for i := range x.Subtasks {
		y := &x.Subtasks[i]
		if y.Subtask != s {
			continue
		}
		y.Name, y.Pause = name, p.Pause
		if !p.Arrived.IsZero() {
			y.Travel = max(0, p.Arrived.Sub(x.Triggered))
		}
		if !p.Aligned.IsZero() {
			y.Align = max(0, p.Aligned.Sub(p.Arrived))
		}
		if !p.Taken.IsZero() {
			y.Write = max(0, now.Sub(p.Taken))
		}
	}
}

// Overtaken notes that barriers of checkpoint id overtook rows of so many bytes.
func (t *Traces) Overtaken(id ID, bytes int64) {
	if x := t.Find(id); x != nil {
		x.Unaligned, x.InFlight = true, bytes
	}
}

// Measured notes the size of checkpoint id.
func (t *Traces) Measured(id ID, bytes, fresh int64) {
	if x := t.Find(id); x != nil {
		x.Bytes, x.NewBytes = bytes, fresh
	}
}

// WaitedAt notes where the barrier of id is, or was when it was given up.
func (t *Traces) WaitedAt(id ID, ws []Waiting) {
	if x := t.Find(id); x != nil {
		x.Waiting = ws
		t.touch(x)
	}
}

// open is the trace of a checkpoint in progress.
func (t *Traces) open(id ID) *Trace {
	if x := t.Find(id); x != nil && x.State == TraceInProgress {
		return x
	}
	return nil
}

// Action notes what the coordinator decides.
func (t *Traces) Action(a Action, now time.Time) {
	switch a := a.(type) {
	case Inject:
		x := &Trace{ID: a.Barrier.ID, Kind: KindCheckpoint, State: TraceInProgress, Fence: t.fence, Triggered: now, Of: t.of}
		switch {
		case a.Barrier.Final:
			x.Kind = KindFinal
		case a.Savepoint:
			x.Kind = KindSavepoint
		}
		t.carry(x)
		t.list = append(t.list, x)
		if n := len(t.list) - keptTraces; n > 0 {
			t.list = slices.Delete(t.list, 0, n)
		}
		t.touch(x)
	case Publish:
		if x := t.open(a.Checkpoint.ID); x != nil {
			x.Committables = len(a.Checkpoint.Pending)
		}
	case Commit:
		if x := t.Find(a.ID); x != nil {
			x.Commits = a.Attempt + 1
			if a.Attempt == 0 {
				x.CommitBegun = now
			}
		}
	case Abort:
		if x := t.open(a.ID); x != nil {
			t.end(x, stateOf(a.Cause), a.Reason, now)
			for _, s := range a.Subtasks {
				x.By = append(x.By, s.String())
			}
		}
	}
}

// Interrupt ends what is in progress, because the attempt that took it ended.
func (t *Traces) Interrupt(reason string, now time.Time) {
	for _, x := range t.list {
		if x.State == TraceInProgress {
			t.end(x, TraceAborted, reason, now)
		}
	}
}

func (t *Traces) end(x *Trace, s TraceState, cause string, now time.Time) {
	x.State, x.Cause, x.Ended = s, cause, now
	sortSlowest(x.Subtasks)
	t.touch(x)
}

// sizeOf is the size of a subtask's part: state files and small state.
func sizeOf(s *Snapshot) int64 {
	n := int64(len(s.State))
	for _, f := range s.Files {
		n += f.Size
	}
	return n
}

// TraceSummary is what the remembered checkpoints say about all of them.
type TraceSummary struct {
	P50, P99 time.Duration // of those that completed, trigger to commit point; 0 when none did
	// CommitP99 is from the commit point to the commit.
	CommitP99 time.Duration
	Samples   int
}

// Summary is over the remembered checkpoints that completed.
func (t *Traces) Summary() TraceSummary {
	var took, commits []time.Duration
	for _, x := range t.list {
		if !x.Completed.IsZero() {
			took = append(took, x.Completed.Sub(x.Triggered))
		}
		if !x.Committed.IsZero() && !x.CommitBegun.IsZero() {
			commits = append(commits, x.Committed.Sub(x.Completed))
		}
	}
	return TraceSummary{P50: Quantile(took, 50), P99: Quantile(took, 99), CommitP99: Quantile(commits, 99), Samples: len(took)}
}

// Quantile is the smallest value that at least q percent are not above, 0 of none. It sorts the values.
func Quantile[T cmp.Ordered](values []T, q int) (v T) {
	if len(values) == 0 {
		return v
	}
	slices.Sort(values)
	return values[max(0, (len(values)*q+99)/100-1)]
}
