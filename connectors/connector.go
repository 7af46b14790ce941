package connectors

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/lint"
	"github.com/streamsql/streamsql/sql/types"
)

// Connector is a kind of external system: a value, listed explicitly by the embedding program. A nil function means
// the connector cannot do that.
type Connector struct {
	Name string // value of the option 'connector'
	Doc  string // one line
	// Options are the options it takes beside those of formats. An unknown option of a table is an error.
	Options []Option
	// OptionPrefixes are prefixes of free-form options, e.g. "properties.".
	OptionPrefixes []string
	// NeedsFormat says that the table must name a format ('format' or 'value.format').
	NeedsFormat bool
	// Metadata lists the metadata columns it supplies or takes.
	Metadata []MetadataColumn
	// SourceMode tells the changelog mode of the table as a source; nil when it is append-only (or decided by Format).
	SourceMode func(t *catalog.Table) (types.ChangelogMode, error)
	// Bounded reports whether the table as a source ends by itself.
	Bounded func(t *catalog.Table) (bool, error)
	// Check validates options, schema and their combination for one use, without contacting anything.
	Check func(t *catalog.Table, use Use) error
	// ReadsFields reports that a source can read single fields of the ROW in column c (a position in t.Columns); nil =
	// never. See SourceSpec.Paths.
	ReadsFields func(t *catalog.Table, c int) bool
	// PushFilter gives what a source makes of a filter of its rows, both conditions over t.Columns: one that is TRUE for every row that
	// the filter is TRUE or fails for; nil = it leaves out no rows, also when PushFilter is nil. watermark is what the table's watermark
	// is computed by, over t.Columns too, nil when none is. Rows that are left out still count for it: whenever Next returns, its
	// greatest value over the split's rows is that over all rows as far as the split's position. Nor may a row be left out that
	// cannot be read: it is an error, or skipped, as the table says.
	PushFilter func(t *catalog.Table, filter, watermark expr.Expr) expr.Expr
	// Ranges says that NewSource keeps to SourceSpec.Range: input that a checkpoint has read can be read again.
	Ranges bool
	// NewSource opens the table for reading.
	NewSource func(ctx context.Context, spec SourceSpec) (Source, error)
	// SinkModes are the deliveries and changelog modes the table can be written with, best first.
	SinkModes func(t *catalog.Table) ([]SinkMode, error)
	// NewSink opens the table for writing.
	NewSink func(ctx context.Context, spec SinkSpec) (Sink, error)
	// Replay tells how the table is read again after a failure; nil: positions are part of each checkpoint.
	Replay func(t *catalog.Table) (Replay, error)
	// Lint finds what works but is hardly meant, or cannot work, about a use of a table; nil finds nothing.
	Lint func(s LintSpec) []lint.Finding
	// Claims are what a job that writes the table claims for itself; nil = nothing.
	Claims func(t *catalog.Table, m SinkMode) []Claim
	// NewLookup opens the table for finding rows by key.
	NewLookup func(ctx context.Context, spec LookupSpec) (Lookup, error)
	// LookupCache tells what to keep of the rows found; nil keeps none.
	LookupCache func(t *catalog.Table) (LookupCache, error)
	// Transactions opens the system of a table to look after transactions that jobs left in it. Only the options that say
	// where the system is are used. Nil = it keeps none.
	Transactions func(t *catalog.Table, embedded string, log *slog.Logger) (TxnSystem, error)
	// Endpoints connects to the servers behind a table, to measure the way to them; the caller closes each. Nil = there are none.
	Endpoints func(ctx context.Context, t *catalog.Table, embedded string, log *slog.Logger) ([]Endpoint, error)
}

// Use is what a statement does with a table.
type Use uint8

// The uses.
const (
	UseSource Use = iota
	UseSink
	UseLookup
)

// MetadataColumn is a metadata key of a connector or format.
type MetadataColumn struct {
	Key      string
	Type     types.Type
	Writable bool
	Doc      string
}

// DeliveryOption is the option by which a table asks for a delivery, of every connector that has several.
const DeliveryOption = "sink.delivery-guarantee"

// Delivery is how a sink's output becomes visible.
type Delivery uint8

