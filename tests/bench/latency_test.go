package bench

// Goal: how old a row is when a reader of committed records sees it. Method: records carry the time at which they were produced, at a
// steady rate; a job passes them on, exactly once; a reader of committed records takes the difference. Broker, producer, reader and job
// share the machine.

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

// steady is a steady input, and how it went through.
type steady struct {
	Rate     int           // rows a second
	Interval time.Duration // of checkpoints
	Seconds  int           // that count
	P50, P99 time.Duration
	Rows     int
	CPU      float64 // processor seconds of the job for a second of input
}

func TestLatency(t *testing.T) {
	runs := []steady{{Rate: 1000, Interval: 100 * time.Millisecond, Seconds: 1}}
	if _, ok := full(); ok {
		runs = nil
		for _, rate := range []int{20_000, 100_000} {
			for _, interval := range []time.Duration{100 * time.Millisecond, time.Second, 10 * time.Second} {
				runs = append(runs, steady{Rate: rate, Interval: interval, Seconds: max(20, int(4*interval/time.Second))})
			}
		}
	}
	k := harness.SharedKafka(t)
	tb := &table{title: "Age of a row at a reader of committed records, Kafka to Kafka, exactly once", head: []string{"rows/s", "checkpoints every", "p50", "p99", "processors in use"}}
	for i := range runs {
		r := &runs[i]
		r.measure(t, k)
		tb.add(r.Rate, r.Interval, ms(r.P50), ms(r.P99), fmt.Sprintf("%.2f", r.CPU))
	}
	tb.report(t, "latency", runs)
}

const (
	// settle is how long a job runs before its rows count.
	settle = 3 * time.Second
	// lost is how long nothing comes out until rows count as lost; checkpoints may be far apart on a busy machine.
	lost = 5 * time.Minute
)

func (r *steady) measure(t *testing.T, k *harness.Broker) {
	t.Helper()
	in, out := k.Topic(t, partitions), k.Topic(t, partitions)
	file := writeJob(t, fmt.Sprintf(`SET 'execution.checkpointing.interval' = '%d ms';
SET 'parallelism.default' = '2';
CREATE TABLE i (t BIGINT, id BIGINT, pad STRING) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE o (t BIGINT, id BIGINT, pad STRING) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%[3]s', 'format' = 'json',
  'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%[4]s');
INSERT INTO o SELECT t, id + 1, pad FROM i WHERE id >= 0;`, r.Interval.Milliseconds(), in, k.Addr(), out))
	read := reader(t, k, out)
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", file, "--state-dir", t.TempDir()}})
	total := settle + time.Duration(r.Seconds)*time.Second
	sent := make(chan int, 1)
	began := time.Now()
	go func() { sent <- send(t, k, in, r.Rate, began, total, nil) }()
	var ages durations
	n, want, last := 0, -1, time.Now()
	for want < 0 || n < want {
		select {
		case want = <-sent:
			continue
		case <-p.Done():
			t.Fatalf("the job ended:\n%s", p.Output())
		default:
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond) // to look whether all are sent
		records := read.PollFetches(ctx).Records()
		cancel()
		now := time.Now()
		if len(records) > 0 {
			last = now
		} else if now.Sub(last) > lost {
			t.Fatalf("%d rows of %d came out, and none for %s", n, want, lost)
		}
		for _, rec := range records {
			n++
			v := rec.Value[len(`{"t":`):]
			at, err := strconv.ParseInt(string(v[:bytes.IndexByte(v, ',')]), 10, 64)
			if err != nil {
				t.Fatalf("%s: %v", rec.Value, err)
			}
			if at-began.UnixNano() >= int64(settle) {
				ages = append(ages, now.Sub(time.Unix(0, at)))
			}
		}
	}
	if n > want {
		t.Errorf("%d rows came out, %d went in", n, want)
	}
	elapsed := time.Since(began)
	p.Kill()
	<-p.Done()
	user, system := p.CPU()
	r.Rows, r.P50, r.P99, r.CPU = len(ages), ages.quantile(0.5), ages.quantile(0.99), (user+system).Seconds()/elapsed.Seconds()
	if r.Rows == 0 {
		t.Errorf("no row counted of %d", want)
	}
}

// send produces records at a steady rate, for a time or until it is told to stop, and gives their number.
func send(t *testing.T, k *harness.Broker, topic string, rate int, began time.Time, total time.Duration, stop <-chan struct{}) int {
	cl := k.Client(t, kgo.RecordPartitioner(kgo.RoundRobinPartitioner()), kgo.ProducerLinger(time.Millisecond), kgo.ProducerBatchCompression(kgo.NoCompression()),
		kgo.DefaultProduceTopic(topic), kgo.MaxBufferedRecords(1<<20))
	pad := string(bytes.Repeat([]byte("abcdefgh"), 12))
	n := 0
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for last := false; !last; {
		var now time.Time
		select {
		case now = <-tick.C:
		case <-stop:
			now, last = time.Now(), true
		}
		last = last || now.Sub(began) >= total
		due := int(min(now.Sub(began), total).Seconds() * float64(rate))
		for ; n < due; n++ {
			cl.Produce(context.Background(), &kgo.Record{Value: fmt.Appendf(nil, `{"t":%d,"id":%d,"pad":"%s"}`, time.Now().UnixNano(), n, pad)}, func(_ *kgo.Record, err error) {
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
