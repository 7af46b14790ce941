package nexmark

// Goal: what a row costs from Kafka to Kafka, exactly once, here and on Flink. Method: as for the queries; the records are bids of
// three sizes, the broker's own cost is not counted, and what each run committed is counted.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/tests/harness"
)

// pipeline is a job from Kafka to Kafka over records of about so many bytes.
type pipeline struct {
	script string
	bytes  int
}

func (p pipeline) name() string { return fmt.Sprintf("%s, %d B", p.script, p.bytes) }

var pipelines = []pipeline{{"filter", 100}, {"filter", 250}, {"filter", 1024}, {"tumble", 250}}

// tinyRecords is the number of records of the run whose cost is taken off.
const tinyRecords = 8

func TestKafka(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a broker: run without -short")
	}
	o := readOptions(t)
	o.source, o.interval = kafkaSource, "1 s"
	o.engines = slices.DeleteFunc(o.engines, func(e engine) bool { return e == limit })
	if o.dir != "" {
		o.events = number(t, "NEXMARK_EVENTS", 2_000_000)
	}
	o.warmUp = max(o.events/5, 1)
	k := harness.SharedKafka(t)
	rep := newReport(o)
	for _, p := range pipelines {
		t.Run(p.name(), func(t *testing.T) {
			m := &kafkaRuns{pipeline: p, o: o, broker: k, inputs: map[int]input{}}
			for _, n := range []int{tinyRecords, o.warmUp, o.events} {
				m.inputs[n] = produceBids(t, k, o.parallelism, n, p.bytes)
			}
			rep.Queries = append(rep.Queries, m.measure(t))
			if o.dir != "" {
				rep.write(t, o.dir, "kafka")
			}
		})
	}
}

// kafkaRuns are the runs of a pipeline.
type kafkaRuns struct {
	pipeline
	o      *options
	broker *harness.Broker
	inputs map[int]input // by their number of records
}

// input is a topic with bids, and what follows from them.
type input struct {
	topic           string
	bytes           int
	passing, groups int
}

// measure runs the pipeline on every engine in turn.
func (m *kafkaRuns) measure(t *testing.T) queryReport {
	t.Helper()
	r := queryReport{Query: fmt.Sprintf("%s, %d B", m.script, m.inputs[m.o.events].bytes/m.o.events), Runs: map[engine][]run{}}
	runners := map[engine]runner{}
	for _, e := range m.o.engines {
		runners[e] = newRunner(t, e, m.script, m.o)
		if e == flink {
			m.once(t, e, runners[e], m.o.warmUp)
		}
	}
	for round := range m.o.rounds {
		for i := range m.o.engines {
			e := m.o.engines[(i+round)%len(m.o.engines)]
			one := run{Start: m.once(t, e, runners[e], tinyRecords), Whole: m.once(t, e, runners[e], m.o.events)}
			r.Runs[e] = append(r.Runs[e], one)
			if m.o.dir != "" {
				t.Logf("%s %s: %s", m.name(), e, one)
			}
		}
	}
	return r
}