// The deliveries.
const (
	// TwoPhaseCommit: output is pre-committed at the barrier and committed after the checkpoint is published.
	TwoPhaseCommit Delivery = iota
	// IdempotentUpsert: rows are written at once by primary key; replay rewrites the same final state.
	IdempotentUpsert
	// AtLeastOnce: rows are flushed at the barrier; replay can repeat them.
	AtLeastOnce
	// NoGuarantee: rows may be lost or repeated; only when the user asked for it ('sink.delivery-guarantee'='none').
	NoGuarantee
)

// String is the name EXPLAIN prints.
func (d Delivery) String() string {
	return [...]string{"two-phase commit", "idempotent upsert", "at-least-once", "none"}[d]
}

// SinkMode is one way a table can be written.
type SinkMode struct {
	Delivery  Delivery
	Changelog types.ChangelogMode // the row kinds it accepts
	Key       []string            // columns the sink addresses rows by (an upsert changelog), the table's primary key
	Reason    string              // plain words for EXPLAIN: why this delivery
	Weakness  string              // what the guarantee does not cover, "" when nothing
	Commit    Commitment          // of a TwoPhaseCommit
	Behind    string              // who is outside behind the table, "" = whoever reads it
}

// JobInfo names the job a source or sink belongs to. It is stable across restarts of the job.
type JobInfo struct {
	Name    string // pipeline.name
	ID      string // stable id of the job within its state directory
	Lineage string
	Fence   uint64 // fencing number of this incarnation
	// CheckpointInterval, CheckpointTimeout and MinPause in milliseconds, for preflight checks of transaction timeouts.
	CheckpointInterval, CheckpointTimeout, MinPause int64
	// MaxConcurrentCheckpoints bounds the transactions open at a time.
	MaxConcurrentCheckpoints int
	// MaxDowntime is how long the job may be down, in milliseconds, before a transaction that it has open may be ended.
	MaxDowntime int64
	// Owned returns an error once another process has taken the job's state directory over. A sink asks before it takes
	// from others what this job holds outside, when it had to wait before. Nil when nobody can take it.
	Owned func() error
	// Shared is what the sources and sinks of one attempt of the job share; nil when nothing is shared.
	Shared *Shared
	// DeadLetter receives records that a table's policy sends there; see RecordPolicy.
	Log *slog.Logger
}

// SourceSpec is what a source is opened with.
type SourceSpec struct {
	Table *catalog.Table
	// Columns are the positions in Table.Columns to produce, in output order: physical and metadata columns only. The
	// decoder fills just these.
	Columns []int
	// Paths, when not nil, has a path per entry of Columns: nil for the whole column, else the positions of the field to
	// produce in place of the column's ROW and of the ROWs in it, outermost first. A field of a NULL ROW is NULL. One
	// column may then appear more than once, but never whole and in part.
	Paths [][]int
	// Schema is the output: names and types of Columns, or of the fields.
	Schema *types.Schema
	// Filter is what PushFilter gave, nil = nothing: rows for which it is not TRUE need not be produced. The engine filters again.
	Filter expr.Expr
	// Marked says that a watermark is made of the rows, which those left out count for too.
	Marked  bool
	Job     JobInfo
	Session expr.Session
	// Embedded is the address of the embedded broker for tables without bootstrap servers; "" when there is none.
	Embedded string
	// Parallel is the number of subtasks that will read; 0 = unknown. Only a source that makes up its splits may use it,
	// and its positions must stay valid when it changes.
	Parallel int
	// Range, when not nil, bounds the source: of each split what lies in its range, of others nothing. For connectors
	// that say Ranges; whatever the table's options say of where reading ends, and of where it starts when From is given.
	Range map[checkpoint.Split]SplitRange
}

// SplitRange is a part of a split, given by positions.
type SplitRange struct {
	From []byte // nil = where the table says
	To   []byte // the position behind the last record
}

// Path is that of output column i; nil = the whole column.
func (s *SourceSpec) Path(i int) []int {
	if s.Paths == nil {
		return nil
	}
	return s.Paths[i]
}

// Source is a table being read by a job.
type Source interface {
	// Splits lists the current splits. It is polled for new ones every DiscoveryInterval when that is positive.
	Splits(ctx context.Context) ([]checkpoint.Split, error)
	// Open makes a reader of the given splits; Next nil means the table's configured start. It is called once per
	// subtask, with all splits of that subtask; with none when they follow by Add.
	Open(ctx context.Context, splits []checkpoint.Position) (Reader, error)
	// DiscoveryInterval in milliseconds, 0 = never.
	DiscoveryInterval() int64
	// Committed tells that a checkpoint with these positions is durable (for group offsets: information only).
	Committed(ctx context.Context, positions []checkpoint.Position)
	Close() error
}

