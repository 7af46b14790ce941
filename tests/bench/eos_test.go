package bench

// Goal: what the guarantee costs, Kafka to Kafka on a real broker: at-least-once beside exactly-once with aligned and with unaligned
// barriers, checkpoints every 100 ms, 1 s and 10 s. Method, for each: (1) a job reads a topic to its end, in turn with the others; rows
// per second and processor time, best of some rounds. (2) A job passes on a steady input; a reader of committed records takes the age of
// each row, then the job is killed and started again a few times, and the reader takes the time until it has a row that it did not
// have. Rows carry numbers: with exactly-once each comes once, with at-least-once at least once.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

// guarantee is a way to run a job.
type guarantee struct {
	Name     string
	Exactly  bool
	settings string
}

var (
	atLeastOnce = guarantee{Name: "at-least-once", settings: "SET 'execution.checkpointing.mode' = 'AT_LEAST_ONCE';\n"}
	aligned     = guarantee{Name: "exactly-once", Exactly: true}
	unaligned   = guarantee{Name: "exactly-once, unaligned", Exactly: true, settings: "SET 'execution.checkpointing.unaligned.enabled' = 'true';\n"}
)

// eosJobs are the statements measured: one whose rows pass a single chain, and one with an exchange and state before the sink.
var eosJobs = []struct{ Name, query string }{
	{"rows pass", "SELECT t, id, pad FROM i WHERE id >= 0"},
	{"first row of each id", "SELECT t, id, pad FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY p) AS rn FROM i) WHERE rn = 1"},
}

const (
	passing    = 0
	exchanging = 1
)

// eosJob is the job's file: bounded, it reads what is there and ends.
func eosJob(t *testing.T, k *harness.Broker, g guarantee, job int, interval time.Duration, in, out string, bounded bool) string {
	bound, sink := "", fmt.Sprintf("'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%s'", out)
	if bounded {
		bound = ", 'scan.bounded.mode' = 'latest-offset'"
	}
	if !g.Exactly {
		sink = "'sink.delivery-guarantee' = 'at-least-once'"
	}
	return writeJob(t, fmt.Sprintf(`SET 'execution.checkpointing.interval' = '%d ms';
SET 'parallelism.default' = '2';
%sCREATE TABLE i (t BIGINT, id BIGINT, pad STRING, p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset'%s);
CREATE TABLE o (t BIGINT, id BIGINT, pad STRING) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%[4]s', 'format' = 'json', %[7]s);
INSERT INTO o %s;`, interval.Milliseconds(), g.settings, in, k.Addr(), bound, out, sink, eosJobs[job].query))
}

// volume is a job that reads a topic to its end.
type volume struct {
	Guarantee     string
	Job           string
	Interval      time.Duration
	Rows          int
	Rounds        int
	RowsPerSecond float64       // best
	NanosPerRow   float64       // of processor time, best
	Checkpoint    time.Duration // the longest of the last before the end, from barrier to durable; 0 = there was none
	ToBaseline    float64       // RowsPerSecond to that of at-least-once

	g   guarantee
	job int
}

// cost is a job with a steady input that is killed.
type cost struct {
	Guarantee string
	Interval  time.Duration
	Rate      int // rows a second
	P50, P99  time.Duration
	CPU       float64 // processors in use before the kill
	Kills     int
	// Away is from the start of the process to a reader's first new row, the median of the kills; the parts are of that one.
	Away         time.Duration
	Parts        map[string]time.Duration
	Twice, Lost  int
	Rows, Counts int // rows of the whole run, and those whose age counts

	g guarantee
}

