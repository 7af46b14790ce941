package postgres

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// keyedTable is how changes by key get into a table: they are copied into temporary tables, from where one statement each deletes
// and upserts.
type keyedTable struct {
	ref           string   // the table, quoted
	columns, keys []string // of a row, of a deletion
}

// The temporary tables; they are their session's own.
const (
	stageUpserts = "_streamsql_upserts"
	stageDeletes = "_streamsql_deletes"
)

// stageStatement makes a temporary table of columns; onCommit is what becomes of it when the transaction ends.
func (k *keyedTable) stageStatement(name string, columns []string, onCommit string) string {
	return fmt.Sprintf("CREATE TEMPORARY TABLE %s ON COMMIT %s AS SELECT %s FROM %s WITH NO DATA", name, onCommit, identList(columns), k.ref)
}

// apply writes changes in tx, as lines in COPY text format. staged says that the session has the temporary tables, which are
// emptied at every commit; else they are made and dropped in tx, so that the next transaction may run in another session of a pooler.
func (k *keyedTable) apply(ctx context.Context, tx pgx.Tx, deletes, upserts []byte, staged bool) error {
	if err := k.load(ctx, tx, stageDeletes, k.keys, deletes, staged, k.deleteStatement); err != nil {
		return err
	}
	return k.load(ctx, tx, stageUpserts, k.columns, upserts, staged, k.upsertStatement)
}

func (k *keyedTable) load(ctx context.Context, tx pgx.Tx, stage string, columns []string, lines []byte, staged bool, statement func() string) error {
	if len(lines) == 0 {
		return nil
	}
	if !staged {
		if _, err := tx.Exec(ctx, k.stageStatement(stage, columns, "DROP")); err != nil {
			return err
		}
	}
	if err := copyIn(ctx, tx.Conn(), fmt.Sprintf("COPY pg_temp.%s (%s) FROM STDIN", stage, identList(columns)), bytes.NewReader(lines)); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, statement())
	return err
}

func (k *keyedTable) deleteStatement() string {
	on := make([]string, len(k.keys))
	for i, c := range k.keys {
		on[i] = fmt.Sprintf("t.%s = d.%s", ident(c), ident(c))
	}
	return fmt.Sprintf("DELETE FROM %s t USING pg_temp.%s d WHERE %s", k.ref, stageDeletes, strings.Join(on, " AND "))
}

func (k *keyedTable) upsertStatement() string {
	var set []string
	for _, c := range k.columns {
		if !slices.Contains(k.keys, c) {
			set = append(set, ident(c)+" = excluded."+ident(c))
		}
	}
	action := "NOTHING"
	if len(set) > 0 {
		action = "UPDATE SET " + strings.Join(set, ", ")
	}
	cols, keys := identList(k.columns), identList(k.keys)
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM pg_temp.%s ORDER BY %s ON CONFLICT (%s) DO %s", k.ref, cols, cols, stageUpserts, keys, keys, action)
}

// rehearse shows rows to the server before they are part of a checkpoint, from which nobody could take one that it refuses:
// what a column's type, NOT NULL or CHECK does not take is an error here. It leaves nothing behind.
func (k *keyedTable) rehearse(ctx context.Context, conn *pgx.Conn, upserts []byte) error {
	const table = "_streamsql_rehearsal"
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // an error means that the session broke, which the next use tells
	if _, err := tx.Exec(ctx, fmt.Sprintf("CREATE TEMPORARY TABLE %s (LIKE %s INCLUDING DEFAULTS INCLUDING CONSTRAINTS INCLUDING GENERATED INCLUDING IDENTITY)", table, k.ref)); err != nil {
		return err
	}
	return copyIn(ctx, conn, fmt.Sprintf("COPY pg_temp.%s (%s) FROM STDIN", table, identList(k.columns)), bytes.NewReader(upserts))
}