// Reader reads a subtask's splits. It is used by one goroutine.
type Reader interface {
	// Next blocks until rows are available, ctx is done, or a few milliseconds passed without rows; it appends rows of
	// ONE split to out and returns that split positioned after them. Zero rows with a nil error are allowed. At the end
	// of a split it returns Done with the split's final position; io.EOF when every split is exhausted.
	Next(ctx context.Context, out *batch.Builder) (Progress, error)
	// Add gives the reader a split that was discovered after the job's first start: with a nil position it is read from
	// its beginning, whatever the table's configured start (a later row of it would be lost otherwise).
	Add(ctx context.Context, p checkpoint.Position) error
	Close() error
}

// Progress is what one Next read.
type Progress struct {
	Split    checkpoint.Split
	Position []byte // where to resume Split after the rows of this call; nil when unchanged
	Done     bool   // Split has no more rows, ever
	Records  int    // external records consumed, skipped ones included
	Skipped  int    // of these, records left out by the table's policy for bad records
	Bytes    int64
	Lag      int64 // records behind the end of the split, -1 when unknown
}

// ErrEnd is returned by Next when every split is exhausted.
var ErrEnd = io.EOF

// SinkSpec is what a sink is opened with.
type SinkSpec struct {
	ID       checkpoint.SinkID
	Table    *catalog.Table
	Schema   *types.Schema // of the rows to write: the table's persisted columns in declared order
	Mode     SinkMode
	InputKey []int // upsert key of the input, nil when unknown
	// Rowtime is 1 + the position in Schema of the rows' event time (table.exec.sink.rowtime-inserter), 0 when there is
	// none: the timestamp of external records that have one.
	Rowtime  int
	Parallel int
	Job      JobInfo
	Session  expr.Session
	Embedded string
}

// Sink is a table being written by a job.
type Sink interface {
	// Preflight contacts the system and refuses what cannot work, before a row is read: missing topic or table, wrong
	// types, limits. It changes nothing.
	Preflight(ctx context.Context) error
	// Committer finishes transactions of this sink; nil when it has none to finish. A sink whose delivery is not TwoPhaseCommit may have
	// a committer for what an earlier run of the job, with another delivery, left in a checkpoint.
	Committer(ctx context.Context) (checkpoint.Committer, error)
	// Open makes the writer of a subtask. Called after restore committed and aborted what it had to.
	Open(ctx context.Context, subtask int) (Writer, error)
	Close() error
}

// TimedSink is a Sink whose open transactions the other side aborts when they get old.
type TimedSink interface {
	// TransactionTimeout is how old a transaction may become before it is aborted, 0 = unknown. It is asked after Preflight.
	TransactionTimeout() time.Duration
}

// TransactionLister is a Sink that knows its open transactions better than by what was written: by the other side's names.
type TransactionLister interface {
	// OpenTransactions are those of this process that are not known to be committed or aborted. It does not ask the other side.
	OpenTransactions() []OpenTransaction
}

// OpenTransaction is a transaction that rows are written to, or that waits for its checkpoint to be committed.
type OpenTransaction struct {
	ID           string
	Begun        time.Time // by the wall clock
	PreCommitted bool
}

// Sweeper is a Sink that leaves things behind which nobody sees or waits for, when a process goes on that has been replaced:
// what that one pre-committed and never published.
type Sweeper interface {
	// Sweep removes unfinished output of a lineage of which nothing is to be committed any more.
	Sweep(ctx context.Context, lineage string) error
}

// Writer writes a subtask's rows. It is used by one goroutine.
type Writer interface {
	// Write takes the rows of b with their kinds. It may buffer; b is borrowed.
	Write(ctx context.Context, b *batch.Batch) error
	// PreCommit ends checkpoint id: on return all rows so far survive this process. Two-phase writers return
	// committables and start the next transaction on the next Write; others flush and return none.
	PreCommit(ctx context.Context, id checkpoint.ID) ([]checkpoint.Committable, error)
	// Committed tells that the manifest of checkpoint id is durable and its committables are committed.
	Committed(ctx context.Context, id checkpoint.ID) error
	// Close releases everything. It neither commits nor aborts a pre-committed transaction.
	Close() error
}
