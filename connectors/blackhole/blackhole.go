package blackhole

import (
	"context"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

var options = []connectors.Option{connectors.PropertyVersion}

// Connector is 'blackhole'. It asks the planner not to send -U rows, as Flink's does.
func Connector() connectors.Connector {
	return connectors.Connector{
		Name:    "blackhole",
		Doc:     "takes all rows and drops them",
		Options: options,
		Check: func(t *catalog.Table, _ connectors.Use) error {
			_, err := connectors.Parse(t, options, nil)
			return err
		},
		SinkModes: func(*catalog.Table) ([]connectors.SinkMode, error) {
			return []connectors.SinkMode{{Delivery: connectors.NoGuarantee, Changelog: types.Upsert, Reason: "the connector drops every row"}}, nil
		},
		NewSink: func(context.Context, connectors.SinkSpec) (connectors.Sink, error) { return sink{}, nil },
	}
}

type sink struct{}

// Preflight implements connectors.Sink.
func (sink) Preflight(context.Context) error { return nil }

// Committer implements connectors.Sink.
func (sink) Committer(context.Context) (checkpoint.Committer, error) { return nil, nil }

// Open implements connectors.Sink.
func (sink) Open(context.Context, int) (connectors.Writer, error) { return writer{}, nil }

// Close implements connectors.Sink.
func (sink) Close() error { return nil }

type writer struct{}

// Write implements connectors.Writer.
func (writer) Write(context.Context, *batch.Batch) error { return nil }

// PreCommit implements connectors.Writer.
func (writer) PreCommit(context.Context, checkpoint.ID) ([]checkpoint.Committable, error) {
	return nil, nil
}

// Committed implements connectors.Writer.
func (writer) Committed(context.Context, checkpoint.ID) error { return nil }

// Close implements connectors.Writer.
func (writer) Close() error { return nil }
