package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// transactions looks after what jobs left prepared in a database. A gid is never used twice, so that nothing can be
// mistaken for another transaction.
type transactions struct {
	conf *config
	log  *slog.Logger
	name string
	conn *pgx.Conn
}

func openTransactions(t *catalog.Table, _ string, log *slog.Logger) (connectors.TxnSystem, error) {
	c, err := parse(t)
	if err != nil {
		return nil, err
	}
	cc, err := connConfig(c, "")
	if err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	return &transactions{conf: c, log: log, name: fmt.Sprintf("postgres at %s:%d/%s", cc.Host, cc.Port, cc.Database)}, nil
}

// Name implements connectors.TxnSystem.
func (x *transactions) Name() string { return x.name }

func (x *transactions) session(ctx context.Context) (*pgx.Conn, error) {
	if x.conn != nil && !x.conn.IsClosed() {
		return x.conn, nil
	}
	conn, err := connect(ctx, x.conf, "streamsql:txn", x.log)
	x.conn = conn
	return conn, err
}

// fail says what a server error means.
func (x *transactions) fail(err error) error {
	var de *diag.Error
	if err == nil || errors.As(err, &de) {
		return err
	}
	return diag.New(diag.External, diag.Pos{}, "%s refused", x.name).Wrap(err)
}

// gid is a prepared transaction's name, taken apart; see gidFor.
type gid struct {
	job, sink, lineage string
	ckpt               checkpoint.ID
}

func parseGID(s string) (g gid, ok bool) {
	p := strings.Split(s, ":")
	if len(p) != 7 || p[0] != "ssql" {
		return g, false
	}
	for _, n := range p[4:] {
		if _, err := strconv.ParseUint(n, 10, 63); err != nil {
			return g, false
		}
	}
	n, _ := strconv.ParseUint(p[4], 10, 63)
	return gid{p[1], p[2], p[3], checkpoint.ID(n)}, true
}

// List implements connectors.TxnSystem. Transactions of other databases of the server are not seen: only a session of
// their own database can end them.
func (x *transactions) List(ctx context.Context, _ []string) ([]connectors.Txn, error) {
	conn, err := x.session(ctx)
	if err != nil {
		return nil, err
	}
	rows, err := conn.Query(ctx, `SELECT gid, prepared, owner::text FROM pg_prepared_xacts
		WHERE database = current_database() AND starts_with(gid, 'ssql:') ORDER BY gid`)
	if err != nil {
		return nil, x.fail(err)
	}
	var out []connectors.Txn
	var id, user string
	var at time.Time
	_, err = pgx.ForEachRow(rows, []any{&id, &at, &user}, func() error {
		g, ok := parseGID(id)
		if ok {
			out = append(out, connectors.Txn{ID: id, System: x.name, State: "prepared", Started: at, Job: g.job, Lineage: g.lineage,
				Checkpoint: g.ckpt, Detail: "user " + user, Identity: "postgres " + id, Unique: true})
		}
		return nil
	})
	if err != nil {
		return nil, x.fail(err)
	}
	for i := range out {
		if out[i].Live, err = x.holder(ctx, conn, out[i].Lineage); err != nil {
			return nil, x.fail(err)
		}
	}
	return out, nil
}

// holder names a session of a job of the lineage.
func (x *transactions) holder(ctx context.Context, conn *pgx.Conn, lineage string) (string, error) {
	var pid int32
	var host string
	err := conn.QueryRow(ctx, `SELECT pid, coalesce(host(client_addr), 'local') FROM pg_stat_activity
		WHERE datname = current_database() AND application_name LIKE $1 LIMIT 1`, "streamsql:%:"+lineage).Scan(&pid, &host)
	if err == pgx.ErrNoRows {
		return "", nil
	}
	return fmt.Sprintf("a session of it, PostgreSQL process %d from %s", pid, host), err
}

// Belongs implements connectors.TxnSystem.
func (x *transactions) Belongs(t *connectors.Txn, o *connectors.TxnOwner) (job, lineage bool) {
	if t.Job != short(o.JobID, 16) {
		return false, false
	}
	for _, l := range o.Lineages {
		if compactLineage(l) == t.Lineage {
			return true, true
		}
	}
	return true, false
}

// Identity implements connectors.TxnSystem. Rows that are kept in the checkpoint (write-ahead) are no transaction.
func (x *transactions) Identity(c *checkpoint.Committable) (string, bool) {
	p, err := decodeCommittable(*c)
	if err != nil || p.GID == "" {
		return "", false
	}
	return "postgres " + p.GID, true
}

