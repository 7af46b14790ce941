package soak

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: over half an hour and some ninety kills nothing is lost, nothing comes twice, and nothing grows: descriptors, goroutines, memory,
// files. Method: a steady input into a topic; the same statements read it as two jobs, each into a topic, an append-only table and a
// keyed table of its own. One job is a process that gets SIGKILL every so often, and starts again, at times at another parallelism and
// with the other kind of barriers; the other is in this process, is never disturbed, and so shows what grows without restarts. A reader
// of committed records follows both; before each kill what is held is noted.

func TestMain(m *testing.M) { harness.Main(m) }

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 5 * time.Minute

// groups are the keys of the keyed tables.
const groups = 10_000

const job = `
SET 'pipeline.name' = '%[1]s';
SET 'parallelism.default' = '%[5]d';
SET 'execution.checkpointing.interval' = '200 ms';
SET 'execution.checkpointing.unaligned.enabled' = '%[6]t';
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[2]s', 'properties.bootstrap.servers' = '%[3]s', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE k (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[3]s', 'format' = 'json');
CREATE TABLE p (id BIGINT) WITH ('connector' = 'postgres', 'url' = '%[4]s', 'table-name' = 'p', 'sink.commit-protocol' = 'prepared');
CREATE TABLE u (g BIGINT PRIMARY KEY NOT ENFORCED, n BIGINT, s BIGINT) WITH ('connector' = 'postgres', 'url' = '%[4]s', 'table-name' = 'u');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO k SELECT id FROM src;
  INSERT INTO p SELECT id FROM src;
  INSERT INTO u SELECT MOD(id, %[7]d), COUNT(*), SUM(id) FROM src GROUP BY MOD(id, %[7]d);
END;
`

// plan is how long and how often.
type plan struct {
	total, kill, rescale time.Duration
	first                time.Duration // how long a life may take to its first row before it is killed without one
	kills                int           // at least
	rate                 int           // rows a second
	dir                  string
}

func planOf(t *testing.T) plan {
	p := plan{kill: time.Second, first: patience, kills: 3, rate: 200, dir: os.Getenv("STREAMSQL_SOAK")}
	if p.dir == "" {
		return p
	}
	p = plan{total: 30 * time.Minute, kill: 20 * time.Second, rescale: 3 * time.Minute, kills: 1, rate: 1000, dir: p.dir}
	for name, d := range map[string]*time.Duration{"SOAK_TIME": &p.total, "SOAK_KILL": &p.kill, "SOAK_RESCALE": &p.rescale} {
		if v := os.Getenv(name); v != "" {
			var err error
			if *d, err = time.ParseDuration(v); err != nil || *d <= 0 {
				t.Fatalf("%s is %q, want a duration such as 30m", name, v)
			}
		}
	}
	if v := os.Getenv("SOAK_RATE"); v != "" {
		var err error
		if p.rate, err = strconv.Atoi(v); err != nil || p.rate <= 0 {
			t.Fatalf("SOAK_RATE is %q, want a number of rows", v)
		}
	}
	p.first = p.kill
	return p
}

// sample is what is held just before a kill.
type sample struct {
	At              time.Duration
	Kills, Rescales int
	Parallelism     int
	Unaligned       bool
	Rows            int // that a reader has of the killed job
	Killed, Calm    held
	Recovered       time.Duration // how long this life took to its first new row; 0 = longer than usual between kills
}

// held is what a job's process holds. That of the killed job has threads, that of the other goroutines, and this test with it.
type held struct {
	Descriptors, Threads, Goroutines, Files int
	Resident, StateBytes                    int64
}

// side is one of the two jobs.
type side struct {
	name, db, state, file string
	out                   *reader
}

func newSide(t *testing.T, k *harness.Broker, pg *harness.PG, name string) *side {
	t.Helper()
	s := &side{name: name, db: pg.CreateDatabase(t), state: filepath.Join(t.TempDir(), "state"), file: filepath.Join(t.TempDir(), "job.sql")}
	pg.Exec(t, s.db, `CREATE TABLE p (id bigint)`, `CREATE TABLE u (g bigint PRIMARY KEY, n bigint, s bigint)`)
	k.CreateTopic(t, name+"_out", 2, nil)
	s.out = follow(t, k, name+"_out")
	return s
}

func (s *side) script(k *harness.Broker, pg *harness.PG, in string, parallelism int, unaligned bool) string {
	return fmt.Sprintf(job, s.name, in, k.Addr(), pg.DSN(s.db), parallelism, unaligned, groups)
}

