package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// committer finishes the sink's transactions of both protocols.
type committer struct {
	sink *tableSink
	conn *pgx.Conn // nil = connect first
	// broken is the server's process of the session before, when that ended with an error; 0 = none, or not known.
	broken uint32
	// swept is set by Abort: of what had no marker then, only kept may still be committed. Write-ahead rows exist in
	// checkpoints alone, so that the server has nothing to say about one that was given up.
	swept bool
	kept  map[string]bool // by mark
}

// mark identifies a committable as its marker row does.
func mark(cm checkpoint.Committable, seq int) string {
	return fmt.Sprintf("%s:%d:%d:%d", cm.Lineage, cm.Checkpoint, cm.Subtask, seq)
}

func (c *committer) session(ctx context.Context) (*pgx.Conn, error) {
	if c.conn != nil {
		return c.conn, nil
	}
	conn, err := c.sink.replace(ctx, c.broken)
	if err == nil {
		c.conn, c.broken = conn, 0
	}
	return conn, err
}

// done drops the session after an error: its state is unknown, and the outcome must be asked on a new one.
func (c *committer) done(err error) error {
	if err != nil && c.conn != nil {
		err = cause(c.conn, err)
		c.broken = processOf(c.conn)
		_ = c.Close() // the first error counts
	}
	return explain(c.sink.spec.Table.Name, err)
}

// Classify implements checkpoint.Committer. It first takes the sink from earlier incarnations: an answer read before
// that could still change.
func (c *committer) Classify(ctx context.Context, cs []checkpoint.Committable) ([]checkpoint.Outcome, error) {
	conn, err := c.session(ctx)
	if err != nil {
		return nil, err
	}
	list, _, err := decodeAll(cs)
	if err != nil {
		return nil, err
	}
	out := make([]checkpoint.Outcome, len(cs))
	switch there, err := c.bookkeeping(ctx, conn); {
	case err != nil:
		return nil, c.done(err)
	case !there && len(cs) > 0:
		c.sink.log.Error("postgres: the bookkeeping tables of the sink, or its rows, were removed: what was committed is not known",
			"tables", commitsTable+", "+ownerTable)
		for i := range out {
			out[i] = checkpoint.OutcomeUnknown
		}
		return out, nil
	}
	t, err := c.sink.own(ctx, conn)
	if err != nil {
		return nil, c.done(err)
	}
	for i, p := range list {
		committed, err := hasMarker(ctx, conn, t, c.sink.identity(), cs[i], p.Seq)
		if err != nil {
			return nil, c.done(err)
		}
		why := ""
		switch {
		case committed:
			out[i] = checkpoint.OutcomeCommitted
		case p.Protocol == writeAhead:
			out[i], why, err = c.ahead(ctx, conn, t, cs[i], p)
		default:
			out[i], why, err = c.prepared(ctx, conn, p)
		}
		if err != nil {
			return nil, c.done(err)
		}
		c.tell(ctx, t, cs[i], p, out[i], why)
	}
	return out, nil
}

// prepared is the outcome of a prepared transaction that has no marker.
func (c *committer) prepared(ctx context.Context, conn *pgx.Conn, p *committable) (checkpoint.Outcome, string, error) {
	gids, err := listPrepared(ctx, conn, p.GID)
	if err != nil || len(gids) > 0 {
		return checkpoint.OutcomeOpen, "", err
	}
	return unmarked(ctx, conn, p)
}

// ahead is the outcome of rows kept in the checkpoint that have no marker.
func (c *committer) ahead(ctx context.Context, conn *pgx.Conn, t *target, cm checkpoint.Committable, p *committable) (checkpoint.Outcome, string, error) {
	newest, err := applied(ctx, conn, t, c.sink.identity(), cm.Lineage, cm.Subtask)
	switch {
	case err != nil:
		return checkpoint.OutcomeUnknown, "", err
	case newest >= cm.Checkpoint:
		return checkpoint.OutcomeUnknown, fmt.Sprintf("%s says that rows up to checkpoint %d were written; but this one's marker row is not in %s", appliedTable, newest, commitsTable), nil
	case c.swept && !c.kept[mark(cm, p.Seq)]:
		return checkpoint.OutcomeAborted, "", nil
	}
	return checkpoint.OutcomeOpen, "", nil
}

