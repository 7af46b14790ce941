package postgres

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/types"
)

// exactlyOnce is the default of sink.delivery-guarantee.
const exactlyOnce = "exactly-once"

// flushOptions say how long rows are held back before they are sent. Flink writes rows before their checkpoint, and who sets them
// asks for that.
var flushOptions = []string{"sink.buffer-flush.interval", "sink.buffer-flush.max-rows"}

// checkProtocol refuses a commit protocol that the table cannot have, or that other options contradict.
func (c *config) checkProtocol(t *catalog.Table) error {
	const key = "sink.commit-protocol"
	keyed := len(t.PrimaryKey) > 0
	switch {
	case !keyed && c.protocol == upsert:
		return c.values.Errorf(key, "table %q: '%s' = 'upsert' writes by primary key, and the table has none", t.Name, key).
			WithHint("declare PRIMARY KEY (...) NOT ENFORCED, or remove the option")
	case !keyed:
		return nil
	case c.protocol == prepared:
		return c.values.Errorf(key, "table %q: '%s' = 'prepared' cannot write by primary key", t.Name, key).
			WithDetail("a prepared transaction keeps its keys locked until it is committed: the next checkpoint's rows of the same keys would wait for it, and for ever if that checkpoint failed").
			WithHint("remove the option: 'auto' keeps rows in the checkpoint ('write-ahead'), which is exactly once too")
	case c.protocol != writeAhead:
		return nil
	case c.guarantee != exactlyOnce:
		return c.values.Errorf(key, "table %q: '%s' = 'write-ahead' is a way to write exactly once, and 'sink.delivery-guarantee' is '%s'", t.Name, key, c.guarantee).
			WithHint("remove one of the two")
	}
	for _, o := range flushOptions {
		if c.values.Has(o) {
			return c.values.Errorf(o, "table %q: '%s' has no effect with '%s' = 'write-ahead', which writes rows after their checkpoint", t.Name, o, key).
				WithHint("remove '%s'; or use '%s' = 'upsert', which writes rows before it", o, key)
		}
	}
	return nil
}

func sinkModes(t *catalog.Table) ([]connectors.SinkMode, error) {
	c, err := parse(t)
	if err != nil {
		return nil, err
	}
	if len(t.PrimaryKey) > 0 {
		return []connectors.SinkMode{c.keyedMode(t.PrimaryKey)}, nil
	}
	return []connectors.SinkMode{c.appendMode()}, nil
}

// keyedMode is how a table with a primary key is written.
func (c *config) keyedMode(key []string) connectors.SinkMode {
	names := strings.Join(key, ", ")
	why := c.upsertReason()
	if why == "" {
		how := "rows are kept in the checkpoint ('sink.commit-protocol' = '" + c.protocol + "')"
		return connectors.SinkMode{
			Delivery: connectors.TwoPhaseCommit, Changelog: types.Upsert, Key: key,
			Reason: fmt.Sprintf("the table has PRIMARY KEY (%s): %s, and each key's last change is written with a marker row in one transaction after it is durable", names, how),
			Commit: commitment(writeAhead),
		}
	}
	return connectors.SinkMode{
		Delivery: connectors.IdempotentUpsert, Changelog: types.Upsert, Key: key,
		Reason:   fmt.Sprintf("the table has PRIMARY KEY (%s), and %s: each key's last change is written at once with INSERT … ON CONFLICT DO UPDATE or DELETE", names, why),
		Weakness: "rows are visible before their checkpoint completes; after a crash a key can show an older value until replay has passed it again",
	}
}

// upsertReason says why rows with a key are written before their checkpoint; "" = they are not.
func (c *config) upsertReason() string {
	switch {
	case c.protocol == upsert:
		return "'sink.commit-protocol' = 'upsert'"
	case c.protocol != "auto":
		return ""
	case c.guarantee != exactlyOnce:
		return "'sink.delivery-guarantee' = '" + c.guarantee + "'"
	}
	for _, o := range flushOptions {
		if c.values.Has(o) {
			return "'" + o + "' asks for rows before their checkpoint ('sink.commit-protocol' = 'auto')"
		}
	}
	return ""
}

// appendMode is how a table without a primary key is written.
func (c *config) appendMode() connectors.SinkMode {
	switch c.guarantee {
	case "at-least-once":
		return connectors.SinkMode{
			Delivery: connectors.AtLeastOnce, Changelog: types.AppendOnly,
			Reason: "'sink.delivery-guarantee' = 'at-least-once': rows are flushed at every checkpoint", Weakness: "after a crash, rows since the last checkpoint are written again",
		}
	case "none":
		return connectors.SinkMode{
			Delivery: connectors.NoGuarantee, Changelog: types.AppendOnly,
			Reason: "'sink.delivery-guarantee' = 'none'", Weakness: "rows can be lost or repeated after a crash",
		}
	}
	how := map[string]string{
		"auto":     "'sink.commit-protocol' = 'auto': PREPARE TRANSACTION if the server's max_prepared_transactions allows it, else rows are kept in the checkpoint (write-ahead); the job's log names the one taken",
		prepared:   "'sink.commit-protocol' = 'prepared': each subtask's transaction is prepared at the barrier and committed after the checkpoint is durable",
		writeAhead: "'sink.commit-protocol' = 'write-ahead': rows are kept in the checkpoint and written with a marker row in one transaction after it is durable",
	}
	return connectors.SinkMode{
		Delivery: connectors.TwoPhaseCommit, Changelog: types.AppendOnly,
		Reason: "the table has no primary key and the query only appends; " + how[c.protocol],
		Commit: commitment(c.protocol),
	}
}
