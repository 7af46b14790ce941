package streamsql_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
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
