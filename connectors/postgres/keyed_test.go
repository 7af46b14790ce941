package postgres

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

const keyedDDL = `CREATE TABLE out (id int PRIMARY KEY, name text)`

// commit commits as often as it takes, which is once, and once more: that must change nothing.
func (f *fixture) commit(c checkpoint.Committer, cs []checkpoint.Committable) {
	f.t.Helper()
	for range 2 {
		if err := c.Commit(context.Background(), cs); err != nil {
			f.t.Fatal(err)
		}
	}
}

// Goal: rows with a key take effect with their checkpoint, in its order, once. Method: changes of the same keys in three
// checkpoints, with deletions; another process commits the second, twice, and the first again.
func TestKeyed(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, keyedDDL, []string{"id"}, idName)
	s := f.sink(1)
	if err := s.Preflight(ctx); err != nil || s.protocol != writeAhead {
		t.Fatalf("protocol %q, %v", s.protocol, err)
	}
	w, c := f.open(s, 0), f.committer(s)
	pre := func(id checkpoint.ID, kinds []types.RowKind, rows ...any) []checkpoint.Committable {
		t.Helper()
		if err := w.Write(ctx, idNames(kinds, rows...)); err != nil {
			t.Fatal(err)
		}
		return must[[]checkpoint.Committable](t)(w.PreCommit(ctx, id))
	}
	const rows = `SELECT id, coalesce(name, 'NULL') FROM out ORDER BY id`

	first := pre(1, []types.RowKind{types.Insert, types.Insert, types.UpdateBefore, types.UpdateAfter, types.Insert, types.Delete, types.Insert},
		1, "a", 2, "tab\tnew\nback\\slash", 1, "a", 1, "a2", 3, "c", 3, "c", 4, nil)
	equal(t, f.rows(rows)) // hidden until the commit
	f.commit(c, first)
	equal(t, f.rows(rows), "1|a2", "2|tab\tnew\nback\\slash", "4|NULL")

	second := pre(2, []types.RowKind{types.Delete, types.UpdateAfter, types.Insert}, 2, "b", 1, "a3", 5, "e")
	third := pre(3, []types.RowKind{types.Insert, types.Delete}, 2, "again", 5, "e")
	if more := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 4)); len(more) != 0 {
		t.Errorf("%d committables of a checkpoint without rows", len(more))
	}
	w.Close()
	next, outcomes := f.classify(slices.Concat(first, second, third))
	if want := []checkpoint.Outcome{checkpoint.OutcomeCommitted, checkpoint.OutcomeOpen, checkpoint.OutcomeOpen}; !slices.Equal(outcomes, want) {
		t.Fatalf("the outcomes are %v, want %v", outcomes, want)
	}
	f.commit(next, second)
	equal(t, f.rows(rows), "1|a3", "4|NULL", "5|e")
	f.commit(next, first) // its marker is there: nothing goes back
	equal(t, f.rows(rows), "1|a3", "4|NULL", "5|e")
	f.commit(next, third)
	equal(t, f.rows(rows), "1|a3", "2|again", "4|NULL")
	equal(t, f.rows(`SELECT ckpt, rows FROM `+commitsTable+` ORDER BY ckpt`), "1|4", "2|3", "3|2")

	text := must[string](t)(DescribeCommittable(second[0], time.Now()))
	if !strings.Contains(text, "changes of 3 keys (1 deletions) of checkpoint 2") {
		t.Error(text)
	}
	if err := next.Abort(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Classify(ctx, third); err == nil { // the first process, whose session was ended
		if err := c.Commit(ctx, pre(5, nil, 9, "zombie")); err == nil {
			t.Error("a process that was replaced may commit")
		}
	}
	equal(t, f.rows(`SELECT id FROM out WHERE id = 9`))
}

// Goal: a key of several columns, quoted names, and a table that is only key. Method: insert and delete through two checkpoints.
func TestKeyedByAllColumns(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	cols := []catalog.Column{{Name: "id", Type: types.IntType}, {Name: "name", Type: types.StringType}}
	f := newFixture(t, pg, `CREATE TABLE out (name text, id int, PRIMARY KEY (name, id))`, []string{"name", "id"}, cols)
	s := f.sink(1)
	w, c := f.open(s, 0), f.committer(s)
	for i, step := range []struct {
		kind types.RowKind
		want []string
	}{{types.Insert, []string{"1|x", "2|y"}}, {types.Insert, []string{"1|x", "2|y"}}, {types.Delete, nil}} {
		if err := w.Write(ctx, idNames([]types.RowKind{step.kind, step.kind}, 1, "x", 2, "y")); err != nil {
			t.Fatal(err)
		}
		f.commit(c, must[[]checkpoint.Committable](t)(w.PreCommit(ctx, checkpoint.ID(i+1))))
		equal(t, f.rows(`SELECT id, name FROM out ORDER BY id`), step.want...)
	}
}

