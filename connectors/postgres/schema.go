package postgres

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// pgTypes are the PostgreSQL types (names as in pg_type) that take a SQL type, the natural one first.
var pgTypes = map[types.Kind][]string{
	types.Boolean:      {"bool"},
	types.TinyInt:      {"int2", "int4", "int8", "numeric"},
	types.SmallInt:     {"int2", "int4", "int8", "numeric"},
	types.Int:          {"int4", "int8", "numeric"},
	types.BigInt:       {"int8", "numeric"},
	types.Float:        {"float4", "float8"},
	types.Double:       {"float8"},
	types.Decimal:      {"numeric"},
	types.Char:         {"text", "bpchar", "varchar", "uuid", "json", "jsonb", "inet", "citext", "name"},
	types.Varchar:      {"text", "varchar", "bpchar", "uuid", "json", "jsonb", "inet", "citext", "name"},
	types.Binary:       {"bytea"},
	types.Varbinary:    {"bytea"},
	types.Date:         {"date"},
	types.Time:         {"time"},
	types.Timestamp:    {"timestamp"},
	types.TimestampLTZ: {"timestamptz"},
}

// pgColumn is a column of the target table.
type pgColumn struct {
	name, typ string
	display   string // format_type
	category  string // pg_type.typtype: "e" = enum
	notNull   bool
	hasValue  bool // default, identity or generated
	generated bool // GENERATED ALWAYS: cannot be written
	precision int  // numeric(p, s), -1 = unconstrained
	scale     int
}

// target is the table in the database.
type target struct {
	oid     uint32
	schema  string // of the table: the marker tables are made there
	name    string
	columns []pgColumn
	unique  [][]string // column sets of unique, non-partial, immediate indexes
	// rewrites says that triggers see rows before the table's own rules do, and may change them.
	rewrites bool
}

// ident quotes a name only where PostgreSQL would fold or reject it, so that Flink's unquoted identifiers mean the same.
func ident(name string) string {
	for i := 0; i < len(name); i++ {
		c := name[i]
		if c != '_' && (c < 'a' || c > 'z') && (i == 0 || c < '0' || c > '9') {
			return pgx.Identifier{name}.Sanitize()
		}
	}
	if reserved[name] {
		return pgx.Identifier{name}.Sanitize()
	}
	return name
}

// reserved are PostgreSQL's fully reserved words that people use as column names.
var reserved = map[string]bool{
	"all": true, "analyse": true, "analyze": true, "and": true, "any": true, "array": true, "as": true, "asc": true, "both": true,
	"case": true, "cast": true, "check": true, "collate": true, "column": true, "constraint": true, "create": true,
	"current_date": true, "current_time": true, "current_timestamp": true, "current_user": true, "default": true, "desc": true,
	"distinct": true, "do": true, "else": true, "end": true, "except": true, "false": true, "fetch": true, "for": true, "foreign": true,
	"from": true, "grant": true, "group": true, "having": true, "in": true, "initially": true, "intersect": true, "into": true,
	"lateral": true, "leading": true, "limit": true, "localtime": true, "not": true, "null": true, "offset": true, "on": true,
	"only": true, "or": true, "order": true, "placing": true, "primary": true, "references": true, "returning": true, "select": true,
	"session_user": true, "some": true, "symmetric": true, "table": true, "then": true, "to": true, "trailing": true, "true": true,
	"union": true, "unique": true, "user": true, "using": true, "variadic": true, "when": true, "where": true, "window": true, "with": true,
}

// tableRef is the table's name for statements: schema and name as the catalog has them.
func (t *target) tableRef() string { return ident(t.schema) + "." + ident(t.name) }

// marker is the qualified name of a bookkeeping table beside the target.
func (t *target) marker(name string) string { return ident(t.schema) + "." + name }

// inspect reads the table's definition. The name is resolved as PostgreSQL would in a statement.
func inspect(ctx context.Context, conn *pgx.Conn, table string) (*target, error) {
	t := &target{}
	err := conn.QueryRow(ctx, `SELECT c.oid, n.nspname, c.relname, EXISTS (SELECT FROM pg_trigger
			WHERE tgrelid = c.oid AND NOT tgisinternal AND tgtype & 2 <> 0) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
		WHERE c.oid = to_regclass($1) AND c.relkind IN ('r', 'p', 'v', 'f')`, table).Scan(&t.oid, &t.schema, &t.name, &t.rewrites)
	if err == pgx.ErrNoRows {
		return nil, diag.New(diag.Config, diag.Pos{}, "table %q does not exist in database %q", table, conn.Config().Database).
			WithHint("create it first, or correct 'table-name' (schema.table when it is not in the search path)").WithRule("SSQL-E621")
	}
	if err != nil {
		return nil, err
	}
	if err := t.readColumns(ctx, conn); err != nil {
		return nil, err
	}
	return t, t.readIndexes(ctx, conn)
}

