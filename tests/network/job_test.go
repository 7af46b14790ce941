package network

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

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/cmd/streamsql/netproxy"
	"github.com/streamsql/streamsql/tests/harness"
)

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 4 * time.Minute

// sinks are the jobs of the tests: one source in Kafka, one sink.
var sinks = map[string]struct{ columns, options, query string }{
	"kafka two-phase":      {"id BIGINT", kafkaSink, "SELECT id FROM src"},
	"kafka write-ahead":    {"id BIGINT", kafkaSink + ", 'sink.commit-protocol' = 'write-ahead', 'sink.write-ahead.marker-topic' = '%[1]s_markers'", "SELECT id FROM src"},
	"postgres prepared":    {"id BIGINT", postgresSink + ", 'sink.commit-protocol' = 'prepared'", "SELECT id FROM src"},
	"postgres write-ahead": {"id BIGINT", postgresSink + ", 'sink.commit-protocol' = 'write-ahead'", "SELECT id FROM src"},
	"postgres upsert":      {"id BIGINT, twice BIGINT, PRIMARY KEY (id) NOT ENFORCED", postgresSink + ", 'sink.commit-protocol' = 'upsert'", "SELECT id, SUM(id * 2) FROM src GROUP BY id"},
}

const (
	kafkaSink    = "'connector' = 'kafka', 'topic' = '%[1]s_out', 'format' = 'json', " + kafkaClient
	postgresSink = "'connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'out'"
	// The shorter a request may take, the sooner one that is lost is repeated.
	kafkaClient = "'properties.bootstrap.servers' = '%[2]s', 'properties.request.timeout.ms' = '4000'"
)

