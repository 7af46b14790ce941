package kafka

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// endpoints are the brokers of the table's cluster. A round trip asks one of them for the metadata of no topic.
func endpoints(ctx context.Context, t *catalog.Table, embedded string, log *slog.Logger) ([]connectors.Endpoint, error) {
	c, err := newClient(t, embedded, log)
	if err != nil {
		return nil, err
	}
	cl, err := connect(ctx, c)
	if err != nil {
		return nil, err
	}
	brokers, err := kadm.NewClient(cl).ListBrokers(ctx)
	if err != nil {
		cl.Close()
		return nil, diag.New(diag.External, diag.Pos{}, "the brokers of kafka at %v are not listed", c.servers).Wrap(err)
	}
	var open atomic.Int64 // they share the client
	open.Store(int64(len(brokers)))
	var out []connectors.Endpoint
	for _, b := range brokers {
		one := cl.Broker(int(b.NodeID))
		out = append(out, connectors.Endpoint{
			Name: fmt.Sprintf("kafka broker %d at %s:%d", b.NodeID, b.Host, b.Port),
			RoundTrip: func(ctx context.Context) error {
				req := kmsg.NewPtrMetadataRequest()
				req.Topics = []kmsg.MetadataRequestTopic{} // nil would be all
				_, err := one.Request(ctx, req)
				return err
			},
			Close: sync.OnceFunc(func() {
				if open.Add(-1) == 0 {
					cl.Close()
				}
			}),
		})
	}
	return out, nil
}
