package postgres

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

// The tests write to a real PostgreSQL. They drive sinks as the executor does (open, write, pre-commit, commit) and
// play crashes by dropping the sink and making a new one with the next fencing number.

func TestMain(m *testing.M) { os.Exit(harness.Run(m)) }

// lineages makes each fixture's lineage its own: names of prepared transactions are shared by all databases.
var lineages atomic.Int64

// fixture is a database with a table, and the sink's definition.
type fixture struct {
	t     *testing.T
	pg    *harness.PG
	db    string
	table *catalog.Table
	job   connectors.JobInfo
}

func newFixture(t *testing.T, pg *harness.PG, ddl string, key []string, cols []catalog.Column, opts ...string) *fixture {
	t.Helper()
	f := &fixture{t: t, pg: pg, db: pg.CreateDatabase(t)}
	pg.Exec(t, f.db, ddl)
	o := catalog.NewOptions()
	o.Set("connector", "postgres", diag.Pos{})
	o.Set("url", pg.DSN(f.db), diag.Pos{})
	o.Set("table-name", "out", diag.Pos{})
	for i := 0; i+1 < len(opts); i += 2 {
		o.Set(opts[i], opts[i+1], diag.Pos{})
	}
	f.table = &catalog.Table{Name: "out", Columns: cols, PrimaryKey: key, Options: o}
	f.job = connectors.JobInfo{Name: "job", ID: "job", Lineage: fmt.Sprintf("%012x", lineages.Add(1)), Fence: 1, MaxConcurrentCheckpoints: 1}
	return f
}

var idName = []catalog.Column{{Name: "id", Type: types.IntType}, {Name: "name", Type: types.StringType}}

const idNameDDL = `CREATE TABLE out (id int, name text)`

func (f *fixture) sink(parallel int) *tableSink {
	f.t.Helper()
	modes, err := sinkModes(f.table)
	if err != nil {
		f.t.Fatal(err)
	}
	if err := check(f.table, connectors.UseSink); err != nil {
		f.t.Fatal(err)
	}
	s, err := newSink(context.Background(), connectors.SinkSpec{
		ID: "out", Table: f.table, Schema: f.table.PhysicalSchema(), Mode: modes[0], Parallel: parallel, Job: f.job,
	})
	if err != nil {
		f.t.Fatal(err)
	}
	return s.(*tableSink)
}

func (f *fixture) open(s *tableSink, subtask int) connectors.Writer {
	f.t.Helper()
	w, err := s.Open(context.Background(), subtask)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { w.Close() })
	return w
}

func (f *fixture) committer(s *tableSink) checkpoint.Committer {
	f.t.Helper()
	c, err := s.Committer(context.Background())
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() { c.Close() })
	return c
}

func (f *fixture) rows(query string) []string { return f.pg.Rows(f.t, f.db, query) }

func idNames(kinds []types.RowKind, rows ...any) *batch.Batch {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "id", Type: types.IntType}, types.Column{Name: "name", Type: types.StringType}))
	for i := 0; i < len(rows); i += 2 {
		b.Cols[0].AppendI64(int64(rows[i].(int)))
		if s, ok := rows[i+1].(string); ok {
			b.Cols[1].AppendStr(s)
		} else {
			b.Cols[1].AppendNull()
		}
		k := types.Insert
		if kinds != nil {
			k = kinds[i/2]
		}
		b.RowKindDone(k)
	}
	return b.Finish()
}