// Goal: what a table was written with before is settled, whatever it is written with now. Method: output left in the
// checkpoint by one way of writing, committed by a job with another.
func TestKeyedProtocolChanges(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	for _, c := range []struct {
		name                string
		before, after       []string // options
		keyBefore, keyAfter []string
	}{
		{"to upsert", nil, []string{"sink.commit-protocol", upsert}, []string{"id"}, []string{"id"}},
		{"to at-least-once", nil, []string{"sink.delivery-guarantee", "at-least-once"}, []string{"id"}, []string{"id"}},
		{"to no key", nil, nil, []string{"id"}, nil},
		{"from appending", []string{"sink.commit-protocol", writeAhead}, nil, nil, []string{"id"}},
		{"from prepared to upsert", []string{"sink.commit-protocol", prepared}, []string{"sink.commit-protocol", upsert}, nil, []string{"id"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, pg, keyedDDL, c.keyBefore, idName)
			with := func(base *catalog.Options, options []string) {
				f.table.Options = base.Clone()
				for i := 0; i < len(options); i += 2 {
					f.table.Options.Set(options[i], options[i+1], diag.Pos{})
				}
			}
			base := f.table.Options
			with(base, c.before)
			w := f.open(f.sink(1), 0)
			if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
				t.Fatal(err)
			}
			cs := must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1))
			w.Close()

			with(base, c.after)
			f.table.PrimaryKey = c.keyAfter
			next, outcomes := f.classify(cs)
			if outcomes[0] != checkpoint.OutcomeOpen {
				t.Fatalf("the outcome is %v", outcomes)
			}
			f.commit(next, cs)
			if err := next.Abort(ctx, nil); err != nil {
				t.Fatal(err)
			}
			equal(t, f.rows(`SELECT id, name FROM out`), "1|a")
		})
	}
}

