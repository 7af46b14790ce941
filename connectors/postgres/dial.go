package postgres

import (
	"context"
	"log/slog"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/catalog"
)

// Dial opens a session in the database that a table names, with its login. It is for looking at tables from outside of a
// job. table is 'table-name' as written.
func Dial(ctx context.Context, t *catalog.Table, log *slog.Logger) (conn *pgx.Conn, table string, err error) {
	c, err := parse(t)
	if err != nil {
		return nil, "", err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	conn, err = connect(ctx, c, "streamsql:look", log)
	return conn, c.table, err
}
