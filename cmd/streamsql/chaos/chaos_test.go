package chaos

import (
	"context"
	"encoding/xml"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Goal: rows are compared and differences told apart: lost, too often, wrong. Method: small multisets and tables by key.
func TestCompare(t *testing.T) {
	bag := func(m map[string]int64) rows { return rows{bag: m} }
	by := func(m map[string]string) rows { return rows{byKey: m} }
	for _, c := range []struct {
		name              string
		want, got         rows
		lost, dups, wrong int64
		first             DifferentRow
	}{
		{"same", bag(map[string]int64{"a": 2}), bag(map[string]int64{"a": 2}), 0, 0, 0, DifferentRow{}},
		{"lost", bag(map[string]int64{"a": 2, "b": 1}), bag(map[string]int64{"a": 1}), 2, 0, 0, DifferentRow{"a", "2×", "1×"}},
		{"twice", bag(map[string]int64{"a": 1}), bag(map[string]int64{"a": 3}), 0, 2, 0, DifferentRow{"a", "1×", "3×"}},
		{"unknown", bag(map[string]int64{"a": 1}), bag(map[string]int64{"a": 1, "x": 1}), 0, 0, 1, DifferentRow{"x", "0×", "1×"}},
		{"key lost", by(map[string]string{"1": "a"}), by(map[string]string{}), 1, 0, 0, DifferentRow{"1", "a", "(no row)"}},
		{"key too many", by(map[string]string{}), by(map[string]string{"1": "a"}), 0, 0, 1, DifferentRow{"1", "(no row)", "a"}},
		{"other row", by(map[string]string{"1": "a"}), by(map[string]string{"1": "b"}), 0, 0, 1, DifferentRow{"1", "a", "b"}},
	} {
		d := compare(&c.want, &c.got)
		if d.Lost != c.lost || d.Duplicates != c.dups || d.Wrong != c.wrong {
			t.Errorf("%s: %+v", c.name, d)
		}
		if d.none() != (len(d.Rows) == 0) || !d.none() && d.Rows[0] != c.first {
			t.Errorf("%s: rows %+v, want first %+v", c.name, d.Rows, c.first)
		}
	}
}

// Goal: a seed stands for the same trials, every kind has its turn, and as many faults are planned as asked for. Method: plan
// twice, and count.
func TestSchedule(t *testing.T) {
	visits := map[string]int64{"publish.before": 12, "publish.after": 12, "source.poll": 900}
	a := schedule(7, Kinds(), 60, visits)
	if !reflect.DeepEqual(a, schedule(7, Kinds(), 60, visits)) {
		t.Error("the same seed gives other trials")
	}
	if reflect.DeepEqual(a, schedule(8, Kinds(), 60, visits)) {
		t.Error("another seed gives the same trials")
	}
	faults, kinds := 0, map[string]int{}
	for i, x := range a {
		if x.n != i+1 || len(x.faults) == 0 {
			t.Errorf("trial %d: %+v", i+1, x)
		}
		kinds[x.kind]++
		for _, f := range x.faults {
			faults++
			if f.at <= 0 || f.at >= 1 || f.parallelism < 1 || f.parallelism > most {
				t.Errorf("trial %d: %+v", x.n, f)
			}
			if x.kind == Failpoint && (f.hit < 1 || f.hit > visits[f.point]) {
				t.Errorf("trial %d: point %s, visit %d of %d", x.n, f.point, f.hit, visits[f.point])
			}
			if x.kind == Rescale && f.parallelism == x.parallelism {
				t.Errorf("trial %d keeps its parallelism", x.n)
			}
		}
	}
	if faults != 60 || len(kinds) != len(Kinds()) {
		t.Errorf("%d faults of %v", faults, kinds)
	}
	if got := schedule(7, []string{Failpoint}, 5, nil); len(got) != 0 {
		t.Errorf("without points to kill at: %+v", got)
	}
}

// Goal: the rewritten script reads and writes other places, runs under other names, and keeps everything else. Method: a
// script with settings, comments, a query and two jobs.
func TestRewrite(t *testing.T) {
	const script = `
SET 'pipeline.name' = 'mine'; SET 'parallelism.default' = '8'; SET 'table.local-time-zone' = 'UTC';
SET 'execution.checkpointing.dir' = 's3://bucket/x';
CREATE TABLE src (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'in', 'properties.group.id' = 'g');
CREATE TABLE dst (id BIGINT) WITH ('connector' = 'kafka', 'topic' = 'out') -- the result
;
CREATE VIEW v AS SELECT id + 1 AS id FROM src;
SELECT * FROM v;
INSERT INTO dst SELECT id FROM v;
EXECUTE STATEMENT SET BEGIN INSERT INTO dst SELECT id FROM v; END;`
	steps, err := rewrite(script, map[string][]edit{"src": {{"properties.group.id", ""}}, "dst": {{"topic", "shadow"}, {"sink.parallelism", "2"}}}, []string{"one", "two"})
	if err != nil {
		t.Fatal(err)
	}
	var jobs []string
	for _, s := range steps {
		jobs = append(jobs, s.Job)
	}
	if !slices.Equal(jobs, []string{"", "one", "two"}) {
		t.Errorf("jobs %q", jobs)
	}
	text := textOf(steps)
	for _, want := range []string{"'topic' = 'shadow'", "'sink.parallelism' = '2'", "'topic' = 'in'", "table.local-time-zone", "CREATE VIEW v", "SET 'pipeline.name' = 'one'", "SET 'pipeline.name' = 'two'"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, not := range []string{"'out'", "group.id", "'mine'", "parallelism.default", "s3://", "SELECT * FROM v"} {
		if strings.Contains(text, not) {
			t.Errorf("%q is still in\n%s", not, text)
		}
	}
}

// Goal: a page shows rows as text, whatever they hold. Method: a row that is markup.
func TestPage(t *testing.T) {
	rep := &Report{Jobs: []string{"job"}, Verdict: Violated, Trials: []Trial{{N: 1, Fault: Kill, Verdict: Violated, Injected: 1,
		Sinks: map[string]Difference{"out": {Lost: 1, Rows: []DifferentRow{{Row: "<script>alert(1)</script>", Expected: "1×", Found: "0×"}}}}}}}
	rep.conclude()
	var page strings.Builder
	if err := rep.HTML(&page); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(page.String(), "<script>") || !strings.Contains(page.String(), "&lt;script&gt;") || !strings.Contains(page.String(), "violated in 1 of 1") {
		t.Error(page.String())
	}
}

// Goal: a verdict of exactness needs faults that met the jobs, and one trial that cannot be judged, or is wrong, takes it
// away. Method: reports of few trials.
func TestConclude(t *testing.T) {
	exact := Trial{Fault: Kill, Verdict: Exact, Injected: 2}
	missed := Trial{Fault: Kill, Verdict: Exact, Missed: 1}
	open := Trial{Fault: Pause, Verdict: Inconclusive, Reason: "the jobs stopped", Injected: 1}
	wrong := Trial{Fault: Disk, Verdict: Violated, Injected: 1}
	for _, c := range []struct {
		trials []Trial
		want   string
	}{
		{nil, Inconclusive}, {[]Trial{missed}, Inconclusive}, {[]Trial{exact, missed}, Exact}, {[]Trial{exact, open}, Inconclusive}, {[]Trial{exact, open, wrong}, Violated},
	} {
		rep := &Report{Verdict: Inconclusive, Trials: c.trials}
		if rep.conclude(); rep.Verdict != c.want || (rep.Bound != 0) != (c.want == Exact) || (rep.Reason == "") != (c.want != Inconclusive) {
			t.Errorf("%+v: %s, %q, bound %v", c.trials, rep.Verdict, rep.Reason, rep.Bound)
		}
	}
}

// Goal: CI systems can read the report: each trial is a test case, those that are not exact fail or are in error, and so does the
// whole. Method: a report with one of each and a row that is markup and no text, read back.
func TestJUnit(t *testing.T) {
	rep := &Report{Jobs: []string{"job"}, Seed: 7, NotCovered: []string{"a power loss"}, Seconds: 1.5, Trials: []Trial{
		{N: 1, Fault: Kill, Where: []string{"at 10 %"}, Verdict: Exact, Injected: 1, Millis: 250},
		{N: 2, Fault: Disk, Verdict: Violated, Injected: 1, Replay: "streamsql chaos job.sql --only 2",
			Sinks: map[string]Difference{"out": {Lost: 1, Rows: []DifferentRow{{Row: "</system-out>\x01", Expected: "1×", Found: "0×"}}}}},
		{N: 3, Fault: Pause, Verdict: Inconclusive, Reason: "the jobs stopped"},
	}}
	rep.conclude()
	var text strings.Builder
	if err := rep.JUnit(&text); err != nil {
		t.Fatal(err)
	}
	var got junitSuites
	if err := xml.Unmarshal([]byte(text.String()), &got); err != nil {
		t.Fatalf("%v\n%s", err, text.String())
	}
	var fails, errs []string
	for _, c := range got.Suite.Cases {
		if c.Failure != nil {
			fails = append(fails, c.Name)
		}
		if c.Error != nil {
			errs = append(errs, c.Name)
		}
	}
	if !slices.Equal(fails, []string{"trial 2: ", "the check as a whole"}) || !slices.Equal(errs, []string{"trial 3: "}) ||
		got.Tests != 4 || got.Failures != 2 || got.Errors != 1 || got.Suite.Cases[0].Time != "0.250" {
		t.Errorf("failures %q, errors %q\n%s", fails, errs, text.String())
	}
	if d := got.Suite.Cases[1].Failure; !strings.Contains(d.Message, "1 lost") || !strings.Contains(d.Text, "</system-out>") || !strings.Contains(d.Text, "--only 2") {
		t.Errorf("%+v", d)
	}
	if !slices.Contains(got.Suite.Properties, junitProperty{"not_covered", "a power loss"}) || !strings.Contains(got.Suite.Out, "VERDICT violated in 1 of 3") {
		t.Error(text.String())
	}
}

// Goal: a sealed directory cannot be changed, whoever tries, and is removed all the same. Method: a tree of two levels.
func TestSeal(t *testing.T) {
	r := &runner{dir: t.TempDir()}
	if err := r.cannotSeal(); err != nil {
		t.Skip("this user cannot make directories read-only here:", err)
	}
	root := filepath.Join(r.dir, "root")
	sub := filepath.Join(root, "sub")
	file := filepath.Join(sub, "file")
	if err := errors.Join(os.MkdirAll(sub, 0o777), os.WriteFile(file, nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	change := func() error {
		other := filepath.Join(sub, "other")
		return errors.Join(os.Rename(file, other), os.Rename(other, file))
	}
	if err := seal(root); err != nil {
		t.Fatal(err)
	}
	if change() == nil || os.Mkdir(filepath.Join(root, "new"), 0o777) == nil || os.Remove(file) == nil {
		t.Error("a sealed directory was changed")
	}
	if err := unseal(root); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(change(), seal(root), removeAll(root)); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(root); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a sealed directory is left: %v", err)
	}
}

// Goal: a command of the user's that fails makes nothing of the jobs, and what it said is shown; what it starts may live on.
// Method: commands of the shell.
func TestCommand(t *testing.T) {
	r := &runner{dir: t.TempDir()}
	if err := r.command(context.Background(), "sleep 2 & true"); err != nil {
		t.Error(err)
	}
	var un *inconclusive
	if err := r.command(context.Background(), "echo no such container >&2; exit 3"); !errors.As(err, &un) || !strings.Contains(un.why, "exit status 3: no such container") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := r.command(ctx, "sleep 600"); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
