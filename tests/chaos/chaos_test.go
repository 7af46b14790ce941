package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// Goal: streamsql chaos finds exact what is exact, finds what is not, says when it cannot know, touches no real sink and leaves
// nothing behind. Method: the binary checks real jobs on a real broker and a real database.

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 10 * time.Minute

type fixture struct {
	t             *testing.T
	k             *harness.Broker
	pg            *harness.PG
	bin, name, db string
	dir           string
}

// tables of every job: orders of two partitions, ten minutes of event time. Word 5 is what else the table k says.
const tables = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '1 h'; -- the check has its own
CREATE TABLE orders (id BIGINT, amount DECIMAL(10, 2), ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in',
  'properties.bootstrap.servers' = '%[2]s', 'properties.group.id' = '%[1]s', 'scan.startup.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE k (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'kafka', 'topic' = '%[1]s_k', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json'%[5]s);
CREATE TABLE w (window_start TIMESTAMP(3), n BIGINT, total DECIMAL(12, 2)) WITH ('connector' = 'kafka', 'topic' = '%[1]s_w', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE u (digit BIGINT, n BIGINT, PRIMARY KEY (digit) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = '%[1]s_u', 'properties.bootstrap.servers' = '%[2]s', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE c (digit BIGINT, n BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_c', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'debezium-json');
CREATE TABLE p (id BIGINT, amount DECIMAL(10, 2)) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p');
CREATE TABLE t (digit BIGINT, total DECIMAL(12, 2), PRIMARY KEY (digit) NOT ENFORCED) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 't');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
`

const (
	toKafka = `EXECUTE STATEMENT SET BEGIN
  INSERT INTO k SELECT id, amount FROM orders WHERE id % 10 <> 7;
  INSERT INTO w SELECT window_start, COUNT(*), SUM(amount) FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end;
  INSERT INTO u SELECT id % 10, COUNT(*) FROM orders GROUP BY id % 10;
  INSERT INTO c SELECT id % 10, COUNT(*) FROM orders GROUP BY id % 10;
  INSERT INTO f SELECT id FROM orders;
END;
`
	toPostgres = `EXECUTE STATEMENT SET BEGIN
  INSERT INTO p SELECT id, amount FROM orders;
  INSERT INTO t SELECT id % 10, SUM(amount) FROM orders GROUP BY id % 10;
END;
`
	toTopic = "INSERT INTO k SELECT id, amount FROM orders;\n"
	rows    = 2000
)

func newFixture(t *testing.T, more, jobs string) *fixture {
	t.Helper()
	return newFixtureOn(t, harness.SharedPostgres(t), more, jobs)
}

func newFixtureOn(t *testing.T, pg *harness.PG, more, jobs string) *fixture {
	t.Helper()
	f := &fixture{t: t, k: harness.SharedKafka(t), pg: pg, bin: harness.BuildStreamsql(t), name: harness.UniqueName(t), dir: t.TempDir()}
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE p (id bigint, amount numeric(10, 2))`, `CREATE TABLE t (digit bigint PRIMARY KEY, total numeric(12, 2))`)
	for _, s := range []string{"_in", "_k", "_w", "_u", "_c"} {
		// Records carry the event time of their rows, which retention would find old enough to delete.
		f.k.CreateTopic(t, f.name+s, 2, map[string]string{"retention.ms": "-1"})
	}
	text := fmt.Sprintf(tables, f.name, f.k.Addr(), f.pg.DSN(f.db), f.out(), more) + jobs
	if err := os.WriteFile(f.file(), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	values := make([]string, rows)
	for i := range values {
		at := time.Date(2024, 5, 1, 10, 0, 0, 0, time.UTC).Add(time.Duration(i) * 600 * time.Second / rows)
		values[i] = fmt.Sprintf(`{"id":%d,"amount":%d.%02d,"ts":%q}`, i, i, i%100, at.Format("2006-01-02 15:04:05.000"))
	}
	f.k.Produce(t, f.name+"_in", values...)
	return f
}

func (f *fixture) file() string { return filepath.Join(f.dir, "job.sql") }

func (f *fixture) out() string { return filepath.Join(f.dir, "out") }

func (f *fixture) start(args ...string) *harness.Process {
	return harness.Start(f.t, harness.Command{Path: f.bin, Dir: f.dir, Args: append([]string{"chaos", "job.sql", "--run-for", "1s"}, args...)})
}

// report is what a test reads of --json.
type report struct {
	Verdict, Reason string
	Injected        int
	Bound           float64 `json:"bound_95"`
	Sinks           []struct {
		Table, Guarantee, Oracle string
		Rows                     int64
	}
	Faults []struct {
		Fault                     string
		Trials, Injected, Residue int
		Lost, Duplicates, Wrong   int64
	}
	Trials []struct {
		N                      int
		Verdict, Replay, Fault string
		Sinks                  map[string]struct {
			Lost, Duplicates, Wrong int64
			Rows                    []struct{ Row, Expected, Found string }
		}
	}
	NotCovered []string `json:"not_covered"`
}

// check runs chaos to its end and reads its report.
func (f *fixture) check(code int, args ...string) (report, *harness.Process) {
	f.t.Helper()
	file := filepath.Join(f.dir, "report.json")
	p := f.start(append(args, "--json", file)...)
	if got, err := p.Wait(patience); err != nil || got != code {
		f.t.Fatalf("exit code %d, want %d, %v\n%s", got, code, err, p.Output())
	}
	var r report
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	return r, p
}

// untouched fails when a real sink holds anything, a group has offsets, or shadows are left.
func (f *fixture) untouched() {
	f.t.Helper()
	ctx := context.Background()
	adm := f.k.Admin(f.t)
	topics, err := adm.ListTopics(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, name := range topics.Names() {
		if strings.HasPrefix(name, f.name) && strings.Contains(name, "__chaos_") {
			f.t.Errorf("topic %s is left", name)
		}
	}
	ends, err := adm.ListEndOffsets(ctx, f.name+"_k", f.name+"_w", f.name+"_u", f.name+"_c")
	if err != nil {
		f.t.Fatal(err)
	}
	for topic, parts := range ends {
		for _, e := range parts {
			if e.Offset != 0 {
				f.t.Errorf("topic %s holds %d records", topic, e.Offset)
			}
		}
	}
	if offsets, err := adm.FetchOffsets(ctx, f.name); err == nil && len(offsets) > 0 {
		f.t.Errorf("group %s has offsets", f.name)
	}
	got := f.pg.Rows(f.t, f.db, `SELECT (SELECT count(*) FROM p) || ' ' || (SELECT count(*) FROM t) || ' ' || (SELECT count(*) FROM pg_namespace WHERE nspname LIKE 'chaos_%')
		|| ' ' || (SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database())`)
	if !slices.Equal(got, []string{"0 0 0 0"}) {
		f.t.Errorf("rows in p and t, schemas and prepared transactions left: %s", got)
	}
	if _, err := os.Stat(f.out()); err == nil {
		f.t.Errorf("%s was written", f.out())
	}
}

// What exactly-once sinks of every kind hold is the same after every kind of fault. make crash N=500 injects as many.
func TestCrashOwnJob(t *testing.T) {
	for name, jobs := range map[string]string{"kafka": toKafka, "postgres": toPostgres} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "", jobs)
			page := filepath.Join(f.dir, "report.html")
			r, p := f.check(0, "--kills", fmt.Sprint(harness.Crashes(t, 10)), "--seed", "3", "--timeout", "10h", "--html", page)
			if r.Verdict != "exact" || r.Injected == 0 || r.Bound <= 0 || len(r.NotCovered) == 0 {
				t.Errorf("%+v\n%s", r, p.Output())
			}
			for _, s := range r.Sinks {
				if s.Rows <= 0 || !strings.HasPrefix(s.Guarantee, "exactly once") {
					t.Errorf("sink %+v", s)
				}
			}
			if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), "VERDICT exact") {
				t.Errorf("page: %v", err)
			}
			if !strings.Contains(p.Stdout(), "VERDICT exact in ") || !strings.Contains(p.Stdout(), "not covered: ") {
				t.Error(p.Stdout())
			}
			f.untouched()
		})
	}
}

