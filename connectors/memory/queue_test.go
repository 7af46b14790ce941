package memory

import (
	"context"
	"errors"
	"io"
	"testing"
)

// Goal: a queue ends when the last job that writes it has ended, and a job started later opens it again.
func TestQueueEndsWithItsJobs(t *testing.T) {
	q := NewBus().Queue("q")
	q.Begin()
	q.Begin()
	q.End(nil)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := q.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("one of two jobs still runs: %v", err)
	}
	broken := errors.New("broken")
	q.End(broken)
	if _, err := q.Next(context.Background()); err != broken {
		t.Errorf("the last job failed: %v", err)
	}
	q.Begin()
	if _, err := q.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a job was started again: %v", err)
	}
	q.End(nil)
	if _, err := q.Next(context.Background()); err != io.EOF {
		t.Errorf("it ended well: %v", err)
	}
}