func must[T any](t *testing.T) func(v T, err error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func equal(t *testing.T, got []string, want ...string) {
	t.Helper()
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// Both protocols: rows show only after commit, commit is idempotent and can be done by another process, Classify
// proves the outcome at every step.
func TestTwoPhaseCommit(t *testing.T) {
	pg := harness.SharedPostgres(t)
	for _, protocol := range []string{prepared, writeAhead} {
		t.Run(protocol, func(t *testing.T) {
			ctx := context.Background()
			f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", protocol)
			s := f.sink(1)
			if err := s.Preflight(ctx); err != nil {
				t.Fatal(err)
			}
			w := f.open(s, 0)
			if err := w.Write(ctx, idNames(nil, 1, "a", 2, nil, 3, "tab\tnew\nback\\slash")); err != nil {
				t.Fatal(err)
			}
			cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
			if len(cs) != 1 {
				t.Fatalf("%d committables", len(cs))
			}
			equal(t, f.rows(`SELECT count(*) FROM out`), "0")

			// The process dies; the next one commits.
			w.Close()
			f.job.Fence++
			s2 := f.sink(1)
			c := f.committer(s2)
			if o := must[[]checkpoint.Outcome](t)(c.Classify(ctx, cs)); o[0] != checkpoint.OutcomeOpen {
				t.Fatalf("before commit: %v", o)
			}
			for range 2 {
				if err := c.Commit(ctx, cs); err != nil {
					t.Fatal(err)
				}
			}
			if o := must[[]checkpoint.Outcome](t)(c.Classify(ctx, cs)); o[0] != checkpoint.OutcomeCommitted {
				t.Fatalf("after commit: %v", o)
			}
			equal(t, f.rows(`SELECT id, coalesce(quote_literal(name), 'NULL') FROM out ORDER BY id`),
				"1|'a'", "2|NULL", `3|E'tab	new`+"\n"+`back\\slash'`)
			if err := c.Abort(ctx, nil); err != nil {
				t.Fatal(err)
			}
			equal(t, pg.PreparedTransactions(t, f.db))
		})
	}
}

// Output of a checkpoint that was never published is aborted, and the aborted transaction is recognised as such.
func TestAbort(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", prepared)
	w := f.open(f.sink(1), 0)
	if err := w.Write(ctx, idNames(nil, 1, "kept")); err != nil {
		t.Fatal(err)
	}
	keep := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
	if err := w.Write(ctx, idNames(nil, 2, "gone")); err != nil {
		t.Fatal(err)
	}
	gone := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 2))
	if n := len(pg.PreparedTransactions(t, f.db)); n != 2 {
		t.Fatalf("%d prepared transactions", n)
	}
	f.job.Fence++
	c := f.committer(f.sink(1))
	if err := c.Abort(ctx, keep); err != nil {
		t.Fatal(err)
	}
	o := must[[]checkpoint.Outcome](t)(c.Classify(ctx, append(keep, gone...)))
	if o[0] != checkpoint.OutcomeOpen || o[1] != checkpoint.OutcomeAborted {
		t.Fatalf("outcomes %v", o)
	}
	err := c.Commit(ctx, gone)
	if diag.CodeOf(err) != diag.Lost {
		t.Fatalf("committing a rolled back transaction: %v", err)
	}
	if err := c.Commit(ctx, keep); err != nil {
		t.Fatal(err)
	}
	equal(t, f.rows(`SELECT id FROM out`), "1")
}

// A writer of an earlier incarnation that wakes up can neither prepare nor upsert, and an open transaction of it does
// not hold up its successor.
func TestZombie(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	for _, tc := range []struct {
		name string
		key  []string
		opts []string
	}{
		{"prepared", nil, []string{"sink.commit-protocol", prepared}},
		{"write-ahead", nil, []string{"sink.commit-protocol", writeAhead}},
		{"upsert", []string{"id"}, []string{"sink.commit-protocol", upsert}},
		{"keyed write-ahead", []string{"id"}, nil},
		{"at-least-once", nil, []string{"sink.delivery-guarantee", "at-least-once"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := newFixture(t, pg, `CREATE TABLE out (id int primary key, name text)`, tc.key, idName, tc.opts...)
			old := f.sink(1)
			zombie := f.open(old, 0)
			if err := zombie.Write(ctx, idNames(nil, 1, "zombie")); err != nil {
				t.Fatal(err)
			}
			if p, ok := zombie.(*preparedWriter); ok {
				if err := p.send(ctx); err != nil {
					t.Fatal(err)
				}
			}
			f.job.Fence++
			s := f.sink(1)
			if s.spec.Mode.Delivery == connectors.TwoPhaseCommit {
				if err := f.committer(s).Abort(ctx, nil); err != nil {
					t.Fatal(err)
				}
			}
			w := f.open(s, 0)
			cs, err := zombie.PreCommit(ctx, 1)
			if err == nil && len(cs) > 0 {
				err = f.committer(old).Commit(ctx, cs)
			}
			if err == nil {
				t.Fatal("the zombie was let through")
			}
			if err := w.Write(ctx, idNames(nil, 2, "new")); err != nil {
				t.Fatal(err)
			}
			cs = must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
			if len(cs) > 0 {
				if err := f.committer(s).Commit(ctx, cs); err != nil {
					t.Fatal(err)
				}
			}
			equal(t, f.rows(`SELECT id, name FROM out`), "2|new")
			equal(t, pg.PreparedTransactions(t, f.db))
		})
	}
}

