package streamsql

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/batch"
)

// ranges are what each source of a job has read, by operator and split.
type ranges map[checkpoint.OperatorID]map[checkpoint.Split]connectors.SplitRange

// rangesOf reads them out of a checkpoint.
func rangesOf(c *checkpoint.Checkpoint) ranges {
	out := ranges{}
	for _, s := range c.Subtasks {
		for _, p := range s.Positions {
			m := out[s.Subtask.Operator]
			if m == nil {
				m = map[checkpoint.Split]connectors.SplitRange{}
				out[s.Subtask.Operator] = m
			}
			if p.Next != nil {
				m[p.Split] = connectors.SplitRange{To: p.Next}
			}
		}
	}
	return out
}

// recompute runs a job's plan over what its sources had read at a checkpoint and adds up what it gives each sink. Unless
// the checkpoint was the last one of a job that ended, event time stays where the input leaves it: windows that were open
// stay open. in is how many rows the sources gave.
func recompute(ctx context.Context, e *Engine, plan *planner.Plan, conf *planner.Config, c *checkpoint.Checkpoint, sinks map[checkpoint.SinkID]*tally) (in, late int64, err error) {
	rs := rangesOf(c)
	w := &waiting{done: make(chan struct{})}
	for _, n := range plan.Graph.Nodes {
		if n.Sink != nil {
			n.Sink.Connector = connectorOf(sinks[n.Sink.Spec.ID])
			n.Sink.Spec.Mode.Delivery = connectors.AtLeastOnce
		}
		if n.Source == nil || !n.Source.Connector.Ranges {
			continue
		}
		n.Source.Spec.Range = rs[n.ID]
		if n.Source.Spec.Range == nil {
			n.Source.Spec.Range = map[checkpoint.Split]connectors.SplitRange{}
		}
		if !c.Final {
			w.left.Add(1)
			n.Source.Connector = endless(n.Source.Connector, n.Source.Watermark, w)
		}
	}
	j, err := e.start(plan, conf)
	if err != nil {
		return 0, 0, err
	}
	if !c.Final {
		select {
		case <-w.done:
			err = j.Stop(ctx, StopOptions{})
		case <-j.done:
		case <-ctx.Done():
		}
	}
	if ctx.Err() != nil {
		j.Cancel()
	}
	err = errors.Join(err, j.Wait(context.WithoutCancel(ctx)))
	s := j.Status()
	return j.Flow(s).In, s.LateDropped, err
}

// waiting tells when all sources have read their ranges.
type waiting struct {
	left atomic.Int64
	done chan struct{}
}

func (w *waiting) ended() {
	if w.left.Add(-1) == 0 {
		close(w.done)
	}
}

// endless is a connector whose sources do not end when they have read their range: no watermark says that nothing follows.
func endless(c *connectors.Connector, marks *exec.WatermarkSpec, w *waiting) *connectors.Connector {
	out := *c
	settle := 400 * time.Millisecond
	if marks != nil {
		settle += 2 * time.Duration(marks.Interval) * time.Millisecond
	}
	out.NewSource = func(ctx context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
		s, err := c.NewSource(ctx, spec)
		if err != nil {
			return nil, err
		}
		return &endlessSource{Source: s, w: w, settle: settle}, nil
	}
	return &out
}

type endlessSource struct {
	connectors.Source
	w        *waiting
	settle   time.Duration
	splits   atomic.Int64 // not read to their end; -1 = unknown yet
	listed   atomic.Bool
	reported atomic.Bool
}

// Splits implements connectors.Source.
func (s *endlessSource) Splits(ctx context.Context) ([]checkpoint.Split, error) {
	out, err := s.Source.Splits(ctx)
	if err == nil && !s.listed.Swap(true) {
		s.splits.Store(int64(len(out)))
		if len(out) == 0 {
			s.end(0)
		}
	}
	return out, err
}

func (s *endlessSource) end(n int) {
	if s.splits.Add(-int64(n)) <= 0 && !s.reported.Swap(true) {
		s.w.ended()
	}
}

// DiscoveryInterval implements connectors.Source: positive, so that subtasks without splits do not end event time.
func (s *endlessSource) DiscoveryInterval() int64 { return (24 * time.Hour).Milliseconds() }

// Open implements connectors.Source.
func (s *endlessSource) Open(ctx context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r, err := s.Source.Open(ctx, splits)
	if err != nil {
		return nil, err
	}
	return &endlessReader{Reader: r, s: s, splits: len(splits)}, nil
}

type endlessReader struct {
	connectors.Reader
	s      *endlessSource
	splits int
	ended  time.Time // when the range was read; zero = not yet
	told   bool
}

// Next implements connectors.Reader. The end is told some time later, when watermarks of the last rows are out.
func (r *endlessReader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	if r.ended.IsZero() {
		p, err := r.Reader.Next(ctx, out)
		p.Done = false
		if errors.Is(err, io.EOF) {
			r.ended, err = time.Now(), nil
		}
		return p, err
	}
	if !r.told && time.Since(r.ended) > r.s.settle {
		r.told = true
		r.s.end(r.splits)
	}
	t := time.NewTimer(10 * time.Millisecond)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return connectors.Progress{}, ctx.Err()
	case <-t.C:
		return connectors.Progress{}, nil
	}
}
