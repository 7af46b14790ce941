package streamsql

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// TestShowCheckpoints: the last checkpoints of a job, newest first, with a line that adds them up; those of earlier runs in
// the same state directory stay listed.
func TestShowCheckpoints(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	dir := t.TempDir()
	out := filepath.Join(t.TempDir(), "out")
	show := func(eng *Engine, statement string) (rows [][]string, notices []string) {
		t.Helper()
		res, err := eng.Exec(ctx, statement)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range res.fixed {
			var cells []string
			for _, c := range r {
				cells = append(cells, c.Str)
			}
			rows = append(rows, cells)
		}
		return rows, res.Notices
	}
	for run := range 2 {
		eng, err := Open(dir, &Options{Redefine: true})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			`SET 'pipeline.name' = 'j'`, `SET 'execution.checkpointing.interval' = '0'`, `SET 'execution.checkpointing.tolerable-failed-checkpoints' = '3'`,
			`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')`,
			`CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'path' = '` + out + `', 'format' = 'json')`,
		} {
			if _, err := eng.Exec(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		res, err := eng.Exec(ctx, `INSERT INTO f SELECT id FROM g`)
		if err != nil {
			t.Fatal(err)
		}
		for len(res.Job.job.Status().Sinks[0].Open) == 0 { // something to commit
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			time.Sleep(time.Millisecond)
		}
		if _, err := res.Job.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
		rows, notices := show(eng, `SHOW CHECKPOINTS`)
		if len(rows) != 2*run+1 { // and the last one of the first run
			t.Fatalf("run %d: %v", run, rows)
		}
		for _, r := range rows[:1] {
			if r[0] != "j" || r[2] != "checkpoint" || r[3] != "COMMITTED" || r[4] == "" || r[5] == "" || r[6] == "" || r[8] != "" || r[9] < r[4] || r[10] == "" || r[11] != "" {
				t.Errorf("run %d: %q", run, r)
			}
		}
		// The sum, the restore when there was one, the disk, and the sink.
		if len(notices) != 3+run || !strings.HasPrefix(notices[1+run], "j: fsync: p50 ") || run > 0 && !strings.HasPrefix(notices[1], "j: restored from checkpoint ") ||
			!strings.Contains(notices[2+run], "f], columns=[id]): pre-commit p50 ") || !strings.Contains(notices[2+run], ", commit p50 ") {
			t.Errorf("run %d: %q", run, notices)
		}
		if n := notices[0]; !strings.HasPrefix(n, "j: 1 completed (success rate 100.0 %), duration p50 ") || !strings.HasSuffix(n, "; 0 failed in a row, 3 more are tolerated") {
			t.Errorf("run %d: %q", run, n)
		}
		if one, _ := show(eng, `SHOW CHECKPOINTS FOR JOB '`+res.Job.ID()[:8]+`'`); len(one) != len(rows) {
			t.Errorf("for the job: %v", one)
		}
		if _, err := eng.Exec(ctx, `SHOW CHECKPOINTS FOR JOB 'other'`); diag.CodeOf(err) != diag.Semantic {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestShowUnalignedCheckpoints: whether barriers overtook, and how much, is in a column of its own; a checkpoint that is not
// complete has no figure yet, an aligned one never has one.
func TestShowUnalignedCheckpoints(t *testing.T) {
	done := time.Unix(1, 0)
	for want, trace := range map[string]CheckpointTrace{
		"":     {Completed: done, InFlight: 0},
		"0":    {Completed: done, Unaligned: true},
		"4711": {Completed: done, Unaligned: true, InFlight: 4711},
	} {
		if got := inFlightText(&trace); got != want {
			t.Errorf("%+v: %q, want %q", trace, got, want)
		}
	}
	if got := inFlightText(&CheckpointTrace{Unaligned: true, InFlight: 1}); got != "" {
		t.Errorf("in progress: %q", got)
	}
	s := Status{}
	s.Checkpoint.Counts.Completed, s.Checkpoint.Overtaken = 5, 3
	if n := checkpointSummary("j", s); !strings.HasPrefix(n, "j: 5 completed of which 3 unaligned (success rate 100.0 %)") {
		t.Error(n)
	}
}
