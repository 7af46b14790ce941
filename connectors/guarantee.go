package connectors

import (
	"context"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/lint"
)

// Guarantee is what a link of the chain from a source's position to a sink's commit is worth after a failure, best first.
// The chain is worth what its weakest link is.
type Guarantee uint8

// The guarantees.
const (
	ExactlyOnce Guarantee = iota // each row has its effect once
	FinalState                   // each key ends with the right row; what was there before may be seen again
	CanRepeat                    // rows can have their effect more than once
	CanLose                      // rows can be lost, too
)

// String is the name EXPLAIN GUARANTEES prints.
func (g Guarantee) String() string {
	return [...]string{"exactly once", "exactly once in the final table", "rows can repeat", "rows can be lost"}[g]
}

// MarshalText is the name for programs.
func (g Guarantee) MarshalText() ([]byte, error) {
	return []byte([...]string{"exactly-once", "final-state", "at-least-once", "none"}[g]), nil
}

// Replay is how a table is read again after a failure.
type Replay struct {
	Position string    // what a checkpoint keeps of it: "the offset of every partition"
	Worth    Guarantee // CanRepeat, CanLose when the options weaken it
	Weakness []string  // what weakens it, a clause each
}

// Commitment is how a two-phase sink keeps its promise: the answers to the three questions of EXPLAIN GUARANTEES.
type Commitment struct {
	Held  string // where the rows are between the barrier and the commit, and who keeps them
	ID    string // what the checkpoint lists of them
	Known string // how a restored job learns whether they were committed
	Ends  string // what can end them without the job, and what then; "" = nothing
	// Worth is weaker than ExactlyOnce when the table's options give up rows that were ended so.
	Worth Guarantee
	// Unit is what the system has open, "Kafka transactions"; "" when it has nothing open. PerSubtask says that every subtask
	// has one per checkpoint; else a job has one.
	Unit       string
	PerSubtask bool
	// Most bounds the open ones where the rows of a checkpoint can be in several, of the job or of a subtask; 0 = one per checkpoint.
	Most int
}

// Open is how many transactions a sink can have open at a time: one that is written, and one prepared per checkpoint in flight.
func (c Commitment) Open(parallel, concurrent int) int {
	n := max(c.Most, max(concurrent, 1)+1)
	if c.PerSubtask {
		n *= max(parallel, 1)
	}
	return n
}

// LintSpec is a use of a table that a connector is asked about, without contacting anything.
type LintSpec struct {
	Table    *catalog.Table
	Use      Use
	Mode     SinkMode // of a sink
	Parallel int
	Job      JobInfo
}

// Claim is something of which only one live job may write under it: two jobs with equal claims disturb each other.
type Claim struct {
	Key    string // equal for claims that collide
	What   string // for messages: "transactional prefix 'x'"
	Option string // that says so
}

// Inspector is a Sink, Source or Lookup that can tell more than whether it would start: what it found, and what is weak.
type Inspector interface {
	// Inspect contacts the system and changes nothing. The error is what would keep the job from starting, as Preflight's.
	Inspect(ctx context.Context) (Inspection, error)
}

// Inspection is what a system says about a table.
type Inspection struct {
	Facts    []string // what was asked and answered: "topic orders has 4 partitions"
	Findings []lint.Finding
}
