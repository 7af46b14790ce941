package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// pipeline is one measured job and its limits.
type pipeline struct {
	Name, Title, Insert string
	sink                string // columns of the output table
	outputs             func(b *bids) int
	limits              map[string]string
}

const (
	partitions = 4
	start      = int64(1_700_000_000_000) // ms
	spacing    = int64(10)                // ms between bids: 6000 a minute
	reserve    = 10_000                   // a bid passes the filter from this price on
)

var pipelines = []pipeline{
	{
		Name: "filter", Title: "JSON → filter, project → JSON, exactly once",
		sink: "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING",
		Insert: fmt.Sprintf(`INSERT INTO output SELECT auction, bidder, price * 908 / 1000, channel, url, ts, extra
  FROM bid WHERE price >= %d`, reserve),
		outputs: func(b *bids) int { return b.passing },
		limits: map[string]string{"fetch": "530-830 a record (kgo, 100 B)", "decode": "205-226 a row (7 columns)", "compute": "3 a row",
			"encode": "230 an output row", "produce": "1140-1330 an output record (kgo)"},
	},
	{
		Name: "tumble", Title: "JSON → 1-minute tumbling aggregate by channel → JSON, exactly once",
		sink: "window_start TIMESTAMP(3), channel STRING, n BIGINT, total BIGINT, top BIGINT",
		Insert: `INSERT INTO output SELECT window_start, channel, COUNT(*), SUM(price), MAX(price)
  FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(ts), INTERVAL '1' MINUTE)) GROUP BY window_start, window_end, channel`,
		outputs: func(b *bids) int { return len(b.windows) },
		limits: map[string]string{"fetch": "530-830 a record (kgo, 100 B)", "decode": "192 a row (few columns)", "compute": "14-29 a row (own table, 1 k groups)",
			"exchange": "11-18 a row (gather)", "encode": "230 an output row", "produce": "1140-1330 an output record (kgo)"},
	},
}

// bidTable is the settings of a job and its input: name, topic, broker.
const bidTable = `
SET 'pipeline.name' = '%[1]s';
SET 'execution.checkpointing.interval' = '1 s';
SET 'parallelism.default' = '2';
CREATE TABLE bid (auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3), extra STRING,
  WATERMARK FOR ts AS ts - INTERVAL '4' SECOND
) WITH ('connector' = 'kafka', 'topic' = '%[2]s', 'properties.bootstrap.servers' = '%[3]s', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
`

const ddl = bidTable + `CREATE TABLE output (%[4]s) WITH ('connector' = 'kafka', 'topic' = '%[5]s', 'properties.bootstrap.servers' = '%[3]s',
  'format' = 'json', 'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%[1]s');
%[6]s;
`

// bids is the input: what is in the topic and what follows from it.
type bids struct {
	rows, bytes int
	passing     int
	windows     map[string]bool
	total       int // of all prices
	bidders     map[int]bool
}

// load produces n bids, Nexmark's in shape and size.
func load(t *testing.T, k *harness.Broker, topic string, n int) *bids {
	t.Helper()
	b := &bids{rows: n, windows: map[string]bool{}, bidders: map[int]bool{}}
	cl := k.Client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.MaxBufferedRecords(50_000))
	rnd := rand.New(rand.NewSource(3))
	extra := strings.Repeat("abcdefghijklmnopqrstuvwxyz", 4)
	for i := range n {
		ms := start + int64(i)*spacing
		price := 1 + rnd.Intn(30_000)
		channel := fmt.Sprintf("channel-%d", rnd.Intn(100))
		if price >= reserve {
			b.passing++
		}
		bidder := 1000 + rnd.Intn(100_000)
		b.windows[fmt.Sprint(ms/60_000, channel)], b.bidders[bidder] = true, true
		b.total += price
		v := fmt.Appendf(nil, `{"auction":%d,"bidder":%d,"price":%d,"channel":"%s","url":"https://www.example.org/%06d/item.htm?query=1","ts":"%s","extra":"%s"}`,
			1000+rnd.Intn(10_000), bidder, price, channel, rnd.Intn(1_000_000),
			time.UnixMilli(ms).UTC().Format("2006-01-02 15:04:05.000"), extra[:60+rnd.Intn(40)])
		b.bytes += len(v)
		cl.Produce(context.Background(), &kgo.Record{Topic: topic, Partition: int32(i % partitions), Value: v}, func(_ *kgo.Record, err error) {
			if err != nil {
				t.Errorf("produce: %v", err)
			}
		})
	}
	if err := cl.Flush(context.Background()); err != nil {
		t.Fatal(err)
	}
	return b
}

