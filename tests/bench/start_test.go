package bench

// Goal: how long a user waits for the first row, and what a program that waits takes. Method: the time from the start of the process
// to the first row on its standard output, or in the topic for a reader of committed records; the memory of a shell after its first
// answer.

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestStart(t *testing.T) {
	rounds := 2
	if _, ok := full(); ok {
		rounds = 20
	}
	bin := harness.BuildStreamsql(t)
	info, err := os.Stat(bin)
	if err != nil {
		t.Fatal(err)
	}
	k := harness.SharedKafka(t)
	var query, kafka durations
	var rss int64
	for range rounds {
		d, resident := startShell(t, bin)
		query, rss = append(query, d), max(rss, resident)
		kafka = append(kafka, startJob(t, bin, k))
	}
	tb := &table{title: "From the start of the process", head: []string{"what", "median", "p90", "aim"}}
	tb.add("first row of a `SELECT` in the shell", ms(query.quantile(0.5)), ms(query.quantile(0.9)), "150 ms")
	tb.add("first committed row of a job from Kafka to Kafka, checkpoints every 100 ms", ms(kafka.quantile(0.5)), ms(kafka.quantile(0.9)), "600 ms")
	tb.add("memory of an idle shell", fmt.Sprintf("%d MiB", rss>>20), "", "")
	tb.add("size of the program", fmt.Sprintf("%d MiB", info.Size()>>20), "", "")
	tb.report(t, "start", map[string]any{"Query": query, "Kafka": kafka, "IdleBytes": rss, "ProgramBytes": info.Size()})
}

// startShell starts a shell, asks for a row, and gives the time until it is there and the memory the shell has then.
func startShell(t *testing.T, bin string) (time.Duration, int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, "--state-dir", t.TempDir())
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(in, "SELECT 424242;")
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "424242") {
	}
	took := time.Since(began)
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	rss := residentBytes(t, cmd.Process.Pid)
	in.Close()
	for lines.Scan() {
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return took, rss
}

// residentBytes is the resident memory of a process; 0 where the system does not say.
func residentBytes(t *testing.T, pid int) int64 {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if os.IsNotExist(err) {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if v, ok := strings.CutPrefix(l, "VmRSS:"); ok {
			kib, err := strconv.ParseInt(strings.Fields(v)[0], 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			return kib << 10
		}
	}
	return 0
}

// startJob starts a job over a topic with a record, and gives the time until a reader of committed records has it.
func startJob(t *testing.T, bin string, k *harness.Broker) time.Duration {
	t.Helper()
	in, out := k.Topic(t, 1), k.Topic(t, 1)
	k.Produce(t, in, `{"id":1}`)
	file := writeJob(t, fmt.Sprintf(`SET 'execution.checkpointing.interval' = '100 ms';
CREATE TABLE i (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE o (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%[2]s', 'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once',
  'sink.transactional-id-prefix' = '%[3]s');
INSERT INTO o SELECT id FROM i;`, in, k.Addr(), out))
	read := reader(t, k, out)
	began := time.Now()
	p := harness.Start(t, harness.Command{Path: bin, Args: []string{"run", file, "--state-dir", t.TempDir()}})
	poll(t, read, p)
	took := time.Since(began)
	p.Kill()
	return took
}

// writeJob writes a script to a file of its own.
func writeJob(t *testing.T, sql string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.sql")
	if err := os.WriteFile(file, []byte(sql), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// reader is a reader of committed records that has its connection and its place already.
func reader(t *testing.T, k *harness.Broker, topic string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl := fromStart(t, k, topic, opts...)
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	cl.PollFetches(ctx)
	return cl
}

// fromStart reads committed records of a topic from its beginning.
func fromStart(t *testing.T, k *harness.Broker, topic string, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	return k.Client(t, append([]kgo.Opt{kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.FetchMaxWait(50 * time.Millisecond)}, opts...)...)
}

// poll waits for records while a process lives.
func poll(t *testing.T, cl *kgo.Client, p *harness.Process) []*kgo.Record {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	go func() {
		select {
		case <-p.Done():
			cancel()
		case <-ctx.Done():
		}
	}()
	for {
		f := cl.PollFetches(ctx)
		if rs := f.Records(); len(rs) > 0 {
			return rs
		}
		if ctx.Err() != nil {
			t.Fatalf("no record came out\n%s", p.Output())
		}
	}
}
