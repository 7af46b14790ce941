package postgres

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// Connectors are 'jdbc' and its alias 'postgres'. They differ in the form of 'url' only.
func Connectors() []connectors.Connector {
	jdbc := connectors.Connector{
		Name:      "jdbc",
		Doc:       "PostgreSQL, with Flink's options and URL (jdbc:postgresql://host:port/database)",
		Options:   options,
		Check:     check,
		SinkModes: sinkModes,
		Lint:      lintTable,
		NewSink:   newSink,
		NewLookup: newLookup,
		LookupCache: func(t *catalog.Table) (connectors.LookupCache, error) {
			c, err := parse(t)
			if err != nil {
				return connectors.LookupCache{}, err
			}
			return c.cache, nil
		},
		Transactions: openTransactions,
		Endpoints:    endpoints,
	}
	pg := jdbc
	pg.Name, pg.Doc = "postgres", "PostgreSQL, with a native URL (postgres://user@host:port/database)"
	return []connectors.Connector{jdbc, pg}
}

var options = append([]connectors.Option{
	{Key: "connector", Type: connectors.StringOption, Required: true, Flink: true, Doc: "'jdbc' or 'postgres'."},
	{Key: "property-version", Type: connectors.IntOption, Default: "1", Flink: true, Doc: "Accepted for Flink; no effect."},
	{Key: "url", Type: connectors.StringOption, Required: true, Flink: true, Doc: "jdbc:postgresql://host:port/database?… or postgres://user:password@host:port/database?…"},
	{Key: "table-name", Type: connectors.StringOption, Required: true, Flink: true, Doc: "Table to write or look up, optionally schema.table."},
	{Key: "username", Type: connectors.StringOption, Flink: true, Doc: "User, when the URL names none."},
	{Key: "password", Type: connectors.StringOption, Flink: true, Doc: "Password of 'username'."},
	{Key: "driver", Type: connectors.StringOption, Flink: true, Doc: "Java driver class; accepted for Flink, no effect."},
	{Key: "connection.max-retry-timeout", Type: connectors.DurationOption, Default: "60 s", Flink: true, Doc: "How long connecting is retried."},
	{Key: "sink.buffer-flush.max-rows", Type: connectors.IntOption, Default: "5000", Flink: true, Doc: "Rows buffered before they are sent (Flink's default is 100). Given for a table with a primary key, it asks for 'sink.commit-protocol' = 'upsert'."},
	{Key: "sink.buffer-flush.interval", Type: connectors.DurationOption, Default: "1 s", Flink: true, Doc: "Upserts: age of the oldest buffered row at which the buffer is sent with the next row or barrier; 0 = off. Given, it asks for 'sink.commit-protocol' = 'upsert'."},
	{Key: "sink.max-retries", Type: connectors.IntOption, Default: "3", Flink: true, Doc: "With a primary key: how often a failed transaction before the checkpoint is repeated before the job fails."},
	{Key: "sink.parallelism", Type: connectors.IntOption, Flink: true, Doc: "Parallelism of the sink."},
	{Key: "sink.delivery-guarantee", Type: connectors.EnumOption, Values: []string{exactlyOnce, "at-least-once", "none"}, Default: exactlyOnce, Doc: "'exactly-once' (rows take effect with their checkpoint), or rows sent at once; with a primary key these are upserted."},
	{Key: "sink.commit-protocol", Type: connectors.EnumOption, Values: []string{"auto", prepared, writeAhead, upsert}, Default: "auto", Doc: "'prepared' uses PREPARE TRANSACTION, 'write-ahead' keeps the rows in the checkpoint, 'upsert' writes them before it, by primary key; 'auto' takes 'prepared' where max_prepared_transactions allows it, and with a primary key 'write-ahead'."},
	{Key: "sink.write-ahead.max-bytes", Type: connectors.MemoryOption, Default: "256mb", Doc: "Write-ahead: rows one subtask may hold per checkpoint; with a primary key the last of each key."},
}, connectors.LookupOptions...)