// Two live jobs of one name, from different state directories: the second is refused.
func TestSecondJobIsRefused(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, idNameDDL, nil, idName)
	f.open(f.sink(1), 0)
	f.job.Lineage = fmt.Sprintf("%012x", lineages.Add(1))
	_, err := f.sink(1).Open(ctx, 0)
	if diag.CodeOf(err) != diag.Conflict || !strings.Contains(err.Error(), "another job named") {
		t.Fatalf("got %v", err)
	}
}

func TestUpsert(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, `CREATE TABLE out (id int primary key, name text)`, []string{"id"}, idName, "sink.commit-protocol", upsert)
	s := f.sink(1)
	if err := s.Preflight(ctx); err != nil {
		t.Fatal(err)
	}
	w := f.open(s, 0)
	k := []types.RowKind{types.Insert, types.Insert, types.UpdateAfter, types.Insert, types.Delete, types.Insert, types.Delete, types.UpdateAfter}
	if err := w.Write(ctx, idNames(k, 1, "a", 2, "b", 1, "a2", 3, "c", 3, "c", 4, "d", 4, "d", 4, "d2")); err != nil {
		t.Fatal(err)
	}
	must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
	equal(t, f.rows(`SELECT id, name FROM out ORDER BY id`), "1|a2", "2|b", "4|d2")
	if err := w.Write(ctx, idNames([]types.RowKind{types.Delete, types.UpdateAfter}, 2, "b", 1, nil)); err != nil {
		t.Fatal(err)
	}
	must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 2))
	equal(t, f.rows(`SELECT id, coalesce(name, 'NULL') FROM out ORDER BY id`), "1|NULL", "4|d2")
}

