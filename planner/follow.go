package planner

import (
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
)

// keyDelivery is the option by which a table asks for a delivery; keyProtocol says how it is written exactly once.
const (
	keyDelivery = connectors.DeliveryOption
	keyProtocol = "sink.commit-protocol"
)

// follow is the table as a job writes it that is at least once: one that does not say how it is to be delivered gets no
// transactions, for they would be prepared and hide rows without keeping any from being written twice. followed reports
// that this is so. A connector that has only one way keeps it.
func (b *binder) follow(t *catalog.Table, pos diag.Pos) (out *catalog.Table, followed bool, err error) {
	if b.conf.Enum(keyMode) != "AT_LEAST_ONCE" {
		return t, false, nil
	}
	c, err := b.p.connector(t, pos)
	if err != nil {
		return nil, false, err
	}
	if c.SinkModes == nil || !offers(c, keyDelivery, "at-least-once") {
		return t, false, nil
	}
	if modes, err := c.SinkModes(t); err != nil || len(modes) == 0 || modes[0].Delivery != connectors.TwoPhaseCommit {
		return t, false, nil // what is wrong is said by sink
	}
	for _, k := range promiseOptions {
		if _, said := t.Options.Get(k); said {
			return t, false, nil
		}
	}
	if _, said := t.Options.Get(keyProtocol); said {
		return nil, false, diag.New(diag.Config, optionPos(t, keyProtocol, pos),
			"table %s: '%s' is a way to write exactly once, and the job is at least once ('%s' = AT_LEAST_ONCE)", t.Name, keyProtocol, keyMode).
			WithDetail("barriers are not aligned: a checkpoint can hold rows behind its barrier, which are read again after a failure and committed twice").
			WithHint("RESET '%s'; or remove '%s' from %s", keyMode, keyProtocol, t.Name).WithRule("SSQL-E105")
	}
	return t.WithOptions([]sql.Option{{Key: keyDelivery, Value: "at-least-once"}}), true, nil
}

// offers reports that an option of the connector can have the value.
func offers(c *connectors.Connector, key, value string) bool {
	return slices.ContainsFunc(c.Options, func(o connectors.Option) bool { return o.Key == key && slices.Contains(o.Values, value) })
}

// followReason is what EXPLAIN says of a table that follows the job's mode.
const followReason = "'" + keyMode + "' = AT_LEAST_ONCE and the table asks for nothing else: rows are flushed at every checkpoint, without transactions"
