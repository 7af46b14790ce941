package connectors

import (
	"context"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// Txn is a transaction that a sink of some job left open or prepared: what its id tells, and what its system says of it.
type Txn struct {
	ID      string        // transactional id (Kafka), gid (PostgreSQL)
	System  string        // which cluster or database, for people
	State   string        // the system's word for it: Ongoing, PrepareCommit, prepared …
	Started time.Time     // zero = unknown
	Timeout time.Duration // after which its system aborts it by itself; 0 = never
	Job     string        // the part of the id that names the job; PostgreSQL: a hash of its id
	// Lineage is the part of the id that names the lineage, in the connector's spelling; "" when the id has none.
	Lineage    string
	Checkpoint checkpoint.ID // 0 = the id does not tell
	Detail     string        // for people: producer and topics, user
	// Identity is equal to that of the committable that lists it. Unique says that no later transaction can have it.
	Identity string
	Unique   bool
	// Live names the process that uses the id now; "" = nobody.
	Live string
	// Final says that its outcome is decided and only its end is outstanding.
	Final bool
}

// TxnOwner is what is known of a job that may have left transactions.
type TxnOwner struct {
	JobID    string
	Names    []string // of the job, where known
	Sinks    []checkpoint.SinkID
	Lineages []string
	Prefixes []string // transactional prefixes its tables configure
	Listed   []checkpoint.Committable
}

// TxnSystem is a cluster or database that keeps transactions of sinks.
type TxnSystem interface {
	// Name is which one, for people.
	Name() string
	// List are the transactions of streamsql jobs that are open or prepared, and those under prefixes.
	List(ctx context.Context, prefixes []string) ([]Txn, error)
	// Belongs tells whether t is of the job o and of one of its lineages; lineage is false for another life of the job.
	Belongs(t *Txn, o *TxnOwner) (job, lineage bool)
	// Identity is that of the transaction a committable stands for; ok is false when it is not one of this system.
	Identity(c *checkpoint.Committable) (identity string, ok bool)
	// Describe is the committable's transaction for people: age against timeout and the verdict to expect at now.
	Describe(c *checkpoint.Committable, now time.Time) string
	// Outcome is what became of it, and why that is unknown.
	Outcome(ctx context.Context, c *checkpoint.Committable) (checkpoint.Outcome, string, error)
	// Abort ends t, whose owner must not run; nil also when it has ended meanwhile. It keeps a job that starts meanwhile
	// from using the id.
	Abort(ctx context.Context, t *Txn) error
	// Commit commits what c stands for; idempotent, see checkpoint.Committer.
	Commit(ctx context.Context, c *checkpoint.Committable) error
	Close() error
}
