package reconcile

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Goal: streamsql reconcile finds a row that is too many, too few or other in a sink, says where it went wrong, and says
// nothing of what it cannot know. Method: real jobs write to Kafka, PostgreSQL and files; rows are then changed by hand.

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 4 * time.Minute

type fixture struct {
	t                     *testing.T
	k                     *harness.Broker
	pg                    *harness.PG
	bin, name, db         string
	file, state, filesDir string
}

// tables of every job: orders of two partitions, ten minutes of event time.
const tables = `
SET 'pipeline.name' = '%[1]s';
SET 'parallelism.default' = '2';
SET 'execution.checkpointing.interval' = '200 ms';
CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in',
  'properties.bootstrap.servers' = '%[2]s', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json'%[5]s);
CREATE TABLE k (id BIGINT, amount DECIMAL(10, 2), ts TIMESTAMP(3)) WITH ('connector' = 'kafka', 'topic' = '%[1]s_k', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE w (window_start TIMESTAMP(3), n BIGINT, total DECIMAL(12, 2)) WITH ('connector' = 'kafka', 'topic' = '%[1]s_w', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE u (digit BIGINT, n BIGINT, PRIMARY KEY (digit) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '%[1]s_u', 'properties.bootstrap.servers' = '%[2]s', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE p (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p');
CREATE TABLE t (digit BIGINT, total DECIMAL(12, 2), PRIMARY KEY (digit) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 't');
CREATE TABLE e (digit BIGINT, total DECIMAL(12, 2), PRIMARY KEY (digit) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'e', 'sink.commit-protocol' = 'upsert');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
`

const all = `EXECUTE STATEMENT SET BEGIN
  INSERT INTO k SELECT id, amount, ts FROM orders WHERE id % 10 <> 7;
  INSERT INTO w SELECT window_start, COUNT(*), SUM(amount) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
  INSERT INTO u SELECT id % 10, COUNT(*) FROM orders GROUP BY id % 10;
  INSERT INTO p SELECT id, amount FROM orders;
  INSERT INTO t SELECT id % 10, SUM(amount) FROM orders GROUP BY id % 10;
  INSERT INTO e SELECT id % 10, SUM(amount) FROM orders GROUP BY id % 10;
  INSERT INTO f SELECT id FROM orders;
END;
`

const (
	rows    = 2000
	bounded = ", 'scan.bounded.mode' = 'latest-offset'"
)

