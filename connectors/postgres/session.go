package postgres

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/sql/diag"
)

// identity is who writes: the names that bookkeeping rows and prepared transactions carry.
type identity struct {
	job, sink string
	name      string // of the job, for people
	lineage   string
	fence     uint64 // of the state directory: orders the incarnations of one lineage
	epoch     int64  // of the sink's owner row: raised by every incarnation that takes it; 0 before
}

// application is the application_name of every session of one job and sink, by which a new incarnation finds the
// sessions of a dead or suspended one. The lineage comes last. PostgreSQL cuts names at 63 bytes.
func (id identity) application() string {
	return id.applicationPrefix() + compactLineage(id.lineage)
}

func (id identity) applicationPrefix() string {
	return "streamsql:" + short(id.job+"\x00"+id.sink, 24) + ":"
}

// A gid names a prepared transaction: gidPrefix is common to all of the job's and sink's, lineagePrefix to those of this
// lineage. The alphabet is safe in a literal, the length below PostgreSQL's 200 bytes.
func (id identity) gidPrefix() string {
	return "ssql:" + short(id.job, 16) + ":" + short(id.sink, 16) + ":"
}

func (id identity) lineagePrefix() string { return id.gidPrefix() + compactLineage(id.lineage) + ":" }

func compactLineage(lineage string) string {
	l := strings.ReplaceAll(lineage, "-", "")
	if len(l) > 12 || strings.Trim(l, "0123456789abcdef") != "" {
		return short(lineage, 12)
	}
	return l
}

func short(s string, n int) string {
	h := sha256.Sum256([]byte(s))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h[:]))[:n]
}

func connConfig(c *config, app string) (*pgx.ConnConfig, error) {
	cc, err := pgx.ParseConfig(c.url)
	if err != nil {
		return nil, c.values.Errorf("url", "url of the table cannot be parsed").Wrap(errors.New(redact(err.Error(), c.url))).
			WithHint("write jdbc:postgresql://host:5432/database or postgres://host:5432/database")
	}
	if c.username != "" {
		cc.User, cc.Password = c.username, c.password
	}
	cc.RuntimeParams["application_name"] = app
	// Session defaults that people tune must not weaken what a commit means or how text is read.
	cc.RuntimeParams["datestyle"] = "ISO, YMD"
	cc.RuntimeParams["intervalstyle"] = "postgres"
	cc.RuntimeParams["timezone"] = "UTC"
	cc.RuntimeParams["client_encoding"] = "UTF8"
	// Simple statements only, so that poolers in transaction mode work.
	cc.DefaultQueryExecMode = pgx.QueryExecModeExec
	return cc, nil
}

func redact(s, url string) string { return strings.ReplaceAll(s, url, "<url>") }

// connect opens a session, retrying an unreachable or starting server for the configured time. It logs that it waits.
func connect(ctx context.Context, c *config, app string, log *slog.Logger) (*pgx.Conn, error) {
	cc, err := connConfig(c, app)
	if err != nil {
		return nil, err
	}
	watch(cc, c.askAfter, c.connectFor)
	deadline := time.Now().Add(c.connectFor)
	const firstWait = 100 * time.Millisecond
	for wait := firstWait; ; wait = min(2*wait, 2*time.Second) {
		conn, err := tryConnect(ctx, cc)
		if err == nil {
			return conn, nil
		}
		var pe *pgconn.PgError
		refused := errors.As(err, &pe) && pe.Code != "57P03" && pe.Code != "53300" // starting up, too many connections
		if refused || time.Now().After(deadline) || ctx.Err() != nil {
			return nil, diag.New(diag.External, diag.Pos{}, "cannot connect to PostgreSQL at %s:%d, database %q, user %q", cc.Host, cc.Port, cc.Database, cc.User).
				Wrap(err).WithHint("check 'url', 'username' and 'password', and that the server runs").WithRule("SSQL-E604")
		}
		if wait == firstWait {
			log.Warn("PostgreSQL does not answer, trying again", "host", cc.Host, "port", cc.Port, "for", c.connectFor, "err", err)
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// tryConnect opens a session and prepares it.
func tryConnect(ctx context.Context, cc *pgx.ConnConfig) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, max(connectWithin, cc.ConnectTimeout))
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, cc)
	if err != nil {
		return nil, err
	}
	// An acknowledged commit that a server crash can undo would be lost: its checkpoint is gone by then.
	var pid int32
	var set *string
	err = conn.QueryRow(ctx, `SELECT pg_backend_pid(), CASE WHEN current_setting('synchronous_commit') IN ('off', 'local')
		THEN set_config('synchronous_commit', 'on', false) END`).Scan(&pid, &set)
	if err != nil {
		_ = conn.Close(ctx) // the first error counts
		return nil, err
	}
	known(conn, uint32(pid))
	return conn, nil
}

// explain adds what a server error means for the sink.
func explain(table string, err error) error {
	if err == nil {
		return nil
	}
	var de *diag.Error
	if errors.As(err, &de) {
		return err
	}
	var pe *pgconn.PgError
	if !errors.As(err, &pe) {
		return diag.New(diag.External, diag.Pos{}, "table %q: PostgreSQL", table).Wrap(err)
	}
	e := diag.New(diag.External, diag.Pos{}, "table %q: PostgreSQL refused", table).Wrap(err)
	e.Detail = strings.TrimSpace(pe.Detail + " " + pe.Where)
	switch pe.Code[:2] {
	case "22", "23": // data exception, integrity constraint violation
		e.Code = diag.Data
		e.Hint = "the row named above breaks a rule of the PostgreSQL table: filter or convert it in the query"
	case "42":
		e.Hint = "check the table's definition and the user's privileges"
	}
	return e
}