func TestSoak(t *testing.T) {
	p := planOf(t)
	k, pg := harness.SharedKafka(t), harness.SharedPostgres(t)
	harness.BuildStreamsql(t) // not in the first life's time
	in := harness.UniqueName(t)
	k.CreateTopic(t, in, 4, nil)
	killed, calm := newSide(t, k, pg, in+"_killed"), newSide(t, k, pg, in+"_calm")

	eng, err := streamsql.Open(calm.state, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	steady := begin(t, eng, calm.script(k, pg, in, 2, false))

	stop, sent := make(chan struct{}), make(chan int, 1)
	go func() { sent <- send(t, k, in, p.rate, stop) }()
	samples := p.run(t, k, pg, in, killed, calm)
	close(stop)
	n := <-sent

	last := p.start(t, k, pg, in, killed, 2, false)
	for _, s := range []*side{killed, calm} {
		s.complete(t, pg, n)
	}
	if err := last.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, err := last.Wait(patience); err != nil || code != 0 {
		t.Errorf("the job ended with %d, %v\n%s", code, err, last.Output())
	}
	if err := steady.Stop(t.Context(), streamsql.StopOptions{}); err != nil {
		t.Error(err)
	}
	for _, s := range []*side{killed, calm} {
		s.exact(t, k, pg, n)
	}
	t.Logf("%d rows, %d kills, %d rescales: exact", n, samples[len(samples)-1].Kills, samples[len(samples)-1].Rescales)
	report(t, p, samples)
	flat(t, samples)
}

// run kills and restarts until the time is over.
func (p plan) run(t *testing.T, k *harness.Broker, pg *harness.PG, in string, killed, calm *side) (samples []sample) {
	t.Helper()
	parallelisms := []int{2, 4, 1, 3}
	rnd := rand.New(rand.NewSource(time.Now().UnixNano()))
	began := time.Now()
	rescaled, stalled := began, 0
	var s sample
	for time.Since(began) < p.total || s.Kills < p.kills {
		if s.Kills > 0 && time.Since(rescaled) >= p.rescale {
			rescaled = time.Now()
			s.Rescales++
		}
		s.Parallelism, s.Unaligned = parallelisms[s.Rescales%len(parallelisms)], s.Rescales%2 == 1
		before, started := killed.out.rows(), time.Now()
		proc := p.start(t, k, pg, in, killed, s.Parallelism, s.Unaligned)
		first := killed.out.after(started, p.first)
		// From half to one and a half times the usual: kills fall anywhere.
		life := time.Duration((0.5 + rnd.Float64()) * float64(p.kill))
		select {
		case <-proc.Done():
			t.Fatalf("the job ended by itself:\n%s", proc.Output())
		case <-time.After(max(0, life-time.Since(started))):
		}
		s.At, s.Rows, s.Recovered = time.Since(began), killed.out.rows(), first
		s.Killed = holds(t, proc.Pid(), killed.state)
		s.Calm = holds(t, os.Getpid(), calm.state)
		s.Calm.Goroutines = runtime.NumGoroutine()
		proc.Kill()
		s.Kills++
		samples = append(samples, s)
		if stalled++; s.Rows > before {
			stalled = 0
		}
		if stalled > 20 {
			t.Fatalf("no new row in the last %d lives of the job; the last wrote:\n%s", stalled, proc.Output())
		}
	}
	return samples
}

func (p plan) start(t *testing.T, k *harness.Broker, pg *harness.PG, in string, s *side, parallelism int, unaligned bool) *harness.Process {
	t.Helper()
	if err := os.WriteFile(s.file, []byte(s.script(k, pg, in, parallelism, unaligned)), 0o600); err != nil {
		t.Fatal(err)
	}
	return harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", s.file, "--state-dir", s.state}})
}

// complete waits until all of n rows are everywhere.
func (s *side) complete(t *testing.T, pg *harness.PG, n int) {
	t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		rows := s.out.rows()
		done := pg.Rows(t, s.db, fmt.Sprintf(`SELECT (SELECT count(*) FROM p) >= %[1]d AND (SELECT coalesce(sum(n), 0) FROM u) >= %[1]d`, n))[0]
		if rows >= n && strings.HasPrefix(done, "t") {
			return
		}
		if time.Now().After(end) {
			t.Errorf("%s: %d of %d rows are in the topic, all in the tables: %s", s.name, rows, n, done)
			return
		}
	}
}

