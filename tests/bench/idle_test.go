package bench

// Goal: a checkpoint of state that has not changed costs next to nothing. Method: a job counts the rows of each key until its state has the
// wanted size, and then those of one key only, at a slow rate; checkpoints are asked for one after the other, and the bytes that each added
// and the longest time that a subtask stood still for it are taken from the job's status. Bytes are asserted, times are not.

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
)

// idled are the checkpoints of idle state.
type idled struct {
	Memory     string // for state: all of it, or the rest is on disk
	Keys       int
	StateBytes int64 // of the last checkpoint
	Unsettled  int   // checkpoints before, until none wrote more than idleShare
	Written    []int64
	Pauses     durations
	Durations  durations
}

// restoredBytes is what a group of the jobs here takes in a checkpoint, roughly.
const restoredBytes = 130

// idleShare is the part of its bytes that a checkpoint of unchanged state may write.
const idleShare = 0.01

func TestIdleCheckpoint(t *testing.T) {
	runs, checkpoints := []*idled{{Keys: 30_000, Memory: "256mb"}, {Keys: 30_000, Memory: "1mb"}}, 5
	if _, ok := full(); ok {
		keys := sizeFromEnv(t, "BENCH_IDLE_MIB", 1024) << 20 / restoredBytes
		runs, checkpoints = []*idled{{Keys: int(keys), Memory: "4gb"}, {Keys: int(keys), Memory: "256mb"}}, 20
	}
	tb := &table{title: "Checkpoints of unchanged state (aims: less than 1 % of its bytes, less than 50 ms of pause)",
		head: []string{"groups", "memory for state", "checkpoint", "checkpoints before", "written, median", "most", "share", "longest pause, median", "most", "until durable, median"}}
	for _, r := range runs {
		r.measure(t, checkpoints)
		var written durations // bytes
		for _, n := range r.Written {
			written = append(written, time.Duration(n))
		}
		tb.add(r.Keys, r.Memory, fmt.Sprintf("%d MiB", r.StateBytes>>20), r.Unsettled, fmt.Sprintf("%d B", written.quantile(0.5)), fmt.Sprintf("%.0f B", r.most()),
			fmt.Sprintf("%.4f %%", 100*r.most()/float64(r.StateBytes)), ms(r.Pauses.quantile(0.5)), ms(r.Pauses.quantile(1)), ms(r.Durations.quantile(0.5)))
	}
	tb.report(t, "idle", runs)
}

func (r *idled) measure(t *testing.T, checkpoints int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	eng, err := streamsql.Open(t.TempDir(), &streamsql.Options{Memory: bytesOf(t, r.Memory), Settings: map[string]string{
		"parallelism.default": "2", "execution.checkpointing.interval": "1 h"}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, sql := range []string{
		fmt.Sprintf(`CREATE TABLE once (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000', 'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '%d')`, r.Keys-1),
		`CREATE TABLE few (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '50', 'fields.id.kind' = 'random', 'fields.id.min' = '0', 'fields.id.max' = '0')`,
		`CREATE TABLE o (id BIGINT, n BIGINT, pad STRING, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'blackhole')`,
		`CREATE VIEW everything AS SELECT id FROM once UNION ALL SELECT id FROM few`,
	} {
		if _, err := eng.Exec(ctx, sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	res, err := eng.Exec(ctx, `INSERT INTO o SELECT id, COUNT(*), MAX(SHA256(CAST(id AS STRING))) FROM everything GROUP BY id`)
	if err != nil {
		t.Fatal(err)
	}
	job := res.Job
	defer job.Cancel()
	checkpoint := func() streamsql.Status {
		if _, err := job.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		return job.Status()
	}
	// A checkpoint has the rows before it: after the one that has all keys a row changes one group.
	for job.Flow(job.Status()).In < int64(r.Keys) {
		select {
		case <-job.Done():
			t.Fatal(job.Wait(ctx))
		case <-time.After(20 * time.Millisecond):
		}
	}
	// What was written last may still be compacted: as many checkpoints in a row count as are asked for.
	for s := checkpoint(); len(r.Written) < checkpoints; {
		before := s.Checkpoint.Written
		s = checkpoint()
		r.StateBytes = s.Checkpoint.Bytes
		r.Written = append(r.Written, s.Checkpoint.Written-before)
		r.Pauses, r.Durations = append(r.Pauses, s.Checkpoint.Pause), append(r.Durations, s.Checkpoint.Duration)
		if r.most() > idleShare*float64(r.StateBytes) {
			if r.Unsettled += len(r.Written); r.Unsettled > 20*checkpoints {
				t.Fatalf("%d groups, memory %s: checkpoints of %d bytes that have not changed wrote %v", r.Keys, r.Memory, r.StateBytes, r.Written)
			}
			r.Written, r.Pauses, r.Durations = nil, nil, nil
		}
	}
}

// most is what a checkpoint wrote at most.
func (r *idled) most() float64 { return float64(slices.Max(r.Written)) }
