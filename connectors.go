package streamsql

import (
	"io"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/connectors/postgres"
)

// DefaultConnectors are all connectors of this module; 'print' writes to out.
func DefaultConnectors(out io.Writer) []connectors.Connector {
	return append([]connectors.Connector{
		*kafka.Connector(), *kafka.UpsertConnector(),
	}, postgres.Connectors()...)
}
