package restarts

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: a job that fails and restarts again and again leaves nothing behind: no descriptor, goroutine, connection or file.
// Method: an endless job from Kafka into Kafka and PostgreSQL, both in two phases and by upserts, in this process; failpoints
// fail it at points of the protocol in turn. What is held is compared, in a job that runs, with what
// was held after the first rounds.

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 5 * time.Minute

func TestMain(m *testing.M) { harness.Main(m) }

const job = `
SET 'pipeline.name' = '%[1]s';
SET 'parallelism.default' = '2';
SET 'execution.checkpointing.interval' = '20 ms';
SET 'execution.checkpointing.tolerable-failed-checkpoints' = '0';
SET 'restart-strategy.type' = 'fixed-delay';
SET 'restart-strategy.fixed-delay.attempts' = '100000';
SET 'restart-strategy.fixed-delay.delay' = '1 ms';
CREATE TABLE gen (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '500', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '900000000');
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json');
CREATE TABLE p (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'p', 'sink.commit-protocol' = 'prepared');
CREATE TABLE u (id BIGINT PRIMARY KEY NOT ENFORCED, n BIGINT) WITH ('connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'u');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO k SELECT id FROM gen;
  INSERT INTO p SELECT id FROM gen;
  INSERT INTO f SELECT id FROM src;
  INSERT INTO u SELECT MOD(id, 10), COUNT(*) FROM gen GROUP BY MOD(id, 10);
END;
`

// points are where the job fails, in turn.
var points = []string{"source.poll", "barrier.inject", "precommit.before", "precommit.after", "publish.before", "publish.after",
	"confirm.after"}

// held is what a process holds.
type held struct{ descriptors, goroutines, connections, files int }

func (h held) within(of held) bool {
	return h.descriptors <= of.descriptors && h.goroutines <= of.goroutines && h.connections <= of.connections && h.files <= of.files
}

func most(a, b held) held {
	return held{max(a.descriptors, b.descriptors), max(a.goroutines, b.goroutines), max(a.connections, b.connections), max(a.files, b.files)}
}

func least(a, b held) held {
	return held{min(a.descriptors, b.descriptors), min(a.goroutines, b.goroutines), min(a.connections, b.connections), min(a.files, b.files)}
}

func TestRestartsLeaveNothing(t *testing.T) {
	const rounds = 200
	k, pg := harness.SharedKafka(t), harness.SharedPostgres(t)
	name, db, dir := "leak", pg.CreateDatabase(t), t.TempDir()
	state := filepath.Join(dir, "state")
	pg.Exec(t, db, `CREATE TABLE p (id bigint)`, `CREATE TABLE u (id bigint PRIMARY KEY, n bigint)`)
	k.CreateTopic(t, name+"_in", 2, nil)
	k.CreateTopic(t, name+"_out", 2, nil)
	k.Produce(t, name+"_in", `{"id":1}`, `{"id":2}`)
	eng, err := streamsql.Open(state, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	t.Cleanup(func() { _ = checkpoint.SetFailpoint("") })
	j := begin(t, eng, fmt.Sprintf(job, name, k.Addr(), pg.DSN(db), filepath.Join(dir, "out")))
	watch := pg.Conn(t, db) // one of the connections counted, all the time
	holds := func() (h held) {
		if err := watch.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()`).Scan(&h.connections); err != nil {
			t.Fatal(err)
		}
		h.descriptors, h.goroutines, h.files = entries(t, "/proc/self/fd"), runtime.NumGoroutine(), filesBelow(t, state)
		return h
	}
	running(t, j, 0)
	var first held
	// State files are written on to for a while before they are merged: their number takes longer to come to its height.
	warm := 2 * len(points)
	for i := range rounds {
		point := points[i%len(points)]
		failAt(t, j, point, i+1)
		switch h := holds(); {
		case i < warm:
			first = most(first, h)
		case i < rounds/2:
			first.files = max(first.files, h.files)
		}
	}
	// What is being closed gets its time; what is left behind stays for ever. Figures go up and down, each by itself.
	now := holds()
	for deadline := time.Now().Add(patience); !now.within(first) && time.Now().Before(deadline); now = least(now, holds()) {
		time.Sleep(20 * time.Millisecond)
	}
	if !now.within(first) {
		t.Errorf("after %d restarts: %+v, at most %+v in the first %d, files in the first half", rounds, now, first, warm)
	}
	t.Logf("after %d restarts: %+v, at most %+v in the first %d", rounds, now, first, warm)
	if n := j.Status().Restarts; n < rounds {
		t.Errorf("%d restarts, want %d", n, rounds)
	}
	if err := j.Stop(t.Context(), streamsql.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	if p := pg.PreparedTransactions(t, db); len(p) > 0 {
		t.Errorf("prepared transactions are left: %v", p)
	}
	if open := k.OpenTransactions(t, "streamsql-"+name); len(open) > 0 {
		t.Errorf("transactions are left: %v", open)
	}
	if twice := pg.Rows(t, db, `SELECT id FROM p GROUP BY id HAVING count(*) > 1 LIMIT 5`); len(twice) > 0 {
		t.Errorf("rows are there twice: %v", twice)
	}
	// The two splits of the sequence make every second number.
	if gaps := pg.Rows(t, db, `SELECT id % 2 FROM p GROUP BY id % 2 HAVING max(id) / 2 + 1 <> count(*)`); len(gaps) > 0 {
		t.Errorf("rows are missing in splits %v", gaps)
	}
}

// begin runs the script and returns its job.
func begin(t *testing.T, eng *streamsql.Engine, script string) *streamsql.Job {
	t.Helper()
	for s := eng.Script(script); ; {
		res, err := s.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if res.Job != nil {
			return res.Job
		}
	}
}

// failAt fails the job at a point and waits until it has committed a checkpoint after that.
func failAt(t *testing.T, j *streamsql.Job, point string, restarts int) {
	t.Helper()
	if err := checkpoint.SetFailpoint(point + ":1:error"); err != nil {
		t.Fatal(err)
	}
	running(t, j, restarts)
}

// running waits until the job has restarted so often, runs, and has committed a checkpoint since.
func running(t *testing.T, j *streamsql.Job, restarts int) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(2 * time.Millisecond) {
		s := j.Status()
		r := s.Checkpoint.Restore
		if s.State == exec.Running && s.Restarts >= restarts && (restarts > 0 && r != nil && r.FirstCommit > 0 || restarts == 0 && s.Checkpoint.Committed > 0) {
			return
		}
		if s.State.Ended() || time.Now().After(deadline) {
			t.Fatalf("restart %d: the job is %s after %d restarts: %v", restarts, s.State, s.Restarts, s.Err)
		}
	}
}

func entries(t *testing.T, dir string) int {
	t.Helper()
	es, err := os.ReadDir(dir)
	if os.IsNotExist(err) && strings.HasPrefix(dir, "/proc/") {
		return 0 // not Linux: the other counts are compared
	}
	if err != nil {
		t.Fatal(err)
	}
	return len(es)
}

// filesBelow counts files; those that go meanwhile are not there.
func filesBelow(t *testing.T, dir string) (n int) {
	t.Helper()
	_ = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			n++
		}
		return nil
	})
	if n == 0 {
		t.Fatal("no files in " + strconv.Quote(dir))
	}
	return n
}
