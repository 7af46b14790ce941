package kafka

import (
	"context"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
)

// Dial makes a client of the cluster that a table names, with its login, and checks that a broker answers. It is for looking
// at topics from outside of a job; opts come behind what the table says. embedded is the address of an embedded broker, "" =
// none.
func Dial(ctx context.Context, t *catalog.Table, embedded string, opts ...kgo.Opt) (*kgo.Client, error) {
	c, err := newClient(t, embedded, nil)
	if err != nil {
		return nil, err
	}
	return connect(ctx, c, opts...)
}