func TestGuaranteeCost(t *testing.T) {
	rows, rate, seconds, kills, rounds := 3000, 500, 1, 1, 1
	intervals := []time.Duration{100 * time.Millisecond}
	if _, ok := full(); ok {
		rows, rate, seconds, kills = int(sizeFromEnv(t, "BENCH_EOS_ROWS", 4_000_000)), int(sizeFromEnv(t, "BENCH_EOS_RATE", 20_000)), 20, 5
		rounds = int(sizeFromEnv(t, "BENCH_EOS_ROUNDS", 3))
		intervals = []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second}
	}
	k := harness.SharedKafka(t)
	var volumes []*volume
	var costs []*cost
	for _, interval := range intervals {
		for _, g := range []guarantee{atLeastOnce, aligned, unaligned} {
			for job := range eosJobs {
				if g.Name != unaligned.Name || job == exchanging { // without an exchange no barrier waits
					volumes = append(volumes, &volume{Guarantee: g.Name, Job: eosJobs[job].Name, Interval: interval, Rows: rows, Rounds: rounds, g: g, job: job})
				}
			}
			costs = append(costs, &cost{Guarantee: g.Name, Interval: interval, Rate: rate, Kills: kills, g: g})
		}
	}
	figures := struct {
		Throughput []*volume
		Steady     []*cost
	}{volumes, costs}
	in := k.Topic(t, partitions)
	fill(t, k, in, rows)
	for range rounds {
		for _, v := range volumes {
			v.measure(t, k, in)
		}
	}
	for i, v := range volumes {
		for _, base := range volumes[:i+1] {
			if !base.g.Exactly && base.job == v.job && base.Interval == v.Interval {
				v.ToBaseline = v.RowsPerSecond / base.RowsPerSecond
			}
		}
	}
	tables := &table{title: fmt.Sprintf("Kafka to Kafka, %d rows of 150 bytes, parallelism 2, best of %d", rows, rounds),
		head: []string{"job", "checkpoints every", "guarantee", "rows/s", "to at-least-once", "ns of processor/row", "a checkpoint"}}
	for _, v := range volumes {
		tables.add(v.Job, v.Interval, v.Guarantee, fmt.Sprintf("%.0f", v.RowsPerSecond), fmt.Sprintf("%.2f", v.ToBaseline), fmt.Sprintf("%.0f", v.NanosPerRow), ms(v.Checkpoint))
	}
	tables.report(t, "eos-throughput", figures)
	steady := &table{title: fmt.Sprintf("%d rows a second, %s; age at a reader of committed records, then kill -9 %d times", rate, eosJobs[exchanging].Name, kills),
		head: append([]string{"checkpoints every", "guarantee", "p50", "p99", "processors in use", "rows twice", "rows lost", "away, median"}, append(restoreParts, "then, to a new row")...)}
	for _, c := range costs {
		c.measure(t, k, time.Duration(seconds)*time.Second)
		cells := []any{c.Interval, c.Guarantee, ms(c.P50), ms(c.P99), fmt.Sprintf("%.2f", c.CPU), c.Twice, c.Lost, ms(c.Away)}
		rest := c.Away
		for _, p := range restoreParts {
			cells, rest = append(cells, ms(c.Parts[p])), rest-c.Parts[p]
		}
		steady.add(append(cells, ms(rest))...)
		steady.write(t, "eos", figures) // a run of many minutes leaves what it has
	}
	steady.report(t, "eos", figures)
}

// fill produces n rows.
func fill(t *testing.T, k *harness.Broker, topic string, n int) {
	t.Helper()
	cl := k.Client(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(50_000))
	pad := strings.Repeat("abcdefgh", 12)
	for i := range n {
		cl.Produce(context.Background(), &kgo.Record{Value: fmt.Appendf(nil, `{"t":%d,"id":%d,"pad":"%s"}`, start+int64(i), i, pad)}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (v *volume) measure(t *testing.T, k *harness.Broker, in string) {
	t.Helper()
	out := k.Topic(t, partitions)
	file, state := eosJob(t, k, v.g, v.job, v.Interval, in, out, true), t.TempDir()
	began := time.Now()
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", file, "--state-dir", state}})
	if code, err := p.Wait(20 * time.Minute); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
	}
	took := time.Since(began)
	user, system := p.CPU()
	v.RowsPerSecond = max(v.RowsPerSecond, float64(v.Rows)/took.Seconds())
	if nanos := float64(user+system) / float64(v.Rows); v.NanosPerRow == 0 || nanos < v.NanosPerRow {
		v.NanosPerRow = nanos
	}
	v.Checkpoint = max(v.Checkpoint, longestCheckpoint(t, state))
	// The topic is read back once: a missing row is a wrong figure.
	read := fromStart(t, k, out)
	var seen numbers
	for end := time.Now().Add(lost); seen.distinct < v.Rows && time.Now().Before(end); {
		for _, r := range pollFor(t, read, time.Second) {
			seen.add(number(t, r.Value))
		}
	}
	if seen.distinct != v.Rows || seen.twice > 0 {
		t.Errorf("%s, %s, %s: %d rows of %d came, %d twice", v.Job, v.Guarantee, v.Interval, seen.distinct, v.Rows, seen.twice)
	}
	if _, err := k.Admin(t).DeleteTopics(t.Context(), out); err != nil { // else some forty copies of the input pile up
		t.Fatal(err)
	}
}

// longestCheckpoint is how long the last checkpoints in a state directory took, but for the one that ended the job.
func longestCheckpoint(t *testing.T, state string) (most time.Duration) {
	t.Helper()
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"checkpoint", "trace", state, "--json"}})
	if code, err := p.Wait(time.Minute); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
	}
	for d := json.NewDecoder(strings.NewReader(p.Stdout())); d.More(); {
		var x struct {
			Kind                 string
			Triggered, Completed time.Time
		}
		if err := d.Decode(&x); err != nil {
			t.Fatal(err)
		}
		if x.Kind == "checkpoint" && !x.Completed.IsZero() {
			most = max(most, x.Completed.Sub(x.Triggered))
		}
	}
	return most
}

