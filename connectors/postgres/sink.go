package postgres

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
	"github.com/streamsql/streamsql/sql/types"
)

// tableSink is one table written by one job.
type tableSink struct {
	conf *config
	spec connectors.SinkSpec
	log  *slog.Logger

	opening  sync.Mutex // serialises ownAlone
	mu       sync.Mutex // guards the rest
	id       identity
	target   *target
	protocol string
}

func newTableSink(c *config, spec connectors.SinkSpec) (*tableSink, error) {
	log := spec.Job.Log
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &tableSink{conf: c, spec: spec, log: log.With("sink", string(spec.ID)), id: identity{
		job: spec.Job.ID, name: cmp.Or(spec.Job.Name, spec.Job.ID), sink: string(spec.ID), lineage: spec.Job.Lineage, fence: spec.Job.Fence,
	}}, nil
}

func (s *tableSink) connect(ctx context.Context) (*pgx.Conn, error) {
	return connect(ctx, s.conf, s.id.application(), s.log)
}

// replace opens a session in place of a broken one, whose process it ends: the server need not know that the connection
// broke, and a transaction that it keeps open for that session would block the next one for ever. A commit that waits for a standby
// is left alone: ended, it would count without having been copied.
func (s *tableSink) replace(ctx context.Context, broken uint32) (*pgx.Conn, error) {
	conn, err := s.connect(ctx)
	if err != nil || broken == 0 {
		return conn, err
	}
	_, err = conn.Exec(ctx, `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid = $1 AND datname = current_database()
		AND application_name = $2 AND wait_event IS DISTINCT FROM 'SyncRep'`, int32(broken), s.id.application())
	if err != nil {
		_ = conn.Close(ctx) // the first error counts
		return nil, explain(s.spec.Table.Name, err)
	}
	return conn, nil
}

// Preflight implements connectors.Sink.
func (s *tableSink) Preflight(ctx context.Context) error {
	in, err := s.Inspect(ctx)
	for _, f := range in.Findings {
		s.log.Warn(f.Message, "rule", f.Code, "table", s.spec.Table.Name)
	}
	return err
}

