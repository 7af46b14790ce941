package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// maxSessions bounds the sessions of one lookup: more requests than that wait for one.
const maxSessions = 8

// tableLookup finds rows of a table by key: the keys of a call in one statement.
type tableLookup struct {
	c     *config
	spec  connectors.LookupSpec
	query string

	slots chan struct{} // a token per session that may be open
	mu    sync.Mutex
	idle  []*pgx.Conn
}

func newLookup(ctx context.Context, spec connectors.LookupSpec) (connectors.Lookup, error) {
	c, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	if spec.Log == nil {
		spec.Log = slog.New(slog.DiscardHandler)
	}
	l := &tableLookup{c: c, spec: spec, slots: make(chan struct{}, max(1, min(spec.Requests, maxSessions)))}
	conn, err := l.take(ctx)
	if err != nil {
		return nil, err
	}
	t, err := inspect(ctx, conn, c.table)
	if err == nil {
		l.query, err = lookupQuery(t, spec)
	}
	l.give(conn)
	if err != nil {
		_ = l.Close() // the first error counts
		return nil, explain(spec.Table.Name, err)
	}
	return l, nil
}

// take is a session that nobody uses, a new one if there is none.
func (l *tableLookup) take(ctx context.Context) (*pgx.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	l.mu.Lock()
	if n := len(l.idle); n > 0 {
		conn := l.idle[n-1]
		l.idle = l.idle[:n-1]
		l.mu.Unlock()
		return conn, nil
	}
	l.mu.Unlock()
	conn, err := connect(ctx, l.c, "streamsql:lookup", l.spec.Log)
	if err != nil {
		<-l.slots
	}
	return conn, err
}

// give returns a session; one that broke is closed already.
func (l *tableLookup) give(conn *pgx.Conn) {
	if !conn.IsClosed() {
		l.mu.Lock()
		l.idle = append(l.idle, conn)
		l.mu.Unlock()
	}
	<-l.slots
}

// Close implements connectors.Lookup.
func (l *tableLookup) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.idle {
		_ = c.Close(context.Background()) // nothing was written
	}
	l.idle = nil
	return nil
}

// readable are the PostgreSQL types whose values a column of type t can have. A value out of t's range fails when it is
// read.
func readable(t types.Type) []string {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return []string{"int2", "int4", "int8", "numeric"}
	case types.Float, types.Double:
		return []string{"float4", "float8", "numeric", "int2", "int4", "int8"}
	case types.Decimal:
		return []string{"numeric", "int2", "int4", "int8"}
	}
	return pgTypes[t.Kind]
}

// arrayType is the element type that keys travel as. Comparisons with a column of a related type use its index.
func arrayType(t types.Type, c pgColumn) string {
	switch t.Kind {
	case types.Boolean:
		return "bool"
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return "int8"
	case types.Float, types.Double:
		return "float8"
	case types.Decimal:
		return "numeric"
	}
	switch {
	case c.category == "e": // in its schema
		return c.display
	case c.typ == "varchar":
		return "text" // without a length: a cast would cut the key
	}
	return c.typ
}

// lookupQuery joins the keys, given as an array per column, with the table. n numbers the keys.
func lookupQuery(t *target, spec connectors.LookupSpec) (string, error) {
	var cols []string
	at := make([]pgColumn, len(spec.Columns))
	for i, c := range spec.Schema.Columns {
		p := slices.IndexFunc(t.columns, func(p pgColumn) bool { return p.name == c.Name })
		if p < 0 {
			names := make([]string, len(t.columns))
			for i := range t.columns {
				names[i] = t.columns[i].name
			}
			e := diag.New(diag.Config, diag.Pos{}, "table %q: PostgreSQL table %s has no column %q", spec.Table.Name, t.tableRef(), c.Name).
				WithDetail("its columns are %s", strings.Join(names, ", "))
			if near := diag.Nearest(c.Name, names); near != "" {
				return "", e.WithHint("did you mean %q?", near)
			}
			return "", e.WithHint("remove the column from the table, or ALTER TABLE %s ADD COLUMN %s %s", t.tableRef(), ident(c.Name), natural(c.Type))
		}
		at[i] = t.columns[p]
		if !slices.Contains(readable(c.Type), at[i].typ) && !(at[i].category == "e" && c.Type.IsString()) {
			return "", diag.New(diag.Config, diag.Pos{}, "table %q: column %q is %s, but the PostgreSQL column is %s", spec.Table.Name, c.Name, c.Type.WithNull(true), at[i].display).
				WithDetail("%s is read from %s", c.Type.WithNull(true), strings.Join(readable(c.Type), ", ")).WithHint("declare the column with a type that fits")
		}
		cols = append(cols, "t."+ident(c.Name))
	}
	var arrays, names, on []string
	for i, k := range spec.Keys {
		name := "k" + strconv.Itoa(i)
		arrays = append(arrays, fmt.Sprintf("$%d::%s[]", i+1, arrayType(spec.Schema.Columns[k].Type, at[k])))
		names = append(names, name)
		on = append(on, fmt.Sprintf("t.%s = u.%s", ident(spec.Schema.Columns[k].Name), name))
	}
	return fmt.Sprintf("SELECT u.n, %s FROM unnest(%s) WITH ORDINALITY AS u(%s, n) JOIN %s AS t ON %s",
		strings.Join(cols, ", "), strings.Join(arrays, ", "), strings.Join(names, ", "), t.tableRef(), strings.Join(on, " AND ")), nil
}

