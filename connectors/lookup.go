package connectors

import (
	"context"
	"log/slog"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// LookupSpec is what a table is opened with to find rows by key (FOR SYSTEM_TIME AS OF a processing time).
type LookupSpec struct {
	Table *catalog.Table
	// Columns are the positions in Table.Columns to produce, in output order: physical columns only.
	Columns []int
	// Schema is the output: Columns' names and types.
	Schema *types.Schema
	// Keys are the positions in Schema of the columns rows are found by, at least one.
	Keys     []int
	Session  expr.Session
	Embedded string
	// Requests is how many calls of Find there may be at a time.
	Requests int
	Log      *slog.Logger
}

// Lookup finds rows of a table by key, as the table is at that moment. Safe for concurrent use.
type Lookup interface {
	// Find appends to out the rows whose key columns equal those of a row of keys, and to of, for each row appended, the
	// row of keys it belongs to (its place among the rows of keys that count). keys has a column per LookupSpec.Keys, of
	// that column's type; no value is NULL and no two rows are equal. Rows may come in any order. Nothing is appended
	// when there is an error.
	Find(ctx context.Context, keys *batch.Batch, out *batch.Builder, of []int32) ([]int32, error)
	Close() error
}

// LookupCache says how rows found by key are kept in memory, for all subtasks of a lookup. The zero value keeps nothing.
type LookupCache struct {
	Partial           bool
	MaxRows           int64         // rows kept, by least recent use; 0 = no limit
	ExpireAfterWrite  time.Duration // 0 = never
	ExpireAfterAccess time.Duration // 0 = never
	CacheMissing      bool          // also remember that a key has no rows
}

// LookupOptions are the options of tables that can be looked up, by Flink's names.
var LookupOptions = []Option{
	{Key: "lookup.cache", Type: EnumOption, Default: "NONE", Values: []string{"NONE", "PARTIAL"}, Flink: true,
		Doc: "Lookup join: 'PARTIAL' keeps rows found in memory; needs one of the three limits below."},
	{Key: "lookup.partial-cache.max-rows", Type: IntOption, Flink: true, Doc: "Lookup cache: rows kept at most."},
	{Key: "lookup.partial-cache.expire-after-write", Type: DurationOption, Flink: true, Doc: "Lookup cache: how long a row serves after it was read."},
	{Key: "lookup.partial-cache.expire-after-access", Type: DurationOption, Flink: true, Doc: "Lookup cache: how long a row serves after it was last asked for."},
	{Key: "lookup.partial-cache.cache-missing-key", Type: BoolOption, Default: "true", Flink: true, Doc: "Lookup cache: remember also that a key has no row."},
	{Key: "lookup.cache.max-rows", Type: IntOption, Flink: true, Doc: "Older name: with 'lookup.cache.ttl', a partial cache of that many rows."},
	{Key: "lookup.cache.ttl", Type: DurationOption, Flink: true, Doc: "Older name: how long a cached row serves after it was read."},
	{Key: "lookup.cache.caching-missing-key", Type: BoolOption, Default: "true", Flink: true, Doc: "Older name of 'lookup.partial-cache.cache-missing-key'."},
	{Key: "lookup.max-retries", Type: IntOption, Default: "3", Flink: true, Doc: "How often a failed lookup is repeated before the job fails; waits 0, 1, 2 … seconds between."},
}

// ParseLookupCache reads the cache options among LookupOptions and checks their combination.
func ParseLookupCache(v *Values) (LookupCache, error) {
	for _, key := range []string{"lookup.partial-cache.max-rows", "lookup.cache.max-rows", "lookup.max-retries"} {
		if v.Has(key) && v.Int(key) < 0 && (key != "lookup.cache.max-rows" || v.Int(key) != -1) {
			return LookupCache{}, v.Errorf(key, "the number must not be negative")
		}
	}
	if v.Has("lookup.cache.max-rows") != v.Has("lookup.cache.ttl") {
		return LookupCache{}, v.Errorf("lookup.cache.max-rows", "'lookup.cache.max-rows' and 'lookup.cache.ttl' go together").
			WithHint("use 'lookup.cache' = 'PARTIAL' with 'lookup.partial-cache.max-rows' or 'lookup.partial-cache.expire-after-write'")
	}
	if v.Enum("lookup.cache") == "PARTIAL" {
		return parsePartialCache(v)
	}
	for _, key := range []string{"max-rows", "expire-after-write", "expire-after-access", "cache-missing-key"} {
		if key = "lookup.partial-cache." + key; v.Has(key) {
			return LookupCache{}, v.Errorf(key, "it has no effect without 'lookup.cache' = 'PARTIAL'").WithHint("add 'lookup.cache' = 'PARTIAL', or remove it")
		}
	}
	if rows := v.Int("lookup.cache.max-rows"); rows > 0 {
		return LookupCache{Partial: true, MaxRows: rows, ExpireAfterWrite: v.Duration("lookup.cache.ttl"),
			CacheMissing: v.Bool("lookup.cache.caching-missing-key")}, nil
	}
	return LookupCache{}, nil
}

func parsePartialCache(v *Values) (LookupCache, error) {
	c := LookupCache{Partial: true, MaxRows: v.Int("lookup.partial-cache.max-rows"),
		ExpireAfterWrite:  v.Duration("lookup.partial-cache.expire-after-write"),
		ExpireAfterAccess: v.Duration("lookup.partial-cache.expire-after-access"),
		CacheMissing:      v.Bool("lookup.partial-cache.cache-missing-key")}
	limited := false
	for _, key := range []string{"max-rows", "expire-after-write", "expire-after-access"} {
		limited = limited || v.Has("lookup.partial-cache."+key)
	}
	if !limited {
		return c, v.Errorf("lookup.cache", "a partial cache needs a limit").
			WithDetail("without one it would keep every row ever found, as old as it was found").
			WithHint("add 'lookup.partial-cache.max-rows' = '10000' or 'lookup.partial-cache.expire-after-write' = '1 min'")
	}
	return c, nil
}

// RetryLookup calls find until it succeeds, retryable says no, or it failed retries times more; it waits 0, 1, 2 …
// seconds between, as Flink's JDBC connector does, and logs that it does.
func RetryLookup(ctx context.Context, table string, retries int, log *slog.Logger, retryable func(error) bool, find func() error) error {
	for attempt := 0; ; attempt++ {
		err := find()
		if err == nil || ctx.Err() != nil || !retryable(err) || attempt >= retries {
			return err
		}
		if log != nil {
			log.Warn("a lookup failed, trying again", "table", table, "attempt", attempt+1, "of", retries, "err", err)
		}
		timer := time.NewTimer(time.Duration(attempt) * time.Second)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err
		}
	}
}

// NoLookup says that a connector's tables cannot be looked up.
func NoLookup(t *catalog.Table, pos diag.Pos) *diag.Error {
	return diag.New(diag.Unsupported, pos, "table %s cannot be looked up: connector '%s' does not find rows by key", t.Name, t.Connector()).
		WithHint("look up a table of connector 'jdbc'; or give %s a primary key and a watermark and join it as of an event time: FOR SYSTEM_TIME AS OF a rowtime column", t.Name)
}
