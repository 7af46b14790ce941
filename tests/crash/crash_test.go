package crash

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// One statement set writes every row to four two-phase sinks: Kafka, PostgreSQL by both protocols, and files. A crash at
// any point must leave each with every row once.
const job = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '60 ms';
SET 'parallelism.default' = '2';
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE p (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p', 'sink.commit-protocol' = 'prepared');
CREATE TABLE w (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'w', 'sink.commit-protocol' = 'write-ahead');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
CREATE TABLE gen (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '10000', 'fields.id.kind' = 'sequence',
  'fields.id.start' = '2000', 'fields.id.end' = '9999');
CREATE VIEW input AS SELECT id FROM src UNION ALL SELECT id FROM gen;
EXECUTE STATEMENT SET BEGIN
  INSERT INTO k SELECT id FROM input;
  INSERT INTO p SELECT id FROM input;
  INSERT INTO w SELECT id FROM input;
  INSERT INTO f SELECT id FROM input;
END;
`

// fromKafka rows come from Kafka at once, the others from datagen over most of a second: a dozen checkpoints.
const (
	fromKafka = 2000
	rows      = 10_000
)

type fixture struct {
	t                    *testing.T
	k                    *harness.Broker
	pg                   *harness.PG
	bin, name, db, file  string
	state, dir, fileText string
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, k: harness.SharedKafka(t), pg: harness.SharedPostgres(t), bin: harness.BuildStreamsql(t), name: harness.UniqueName(t)}
	tmp := t.TempDir()
	f.state, f.dir, f.file = filepath.Join(tmp, "state"), filepath.Join(tmp, "out"), filepath.Join(tmp, "job.sql")
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE p (id bigint)`, `CREATE TABLE w (id bigint)`)
	f.k.CreateTopic(t, f.name+"_in", 4, nil)
	f.k.CreateTopic(t, f.name+"_out", 2, nil)
	f.fileText = fmt.Sprintf(job, f.name, f.k.Addr(), f.pg.DSN(f.db), f.dir)
	f.write(f.fileText)
	f.produce(0, fromKafka)
	return f
}

func (f *fixture) write(text string) {
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) produce(from, to int) {
	values := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprintf(`{"id":%d}`, i))
	}
	f.k.Produce(f.t, f.name+"_in", values...)
}

func (f *fixture) start(failpoint string, args ...string) *harness.Process {
	var env []string
	if failpoint != "" {
		env = []string{"STREAMSQL_FAILPOINT=" + failpoint}
	}
	return harness.Start(f.t, harness.Command{Path: f.bin, Args: append([]string{"run", f.file, "--state-dir", f.state, "--log", "info"}, args...), Env: env})
}

// crashAt runs the job until the failpoint kills it. Reaching the end instead is an error: the point was not passed.
func (f *fixture) crashAt(failpoint string) {
	f.t.Helper()
	p := f.start(failpoint)
	code, err := p.Wait(time.Minute)
	if err != nil {
		f.t.Fatalf("%s: %v", failpoint, err)
	}
	if code != -1 {
		f.t.Fatalf("%s: exit code %d, not killed by the failpoint\n%s", failpoint, code, p.Output())
	}
}

func (f *fixture) finish(args ...string) *harness.Process {
	f.t.Helper()
	p := f.start("", args...)
	if code, err := p.Wait(2 * time.Minute); err != nil || code != 0 {
		f.t.Fatalf("exit %d, %v", code, err)
	}
	return p
}

// check looks at every sink as a reader does, and for what must not be left behind.
func (f *fixture) check(n int) {
	f.t.Helper()
	f.once("kafka", n, f.ids(f.k.Values(f.t, f.name+"_out", harness.Committed)))
	for _, table := range []string{"p", "w"} {
		f.once("postgres "+table, n, f.pg.Rows(f.t, f.db, `SELECT id FROM `+table))
	}
	f.once("files", n, f.ids(f.fileLines()))
	if open := f.k.OpenTransactions(f.t, "streamsql-"+f.name); len(open) > 0 {
		f.t.Errorf("open transactions: %v", open)
	}
	if p := f.pg.PreparedTransactions(f.t, f.db); len(p) > 0 {
		f.t.Errorf("prepared transactions: %v", p)
	}
}

func (f *fixture) ids(values []string) []string {
	out := make([]string, len(values))
	for i, v := range values {
		var r struct {
			ID json.Number `json:"id"`
		}
		if err := json.Unmarshal([]byte(v), &r); err != nil {
			f.t.Fatalf("%v in %q", err, v)
		}
		out[i] = r.ID.String()
	}
	return out
}

// fileLines are the lines of the committed files; others are an error.
func (f *fixture) fileLines() []string {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		f.t.Fatal(err)
	}
	var lines []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			f.t.Errorf("file %s is left in progress", e.Name())
			continue
		}
		b, err := os.ReadFile(filepath.Join(f.dir, e.Name()))
		if err != nil {
			f.t.Fatal(err)
		}
		lines = append(lines, strings.Split(strings.TrimRight(string(b), "\n"), "\n")...)
	}
	return lines
}

func (f *fixture) once(sink string, n int, ids []string) {
	f.t.Helper()
	seen := map[string]int{}
	for _, id := range ids {
		seen[id]++
	}
	missing, repeated := 0, 0
	for i := range n {
		switch c := seen[fmt.Sprint(i)]; {
		case c == 0:
			missing++
		case c > 1:
			repeated++
		}
	}
	if missing+repeated > 0 || len(ids) != n {
		f.t.Errorf("%s: %d rows, want %d: %d missing, %d repeated", sink, len(ids), n, missing, repeated)
	}
}

// points are the arrows of the protocol, the executor's and the connectors' own.
var points = []string{
	"source.poll", "barrier.inject",
	"precommit.before", "precommit.after", "kafka.precommit.before", "kafka.precommit.after", "postgres.precommit.before",
	"postgres.precommit.after", "file.precommit.synced", "file.precommit.renamed",
	"publish.before", "publish.after",
	"commit.before", "commit.during", "commit.after", "kafka.commit.before", "kafka.commit.during", "kafka.commit.after",
	"postgres.commit.before", "postgres.commit.during", "postgres.commit.after", "file.commit.linked",
	"confirm.after",
}

// A crash at every arrow, at its first and its second visit.
func TestCrashAtEveryPoint(t *testing.T) {
	for _, p := range points {
		t.Run(p, func(t *testing.T) {
			f := newFixture(t)
			f.crashAt(p)
			f.crashAt(p + ":2")
			f.finish()
			f.check(rows)
		})
	}
}

// A crash during restore, from a checkpoint whose output is prepared but not committed.
func TestCrashDuringRestore(t *testing.T) {
	for _, p := range []string{"restore.begin", "commit.before", "commit.during", "kafka.commit.during", "postgres.commit.during", "file.commit.linked", "commit.after", "restore.committed", "restore.aborted"} {
		t.Run(p, func(t *testing.T) {
			f := newFixture(t)
			f.crashAt("publish.after")
			f.crashAt(p)
			f.crashAt(p)
			f.finish()
			f.check(rows)
		})
	}
}