// retryable reports errors after which the same transaction may succeed on a new session.
func retryable(err error) bool {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		switch {
		case strings.HasPrefix(pe.Code, "08"), strings.HasPrefix(pe.Code, "57P"), strings.HasPrefix(pe.Code, "53"),
			pe.Code == "40P01", pe.Code == "40001", pe.Code == "55P03":
			return true
		}
		return false
	}
	var de *diag.Error
	if errors.As(err, &de) {
		return de.Code == diag.External
	}
	return !errors.Is(err, context.Canceled)
}

// Bookkeeping tables. They are created beside the target on first use.
const (
	commitsTable = "_streamsql_commits"
	ownerTable   = "_streamsql_owner"
	appliedTable = "_streamsql_applied"
)

// createMarkers makes the bookkeeping tables. Concurrent creators can collide in the system catalogs even with
// IF NOT EXISTS; the loser finds them made.
func createMarkers(ctx context.Context, conn *pgx.Conn, t *target) error {
	ddl := []string{
		`CREATE TABLE IF NOT EXISTS ` + t.marker(commitsTable) + ` (job text, sink text, lineage text, ckpt bigint, writer int, seq int,
			rows bigint NOT NULL, committed_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (job, sink, lineage, ckpt, writer, seq))`,
		`CREATE TABLE IF NOT EXISTS ` + t.marker(ownerTable) + ` (job text, sink text, lineage text NOT NULL, fence bigint NOT NULL, epoch bigint NOT NULL,
			taken_at timestamptz NOT NULL DEFAULT clock_timestamp(), PRIMARY KEY (job, sink))`,
		`CREATE TABLE IF NOT EXISTS ` + t.marker(appliedTable) + ` (job text, sink text, writer int, lineage text NOT NULL, ckpt bigint NOT NULL,
			PRIMARY KEY (job, sink, writer))`,
	}
	// Asked first: IF NOT EXISTS demands the right to create even where there is nothing to create.
	var there bool
	err := conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL AND to_regclass($3) IS NOT NULL`,
		t.marker(commitsTable), t.marker(ownerTable), t.marker(appliedTable)).Scan(&there)
	if err != nil || there {
		return err
	}
	for _, s := range ddl {
		for attempt := 0; ; attempt++ {
			_, err := conn.Exec(ctx, s)
			var pe *pgconn.PgError
			if err != nil && attempt < 5 && errors.As(err, &pe) && (pe.Code == "23505" || pe.Code == "42P07" || pe.Code == "42710") {
				continue
			}
			if err != nil {
				return diag.New(diag.External, diag.Pos{}, "cannot create the bookkeeping tables %s, %s and %s", commitsTable, ownerTable, appliedTable).Wrap(err).
					WithHint("GRANT CREATE ON SCHEMA %s to the user, or create them once as docs/postgres.md shows", ident(t.schema))
			}
			break
		}
	}
	return nil
}

// checkOwner fails when another incarnation has taken the sink. With lock it holds the owner row in share mode until
// the transaction ends, so that no successor can start before the transaction's outcome is visible. A transaction that
// will be prepared must not hold it: prepared, it would lock its own successor out.
func checkOwner(ctx context.Context, tx pgx.Tx, t *target, id identity, lock bool) error {
	query := `SELECT epoch FROM ` + t.marker(ownerTable) + ` WHERE job = $1 AND sink = $2`
	if lock {
		query += ` FOR SHARE`
	}
	var epoch int64
	err := tx.QueryRow(ctx, query, id.job, id.sink).Scan(&epoch)
	if err != nil && err != pgx.ErrNoRows {
		return err
	}
	if err == pgx.ErrNoRows || epoch != id.epoch {
		return diag.New(diag.Conflict, diag.Pos{}, "job %q lost sink %q to another incarnation of itself", id.name, id.sink).
			WithDetail("this process owned it in epoch %d, the database says %d", id.epoch, epoch).
			WithHint("stop this process; only one may run the job")
	}
	return nil
}

// copyIn sends rows in COPY text format.
func copyIn(ctx context.Context, conn *pgx.Conn, statement string, r io.Reader) error {
	_, err := conn.PgConn().CopyFrom(ctx, r, statement)
	return err
}

// inTx runs f in a transaction. The commit is not cut short by ctx: a commit whose answer nobody waits for has an
// unknown outcome.
func inTx(ctx context.Context, conn *pgx.Conn, f func(tx pgx.Tx) error) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if err := f(tx); err != nil {
		rctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
		defer cancel()
		_ = tx.Rollback(rctx) // the first error counts; a broken session rolls back by itself
		return err
	}
	return tx.Commit(context.WithoutCancel(ctx))
}

// literal quotes s for statements that take no parameters.
func literal(s string) string { return "'" + strings.ReplaceAll(s, "'", "''") + "'" }

func gidFor(id identity, lineage string, ckpt uint64, writer, seq int) string {
	return fmt.Sprintf("%s%s:%d:%d:%d", id.gidPrefix(), compactLineage(lineage), ckpt, writer, seq)
}