func newFixture(t *testing.T, source, jobs string) *fixture {
	t.Helper()
	dir := t.TempDir()
	f := &fixture{t: t, k: harness.SharedKafka(t), pg: harness.SharedPostgres(t), bin: harness.BuildStreamsql(t), name: harness.UniqueName(t),
		file: filepath.Join(dir, "job.sql"), state: filepath.Join(dir, "state"), filesDir: filepath.Join(dir, "out")}
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE p (id bigint, amount numeric(10, 2))`, `CREATE TABLE t (digit bigint PRIMARY KEY, total numeric(12, 2))`, `CREATE TABLE e (LIKE t INCLUDING ALL)`)
	for _, s := range []string{"_in", "_k", "_w", "_u"} {
		// Records carry the event time of their rows, which retention would find old enough to delete.
		f.k.CreateTopic(t, f.name+s, 2, map[string]string{"retention.ms": "-1"})
	}
	text := fmt.Sprintf(tables, f.name, f.k.Addr(), f.pg.DSN(f.db), f.filesDir, source) + jobs
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	f.produce(0, rows)
	return f
}

// produce writes orders in the order of their time, so that none is late.
func (f *fixture) produce(from, to int) {
	values := make([]string, 0, to-from)
	for i := from; i < to; i++ {
		at := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(i) * 600 * time.Second / rows)
		values = append(values, fmt.Sprintf(`{"id":%d,"amount":%d.%02d,"ts":%q}`, i, i, i%100, at.Format("2006-01-02 15:04:05.000")))
	}
	f.k.Produce(f.t, f.name+"_in", values...)
}

func (f *fixture) start(args ...string) *harness.Process {
	return harness.Start(f.t, harness.Command{Path: f.bin, Args: append([]string{"run", f.file, "--state-dir", f.state}, args...)})
}

func (f *fixture) wait(p *harness.Process, code int) {
	f.t.Helper()
	if got, err := p.Wait(patience); err != nil || got != code {
		f.t.Fatalf("exit code %d, want %d, %v\n%s", got, code, err, p.Output())
	}
}

type line struct {
	Sink, Verdict, Reason, Segment string
	SourceRows                     int64  `json:"source_rows"`
	QueryRows                      int64  `json:"query_rows"`
	SinkRows                       int64  `json:"sink_rows"`
	CommitRows                     *int64 `json:"commit_rows"`
	Groups                         int
	Differing                      int `json:"differing_groups"`
	Differences                    []struct {
		Group, Expected, Sink string
		Rows                  []struct {
			Row            string
			Expected, Sink int64
		}
	}
}

// reconcile compares, with exit code want, and returns the sinks by name.
func (f *fixture) reconcile(want int, args ...string) map[string]line {
	f.t.Helper()
	p := harness.Start(f.t, harness.Command{Path: f.bin, Args: append([]string{"reconcile", f.file, "--state-dir", f.state, "-o", "json"}, args...)})
	f.wait(p, want)
	var list []line
	if err := json.Unmarshal([]byte(p.Stdout()), &list); err != nil {
		f.t.Fatalf("%v in\n%s", err, p.Output())
	}
	out := map[string]line{}
	for _, l := range list {
		out[l.Sink] = l
	}
	return out
}

func (f *fixture) equal(lines map[string]line, sinks string) {
	f.t.Helper()
	for _, s := range strings.Split(sinks, "") {
		if l := lines[s]; l.Verdict != "equal" || l.QueryRows != l.SinkRows || l.QueryRows == 0 || l.Groups == 0 {
			f.t.Errorf("%s: %+v", s, l)
		}
	}
}

// A job that ended: all sinks are equal. Then a row of each is doubled, deleted or changed by hand.
func TestChangedByHand(t *testing.T) {
	f := newFixture(t, bounded, all)
	f.wait(f.start(), 0)
	lines := f.reconcile(0)
	f.equal(lines, "kwuptf")
	if l := lines["k"]; l.SourceRows != rows || l.SinkRows != rows*9/10 {
		t.Errorf("k: %+v", l)
	}

	f.k.Produce(t, f.name+"_k", `{"id":11,"amount":11.11,"ts":"2024-05-01 10:00:03.300"}`)
	f.deleteFirst(f.name + "_w")
	f.pg.Exec(t, f.db, `DELETE FROM p WHERE id = 1234`, `UPDATE t SET total = total + 1 WHERE digit = 3`)
	if err := os.WriteFile(filepath.Join(f.filesDir, "part-by-hand"), []byte(`{"id":5}`+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	lines = f.reconcile(1)
	f.equal(lines, "u")
	for _, c := range []struct {
		sink           string
		expected, sees int64
		row, segment   string
	}{
		{"k", 1, 2, `id=11, amount=11.11, ts=2024-05-01 10:00:03.300`, "1 of its records were not written in a transaction"},
		{"w", 1, 0, `window_start=2024-05-01 10:0`, "begins at offset 1"},
		{"p", 1, 0, `id=1234, amount=1234.34`, "the job's commits say they wrote 2000 rows, as many as expected"},
		{"t", 0, 1, `digit=3, total=`, "between the query and the sink"},
		{"f", 1, 2, `id=5`, "between the query and the sink"},
	} {
		l := lines[c.sink]
		if l.Verdict != "differs" || l.Differing == 0 || !strings.Contains(l.Segment, c.segment) {
			t.Errorf("%s: %+v, want segment %q", c.sink, l, c.segment)
		}
		found := false
		for _, d := range l.Differences {
			for _, r := range d.Rows {
				found = found || strings.HasPrefix(r.Row, c.row) && r.Expected == c.expected && r.Sink == c.sees
			}
		}
		if !found {
			t.Errorf("%s: no row %q expected %d times and seen %d times in %+v", c.sink, c.row, c.expected, c.sees, l.Differences)
		}
	}
}

// deleteFirst deletes the first record of a topic's first partition that has one.
func (f *fixture) deleteFirst(topic string) {
	f.t.Helper()
	adm := f.k.Admin(f.t)
	defer adm.Close()
	ends, err := adm.ListEndOffsets(context.Background(), topic)
	if err != nil {
		f.t.Fatal(err)
	}
	for p := range int32(2) {
		if ends[topic][p].Offset == 0 {
			continue
		}
		at := kadm.Offsets{}
		at.AddOffset(topic, p, 1, -1)
		r, err := adm.DeleteRecords(context.Background(), at)
		if err != nil || r.Error() != nil {
			f.t.Fatal(err, r.Error())
		}
		return
	}
}

// A job without end is compared at its checkpoints while it runs, and when it has stopped in the middle of a window; what
// shows rows before their checkpoint only then.
func TestRunningAndStopped(t *testing.T) {
	f := newFixture(t, "", all)
	job := f.start()
	for deadline := time.Now().Add(patience); len(f.k.Values(t, f.name+"_w", harness.Committed)) < 5; {
		if !job.Alive() || time.Now().After(deadline) {
			t.Fatalf("no windows\n%s", job.Output())
		}
	}
	lines := f.paused(job)
	f.equal(lines, "kupt")
	if l := lines["w"]; l.Verdict != "equal" || l.SinkRows == 0 {
		t.Errorf("w: %+v", l)
	}
	for sink, reason := range map[string]string{"e": "shows rows before their checkpoint", "f": "stop it first"} {
		if l := lines[sink]; l.Verdict != "not compared" || !strings.Contains(l.Reason, reason) {
			t.Errorf("%s: %+v", sink, l)
		}
	}
	if err := job.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	f.wait(job, 0)
	f.equal(f.reconcile(0), "kuptef")
	// Rows that nobody has read yet make no difference.
	f.produce(rows, rows+100)
	f.equal(f.reconcile(0), "kuptf")
}

// paused compares while the job is alive and stands still between two commits: how fast it takes checkpoints does not count.
func (f *fixture) paused(job *harness.Process) map[string]line {
	f.t.Helper()
	for {
		if err := job.Pause(); err != nil {
			f.t.Fatal(err)
		}
		lines := f.reconcile(2)
		if err := job.Resume(); err != nil {
			f.t.Fatal(err)
		}
		if !strings.Contains(lines["k"].Reason, "is not known to be committed") {
			return lines
		}
	}
}

// What cannot be known is not compared, and why.
func TestNotCompared(t *testing.T) {
	for _, c := range []struct {
		name, source, job, reason string
		run                       func(f *fixture)
	}{
		{"no checkpoint", bounded, `INSERT INTO k SELECT * FROM orders;`, "has left nothing in", func(*fixture) {}},
		{"clock", bounded, `INSERT INTO p SELECT id + YEAR(CURRENT_DATE), amount FROM orders;`, "need not give the same rows twice: CURRENT_DATE", nil},
		{"start", ", 'scan.startup.mode' = 'latest-offset'" + bounded, `INSERT INTO p SELECT id, amount FROM orders;`, "means another place by now", nil},
		{"two writers", bounded, "INSERT INTO k SELECT * FROM orders;\nSET 'pipeline.name' = 'other';\nINSERT INTO k SELECT * FROM orders;", "has other writers", nil},
		{"retention", bounded, `INSERT INTO p SELECT id, amount FROM orders;`, "retention deleted input", func(f *fixture) {
			f.wait(f.start(), 0)
			f.deleteFirst(f.name + "_in")
		}},
		{"pending", bounded, "SET 'execution.checkpointing.interval' = '5 min';\nSET 'execution.checkpointing.timeout' = '1 min';\nINSERT INTO p SELECT id, amount FROM orders;", "is not known to be committed", func(f *fixture) {
			f.wait(harness.Start(f.t, harness.Command{Path: f.bin, Args: []string{"run", f.file, "--state-dir", f.state}, Env: []string{"STREAMSQL_FAILPOINT=publish.after"}}), -1)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := c.source
			if c.name == "start" {
				source = bounded
			}
			f := newFixture(t, source, c.job)
			if c.name == "start" {
				b, err := os.ReadFile(f.file)
				if err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(f.file, []byte(strings.Replace(string(b), "earliest-offset", "latest-offset", 1)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if c.run == nil {
				f.wait(f.start(), 0)
			} else {
				c.run(f)
			}
			for _, l := range f.reconcile(2) {
				if l.Verdict != "not compared" || !strings.Contains(l.Reason, c.reason) {
					t.Errorf("%+v, want %q", l, c.reason)
				}
			}
		})
	}
}
