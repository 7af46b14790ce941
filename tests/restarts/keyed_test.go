package restarts

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: a table with a primary key is what the query gives, also where a replay does not come by a row or a value again that was
// written before the failure. Method: the program feeds the rows, so that it decides in which batches and in which order the second
// life sees them. The job is cancelled, which leaves things as a crash does, after a row was written and before a checkpoint; with
// 'upsert', which writes before the checkpoint, the row must stay behind: else the test would show nothing.

// keyedJob has a table by key in PostgreSQL; no checkpoint comes by itself.
const keyedJob = `
SET 'pipeline.name' = 'keyed';
SET 'parallelism.default' = '1';
SET 'execution.checkpointing.interval' = '1 h';
CREATE TABLE IF NOT EXISTS sink (id BIGINT, v BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%s', 'table-name' = 'out', 'connection.max-retry-timeout' = '2 min'%s);
`

// writtenEarly are the options of a table that is written before the checkpoint.
const writtenEarly = ", 'sink.commit-protocol' = 'upsert', 'sink.buffer-flush.max-rows' = '1'"

type keyedFixture struct {
	t      *testing.T
	pg     *harness.PG
	db     string
	state  string
	script string
	early  bool // rows are seen before their checkpoint
	eng    *streamsql.Engine
	job    *streamsql.Job
}

func newKeyed(t *testing.T, options, tables, insert string) *keyedFixture {
	f := &keyedFixture{t: t, pg: harness.SharedPostgres(t), state: t.TempDir(), early: options == writtenEarly}
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE out (id bigint PRIMARY KEY, v bigint)`)
	f.script = fmt.Sprintf(keyedJob, f.pg.DSN(f.db), options) + tables + insert
	f.process()
	return f
}

// process begins a life of the program: feeds are empty.
func (f *keyedFixture) process() {
	f.t.Helper()
	if f.eng != nil {
		if err := f.eng.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
	eng, err := streamsql.Open(f.state, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	f.eng = eng
	f.t.Cleanup(func() { eng.Close() })
	f.start()
}

func (f *keyedFixture) start() { f.job = begin(f.t, f.eng, f.script) }

// crash ends the job without a checkpoint.
func (f *keyedFixture) crash() {
	f.t.Helper()
	f.job.Cancel()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := f.job.Wait(ctx); ctx.Err() != nil {
		f.t.Fatal(err)
	}
}

func (f *keyedFixture) send(table string, values ...any) {
	f.t.Helper()
	feed, err := f.eng.Feed(table)
	if err == nil {
		err = feed.Send(f.t.Context(), values...)
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

// shows waits until the table has the rows, taking checkpoints where they are not seen before.
func (f *keyedFixture) shows(checkpoints bool, want ...string) {
	f.t.Helper()
	var got []string
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if checkpoints {
			if _, err := f.job.Checkpoint(f.t.Context()); err != nil {
				f.t.Fatal(err)
			}
		}
		if got = f.pg.Rows(f.t, f.db, `SELECT id, v FROM out ORDER BY id`); slices.Equal(got, want) {
			return
		}
	}
	f.t.Fatalf("the table has %q, want %q", got, want)
}

// crashBeforeTheCheckpoint crashes after what was sent has been written, where it is written before the checkpoint.
func (f *keyedFixture) crashBeforeTheCheckpoint(rows ...string) {
	f.t.Helper()
	if f.early {
		f.shows(false, rows...)
	}
	f.crash()
}

func eachProtocol(t *testing.T, run func(t *testing.T, options string, early bool)) {
	t.Run("default", func(t *testing.T) { run(t, "", false) })
	t.Run("upsert", func(t *testing.T) { run(t, writtenEarly, true) })
}

// TestKeyedSumComesBack: +1 was written, and the replay has +1 and -1 in one batch, which change nothing.
func TestKeyedSumComesBack(t *testing.T) {
	eachProtocol(t, func(t *testing.T, options string, early bool) {
		f := newKeyed(t, options, "CREATE TABLE IF NOT EXISTS amounts (id BIGINT, v BIGINT) WITH ('connector' = 'memory');\n",
			"INSERT INTO sink SELECT id, SUM(v) FROM amounts GROUP BY id;")
		f.send("amounts", 1, 5)
		f.shows(true, "1|5")
		f.send("amounts", 1, 1)
		f.crashBeforeTheCheckpoint("1|6")
		f.send("amounts", 1, -1)
		f.send("amounts", 2, 2) // seen when the others are
		f.start()
		if early {
			f.shows(true, "1|6", "2|2")
		} else {
			f.shows(true, "1|5", "2|2")
		}
	})
}

// TestKeyedGroupThatStopsToPass: a row was written, and in the replay its group never passes the condition.
func TestKeyedGroupThatStopsToPass(t *testing.T) {
	eachProtocol(t, func(t *testing.T, options string, early bool) {
		f := newKeyed(t, options, "CREATE TABLE IF NOT EXISTS amounts (id BIGINT, v BIGINT) WITH ('connector' = 'memory');\n",
			"INSERT INTO sink SELECT id, MAX(v) FROM amounts GROUP BY id HAVING COUNT(*) < 2;")
		f.send("amounts", 1, 5)
		f.crashBeforeTheCheckpoint("1|5")
		f.send("amounts", 1, 6)
		f.send("amounts", 2, 2)
		f.start()
		if early {
			f.shows(true, "1|5", "2|2")
		} else {
			f.shows(true, "2|2")
		}
	})
}

// TestKeyedOuterJoin: an order without a payment was written, and in the replay its payment is there first.
func TestKeyedOuterJoin(t *testing.T) {
	eachProtocol(t, func(t *testing.T, options string, early bool) {
		f := newKeyed(t, options, `CREATE TABLE IF NOT EXISTS orders (id BIGINT, v BIGINT) WITH ('connector' = 'memory');
CREATE TABLE IF NOT EXISTS payments (id BIGINT) WITH ('connector' = 'memory');
`, "INSERT INTO sink SELECT o.id, o.v FROM orders o LEFT JOIN payments p ON o.id = p.id WHERE p.id IS NULL;")
		f.send("orders", 1, 10)
		f.shows(true, "1|10")
		f.send("orders", 2, 20)
		f.crashBeforeTheCheckpoint("1|10", "2|20")

		f.process()
		f.send("payments", 2)
		f.send("payments", 1)
		if early { // once the second payment has met its order, the join has the first
			f.shows(true, "2|20")
		} else {
			f.shows(true)
		}
		f.send("orders", 2, 20)
		f.send("orders", 3, 30)
		if early {
			f.shows(true, "2|20", "3|30")
		} else {
			f.shows(true, "3|30")
		}
	})
}
