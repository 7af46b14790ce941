package checkpoint

import (
	"context"
	"time"
)

// ID numbers the checkpoints of a lineage from 1, without reuse.
type ID uint64

// OperatorID names an operator stably across restarts: it derives from the plan's path and SQL names, never from a
// counter of this process.
type OperatorID string

// SubtaskID is one parallel instance of an operator.
type SubtaskID struct {
	Operator OperatorID
	Index    int // 0-based
}

// Barrier separates the rows of checkpoint ID from later ones.
type Barrier struct {
	ID ID
	// Final marks the last barrier of a drained job: after it no rows follow.
	Final bool
}

// SinkID names a sink table of a job, for committables and committers.
type SinkID string

// Committable is one pre-committed unit of output: all a Committer needs to finish it from another process.
type Committable struct {
	Sink       SinkID
	Checkpoint ID     // whose rows it holds
	Subtask    int    // the writer
	Lineage    string // the job's lineage when it was created
	Payload    []byte // the connector's own encoding, versioned by its first byte
	CreatedAt  time.Time
}

// Split names a unit of a source, e.g. "orders-3" for a Kafka partition or a file path.
type Split string

// Position is where to resume a split, in the connector's encoding.
type Position struct {
	Split Split
	Next  []byte
}

// Snapshot is one subtask's part of a checkpoint.
type Snapshot struct {
	Subtask      SubtaskID
	Positions    []Position    // sources
	Committables []Committable // sinks
	State        []byte        // small operator state (watermarks, timers), the operator's encoding
	Files        []StateFile   // keyed state: immutable files, local to the job's store
}

// StateFile is an immutable file a manifest refers to. Path is relative to the job's directory.
type StateFile struct {
	Path   string
	Size   int64
	CRC32C uint32
}

// Checkpoint is a manifest: everything needed to resume.
type Checkpoint struct {
	ID          ID
	Lineage     string                // UUID made at a stateless start; carried by every later checkpoint
	Identities  map[OperatorID]string // of the graph that made it: it can be restored into one with the same ones
	Fence       uint64                // owner's fencing number that wrote it
	Parallelism map[OperatorID]int
	Subtasks    []Snapshot
	// Pending are all committables not confirmed committed: this checkpoint's and carried ones, in checkpoint order.
	Pending   []Committable
	StartedAt time.Time
	Savepoint bool
	Final     bool // the job drained; a restore has nothing to do but commit

	// Operators describe those that Identities name; Job is whose checkpoint it is. Both are for people.
	Operators map[OperatorID]OperatorInfo `json:",omitempty"`
	Job       JobInfo                     `json:",omitzero"`
	// Ancestors are the checkpoints of other lineages that this one came from, the nearest first.
	Ancestors []Origin `json:",omitempty"`
	// Degraded are the guarantees that the job, or one whose savepoint it came from, gave up; see Degradation.
	Degraded []Degradation `json:",omitempty"`
	// From is the job's directory that a savepoint was taken from, "" for a checkpoint.
	From string `json:",omitempty"`
}

// Outcome is what became of a committable, as far as it can be proven.
type Outcome uint8

// The outcomes.
const (
	OutcomeOpen      Outcome = iota // not decided; Commit can still make it so
	OutcomeCommitted                // proven committed
	OutcomeAborted                  // proven gone: its rows must be produced again or are lost
	OutcomeUnknown                  // cannot be proven either way
	OutcomeGivenUp                  // proven gone, and the user has said to go on without these rows where nothing else helps
)

// String is "open", "committed", "aborted", "unknown" or "given up".
func (o Outcome) String() string {
	return [...]string{"open", "committed", "aborted", "unknown", "given up"}[o]
}

// Committer finishes external transactions of one sink. It is stateless between calls: all it knows is in the
// committables and its connector's configuration.
type Committer interface {
	// Classify tells the outcome of each committable without changing anything. Used on restore.
	Classify(ctx context.Context, cs []Committable) ([]Outcome, error)
	// Commit makes the committables visible, in order. Idempotent: a committable already committed is skipped. It is
	// repeated until nil; an error whose diag code is Lost means the outcome can never be reached and stops the job.
	Commit(ctx context.Context, cs []Committable) error
	// Abort undoes what this sink left open or prepared, except keep. Called on restore, after Commit of what the
	// restored checkpoint lists and before any writer opens; it also fences writers of earlier incarnations.
	Abort(ctx context.Context, keep []Committable) error
	Close() error
}

// Store keeps the checkpoints of one job. All methods may be called from one goroutine at a time.
type Store interface {
	// Publish makes c the newest checkpoint, atomically and durably: the commit point.
	Publish(ctx context.Context, c *Checkpoint) error
	// Confirm records durably that all committables pending in checkpoint id are committed.
	Confirm(ctx context.Context, id ID) error
	// Discard marks checkpoints from id on as unusable (their output was proven aborted); their ids stay used.
	Discard(ctx context.Context, from ID) error
	// Latest is the newest usable checkpoint and whether it is confirmed. ErrNone when there is none.
	Latest(ctx context.Context) (c *Checkpoint, confirmed bool, err error)
	// List are the retained usable checkpoints, newest first.
	List(ctx context.Context) ([]*Checkpoint, error)
	// Lineages are the lineages that may have left output open outside, oldest first; Begin notes one durably before
	// its first writer opens, End forgets those that have nothing open any more.
	Lineages(ctx context.Context) ([]string, error)
	Begin(ctx context.Context, lineage string) error
	End(ctx context.Context, lineages ...string) error
	// NextID is the smallest id never used in this lineage.
	NextID() ID
}
