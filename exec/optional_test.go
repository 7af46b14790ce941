package exec_test

import (
	"testing"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// delay passes rows on and lets event time lag by 15 ms.
type delay struct{ pass }

func (delay) OutputWatermark(w exec.Watermark) exec.Watermark { return exec.AddWatermark(w, -15) }

// TestWatermarkDelay: what follows a delaying operator, chained or behind an exchange, sees the lagging watermark; the
// operator itself and its end do not.
func TestWatermarkDelay(t *testing.T) {
	for _, edge := range []func(int) exec.Edge{forward, hash} {
		bus := memory.NewBus()
		bus.Feed("in").Append(0, row(1, 1, 10), row(1, 2, 20), row(1, 3, 15), row(1, 4, 40), row(1, 5, 30))
		bus.Feed("in").Close()
		before, after := newTrace(), newTrace()
		g := newGraph(bus)
		in := g.op("before", 1, func() exec.Operator { return &probe{log: before} }, forward(g.source("in", 1, rowtime(true, 200, 0))))
		late := g.op("delay", 1, func() exec.Operator { return &delay{} }, forward(in))
		g.sink("out", 1, forward(g.op("after", 1, func() exec.Operator { return &probe{log: after} }, edge(late))))
		if err := start(t, g.g, exec.JobOptions{}).wait(); err != nil {
			t.Fatal(err)
		}
		if got, want := before.String(), "1 2 w=20 3 4 w=40 5 w=max"; got != want {
			t.Errorf("before: %s, want %s", got, want)
		}
		if got, want := after.String(), "1 2 w=5 3 4 w=25 5 w=max"; got != want {
			t.Errorf("after: %s, want %s", got, want)
		}
	}
}

// offloader emits a copy of its input from a wake-up that another goroutine asks for.
type offloader struct {
	exec.Stateless
	wake func()
	held *batch.Builder
	done chan struct{}
}

func (o *offloader) Open(s exec.Subtask) error {
	o.wake, o.held = exec.WakeFunc(s), batch.NewBuilder(testSchema)
	return exec.ContextOf(s).Err()
}

func (o *offloader) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	for i := range b.Len() {
		for c, v := range b.Cols {
			o.held.Cols[c].AppendFrom(v, b.Row(i))
		}
		o.held.RowDone()
	}
	o.done = make(chan struct{})
	go func() { defer close(o.done); o.wake() }()
	return nil
}

func (o *offloader) OnWake(out exec.Emitter) error {
	err := out.Emit(o.held.Finish())
	o.held.Reset()
	return err
}

func (o *offloader) Close() error {
	if o.done != nil {
		<-o.done
	}
	return nil
}

// TestWake: rows that an operator emits from a wake-up arrive without any further input, chained to a source and not.
func TestWake(t *testing.T) {
	for _, edge := range []func(int) exec.Edge{forward, hash} {
		bus := memory.NewBus()
		l := newTrace()
		g := newGraph(bus)
		off := g.op("offload", 1, func() exec.Operator { return &offloader{} }, edge(g.source("in", 1, nil)))
		g.sink("out", 1, forward(g.op("probe", 1, func() exec.Operator { return &probe{log: l} }, forward(off))))
		j := start(t, g.g, exec.JobOptions{})
		ctx := patient(t)
		bus.Feed("in").Append(0, row(1, 1, 10))
		l.until(ctx, t, "1")
		bus.Feed("in").Append(0, row(1, 2, 20))
		l.until(ctx, t, "2")
		j.Cancel()
	}
}

// TestAddWatermark: no time turns into another by overflow.
func TestAddWatermark(t *testing.T) {
	for _, c := range []struct {
		w    exec.Watermark
		ms   int64
		want exec.Watermark
	}{
		{10, 5, 15}, {10, -20, -10},
		{exec.NoWatermark, 5, exec.NoWatermark}, {exec.MaxWatermark, -5, exec.MaxWatermark},
		{exec.MaxWatermark - 1, 5, exec.MaxWatermark}, {exec.NoWatermark + 1, -5, exec.NoWatermark},
	} {
		if got := exec.AddWatermark(c.w, c.ms); got != c.want {
			t.Errorf("%d%+d = %d, want %d", c.w, c.ms, got, c.want)
		}
	}
}
