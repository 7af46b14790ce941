package exec

import (
	"log/slog"
	"maps"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Watermark is event time in milliseconds since the epoch: no row with an earlier or equal time will follow.
type Watermark int64

// MaxWatermark ends event time: sent once by every bounded source. NoWatermark is "none yet".
const (
	MaxWatermark Watermark = 1<<63 - 1
	NoWatermark  Watermark = -1 << 63
)

// Emitter takes an operator's output. b is borrowed for the call. Emit blocks under backpressure and fails only when
// the job is stopping or a downstream operator failed.
type Emitter interface {
	Emit(b *batch.Batch) error
}

// Operator is one step of a subtask. Its methods run on the subtask's goroutine, never concurrently.
type Operator interface {
	// Open is called once before the first batch; restored state is available through s.
	Open(s Subtask) error
	// Process takes a batch from input port (0-based).
	Process(port int, b *batch.Batch, out Emitter) error
	// OnWatermark fires event-time timers up to w. The runtime forwards w afterwards.
	OnWatermark(w Watermark, out Emitter) error
	// OnBarrier is the synchronous part of a checkpoint: emit what is buffered, return small state (nil = none).
	// Keyed state in tables is sealed by the runtime right after.
	OnBarrier(b checkpoint.Barrier, out Emitter) ([]byte, error)
	// Close releases resources; also after errors.
	Close() error
}

// ProcessingTimer is an operator that also acts on the wall clock.
type ProcessingTimer interface {
	// NextTimer is the earliest processing time (ms) it wants to be woken at; ok is false when none.
	NextTimer() (at int64, ok bool)
	// OnTimer is called on the subtask's goroutine when now (ms) has reached NextTimer.
	OnTimer(now int64, out Emitter) error
}

// Subtask is all an operator may know of its place.
type Subtask interface {
	ID() checkpoint.SubtaskID
	Parallelism() int
	// Table opens keyed state. Called in Open.
	Table(o checkpoint.TableOptions) (checkpoint.Table, error)
	// Restored is the small state of every subtask of this operator in the restored checkpoint, by old subtask index;
	// nil on a fresh start. With unchanged parallelism entry ID().Index is this subtask's own.
	Restored() [][]byte
	// OwnsKeyGroup tells whether this subtask owns key group g now.
	OwnsKeyGroup(g int) bool
	// Now is the processing time in ms.
	Now() int64
	Counter(name string) *Counter
	Log() *slog.Logger
}

// Ship is how an edge distributes rows over the consumer's subtasks.
type Ship uint8

// The strategies.
const (
	Forward   Ship = iota // subtask i to subtask i (equal parallelism); chained into one goroutine
	Hash                  // by key group of the key columns
	Rebalance             // round-robin by batch, where parallelism differs
)

// String is "forward", "hash" or "rebalance".
func (s Ship) String() string { return [...]string{"forward", "hash", "rebalance"}[s] }

// Edge carries rows from node From to input port Port of the node that holds it.
type Edge struct {
	From int // index into Graph.Nodes
	Ship Ship
	// Keys are columns of the producer's output. Hash: rows go where they say. Forward: rows are there already; nil when
	// the producer's rows are not distributed by columns.
	Keys []int
	// Aligned edges are never overtaken by barriers: what is on them means something only to a plan of the same settings.
	Aligned bool
}

// Node is an operator of the physical graph. Exactly one of Source, Operator and Sink is set.
type Node struct {
	ID          checkpoint.OperatorID
	Name        string // for people: EXPLAIN, metrics, errors
	Parallelism int
	Inputs      []Edge        // one per input port, in port order
	Output      *types.Schema // nil for sinks
	Source      *SourceNode
	Operator    func() Operator // a new instance per subtask
	Sink        *SinkNode
}

// SourceNode reads a table.
type SourceNode struct {
	Spec      connectors.SourceSpec
	Connector *connectors.Connector
	// Rows are computed from the connector's columns before watermarks: computed columns. nil = the columns as read.
	Rows []expr.Expr
	// Watermark is the expression over the rows whose maximum is the watermark, in a timestamp type; nil = none.
	Watermark *WatermarkSpec
}

// WatermarkSpec is how a source generates watermarks.
type WatermarkSpec struct {
	Expr      expr.Expr // over the source's output rows; a TIMESTAMP or TIMESTAMP_LTZ
	Column    int       // the rowtime column in the output
	OnEvent   bool      // scan.watermark.emit.strategy = on-event
	Interval  int64     // ms between periodic watermarks (pipeline.auto-watermark-interval)
	IdleAfter int64     // ms without rows until a split counts as idle; 0 = never
	// MaxAhead is how many ms a row's time may lie ahead of the job's clock to count for the watermark
	// (scan.watermark.max-future-skew); 0 = any.
	MaxAhead int64
	Zone     *time.Location // of a rowtime column without a time zone; nil = it is an instant
}

// SinkNode writes a table.
type SinkNode struct {
	Spec      connectors.SinkSpec
	Connector *connectors.Connector
}

// Graph is a physical plan: nodes in topological order (inputs before consumers).
type Graph struct {
	Nodes   []*Node
	Session expr.Session
	// Identities say, for each source, sink and operator with state, what its part of a checkpoint depends on. A checkpoint fits a
	// graph with the same ones.
	Identities map[checkpoint.OperatorID]string
	// Former are other identities that checkpoints of earlier releases have for the same state.
	Former map[checkpoint.OperatorID]string
	// Operators describe those that Identities name.
	Operators map[checkpoint.OperatorID]checkpoint.OperatorInfo
}

// IdentitiesFor are the identities to hold against a checkpoint: of an operator that it knows by its former one, that.
func (g *Graph) IdentitiesFor(cp *checkpoint.Checkpoint) map[checkpoint.OperatorID]string {
	known := map[string]bool{}
	for _, x := range cp.Identities {
		known[x] = true
	}
	out := maps.Clone(g.Identities)
	for id, former := range g.Former {
		if known[former] && !known[out[id]] {
			out[id] = former
		}
	}
	return out
}