// Find implements connectors.Lookup. A failure that may pass is repeated as 'lookup.max-retries' says.
func (l *tableLookup) Find(ctx context.Context, keys *batch.Batch, out *batch.Builder, of []int32) ([]int32, error) {
	args := make([]any, len(keys.Cols))
	for i, v := range keys.Cols {
		text, err := arrayText(keys, v)
		if err != nil {
			return of, valueError(0, l.spec.Schema.Columns[l.spec.Keys[i]].Name, err)
		}
		args[i] = text
	}
	start, rows := len(of), out.Len()
	err := connectors.RetryLookup(ctx, l.spec.Table.Name, l.c.lookupRetries, l.spec.Log, retryable, func() error {
		out.Truncate(rows)
		of = of[:start]
		conn, err := l.take(ctx)
		if err != nil {
			return err
		}
		defer l.give(conn)
		of, err = l.read(ctx, conn, args, out, of)
		return err
	})
	if err != nil {
		out.Truncate(rows)
		return of[:start], explain(l.spec.Table.Name, err)
	}
	return of, nil
}

func (l *tableLookup) read(ctx context.Context, conn *pgx.Conn, args []any, out *batch.Builder, of []int32) ([]int32, error) {
	rs, err := conn.Query(ctx, l.query, append([]any{pgx.QueryResultFormats{pgx.TextFormatCode}}, args...)...)
	if err != nil {
		return of, err
	}
	defer rs.Close()
	for rs.Next() {
		raw := rs.RawValues()
		n, err := strconv.Atoi(string(raw[0]))
		if err != nil {
			return of, err
		}
		for i, c := range out.Cols {
			if raw[i+1] == nil {
				c.AppendNull()
				continue
			}
			text := string(raw[i+1])
			if err := appendText(c, text); err != nil {
				return of, diag.New(diag.Data, diag.Pos{}, "table %q: column %q: the value %q of PostgreSQL is not a %s", l.spec.Table.Name, l.spec.Schema.Columns[i].Name, shorten(text), c.Type.WithNull(true)).
					Wrap(err).WithHint("declare the column with a type that holds all its values")
			}
		}
		out.RowDone()
		of = append(of, int32(n-1))
	}
	return of, rs.Err()
}

// arrayText is a column of keys as the text of an array: {"1","2"}.
func arrayText(b *batch.Batch, v *batch.Vec) (string, error) {
	dst := []byte{'{'}
	var one []byte
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		if i > 0 {
			dst = append(dst, ',')
		}
		one = one[:0]
		if v.Type.IsString() {
			one = append(one, v.Str[v.Idx(r)]...)
			if slices.Contains(one, 0) {
				return "", unwritable("the text contains the character U+0000, which PostgreSQL cannot store: " + strconv.Quote(shorten(string(one))))
			}
		} else {
			var err error
			if one, err = appendCopyValue(one, v, r); err != nil {
				return "", err
			}
			if v.Type.IsBytes() {
				one = one[1:] // COPY doubles the backslash
			}
		}
		dst = append(dst, '"')
		for _, c := range one {
			if c == '"' || c == '\\' {
				dst = append(dst, '\\')
			}
			dst = append(dst, c)
		}
		dst = append(dst, '"')
	}
	return string(append(dst, '}')), nil
}

var errText = errors.New("its text cannot be read")
