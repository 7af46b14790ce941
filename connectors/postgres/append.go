package postgres

import (
	"bytes"
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

const (
	closeWithin = 5 * time.Second
	copyBytes   = 1 << 20 // buffered rows are sent when they reach this size
)

// fill appends the rows of b to the buffer and calls full whenever it should be sent.
func (w *writerBase) fill(b *batch.Batch, full func() error) error {
	for i, n := 0, b.Len(); i < n; i++ {
		var err error
		keep := len(w.buf)
		if w.buf, err = appendCopyRow(w.buf, b, b.Row(i), w.sink.spec.Schema); err != nil {
			w.buf = w.buf[:keep]
			return err
		}
		w.rows++
		if full != nil && (w.rows >= w.sink.conf.maxRows || len(w.buf) >= copyBytes) {
			if err := full(); err != nil {
				return err
			}
		}
	}
	return nil
}

// preparedWriter copies rows into a transaction that stays open until the barrier, which prepares it.
type preparedWriter struct {
	writerBase
	history string // of the server, "" = it does not tell
	tx      pgx.Tx
	sent    int64 // rows in the transaction
}

// Write implements connectors.Writer.
func (w *preparedWriter) Write(ctx context.Context, b *batch.Batch) error {
	return w.fill(b, func() error { return w.send(ctx) })
}

func (w *preparedWriter) send(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	if w.tx == nil {
		tx, err := w.conn.Begin(ctx)
		if err != nil {
			return w.wrap(err)
		}
		w.tx = tx
	}
	if err := copyIn(ctx, w.conn, copyStatement(w.target, w.columns), bytes.NewReader(w.buf)); err != nil {
		return w.wrap(err)
	}
	w.sent += int64(w.rows)
	w.clear()
	return nil
}

// PreCommit implements connectors.Writer. A checkpoint without rows has no transaction and no committable.
func (w *preparedWriter) PreCommit(ctx context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("postgres.precommit.before"); err != nil {
		return nil, err
	}
	if err := w.send(ctx); err != nil {
		return nil, err
	}
	if w.tx == nil {
		return nil, nil
	}
	if err := checkOwner(ctx, w.tx, w.target, w.id, false); err != nil {
		return nil, w.wrap(err)
	}
	txn, err := insertMarker(ctx, w.tx, w.target, w.id, w.id.lineage, id, w.subtask, 0, w.sent)
	if err != nil {
		return nil, w.wrap(err)
	}
	gid := gidFor(w.id, w.id.lineage, uint64(id), w.subtask, 0)
	if _, err := w.conn.Exec(ctx, `PREPARE TRANSACTION `+literal(gid)); err != nil {
		return nil, w.wrap(err)
	}
	c := committable{Protocol: prepared, GID: gid, Rows: w.sent}
	if w.history != "" {
		c.Txn, c.History = txn, w.history
	}
	w.tx, w.sent = nil, 0
	return w.committables(id, &c), checkpoint.Failpoint("postgres.precommit.after")
}

func (w *writerBase) committables(id checkpoint.ID, c *committable) []checkpoint.Committable {
	return []checkpoint.Committable{{
		Sink: w.sink.spec.ID, Checkpoint: id, Subtask: w.subtask, Lineage: w.id.lineage, Payload: c.encode(), CreatedAt: time.Now(),
	}}
}

// walWriter keeps the rows of a checkpoint to put them into it.
type walWriter struct {
	writerBase
}

// Write implements connectors.Writer.
func (w *walWriter) Write(_ context.Context, b *batch.Batch) error {
	if err := w.fill(b, nil); err != nil {
		return err
	}
	if limit := w.sink.conf.walLimit; int64(len(w.buf)) > limit {
		return diag.New(diag.Config, diag.Pos{}, "table %q: one subtask wrote more than %d bytes in one checkpoint", w.sink.spec.Table.Name, limit).
			WithDetail("'sink.commit-protocol' = 'write-ahead' keeps the rows of a checkpoint in it; %d rows are held", w.rows).
			WithHint("shorten execution.checkpointing.interval, raise 'sink.write-ahead.max-bytes', or use 'sink.commit-protocol' = 'prepared'")
	}
	return nil
}

// PreCommit implements connectors.Writer.
func (w *walWriter) PreCommit(_ context.Context, id checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("postgres.precommit.before"); err != nil {
		return nil, err
	}
	if w.rows == 0 {
		return nil, nil
	}
	c := committable{Protocol: writeAhead, Rows: int64(w.rows), Columns: w.columns, data: w.buf}
	out := w.committables(id, &c)
	w.clear()
	return out, checkpoint.Failpoint("postgres.precommit.after")
}

// appendWriter sends rows at once, each buffer a transaction of its own.
type appendWriter struct {
	writerBase
}

// Write implements connectors.Writer.
func (w *appendWriter) Write(ctx context.Context, b *batch.Batch) error {
	return w.fill(b, func() error { return w.send(ctx) })
}

func (w *appendWriter) send(ctx context.Context) error {
	if w.rows == 0 {
		return nil
	}
	err := inTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := checkOwner(ctx, tx, w.target, w.id, true); err != nil {
			return err
		}
		return copyIn(ctx, w.conn, copyStatement(w.target, w.columns), bytes.NewReader(w.buf))
	})
	if err != nil {
		return w.wrap(err)
	}
	w.clear()
	return nil
}

// PreCommit implements connectors.Writer.
func (w *appendWriter) PreCommit(ctx context.Context, _ checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("postgres.precommit.before"); err != nil {
		return nil, err
	}
	if err := w.send(ctx); err != nil {
		return nil, err
	}
	return nil, checkpoint.Failpoint("postgres.precommit.after")
}
