package streamsql

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// collector hands a query's rows from its sink subtask to whoever iterates over them.
type collector struct {
	chunks chan []collected
	stop   chan struct{} // closed when nobody reads any more
	once   sync.Once
}

type collected struct {
	kind types.RowKind
	row  []types.Datum
}

func newCollector() *collector {
	return &collector{chunks: make(chan []collected, 16), stop: make(chan struct{})}
}

func (c *collector) connector() *connectors.Connector {
	return &connectors.Connector{
		Name: "collect", Doc: "the rows of a SELECT",
		NewSink: func(context.Context, connectors.SinkSpec) (connectors.Sink, error) { return collectSink{c}, nil },
	}
}

// rows iterates over what the job emits until it has ended, or until limit rows have come: those are all that a LIMIT
// over endless input lets through, and the job would only wait for more. A negative limit is none.
func (c *collector) rows(j *Job, schema *types.Schema, s expr.Session, limit int64) iter.Seq2[Change, error] {
	return func(yield func(Change, error) bool) {
		defer func() {
			c.once.Do(func() { close(c.stop) })
			j.Cancel()
			<-j.done
		}()
		left := limit
		if left == 0 {
			return
		}
		send := func(rows []collected) bool {
			for _, r := range rows {
				if !yield(Change{Kind: r.kind, Row: Row{schema: schema, datums: r.row, session: s}}, nil) {
					return false
				}
				if left--; left == 0 {
					return false
				}
			}
			return true
		}
		for {
			select {
			case rows := <-c.chunks:
				if !send(rows) {
					return
				}
			case <-j.done:
				for len(c.chunks) > 0 {
					if !send(<-c.chunks) {
						return
					}
				}
				if j.err != nil && !errors.Is(j.err, context.Canceled) {
					yield(Change{}, j.err)
				}
				return
			}
		}
	}
}

type collectSink struct{ c *collector }

// Preflight implements connectors.Sink.
func (collectSink) Preflight(context.Context) error { return nil }

// Committer implements connectors.Sink.
func (collectSink) Committer(context.Context) (checkpoint.Committer, error) { return nil, nil }

// Open implements connectors.Sink.
func (s collectSink) Open(context.Context, int) (connectors.Writer, error) { return s, nil }

// Close implements connectors.Sink and Writer.
func (collectSink) Close() error { return nil }

// Write implements connectors.Writer: it copies the rows out of the batch.
func (s collectSink) Write(ctx context.Context, b *batch.Batch) error {
	rows := make([]collected, b.Len())
	for i := range rows {
		r := b.Row(i)
		row := make([]types.Datum, len(b.Cols))
		for k, v := range b.Cols {
			row[k] = v.Datum(r)
		}
		rows[i] = collected{b.Kind(r), row}
	}
	select {
	case s.c.chunks <- rows:
		return nil
	case <-s.c.stop:
		return context.Canceled
	case <-ctx.Done():
		return ctx.Err()
	}
}

// PreCommit implements connectors.Writer; rows shown cannot be taken back.
func (collectSink) PreCommit(context.Context, checkpoint.ID) ([]checkpoint.Committable, error) {
	return nil, nil
}

// Committed implements connectors.Writer.
func (collectSink) Committed(context.Context, checkpoint.ID) error { return nil }
