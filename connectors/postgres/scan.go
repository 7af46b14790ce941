package postgres

import (
	"context"
	"log/slog"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// ScanSpec says what Scan reads.
type ScanSpec struct {
	Table  *catalog.Table
	Schema *types.Schema // the columns to read, by name
	Job    string        // id of the job and name of the sink whose markers are added up
	Sink   string
	Log    *slog.Logger
	// Taken is called when the snapshot exists, before the first row.
	Taken func() error
	// Each takes the rows; the batch is borrowed.
	Each func(b *batch.Batch) error
}

// Scan reads a whole table in one snapshot. marked is how many rows the commits of the job say they wrote into it, by the
// markers that are still there (see markerDays); -1 when there are none.
func Scan(ctx context.Context, s ScanSpec) (marked int64, err error) {
	c, err := parse(s.Table)
	if err != nil {
		return -1, err
	}
	if s.Log == nil {
		s.Log = slog.New(slog.DiscardHandler)
	}
	conn, err := connect(ctx, c, "streamsql:scan", s.Log)
	if err != nil {
		return -1, err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	t, err := inspect(ctx, conn, c.table)
	if err != nil {
		return -1, explain(s.Table.Name, err)
	}
	for _, col := range s.Schema.Columns {
		if !slices.ContainsFunc(t.columns, func(p pgColumn) bool { return p.name == col.Name }) {
			return -1, diag.New(diag.Config, diag.Pos{}, "table %q: PostgreSQL table %s has no column %q", s.Table.Name, t.tableRef(), col.Name)
		}
	}
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return -1, explain(s.Table.Name, err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) // nothing was written
	marked, err = s.markers(ctx, tx, t)           // the first query takes the snapshot
	if err == nil && s.Taken != nil {
		err = s.Taken()
	}
	if err == nil {
		err = s.rows(ctx, tx, t)
	}
	return marked, explain(s.Table.Name, err)
}

func (s *ScanSpec) markers(ctx context.Context, tx pgx.Tx, t *target) (int64, error) {
	var there bool
	if err := tx.QueryRow(ctx, `SELECT to_regclass($1) IS NOT NULL`, t.marker(commitsTable)).Scan(&there); err != nil || !there {
		return -1, err
	}
	n := int64(-1)
	err := tx.QueryRow(ctx, `SELECT coalesce(sum(rows), -1)::bigint FROM `+t.marker(commitsTable)+` WHERE job = $1 AND sink = $2`, s.Job, s.Sink).Scan(&n)
	return n, err
}

func (s *ScanSpec) rows(ctx context.Context, tx pgx.Tx, t *target) error {
	cols := make([]string, len(s.Schema.Columns))
	for i, c := range s.Schema.Columns {
		cols[i] = ident(c.Name)
	}
	rs, err := tx.Query(ctx, `SELECT `+strings.Join(cols, ", ")+` FROM `+t.tableRef(), pgx.QueryResultFormats{pgx.TextFormatCode})
	if err != nil {
		return err
	}
	defer rs.Close()
	out := batch.NewBuilder(s.Schema)
	for rs.Next() {
		for i, raw := range rs.RawValues() {
			if raw == nil {
				out.Cols[i].AppendNull()
				continue
			}
			text := string(raw)
			if err := appendText(out.Cols[i], text); err != nil {
				return diag.New(diag.Data, diag.Pos{}, "table %q: column %q: the value %q of PostgreSQL is not a %s", s.Table.Name, s.Schema.Columns[i].Name, shorten(text), s.Schema.Columns[i].Type.WithNull(true)).Wrap(err)
			}
		}
		if out.RowDone(); out.Full() {
			if err := s.Each(out.Finish()); err != nil {
				return err
			}
			out.Reset()
		}
	}
	if err := rs.Err(); err != nil || out.Len() == 0 {
		return err
	}
	return s.Each(out.Finish())
}
