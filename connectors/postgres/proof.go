package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/checkpoint"
)

// A marker row that is there proves a commit. One that is not proves that there was none, unless somebody has deleted it: what is
// asked here is whether it may have been deleted. Nothing here ever says "committed": a number may have been given twice by a server
// that was put back to an earlier state without its knowing (a copy of its disk). So there is an answer to stop with, not to go on with.

// serverQuery names a server's history: the cluster and its timeline. Numbers of transactions mean something within one history
// only: a standby that took over, or a restored backup, gives those again that it had not seen.
const serverQuery = `SELECT system_identifier::text || '/' || left(pg_walfile_name(pg_current_wal_lsn()), 8) FROM pg_control_system()`

// history is what serverQuery says, "" when the server does not tell (the user may not ask, or it is not quite a PostgreSQL).
func history(ctx context.Context, conn *pgx.Conn) (name string, err error) {
	err = conn.QueryRow(ctx, serverQuery).Scan(&name)
	var pe *pgconn.PgError
	if errors.As(err, &pe) && (pe.Code == "42501" || pe.Code == "42883" || pe.Code == "0A000" || pe.Code == "55000") {
		return "", nil // insufficient privilege, undefined function, not supported, a standby
	}
	return name, err
}

// unmarked is what became of a committable that has no marker and is not prepared: OutcomeAborted, or OutcomeUnknown with the
// reason when there are traces of a commit.
func unmarked(ctx context.Context, conn *pgx.Conn, p *committable) (checkpoint.Outcome, string, error) {
	if p.Txn == 0 {
		return checkpoint.OutcomeAborted, "", nil // of a release that did not note it, or of a server that does not tell
	}
	now, err := history(ctx, conn)
	if err != nil || now != p.History {
		return checkpoint.OutcomeAborted, "", err
	}
	var status *string
	err = conn.QueryRow(ctx, `SELECT txid_status($1)`, p.Txn).Scan(&status)
	var pe *pgconn.PgError
	switch {
	case errors.As(err, &pe) && pe.Code == "22023": // a number that the server has yet to give: it does not know the transaction
		return checkpoint.OutcomeAborted, "", nil
	case err != nil:
		return checkpoint.OutcomeUnknown, "", err
	case status == nil:
		return checkpoint.OutcomeUnknown, fmt.Sprintf("it has no marker row in %s, and the server no longer knows what became of its transaction %d", commitsTable, p.Txn), nil
	case *status == "aborted":
		return checkpoint.OutcomeAborted, "", nil
	}
	return checkpoint.OutcomeUnknown, fmt.Sprintf("the server says of its transaction %d: %s; but the marker row that it wrote is not in %s", p.Txn, *status, commitsTable), nil
}

// applied is the newest checkpoint of which rows of the writer, kept in the checkpoint, were written: 0 = none that is known.
func applied(ctx context.Context, conn *pgx.Conn, t *target, id identity, lineage string, writer int) (newest checkpoint.ID, err error) {
	var n int64
	err = conn.QueryRow(ctx, `SELECT ckpt FROM `+t.marker(appliedTable)+` WHERE job = $1 AND sink = $2 AND writer = $3 AND lineage = $4`,
		id.job, id.sink, writer, lineage).Scan(&n)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	return checkpoint.ID(n), err
}

// noteApplied notes in tx that the rows of a checkpoint were written. Checkpoints are committed in their order.
func noteApplied(ctx context.Context, tx pgx.Tx, t *target, id identity, lineage string, ckpt checkpoint.ID, writer int) error {
	_, err := tx.Exec(ctx, `INSERT INTO `+t.marker(appliedTable)+` (job, sink, writer, lineage, ckpt) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (job, sink, writer) DO UPDATE SET lineage = excluded.lineage, ckpt = excluded.ckpt`, id.job, id.sink, writer, lineage, int64(ckpt))
	return err
}

// markerStatement is what a person runs who has seen that the rows are there.
func markerStatement(t *target, id identity, cm checkpoint.Committable, p *committable) string {
	return fmt.Sprintf(`INSERT INTO %s (job, sink, lineage, ckpt, writer, seq, rows) VALUES (%s, %s, %s, %d, %d, %d, %d)`,
		t.marker(commitsTable), literal(id.job), literal(id.sink), literal(cm.Lineage), cm.Checkpoint, cm.Subtask, p.Seq, p.Rows)
}
