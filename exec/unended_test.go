package exec_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// stuck does not return from Process until it is released, whatever becomes of the job.
type stuck struct {
	pass
	in, release chan struct{}
}

func (s *stuck) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	close(s.in)
	<-s.release
	return nil
}

// warnings passes on the attribute "for" of warnings.
type warnings chan string

func (w warnings) Enabled(context.Context, slog.Level) bool { return true }
func (w warnings) WithAttrs([]slog.Attr) slog.Handler       { return w }
func (w warnings) WithGroup(string) slog.Handler            { return w }
func (w warnings) Handle(_ context.Context, r slog.Record) error {
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "for" {
			select {
			case w <- a.Value.String():
			default:
			}
		}
		return true
	})
	return nil
}

// TestUnended: what keeps a cancelled job from ending is named, an operator as one.
func TestUnended(t *testing.T) {
	defer exec.SetSlowCancel(time.Millisecond)()
	bus := memory.NewBus()
	fill(bus.Feed("in"), 1, 10)
	s := &stuck{in: make(chan struct{}), release: make(chan struct{})}
	g := newGraph(bus)
	g.sink("out", 1, forward(g.op("busy", 1, func() exec.Operator { return s }, hash(g.source("in", 1, nil)))))
	w := make(warnings, 1)
	j := start(t, g.g, exec.JobOptions{Log: slog.New(w)})
	<-s.in
	j.Cancel()
	const want = "operator busy (subtask 0)"
	for got := range w { // what ends later than the first warning is in it, too
		if !strings.Contains(got, want) {
			t.Errorf("waiting for %q", got)
		}
		if got == want || t.Failed() {
			break
		}
	}
	close(s.release)
	if err := j.wait(); err == nil {
		t.Error("a cancelled job ended well")
	}
}
