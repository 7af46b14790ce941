package mainjob

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
	"github.com/streamsql/streamsql/tests/jobstate"
)

// patience bounds a run of the job: a loaded machine is slow, a hang is for ever.
const patience = 10 * time.Minute

func TestMain(m *testing.M) { harness.Main(m) }

// orders is the input: a deterministic stream of orders and what must come out of it.
type orders struct {
	n       int
	windows map[string]string // "window_start|region" → "count|sum in cents"
	users   map[int]string    // user → "count|sum"
	large   int               // orders above the filter
}

const (
	regions   = 5
	users     = 1000
	start     = int64(1_700_000_000_000) // ms
	perMinute = 2000
	threshold = 5000 // cents
)

// load produces n orders into four partitions. Order i is event i*30 ms after the start.
func load(t *testing.T, k *harness.Broker, topic string, n int) *orders {
	t.Helper()
	o := &orders{n: n, windows: map[string]string{}, users: map[int]string{}}
	type sum struct{ n, cents int64 }
	win, usr := map[string]*sum{}, map[int]*sum{}
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(100_000))
	rnd := rand.New(rand.NewSource(7))
	ctx := context.Background()
	for i := range n {
		at := time.UnixMilli(start + int64(i)*60_000/perMinute).UTC()
		user, region, cents := rnd.Intn(users), rnd.Intn(regions), int64(rnd.Intn(10_000))
		v := fmt.Sprintf(`{"order_id":%d,"user_id":%d,"region":"r%d","amount":%d.%02d,"ts":"%s"}`,
			i, user, region, cents/100, cents%100, at.Format("2006-01-02 15:04:05.000"))
		cl.Produce(ctx, &kgo.Record{Topic: topic, Partition: int32(i % 4), Value: []byte(v)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
		key := at.Truncate(time.Minute).Format("2006-01-02 15:04:05.000") + "|r" + fmt.Sprint(region)
		if win[key] == nil {
			win[key] = &sum{}
		}
		if usr[user] == nil {
			usr[user] = &sum{}
		}
		for _, s := range []*sum{win[key], usr[user]} {
			s.n++
			s.cents += cents
		}
		if cents > threshold {
			o.large++
		}
	}
	if err := cl.Flush(ctx); err != nil {
		t.Fatal(err)
	}
	for k, s := range win {
		o.windows[k] = fmt.Sprintf("%d|%d.%02d", s.n, s.cents/100, s.cents%100)
	}
	for u, s := range usr {
		o.users[u] = fmt.Sprintf("%d|%d.%02d", s.n, s.cents/100, s.cents%100)
	}
	return o
}

const job = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '150 ms';
SET 'execution.checkpointing.unaligned.enabled' = 'false';
SET 'parallelism.default' = '2';
CREATE TABLE orders (
  order_id BIGINT, user_id INT, region STRING, amount DECIMAL(10, 2), ts TIMESTAMP(3),
  WATERMARK FOR ts AS ts - INTERVAL '1' SECOND
) WITH ('connector' = 'kafka', 'topic' = '%[1]s_in', 'properties.bootstrap.servers' = '%[2]s',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json');
CREATE TABLE per_minute (window_start TIMESTAMP(3), region STRING, n BIGINT, total DECIMAL(38, 2)) WITH (
  'connector' = 'kafka', 'topic' = '%[1]s_out', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json',
  'json.encode.decimal-as-plain-number' = 'true');
CREATE TABLE large_orders (order_id BIGINT, user_id INT, amount DECIMAL(10, 2)) WITH (
  'connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'large_orders', 'sink.commit-protocol' = '%[4]s');
CREATE TABLE users (user_id INT, n BIGINT, total DECIMAL(38, 2), PRIMARY KEY (user_id) NOT ENFORCED) WITH (
  'connector' = 'postgres', 'url' = '%[3]s', 'table-name' = 'users');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO per_minute SELECT window_start, region, COUNT(*), SUM(amount)
    FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, region;
  INSERT INTO large_orders SELECT order_id, user_id, amount FROM orders WHERE amount > 50;
  INSERT INTO users SELECT user_id, COUNT(*), SUM(amount) FROM orders GROUP BY user_id;
END;
`

// fixture is the topics, the database and the file of one run.
type fixture struct {
	t        *testing.T
	k        *harness.Broker
	pg       *harness.PG
	name, db string
	file     string
	state    string
	input    *orders
}

func newFixture(t *testing.T, n int, protocol string) *fixture {
	t.Helper()
	f := &fixture{t: t, k: harness.SharedKafka(t), pg: harness.SharedPostgres(t), name: harness.UniqueName(t), state: filepath.Join(t.TempDir(), "state")}
	f.db = f.pg.CreateDatabase(t)
	f.pg.Exec(t, f.db, `CREATE TABLE large_orders (order_id bigint, user_id int, amount numeric(10,2))`,
		`CREATE TABLE users (user_id int PRIMARY KEY, n bigint, total numeric)`)
	f.k.CreateTopic(t, f.name+"_in", 4, nil)
	f.k.CreateTopic(t, f.name+"_out", 2, nil)
	f.input = load(t, f.k, f.name+"_in", n)
	f.file = filepath.Join(t.TempDir(), "job.sql")
	text := fmt.Sprintf(job, f.name, f.k.Addr(), f.pg.DSN(f.db), protocol)
	if err := os.WriteFile(f.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return f
}

// overtake turns unaligned checkpoints of the next start on or off.
func (f *fixture) overtake(on bool) {
	f.t.Helper()
	text, err := os.ReadFile(f.file)
	if err != nil {
		f.t.Fatal(err)
	}
	const setting = "'execution.checkpointing.unaligned.enabled' = "
	off, is := fmt.Sprintf("%s'%v'", setting, !on), fmt.Sprintf("%s'%v'", setting, on)
	if err := os.WriteFile(f.file, []byte(strings.Replace(string(text), off, is, 1)), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) start(bin string, env ...string) *harness.Process {
	return harness.Start(f.t, harness.Command{Path: bin, Args: []string{"run", f.file, "--state-dir", f.state, "--log", "info"}, Env: env})
}

// check compares everything the job wrote with the input, and looks for leftovers.
func (f *fixture) check() {
	f.t.Helper()
	got := map[string][]string{}
	for _, v := range f.k.Values(f.t, f.name+"_out", harness.Committed) {
		var r struct {
			WindowStart string      `json:"window_start"`
			Region      string      `json:"region"`
			N           int64       `json:"n"`
			Total       json.Number `json:"total"`
		}
		if err := json.Unmarshal([]byte(v), &r); err != nil {
			f.t.Fatalf("%v in %s", err, v)
		}
		at, err := time.Parse("2006-01-02 15:04:05", strings.TrimSuffix(r.WindowStart, ".000"))
		if err != nil {
			f.t.Fatal(err)
		}
		key := at.Format("2006-01-02 15:04:05.000") + "|" + r.Region
		got[key] = append(got[key], fmt.Sprintf("%d|%s", r.N, r.Total))
	}
	wrong := 0
	report := func(format string, args ...any) {
		if wrong++; wrong <= 10 {
			f.t.Errorf(format, args...)
		}
	}
	for key, want := range f.input.windows {
		if len(got[key]) != 1 || got[key][0] != want {
			report("window %s: got %v, want once %s", key, got[key], want)
		}
	}
	if len(got) != len(f.input.windows) {
		report("%d windows, want %d", len(got), len(f.input.windows))
	}
	if rows := f.pg.Rows(f.t, f.db, `SELECT count(*), count(DISTINCT order_id) FROM large_orders`); rows[0] != fmt.Sprintf("%d|%d", f.input.large, f.input.large) {
		report("large_orders: count and distinct ids %s, want %d", rows[0], f.input.large)
	}
	byUser := f.pg.Rows(f.t, f.db, `SELECT user_id, n, total::text FROM users ORDER BY user_id`)
	var want []string
	for u, s := range f.input.users {
		want = append(want, fmt.Sprintf("%d|%s", u, s))
	}
	sort.Strings(want)
	sort.Strings(byUser)
	if strings.Join(byUser, "\n") != strings.Join(want, "\n") {
		report("users differ: %d rows, want %d", len(byUser), len(want))
	}
	if open := f.k.OpenTransactions(f.t, "streamsql-"+f.name+"-"); len(open) > 0 {
		report("open transactions: %v", open)
	}
	if p := f.pg.PreparedTransactions(f.t, f.db); len(p) > 0 {
		report("prepared transactions: %v", p)
	}
	if wrong > 10 {
		f.t.Errorf("and %d more", wrong-10)
	}
}

// The whole job without a failure: a quick check of every part.
func TestMainJob(t *testing.T) {
	t.Parallel()
	bin := harness.BuildStreamsql(t)
	f := newFixture(t, 50_000, "auto")
	p := f.start(bin)
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	f.check()
}

// A million orders, killed with SIGKILL at random at least 30 times, with unaligned checkpoints in half of its lives. A machine that is through with them before gets them
// once more.
func TestCrashMainJob(t *testing.T) {
	t.Parallel()
	bin := harness.BuildStreamsql(t)
	kills := harness.Crashes(t, 30)
	rnd := rand.New(rand.NewSource(time.Now().UnixNano()))
	for done := 0; done < kills && !t.Failed(); {
		f := newFixture(t, 1_000_000, "auto")
		for ended := false; !ended; {
			f.overtake(rnd.Intn(2) == 0)
			p := f.start(bin)
			if ended = done == kills; !ended {
				select {
				case <-p.Done():
					ended = true
				case <-time.After(time.Duration(100+rnd.Intn(900)) * time.Millisecond):
					p.Kill()
					if ended = jobstate.Ended(t, f.state); !ended {
						done++
					}
					continue
				}
			}
			if code, err := p.Wait(patience); err != nil || code != 0 {
				t.Fatalf("exit %d, %v", code, err)
			}
		}
		f.check()
		t.Logf("%d kills", done)
	}
}