func (t *target) readColumns(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT a.attname, ty.typname, format_type(a.atttypid, a.atttypmod), ty.typtype::text, a.attnotnull,
			a.atthasdef OR a.attidentity <> '', a.attgenerated <> '' OR a.attidentity = 'a',
			CASE WHEN ty.typname = 'numeric' AND a.atttypmod >= 4 THEN ((a.atttypmod - 4) >> 16) & 65535 ELSE -1 END,
			CASE WHEN ty.typname = 'numeric' AND a.atttypmod >= 4 THEN (a.atttypmod - 4) & 65535 ELSE -1 END
		FROM pg_attribute a JOIN pg_type ty ON ty.oid = a.atttypid
		WHERE a.attrelid = $1 AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum`, t.oid)
	if err != nil {
		return err
	}
	t.columns, err = pgx.CollectRows(rows, func(r pgx.CollectableRow) (c pgColumn, err error) {
		err = r.Scan(&c.name, &c.typ, &c.display, &c.category, &c.notNull, &c.hasValue, &c.generated, &c.precision, &c.scale)
		return c, err
	})
	return err
}

func (t *target) readIndexes(ctx context.Context, conn *pgx.Conn) error {
	rows, err := conn.Query(ctx, `SELECT array_agg(a.attname::text ORDER BY a.attname) FROM pg_index i
		JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = ANY (i.indkey[0:i.indnkeyatts-1])
		WHERE i.indrelid = $1 AND i.indisunique AND i.indisvalid AND i.indimmediate AND i.indpred IS NULL AND i.indexprs IS NULL
		GROUP BY i.indexrelid`, t.oid)
	if err != nil {
		return err
	}
	t.unique, err = pgx.CollectRows(rows, pgx.RowTo[[]string])
	return err
}

// fits refuses a target that cannot take rows of schema: the first fault, with the statement that mends it.
func (t *target) fits(table string, schema *types.Schema, key []string) error {
	for _, c := range schema.Columns {
		i := slices.IndexFunc(t.columns, func(p pgColumn) bool { return p.name == c.Name })
		if i < 0 {
			names := make([]string, len(t.columns))
			for i := range t.columns {
				names[i] = t.columns[i].name
			}
			err := diag.New(diag.Config, diag.Pos{}, "table %q: column %q does not exist in PostgreSQL table %s", table, c.Name, t.tableRef()).
				WithDetail("its columns are %s", strings.Join(names, ", ")).WithRule("SSQL-E621")
			if n := diag.Nearest(c.Name, names); n != "" {
				return err.WithHint("did you mean %q?", n)
			}
			return err.WithHint("ALTER TABLE %s ADD COLUMN %s %s", t.tableRef(), ident(c.Name), natural(c.Type))
		}
		if err := t.columns[i].takes(table, c); err != nil {
			return err
		}
	}
	for _, p := range t.columns {
		if p.notNull && !p.hasValue && schema.Index(p.name) < 0 {
			return diag.New(diag.Config, diag.Pos{}, "table %q: PostgreSQL column %q of %s is NOT NULL without a default, but the table does not declare it", table, p.name, t.tableRef()).
				WithHint("declare column %q, or ALTER TABLE %s ALTER COLUMN %s DROP NOT NULL", p.name, t.tableRef(), ident(p.name)).WithRule("SSQL-E621")
		}
	}
	return t.hasKey(table, key)
}

func (p pgColumn) takes(table string, c types.Column) error {
	if p.generated {
		return diag.New(diag.Config, diag.Pos{}, "table %q: PostgreSQL column %q is generated and cannot be written", table, p.name).
			WithHint("remove column %q from the table", p.name).WithRule("SSQL-E621")
	}
	ok := slices.Contains(pgTypes[c.Type.Kind], p.typ) || p.category == "e" && c.Type.IsString()
	detail := fmt.Sprintf("%s is written to %s", c.Type.WithNull(true), strings.Join(pgTypes[c.Type.Kind], ", "))
	if ok && p.typ == "numeric" && p.precision >= 0 {
		digits, scale := c.Type.AsDecimal()
		digits -= scale
		ok = p.precision-p.scale >= digits && p.scale >= scale
		detail = fmt.Sprintf("%s needs at least numeric(%d,%d)", c.Type.WithNull(true), max(digits, p.precision-p.scale)+max(scale, p.scale), max(scale, p.scale))
	}
	if ok {
		return nil
	}
	return diag.New(diag.Config, diag.Pos{}, "table %q: column %q is %s, but the PostgreSQL column is %s", table, c.Name, c.Type.WithNull(true), p.display).
		WithDetail("%s", detail).
		WithHint("declare the column with a type that fits, or ALTER COLUMN %s TYPE %s", ident(p.name), natural(c.Type)).WithRule("SSQL-E621")
}

// natural is the PostgreSQL type a column of type t would best be declared with.
func natural(t types.Type) string {
	switch t.Kind {
	case types.Decimal:
		return fmt.Sprintf("numeric(%d,%d)", t.Precision, t.Scale)
	case types.Timestamp:
		return fmt.Sprintf("timestamp(%d)", min(t.Precision, 6))
	case types.TimestampLTZ:
		return fmt.Sprintf("timestamptz(%d)", min(t.Precision, 6))
	}
	if n := pgTypes[t.Kind]; len(n) > 0 {
		return n[0]
	}
	return "text"
}

func (t *target) hasKey(table string, key []string) error {
	if len(key) == 0 {
		return nil
	}
	want := slices.Sorted(slices.Values(key))
	for _, u := range t.unique {
		if slices.Equal(u, want) {
			return nil
		}
	}
	cols := make([]string, len(key))
	for i, k := range key {
		cols[i] = ident(k)
	}
	err := diag.New(diag.Config, diag.Pos{}, "table %q: PostgreSQL table %s has no unique index on the primary key (%s)", table, t.tableRef(), strings.Join(key, ", ")).
		WithHint("ALTER TABLE %s ADD PRIMARY KEY (%s)", t.tableRef(), strings.Join(cols, ", ")).WithRule("SSQL-E622")
	err.Detail = "INSERT … ON CONFLICT needs a unique, immediate, non-partial index on exactly these columns"
	if len(t.unique) > 0 {
		parts := make([]string, len(t.unique))
		for i, u := range t.unique {
			parts[i] = "(" + strings.Join(u, ", ") + ")"
		}
		err.Detail += "; there are " + strings.Join(parts, ", ")
	}
	return err
}