// Goal: a row that the table refuses fails the job before it is in a checkpoint, which could never be committed. Method: NOT NULL,
// CHECK and a type that is narrower; where a trigger makes the row right, it passes.
func TestKeyedRehearsal(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	for _, c := range []struct{ name, ddl, want string }{
		{"not null", `CREATE TABLE out (id int PRIMARY KEY, name text NOT NULL)`, "null value in column"},
		{"check", `CREATE TABLE out (id int PRIMARY KEY, name text, CHECK (id < 2))`, "violates check constraint"},
		{"length", `CREATE TABLE out (id int PRIMARY KEY, name varchar(2))`, "value too long"},
		{"generated", `CREATE TABLE out (id int PRIMARY KEY, name text, more int NOT NULL GENERATED ALWAYS AS (id + 1) STORED, n serial NOT NULL)`, ""},
		{"trigger", `CREATE TABLE out (id int PRIMARY KEY, name text NOT NULL);
			CREATE FUNCTION filled() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN NEW.name = coalesce(NEW.name, ''x''); RETURN NEW; END';
			CREATE TRIGGER filled BEFORE INSERT ON out FOR EACH ROW EXECUTE FUNCTION filled()`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, pg, c.ddl, []string{"id"}, idName)
			s := f.sink(1)
			w := f.open(s, 0)
			rows := []any{1, "ab", 2, "long"}
			if c.name == "not null" || c.name == "trigger" {
				rows = []any{1, "ab", 2, nil}
			}
			if err := w.Write(ctx, idNames(nil, rows...)); err != nil {
				t.Fatal(err)
			}
			cs, err := w.PreCommit(ctx, 1)
			if c.want != "" {
				if err == nil || diag.CodeOf(err) != diag.Data || !strings.Contains(diag.Render(err, "", ""), c.want) {
					t.Fatalf("%v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			f.commit(f.committer(s), cs)
			equal(t, f.rows(`SELECT id FROM out ORDER BY id`), "1", "2")
		})
	}
}

// A session that the server ends between two checkpoints is replaced.
func TestKeyedReconnects(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, keyedDDL, []string{"id"}, idName)
	s := f.sink(1)
	w := f.open(s, 0)
	if err := w.Write(ctx, idNames(nil, 1, "a")); err != nil {
		t.Fatal(err)
	}
	f.rows(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'streamsql:%' AND datname = current_database()`)
	f.commit(f.committer(s), must[[]checkpoint.Committable](t)(w.PreCommit(ctx, 1)))
	equal(t, f.rows(`SELECT id, name FROM out`), "1|a")
}

// Goal: what is replaced does not count, nor stay in memory. Method: random changes against a map; the limit is met by live rows only.
func TestChangesAreCompacted(t *testing.T) {
	pg := harness.SharedPostgres(t)
	ctx := context.Background()
	f := newFixture(t, pg, keyedDDL, []string{"id"}, idName, "sink.write-ahead.max-bytes", "1mb")
	w := f.open(f.sink(1), 0).(*keyedWriter)
	r := rand.New(rand.NewPCG(1, 2))
	want := map[int]string{}
	pad := strings.Repeat("x", 1000)
	for range 20_000 { // 20 MB of changes to 500 keys
		id, kind := r.IntN(500), types.Insert
		name := fmt.Sprint(pad, r.IntN(1_000_000))
		if want[id] = name; r.IntN(5) == 0 {
			kind = types.Delete
			delete(want, id)
		}
		if err := w.Write(ctx, idNames([]types.RowKind{kind}, id, name)); err != nil {
			t.Fatal(err)
		}
		if n := len(w.arena); n > 3*compactAbove {
			t.Fatalf("%d bytes are held", n)
		}
	}
	data, deletes, split := w.lines()
	if len(data) != w.live || bytes.Count(data[:split], []byte("\n")) != deletes {
		t.Fatalf("%d bytes, live %d, %d deletions", len(data), w.live, deletes)
	}
	got := map[int]string{}
	for line := range strings.Lines(string(data[split:])) {
		var id int
		var name string
		if _, err := fmt.Sscanf(line, "%d\t%s\n", &id, &name); err != nil {
			t.Fatalf("%v in %q", err, line)
		}
		got[id] = name
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Error("the rows are not the last of their keys")
	}
	var err error
	for i := 0; err == nil && i < 2000; i++ {
		err = w.Write(ctx, idNames(nil, 1000+i, pad))
	}
	if diag.CodeOf(err) != diag.Config || !strings.Contains(diag.Render(err, "", ""), "'upsert'") {
		t.Errorf("more than a megabyte of live rows: %v", err)
	}
}

// TestProtocolOptions: which protocol a table gets, and which options contradict each other.
func TestProtocolOptions(t *testing.T) {
	for _, c := range []struct {
		options string // name=value …
		keyed   bool
		want    string // the delivery, or part of the error
	}{
		{"", true, "two-phase commit"},
		{"sink.commit-protocol=auto", true, "two-phase commit"},
		{"sink.commit-protocol=write-ahead", true, "two-phase commit"},
		{"sink.delivery-guarantee=exactly-once", true, "two-phase commit"},
		{"sink.commit-protocol=upsert", true, "idempotent upsert"},
		{"sink.commit-protocol=upsert sink.buffer-flush.max-rows=1", true, "idempotent upsert"},
		{"sink.buffer-flush.interval=1s", true, "idempotent upsert"},
		{"sink.buffer-flush.max-rows=100", true, "idempotent upsert"},
		{"sink.delivery-guarantee=at-least-once", true, "idempotent upsert"},
		{"sink.delivery-guarantee=none", true, "idempotent upsert"},
		{"sink.buffer-flush.max-rows=100", false, "two-phase commit"},
		{"sink.commit-protocol=prepared", true, "keeps its keys locked"},
		{"sink.commit-protocol=upsert", false, "the table has none"},
		{"sink.commit-protocol=write-ahead sink.buffer-flush.interval=1s", true, "has no effect"},
		{"sink.commit-protocol=write-ahead sink.delivery-guarantee=at-least-once", true, "a way to write exactly once"},
	} {
		o := catalog.NewOptions()
		o.Set("connector", "postgres", diag.Pos{})
		o.Set("url", "postgres://h/d", diag.Pos{})
		o.Set("table-name", "out", diag.Pos{})
		for _, kv := range strings.Fields(c.options) {
			k, v, _ := strings.Cut(kv, "=")
			o.Set(k, strings.Replace(v, "1s", "1 s", 1), diag.Pos{})
		}
		table := &catalog.Table{Name: "out", Columns: idName, Options: o}
		if c.keyed {
			table.PrimaryKey = []string{"id"}
		}
		if err := check(table, connectors.UseSink); err != nil {
			if text := diag.Render(err, "", ""); !strings.Contains(text, c.want) || !strings.Contains(text, "hint") {
				t.Errorf("%s: %s", c.options, text)
			}
			continue
		}
		modes, err := sinkModes(table)
		if err != nil || modes[0].Delivery.String() != c.want {
			t.Errorf("%s: %v, %v, want %s", c.options, modes, err, c.want)
			continue
		}
		if asked, _, _ := strings.Cut(c.options, "="); asked != "" && c.keyed && c.want == "idempotent upsert" && !strings.Contains(modes[0].Reason, asked) {
			t.Errorf("%s: the reason is %s", c.options, modes[0].Reason)
		}
	}
}
