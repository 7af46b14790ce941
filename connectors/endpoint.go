package connectors

import "context"

// Endpoint is a server behind a table, to measure the way to it.
type Endpoint struct {
	// Name is the server, the same for every table behind it: "kafka broker 1 at host:9092".
	Name string
	// RoundTrip asks the server for something that costs it nothing and returns when the answer is there.
	RoundTrip func(ctx context.Context) error
	// Close ends the connection.
	Close func()
}
