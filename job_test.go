package streamsql

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// A job that has ended for those who look at its state may still hold its state directory: executing its statement again
// waits for that, and Stop returns after it, also when the job failed.
func TestExecuteAgainWhileDirectoryIsGivenBack(t *testing.T) {
	ctx := context.Background()
	eng, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer eng.Close()
	for _, s := range []string{
		`SET 'restart-strategy.type' = 'none'`,
		`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')`,
		`CREATE TABLE b (id BIGINT) WITH ('connector' = 'blackhole')`,
	} {
		if _, err := eng.Exec(ctx, s); err != nil {
			t.Fatal(err)
		}
	}
	const insert = `INSERT INTO b SELECT 1 / (id - id) FROM g`
	res, err := eng.Exec(ctx, insert)
	if err != nil {
		t.Fatal(err)
	}
	first := res.Job
	if err := first.Wait(ctx); err == nil {
		t.Fatal("a division by zero passed")
	}
	// The same job, an instant earlier: ended, with its directory.
	owner, err := checkpoint.OwnDir(eng.dir + "/jobs/" + first.ID())
	if err != nil {
		t.Fatal(err)
	}
	held := *first
	held.done = make(chan struct{})
	release := sync.OnceFunc(func() { close(held.done) })
	defer release() // before Close, which waits for it
	eng.mu.Lock()
	eng.jobs[first.ID()] = &held
	eng.mu.Unlock()

	stopped, executed := make(chan error, 1), make(chan error, 1)
	go func() { stopped <- held.Stop(ctx, StopOptions{}) }()
	go func() {
		_, err := eng.Exec(ctx, insert)
		executed <- err
	}()
	select {
	case err := <-stopped:
		t.Fatalf("Stop returned before the directory was given back: %v", err)
	case err := <-executed:
		t.Fatalf("the statement did not wait for the directory: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	if err := owner.Close(); err != nil {
		t.Fatal(err)
	}
	release()
	if err := <-stopped; err == nil {
		t.Error("Stop does not say that the job failed")
	}
	if err := <-executed; err != nil {
		t.Error(err)
	}
}

// Close returns after every job has given back its state directory, also those that had ended for who looks at their state.
func TestCloseWaitsForDirectories(t *testing.T) {
	dir := t.TempDir()
	eng, err := Open(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{
		`CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen', 'number-of-rows' = '1')`,
		`CREATE TABLE b (id BIGINT) WITH ('connector' = 'blackhole')`,
	} {
		if _, err := eng.Exec(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	res, err := eng.Exec(t.Context(), `INSERT INTO b SELECT id FROM g`)
	if err != nil {
		t.Fatal(err)
	}
	if err := res.Job.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	held := *res.Job // an instant earlier
	held.done = make(chan struct{})
	eng.mu.Lock()
	eng.jobs[held.ID()] = &held
	eng.mu.Unlock()

	closed := make(chan error, 1)
	go func() { closed <- eng.Close() }()
	select {
	case err := <-closed:
		t.Fatalf("Close returned before the directory was given back: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(held.done)
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

// A context that ends between its first look and the second: while a statement is planned.
type endsMeanwhile struct {
	context.Context
	looked *int
}

func (c endsMeanwhile) Err() error {
	if *c.looked++; *c.looked > 1 {
		return context.Canceled
	}
	return nil
}

// TestInterruptedPlanning: a statement whose context ends while it is planned is not run.
func TestInterruptedPlanning(t *testing.T) {
	e, err := Open(t.TempDir(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	if _, err := e.Exec(t.Context(), "CREATE TABLE b (id INT) WITH ('connector' = 'blackhole')"); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"SELECT 1", "INSERT INTO b SELECT 1"} {
		if _, err := e.Exec(endsMeanwhile{t.Context(), new(int)}, text); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", text, err)
		}
		if n := len(e.Jobs()); n != 0 {
			t.Errorf("%s: %d jobs", text, n)
		}
	}
}
