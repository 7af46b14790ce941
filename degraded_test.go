package streamsql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: a guarantee that was given up is on record wherever one would look, for good. Method: a job goes back to a savepoint
// behind output that it has committed, as allowed; asked are its status, SHOW CHECKPOINTS, EXPLAIN GUARANTEES, and
// a savepoint taken later, from which yet another job starts.
func TestGivenUpGuaranteeIsOnRecord(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	work := t.TempDir()
	state, first, later := filepath.Join(work, "state"), filepath.Join(work, "first"), filepath.Join(work, "later")
	const insert = `INSERT INTO f SELECT id FROM g`
	open := func(dir string, r streamsql.Restore) *streamsql.Engine {
		t.Helper()
		eng, err := streamsql.Open(dir, &streamsql.Options{Restore: r})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			`CREATE TABLE IF NOT EXISTS g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000000')`,
			`CREATE TABLE IF NOT EXISTS f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '` + filepath.Join(work, "out") + `')`,
		} {
			if _, err := eng.Exec(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		return eng
	}
	start := func(eng *streamsql.Engine) *streamsql.Job {
		t.Helper()
		res, err := eng.Exec(ctx, insert)
		if err != nil {
			t.Fatal(err)
		}
		return res.Job
	}
	eng := open(state, streamsql.Restore{})
	j := start(eng)
	if _, _, err := j.Savepoint(ctx, first); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(j.Status().Degraded); n > 0 {
		t.Fatalf("%d guarantees are given up from the start", n)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}

	eng = open(state, streamsql.Restore{Path: first})
	if _, err := eng.Exec(ctx, insert); diag.CodeOf(err) != diag.Config {
		t.Fatalf("going back without being allowed: %v", err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}

	eng = open(state, streamsql.Restore{Path: first, AllowRewind: true})
	j = start(eng)
	if _, _, err := j.Savepoint(ctx, later); err != nil {
		t.Fatal(err)
	}
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	const want = "output in between was written again, as --allow-rewind allows"
	all := func(eng *streamsql.Engine, j *streamsql.Job, times int) {
		t.Helper()
		got := map[string]string{"status": fmt.Sprint(j.Status().Degraded)}
		res, err := eng.Exec(ctx, `SHOW CHECKPOINTS`)
		if err != nil {
			t.Fatal(err)
		}
		got["SHOW CHECKPOINTS"] = strings.Join(slices.DeleteFunc(res.Notices, func(l string) bool { return strings.Contains(l, ": alarm ") }), "\n")
		gs, err := eng.Guarantees(insert)
		if err != nil {
			t.Fatal(err)
		}
		got["EXPLAIN GUARANTEES"] = gs[0].Text()
		for where, text := range got {
			if strings.Count(text, want) != times {
				t.Errorf("%s does not say %d time(s) that %s:\n%s", where, times, want, text)
			}
		}
	}
	all(eng, j, 1)
	alarm(t, j, 1)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	if c, err := checkpoint.Locate(vfs.Default, later); err != nil || len(c.Degraded) != 1 {
		t.Fatalf("the later savepoint: %v, %v", c, err)
	}
	// Elsewhere, while the first directory has gone on since: that is noted beside what the savepoint says.
	eng = open(filepath.Join(work, "other"), streamsql.Restore{Path: later, AllowRewind: true})
	j = start(eng)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	all(eng, j, 2)
	alarm(t, j, 1) // the first was news elsewhere
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	// Without state, although there is one: that is as much given up. The next run has it on record, and no news.
	eng = open(state, streamsql.Restore{None: true})
	j = start(eng)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	begun := func(j *streamsql.Job) (n int) {
		for _, d := range j.Status().Degraded {
			if strings.Contains(d.String(), "began anew") && d.By == "--restore none" && !d.Lost {
				n++
			}
		}
		return n
	}
	if begun(j) != 1 {
		t.Errorf("a start without state is not on record: %v", j.Status().Degraded)
	}
	all(eng, j, 1)
	alarm(t, j, 1)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng = open(state, streamsql.Restore{})
	j = start(eng)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if begun(j) != 1 {
		t.Errorf("the record of a start without state is gone: %v", j.Status().Degraded)
	}
	alarm(t, j, 0)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	// Where there is nothing to go on from, nothing is given up.
	eng = open(filepath.Join(work, "fresh"), streamsql.Restore{None: true})
	j = start(eng)
	if _, err := j.Checkpoint(ctx); err != nil {
		t.Fatal(err)
	}
	if n := len(j.Status().Degraded); n > 0 {
		t.Errorf("%d guarantees are given up by a first start", n)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}

// alarm checks that a job sounds for as many guarantees given up.
func alarm(t *testing.T, j *streamsql.Job, want int) {
	t.Helper()
	s, n := j.Status(), 0
	for _, a := range s.Alarms() {
		if a.Name == "GuaranteeGivenUp" {
			n++
		}
	}
	if n != want {
		t.Errorf("%d alarms for guarantees given up, want %d: of %v", n, want, s.Degraded)
	}
}

// Goal: a job of which no copy of the newest manifest can be read does not start, and goes back to the checkpoint before when the user has
// said so, on record. Method: both copies are damaged between two starts.
func TestUnreadableManifestGoesBack(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	work := t.TempDir()
	exec := func(settings string) (*streamsql.Engine, *streamsql.Job, error) {
		t.Helper()
		eng, err := streamsql.Open(filepath.Join(work, "state"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			`CREATE TABLE IF NOT EXISTS g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000')`,
			`CREATE TABLE IF NOT EXISTS f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '` + filepath.Join(work, "out") + `')`,
			settings,
		} {
			if _, err := eng.Exec(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		res, err := eng.Exec(ctx, `INSERT INTO f SELECT id FROM g`)
		if err != nil {
			return eng, nil, err
		}
		return eng, res.Job, nil
	}
	const usual, allowed = `SET 'streamsql.on-degraded' = 'fail'`, `SET 'streamsql.on-degraded' = 'at-least-once'`
	eng, j, err := exec(usual)
	for range 2 {
		if err == nil {
			_, err = j.Checkpoint(ctx)
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	chks, err := filepath.Glob(filepath.Join(work, "state", "jobs", "*", "chk-*"))
	if err != nil || len(chks) < 2 {
		t.Fatalf("%v, %v", chks, err)
	}
	copies, err := filepath.Glob(filepath.Join(slices.Max(chks), "MANIFEST*"))
	if err != nil || len(copies) != 2 {
		t.Fatalf("%v, %v", copies, err)
	}
	for _, c := range copies {
		if err := os.WriteFile(c, []byte("damaged"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	eng, _, err = exec(usual)
	if diag.CodeOf(err) != diag.Lost || !strings.Contains(fmt.Sprint(err), "cannot be read") {
		t.Errorf("a start without the newest manifest: %v", err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng, j, err = exec(allowed)
	if err == nil {
		_, err = j.Checkpoint(ctx)
	}
	if err != nil {
		t.Fatal(err)
	}
	if d := j.Status().Degraded; len(d) != 1 || d[0].Lost || d[0].From <= d[0].To {
		t.Errorf("on record: %v", d)
	}
	alarm(t, j, 1)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}