// restarts is a command for the shell that kills and restarts a server of this process: it asks for that, and waits for the answer.
// kills ends the service and tells how often it was asked for.
func restarts(t *testing.T, s interface {
	Kill()
	Restart() error
}) (command string, kills func() int) {
	dir := t.TempDir()
	ask, answer := filepath.Join(dir, "ask"), filepath.Join(dir, "answer")
	n := 0
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() {
		for ctx.Err() == nil {
			if os.Remove(ask) == nil {
				n++
				s.Kill()
				if err := errors.Join(s.Restart(), os.WriteFile(answer, nil, 0o666)); err != nil {
					t.Error(err)
				}
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
	return fmt.Sprintf("touch %[1]s; until [ -e %[2]s ]; do sleep 0.02; done; rm %[2]s", ask, answer), func() int {
		cancel()
		serving.Wait()
		return n
	}
}

// A database that the user's command kills and restarts, savepoints and a state directory that cannot be written cost no row, and
// each fault is in the report for a CI system.
func TestServerSavepointReadOnly(t *testing.T) {
	t.Parallel()
	pg := harness.Postgres(t)
	f := newFixtureOn(t, pg, "", toPostgres)
	command, kills := restarts(t, pg)
	junit := filepath.Join(f.dir, "report.xml")
	r, p := f.check(0, "--faults", "server,savepoint,readonly", "--server-fault", command, "--kills", fmt.Sprint(harness.Crashes(t, 5)), "--seed", "5", "--timeout", "10h", "--junit", junit)
	if n := kills(); r.Verdict != "exact" || n == 0 {
		t.Errorf("%d kills of the server, %+v\n%s", n, r, p.Output())
	}
	for _, x := range r.Faults {
		if x.Injected == 0 {
			t.Errorf("fault %s met no job\n%s", x.Fault, p.Output())
		}
	}
	if text, err := os.ReadFile(junit); err != nil || strings.Count(string(text), "<testcase ") != len(r.Trials)+1 || strings.Contains(string(text), "<failure") {
		t.Errorf("%v\n%s", err, text)
	}
	f.untouched()
}

// Rows that an at-least-once sink gets twice are found, shown, and found again by the command that the report gives.
func TestAtLeastOnceIsFound(t *testing.T) {
	t.Parallel()
	f := newFixture(t, ", 'sink.delivery-guarantee' = 'at-least-once'", toTopic)
	args := []string{"--faults", "kill9", "--kills", "4"}
	r, p := f.check(3, args...)
	if r.Verdict != "violated" || !strings.Contains(p.Stdout(), "promises no more than: rows can repeat") {
		t.Fatalf("%+v\n%s", r, p.Stdout())
	}
	for _, x := range r.Trials {
		if x.Verdict != "violated" {
			continue
		}
		d := x.Sinks["k"]
		if d.Duplicates == 0 || d.Lost != 0 || d.Wrong != 0 || len(d.Rows) == 0 || !strings.Contains(d.Rows[0].Row, `{"id":`) {
			t.Errorf("trial %d: %+v", x.N, d)
		}
		if want := fmt.Sprintf("streamsql chaos job.sql --kills 4 --faults kill9 --run-for 1s --seed 1 --only %d", x.N); x.Replay != want {
			t.Errorf("replay %q, want %q", x.Replay, want)
		}
		again, _ := f.check(3, append(args, "--seed", "1", "--only", fmt.Sprint(x.N))...)
		if len(again.Trials) != 1 || again.Trials[0].N != x.N || again.Trials[0].Verdict != "violated" {
			t.Errorf("again: %+v", again.Trials)
		}
		break
	}
	f.untouched()
}

// What cannot be known is not judged: the reason is named, and nothing is written. With a query of the user's own it can be.
func TestInconclusive(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", "INSERT INTO k SELECT id, CAST(RAND() AS DECIMAL(10, 2)) FROM orders;\n")
	r, p := f.check(4)
	if r.Verdict != "inconclusive" || !strings.Contains(r.Reason, "RAND()") || !strings.Contains(p.Stdout(), "--oracle") {
		t.Errorf("%+v\n%s", r, p.Output())
	}
	f.untouched()
	r, p = f.check(0, "--faults", "failpoint", "--kills", "2", "--oracle", "SELECT COUNT(*), SUM(id) FROM k")
	if r.Verdict != "exact" {
		t.Errorf("%+v\n%s", r, p.Output())
	}
	f.untouched()
}

// What would lead past the shadows, or is in their place, is refused before anything is written; what cannot be read back is
// named.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name, jobs string
		args       []string
		code       int
		want       string
	}{
		{"hint", "INSERT INTO k /*+ OPTIONS('topic' = 'real') */ SELECT id, amount FROM orders;", nil, 2, "'topic' = 'real' does not lead to the shadow"},
		{"shadow exists", toTopic, []string{"--id", "taken"}, 2, "exists already"},
		{"unknown fault", toTopic, []string{"--faults", "kill"}, 2, `did you mean "kill9"?`},
		{"sink that is read", toTopic + "SET 'pipeline.name' = 'second'; INSERT INTO w SELECT TIMESTAMP '2024-01-01 00:00:00', id, amount FROM k;", nil, 2, "both written and read"},
		{"wrong oracle", toTopic, []string{"--oracle", "SELECT COUNT(*), SUM(amont) FROM k"}, 2, `flag --oracle: 1:22: `},
		{"oracle that writes", toTopic, []string{"--oracle", "INSERT INTO k SELECT id, amount FROM orders"}, 2, "flag --oracle is not a query"},
		{"nothing to clean", toTopic, []string{"--clean", "never"}, 2, `there is nothing of a check "never"`},
		{"server without a command", toTopic, []string{"--faults", "server"}, 2, "fault server needs a command"},
		{"command fails", toTopic, []string{"--faults", "server", "--server-fault", "echo gone; exit 3"}, 4, "echo gone; exit 3: exit status 3: gone"},
		{"print", "CREATE TABLE o (id BIGINT) WITH ('connector' = 'print'); INSERT INTO o SELECT id FROM orders;", nil, 4, "cannot be read back"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "", c.jobs)
			taken := f.name + "_k__chaos_taken_g1"
			f.k.CreateTopic(t, taken, 1, nil)
			p := f.start(c.args...)
			if code, err := p.Wait(patience); err != nil || code != c.code || !strings.Contains(p.Output(), c.want) {
				t.Errorf("exit code %d, want %d and %q, %v\n%s", code, c.code, c.want, err, p.Output())
			}
			if c.code == 2 && strings.Contains(p.Output(), "run without faults") {
				t.Errorf("jobs ran before it was refused:\n%s", p.Output())
			}
			if topics, err := f.k.Admin(t).ListTopics(context.Background(), taken); err != nil || topics[taken].Err != nil {
				t.Errorf("the topic that was there is gone: %v", err)
			}
		})
	}
}

// A check that is interrupted removes what it made, and one that was killed is cleaned up after by its id.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "", toTopic+"SET 'pipeline.name' = 'second';"+toPostgres)
	p := f.start("--kills", "100", "--faults", "kill9")
	if err := p.WaitOutput("trial 1 of", patience); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(patience); err != nil || code != 130 {
		t.Errorf("exit code %d, %v\n%s", code, err, p.Output())
	}
	f.untouched()

	p = f.start("--kills", "100", "--faults", "kill9", "--id", "gone")
	if err := p.WaitOutput("trial 1 of", patience); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p = f.start("--clean", "gone")
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Errorf("exit code %d, %v\n%s", code, err, p.Output())
	}
	f.untouched()
}
