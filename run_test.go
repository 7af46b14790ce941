package streamsql_test

import (
	"context"
	"errors"
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
)

// runOf executes statements as one run called key, and tells what it said about jobs. The jobs are those that were started.
func runOf(t *testing.T, dir, key string, o *streamsql.Options, statements ...string) (eng *streamsql.Engine, jobs []*streamsql.Job, notices string) {
	t.Helper()
	o.Redefine = true
	eng, err := streamsql.Open(filepath.Join(dir, "state"), o)
	if err != nil {
		t.Fatal(err)
	}
	if key != "" {
		err = eng.BeginRun(key)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range statements {
		res, err := eng.Exec(t.Context(), s)
		if err != nil {
			t.Fatal(err)
		}
		if res.Job != nil {
			jobs = append(jobs, res.Job)
			if res.Job.Bounded() {
				if err := res.Job.Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		notices += strings.Join(res.Notices, "\n")
	}
	return eng, jobs, notices
}

// lines counts the visible lines below dir.
func lines(t *testing.T, dir string) (n int) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\n")
	}
	return n
}

// Goal: a run of several jobs that was cut short does not repeat those that had come to their end, and one that came to its end
// does. Method: a job of ten rows before one without end, begun again in every way there is.
func TestRunGoesOn(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "one"), filepath.Join(dir, "two")
	ten := "CREATE TABLE ten (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10')"
	endless := "CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')"
	sinks := []string{
		"CREATE TABLE t1 (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '" + one + "')",
		"CREATE TABLE t2 (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '" + two + "')",
	}
	both := append([]string{ten, endless, sinks[0], sinks[1]}, "INSERT INTO t1 SELECT id FROM ten", "INSERT INTO t2 SELECT id FROM endless")
	short := append([]string{ten, sinks[0]}, "INSERT INTO t1 SELECT id FROM ten")
	for i, c := range []struct {
		name, key  string
		afresh     bool
		statements []string
		jobs, rows int
		notice     string
	}{
		{"first", "a", false, both, 2, 10, ""},
		{"again", "a", false, both, 1, 10, "is not run again"},
		{"once more", "a", false, both, 1, 10, "is not run again"},
		{"no run", "", false, short, 1, 20, ""},
		{"changed", "b", false, both, 2, 30, "starts over"},
		{"changed again", "c", false, both, 2, 40, "starts over: what is run has changed"},
		{"afresh", "c", true, both, 2, 50, ""},
		{"and again", "c", false, both, 1, 50, "is not run again"},
		{"one job", "d", false, short, 1, 60, "starts over"},
		{"that had ended", "d", false, short, 1, 70, ""},
	} {
		eng, jobs, notices := runOf(t, dir, c.key, &streamsql.Options{Restore: streamsql.Restore{None: c.afresh}}, c.statements...)
		if len(jobs) != c.jobs || (c.notice == "") != (notices == "") || !strings.Contains(notices, c.notice) {
			t.Errorf("%d, %s: %d jobs, want %d; said %q, want %q", i, c.name, len(jobs), c.jobs, notices, c.notice)
		}
		if err := eng.EndRun(); c.key != "" && err != nil {
			t.Error(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		if n := lines(t, one); n != c.rows {
			t.Errorf("%d, %s: %d rows, want %d", i, c.name, n, c.rows)
		}
	}
}

// Goal: two statements of one name are one job, which is run twice; a run that was cut short repeats neither. Method: as above.
func TestRunOfOneNameTwice(t *testing.T) {
	dir := t.TempDir()
	one := filepath.Join(dir, "one")
	statements := []string{
		"CREATE TABLE ten (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '10')",
		"CREATE TABLE endless (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')",
		"CREATE TABLE t1 (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '" + one + "')",
		"CREATE TABLE nothing (id BIGINT) WITH ('connector' = 'blackhole')",
		"INSERT INTO t1 SELECT id FROM ten",
		"INSERT INTO t1 SELECT id FROM ten",
	}
	for i, c := range []struct{ statements, jobs, rows int }{{5, 1, 10}, {6, 1, 20}, {6, 0, 20}} {
		// The endless job keeps the run from its end.
		all := append(slices.Clone(statements[:c.statements]), "INSERT INTO nothing SELECT id FROM endless")
		eng, jobs, _ := runOf(t, dir, "a", &streamsql.Options{}, all...)
		if len(jobs) != c.jobs+1 || lines(t, one) != c.rows {
			t.Errorf("%d: %d jobs, %d rows", i, len(jobs), lines(t, one))
		}
		if err := errors.Join(eng.EndRun(), eng.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

// Goal: a process that was replaced changes nothing of what its replacement notes of the run. Method: a second process takes the
// state directory, the first one ends its run afterwards.
func TestRunOfReplacedProcess(t *testing.T) {
	dir := t.TempDir()
	first, err := checkpoint.OwnDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	old, err := checkpoint.OpenRun(first, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	begin := func(r *checkpoint.Run, job, ended string, want checkpoint.Begun) {
		t.Helper()
		if got, err := r.Begin(job, ended); got != want || err != nil {
			t.Errorf("%s: %v, %v, want %v", job, got, err, want)
		}
	}
	begin(old, "j", "", checkpoint.BegunFirst)
	if err := first.Close(); err != nil { // as a lock that a network file system lost
		t.Fatal(err)
	}
	second, err := checkpoint.OwnDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := old.End(); err == nil {
		t.Error("a process that was replaced has ended the run")
	}
	if _, err := old.Begin("k", ""); err == nil {
		t.Error("a process that was replaced has begun a job")
	}
	r, err := checkpoint.OpenRun(second, "a", false)
	if err != nil {
		t.Fatal(err)
	}
	begin(r, "j", "l1", checkpoint.BegunDone)
	begin(r, "k", "l2", checkpoint.BegunFirst)
	if err := r.End(); err != nil {
		t.Fatal(err)
	}
	if r, err = checkpoint.OpenRun(second, "a", false); err != nil {
		t.Fatal(err)
	}
	begin(r, "j", "l1", checkpoint.BegunFirst)
}

// Goal: hidden files of a process that woke up after it had been replaced do not stay for ever: the job removes them when it
// comes to its end, and at its next run. Those of others stay. Method: files with such names appear while the job is at work, and
// after its end.
func TestSweepsAfterReplaced(t *testing.T) {
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	start := func() (*streamsql.Engine, *streamsql.Job) {
		eng, jobs, _ := runOf(t, dir, "", &streamsql.Options{},
			"CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100')",
			"CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '"+out+"')",
			"INSERT INTO f SELECT id FROM g")
		return eng, jobs[0]
	}
	// committed waits for a row to be visible, since only a checkpoint that has one makes a file.
	committed := func(j *streamsql.Job) string {
		t.Helper()
		for deadline := time.Now().Add(2 * time.Minute); time.Now().Before(deadline); time.Sleep(5 * time.Millisecond) {
			if _, err := j.Checkpoint(t.Context()); err != nil {
				t.Fatal(err)
			}
			if files, err := filepath.Glob(filepath.Join(out, "part-*")); err != nil || len(files) > 0 {
				return filepath.Base(files[len(files)-1])
			}
		}
		t.Fatal("the job commits no rows")
		return ""
	}
	lineage := func() string {
		t.Helper()
		dirs, err := filepath.Glob(filepath.Join(dir, "state", "jobs", "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		cs, err := checkpoint.ReadCheckpoints(vfs.Default, dirs[0])
		if err != nil || len(cs) == 0 {
			t.Fatal(cs, err)
		}
		return cs[0].Lineage
	}
	other := filepath.Join(out, ".part-0badcafe-00000000-1-0-5-0.pending.0badcafe-0000-4000-8000-000000000000")
	var litter []string
	drop := func(file, lineage string) {
		t.Helper()
		// part-L-S-F-W-C-n, with another process and checkpoint.
		words := strings.Split(file, "-")
		for _, mark := range []string{".inprogress.", ".pending."} {
			litter = append(litter, filepath.Join(out, fmt.Sprintf(".%s-999-0-888-0%s%s", strings.Join(words[:3], "-"), mark, lineage)))
		}
		for _, f := range append(litter, other) {
			if err := os.WriteFile(f, []byte("{}\n"), 0o666); err != nil {
				t.Fatal(err)
			}
		}
	}
	gone := func(when string) {
		t.Helper()
		for _, f := range litter {
			if _, err := os.Stat(f); err == nil {
				t.Errorf("%s %s is still there", when, filepath.Base(f))
			}
		}
		if _, err := os.Stat(other); err != nil {
			t.Errorf("%s the file of another job is gone: %v", when, err)
		}
	}
	eng, j := start()
	committed(j)
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng, j = start() // goes on, as a process that replaced another one
	file := committed(j)
	drop(file, lineage())
	if err := j.Stop(context.Background(), streamsql.StopOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	gone("after the end")
	drop(file, lineage())
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	eng, j = start() // a new run
	committed(j)
	gone("after the next start")
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
}