// exact compares what is in the outputs with what went in, and looks for what must not be left.
func (s *side) exact(t *testing.T, k *harness.Broker, pg *harness.PG, n int) {
	t.Helper()
	// The reader may have been behind what it had not seen twice yet: everything is read once more.
	whole := map[string]int{}
	for _, v := range k.Values(t, s.name+"_out", harness.Committed) {
		whole[v]++
	}
	twice, lost := 0, 0
	for i := range n {
		switch c := whole[fmt.Sprintf(`{"id":%d}`, i)]; {
		case c == 0:
			lost++
		case c > 1:
			twice++
		}
	}
	if twice > 0 || lost > 0 || len(whole) != n {
		t.Errorf("%s: the topic has %d different rows of %d, lacks %d, has %d more than once", s.name, len(whole), n, lost, twice)
	}
	if got := pg.Rows(t, s.db, `SELECT count(*), count(DISTINCT id), min(id), max(id) FROM p`); len(got) != 1 || strings.Trim(got[0], "()") != fmt.Sprintf("%d|%d|0|%d", n, n, n-1) {
		t.Errorf("%s: the table has (rows, different ones, least, greatest) %v, want %d", s.name, got, n)
	}
	wrong := pg.Rows(t, s.db, fmt.Sprintf(`SELECT * FROM
  (SELECT i %% %[1]d AS g, count(*) AS n, sum(i) AS s FROM generate_series(0::bigint, %[2]d) AS i GROUP BY 1) AS w
  FULL JOIN u USING (g) WHERE w.n IS DISTINCT FROM u.n OR w.s IS DISTINCT FROM u.s LIMIT 5`, groups, n-1))
	if len(wrong) > 0 {
		t.Errorf("%s: wrong groups %v", s.name, wrong)
	}
	if left := pg.PreparedTransactions(t, s.db); len(left) > 0 {
		t.Errorf("%s: prepared transactions are left: %v", s.name, left)
	}
	if left := k.OpenTransactions(t, "streamsql-"+s.name); len(left) > 0 {
		t.Errorf("%s: transactions are left: %v", s.name, left)
	}
}

// report writes the table: one line a minute, or each sample of a short run.
func report(t *testing.T, p plan, samples []sample) {
	t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "**Soak: %s, kill -9 every %s, another parallelism every %s, %d rows/s into two jobs**\n\n", p.total, p.kill, p.rescale, p.rate)
	b.WriteString("| after | kills | parallelism | rows | to the first row | descriptors | threads | resident | state | files | undisturbed: descriptors | goroutines | resident | state | files |\n")
	b.WriteString("|" + strings.Repeat("---|", 15) + "\n")
	next := time.Duration(0)
	for i, s := range samples {
		if len(samples) > 40 && s.At < next && i < len(samples)-1 {
			continue
		}
		next = s.At + time.Minute
		barriers := ""
		if s.Unaligned {
			barriers = ", unaligned"
		}
		fmt.Fprintf(&b, "| %s | %d | %d%s | %d | %s | %d | %d | %d MiB | %d KiB | %d | %d | %d | %d MiB | %d KiB | %d |\n", s.At.Round(time.Second), s.Kills, s.Parallelism, barriers, s.Rows,
			s.Recovered.Round(10*time.Millisecond), s.Killed.Descriptors, s.Killed.Threads, s.Killed.Resident>>20, s.Killed.StateBytes>>10, s.Killed.Files,
			s.Calm.Descriptors, s.Calm.Goroutines, s.Calm.Resident>>20, s.Calm.StateBytes>>10, s.Calm.Files)
	}
	t.Logf("\n%s", b.String())
	if p.dir == "" {
		return
	}
	data, err := json.MarshalIndent(samples, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"soak.md": []byte(b.String()), "soak.json": append(data, '\n')} {
		if err := os.WriteFile(filepath.Join(p.dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
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

// send produces numbered rows at a steady rate until it is told to stop, and gives their number.
func send(t *testing.T, k *harness.Broker, topic string, rate int, stop <-chan struct{}) (n int) {
	cl := k.Client(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(1<<20))
	began := time.Now()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for last := false; !last; {
		select {
		case <-tick.C:
		case <-stop:
			last = true
		}
		for due := int(time.Since(began).Seconds() * float64(rate)); n < due; n++ {
			cl.Produce(context.Background(), &kgo.Record{Value: fmt.Appendf(nil, `{"id":%d}`, n)}, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Errorf("produce: %v", err)
				}
			})
		}
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Error(err)
	}
	return n
}

// reader follows the committed records of a topic.
type reader struct {
	mu     sync.Mutex
	n      int
	newest time.Time // when the newest was written
	came   chan struct{}
}

func follow(t *testing.T, k *harness.Broker, topic string) *reader {
	t.Helper()
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	r := &reader{came: make(chan struct{})}
	go func() {
		for {
			f := cl.PollFetches(t.Context())
			if f.IsClientClosed() || t.Context().Err() != nil {
				return
			}
			rs := f.Records()
			if len(rs) == 0 {
				continue
			}
			r.mu.Lock()
			r.n += len(rs)
			for _, rec := range rs {
				if rec.Timestamp.After(r.newest) {
					r.newest = rec.Timestamp
				}
			}
			close(r.came)
			r.came = make(chan struct{})
			r.mu.Unlock()
		}
	}()
	return r
}

func (r *reader) rows() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.n
}

// after waits until there is a row that was written after an instant, and gives the time since then; at most that long, then 0.
func (r *reader) after(at time.Time, most time.Duration) time.Duration {
	limit := time.After(most)
	for {
		r.mu.Lock()
		newest, came := r.newest, r.came
		r.mu.Unlock()
		if newest.After(at) {
			return time.Since(at)
		}
		select {
		case <-came:
		case <-limit:
			return 0
		}
	}
}
