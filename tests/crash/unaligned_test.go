package crash

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/tests/harness"
	"github.com/streamsql/streamsql/tests/jobstate"
)

// Goal: a process killed while rows are in flight, which its last checkpoint holds because the barriers overtook them,
// leaves every row once in every sink, whatever the parallelism of the next start. Method: a job with two exchanges before
// its sinks, of which one is slow: the database sleeps. The first life is killed once its newest checkpoint holds rows in
// flight; the next ones at a point of the protocol; each has another parallelism than the one before.

// pressedJob counts each id, then each group of ids. A row that came twice would be counted twice, one that is lost would
// leave a group short.
const pressedJob = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '60 ms';
SET 'execution.checkpointing.unaligned.enabled' = '%[5]v';
SET 'parallelism.default' = '%[6]d';
CREATE TABLE src (id BIGINT, pt AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE a (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_ahead', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json',
  'sink.commit-protocol' = 'write-ahead', 'sink.write-ahead.marker-topic' = '%[1]s_markers');
CREATE TABLE p (id BIGINT, n BIGINT, m BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p', 'sink.commit-protocol' = 'prepared',
  'sink.buffer-flush.max-rows' = '100');
CREATE TABLE w (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'w', 'sink.commit-protocol' = 'write-ahead');
CREATE TABLE u (id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'u', 'sink.commit-protocol' = 'upsert');
CREATE TABLE v (id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'v');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
CREATE TABLE gen (id BIGINT, pt AS PROCTIME()) WITH ('connector' = 'datagen', 'rows-per-second' = '%[7]d', 'fields.id.kind' = 'sequence',
  'fields.id.start' = '%[8]d', 'fields.id.end' = '%[9]d');
CREATE VIEW input AS SELECT id, pt FROM src UNION ALL SELECT id, pt FROM gen;
CREATE VIEW ids AS SELECT id, pt, COUNT(*) OVER (PARTITION BY id ORDER BY pt) AS n FROM input;
CREATE VIEW grouped AS SELECT id, n, COUNT(*) OVER (PARTITION BY id %% 10 ORDER BY pt) AS m FROM ids;
EXECUTE STATEMENT SET BEGIN
`

// pressedInserts are the statements of the set, by the name of their sink.
var pressedInserts = map[rune]string{
	'k': "INSERT INTO k SELECT id FROM grouped;",
	'a': "INSERT INTO a SELECT id FROM grouped;",
	'p': "INSERT INTO p SELECT id, n, m FROM grouped;",
	'w': "INSERT INTO w SELECT id FROM grouped;",
	'u': "INSERT INTO u SELECT id, SUM(id * 2) FROM grouped GROUP BY id;",
	'v': "INSERT INTO v SELECT id, SUM(id * 2) FROM grouped GROUP BY id;",
	'f': "INSERT INTO f SELECT id FROM grouped;",
}

// pressedNow are in Kafka before the job starts: it reads them in a moment, and the sink takes a second or two for them. The
// others keep the input from its end, which has an aligned checkpoint, for four seconds.
const (
	pressedNow  = 20_000
	pressedRows = 24_000
	pressedRate = 1000
	manyBytes   = 20_000 // in flight: more than a thousand rows
)

// brake makes the table p slow: a tenth of the rows cost the given time each.
var brake = []string{
	`CREATE TABLE p (id bigint, n bigint, m bigint)`, `CREATE TABLE w (id bigint)`, `CREATE TABLE u (id bigint PRIMARY KEY, twice bigint)`,
	`CREATE TABLE v (LIKE u INCLUDING ALL)`,
	`CREATE TABLE brake (seconds float8)`, `INSERT INTO brake VALUES (0.001)`,
	`CREATE FUNCTION brake() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(seconds) FROM brake; RETURN NEW; END'`,
	`CREATE TRIGGER brake BEFORE INSERT ON p FOR EACH ROW WHEN (NEW.id / 10 % 10 = 0) EXECUTE FUNCTION brake()`,
}

// newPressed makes the fixture of pressedJob: now rows are in Kafka, and there will be s.rows.
func newPressed(t *testing.T, s setup, now int) *fixture {
	t.Helper()
	tmp := t.TempDir()
	f := &fixture{t: t, k: s.k, pg: harness.SharedPostgres(t), sinks: s.sinks, bin: harness.BuildStreamsql(t), name: harness.UniqueName(t),
		now: now, rows: s.rows, state: filepath.Join(tmp, "state"), dir: filepath.Join(tmp, "out"), file: filepath.Join(tmp, "job.sql")}
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, brake...)
	f.k.CreateTopic(t, f.name+"_in", 4, nil)
	for _, topic := range f.topics() {
		f.k.CreateTopic(t, topic, 2, nil)
	}
	f.produce(0, now)
	return f
}