// result is what one job cost.
type result struct {
	Name, Title                      string
	Rows, Output                     int
	BytesPerRow                      int
	WallSeconds, UserSeconds, SysSec float64
	RowsPerSecondAndCore             int
	NanosPerRow                      int
	Stages                           []stage
}

type stage struct {
	Name                     string
	Percent                  float64
	NanosPerRow, NanosPerOut float64
	Limit                    string `json:",omitempty"`
}

func TestKafkaToKafka(t *testing.T) {
	dir := os.Getenv("STREAMSQL_BENCH")
	rows := 20_000
	if dir != "" {
		rows = 2_000_000
	}
	k := harness.SharedKafka(t)
	bin := harness.BuildStreamsql(t)
	in := k.Topic(t, partitions)
	input := load(t, k, in, rows)
	var results []result
	for _, p := range pipelines {
		t.Run(p.Name, func(t *testing.T) {
			out := k.Topic(t, partitions)
			name := harness.UniqueName(t)
			work := t.TempDir()
			file, profile := filepath.Join(work, "job.sql"), filepath.Join(work, "cpu.pb.gz")
			if dir != "" {
				profile = filepath.Join(dir, "bench-"+p.Name+".pb.gz")
			}
			if err := os.WriteFile(file, fmt.Appendf(nil, ddl, name, in, k.Addr(), p.sink, out, p.Insert), 0o600); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			job := harness.Start(t, harness.Command{Path: bin, Args: []string{"run", file, "--state-dir", filepath.Join(work, "state"), "--cpuprofile", profile}})
			if code, err := job.Wait(20 * time.Minute); err != nil || code != 0 {
				t.Fatalf("exit %d, %v", code, err)
			}
			wall := time.Since(began)
			user, sys := job.CPU()
			// A broker answers a commit before its markers are in the log; readers see the rows when they are.
			for deadline := time.Now().Add(time.Minute); len(k.OpenTransactions(t, name)) > 0 && time.Now().Before(deadline); {
				runtime.Gosched()
			}
			n := len(k.Values(t, out, harness.Committed))
			if want := p.outputs(input); n != want {
				t.Errorf("%d records in the output topic, want %d", n, want)
			}
			stages, err := classify(bin, profile)
			if err != nil {
				t.Fatal(err)
			}
			cpu := (user + sys).Seconds()
			r := result{Name: p.Name, Title: p.Title, Rows: rows, Output: n, BytesPerRow: input.bytes / rows, WallSeconds: wall.Seconds(),
				UserSeconds: user.Seconds(), SysSec: sys.Seconds(), RowsPerSecondAndCore: int(float64(rows) / cpu), NanosPerRow: int(cpu * 1e9 / float64(rows))}
			for _, s := range stages {
				s.NanosPerRow, s.NanosPerOut = s.Percent/100*cpu*1e9/float64(rows), s.Percent/100*cpu*1e9/float64(max(n, 1))
				s.Limit = p.limits[s.Name]
				r.Stages = append(r.Stages, s)
			}
			results = append(results, r)
		})
	}
	text := markdown(results)
	if dir == "" || t.Failed() {
		t.Logf("\n%s", text)
		return
	}
	root, err := harness.ModuleRoot()
	if err != nil {
		t.Fatal(err)
	}
	each := operators(t, root)
	text += operatorTable(each)
	t.Logf("\n%s", text)
	data, err := json.MarshalIndent(struct {
		Pipelines []result
		Operators []operator
	}{results, each}, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	for name, b := range map[string][]byte{"bench.md": []byte(text), "bench.json": append(data, '\n')} {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func markdown(rs []result) string {
	var s strings.Builder
	fmt.Fprintf(&s, "%s/%s, %d processors, %s; parallelism 2, checkpoints every second; processor time of the streamsql process only.\n", runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), runtime.Version())
	for _, r := range rs {
		fmt.Fprintf(&s, "\n**%s**: %d rows of %d bytes in, %d out: **%d rows/s per core** (%d ns/row; %.1f s user, %.1f s system, %.1f s wall)\n\n",
			r.Title, r.Rows, r.BytesPerRow, r.Output, r.RowsPerSecondAndCore, r.NanosPerRow, r.UserSeconds, r.SysSec, r.WallSeconds)
		s.WriteString("| stage | share | ns/input row | ns/output row | limit (ns) |\n|---|---|---|---|---|\n")
		for _, st := range r.Stages {
			fmt.Fprintf(&s, "| %s | %.1f %% | %.0f | %.0f | %s |\n", st.Name, st.Percent, st.NanosPerRow, st.NanosPerOut, st.Limit)
		}
	}
	return s.String()
}