const jobText = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '200 ms';
SET 'parallelism.default' = '2';
SET 'restart-strategy.type' = 'exponential-delay';
SET 'restart-strategy.exponential-delay.initial-backoff' = '100 ms';
SET 'restart-strategy.exponential-delay.max-backoff' = '1 s';
%[4]s
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'scan.startup.mode' = 'earliest-offset', 'format' = 'json', ` + kafkaClient + `);
`

// job is a running streamsql whose ways to the servers can be broken.
type job struct {
	t        *testing.T
	sink     string
	name, db string
	k        *harness.Broker
	pg       *harness.PG
	toKafka  *netproxy.Proxy
	toPG     *netproxy.Proxy
	process  *harness.Process
	feed     *kgo.Client
	out      *kgo.Client // reads what is committed; nil for PostgreSQL
	produced int
	seen     int // rows out has read
}

// start starts the job. via is the broker's listener behind toKafka. options are more options of a sink in Kafka, settings more SET
// statements.
func start(t *testing.T, sink string, k *harness.Broker, via int, toKafka *netproxy.Proxy, options, settings string) *job {
	t.Helper()
	j := &job{t: t, sink: sink, name: harness.UniqueName(t), k: k, pg: harness.SharedPostgres(t), toKafka: toKafka}
	j.k.CreateTopic(t, j.name+"_in", 3, nil)
	j.feed = k.Client(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(0))
	j.db = j.pg.CreateDatabase(t)
	url := ""
	if j.intoKafka() {
		j.k.CreateTopic(t, j.name+"_out", 2, nil)
		j.out = k.Client(t, kgo.ConsumeTopics(j.name+"_out"), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
			kgo.FetchMaxWait(100*time.Millisecond))
	} else {
		p, err := netproxy.Start(j.pg.Addr(), netproxy.Postgres)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { p.Close() })
		j.toPG = p
		url = strings.Replace(j.pg.DSN(j.db), j.pg.Addr(), p.Addr(), 1)
		key := ""
		if sink == "postgres upsert" {
			key = " PRIMARY KEY, twice bigint"
		}
		j.pg.Exec(t, j.db, `CREATE TABLE out (id bigint`+key+`)`)
	}
	s := sinks[sink]
	text := fmt.Sprintf(jobText+"CREATE TABLE target ("+s.columns+") WITH ("+s.options+options+");\nINSERT INTO target "+s.query+";\n", j.name, k.Via(via), url, settings)
	dir := t.TempDir()
	file := filepath.Join(dir, "job.sql")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	j.process = harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", file, "--state-dir", filepath.Join(dir, "state"), "--log", "info"}})
	return j
}

func (j *job) intoKafka() bool { return strings.HasPrefix(j.sink, "kafka") }

// produce writes the next n rows to the source, not through the proxy.
func (j *job) produce(n int) {
	j.t.Helper()
	rs := make([]*kgo.Record, n)
	for i := range rs {
		rs[i] = &kgo.Record{Topic: j.name + "_in", Value: fmt.Appendf(nil, `{"id":%d}`, j.produced+i)}
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := j.feed.ProduceSync(ctx, rs...).FirstErr(); err != nil {
		j.t.Fatal(err)
	}
	j.produced += n
}

// visible is how many rows a reader of committed rows has seen by now.
func (j *job) visible() int {
	j.t.Helper()
	if j.intoKafka() {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		j.seen += j.out.PollFetches(ctx).NumRecords()
		return j.seen
	}
	var n int
	fmt.Sscan(j.pg.Rows(j.t, j.db, `SELECT count(*) FROM out`)[0], &n)
	return n
}

// caughtUp waits until all rows produced are visible.
func (j *job) caughtUp() {
	j.t.Helper()
	for end := time.Now().Add(patience); ; {
		n := j.visible()
		switch {
		case n == j.produced:
			return
		case n > j.produced:
			j.t.Fatalf("%s: %d rows are visible, %d were written", j.sink, n, j.produced)
		case !j.process.Alive():
			j.t.Fatalf("%s: the job ended\n%s", j.sink, j.process.Output())
		case time.Now().After(end):
			j.t.Fatalf("%s: %d rows of %d are visible after %v\n%s", j.sink, n, j.produced, patience, j.process.Output())
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// restarts is how often the job has begun anew by itself.
func (j *job) restarts() int {
	return strings.Count(j.process.Output(), "the job failed and will restart")
}

// end stops the job with its final checkpoint and looks at every row, and at what must not be left. It returns how many rows are lost and
// how many are there too often.
func (j *job) end() (lost, twice int) {
	j.t.Helper()
	if err := j.process.Signal(syscall.SIGINT); err != nil {
		j.t.Fatal(err)
	}
	if code, err := j.process.Wait(patience); err != nil || code != 0 {
		j.t.Fatalf("%s: exit code %d, %v\n%s", j.sink, code, err, j.process.Output())
	}
	lost, twice = j.once()
	if open := j.k.OpenTransactions(j.t, "streamsql-"+j.name); len(open) > 0 {
		j.t.Errorf("%s: open transactions: %v", j.sink, open)
	}
	if p := j.pg.PreparedTransactions(j.t, j.db); len(p) > 0 {
		j.t.Errorf("%s: prepared transactions: %v", j.sink, p)
	}
	if n := j.heldBack(); n > 0 {
		j.t.Errorf("%s: %d records lie behind the last stable offset", j.sink, n)
	}
	if open := j.pg.Rows(j.t, j.db, `SELECT pid, state, query FROM pg_stat_activity WHERE datname = current_database()
		AND application_name LIKE 'streamsql:%' AND state LIKE 'idle in transaction%'`); len(open) > 0 {
		j.t.Errorf("%s: sessions left in a transaction: %v", j.sink, open)
	}
	return lost, twice
}

// heldBack is how many records of the sink's topic lie behind its last stable offsets.
func (j *job) heldBack() (n int64) {
	if !j.intoKafka() {
		return 0
	}
	adm := j.k.Admin(j.t)
	defer adm.Close()
	topic := j.name + "_out"
	ends, err := adm.ListEndOffsets(context.Background(), topic)
	if err != nil {
		j.t.Fatal(err)
	}
	stable, err := adm.ListCommittedOffsets(context.Background(), topic)
	if err != nil {
		j.t.Fatal(err)
	}
	for p, e := range ends[topic] {
		n += e.Offset - stable[topic][p].Offset
	}
	return n
}

// once demands that every row is there once, and nothing else.
func (j *job) once() (lost, twice int) {
	j.t.Helper()
	var rows []string
	if j.intoKafka() {
		for _, v := range j.k.Values(j.t, j.name+"_out", harness.Committed) {
			var r struct {
				ID json.Number `json:"id"`
			}
			if err := json.Unmarshal([]byte(v), &r); err != nil {
				j.t.Fatalf("%v in %q", err, v)
			}
			rows = append(rows, r.ID.String())
		}
	} else {
		rows = j.pg.Rows(j.t, j.db, `SELECT * FROM out`)
	}
	want := make([]string, j.produced)
	for i := range want {
		if want[i] = fmt.Sprint(i); j.sink == "postgres upsert" {
			want[i] += fmt.Sprintf("|%d", 2*i)
		}
	}
	count := map[string]int{}
	for _, r := range rows {
		count[r]++
	}
	for _, w := range want {
		if count[w] == 0 {
			lost++
		}
		count[w]--
	}
	for _, n := range count {
		twice += max(n, 0)
	}
	if lost+twice > 0 {
		j.t.Errorf("%s: %d rows, want %d: %d lost, %d too many", j.sink, len(rows), len(want), lost, twice)
	}
	return lost, twice
}