// press writes the job's file for its next life.
func (f *fixture) press(unaligned bool, parallelism, rate int) {
	text := fmt.Sprintf(pressedJob, f.name, f.k.Addr(), f.pg.DSN(f.db), f.dir, unaligned, parallelism, rate, f.now, f.rows-1)
	for _, sink := range f.sinks {
		text += "  " + pressedInserts[sink] + "\n"
	}
	f.write(text + "END;\n")
}

// slow sets how long the brake takes for a row.
func (f *fixture) slow(seconds float64) {
	f.t.Helper()
	f.pg.Exec(f.t, f.db, fmt.Sprintf(`UPDATE brake SET seconds = %v`, seconds))
}

// newest is the newest complete checkpoint that the trace knows, nil before there is one.
func (f *fixture) newest() *checkpoint.Trace {
	var newest *checkpoint.Trace
	for _, x := range f.trace() {
		if !x.Completed.IsZero() && (newest == nil || x.ID > newest.ID) {
			newest = &x
		}
	}
	return newest
}

// killedInFlight starts the job and kills it as soon as its newest checkpoint holds rows in flight.
func (f *fixture) killedInFlight() *checkpoint.Trace {
	f.t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); {
		p := f.start("")
		f.until(p, "a checkpoint holds rows in flight", func() bool {
			x := f.newest()
			return x != nil && x.Unaligned && x.InFlight >= manyBytes
		})
		p.Kill()
		if _, err := p.Wait(patience); err != nil {
			f.t.Fatal(err)
		}
		if x := f.newest(); x.InFlight >= manyBytes { // else another one was faster than the kill
			return x
		}
	}
	f.t.Fatalf("no life within %v ended with rows in flight in its newest checkpoint", patience)
	return nil
}

// checkPressed looks at the sinks, and at the counts, which are state.
func (f *fixture) checkPressed() findings {
	f.t.Helper()
	all := f.check(f.rows)
	if !strings.Contains(f.sinks, "p") {
		return all
	}
	want := make([]string, 10)
	for g := range want {
		want[g] = fmt.Sprintf("%d|%[2]d|1|%[2]d|%[2]d|1|1", g, f.rows/10)
	}
	got := f.pg.Rows(f.t, f.db, `SELECT id % 10, count(*), min(m), max(m), count(DISTINCT m), min(n), max(n) FROM p GROUP BY 1 ORDER BY 1`)
	if !slices.Equal(got, want) {
		f.t.Errorf("counts by group:\n%v\nwant\n%v", got, want)
		all.wrong++
	}
	return all
}

// TestCrashWithRowsInFlight kills at points of the protocol, starting from a checkpoint with rows in flight, and goes on at
// another parallelism each time; the last life takes aligned checkpoints. make crash does so at every point.
func TestCrashWithRowsInFlight(t *testing.T) {
	t.Parallel()
	sample := []string{"inflight.write", "restore.aborted", "publish.after"}
	if harness.Crashes(t, 0) > 0 {
		sample = append([]string{"inflight.write", "restore.begin", "restore.committed", "restore.aborted"}, points...)
	}
	for i, point := range sample {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := newPressed(t, setup{k: harness.SharedKafka(t), sinks: "kpwf", rows: pressedRows}, pressedNow)
			f.press(true, 2, pressedRate)
			first := f.killedInFlight()
			t.Logf("checkpoint %d held %d bytes in flight", first.ID, first.InFlight)
			for life, p := range []int{1 + (i+2)%4, 1 + i%4} {
				f.press(true, p, pressedRate)
				// The second life may be at its end before it comes to the point for the second time.
				code, err := f.start(fmt.Sprintf("%s:%d", point, 1+life)).Wait(patience)
				if err != nil || code != -1 && (code != 0 || life == 0 && p > 1) {
					t.Fatalf("parallelism %d: exit %d, %v", p, code, err)
				}
				if jobstate.Ended(t, f.state) {
					f.checkPressed()
					return
				}
			}
			f.slow(0)
			f.press(false, 1+(i+1)%4, 10_000_000)
			f.wait(f.start(""))
			f.checkPressed()
		})
	}
}
