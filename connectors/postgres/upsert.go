package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
)

// upsertWriter keeps the last change of each key until it is sent: deletions first, then upserts, in key order, all in
// one transaction, before the checkpoint.
type upsertWriter struct {
	writerBase
	changes
	oldest time.Time
	staged *pgx.Conn // the session that has its temporary tables
}

// Write implements connectors.Writer.
func (w *upsertWriter) Write(ctx context.Context, b *batch.Batch) error {
	for i, n := 0, b.Len(); i < n; i++ {
		if w.changes.len() == 0 {
			w.oldest = time.Now()
		}
		if err := w.add(b, b.Row(i)); err != nil {
			return err
		}
		if w.taken >= w.sink.conf.maxRows || len(w.arena) >= 4*copyBytes {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	if d := w.sink.conf.flushInterval; d > 0 && w.changes.len() > 0 && time.Since(w.oldest) >= d {
		return w.flush(ctx)
	}
	return nil
}

// flush sends the buffered changes.
func (w *upsertWriter) flush(ctx context.Context) error {
	if w.changes.len() == 0 {
		return nil
	}
	data, _, split := w.lines()
	err := w.repeat(ctx, "upsert", func() error { return w.transact(ctx, data[:split], data[split:]) })
	if err == nil {
		w.changes.clear()
	}
	return err
}

func (w *upsertWriter) transact(ctx context.Context, deletes, upserts []byte) error {
	k := w.keyed()
	if err := w.stage(ctx, k); err != nil {
		return err
	}
	return inTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := checkOwner(ctx, tx, w.target, w.id, true); err != nil {
			return err
		}
		return k.apply(ctx, tx, deletes, upserts, true)
	})
}

// stage makes the session's temporary tables, emptied at every commit.
func (w *upsertWriter) stage(ctx context.Context, k *keyedTable) error {
	if w.staged == w.conn {
		return nil
	}
	for name, cols := range map[string][]string{stageUpserts: k.columns, stageDeletes: k.keys} {
		if _, err := w.conn.Exec(ctx, k.stageStatement(name, cols, "DELETE ROWS")); err != nil {
			return err
		}
	}
	w.staged = w.conn
	return nil
}

// PreCommit implements connectors.Writer.
func (w *upsertWriter) PreCommit(ctx context.Context, _ checkpoint.ID) ([]checkpoint.Committable, error) {
	if err := checkpoint.Failpoint("postgres.precommit.before"); err != nil {
		return nil, err
	}
	if err := w.flush(ctx); err != nil {
		return nil, err
	}
	return nil, checkpoint.Failpoint("postgres.precommit.after")
}
