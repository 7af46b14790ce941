package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// upsertWriter keeps the last change of each key until it is sent: deletions first, then upserts, in key order, all in
// one transaction.
type upsertWriter struct {
	writerBase
	keys    []int // positions of the key columns
	changes map[string]change
	arena   []byte // rows and keys of the buffered changes, in COPY text format
	count   int    // changes taken, repeated keys included
	oldest  time.Time
	staged  bool // the session has its staging tables
	key     []byte
}

type change struct {
	remove   bool
	from, to int // the line in arena: the row, or the key of a deletion
}

func newUpsertWriter(base writerBase, key []string) *upsertWriter {
	w := &upsertWriter{writerBase: base, changes: map[string]change{}}
	for _, k := range key {
		w.keys = append(w.keys, slices.Index(base.columns, k))
	}
	return w
}

// Write implements connectors.Writer. -U is a deletion of its key, as Flink's connector treats it: where the query's
// key is the table's, none arrives.
func (w *upsertWriter) Write(ctx context.Context, b *batch.Batch) error {
	schema := w.sink.spec.Schema
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		var err error
		if w.key, err = w.appendKey(w.key[:0], b, r, schema); err != nil {
			return err
		}
		c := change{from: len(w.arena)}
		if c.remove = b.Kind(r).IsRetract(); c.remove {
			w.arena = append(append(w.arena, w.key...), '\n')
		} else if w.arena, err = appendCopyRow(w.arena, b, r, schema); err != nil {
			return err
		}
		c.to = len(w.arena)
		if len(w.changes) == 0 {
			w.oldest = time.Now()
		}
		w.changes[string(w.key)] = c
		w.count++
		if w.count >= w.sink.conf.maxRows || len(w.arena) >= 4*copyBytes {
			if err := w.flush(ctx); err != nil {
				return err
			}
		}
	}
	if d := w.sink.conf.flushInterval; d > 0 && len(w.changes) > 0 && time.Since(w.oldest) >= d {
		return w.flush(ctx)
	}
	return nil
}

func (w *upsertWriter) appendKey(dst []byte, b *batch.Batch, r int, schema *types.Schema) ([]byte, error) {
	for i, k := range w.keys {
		if i > 0 {
			dst = append(dst, '\t')
		}
		var err error
		if dst, err = appendCopyValue(dst, b.Cols[k], r); err != nil {
			return dst, valueError(r, schema.Columns[k].Name, err)
		}
	}
	return dst, nil
}

// flush sends the buffered changes, repeating a transaction that failed for a passing reason on a new session.
func (w *upsertWriter) flush(ctx context.Context) error {
	if len(w.changes) == 0 {
		return nil
	}
	upserts, deletes := w.lines()
	for attempt := 0; ; attempt++ {
		err := cause(w.conn, w.transact(ctx, upserts, deletes))
		if err == nil {
			break
		}
		if attempt >= w.sink.conf.maxRetries || !retryable(err) || ctx.Err() != nil {
			return w.wrap(err)
		}
		w.sink.log.Warn("upsert transaction failed, repeating it", "attempt", attempt+1, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(attempt) * time.Second):
		}
		if err := w.reconnect(ctx); err != nil {
			return err
		}
	}
	clear(w.changes)
	w.arena, w.count = w.arena[:0], 0
	return nil
}

func (w *upsertWriter) reconnect(ctx context.Context) error {
	_ = w.writerBase.Close() // it is broken
	conn, err := w.sink.replace(ctx, processOf(w.conn))
	if err != nil {
		return err
	}
	w.conn, w.staged = conn, false
	return nil
}

// lines are the upserted rows and the deleted keys in key order: every writer takes its locks in the same order.
func (w *upsertWriter) lines() (upserts, deletes []byte) {
	keys := make([]string, 0, len(w.changes))
	for k := range w.changes {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		c := w.changes[k]
		if c.remove {
			deletes = append(deletes, w.arena[c.from:c.to]...)
		} else {
			upserts = append(upserts, w.arena[c.from:c.to]...)
		}
	}
	return upserts, deletes
}

const (
	stageUpserts = "_streamsql_upserts"
	stageDeletes = "_streamsql_deletes"
)

func (w *upsertWriter) transact(ctx context.Context, upserts, deletes []byte) error {
	keys := make([]string, len(w.keys))
	for i, k := range w.keys {
		keys[i] = w.columns[k]
	}
	if err := w.stage(ctx, keys); err != nil {
		return err
	}
	return inTx(ctx, w.conn, func(tx pgx.Tx) error {
		if err := checkOwner(ctx, tx, w.target, w.id, true); err != nil {
			return err
		}
		if len(deletes) > 0 {
			if err := copyIn(ctx, w.conn, fmt.Sprintf("COPY pg_temp.%s (%s) FROM STDIN", stageDeletes, identList(keys)), bytes.NewReader(deletes)); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, w.deleteStatement(keys)); err != nil {
				return err
			}
		}
		if len(upserts) == 0 {
			return nil
		}
		if err := copyIn(ctx, w.conn, fmt.Sprintf("COPY pg_temp.%s (%s) FROM STDIN", stageUpserts, identList(w.columns)), bytes.NewReader(upserts)); err != nil {
			return err
		}
		_, err := tx.Exec(ctx, w.upsertStatement(keys))
		return err
	})
}

// stage makes the session's staging tables, emptied at every commit.
func (w *upsertWriter) stage(ctx context.Context, keys []string) error {
	if w.staged {
		return nil
	}
	for name, cols := range map[string][]string{stageUpserts: w.columns, stageDeletes: keys} {
		_, err := w.conn.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY TABLE %s ON COMMIT DELETE ROWS AS SELECT %s FROM %s WITH NO DATA",
			name, identList(cols), w.target.tableRef()))
		if err != nil {
			return err
		}
	}
	w.staged = true
	return nil
}

func (w *upsertWriter) deleteStatement(keys []string) string {
	on := make([]string, len(keys))
	for i, k := range keys {
		on[i] = fmt.Sprintf("t.%s = d.%s", ident(k), ident(k))
	}
	return fmt.Sprintf("DELETE FROM %s t USING pg_temp.%s d WHERE %s", w.target.tableRef(), stageDeletes, strings.Join(on, " AND "))
}

func (w *upsertWriter) upsertStatement(keys []string) string {
	var set []string
	for _, c := range w.columns {
		if !slices.Contains(keys, c) {
			set = append(set, ident(c)+" = excluded."+ident(c))
		}
	}
	action := "NOTHING"
	if len(set) > 0 {
		action = "UPDATE SET " + strings.Join(set, ", ")
	}
	cols := identList(w.columns)
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM pg_temp.%s ORDER BY %s ON CONFLICT (%s) DO %s",
		w.target.tableRef(), cols, cols, stageUpserts, identList(keys), identList(keys), action)
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
