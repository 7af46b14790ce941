package flink

import (
	"context"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
)

// single makes a connector's sources hand out one row at a time, as Flink's do: operators here work on batches and give out
// one change per key and batch, so that the changes between would not be there to compare.
func single(c connectors.Connector) connectors.Connector {
	open := c.NewSource
	if open == nil {
		return c
	}
	c.NewSource = func(ctx context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
		s, err := open(ctx, spec)
		if err != nil {
			return nil, err
		}
		return &singleSource{Source: s, spec: spec}, nil
	}
	return c
}

type singleSource struct {
	connectors.Source
	spec connectors.SourceSpec
}

func (s *singleSource) Open(ctx context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r, err := s.Source.Open(ctx, splits)
	if err != nil {
		return nil, err
	}
	return &singleReader{Reader: r, in: batch.NewBuilder(s.spec.Schema)}, nil
}

// singleReader gives out the rows of a batch of the real reader one by one. A call without rows after each one makes the
// executor send it on.
type singleReader struct {
	connectors.Reader
	in   *batch.Builder
	rows *batch.Batch
	at   int
	sent bool
	last connectors.Progress
	err  error
}

func (r *singleReader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	if r.sent {
		r.sent = false
		return connectors.Progress{Split: r.last.Split}, nil
	}
	if r.rows == nil {
		r.in.Reset()
		r.last, r.err = r.Reader.Next(ctx, r.in)
		r.rows, r.at = r.in.Finish(), 0
	}
	if r.at < r.rows.N {
		for i, c := range out.Cols {
			c.AppendFrom(r.rows.Cols[i], r.at)
		}
		out.RowKindDone(r.rows.Kind(r.at))
		r.at++
		r.sent = true
		return connectors.Progress{Split: r.last.Split, Records: 1, Lag: -1}, nil
	}
	r.rows = nil
	return r.last, r.err
}
