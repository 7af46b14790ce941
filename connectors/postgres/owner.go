package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/sql/diag"
)

// take makes this incarnation the owner of the sink: it raises the epoch in the owner row and ends every session of an
// earlier incarnation. Once it returns, no earlier incarnation can write, prepare or commit anything: its sessions are
// gone and a new one would read the new epoch. A live job of another lineage keeps the sink, as does a later
// incarnation of this one. It must not run while this incarnation's own writers have sessions.
func take(ctx context.Context, conn *pgx.Conn, t *target, id *identity) error {
	deadline := time.Now().Add(time.Minute)
	for {
		epoch, err := raiseEpoch(ctx, conn, t, *id)
		if err == nil {
			id.epoch = epoch
			return endSessions(ctx, conn, *id)
		}
		var pe *pgconn.PgError
		if !errors.As(err, &pe) || pe.Code != "55P03" || time.Now().After(deadline) { // lock_not_available
			return err
		}
		// A transaction of an earlier incarnation, perhaps a suspended one, holds the row.
		if err := endSessions(ctx, conn, *id); err != nil {
			return err
		}
	}
}

func raiseEpoch(ctx context.Context, conn *pgx.Conn, t *target, id identity) (epoch int64, err error) {
	if err := refuseLiveStranger(ctx, conn, t, id); err != nil {
		return 0, err
	}
	err = inTx(ctx, conn, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, `SET LOCAL lock_timeout = '1s'`); err != nil {
			return err
		}
		var lineage string
		var fence int64
		err := tx.QueryRow(ctx, `SELECT lineage, fence, epoch FROM `+t.marker(ownerTable)+` WHERE job = $1 AND sink = $2 FOR UPDATE`,
			id.job, id.sink).Scan(&lineage, &fence, &epoch)
		if err != nil && err != pgx.ErrNoRows {
			return err
		}
		if err == nil && lineage == id.lineage && uint64(fence) > id.fence {
			return diag.New(diag.Conflict, diag.Pos{}, "a later incarnation of job %q owns sink %q", id.name, id.sink).
				WithDetail("its fencing number is %d, this process has %d", fence, id.fence).
				WithHint("stop this process; only one may run the job")
		}
		epoch++
		_, err = tx.Exec(ctx, `INSERT INTO `+t.marker(ownerTable)+` AS o (job, sink, lineage, fence, epoch) VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (job, sink) DO UPDATE SET lineage = excluded.lineage, fence = excluded.fence, epoch = excluded.epoch, taken_at = clock_timestamp()`,
			id.job, id.sink, id.lineage, int64(id.fence), epoch)
		return err
	})
	return epoch, err
}

// refuseLiveStranger fails when sessions of another lineage write to the sink: two jobs under one name.
func refuseLiveStranger(ctx context.Context, conn *pgx.Conn, t *target, id identity) error {
	var pid int32
	var host string
	err := conn.QueryRow(ctx, `SELECT a.pid, coalesce(host(a.client_addr), 'local') FROM pg_stat_activity a
		WHERE a.datname = current_database() AND a.application_name LIKE $1 AND a.application_name <> $2 AND a.pid <> pg_backend_pid() LIMIT 1`,
		id.applicationPrefix()+"%", id.application()).Scan(&pid, &host)
	if err == pgx.ErrNoRows {
		return nil
	}
	if err != nil {
		return err
	}
	return diag.New(diag.Conflict, diag.Pos{}, "another job named %q is writing to sink %q (table %s)", id.name, id.sink, t.tableRef()).
		WithDetail("its session is PostgreSQL process %d from %s", pid, host).
		WithHint("stop that job, or give this one its own name: SET 'pipeline.name' = '…'")
}

// endSessions ends the sessions of earlier incarnations of this lineage and waits until they are gone.
func endSessions(ctx context.Context, conn *pgx.Conn, id identity) error {
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		var left int
		err := conn.QueryRow(ctx, `SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
			WHERE datname = current_database() AND application_name = $1 AND pid <> pg_backend_pid()`, id.application()).Scan(&left)
		if err != nil {
			return fmt.Errorf("ending sessions of an earlier incarnation: %w", err)
		}
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// rollbackPrepared rolls back this lineage's prepared transactions except keep.
func rollbackPrepared(ctx context.Context, conn *pgx.Conn, id identity, keep map[string]bool) error {
	gids, err := listPrepared(ctx, conn, id.lineagePrefix())
	if err != nil {
		return err
	}
	for _, gid := range gids {
		if keep[gid] {
			continue
		}
		_, err := conn.Exec(ctx, `ROLLBACK PREPARED `+literal(gid))
		var pe *pgconn.PgError
		if err != nil && !(errors.As(err, &pe) && pe.Code == "42704") { // gone already
			return err
		}
	}
	return nil
}

func listPrepared(ctx context.Context, conn *pgx.Conn, prefix string) ([]string, error) {
	rows, err := conn.Query(ctx, `SELECT gid FROM pg_prepared_xacts WHERE database = current_database() AND starts_with(gid, $1)`, prefix)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}
