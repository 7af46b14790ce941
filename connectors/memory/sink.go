package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// sink writes a Queue.
type sink struct {
	q    *Queue
	spec connectors.SinkSpec
}

// Preflight implements connectors.Sink.
func (s *sink) Preflight(context.Context) error { return s.q.fault(OpPreflight) }

// TransactionTimeout implements connectors.TimedSink.
func (s *sink) TransactionTimeout() time.Duration {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	return s.q.timeout
}

// Committer implements connectors.Sink.
func (s *sink) Committer(context.Context) (checkpoint.Committer, error) {
	if s.spec.Mode.Delivery != connectors.TwoPhaseCommit {
		return nil, nil
	}
	return &committer{q: s.q}, nil
}

// Open implements connectors.Sink.
func (s *sink) Open(_ context.Context, subtask int) (connectors.Writer, error) {
	s.q.mu.Lock()
	defer s.q.mu.Unlock()
	s.q.writers++
	w := &writer{s: s, subtask: subtask, incarnation: s.q.writers, fence: s.q.fence, types: s.spec.Schema.Types()}
	return w, nil
}

// Close implements connectors.Sink.
func (s *sink) Close() error { return nil }

// writer writes a subtask's rows into one transaction per checkpoint, or at once.
type writer struct {
	s           *sink
	subtask     int
	incarnation uint64
	fence       uint64
	seq         int
	open        string // id of the open transaction, "" = none
	types       []types.Type
}

// fenced refuses a writer whose job was replaced. q.mu is held.
func (w *writer) fenced() error {
	if w.fence == w.s.q.fence {
		return nil
	}
	return diag.New(diag.Conflict, diag.Pos{}, "queue %q: another run of the job took over", w.s.q.name)
}

// Write implements connectors.Writer.
func (w *writer) Write(ctx context.Context, b *batch.Batch) error {
	if err := w.s.q.fault(OpWrite); err != nil {
		return err
	}
	rows := make([]Row, b.Len())
	for i := range rows {
		r := b.Row(i)
		rows[i] = Row{Kind: b.Kind(r), Values: make([]types.Datum, len(b.Cols))}
		for c, v := range b.Cols {
			rows[i].Values[c] = v.Datum(r)
		}
	}
	q := w.s.q
	if w.s.spec.Mode.Delivery != connectors.TwoPhaseCommit {
		return w.showNow(ctx, rows)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := w.fenced(); err != nil {
		return err
	}
	if w.open == "" {
		w.seq++
		w.open = fmt.Sprintf("%s/%d/%d/%d", w.s.spec.Job.Lineage, w.incarnation, w.subtask, w.seq)
		q.txns[w.open] = &txn{}
	}
	t := q.txns[w.open]
	if t.outcome != checkpoint.OutcomeOpen {
		return diag.New(diag.External, diag.Pos{}, "queue %q: transaction %s timed out", q.name, w.open)
	}
	t.rows = append(t.rows, rows...)
	return nil
}

// showNow appends rows to the visible ones, waiting for a slow reader.
func (w *writer) showNow(ctx context.Context, rows []Row) error {
	q := w.s.q
	for {
		q.mu.Lock()
		if q.limit <= 0 || len(q.visible) < q.limit {
			err := w.fenced()
			if err == nil {
				q.show(rows)
			}
			q.mu.Unlock()
			return err
		}
		changed := q.changed
		q.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// PreCommit implements connectors.Writer.
func (w *writer) PreCommit(_ context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := w.s.q.fault(OpPreCommit); err != nil {
		return nil, err
	}
	q := w.s.q
	q.mu.Lock()
	defer q.mu.Unlock()
	if err := w.fenced(); err != nil {
		return nil, err
	}
	if w.open == "" {
		return nil, nil
	}
	t := q.txns[w.open]
	if t.outcome != checkpoint.OutcomeOpen {
		return nil, diag.New(diag.External, diag.Pos{}, "queue %q: transaction %s timed out", q.name, w.open)
	}
	t.ready = true
	c := checkpoint.Committable{Sink: w.s.spec.ID, Checkpoint: id, Subtask: w.subtask, Payload: append([]byte{1}, w.open...)}
	w.open = ""
	return []checkpoint.Committable{c}, nil
}

// Committed implements connectors.Writer.
func (w *writer) Committed(context.Context, checkpoint.ID) error { return nil }

// Close implements connectors.Writer. An open transaction stays open, as after a crash.
func (w *writer) Close() error { return nil }

// committer decides the transactions of a queue.
type committer struct{ q *Queue }

func txnID(c checkpoint.Committable) (string, error) {
	if len(c.Payload) == 0 || c.Payload[0] != 1 {
		return "", diag.New(diag.Internal, diag.Pos{}, "committable of checkpoint %d is damaged", c.Checkpoint)
	}
	return string(c.Payload[1:]), nil
}

// Classify implements checkpoint.Committer.
func (m *committer) Classify(_ context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	out := make([]checkpoint.Outcome, len(cs))
	for i, c := range cs {
		id, err := txnID(c)
		if err != nil {
			return nil, err
		}
		out[i] = checkpoint.OutcomeUnknown
		if t := m.q.txns[id]; t != nil {
			out[i] = t.outcome
		}
	}
	return out, nil
}

// Commit implements checkpoint.Committer.
func (m *committer) Commit(_ context.Context, cs []checkpoint.Committable) error {
	if err := m.q.fault(OpCommit); err != nil {
		return err
	}
	for i, c := range cs {
		if i > 0 {
			if err := checkpoint.Failpoint("commit.during"); err != nil {
				return err
			}
		}
		id, err := txnID(c)
		if err != nil {
			return err
		}
		m.q.mu.Lock()
		err = m.q.commit(id)
		m.q.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return m.q.fault(OpCommitted)
}

// Abort implements checkpoint.Committer: it aborts every undecided transaction except keep, and fences their writers.
func (m *committer) Abort(_ context.Context, keep []checkpoint.Committable) error {
	if err := m.q.fault(OpAbort); err != nil {
		return err
	}
	kept := map[string]bool{}
	for _, c := range keep {
		id, err := txnID(c)
		if err != nil {
			return err
		}
		kept[id] = true
	}
	m.q.mu.Lock()
	defer m.q.mu.Unlock()
	m.q.fence++
	for id, t := range m.q.txns {
		if t.outcome == checkpoint.OutcomeOpen && !kept[id] {
			t.outcome, t.rows = checkpoint.OutcomeAborted, nil
		}
	}
	return nil
}

// Close implements checkpoint.Committer.
func (m *committer) Close() error { return nil }
