package checkpoint

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// TraceState is where a checkpoint is in its life.
type TraceState string

// The states. Only Expired and Failed are worth waking someone; Declined, Subsumed and Aborted belong to a healthy life.
const (
	TraceInProgress TraceState = "IN_PROGRESS" // its barrier is under way
	TraceCompleted  TraceState = "COMPLETED"   // its manifest is durable, its output not yet known to be committed
	TraceCommitted  TraceState = "COMMITTED"   // all of its output is committed
	TraceDeclined   TraceState = "DECLINED"    // a subtask could not take part
	TraceExpired    TraceState = "EXPIRED"     // it took longer than the timeout
	TraceSubsumed   TraceState = "SUBSUMED"    // a later one was complete first
	TraceFailed     TraceState = "FAILED"      // the store or a snapshot failed: I/O
	TraceAborted    TraceState = "ABORTED"     // the job stopped or failed meanwhile
	TraceDiscarded  TraceState = "DISCARDED"   // completed, but its output was proven aborted and the job went back before it
)

// stateOf is the state of a checkpoint that was given up.
func stateOf(c AbortCause) TraceState {
	return [...]TraceState{TraceDeclined, TraceExpired, TraceFailed, TraceSubsumed, TraceAborted}[c]
}

// The kinds of checkpoints.
const (
	KindCheckpoint = "checkpoint"
	KindSavepoint  = "savepoint"
	KindFinal      = "final" // of a job that has read all its input, or was drained
)

// Trace is the life of one checkpoint, for people: what became of it, and when. Times are the job's clock and zero where
// the checkpoint has not come to that point. It decides nothing: a restore reads manifests only.
type Trace struct {
	ID    ID         `json:"id"`
	Kind  string     `json:"kind"`
	State TraceState `json:"state"`
	Fence uint64     `json:"fence"` // fencing number of the process that took it

	Triggered    time.Time `json:"triggered,omitzero"`    // the barrier was sent into the sources
	PreCommitted time.Time `json:"preCommitted,omitzero"` // the last subtask answered: every sink had pre-committed
	Completed    time.Time `json:"completed,omitzero"`    // the manifest was durable: the commit point
	CommitBegun  time.Time `json:"commitBegun,omitzero"`
	Committed    time.Time `json:"committed,omitzero"` // every committable it lists was committed
	Ended        time.Time `json:"ended,omitzero"`     // given up

	Bytes        int64 `json:"bytes"`               // state files and small state
	NewBytes     int64 `json:"newBytes"`            // of these, what the checkpoint before it did not have
	Unaligned    bool  `json:"unaligned,omitempty"` // its barriers overtook rows,
	InFlight     int64 `json:"inFlight,omitempty"`  // of so many bytes, which are in the state files
	Committables int   `json:"committables"`        // pending output it lists, carried ones included
	Commits      int   `json:"commits"`             // attempts to commit
	// CommittedWith is the later checkpoint whose commit covered this one's output, 0 = its own.
	CommittedWith ID `json:"committedWith,omitempty"`
	// Cause says why it was given up; By are the subtasks that declined, or had not answered.
	Cause string   `json:"cause,omitempty"`
	By    []string `json:"by,omitempty"`
	// Subtasks are those that answered, slowest first; the file keeps the first few.
	Subtasks []SubtaskTrace `json:"subtasks,omitempty"`
	Answered int            `json:"answered"` // subtasks that acked it,
	Of       int            `json:"of"`       // of so many
	// Restored is the restore before it, when it is the first checkpoint after one.
	Restored *Restored `json:"restored,omitempty"`
	// Waiting are the tasks where the barrier is now, of a checkpoint in progress; where it was, of one that expired.
	Waiting []Waiting `json:"waiting,omitempty"`
}

// SubtaskTrace is one subtask's part of a checkpoint.
type SubtaskTrace struct {
	Subtask SubtaskID     `json:"subtask"`
	Name    string        `json:"name"`
	Total   time.Duration `json:"total"`  // from the trigger to its answer
	Travel  time.Duration `json:"travel"` // until the first barrier arrived
	Align   time.Duration `json:"align"`  // from the first barrier to the last
	Pause   time.Duration `json:"pause"`  // the part of the snapshot that stopped the rows
	Write   time.Duration `json:"write"`  // the part beside the rows, until it answered
	Bytes   int64         `json:"bytes"`
}

// Waiting is a task that has not answered a barrier yet.
type Waiting struct {
	Subtask SubtaskID `json:"subtask"`
	Name    string    `json:"name"`
	What    string    `json:"what"` // what it is doing about the barrier
	Since   time.Time `json:"since"`
}

// String is "name (subtask 0) what".
func (w Waiting) String() string {
	return fmt.Sprintf("%s (subtask %d) %s", w.Name, w.Subtask.Index, w.What)
}

// At is String with how long it has lasted at now.
func (w Waiting) At(now time.Time) string {
	return fmt.Sprintf("%s for %s", w, Short(now.Sub(w.Since)))
}

// Duration is from the trigger to the commit point, or to when it was given up; so far, at now, when it is in progress.
func (t *Trace) Duration(now time.Time) time.Duration {
	switch {
	case t.Triggered.IsZero():
		return 0
	case !t.Completed.IsZero():
		return t.Completed.Sub(t.Triggered)
	case !t.Ended.IsZero():
		return t.Ended.Sub(t.Triggered)
	case t.State == TraceInProgress:
		return max(0, now.Sub(t.Triggered))
	}
	return 0
}

// Slowest is the subtask that answered last, nil when none has.
func (t *Trace) Slowest() *SubtaskTrace {
	if len(t.Subtasks) == 0 {
		return nil
	}
	return &t.Subtasks[0]
}

// String is "name (subtask 0) 1.2s, aligning 0.8s".
func (s *SubtaskTrace) String() string {
	out := fmt.Sprintf("%s (subtask %d) %s", s.Name, s.Subtask.Index, Short(s.Total))
	if s.Align > 0 {
		out += ", aligning " + Short(s.Align)
	}
	return out
}

// Why is the cause with what the checkpoint waits for, on one line; "" when there is nothing to say.
func (t *Trace) Why(now time.Time) string {
	parts := make([]string, 0, 4)
	if t.Cause != "" {
		parts = append(parts, t.Cause)
	}
	for i, w := range t.Waiting {
		if i == 2 {
			parts = append(parts, fmt.Sprintf("and %d more", len(t.Waiting)-i))
			break
		}
		if t.State == TraceInProgress {
			parts = append(parts, w.At(now))
		} else {
			parts = append(parts, w.At(t.Ended))
		}
	}
	return strings.Join(parts, "; ")
}

// Short is a duration in at most three significant digits.
func Short(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(10 * time.Millisecond).String()
	}
	return d.Round(time.Second).String()
}

// sortSlowest sorts by total time, then alignment, then bytes, largest first.
func sortSlowest(ss []SubtaskTrace) {
	slices.SortStableFunc(ss, func(a, b SubtaskTrace) int {
		return cmp.Or(cmp.Compare(b.Total, a.Total), cmp.Compare(b.Align, a.Align), cmp.Compare(b.Bytes, a.Bytes))
	})
}
