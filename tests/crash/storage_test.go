package crash

import (
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"
)

// storages are places outside the state directory for checkpoints, as settings. The S3 store is in this process;
// STREAMSQL_TEST_S3 names a real one instead (make s3).
var storages = map[string]func(t *testing.T) string{
	"s3": func(t *testing.T) string {
		endpoint := os.Getenv("STREAMSQL_TEST_S3")
		if endpoint == "" {
			backend := s3mem.New()
			if err := backend.CreateBucket("chk"); err != nil {
				t.Fatal(err)
			}
			s := httptest.NewServer(gofakes3.New(backend).Server())
			t.Cleanup(s.Close)
			endpoint = s.URL
		}
		return fmt.Sprintf("SET 'execution.checkpointing.dir' = 's3://chk/team';\nSET 's3.endpoint' = '%s';\nSET 's3.access-key' = 'key';\n"+
			"SET 's3.secret-key' = 'secret';\nSET 's3.path.style.access' = 'true';\n", endpoint)
	},
	"directory": func(t *testing.T) string {
		return fmt.Sprintf("SET 'execution.checkpointing.dir' = 'file://%s';\n", filepath.Join(t.TempDir(), "shared"))
	},
}

// Goal: with checkpoints in a store, the job survives the machine. Method: it is killed around the publication, goes on from
// an empty state directory, is killed again, goes on where it was, and once more from an empty directory to its end.
func TestCrashAndMoveToAnotherMachine(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		points := []string{"publish.before", "publish.uploaded", "publish.logged", "publish.after", "commit.during", "confirm.after"}
		if name != "s3" {
			points = points[1:3]
		}
		for chain := range slices.Chunk(points, 3) {
			t.Run(name+" from "+chain[0], func(t *testing.T) {
				t.Parallel()
				f := newFixtureWith(t, chainOf(setup{settings: storage(t)}))
				for _, p := range chain {
					f.crashAt(p + ":2")
					f.move()
					f.crashAt(p)
					f.crashAt(p + ":2")
					f.move()
				}
				f.finish()
				f.check(f.rows)
			})
		}
	}
}

// move is what another machine has: the file and the servers, no state directory.
func (f *fixture) move() {
	f.t.Helper()
	if err := os.RemoveAll(f.state); err != nil {
		f.t.Fatal(err)
	}
}

// The old machine was only slow: it wakes up when another has taken the job over, and must not publish anything.
func TestOldMachineIsFenced(t *testing.T) {
	t.Parallel()
	for name, storage := range storages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixtureWith(t, setup{settings: storage(t)})
			old := f.suspended("publish.uploaded:3")
			f.state += "-2"
			f.finish()
			f.check(rows)
			f.resume(old)
			f.refused(old, 1, "taken over")
			f.check(rows)
		})
	}
}
