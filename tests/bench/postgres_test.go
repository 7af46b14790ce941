package bench

// Goal: what a row costs from Kafka into PostgreSQL, exactly once: appended, or kept by key. Method: as from Kafka to Kafka, on a server that
// the test starts; the processor time is that of the streamsql process alone. The tables' count and sum show that every row came in once.

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// loading is one measured job into PostgreSQL.
type loading struct {
	Name, Protocol                   string // of commits
	Rows, Stored                     int
	WallSeconds, CPUSeconds          float64
	RowsPerSecond, RowsPerSecondCore int
	columns, insert                  string // of the job
	table, check                     string // in the database
	want                             func(b *bids) string
}

func loadings() []*loading {
	const bid = "auction bigint, bidder bigint, price bigint, channel text, url text, ts timestamp(3)"
	appended := loading{Name: "append", columns: "auction BIGINT, bidder BIGINT, price BIGINT, channel STRING, url STRING, ts TIMESTAMP(3)",
		insert: "SELECT auction, bidder, price, channel, url, ts FROM bid", table: bid, check: "SELECT count(*), sum(price)::bigint FROM output",
		want: func(b *bids) string { return fmt.Sprintf("%d|%d", b.rows, b.total) }}
	prepared, ahead := appended, appended
	prepared.Protocol, ahead.Protocol = "prepared", "write-ahead"
	byKey := loading{Name: "upsert", columns: "bidder BIGINT, n BIGINT, total BIGINT, PRIMARY KEY (bidder) NOT ENFORCED",
		insert: "SELECT bidder, COUNT(*), SUM(price) FROM bid GROUP BY bidder",
		table:  "bidder bigint PRIMARY KEY, n bigint, total bigint", check: "SELECT count(*), sum(n)::bigint, sum(total)::bigint FROM output",
		want: func(b *bids) string { return fmt.Sprintf("%d|%d|%d", len(b.bidders), b.rows, b.total) }}
	keyedAhead, upsert := byKey, byKey
	keyedAhead.Protocol, upsert.Protocol = "write-ahead", "upsert"
	return []*loading{&prepared, &ahead, &keyedAhead, &upsert}
}

func TestKafkaToPostgres(t *testing.T) {
	rows := 20_000
	if _, ok := full(); ok {
		rows = int(sizeFromEnv(t, "BENCH_POSTGRES_ROWS", 1_000_000))
	}
	k, pg := harness.SharedKafka(t), harness.SharedPostgres(t)
	in := k.Topic(t, partitions)
	input := load(t, k, in, rows)
	tb := &table{title: fmt.Sprintf("Kafka, JSON → PostgreSQL, exactly once, %d rows of %d bytes, %d processors, checkpoints every second", rows, input.bytes/rows, runtime.NumCPU()),
		head: []string{"job", "how", "rows in the table", "rows/s", "rows/s per core", "ns of processor/row"}}
	all := loadings()
	for _, l := range all {
		t.Run(l.Name+"/"+l.Protocol, func(t *testing.T) {
			l.measure(t, k, pg, in, input)
			tb.add(l.Name, l.Protocol, l.Stored, l.RowsPerSecond, l.RowsPerSecondCore, fmt.Sprintf("%.0f", l.CPUSeconds*1e9/float64(l.Rows)))
		})
	}
	tb.report(t, "postgres", all)
}

func (l *loading) measure(t *testing.T, k *harness.Broker, pg *harness.PG, in string, input *bids) {
	db := pg.CreateDatabase(t)
	pg.Exec(t, db, "CREATE TABLE output ("+l.table+")")
	options := fmt.Sprintf(", 'sink.commit-protocol' = '%s'", l.Protocol)
	file := writeJob(t, fmt.Sprintf(bidTable, harness.UniqueName(t), in, k.Addr())+fmt.Sprintf(`CREATE TABLE output (%s) WITH ('connector' = 'postgres', 'url' = '%s', 'table-name' = 'output'%s);
INSERT INTO output %s;`, l.columns, pg.DSN(db), options, l.insert))
	bin := harness.BuildStreamsql(t)
	began := time.Now()
	job := harness.Start(t, harness.Command{Path: bin, Args: []string{"run", file, "--state-dir", t.TempDir()}})
	if code, err := job.Wait(20 * time.Minute); err != nil || code != 0 {
		t.Fatalf("exit %d, %v\n%s", code, err, job.Output())
	}
	wall := time.Since(began)
	user, system := job.CPU()
	if got, want := strings.Join(pg.Rows(t, db, l.check), "\n"), l.want(input); got != want {
		t.Errorf("%s: %s, want %s", l.check, got, want)
	}
	if open := pg.PreparedTransactions(t, db); len(open) > 0 {
		t.Errorf("transactions left prepared: %v", open)
	}
	l.Rows, l.WallSeconds, l.CPUSeconds = input.rows, wall.Seconds(), (user + system).Seconds()
	l.RowsPerSecond, l.RowsPerSecondCore = int(float64(l.Rows)/l.WallSeconds), int(float64(l.Rows)/l.CPUSeconds)
	if l.Stored = input.rows; l.Name == "upsert" {
		l.Stored = len(input.bidders)
	}
}
