package exec

// Goal: the coordinating loop of a job that runs for months keeps nothing of what it has done. Method: wake it very often, with a
// checkpoint far ahead so that it sets its timer each time, and count what the heap has afterwards.

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

func TestLoopKeepsNothing(t *testing.T) {
	const wakes = 20_000
	o := JobOptions{Name: "test", Checkpoints: CheckpointConfig{Interval: time.Hour}}
	if err := o.defaults(); err != nil {
		t.Fatal(err)
	}
	defer o.Owner.Close()
	j := &Job{o: o, g: &Graph{}, wake: make(chan struct{})}
	j.history.open(&j.o)
	defer j.history.close()
	at := &attempt{job: j, hurry: newHurry(), events: make(chan checkpoint.Event), failed: make(chan error, 1)}
	l := &loop{at: at, job: j, coord: checkpoint.NewCoordinator(checkpoint.CoordinatorConfig{Interval: time.Hour}, nil, true, o.Now())}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		l.run(ctx)
	}()
	objects := func() uint64 {
		j.wake <- struct{}{} // the loop waits, and so is past what it did before
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapObjects
	}
	before := objects()
	for range wakes {
		j.wake <- struct{}{}
	}
	if after := objects(); after > before+wakes/2 {
		t.Errorf("the heap has %d objects more after %d rounds", after-before, wakes)
	}
	cancel()
	<-ended
}
