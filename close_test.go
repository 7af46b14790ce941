package streamsql

import (
	"errors"
	"sync"
	"testing"

	"github.com/streamsql/streamsql/sql/diag"
)

// TestCloseWhileStarting: an engine that is closed while statements begin leaves nothing behind that holds the state
// directory or runs, and refuses what comes after.
func TestCloseWhileStarting(t *testing.T) {
	dir := t.TempDir()
	for range 8 {
		e, err := Open(dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, ddl := range []string{"CREATE TABLE IF NOT EXISTS n (id INT) WITH ('connector' = 'datagen')", "CREATE TABLE IF NOT EXISTS b (id INT) WITH ('connector' = 'blackhole')"} {
			if _, err := e.Exec(t.Context(), ddl); err != nil {
				t.Fatal(err)
			}
		}
		var wg sync.WaitGroup
		jobs, errs := make(chan *Job, 8), make(chan error, 8)
		for _, text := range []string{"INSERT INTO b SELECT id FROM n", "INSERT INTO b SELECT id + 1 FROM n", "CREATE VIEW v AS SELECT 1 AS x", "DROP VIEW v"} {
			wg.Go(func() {
				res, err := e.Exec(t.Context(), text)
				if err == nil && res.Job != nil {
					jobs <- res.Job
				}
				errs <- err
			})
		}
		if err := e.Close(); err != nil {
			t.Fatal(err)
		}
		next, err := Open(dir, nil) // at once: the directory is free
		if err != nil {
			t.Fatal(err)
		}
		res, err := next.Exec(t.Context(), "INSERT INTO b SELECT id FROM n")
		if err != nil {
			t.Fatalf("the job's directory is not free after Close: %v", err)
		}
		wg.Wait()
		close(jobs)
		for j := range jobs {
			select {
			case <-j.Done():
			default:
				t.Error("a job runs on after Close")
			}
		}
		close(errs)
		for err := range errs {
			var d *diag.Error
			if err != nil && !errors.As(err, &d) {
				t.Errorf("%v is not explained", err)
			}
		}
		res.Job.Cancel()
		<-res.Job.Done()
		if err := next.Close(); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"SELECT 1", "CREATE VIEW w AS SELECT 1 AS x", "INSERT INTO b SELECT 1"} {
			var d *diag.Error
			if _, err := next.Exec(t.Context(), text); !errors.As(err, &d) || d.Code != diag.Conflict {
				t.Errorf("%s on a closed engine: %v", text, err)
			}
		}
	}
}