// tell logs an outcome; why goes with one that is not known.
func (c *committer) tell(ctx context.Context, t *target, cm checkpoint.Committable, p *committable, o checkpoint.Outcome, why string) {
	text, _ := DescribeCommittable(cm, time.Now())
	args := []any{"output", text, "outcome", o.String()}
	level := slog.LevelInfo
	switch o {
	case checkpoint.OutcomeAborted:
		level = slog.LevelWarn
	case checkpoint.OutcomeUnknown:
		level = slog.LevelError
		args = append(args, "why", why, "hint", "look whether its rows are in "+t.tableRef()+"; if they are, put the marker back and start the job again: "+
			markerStatement(t, c.sink.identity(), cm, p))
	}
	c.sink.log.Log(ctx, level, "postgres: output of the restored checkpoint", args...)
}

// bookkeeping tells whether the bookkeeping of this sink is there, which was made before its first row was: without it nothing is
// known of what was committed. It is asked before own, which makes it again.
func (c *committer) bookkeeping(ctx context.Context, conn *pgx.Conn) (there bool, err error) {
	id := c.sink.identity()
	if id.epoch != 0 {
		return true, nil // taken before
	}
	t, err := c.sink.inspected(ctx)
	if err != nil {
		return false, err
	}
	err = conn.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL AND to_regclass($2) IS NOT NULL`, t.marker(commitsTable), t.marker(ownerTable)).Scan(&there)
	if err != nil || !there {
		return false, err
	}
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+t.marker(ownerTable)+` WHERE job = $1 AND sink = $2)`, id.job, id.sink).Scan(&there)
	return there, err
}

func decodeAll(cs []checkpoint.Committable) (list []*committable, keep map[string]bool, err error) {
	keep = map[string]bool{}
	for _, c := range cs {
		p, err := decodeCommittable(c)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, p)
		if p.GID != "" {
			keep[p.GID] = true
		}
	}
	return list, keep, nil
}

// Commit implements checkpoint.Committer.
func (c *committer) Commit(ctx context.Context, cs []checkpoint.Committable) error {
	if err := checkpoint.Failpoint("postgres.commit.before"); err != nil {
		return err
	}
	conn, err := c.session(ctx)
	if err != nil {
		return err
	}
	list, _, err := decodeAll(cs)
	if err != nil {
		return err
	}
	t, err := c.sink.own(ctx, conn)
	if err != nil {
		return c.done(err)
	}
	for i, p := range list {
		if p.Protocol == prepared {
			err = c.commitPrepared(ctx, conn, t, cs[i], p)
		} else {
			err = c.apply(ctx, conn, t, cs[i], p)
		}
		if err != nil {
			return c.done(err)
		}
		if err := checkpoint.Failpoint("postgres.commit.during"); err != nil {
			return err
		}
	}
	return checkpoint.Failpoint("postgres.commit.after")
}

func (c *committer) commitPrepared(ctx context.Context, conn *pgx.Conn, t *target, cm checkpoint.Committable, p *committable) error {
	_, err := conn.Exec(context.WithoutCancel(ctx), `COMMIT PREPARED `+literal(p.GID))
	var pe *pgconn.PgError
	if err == nil || !errors.As(err, &pe) || pe.Code != "42704" {
		return err
	}
	// 42704 (no such transaction) answers "committed already" and "rolled back" alike: the marker tells.
	committed, err := hasMarker(ctx, conn, t, c.sink.identity(), cm, p.Seq)
	if err != nil || committed {
		return err
	}
	if o, why, err := unmarked(ctx, conn, p); err != nil || o == checkpoint.OutcomeUnknown {
		if err == nil {
			err = diag.New(diag.Lost, diag.Pos{}, "what became of prepared transaction %q of checkpoint %d is not known", p.GID, cm.Checkpoint).
				WithDetail("%s", why).
				WithHint("look whether its rows are in %s; if they are, put the marker back and start the job again: %s", t.tableRef(), markerStatement(t, c.sink.identity(), cm, p))
		}
		return err
	}
	return diag.New(diag.Lost, diag.Pos{}, "prepared transaction %q of checkpoint %d was rolled back by someone else", p.GID, cm.Checkpoint).
		WithDetail("it held %d rows of subtask %d for table %s, and its marker row is not in %s", p.Rows, cm.Subtask, t.tableRef(), commitsTable).
		WithHint("restore an earlier checkpoint with --restore PATH, or accept the loss by restoring none")
}

// apply writes the rows kept in the checkpoint, or applies its changes by key, together with the marker. A marker that is there already, or is being
// written by a suspended incarnation, makes the INSERT wait and then do nothing.
func (c *committer) apply(ctx context.Context, conn *pgx.Conn, t *target, cm checkpoint.Committable, p *committable) error {
	id := c.sink.identity()
	err := inTx(ctx, conn, func(tx pgx.Tx) error {
		if err := checkOwner(ctx, tx, t, id, true); err != nil {
			return err
		}
		if _, err := insertMarker(ctx, tx, t, id, cm.Lineage, cm.Checkpoint, cm.Subtask, p.Seq, p.Rows); err != nil {
			return err
		}
		if err := noteApplied(ctx, tx, t, id, cm.Lineage, cm.Checkpoint, cm.Subtask); err != nil {
			return err
		}
		if p.Key == nil {
			return copyIn(ctx, conn, copyStatement(t, p.Columns), bytes.NewReader(p.data))
		}
		k := keyedTable{ref: t.tableRef(), columns: p.Columns, keys: p.Key}
		return k.apply(ctx, tx, p.data[:p.Split], p.data[p.Split:], false)
	})
	if errors.Is(err, errMarked) {
		return nil
	}
	return err
}

var errMarked = errors.New("marker exists")

// insertMarker writes the marker of one committable and returns the number of its transaction; errMarked when it is there.
func insertMarker(ctx context.Context, tx pgx.Tx, t *target, id identity, lineage string, ckpt checkpoint.ID, writer, seq int, rows int64) (txn int64, err error) {
	err = tx.QueryRow(ctx, `INSERT INTO `+t.marker(commitsTable)+` (job, sink, lineage, ckpt, writer, seq, rows)
		VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT DO NOTHING RETURNING txid_current()`,
		id.job, id.sink, lineage, int64(ckpt), writer, seq, rows).Scan(&txn)
	if errors.Is(err, pgx.ErrNoRows) {
		err = errMarked
	}
	return txn, err
}

func hasMarker(ctx context.Context, conn *pgx.Conn, t *target, id identity, cm checkpoint.Committable, seq int) (ok bool, err error) {
	err = conn.QueryRow(ctx, `SELECT EXISTS (SELECT FROM `+t.marker(commitsTable)+`
		WHERE job = $1 AND sink = $2 AND lineage = $3 AND ckpt = $4 AND writer = $5 AND seq = $6)`,
		id.job, id.sink, cm.Lineage, int64(cm.Checkpoint), cm.Subtask, seq).Scan(&ok)
	return ok, err
}

// markerDays is how long markers are kept: far longer than any checkpoint that could still name them. It is counted back from
// the newest marker, not from now: a job that was down for long still finds those of its newest checkpoint.
const markerDays = 30

// Abort implements checkpoint.Committer.
func (c *committer) Abort(ctx context.Context, keepList []checkpoint.Committable) error {
	conn, err := c.session(ctx)
	if err != nil {
		return err
	}
	list, keep, err := decodeAll(keepList)
	if err != nil {
		return err
	}
	t, err := c.sink.own(ctx, conn)
	if err != nil {
		return c.done(err)
	}
	id := c.sink.identity()
	if err := rollbackPrepared(ctx, conn, id, keep); err != nil {
		return c.done(err)
	}
	c.swept, c.kept = true, map[string]bool{}
	for i, p := range list {
		c.kept[mark(keepList[i], p.Seq)] = true
	}
	if err := c.reportStrangers(ctx, conn, id); err != nil {
		return c.done(err)
	}
	marks := t.marker(commitsTable)
	_, err = conn.Exec(ctx, `DELETE FROM `+marks+` WHERE job = $1 AND sink = $2 AND committed_at <
		(SELECT max(committed_at) FROM `+marks+` WHERE job = $1 AND sink = $2) - make_interval(days => $3)`, id.job, id.sink, markerDays)
	return c.done(err)
}

// reportStrangers logs prepared transactions that other lineages of this job and sink left behind. They may belong to
// a state directory that still exists, so nothing but a person may end them.
func (c *committer) reportStrangers(ctx context.Context, conn *pgx.Conn, id identity) error {
	gids, err := listPrepared(ctx, conn, id.gidPrefix())
	if err != nil {
		return err
	}
	mine, err := listPrepared(ctx, conn, id.lineagePrefix())
	if err != nil {
		return err
	}
	if n := len(gids) - len(mine); n > 0 {
		c.sink.log.Warn("prepared transactions of an earlier life of this job are open; they hold locks until someone ends them",
			"count", n, "prefix", id.gidPrefix(), "how", "streamsql txn list FILE.sql shows them and what may be done")
	}
	return nil
}

// Close implements checkpoint.Committer.
func (c *committer) Close() error {
	if c.conn == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
	defer cancel()
	conn := c.conn
	c.conn = nil
	return conn.Close(ctx)
}