// once runs the pipeline over n records into a topic of its own, and checks that every row came out once.
func (m *kafkaRuns) once(t *testing.T, e engine, r runner, n int) cost {
	t.Helper()
	in, out := m.inputs[n], m.broker.Topic(t, int32(m.o.parallelism))
	text, err := os.ReadFile(filepath.Join("testdata", "kafka", m.script+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	connect := fmt.Sprintf("'connector' = 'kafka', 'properties.bootstrap.servers' = '%s', 'format' = 'json', ", m.broker.Addr())
	s := strings.NewReplacer(
		"$in", connect+fmt.Sprintf("'topic' = '%s', 'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'", in.topic),
		"$out", connect+fmt.Sprintf("'topic' = '%s', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%[1]s', 'properties.transaction.timeout.ms' = '900000'", out),
	).Replace(string(text))
	c := r.run(t, e.settings(m.o)+s, n)
	if c.Error != "" {
		t.Fatalf("%s on %s over %d records: %s", m.name(), e, n, c.Error)
	}
	want := in.passing
	if m.script == "tumble" {
		want = in.groups
	}
	if got := countCommitted(t, m.broker, out, m.o.parallelism); got != want {
		t.Errorf("%s on %s over %d records: %d records came out, want %d", m.name(), e, n, got, want)
	}
	return c
}

// produceBids fills a topic with n bids of Nexmark's kind, a record of about size bytes each, ten milliseconds apart.
func produceBids(t *testing.T, k *harness.Broker, partitions, n, size int) input {
	t.Helper()
	in := input{topic: k.Topic(t, int32(partitions))}
	groups := map[string]bool{}
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(50_000))
	rnd := rand.New(rand.NewPCG(3, 3))
	extra := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 40)
	for i := range n {
		ms := 1_700_000_000_000 + int64(i)*10
		price, channel := 1+rnd.IntN(30_000), fmt.Sprintf("channel-%d", rnd.IntN(100))
		if price >= 10_000 {
			in.passing++
		}
		groups[fmt.Sprint(ms/60_000, channel)] = true
		v := fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%d,"channel":"%s","ts":"%s"`, 1000+rnd.IntN(10_000), 1000+rnd.IntN(100_000), price,
			channel, time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000"))
		if size >= 200 { // else the record is full
			v = fmt.Appendf(v, `,"url":"https://www.example.org/%06d/item.htm?query=1"`, rnd.IntN(1_000_000))
			rest := max(size-len(v)-len(`,"extra":""}`)-10, 10)
			v = fmt.Appendf(v, `,"extra":"%s"`, extra[:rest+rnd.IntN(20)])
		}
		v = append(v, '}')
		in.bytes += len(v)
		cl.Produce(context.Background(), &kgo.Record{Topic: in.topic, Partition: int32(i % partitions), Value: v}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	in.groups = len(groups)
	return in
}

// countCommitted counts the records that a read-committed consumer sees in a topic.
func countCommitted(t *testing.T, k *harness.Broker, topic string, partitions int) int {
	t.Helper()
	cl := k.Client(t, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.KeepControlRecords())
	ends := endOffsets(t, cl, topic, partitions)
	next, n := make([]int64, partitions), 0
	for {
		open := false
		for p := range partitions {
			open = open || next[p] < ends[p]
		}
		if !open {
			return n
		}
		fetches := cl.PollFetches(t.Context())
		if err := fetches.Err(); err != nil {
			t.Fatal(err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				n++
			}
			next[r.Partition] = r.Offset + 1
		})
	}
}

// endOffsets are the ends of a topic's partitions, as those see it who read uncommitted records too. A broker answers a commit before
// its markers are in the log: the ends are taken when no transaction is open in them.
func endOffsets(t *testing.T, cl *kgo.Client, topic string, partitions int) []int64 {
	t.Helper()
	list := func(isolation int8) []int64 {
		req := kmsg.NewPtrListOffsetsRequest()
		req.ReplicaID, req.IsolationLevel = -1, isolation
		rt := kmsg.NewListOffsetsRequestTopic()
		rt.Topic = topic
		for p := range partitions {
			rp := kmsg.NewListOffsetsRequestTopicPartition()
			rp.Partition, rp.Timestamp = int32(p), -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		req.Topics = append(req.Topics, rt)
		ends := make([]int64, partitions)
		for _, shard := range cl.RequestSharded(t.Context(), req) {
			if shard.Err != nil {
				t.Fatal(shard.Err)
			}
			for _, rt := range shard.Resp.(*kmsg.ListOffsetsResponse).Topics {
				for _, rp := range rt.Partitions {
					ends[rp.Partition] = rp.Offset
				}
			}
		}
		return ends
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		all, stable := list(0), list(1)
		if slices.Equal(all, stable) {
			return all
		}
		if time.Now().After(deadline) {
			t.Fatalf("a transaction in %s stays open: ends %v, stable %v", topic, all, stable)
		}
	}
}
