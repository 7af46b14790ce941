package jobstate

import (
	"path/filepath"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
)

// Ended reports whether the job's run ended before its process did: all input was read and everything is committed. A
// kill can come behind that moment, or behind the process's own end; the next start then is a new run, which writes all
// output once more, as executing a statement again does. dir is what --state-dir named, of one job and owned by no process.
func Ended(t testing.TB, dir string) bool {
	t.Helper()
	jobs, err := filepath.Glob(filepath.Join(dir, "jobs", "*"))
	switch {
	case err != nil || len(jobs) > 1:
		t.Fatalf("jobs %q, %v: want the directory of one", jobs, err)
	case len(jobs) == 0:
		return false // killed before it made one
	}
	owner, err := checkpoint.OwnDir(jobs[0])
	if err != nil {
		t.Fatal(err)
	}
	defer owner.Close()
	store, err := checkpoint.OpenStore(owner, checkpoint.StoreOptions{})
	if err != nil {
		t.Fatal(err)
	}
	ended, err := store.Ended(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return ended
}
