package exec_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// late counts every row as late.
type late struct {
	pass
	n *exec.Counter
}

func (l *late) Open(s exec.Subtask) error {
	l.n = s.Counter(exec.CounterLate)
	return nil
}

func (l *late) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	l.n.Add(int64(b.Len()))
	return out.Emit(b)
}

// TestStatus: the figures of a finished job.
func TestStatus(t *testing.T) {
	bus := memory.NewBus()
	fill(bus.Feed("in"), 3, 100)
	bus.Feed("in").Close()
	g := newGraph(bus)
	mid := g.op("mid", 2, func() exec.Operator { return &late{} }, hash(g.source("in", 2, rowtime(false, 200, 0))))
	g.sink("out", 2, forward(mid))
	j := start(t, g.g, exec.JobOptions{})
	if s := j.Status(); s.State.Ended() && s.State != exec.Finished {
		t.Fatalf("%+v", s)
	}
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	s := j.Status()
	if s.State != exec.Finished || s.Err != nil || s.Name != "test" || s.Lineage == "" || s.LateDropped != 300 || s.Skipped != 0 {
		t.Errorf("%+v", s)
	}
	for i, want := range [][2]int64{{0, 300}, {300, 300}, {300, 0}} {
		if n := s.Nodes[i]; n.RowsIn != want[0] || n.RowsOut != want[1] || n.Watermark != exec.MaxWatermark {
			t.Errorf("node %+v, want %v", n, want)
		}
	}
	if len(s.Splits) != 3 {
		t.Fatalf("%+v", s.Splits)
	}
	for i, sp := range s.Splits {
		if sp.Records != 100 || sp.Lag != 0 || sp.Watermark != exec.Watermark(100*i+99) {
			t.Errorf("%+v", sp)
		}
	}
	if c := s.Checkpoint; c.Last != 1 || c.Committed != 1 || c.Completed != 1 || c.GivenUp != 0 || c.Bytes == 0 || c.Written != c.Bytes || c.Pending != 0 {
		t.Errorf("%+v", c)
	}
	if _, err := j.Checkpoint(t.Context()); diag.CodeOf(err) != diag.Conflict {
		t.Errorf("checkpoint of an ended job: %v", err)
	}
}

// TestSinkFailures: failures of a sink at each of its operations restart the job or repeat the commit, and leave every
// row once; a preflight that refuses ends it before a row is read.
func TestSinkFailures(t *testing.T) {
	for _, op := range []memory.Op{memory.OpPreflight, memory.OpWrite, memory.OpPreCommit, memory.OpCommit, memory.OpCommitted, memory.OpAbort} {
		t.Run(string(op), func(t *testing.T) {
			bus := memory.NewBus()
			want := fill(bus.Feed("in"), 2, 500)
			bus.Feed("in").Close()
			bus.Queue("out").Fail(op, errors.New("broken pipe"), errors.New("broken pipe"))
			g := newGraph(bus)
			g.sink("out", 2, hash(g.source("in", 2, nil)))
			j := start(t, g.g, exec.JobOptions{Restart: quickRestart()})
			if err := j.wait(); err != nil {
				t.Fatal(err)
			}
			same(t, bus.Queue("out").Rows(), want)
		})
	}
	bus := memory.NewBus()
	fill(bus.Feed("in"), 1, 5)
	refusal := diag.New(diag.Config, diag.Pos{}, "no such queue").WithHint("create it").WithDetail("asked twice")
	bus.Queue("out").Fail(memory.OpPreflight, refusal)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	j := start(t, g.g, exec.JobOptions{Restart: quickRestart()})
	err := j.wait()
	text := diag.Render(err, "", "")
	for _, part := range []string{"to out (subtask 0): no such queue", "reason: asked twice", "hint: create it"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not contain %q", text, part)
		}
	}
	if s := j.Status(); s.Restarts != 0 || s.Nodes[0].RowsOut != 0 || diag.CodeOf(err) != diag.Config {
		t.Errorf("%+v", s)
	}
}

// TestGraphIsChecked: graphs that cannot run are refused before anything is opened.
func TestGraphIsChecked(t *testing.T) {
	bus := memory.NewBus()
	for name, spoil := range map[string]func(g *exec.Graph){
		"no kind":         func(g *exec.Graph) { g.Nodes[1].Sink = nil },
		"parallelism":     func(g *exec.Graph) { g.Nodes[0].Parallelism = 0 },
		"same id":         func(g *exec.Graph) { g.Nodes[1].ID = g.Nodes[0].ID },
		"no input":        func(g *exec.Graph) { g.Nodes[1].Inputs = nil },
		"forward":         func(g *exec.Graph) { g.Nodes[1].Inputs[0].Ship = exec.Forward },
		"no keys":         func(g *exec.Graph) { g.Nodes[1].Inputs[0].Keys = nil },
		"order":           func(g *exec.Graph) { g.Nodes[1].Inputs[0].From = 1 },
		"without a shape": func(g *exec.Graph) { g.Nodes[0].Output = nil },
	} {
		g := newGraph(bus)
		g.sink("out", 2, hash(g.source("in", 1, nil)))
		spoil(g.g)
		if _, err := exec.NewJob(g.g, exec.JobOptions{}); diag.CodeOf(err) != diag.Internal || err == nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