// Inspect implements connectors.Inspector.
func (s *tableSink) Inspect(ctx context.Context) (in connectors.Inspection, err error) {
	conn, err := s.connect(ctx)
	if err != nil {
		return in, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	t, err := inspect(ctx, conn, s.conf.table)
	if err != nil {
		return in, explain(s.spec.Table.Name, err)
	}
	if err := t.fits(s.spec.Table.Name, s.spec.Schema, s.spec.Mode.Key); err != nil {
		return in, err
	}
	if err := s.checkServer(ctx, conn, t, &in); err != nil {
		return in, explain(s.spec.Table.Name, err)
	}
	protocol, err := s.choose(ctx, conn)
	if err != nil {
		return in, explain(s.spec.Table.Name, err)
	}
	if protocol != "" {
		in.Facts = append(in.Facts, "commit protocol: "+protocol)
	}
	s.mu.Lock()
	s.target, s.protocol = t, protocol
	s.mu.Unlock()
	return in, nil
}

func (s *tableSink) checkServer(ctx context.Context, conn *pgx.Conn, t *target, in *connectors.Inspection) error {
	var standby, insert, update, temp, create bool
	var version, fsync string
	err := conn.QueryRow(ctx, `SELECT pg_is_in_recovery(), has_table_privilege($1::oid, 'INSERT'), has_table_privilege($1::oid, 'UPDATE'),
			has_database_privilege(current_database(), 'TEMPORARY'),
			has_schema_privilege($2, 'CREATE') OR (to_regclass($3) IS NOT NULL AND to_regclass($4) IS NOT NULL), current_setting('server_version'), current_setting('fsync')`,
		t.oid, t.schema, t.marker(ownerTable), t.marker(appliedTable)).Scan(&standby, &insert, &update, &temp, &create, &version, &fsync)
	if err != nil {
		return err
	}
	in.Facts = append(in.Facts, fmt.Sprintf("PostgreSQL %s, table %s with %d columns", version, t.tableRef(), len(t.columns)))
	table, user := s.spec.Table.Name, conn.Config().User
	refuse := func(rule, hint, format string, args ...any) error {
		return diag.New(diag.Config, diag.Pos{}, "table %q: "+format, append([]any{table}, args...)...).WithHint("%s", hint).WithRule(rule)
	}
	grant := fmt.Sprintf("GRANT SELECT, INSERT, UPDATE, DELETE ON %s TO %s", t.tableRef(), ident(user))
	switch {
	case standby:
		return refuse("SSQL-E624", "point 'url' at the primary", "the server is a standby and cannot be written to")
	case !insert:
		return refuse("SSQL-E623", grant, "user %q may not INSERT into %s", user, t.tableRef())
	case !update && s.keyed():
		return refuse("SSQL-E623", grant, "user %q may not UPDATE %s", user, t.tableRef())
	case !temp && s.keyed():
		return refuse("SSQL-E623", fmt.Sprintf("GRANT TEMPORARY ON DATABASE %s TO %s", ident(conn.Config().Database), ident(user)),
			"user %q may not make temporary tables, through which rows are upserted", user)
	case !create:
		return refuse("SSQL-E623", fmt.Sprintf("GRANT CREATE ON SCHEMA %s TO %s, for the first start of a job", ident(t.schema), ident(user)),
			"user %q may not make the bookkeeping tables %s and %s", user, t.marker(ownerTable), t.marker(appliedTable))
	}
	if fsync == "off" {
		in.Findings = append(in.Findings, lint.Finding{Code: "SSQL-W625", Table: table, Option: "url",
			Message: fmt.Sprintf("table %s: the server acknowledges commits before they are durable (fsync = off)", table),
			Hint:    "ALTER SYSTEM SET fsync = on"})
	}
	return nil
}

// keyed says that rows are written by primary key.
func (s *tableSink) keyed() bool { return s.spec.Mode.Changelog == types.Upsert }

// choose settles the commit protocol: the server's max_prepared_transactions must hold every writer's transactions of
// all checkpoints that can be uncommitted at a time, beside what others have prepared.
func (s *tableSink) choose(ctx context.Context, conn *pgx.Conn) (string, error) {
	if s.spec.Mode.Delivery != connectors.TwoPhaseCommit {
		return "", nil
	}
	if s.conf.protocol == writeAhead || s.keyed() {
		return writeAhead, nil
	}
	var limit, used int
	err := conn.QueryRow(ctx, `SELECT current_setting('max_prepared_transactions')::int,
		(SELECT count(*) FROM pg_prepared_xacts WHERE NOT starts_with(gid, $1))::int`, s.id.gidPrefix()).Scan(&limit, &used)
	if err != nil {
		return "", err
	}
	need := s.spec.Parallel * (max(s.spec.Job.MaxConcurrentCheckpoints, 1) + 2)
	if used+need <= limit {
		s.log.Info("commit protocol: prepared", "max_prepared_transactions", limit, "needed", need, "used by others", used)
		return prepared, nil
	}
	if s.conf.protocol == "auto" {
		s.log.Info("commit protocol: write-ahead, because PREPARE TRANSACTION is not available", "max_prepared_transactions", limit, "needed", need, "used by others", used)
		return writeAhead, nil
	}
	return "", diag.New(diag.Config, diag.Pos{}, "table %q: 'sink.commit-protocol' = 'prepared' needs %d prepared transactions, the server has room for %d", s.spec.Table.Name, need, max(limit-used, 0)).
		WithDetail("max_prepared_transactions is %d, %d are in use by others; needed are %d subtasks × (%d concurrent checkpoints + 2)", limit, used, s.spec.Parallel, max(s.spec.Job.MaxConcurrentCheckpoints, 1)).
		WithHint("set max_prepared_transactions = %d in postgresql.conf and restart the server, or use 'sink.commit-protocol' = 'write-ahead'", used+need+10).WithRule("SSQL-E620")
}

// inspected is the target, which is looked at when Preflight has not.
func (s *tableSink) inspected(ctx context.Context) (*target, error) {
	s.mu.Lock()
	t := s.target
	s.mu.Unlock()
	if t == nil {
		if err := s.Preflight(ctx); err != nil {
			return nil, err
		}
		t = s.target
	}
	return t, nil
}

// ready inspects the table when Preflight has not, and makes the bookkeeping tables.
func (s *tableSink) ready(ctx context.Context, conn *pgx.Conn) (*target, error) {
	t, err := s.inspected(ctx)
	if err != nil {
		return nil, err
	}
	return t, createMarkers(ctx, conn, t)
}

// own makes this incarnation the sink's owner, once, before any writer has a session.
func (s *tableSink) own(ctx context.Context, conn *pgx.Conn) (*target, error) {
	t, err := s.ready(ctx, conn)
	if err != nil {
		return nil, explain(s.spec.Table.Name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.id.epoch != 0 {
		return t, nil
	}
	return t, explain(s.spec.Table.Name, take(ctx, conn, t, &s.id))
}

// identity is who the sink writes as; with the epoch once own has succeeded.
func (s *tableSink) identity() identity {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.id
}

// Committer implements connectors.Sink. Whatever the delivery is now, a checkpoint can hold output of an earlier one: its payload says
// how it is committed.
func (s *tableSink) Committer(context.Context) (checkpoint.Committer, error) {
	return &committer{sink: s}, nil
}

// Open implements connectors.Sink.
func (s *tableSink) Open(ctx context.Context, subtask int) (connectors.Writer, error) {
	t, err := s.ownAlone(ctx)
	if err != nil {
		return nil, err
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	base := writerBase{sink: s, conn: conn, target: t, id: s.identity(), subtask: subtask, columns: s.spec.Schema.Names()}
	switch {
	case s.spec.Mode.Delivery == connectors.IdempotentUpsert:
		return &upsertWriter{writerBase: base, changes: newChanges(s.spec.Schema, s.spec.Mode.Key)}, nil
	case s.spec.Mode.Delivery != connectors.TwoPhaseCommit:
		return &appendWriter{writerBase: base}, nil
	case s.keyed():
		return &keyedWriter{writerBase: base, changes: newChanges(s.spec.Schema, s.spec.Mode.Key)}, nil
	case s.protocol == prepared:
		known, err := history(ctx, conn)
		if err != nil {
			_ = conn.Close(context.WithoutCancel(ctx)) // the first error counts
			return nil, explain(s.spec.Table.Name, err)
		}
		return &preparedWriter{writerBase: base, history: known}, nil
	}
	return &walWriter{writerBase: base}, nil
}

// ownAlone is own on a session of its own: writers open concurrently, and taking the sink ends sessions.
func (s *tableSink) ownAlone(ctx context.Context) (*target, error) {
	s.opening.Lock()
	defer s.opening.Unlock()
	if s.identity().epoch != 0 {
		return s.target, nil
	}
	conn, err := s.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	return s.own(ctx, conn)
}

// Close implements connectors.Sink.
func (s *tableSink) Close() error { return nil }

// writerBase is what the writers have in common.
type writerBase struct {
	sink    *tableSink
	conn    *pgx.Conn
	target  *target
	id      identity
	subtask int
	columns []string
	buf     []byte // rows in COPY text format
	rows    int
}

func (w *writerBase) wrap(err error) error {
	return explain(w.sink.spec.Table.Name, cause(w.conn, err))
}

// keyed is the table as changes by key are applied to it.
func (w *writerBase) keyed() *keyedTable {
	return &keyedTable{ref: w.target.tableRef(), columns: w.columns, keys: w.sink.spec.Mode.Key}
}

// repeat does what f does in a transaction again, on a new session, when it failed for a passing reason.
func (w *writerBase) repeat(ctx context.Context, what string, f func() error) error {
	for attempt := 0; ; attempt++ {
		err := cause(w.conn, f())
		if err == nil {
			return nil
		}
		if attempt >= w.sink.conf.maxRetries || !retryable(err) || ctx.Err() != nil {
			return w.wrap(err)
		}
		w.sink.log.Warn(what+" transaction failed, repeating it", "attempt", attempt+1, "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(attempt) * time.Second):
		}
		if err := w.reconnect(ctx); err != nil {
			return err
		}
	}
}

func (w *writerBase) reconnect(ctx context.Context) error {
	_ = w.Close() // it is broken
	conn, err := w.sink.replace(ctx, processOf(w.conn))
	if err == nil {
		w.conn = conn
	}
	return err
}

func (w *writerBase) clear() { w.buf, w.rows = w.buf[:0], 0 }

// Close implements connectors.Writer: an open transaction ends with its session.
func (w *writerBase) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return w.conn.Close(ctx)
}

// Committed implements connectors.Writer.
func (w *writerBase) Committed(context.Context, checkpoint.ID) error { return nil }

func copyStatement(t *target, columns []string) string {
	return fmt.Sprintf("COPY %s (%s) FROM STDIN", t.tableRef(), identList(columns))
}

func identList(names []string) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = ident(n)
	}
	return strings.Join(out, ", ")
}
