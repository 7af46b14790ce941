package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/connectors/postgres"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// tablePlace keeps the shadows of a PostgreSQL table: tables in a schema of this run, which holds the sinks' own tables, too.
type tablePlace struct {
	r    *runner
	k    *sink
	n    int // of the sink
	conn *pgx.Conn
	real string // the table's name as the option has it
}

func (p *tablePlace) schema() string { return "chaos_" + p.r.o.ID }

// name is a short plain name: the sink's number keeps two apart that are cut to the same.
func (p *tablePlace) name(run string) string {
	var sb strings.Builder
	for _, c := range strings.ToLower(p.k.table.Name) {
		if sb.Len() < 30 && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_') {
			sb.WriteRune(c)
		}
	}
	return fmt.Sprintf("s%d_%s_%s", p.n, sb.String(), run)
}

func (p *tablePlace) edits(run string) []edit {
	return []edit{{"table-name", p.schema() + "." + p.name(run)}}
}

func (p *tablePlace) failed(what string, err error) error {
	return diag.New(diag.External, diag.Pos{}, "table %s: shadows in schema %s %s", p.k.table.Name, p.schema(), what).Wrap(err)
}

// open connects, again when a server that was restarted has ended the connection.
func (p *tablePlace) open(ctx context.Context) (err error) {
	if p.conn != nil && p.conn.IsClosed() {
		p.conn = nil
	}
	if p.conn == nil {
		p.conn, p.real, err = postgres.Dial(ctx, p.k.table, p.r.o.Log)
	}
	return err
}

func (p *tablePlace) answers(ctx context.Context, _ string) error {
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	if err := p.open(ctx); err != nil {
		return err
	}
	return p.conn.Ping(ctx) // one that fails closes the connection
}

func (p *tablePlace) claim(ctx context.Context) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	var there bool
	if err := p.conn.QueryRow(ctx, "SELECT to_regnamespace($1) IS NOT NULL", p.schema()).Scan(&there); err != nil {
		return p.failed("cannot be looked for", err)
	}
	if there {
		return taken(p.k.table, p.r.o.ID, "schema "+p.schema())
	}
	return nil
}

// create makes the check's schema once, and a table with the columns, keys and checks of the real one. Defaults are left out:
// they can draw from sequences that others use. So are triggers and foreign keys.
func (p *tablePlace) create(ctx context.Context, run string) error {
	if err := p.open(ctx); err != nil {
		return err
	}
	c := p.conn.Config()
	db := fmt.Sprintf("%s:%d/%s", c.Host, c.Port, c.Database)
	if !p.r.schemas[db] {
		if _, err := p.conn.Exec(ctx, "CREATE SCHEMA "+p.schema()); err != nil {
			return p.failed("cannot be made", err)
		}
		p.r.schemas[db] = true
	}
	var real string
	if err := p.conn.QueryRow(ctx, `SELECT n.nspname || E'\n' || c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass($1)`, p.real).Scan(&real); err != nil {
		return diag.New(diag.Config, p.k.table.Options.Pos("table-name"), "table %s: PostgreSQL table %s cannot be found", p.k.table.Name, p.real).Wrap(err).
			WithHint("create it first: shadows are made like it")
	}
	schema, name, _ := strings.Cut(real, "\n")
	_, err := p.conn.Exec(ctx, "CREATE TABLE "+pgx.Identifier{p.schema(), p.name(run)}.Sanitize()+" (LIKE "+pgx.Identifier{schema, name}.Sanitize()+
		" INCLUDING CONSTRAINTS INCLUDING INDEXES INCLUDING GENERATED INCLUDING IDENTITY)")
	if err != nil {
		return p.failed("cannot be made", err)
	}
	return nil
}

func (p *tablePlace) read(ctx context.Context, run string) (rows, error) {
	list := func(names []string) string {
		var cols []string
		for _, n := range names {
			cols = append(cols, pgx.Identifier{n}.Sanitize())
		}
		return "ROW(" + strings.Join(cols, ", ") + ")::text"
	}
	var all []string
	for _, c := range p.k.schema.Columns {
		all = append(all, c.Name)
	}
	byKey := p.k.mode.Changelog == types.Upsert && len(p.k.mode.Key) > 0
	key := "''"
	out := bagOf()
	if byKey {
		key, out = list(p.k.mode.Key), keyed()
		all = slices.DeleteFunc(all, func(c string) bool { return slices.Contains(p.k.mode.Key, c) })
	}
	found, err := p.conn.Query(ctx, "SELECT "+key+", "+list(all)+" FROM "+pgx.Identifier{p.schema(), p.name(run)}.Sanitize())
	if err != nil {
		return rows{}, p.failed("cannot be read", err)
	}
	defer found.Close()
	for found.Next() {
		var k, row string
		if err := found.Scan(&k, &row); err != nil {
			return rows{}, p.failed("cannot be read", err)
		}
		if byKey {
			out.byKey[k] = row
		} else {
			out.bag[row]++
		}
	}
	if err := found.Err(); err != nil {
		return rows{}, p.failed("cannot be read", err)
	}
	return out, nil
}

// residue is nothing: what a table holds is committed, and prepared transactions are those of the job.
func (p *tablePlace) residue(context.Context, string) ([]string, error) { return nil, nil }

func (p *tablePlace) drop(ctx context.Context, run string) error {
	if _, err := p.conn.Exec(ctx, "DROP TABLE IF EXISTS "+pgx.Identifier{p.schema(), p.name(run)}.Sanitize()); err != nil {
		return p.failed("cannot be removed", err)
	}
	return nil
}

func (p *tablePlace) clean(ctx context.Context, keep bool) (err error) {
	if err := p.open(ctx); err != nil {
		return err
	}
	if !keep {
		// A session that was just killed can hold a lock for a moment; PostgreSQL waits for it.
		_, err = p.conn.Exec(ctx, "DROP SCHEMA IF EXISTS "+p.schema()+" CASCADE")
	}
	_ = p.conn.Close(ctx)
	p.conn = nil
	if err != nil {
		return p.failed("cannot be removed", err)
	}
	return nil
}
