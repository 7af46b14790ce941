package exec

import (
	"context"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
)

// SinkStatus is a sink's output that is not yet committed, and how long it takes to commit.
type SinkStatus struct {
	ID   checkpoint.SinkID
	Node string
	// Timeout is how old a transaction may become before the other side aborts it, 0 = for ever, or unknown.
	Timeout time.Duration
	// Open are the transactions that hold rows which are not committed: those written to and those pre-committed, oldest first.
	Open []TransactionStatus
	// PreCommit is the sink's part of a checkpoint while the rows stand still, Commit a commit of what a checkpoint lists; failed
	// ones are left out.
	PreCommit, Commit Latency
	// Pending are the committables of durable checkpoints that are not known to be committed; OldestPending is how long ago the
	// first of them was pre-committed.
	Pending       int
	OldestPending time.Duration
}

// TransactionStatus is a transaction that is not decided.
type TransactionStatus struct {
	ID           string // as the other side knows it, or the subtask
	Age          time.Duration
	PreCommitted bool // it belongs to a checkpoint; else rows are written to it
	begun        time.Time
}

// Latency is over the last calls.
type Latency struct {
	P50, P99 time.Duration
	Samples  int
}

// latencies are the last calls of one kind.
type latencies struct {
	last [128]time.Duration
	n    int // ever
}

func (l *latencies) add(d time.Duration) {
	l.last[l.n%len(l.last)] = max(0, d)
	l.n++
}

func (l *latencies) summary() Latency {
	ds := slices.Clone(l.last[:min(l.n, len(l.last))])
	if len(ds) == 0 {
		return Latency{}
	}
	slices.Sort(ds)
	return Latency{P50: ds[(len(ds)*50+99)/100-1], P99: ds[(len(ds)*99+99)/100-1], Samples: len(ds)}
}

// sinkMetersOf makes the meters of a graph's sinks.
func sinkMetersOf(g *Graph) (ms []*sinkMeter) {
	for _, n := range g.Nodes {
		if n.Sink != nil {
			ms = append(ms, &sinkMeter{id: n.Sink.Spec.ID, node: n.Name, written: map[int]time.Time{}})
		}
	}
	return ms
}

func (j *Job) meterOf(id checkpoint.SinkID) *sinkMeter {
	return j.sinks[slices.IndexFunc(j.sinks, func(m *sinkMeter) bool { return m.id == id })]
}

// sinkMeter are the figures of a sink, over the attempts of the job.
type sinkMeter struct {
	id   checkpoint.SinkID
	node string

	mu                sync.Mutex
	preCommit, commit latencies
	written           map[int]time.Time // by subtask: since when rows are written that no barrier followed
	prepared          []preparedOutput  // pre-committed, not known to be committed
	pending           []checkpoint.Committable
	sink              connectors.Sink // of the running attempt, nil when it commits nothing or is closed
	warned            map[warnedOf]bool
}

// preparedOutput is what a subtask pre-committed at a barrier, and since when it was written.
type preparedOutput struct {
	id      checkpoint.ID
	subtask int
	begun   time.Time
}

// warnedOf identifies a transaction: ids are used again.
type warnedOf struct {
	id    string
	begun int64
}

// attach starts an attempt, or with nil ends it: what the last one wrote is committed or aborted by the next restore.
func (m *sinkMeter) attach(s connectors.Sink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sink, m.pending, m.prepared, m.written, m.warned = s, nil, nil, map[int]time.Time{}, map[warnedOf]bool{}
}

// writes notes the first rows of a subtask after a barrier.
func (m *sinkMeter) writes(subtask int, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.sink != nil {
		m.written[subtask] = now
	}
}

// preCommitted notes a barrier that a subtask has answered, with output or without.
func (m *sinkMeter) preCommitted(subtask int, id checkpoint.ID, output bool, took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.preCommit.add(took)
	if begun, ok := m.written[subtask]; ok && output {
		m.prepared = append(m.prepared, preparedOutput{id, subtask, begun})
	}
	delete(m.written, subtask)
}

func (m *sinkMeter) committed(took time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.commit.add(took)
}

// published notes what a durable checkpoint lists for the sink.
func (m *sinkMeter) published(all []checkpoint.Committable) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = nil
	for _, c := range all {
		if c.Sink == m.id {
			c.Payload = nil
			m.pending = append(m.pending, c)
		}
	}
}

