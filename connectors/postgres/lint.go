package postgres

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/lint"
)

// lintTable is Connector.Lint.
func lintTable(s connectors.LintSpec) []lint.Finding {
	c, err := parse(s.Table)
	if err != nil || s.Use != connectors.UseSink || !c.values.Has("sink.delivery-guarantee") {
		return nil
	}
	t := s.Table.Name
	switch {
	case s.Mode.Delivery == connectors.IdempotentUpsert && c.guarantee == exactlyOnce:
		return []lint.Finding{{Code: "SSQL-W103", Table: t, Option: "sink.delivery-guarantee",
			Message: fmt.Sprintf("table %s is written by primary key: rows are seen before their checkpoint, and exactly once holds for the final table only", t),
			Detail:  s.Mode.Weakness,
			Hint:    "remove " + c.asksForUpsert() + ", and rows take effect with their checkpoint; or remove 'sink.delivery-guarantee'"}}
	case s.Mode.Delivery != connectors.IdempotentUpsert && c.guarantee != exactlyOnce:
		return []lint.Finding{{Code: "SSQL-W104", Table: t, Option: "sink.delivery-guarantee",
			Message: fmt.Sprintf("table %s: rows can repeat, and nothing tells a repeated row from a new one", t),
			Detail:  s.Mode.Weakness,
			Hint:    "remove 'sink.delivery-guarantee' (the default is exactly-once), or declare PRIMARY KEY (...) NOT ENFORCED"}}
	}
	return nil
}

// asksForUpsert are the options by which rows with a key are written before their checkpoint.
func (c *config) asksForUpsert() string {
	var out []string
	if c.protocol == upsert {
		out = append(out, "'sink.commit-protocol'")
	}
	for _, o := range flushOptions {
		if c.values.Has(o) {
			out = append(out, "'"+o+"'")
		}
	}
	return strings.Join(out, " and ")
}

// commitment is what EXPLAIN GUARANTEES says of the protocols.
func commitment(protocol string) connectors.Commitment {
	c := connectors.Commitment{
		Held:       "in a prepared transaction of the server, which survives its crash",
		ID:         "the name (GID) of the transaction, with job, sink, lineage, checkpoint and subtask in it",
		Known:      "a marker row that is written inside the transaction; COMMIT PREPARED of a name that is gone asks for it",
		Unit:       "prepared transactions",
		Ends:       "nothing: a prepared transaction waits for ever, holds its locks and keeps VACUUM back; a restore ends those of its own job",
		PerSubtask: true,
	}
	wal := connectors.Commitment{
		Held:       "in the checkpoint itself; they are written in one transaction with a marker row after it is durable",
		ID:         "the rows, and lineage, checkpoint and subtask for the marker",
		Known:      "the marker row, which is in the table's transaction or not: rows are written if it is missing",
		PerSubtask: true,
	}
	switch protocol {
	case prepared:
		return c
	case writeAhead:
		return wal
	}
	c.Held += "; where max_prepared_transactions has no room: " + wal.Held
	c.ID += "; or " + wal.ID
	return c
}