// config is a table's options, parsed.
type config struct {
	url           string // libpq form
	username      string
	password      string
	table         string
	maxRows       int
	flushInterval time.Duration
	maxRetries    int
	connectFor    time.Duration
	askAfter      time.Duration // how long an answer may take before the server is asked about it
	guarantee     string
	protocol      string
	walLimit      int64
	cache         connectors.LookupCache
	lookupRetries int
	values        *connectors.Values
}

func parse(t *catalog.Table) (*config, error) {
	v, err := connectors.Parse(t, options, nil)
	if err != nil {
		return nil, err
	}
	c := &config{
		username: v.String("username"), password: v.String("password"), table: v.String("table-name"),
		maxRows: int(v.Int("sink.buffer-flush.max-rows")), flushInterval: v.Duration("sink.buffer-flush.interval"),
		maxRetries: int(v.Int("sink.max-retries")), connectFor: v.Duration("connection.max-retry-timeout"), askAfter: askAfter,
		guarantee: v.Enum("sink.delivery-guarantee"), protocol: v.Enum("sink.commit-protocol"),
		walLimit: v.Memory("sink.write-ahead.max-bytes"), lookupRetries: int(v.Int("lookup.max-retries")), values: v,
	}
	if c.cache, err = connectors.ParseLookupCache(v); err != nil {
		return nil, err
	}
	if c.maxRows <= 0 {
		c.maxRows = 1 << 30 // Flink: 0 means no limit by count
	}
	if c.maxRetries < 0 {
		return nil, v.Errorf("sink.max-retries", "option 'sink.max-retries' must not be negative")
	}
	if v.Has("username") != v.Has("password") {
		return nil, v.Errorf("username", "options 'username' and 'password' must be given together")
	}
	c.url, err = libpqURL(v)
	return c, err
}

// libpqURL turns Flink's JDBC URL into one pgx understands.
func libpqURL(v *connectors.Values) (string, error) {
	url := v.String("url")
	rest, jdbc := strings.CutPrefix(url, "jdbc:")
	if !strings.HasPrefix(rest, "postgresql://") && !strings.HasPrefix(rest, "postgres://") {
		err := v.Errorf("url", "url %q is not a PostgreSQL URL", url)
		if jdbc {
			scheme, _, _ := strings.Cut(rest, ":")
			err.Detail = fmt.Sprintf("streamsql writes to PostgreSQL only; %q is another database", scheme)
		}
		return "", err.WithHint("write jdbc:postgresql://host:5432/database or postgres://host:5432/database")
	}
	return rest, nil
}

func check(t *catalog.Table, use connectors.Use) error {
	c, err := parse(t)
	if err != nil {
		return err
	}
	if use == connectors.UseSource {
		return diag.New(diag.Unsupported, t.Options.Pos("connector"), "table %q: reading from connector %q is not supported", t.Name, t.Connector()).
			WithHint("read the table through Kafka or a file; or look rows of it up by key: JOIN %s FOR SYSTEM_TIME AS OF s.proc ON ..., where proc AS PROCTIME() is a column of the stream", t.Name)
	}
	for _, col := range t.PhysicalSchema().Columns {
		if _, ok := pgTypes[col.Type.Kind]; !ok {
			return diag.New(diag.Semantic, t.Options.Pos("connector"), "table %q: column %q of type %s cannot be %s PostgreSQL", t.Name, col.Name, col.Type.WithNull(true), map[bool]string{false: "written to", true: "read from"}[use == connectors.UseLookup]).
				WithHint("CAST it to STRING, or use JSON_STRING and a json column")
		}
	}
	for _, col := range t.Columns {
		if col.Kind == catalog.Metadata {
			return diag.New(diag.Semantic, t.Options.Pos("connector"), "table %q: connector %q has no metadata columns, but %q is one", t.Name, t.Connector(), col.Name).
				WithHint("remove METADATA column %q", col.Name)
		}
	}
	return c.checkProtocol(t)
}

func newSink(_ context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
	c, err := parse(spec.Table)
	if err != nil {
		return nil, err
	}
	return newTableSink(c, spec)
}