// Describe implements connectors.TxnSystem.
func (x *transactions) Describe(c *checkpoint.Committable, now time.Time) string {
	text, err := DescribeCommittable(*c, now)
	if err != nil {
		return err.Error()
	}
	return text
}

// DescribeCommittable is a committable for people: what it is, its rows, and its age at now.
func DescribeCommittable(c checkpoint.Committable, now time.Time) (string, error) {
	p, err := decodeCommittable(c)
	if err != nil {
		return "", err
	}
	age := now.Sub(c.CreatedAt).Round(time.Second)
	if p.Key != nil {
		return fmt.Sprintf("changes of %d keys (%d deletions) of checkpoint %d kept in it, age %s; they do not time out", p.Rows, p.Deletes, c.Checkpoint, age), nil
	}
	if p.Protocol == writeAhead {
		return fmt.Sprintf("%d rows of checkpoint %d kept in it, age %s; they do not time out", p.Rows, c.Checkpoint, age), nil
	}
	return fmt.Sprintf("prepared transaction %s of checkpoint %d (%d rows), age %s; it stays until it is ended", p.GID, c.Checkpoint, p.Rows, age), nil
}

// Outcome implements connectors.TxnSystem.
func (x *transactions) Outcome(ctx context.Context, c *checkpoint.Committable) (checkpoint.Outcome, string, error) {
	p, err := decodeCommittable(*c)
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	conn, err := x.session(ctx)
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	o, why, err := x.outcome(ctx, conn, c, p)
	return o, why, x.fail(err)
}

// outcome looks for the transaction before and behind its marker: it can be committed in between.
func (x *transactions) outcome(ctx context.Context, conn *pgx.Conn, c *checkpoint.Committable, p *committable) (o checkpoint.Outcome, why string, err error) {
	gids, err := listPrepared(ctx, conn, p.GID)
	if err != nil || len(gids) > 0 {
		return checkpoint.OutcomeOpen, "", err
	}
	rows, err := conn.Query(ctx, `SELECT quote_ident(n.nspname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.relname = $1`, commitsTable)
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	schemas, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return checkpoint.OutcomeUnknown, "", err
	}
	for _, s := range schemas {
		var ok bool
		err := conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+s+`.`+commitsTable+` WHERE sink = $1 AND lineage = $2 AND ckpt = $3 AND writer = $4 AND seq = $5)`,
			string(c.Sink), c.Lineage, int64(c.Checkpoint), c.Subtask, p.Seq).Scan(&ok)
		if err != nil || ok {
			return checkpoint.OutcomeCommitted, "", err
		}
	}
	return unmarked(ctx, conn, p)
}

// gone is what the server says of a gid that is not prepared (any more).
func gone(err error) bool {
	var pe *pgconn.PgError
	return errors.As(err, &pe) && pe.Code == "42704"
}

// Abort implements connectors.TxnSystem.
func (x *transactions) Abort(ctx context.Context, t *connectors.Txn) error {
	conn, err := x.session(ctx)
	if err != nil {
		return err
	}
	if _, err = conn.Exec(context.WithoutCancel(ctx), `ROLLBACK PREPARED `+literal(t.ID)); gone(err) {
		return nil
	}
	return x.fail(err)
}

// Commit implements connectors.TxnSystem.
func (x *transactions) Commit(ctx context.Context, c *checkpoint.Committable) error {
	p, err := decodeCommittable(*c)
	if err != nil {
		return err
	}
	conn, err := x.session(ctx)
	if err != nil {
		return err
	}
	if _, err = conn.Exec(context.WithoutCancel(ctx), `COMMIT PREPARED `+literal(p.GID)); !gone(err) {
		return x.fail(err)
	}
	switch o, why, err := x.outcome(ctx, conn, c, p); {
	case err != nil || o == checkpoint.OutcomeCommitted:
		return x.fail(err)
	case o == checkpoint.OutcomeUnknown:
		return diag.New(diag.Lost, diag.Pos{}, "what became of prepared transaction %q of checkpoint %d is not known", p.GID, c.Checkpoint).WithDetail("%s", why).
			WithHint("look whether its %d rows are in the table of sink %s; a restart of the job says how to go on", p.Rows, c.Sink)
	}
	return diag.New(diag.Lost, diag.Pos{}, "prepared transaction %q of checkpoint %d was rolled back by someone else", p.GID, c.Checkpoint).
		WithDetail("it held %d rows of sink %s, and its marker row is not in %s", p.Rows, c.Sink, commitsTable).
		WithHint("restart the job: it goes back to the checkpoint before when that is provably exact")
}

// Close implements connectors.TxnSystem.
func (x *transactions) Close() error {
	if x.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	return x.conn.Close(ctx)
}
