package bench

// Goal: how the cost of a row grows with the number of keys, with parallelism, and when the state outgrows its memory. Method: the
// processor time of a job that counts and sums generated rows by a random key, less that of the same job over few rows.

import (
	"fmt"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// scaled is a run over so many keys.
type scaled struct {
	Keys, Rows, Parallelism int
	Memory                  string // for keyed state
	Nanos                   float64
	RowsPerSecond           float64
	Resident                int64
}

func TestScale(t *testing.T) {
	runs := []scaled{{Keys: 1000, Rows: 50_000, Parallelism: 2, Memory: "64mb"}}
	if _, ok := full(); ok {
		runs = nil
		most := int(sizeFromEnv(t, "BENCH_SCALE_KEYS", 50_000_000))
		for _, keys := range []int{1000, 100_000, 1_000_000, 10_000_000, 50_000_000} {
			for _, p := range []int{1, 2} {
				if keys <= most {
					runs = append(runs, scaled{Keys: keys, Rows: max(10_000_000, 2*keys), Parallelism: p, Memory: "8gb"})
				}
			}
		}
		// Two million keys take about 260 MiB. A row whose group is on disk only costs ten times one in memory, so these are few.
		for _, memory := range []string{"384mb", "192mb", "96mb", "48mb", "24mb"} {
			runs = append(runs, scaled{Keys: 2_000_000, Rows: 4_000_000, Parallelism: 2, Memory: memory})
		}
	}
	tb := &table{title: "COUNT and SUM by a random key, checkpoints every 10 s", head: []string{"keys", "rows", "parallelism", "memory for state", "ns of processor/row", "rows/s", "resident"}}
	for i := range runs {
		r := &runs[i]
		r.measure(t)
		tb.add(r.Keys, r.Rows, r.Parallelism, r.Memory, fmt.Sprintf("%.0f", r.Nanos), fmt.Sprintf("%.0f", r.RowsPerSecond), fmt.Sprintf("%d MiB", r.Resident>>20))
		tb.write(t, "scale", runs[:i+1]) // a run of an hour leaves what it has
		t.Log(tb.rows[i])
	}
	tb.report(t, "scale", runs)
}

func (r *scaled) measure(t *testing.T) {
	t.Helper()
	once := func(rows int) (cpu, wall time.Duration, resident int64) {
		file := writeJob(t, fmt.Sprintf(`SET 'execution.checkpointing.interval' = '10 s';
SET 'parallelism.default' = '%d';
CREATE TABLE g (k BIGINT, v BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '%d', 'rows-per-second' = '1000000000',
  'fields.k.min' = '0', 'fields.k.max' = '%d', 'fields.v.min' = '0', 'fields.v.max' = '1000');
CREATE TABLE o (k BIGINT, n BIGINT, s BIGINT) WITH ('connector' = 'blackhole');
INSERT INTO o SELECT k, COUNT(*), SUM(v) FROM g GROUP BY k;`, r.Parallelism, rows, r.Keys-1))
		bin := harness.BuildStreamsql(t)
		began := time.Now()
		p := harness.Start(t, harness.Command{Path: bin, Args: []string{"run", file, "--state-dir", t.TempDir(), "--memory", r.Memory}})
		for done := false; !done; {
			select {
			case <-p.Done():
				done = true
			case <-time.After(20 * time.Millisecond):
				resident = max(resident, residentBytes(t, p.Pid()))
			}
		}
		wall = time.Since(began)
		if code, err := p.Wait(time.Minute); err != nil || code != 0 {
			t.Fatalf("exit %d, %v\n%s", code, err, p.Output())
		}
		user, system := p.CPU()
		return user + system, wall, resident
	}
	const few = 100
	cpu, wall, _ := once(few)
	whole, took, resident := once(r.Rows)
	n := float64(r.Rows - few)
	r.Nanos, r.RowsPerSecond, r.Resident = float64(whole-cpu)/n, n/(took-wall).Seconds(), resident
}
