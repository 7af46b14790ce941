package exec_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
)

// told is a source that looks at what it is told.
type told struct {
	connectors.Source
	look func([]checkpoint.Position)
}

func (s told) Committed(ctx context.Context, ps []checkpoint.Position) {
	s.look(ps)
	s.Source.Committed(ctx, ps)
}

// TestSourcesAreToldWhatIsDurable: a position that a source is told, and a group offset that Kafka gets, is in a durable
// checkpoint by then.
func TestSourcesAreToldWhatIsDurable(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 2, 200)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	g := newGraph(bus)
	in := g.source("in", 2, nil)
	g.sink("out", 2, hash(in))
	var early atomic.Int64
	notices := make(chan bool, 100)
	node := g.g.Nodes[in].Source
	wrapped := *node.Connector
	wrapped.NewSource = func(ctx context.Context, s connectors.SourceSpec) (connectors.Source, error) {
		src, err := node.Connector.NewSource(ctx, s)
		return told{src, func(ps []checkpoint.Position) {
			cs, err := checkpoint.ReadCheckpoints(owner.FS(), owner.Dir())
			durable := func(p checkpoint.Position) bool {
				return slices.ContainsFunc(cs, func(c *checkpoint.Checkpoint) bool {
					return slices.ContainsFunc(c.Subtasks, func(s checkpoint.Snapshot) bool {
						return slices.ContainsFunc(s.Positions, func(q checkpoint.Position) bool {
							return q.Split == p.Split && string(q.Next) == string(p.Next)
						})
					})
				})
			}
			if err != nil || slices.ContainsFunc(ps, func(p checkpoint.Position) bool { return !durable(p) }) {
				early.Add(1)
			}
			notices <- true
		}}, err
	}
	g.g.Nodes[in].Source = &exec.SourceNode{Spec: node.Spec, Connector: &wrapped}
	j := start(t, g.g, exec.JobOptions{Owner: owner})
	waitRows(t, j, 400)
	for range 3 {
		if _, err := j.Checkpoint(patient(t)); err != nil {
			t.Fatal(err)
		}
		select {
		case <-notices:
		case <-patient(t).Done():
			t.Fatal("no notice of the checkpoint")
		}
	}
	bus.Feed("in").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
	if n := early.Load(); n > 0 {
		t.Errorf("%d notices of positions that are in no durable checkpoint", n)
	}
}
