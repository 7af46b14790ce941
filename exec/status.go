package exec

import (
	"sort"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// Names of counters that Status adds up over the job.
const (
	CounterLate    = "late-dropped"    // rows that came after their window was closed
	CounterSkipped = "skipped-records" // records left out by the table's policy for bad records
	CounterFuture  = "future-rows"     // rows that lay too far ahead of the clock to move event time
)

// The runtime's own counters.
const (
	counterIn        = "rows-in"
	counterOut       = "rows-out"
	counterWatermark = "watermark"
)

// Status is a job at a moment. Counts are since Run began, restarts included: rows that a restart repeated count twice.
type Status struct {
	Name, Lineage string
	State         State
	Err           error // why it failed, or the cause of the last restart
	Started       time.Time
	Restarts      int
	Nodes         []NodeStatus  // in the graph's order
	Splits        []SplitStatus // by node, split
	Sinks         []SinkStatus  // in the graph's order
	Checkpoint    CheckpointStatus
	LateDropped   int64
	Skipped       int64
	Future        int64 // rows that lay too far in the future to move event time
	ReadAgain     int64 // rows read a second time after restarts of the job in this process
	// Degraded are the guarantees that the job gave up because the user had said so, in earlier processes too, oldest
	// first; not to be changed.
	Degraded []checkpoint.Degradation
	// GivenUp are those of Degraded that no checkpoint listed when this run began: news.
	GivenUp []checkpoint.Degradation
	// Store is how keyed state is held.
	Store checkpoint.StoreFigures
	// Syncs are how long the state directory's disk took to make files durable.
	Syncs checkpoint.SyncFigures
}

// NodeStatus is an operator, its subtasks added up.
type NodeStatus struct {
	ID              checkpoint.OperatorID
	Name            string
	Parallelism     int
	RowsIn, RowsOut int64
	Watermark       Watermark // the lowest of its subtasks
	Counters        map[string]int64
}

// SplitStatus is a split of a source.
type SplitStatus struct {
	Node           checkpoint.OperatorID
	Split          checkpoint.Split
	Records, Bytes int64
	Lag            int64 // records behind the end, -1 when unknown
	Watermark      Watermark
	Idle           bool
	ReadAgain      int64 // of Records, those that had been read before
}

// CheckpointStatus are the job's checkpoints.
type CheckpointStatus struct {
	Last      checkpoint.ID // newest durable one, 0 = none
	At        time.Time     // when it became durable
	Duration  time.Duration // of it, from injection to durable
	Pause     time.Duration // of it, the longest that a subtask stood still to take its part
	Alignment time.Duration // of it, the longest from the first barrier at a gate to the last
	Unaligned bool          // of it: barriers overtook rows
	InFlight  int64         // of it: bytes of what they overtook
	Overtaken int           // checkpoints completed whose barriers overtook
	Bytes     int64         // of it: state files and small state
	Written   int64         // bytes that all of them added: files that the one before did not have, small state
	Committed checkpoint.ID // newest one whose output is committed
	Completed int
	GivenUp   int    // expired, declined, failed or aborted
	Cause     string // of the last one given up
	Restored  checkpoint.ID
	Restore   *checkpoint.Restored // how the running attempt was restored, nil = it began afresh; not to be changed
	Pending   int                  // committables of the newest checkpoint not yet confirmed
	// Counts are all checkpoints by what became of them. P50 and P99 are over the last ones, from the trigger to the commit
	// point, CommitP99 from there to the commit.
	Counts              CheckpointCounts
	P50, P99, CommitP99 time.Duration
	// FailedInARow have failed since the last one that completed; TolerableLeft more may before the job fails, -1 = any number.
	FailedInARow, TolerableLeft int
	// Warning says that checkpoints take too much of a sink's transaction timeout, "" when they do not.
	Warning string
}

type splitKey struct {
	op    checkpoint.OperatorID
	split checkpoint.Split
}

// splitMeter finds or makes the figures of a split.
func (j *Job) splitMeter(op checkpoint.OperatorID, sp checkpoint.Split) *splitMeter {
	j.mu.Lock()
	defer j.mu.Unlock()
	m := j.meters[splitKey{op, sp}]
	if m == nil {
		m = &splitMeter{}
		m.lag.Set(-1)
		j.meters[splitKey{op, sp}] = m
	}
	return m
}

// Status is the job now.
func (j *Job) Status() Status {
	var sinks []SinkStatus // asked for without the job's lock: a connector may be busy
	for _, m := range j.sinks {
		sinks = append(sinks, m.status(j.o.Now()))
	}
	store := j.store.Figures(j.o.Memory)
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Status{Name: j.o.Name, Lineage: j.lineage, State: j.state, Err: j.err, Started: j.started,
		Restarts: j.restarts, Checkpoint: j.last, Sinks: sinks, Degraded: j.degraded, Store: store, Syncs: j.o.Owner.Syncs()}
	s.GivenUp = checkpoint.Since(j.known, j.degraded)
	if s.Err == nil {
		s.Err = j.cause
	}
	j.history.fill(&s.Checkpoint)
	for k, m := range j.meters {
		s.Splits = append(s.Splits, SplitStatus{Node: k.op, Split: k.split, Records: m.records.Load(),
			Bytes: m.bytes.Load(), Lag: m.lag.Load(), Watermark: Watermark(m.watermark.Load()), Idle: m.idle.Load() != 0, ReadAgain: m.again.Load()})
		s.ReadAgain += m.again.Load()
	}
	sort.Slice(s.Splits, func(a, b int) bool {
		x, y := s.Splits[a], s.Splits[b]
		if x.Node != y.Node {
			return x.Node < y.Node
		}
		return lessSplit(x.Split, y.Split)
	})
	byOp := j.counters.byOperator()
	for _, n := range j.g.Nodes {
		ns := NodeStatus{ID: n.ID, Name: n.Name, Parallelism: n.Parallelism, Watermark: NoWatermark,
			Counters: map[string]int64{}}
		for name, values := range byOp[n.ID] {
			sum, low := int64(0), int64(MaxWatermark)
			for _, v := range values {
				sum += v
				low = min(low, v)
			}
			switch name {
			case counterIn:
				ns.RowsIn = sum
			case counterOut:
				ns.RowsOut = sum
			case counterWatermark:
				ns.Watermark = Watermark(low)
			default:
				ns.Counters[name] = sum
			}
		}
		s.LateDropped += ns.Counters[CounterLate]
		s.Skipped += ns.Counters[CounterSkipped]
		s.Future += ns.Counters[CounterFuture]
		s.Nodes = append(s.Nodes, ns)
	}
	return s
}

// byOperator are the values of all counters: operator, name, one value per subtask.
func (r *registry) byOperator() map[checkpoint.OperatorID]map[string][]int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[checkpoint.OperatorID]map[string][]int64{}
	for k, c := range r.m {
		m := out[k.id.Operator]
		if m == nil {
			m = map[string][]int64{}
			out[k.id.Operator] = m
		}
		m[k.name] = append(m[k.name], c.Load())
	}
	return out
}
