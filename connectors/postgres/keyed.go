package postgres

import (
	"context"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// keyedWriter keeps the last change of each key in a checkpoint, to put them into it. So a reader of the table sees the state at
// a checkpoint, never one that a replay need not come by again.
type keyedWriter struct {
	writerBase
	changes
}

// Write implements connectors.Writer.
func (w *keyedWriter) Write(_ context.Context, b *batch.Batch) error {
	for i, n := 0, b.Len(); i < n; i++ {
		if err := w.add(b, b.Row(i)); err != nil {
			return err
		}
	}
	if limit := w.sink.conf.walLimit; int64(w.live) > limit {
		return diag.New(diag.Config, diag.Pos{}, "table %q: one subtask changed more than %d bytes of rows in one checkpoint", w.sink.spec.Table.Name, limit).
			WithDetail("rows of a table with a primary key are kept in the checkpoint and written after it, the last change of each key; %d keys are held", w.changes.len()).
			WithHint("shorten execution.checkpointing.interval, raise 'sink.write-ahead.max-bytes', or use 'sink.commit-protocol' = 'upsert', which writes rows before their checkpoint")
	}
	return nil
}

// PreCommit implements connectors.Writer.
func (w *keyedWriter) PreCommit(ctx context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("postgres.precommit.before"); err != nil {
		return nil, err
	}
	if w.changes.len() == 0 {
		return nil, nil
	}
	k := w.keyed()
	data, deletes, split := w.lines()
	if split < len(data) && !w.target.rewrites {
		if err := w.repeat(ctx, "rehearsal", func() error { return k.rehearse(ctx, w.conn, data[split:]) }); err != nil {
			return nil, err
		}
	}
	c := committable{Protocol: writeAhead, Rows: int64(w.changes.len()), Columns: k.columns, Key: k.keys, Deletes: int64(deletes), Split: split, data: data}
	out := w.committables(id, &c)
	w.changes.clear()
	return out, checkpoint.Failpoint("postgres.precommit.after")
}