func (c *cost) measure(t *testing.T, k *harness.Broker, counted time.Duration) {
	t.Helper()
	in, out, state := k.Topic(t, partitions), k.Topic(t, partitions), filepath.Join(t.TempDir(), "state")
	cmd := harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", eosJob(t, k, c.g, exchanging, c.Interval, in, out, false), "--state-dir", state, "--log", "info"}}
	read := reader(t, k, out)
	p := harness.Start(t, cmd)
	began := time.Now()
	stop, sent := make(chan struct{}), make(chan int, 1)
	go func() { sent <- send(t, k, in, c.Rate, began, time.Hour, stop) }()
	var seen numbers
	var ages durations
	// follow reads until done says so of a record; now is when it came.
	follow := func(done func(r *kgo.Record, fresh bool, now time.Time) bool) {
		for {
			rs := poll(t, read, p)
			now := time.Now()
			ended := false
			for _, r := range rs {
				fresh := seen.add(number(t, r.Value))
				ended = ended || done(r, fresh, now)
			}
			if ended {
				return
			}
		}
	}
	counted = max(counted, 3*c.Interval)
	warm := min(settle, counted)
	follow(func(r *kgo.Record, _ bool, now time.Time) bool {
		made := stamp(t, r.Value)
		if made.Sub(began) >= warm {
			ages = append(ages, now.Sub(made))
		}
		return made.Sub(began) >= warm+counted
	})
	elapsed := time.Since(began)
	type kill struct {
		away  time.Duration
		parts map[string]time.Duration
	}
	var kills []kill
	rnd := rand.New(rand.NewSource(int64(c.Interval)))
	for i := range c.Kills {
		// Anywhere between two checkpoints.
		until := time.Now().Add(time.Duration((0.5 + rnd.Float64()) * float64(c.Interval)))
		follow(func(_ *kgo.Record, _ bool, now time.Time) bool { return !now.Before(until) })
		p.Kill()
		<-p.Done()
		if i == 0 {
			user, system := p.CPU()
			c.CPU = (user + system).Seconds() / elapsed.Seconds()
		}
		again := time.Now()
		p = harness.Start(t, cmd)
		var away time.Duration
		follow(func(r *kgo.Record, fresh bool, now time.Time) bool {
			// What the process before had pre-committed is committed at the restore, and no news.
			if fresh && away == 0 && r.Timestamp.After(again) {
				away = now.Sub(again)
			}
			return away > 0
		})
		kills = append(kills, kill{away, partsOf(t, p)})
	}
	close(stop)
	n := <-sent
	for end := time.Now().Add(lost); seen.distinct < n && time.Now().Before(end); {
		for _, r := range pollFor(t, read, time.Second) {
			seen.add(number(t, r.Value))
		}
	}
	p.Kill()
	var all durations
	for _, x := range kills {
		all = append(all, x.away)
	}
	c.Away = all.quantile(0.5)
	for _, x := range kills {
		if x.away == c.Away {
			c.Parts = x.parts
		}
	}
	c.P50, c.P99, c.Counts, c.Rows = ages.quantile(0.5), ages.quantile(0.99), len(ages), n
	c.Twice, c.Lost = seen.twice, n-seen.distinct
	if c.Lost > 0 || c.g.Exactly && c.Twice > 0 {
		t.Errorf("%s, checkpoints every %s: %d rows of %d are lost, %d came twice", c.Guarantee, c.Interval, c.Lost, n, c.Twice)
	}
	if len(ages) == 0 {
		t.Errorf("%s: no row counted of %d", c.Guarantee, n)
	}
}

// numbers are the rows that came, by their number.
type numbers struct {
	seen            []bool
	distinct, twice int
}

// add notes a row and tells whether it is new.
func (n *numbers) add(id int) bool {
	if id >= len(n.seen) {
		n.seen = append(n.seen, make([]bool, id-len(n.seen)+1+len(n.seen)/2)...)
	}
	if n.seen[id] {
		n.twice++
		return false
	}
	n.seen[id] = true
	n.distinct++
	return true
}

// field is the whole number of a field of a row as the jobs write it.
func field(t *testing.T, row []byte, name string) int64 {
	t.Helper()
	_, v, ok := bytes.Cut(row, []byte(`"`+name+`":`))
	if i := bytes.IndexAny(v, ",}"); ok && i > 0 {
		if n, err := strconv.ParseInt(string(v[:i]), 10, 64); err == nil {
			return n
		}
	}
	t.Fatalf("%s: no %q", row, name)
	return 0
}

func number(t *testing.T, row []byte) int      { return int(field(t, row, "id")) }
func stamp(t *testing.T, row []byte) time.Time { return time.Unix(0, field(t, row, "t")) }

// pollFor waits for records, for a time.
func pollFor(t *testing.T, cl *kgo.Client, most time.Duration) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), most)
	defer cancel()
	return cl.PollFetches(ctx).Records()
}
