package streamsql

import (
	"io"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/blackhole"
	"github.com/streamsql/streamsql/connectors/datagen"
	"github.com/streamsql/streamsql/connectors/file"
	"github.com/streamsql/streamsql/connectors/kafka"
	"github.com/streamsql/streamsql/connectors/nexmark"
	"github.com/streamsql/streamsql/connectors/postgres"
	"github.com/streamsql/streamsql/connectors/print"
)

// DefaultConnectors are all connectors of this module; 'print' writes to out.
func DefaultConnectors(out io.Writer) []connectors.Connector {
	return append([]connectors.Connector{
		*kafka.Connector(), *kafka.UpsertConnector(), file.Connector(), datagen.Connector(), nexmark.Connector(), print.Connector(out), blackhole.Connector(),
	}, postgres.Connectors()...)
}
