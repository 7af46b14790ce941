package streamsql_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
)

// Goal: from outside it can be seen whether a job has come to its end, so that executing it again would begin anew. Method: one
// that is stopped on the way, and one whose input ends.
func TestReadEnded(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		rows  string
		ended bool
	}{{"", false}, {", 'number-of-rows' = '10'", true}} {
		dir := t.TempDir()
		eng, err := streamsql.Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []string{
			"CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '100'" + c.rows + ")",
			"CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = '" + filepath.Join(dir, "out") + "')",
		} {
			if _, err := eng.Exec(ctx, s); err != nil {
				t.Fatal(err)
			}
		}
		res, err := eng.Exec(ctx, "INSERT INTO f SELECT id FROM g")
		if err != nil {
			t.Fatal(err)
		}
		if c.ended {
			err = res.Job.Wait(ctx)
		} else {
			_, err = res.Job.Checkpoint(ctx)
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.Close(); err != nil {
			t.Fatal(err)
		}
		dirs, err := filepath.Glob(filepath.Join(dir, "jobs", "*"))
		if err != nil || len(dirs) != 1 {
			t.Fatal(dirs, err)
		}
		if got, err := checkpoint.ReadEnded(vfs.Default, dirs[0]); got != c.ended || err != nil {
			t.Errorf("with options %q: ended %v, want %v, %v", c.rows, got, c.ended, err)
		}
	}
}