// confirmed notes that all output up to checkpoint id is committed.
func (m *sinkMeter) confirmed(id checkpoint.ID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pending = slices.DeleteFunc(m.pending, func(c checkpoint.Committable) bool { return c.Checkpoint <= id })
	m.prepared = slices.DeleteFunc(m.prepared, func(p preparedOutput) bool { return p.id <= id })
}

// status is the sink now.
func (m *sinkMeter) status(now time.Time) SinkStatus {
	s, sink := m.figures(now)
	if timed, ok := sink.(connectors.TimedSink); ok {
		s.Timeout = timed.TransactionTimeout()
	}
	if l, ok := sink.(connectors.TransactionLister); ok {
		s.Open = nil
		for _, t := range l.OpenTransactions() {
			s.Open = append(s.Open, TransactionStatus{ID: t.ID, Age: max(0, time.Since(t.Begun)), PreCommitted: t.PreCommitted, begun: t.Begun})
		}
	}
	slices.SortStableFunc(s.Open, func(a, b TransactionStatus) int { return a.begun.Compare(b.begun) })
	return s
}

// figures is what the meter knows itself, and the sink to ask for more; nil = there is nothing more.
func (m *sinkMeter) figures(now time.Time) (SinkStatus, connectors.Sink) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s := SinkStatus{ID: m.id, Node: m.node, PreCommit: m.preCommit.summary(), Commit: m.commit.summary(), Pending: len(m.pending)}
	for _, c := range m.pending {
		s.OldestPending = max(s.OldestPending, now.Sub(c.CreatedAt))
	}
	open := func(subtask int, begun time.Time, prepared bool) {
		s.Open = append(s.Open, TransactionStatus{ID: "subtask " + strconv.Itoa(subtask), Age: max(0, now.Sub(begun)), PreCommitted: prepared, begun: begun})
	}
	for subtask, since := range m.written {
		open(subtask, since, false)
	}
	for _, p := range m.prepared {
		open(p.subtask, p.begun, true)
	}
	return s, m.sink
}

// stuck are the transactions that have used half of their timeout and were not told of before.
func (m *sinkMeter) stuck(now time.Time) (out []TransactionStatus, timeout time.Duration) {
	s := m.status(now)
	m.mu.Lock()
	defer m.mu.Unlock()
	old := m.warned
	m.warned = map[warnedOf]bool{}
	for _, t := range s.Open {
		if s.Timeout <= 0 || 2*t.Age <= s.Timeout {
			continue
		}
		k := warnedOf{t.ID, t.begun.UnixNano()}
		if !old[k] {
			out = append(out, t)
		}
		m.warned[k] = true
	}
	return out, s.Timeout
}

// timedCommitter measures commits.
type timedCommitter struct {
	checkpoint.Committer
	m   *sinkMeter
	now func() time.Time
}

// Commit implements checkpoint.Committer.
func (c timedCommitter) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	begin := c.now()
	err := c.Committer.Commit(ctx, cs)
	if err == nil {
		c.m.committed(c.now().Sub(begin))
	}
	return err
}

// watched bounds how often transactions are looked at for being old.
const watchedAtMost, watchedAtLeast = 50 * time.Millisecond, 5 * time.Second

// watchLoop warns of transactions that have used half of their timeout, once each: what is left must hold the rest of the
// checkpoint, the commit, and a restart if it comes to one.
func (at *attempt) watchLoop() error {
	every := watchedAtLeast
	for _, m := range at.job.sinks {
		if t := m.status(at.job.o.Now()).Timeout; t > 0 {
			every = min(every, max(t/20, watchedAtMost))
		}
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-at.done:
			return errStopping
		}
		at.job.sound()
		for _, m := range at.job.sinks {
			stuck, timeout := m.stuck(at.job.o.Now())
			for _, t := range stuck {
				at.job.o.Log.Warn("a transaction has used more than half of its timeout", "job", at.job.o.Name, "sink", m.node,
					"transaction", t.ID, "age", t.Age.Round(time.Millisecond), "timeout", timeout, "pre-committed", t.PreCommitted,
					"hint", "find out what holds up checkpoints or commits (SHOW CHECKPOINTS), checkpoint more often, or raise the sink's transaction timeout")
			}
		}
	}
}
