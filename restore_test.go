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

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// A job goes on in another state directory from a checkpoint of its first one: with its positions and its keyed state.
func TestRestoreFromPath(t *testing.T) {
	ctx := context.Background()
	work := t.TempDir()
	first, out := filepath.Join(work, "first"), filepath.Join(work, "out")
	// The first run has rows to remember, and is not through with them at its third checkpoint, however long those take.
	define := func(eng *streamsql.Engine, rate int) *streamsql.Job {
		t.Helper()
		for _, s := range []string{
			fmt.Sprintf(`CREATE TABLE IF NOT EXISTS g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '%d', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '4000')`, rate),
			`CREATE TABLE IF NOT EXISTS f (k BIGINT, n BIGINT) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '` + out + `')`,
		} {
			if _, err := eng.Exec(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		res, err := eng.Exec(ctx, `INSERT INTO f SELECT MOD(id, 4), COUNT(*) FROM g GROUP BY MOD(id, 4)`)
		if err != nil {
			t.Fatal(err)
		}
		return res.Job
	}
	eng, err := streamsql.Open(first, nil)
	if err != nil {
		t.Fatal(err)
	}
	j := define(eng, 100)
	for read := int64(0); read < 20; time.Sleep(time.Millisecond) {
		read = 0
		for _, s := range j.Status().Splits {
			read += s.Records
		}
	}
	for range 3 {
		if _, err := j.Checkpoint(ctx); err != nil {
			t.Fatal(err)
		}
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	chk, err := filepath.Glob(filepath.Join(first, "jobs", "*", "chk-*"))
	if err != nil || len(chk) == 0 {
		t.Fatal(chk, err)
	}
	newest := chk[0]
	for _, c := range chk {
		if len(c) > len(newest) || len(c) == len(newest) && c > newest {
			newest = c
		}
	}
	for i, path := range []string{newest, filepath.Dir(newest), first} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			if i > 0 { // the others only have to be understood
				path = copyDir(t, path)
			}
			eng, err := streamsql.Open(filepath.Join(work, fmt.Sprint("second", i)), &streamsql.Options{Restore: streamsql.Restore{Path: path}})
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			if err := define(eng, 4_000_000).Wait(ctx); err != nil {
				t.Fatal(err)
			}
			if i > 0 {
				return
			}
			for k, n := range lastCounts(t, out) {
				if n != "1000" {
					t.Errorf("group %s ends at %s, want 1000: state or position was lost", k, n)
				}
			}
		})
	}
	eng, err = streamsql.Open(filepath.Join(work, "third"), &streamsql.Options{Restore: streamsql.Restore{Path: filepath.Join(first, "jobs")}})
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	if _, err := eng.Exec(ctx, `CREATE TABLE b (k INT) WITH ('connector' = 'blackhole')`); err != nil {
		t.Fatal(err)
	}
	if _, err := eng.Exec(ctx, `INSERT INTO b VALUES (1)`); diag.CodeOf(err) != diag.Config || !strings.Contains(err.Error(), "holds no checkpoint") {
		t.Fatalf("a path without a checkpoint: %v", err)
	}
}

func copyDir(t *testing.T, dir string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	return to
}

// lastCounts are the counts of each group after all changes of the files.
func lastCounts(t *testing.T, dir string) map[string]string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "part-*"))
	if err != nil {
		t.Fatal(err)
	}
	present := map[string]int{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range strings.Split(strings.TrimSpace(string(b)), "\n") {
			var k, n int
			row, op, _ := strings.Cut(line, `,"op":"`)
			if _, err := fmt.Sscanf(row, `{"data":{"k":%d,"n":%d}`, &k, &n); err != nil {
				t.Fatalf("%v in %s", err, line)
			}
			by := 1
			if op[0] == '-' {
				by = -1
			}
			present[fmt.Sprintf("%d %d", k, n)] += by
		}
	}
	last := map[string]string{}
	for row, times := range present {
		if times == 0 {
			continue
		}
		k, n, _ := strings.Cut(row, " ")
		if times != 1 || last[k] != "" {
			t.Errorf("row %q is there %d times, beside count %q", row, times, last[k])
		}
		last[k] = n
	}
	if len(last) != 4 {
		t.Errorf("%d groups: %v", len(last), last)
	}
	return last
}

// Goal: a source that a changed statement adds begins where its table says, while those of the savepoint go on where they were. Method: a
// job over a directory takes a savepoint; the statement that starts from it reads a second directory, too.
func TestNewSourceInARestoredJob(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	work := t.TempDir()
	put := func(dir, file, rows string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(work, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(work, dir, file), []byte(rows), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	put("a", "1.csv", "1\n2\n3\n")
	put("b", "1.csv", "11\n12\n")
	run := func(dir string, restore streamsql.Restore, insert string, records int64) (*streamsql.Engine, *streamsql.Job) {
		t.Helper()
		eng, err := streamsql.Open(filepath.Join(work, dir), &streamsql.Options{Restore: restore})
		if err != nil {
			t.Fatal(err)
		}
		for name, more := range map[string]string{"a": ", 'source.monitor-interval' = '10 ms'", "b": ", 'source.monitor-interval' = '10 ms'", "f": ""} {
			if _, err := eng.Exec(ctx, `CREATE TABLE `+name+` (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'csv', 'path' = '`+filepath.Join(work, name)+`'`+more+`)`); err != nil {
				t.Fatal(err)
			}
		}
		res, err := eng.Exec(ctx, insert)
		if err != nil {
			t.Fatal(err)
		}
		for read := int64(0); read < records; time.Sleep(time.Millisecond) {
			read = 0
			for _, s := range res.Job.Status().Splits {
				read += s.Records
			}
			if ctx.Err() != nil || res.Job.Status().State.Ended() {
				t.Fatalf("%d records are read, want %d: %v", read, records, res.Job.Status().Err)
			}
		}
		return eng, res.Job
	}
	saved := filepath.Join(work, "saved")
	eng, j := run("first", streamsql.Restore{}, `INSERT INTO f SELECT id FROM a`, 3)
	if err := j.Stop(ctx, streamsql.StopOptions{Savepoint: saved}); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(); err != nil {
		t.Fatal(err)
	}
	put("a", "2.csv", "4\n")
	eng, _ = run("second", streamsql.Restore{Path: saved}, `INSERT INTO f SELECT id FROM a UNION ALL SELECT id FROM b`, 3)
	if err := eng.Close(); err != nil { // at a last checkpoint
		t.Fatal(err)
	}
	var got []string
	files, err := filepath.Glob(filepath.Join(work, "f", "[^._]*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, strings.Fields(string(b))...)
	}
	slices.Sort(got)
	if want := []string{"1", "11", "12", "2", "3", "4"}; !slices.Equal(got, want) {
		t.Errorf("the files hold %v, want %v", got, want)
	}
}
