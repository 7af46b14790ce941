package postgres

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
)

// endpoints are the table's server. A round trip is an empty query.
func endpoints(ctx context.Context, t *catalog.Table, _ string, log *slog.Logger) ([]connectors.Endpoint, error) {
	c, err := parse(t)
	if err != nil {
		return nil, err
	}
	conn, err := connect(ctx, c, "streamsql:probe", log)
	if err != nil {
		return nil, err
	}
	cc := conn.Config()
	return []connectors.Endpoint{{
		Name:      fmt.Sprintf("postgres at %s:%d/%s", cc.Host, cc.Port, cc.Database),
		RoundTrip: conn.Ping,
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), closeWithin)
			defer cancel()
			_ = conn.Close(ctx) // nothing was changed
		},
	}}, nil
}