// A session that the server ends between two flushes is replaced and the flush repeated.
func TestUpsertReconnects(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, `CREATE TABLE out (id int primary key, name text)`, []string{"id"}, idName, "sink.commit-protocol", upsert)
	w := f.open(f.sink(1), 0)
	if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
		t.Fatal(err)
	}
	f.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'streamsql:%' AND datname = current_database()`)
	must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
	equal(t, f.rows(`SELECT id, name FROM out`), "1|a")
}

func TestAllTypes(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	cols := []catalog.Column{
		{Name: "b", Type: types.BoolType}, {Name: "i8", Type: types.Of(types.TinyInt)}, {Name: "i64", Type: types.BigIntType},
		{Name: "f", Type: types.Of(types.Float)}, {Name: "d", Type: types.DoubleType}, {Name: "dec", Type: types.DecimalOf(10, 2)},
		{Name: "big", Type: types.DecimalOf(38, 10)}, {Name: "s", Type: types.StringType}, {Name: "by", Type: types.BytesType},
		{Name: "da", Type: types.DateType}, {Name: "ti", Type: types.TimestampOf(types.Time, 3)},
		{Name: "ts", Type: types.TimestampMs}, {Name: "ltz", Type: types.TimestampOf(types.TimestampLTZ, 6)}, {Name: "Select", Type: types.IntType},
	}
	f := newFixture(t, pg, `CREATE TABLE out (b bool, i8 smallint, i64 bigint, f real, d double precision, dec numeric(10,2), big numeric,
		s varchar(40), by bytea, da date, ti time, ts timestamp, ltz timestamptz, "Select" int)`, nil, cols)
	s := f.sink(1)
	if err := s.Preflight(ctx); err != nil {
		t.Fatal(err)
	}
	w := f.open(s, 0)
	bld := batch.NewBuilder(f.table.PhysicalSchema())
	vals := []types.Datum{types.BoolDatum(true), types.IntDatum(-128), types.IntDatum(math.MinInt64), types.FloatDatum(float64(float32(1.5))),
		types.FloatDatum(math.Inf(-1)), types.IntDatum(-1), types.I128Datum(types.I128(math.MaxInt64)), types.StrDatum("héllo"), types.StrDatum("\x00\xff"),
		types.IntDatum(-1), types.IntDatum(3_723_004), types.IntDatum(-1), types.IntDatum(1_700_000_000_123_456), types.IntDatum(7)}
	for i, d := range vals {
		bld.Cols[i].AppendDatum(d)
	}
	bld.RowDone()
	for i := range vals {
		bld.Cols[i].AppendNull()
	}
	bld.RowDone()
	if err := w.Write(ctx, bld.Finish()); err != nil {
		t.Fatal(err)
	}
	cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
	if err := f.committer(s).Commit(ctx, cs); err != nil {
		t.Fatal(err)
	}
	equal(t, f.rows(`SELECT b, i8, i64, f, d::text, dec::text, big::text, s, by::text, da::text, ti::text, ts::text, (ltz AT TIME ZONE 'UTC')::text, "Select" FROM out WHERE b`),
		`true|-128|-9223372036854775808|1.5|-Infinity|-0.01|922337203.6854775807|héllo|\x00ff|1969-12-31|01:02:03.004|1969-12-31 23:59:59.999999|2023-11-14 22:13:20.123456|7`)
	equal(t, f.rows(`SELECT count(*) FROM out WHERE num_nonnulls(b, i8, i64, f, d, dec, big, s, by, da, ti, ts, ltz, "Select") = 0`), "1")
}

// Every refusal of Preflight names the fault and the fix.
func TestPreflight(t *testing.T) {
	pg := harness.SharedPostgres(t)
	none := harness.Postgres(t, harness.PGMaxPrepared(0))
	for _, tc := range []struct {
		name, ddl string
		pg        *harness.PG
		key       []string
		opts      []string
		want      []string
	}{
		{"missing table", `SELECT 1`, pg, nil, nil, []string{`table "out" does not exist`}},
		{"missing column", `CREATE TABLE out (id int, nam text)`, pg, nil, nil, []string{`column "name" does not exist`, `did you mean "nam"`}},
		{"wrong type", `CREATE TABLE out (id smallint, name text)`, pg, nil, nil, []string{`column "id" is INT, but the PostgreSQL column is smallint`, "ALTER COLUMN id TYPE int4"}},
		{"extra not null", `CREATE TABLE out (id int, name text, x int NOT NULL)`, pg, nil, nil, []string{`column "x"`, "NOT NULL without a default"}},
		{"generated", `CREATE TABLE out (id int GENERATED ALWAYS AS IDENTITY, name text)`, pg, nil, nil, []string{`column "id" is generated`}},
		{"no unique index", `CREATE TABLE out (id int, name text UNIQUE)`, pg, []string{"id"}, nil, []string{"no unique index on the primary key (id)", "ADD PRIMARY KEY (id)", "there are (name)"}},
		{"partial index", `CREATE TABLE out (id int, name text); CREATE UNIQUE INDEX ON out (id) WHERE id > 0`, pg, []string{"id"}, nil, []string{"no unique index"}},
		{"no prepared transactions", idNameDDL, none, nil, []string{"sink.commit-protocol", prepared}, []string{"needs 6 prepared transactions", "max_prepared_transactions is 0", "write-ahead"}},
		{"too few", idNameDDL, pg, nil, []string{"sink.commit-protocol", prepared, "x-parallel", "1000"}, []string{"needs 3000 prepared transactions"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parallel := 2
			if len(tc.opts) == 4 {
				parallel, tc.opts = 1000, tc.opts[:2]
			}
			f := newFixture(t, tc.pg, tc.ddl, tc.key, idName, tc.opts...)
			err := f.sink(parallel).Preflight(context.Background())
			if err == nil {
				t.Fatal("accepted")
			}
			text := diag.Render(err, "", "")
			for _, w := range tc.want {
				if !strings.Contains(text, w) {
					t.Errorf("error lacks %q:\n%s", w, text)
				}
			}
		})
	}
	t.Run("auto falls back to write-ahead", func(t *testing.T) {
		f := newFixture(t, none, idNameDDL, nil, idName)
		s := f.sink(2)
		if err := s.Preflight(context.Background()); err != nil || s.protocol != writeAhead {
			t.Fatalf("protocol %q, %v", s.protocol, err)
		}
	})
	t.Run("auto takes prepared", func(t *testing.T) {
		f := newFixture(t, pg, idNameDDL, nil, idName)
		s := f.sink(2)
		if err := s.Preflight(context.Background()); err != nil || s.protocol != prepared {
			t.Fatalf("protocol %q, %v", s.protocol, err)
		}
	})
	t.Run("unreachable", func(t *testing.T) {
		f := newFixture(t, pg, idNameDDL, nil, idName, "url", "postgres://nobody@127.0.0.1:1/x", "connection.max-retry-timeout", "1 ms")
		if err := f.sink(1).Preflight(context.Background()); err == nil || !strings.Contains(err.Error(), "cannot connect to PostgreSQL at 127.0.0.1:1") {
			t.Fatal(err)
		}
	})
}

// Values that PostgreSQL cannot hold are refused with the column, before anything is sent.
func TestBadValues(t *testing.T) {
	pg := harness.SharedPostgres(t)
	f := newFixture(t, pg, idNameDDL, nil, idName)
	w := f.open(f.sink(1), 0)
	for _, bad := range []string{"nul \x00", "not utf-8 \xff"} {
		err := w.Write(context.Background(), idNames(nil, 1, bad))
		if diag.CodeOf(err) != diag.Data || !strings.Contains(err.Error(), `"name"`) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// A commit interrupted by the death of the server is settled by the marker on a new session.
func TestCommitSurvivesServerRestart(t *testing.T) {
	pg := harness.Postgres(t, harness.PGDurable())
	ctx := context.Background()
	for _, protocol := range []string{prepared, writeAhead} {
		f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", protocol)
		s := f.sink(1)
		w := f.open(s, 0)
		if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
			t.Fatal(err)
		}
		cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
		c := f.committer(s)
		must[[]checkpoint.Outcome](t)(c.Classify(ctx, cs)) // the session exists
		pg.Kill()
		if err := pg.Restart(); err != nil {
			t.Fatal(err)
		}
		var err error
		for range 3 { // the executor repeats a commit until nil
			if err = c.Commit(ctx, cs); err == nil {
				break
			}
			if !retryable(errors.Unwrap(err)) {
				t.Fatalf("%s: not retryable: %v", protocol, err)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		equal(t, f.rows(`SELECT id FROM out`), "1")
	}
}

func TestCommittableRoundTrip(t *testing.T) {
	for _, in := range []committable{
		{Protocol: writeAhead, Rows: 2, Columns: []string{"a", "b"}, data: []byte("1\tx\n2\ty\n")},
		{Protocol: writeAhead, Rows: 3, Columns: []string{"a", "b"}, Key: []string{"a"}, Deletes: 2, Split: 4, data: []byte("1\n3\n2\ty\n")},
	} {
		out, err := decodeCommittable(checkpoint.Committable{Payload: in.encode()})
		if err != nil || fmt.Sprint(*out) != fmt.Sprint(in) {
			t.Fatalf("%v, %v", out, err)
		}
	}
}

// What a release wrote stays readable: the bytes are those of the releases that knew rows to append only.
func TestCommittableOfBefore(t *testing.T) {
	head := `{"protocol":"write-ahead","seq":0,"rows":1}`
	old := "\x01" + string(rune(len(head))) + head + "1\tx\n"
	p, err := decodeCommittable(checkpoint.Committable{Payload: []byte(old)})
	if err != nil || p.Key != nil || p.Rows != 1 || string(p.data) != "1\tx\n" {
		t.Fatalf("%+v, %v", p, err)
	}
}

func FuzzDecodeCommittable(f *testing.F) {
	c := committable{Protocol: prepared, GID: "ssql:a", Rows: 2}
	f.Add(c.encode())
	c = committable{Protocol: writeAhead, Rows: 3, Columns: []string{"a", "b"}, Key: []string{"a"}, Deletes: 1, Split: 2, data: []byte("1\n2\ty\n3\tz\n")}
	f.Add(c.encode())
	f.Fuzz(func(t *testing.T, p []byte) {
		_, _ = DescribeCommittable(checkpoint.Committable{Payload: p}, time.UnixMilli(5))
		c, err := decodeCommittable(checkpoint.Committable{Payload: p})
		if err != nil {
			return
		}
		if c.Key != nil && (len(c.data[:c.Split])+len(c.data[c.Split:]) != len(c.data) || c.Protocol != writeAhead) {
			t.Fatalf("changes by key: %+v", c)
		}
		d, err := decodeCommittable(checkpoint.Committable{Payload: c.encode()})
		if err != nil || d.GID != c.GID || !bytes.Equal(d.data, c.data) || d.Split != c.Split || !slices.Equal(d.Key, c.Key) {
			t.Fatalf("%v %v", d, err)
		}
	})
}

func BenchmarkCopyEncode(b *testing.B) {
	bt := idNames(nil, 1, "some name of usual length", 2, "another one")
	s := types.NewSchema(types.Column{Name: "id"}, types.Column{Name: "name"})
	var buf []byte
	b.ReportAllocs()
	for i := 0; i < b.N; i++ {
		buf, _ = appendCopyRow(buf[:0], bt, i&1, s)
	}
}

// A job that was down for longer than markers are kept still finds those of its newest checkpoint, after a restart that was
// killed between its cleaning and its note that all is committed; older ones go.
func TestMarkersAreSwept(t *testing.T) {
	pg := harness.SharedPostgres(t)
	for _, protocol := range []string{prepared, writeAhead} {
		t.Run(protocol, func(t *testing.T) {
			ctx := context.Background()
			f := newFixture(t, pg, idNameDDL, nil, idName, "sink.commit-protocol", protocol)
			s := f.sink(1)
			w, c := f.open(s, 0), f.committer(s)
			var all [2][]checkpoint.Committable
			for i, days := range []string{"100", "50"} {
				if err := w.Write(ctx, idNames(nil, i+1, "a")); err != nil {
					t.Fatal(err)
				}
				all[i] = must[[]checkpoint.Committable](t)(w.PreCommit(ctx, checkpoint.ID(i+1)))
				if err := c.Commit(ctx, all[i]); err != nil {
					t.Fatal(err)
				}
				pg.Exec(t, f.db, fmt.Sprintf(`UPDATE %s SET committed_at = now() - interval '%s days' WHERE ckpt = %d`, commitsTable, days, i+1))
			}
			f.job.Fence++
			if err := f.committer(f.sink(1)).Abort(ctx, nil); err != nil { // the restart that is killed
				t.Fatal(err)
			}
			equal(t, f.rows(`SELECT ckpt FROM `+commitsTable), "2")
			f.job.Fence++
			next := f.committer(f.sink(1))
			if o := must[[]checkpoint.Outcome](t)(next.Classify(ctx, all[1])); o[0] != checkpoint.OutcomeCommitted {
				t.Errorf("the newest checkpoint's output is %v, want committed", o)
			}
			if err := next.Commit(ctx, all[1]); err != nil {
				t.Fatal(err)
			}
			equal(t, f.rows(`SELECT id FROM out ORDER BY id`), "1", "2")
		})
	}
}

// FuzzGID: a name of a prepared transaction is taken apart only if it is one, and then it is the one that it says.
func FuzzGID(f *testing.F) {
	f.Add(gidFor(identity{job: "j", sink: "s", lineage: "0f0e0d0c-0b0a-0908-0706-050403020100"}, "0f0e0d0c-0b0a-0908-0706-050403020100", 7, 1, 0))
	f.Add("ssql:::::-1:")
	f.Fuzz(func(t *testing.T, s string) {
		g, ok := parseGID(s)
		if ok && !strings.HasPrefix(s, "ssql:"+g.job+":"+g.sink+":"+g.lineage+":") {
			t.Fatalf("%q is %+v", s, g)
		}
	})
}
