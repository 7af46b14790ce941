package planner

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// promiseOptions are the options by which tables ask for a delivery.
var promiseOptions = []string{"sink.delivery-guarantee", "sink.semantic"}

// checkPromise refuses a table that asks for a delivery which its connector has no say in: the option would look as if it
// did something.
func checkPromise(t *catalog.Table, c *connectors.Connector, pos diag.Pos) error {
	for _, key := range promiseOptions {
		v, asked := t.Options.Get(key)
		if !asked || slices.ContainsFunc(c.Options, func(o connectors.Option) bool { return o.Key == key }) || c.Options == nil {
			continue
		}
		modes, err := c.SinkModes(t)
		if err != nil || len(modes) == 0 {
			return nil // said by the caller
		}
		have := modes[0].Delivery
		if have == connectors.TwoPhaseCommit {
			return diag.New(diag.Config, optionPos(t, key, pos), "table %s: connector '%s' has no option '%s'", t.Name, c.Name, key).
				WithDetail("it always writes exactly once: %s", modes[0].Reason).WithHint("remove the option")
		}
		e := diag.New(diag.Config, optionPos(t, key, pos), "table %s: connector '%s' cannot deliver '%s'", t.Name, c.Name, strings.ToLower(v)).
			WithDetail("it has no transactions; it delivers %s: %s", have, modes[0].Reason).WithRule("SSQL-E101")
		if strings.EqualFold(v, "exactly-once") {
			return e.WithHint("remove '%s' and live with %s; or write into 'connector' = 'kafka', 'filesystem' or 'jdbc', which commit with the checkpoint", key, riskOf(have))
		}
		return e.WithHint("remove '%s'", key)
	}
	return nil
}

// riskOf is what a delivery can do to rows after a failure.
func riskOf(d connectors.Delivery) string {
	if d == connectors.NoGuarantee {
		return "rows that are lost"
	}
	return "rows that repeat after a failure"
}
