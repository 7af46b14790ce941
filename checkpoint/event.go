package checkpoint

import (
	"fmt"
	"time"
)

// Event is something that happened, told to Coordinator.Step. Times are the caller's clock: the coordinator has none.
type Event interface{ event() }

// The events. Every event may be repeated or come late: a notice about a checkpoint that is no longer pending changes
// nothing, except that committables in it are kept (they hold rows that will not be produced again).
type (
	// Tick tells the time. Needed at every NextWake.
	Tick struct{ Now time.Time }
	// Due asks for a checkpoint as soon as the limits allow.
	Due struct {
		Now       time.Time
		Savepoint bool
	}
	// Acked is one subtask's snapshot of checkpoint ID. Its committables are those pre-committed at this barrier only.
	Acked struct {
		ID       ID
		Snapshot Snapshot
		Now      time.Time
	}
	// Declined says that a subtask cannot take part in checkpoint ID. Committables are those it had pre-committed at
	// the barrier before it failed: they must not be dropped, later checkpoints carry them.
	Declined struct {
		ID           ID
		Subtask      SubtaskID
		NotReady     bool   // not a failure: the subtask is still starting or a snapshot is still being written
		Reason       string // with NotReady
		Err          error  // else: what failed
		Committables []Committable
		Now          time.Time
	}
	// Published says that the manifest of ID is durable.
	Published struct {
		ID  ID
		Now time.Time
	}
	// PublishFailed says that the manifest of ID could not be made durable; it may be durable nevertheless.
	PublishFailed struct {
		ID  ID
		Err error
		Now time.Time
	}
	// CommitDone says that all committables of the Commit action for ID are committed.
	CommitDone struct {
		ID  ID
		Now time.Time
	}
	// CommitFailed says that the commit of ID has to be repeated, or can never succeed (diag code Lost or Conflict).
	CommitFailed struct {
		ID  ID
		Err error
		Now time.Time
	}
	// Confirmed says that Store.Confirm(ID) is durable.
	Confirmed struct {
		ID  ID
		Now time.Time
	}
	// ConfirmFailed says that Store.Confirm(ID) failed. The committables stay carried.
	ConfirmFailed struct {
		ID  ID
		Err error
		Now time.Time
	}
	// TaskFinished says that a source subtask has read all of its splits. It still forwards barriers. When all of
	// CoordinatorConfig.Sources have finished, the final checkpoint follows.
	TaskFinished struct {
		Subtask SubtaskID
		Now     time.Time
	}
	// StopRequested ends the job.
	StopRequested struct {
		Now  time.Time
		Mode StopMode
	}
)

// StopMode is how a job ends.
type StopMode uint8

// The modes.
const (
	StopNow     StopMode = iota // give up pending checkpoints; the job resumes at its last one
	StopSuspend                 // take a savepoint, commit it, stop; the job resumes there
	StopDrain                   // end event time, take the final checkpoint, commit it, stop: nothing is left to do
)

// String is "now", "suspend" or "drain".
func (m StopMode) String() string { return [...]string{"now", "suspend", "drain"}[m] }

func (Tick) event()          {}
func (Due) event()           {}
func (Acked) event()         {}
func (Declined) event()      {}
func (Published) event()     {}
func (PublishFailed) event() {}
func (CommitDone) event()    {}
func (CommitFailed) event()  {}
func (Confirmed) event()     {}
func (ConfirmFailed) event() {}
func (TaskFinished) event()  {}
func (StopRequested) event() {}

// Action is what the caller of Step must do now, in the order given. Results come back as events.
type Action interface{ action() }

// The actions.
type (
	// Inject sends the barrier into every source subtask. A source ends event time (MaxWatermark) before a Final barrier
	// and sends nothing after it.
	Inject struct {
		Barrier   Barrier
		Savepoint bool
	}
	// Publish makes the manifest durable: Store.Publish. Answer Published or PublishFailed.
	Publish struct{ Checkpoint *Checkpoint }
	// Commit commits the committables, in order, not before After has passed. Answer CommitDone or CommitFailed. There
	// is at most one outstanding Commit.
	Commit struct {
		ID      ID
		Pending []Committable
		Attempt int // 0-based
		After   time.Duration
	}
	// Confirm calls Store.Confirm(ID). Answer Confirmed or ConfirmFailed.
	Confirm struct{ ID ID }
	// NotifyCommitted tells sources and sinks that checkpoint ID is published and all its output is committed.
	NotifyCommitted struct{ ID ID }
	// Abort tells every subtask that checkpoint ID will not complete. Every subtask still answers the barrier, by Acked
	// or Declined: later checkpoints wait for that answer, because it may hold committables.
	Abort struct {
		ID       ID
		Cause    AbortCause
		Reason   string
		Subtasks []SubtaskID // whose answer is missing (expired) or who declined
	}
	// Fail ends this attempt of the job with an error. No action follows it.
	Fail struct{ Err error }
	// Stop ends the job as requested. ID is the last checkpoint, 0 for none. No action follows it.
	Stop struct {
		ID   ID
		Mode StopMode
	}
)

func (Inject) action()          {}
func (Publish) action()         {}
func (Commit) action()          {}
func (Confirm) action()         {}
func (NotifyCommitted) action() {}
func (Abort) action()           {}
func (Fail) action()            {}
func (Stop) action()            {}

// AbortCause is why a checkpoint was given up.
type AbortCause uint8

// The causes. Only AbortExpired and AbortFailed are worth waking someone.
const (
	AbortDeclined AbortCause = iota // a subtask could not take part
	AbortExpired                    // timeout
	AbortFailed                     // the store could not make it durable, or a snapshot failed
	AbortSubsumed                   // a later checkpoint was complete first
	AbortStopped                    // the job is stopping or failed
)

// String is "declined", "expired", "failed", "subsumed" or "aborted".
func (c AbortCause) String() string {
	return [...]string{"declined", "expired", "failed", "subsumed", "aborted"}[c]
}

// String is "operator/index".
func (s SubtaskID) String() string { return fmt.Sprintf("%s/%d", s.Operator, s.Index) }
