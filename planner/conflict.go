package planner

import (
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// conflict checks ON CONFLICT DO DEDUPLICATE, Flink's clause for a query whose rows are not told apart by the primary key of
// the table written. It asks for what is done anyway: the last row of each primary key is written. What is left to do is
// to refuse it where it cannot be had, and to miss it where the setting wants it.
func (b *builder) conflict(in *phys, t *sinkTarget, m connectors.SinkMode) error {
	contained := true
	if len(m.Key) > 0 {
		contained, _ = keyFit(in.keys, sinkKey(t, m))
	}
	switch given := t.Conflict.Known(); {
	case given && len(m.Key) == 0:
		return diag.New(diag.Semantic, t.Conflict, "ON CONFLICT is for tables that take rows by primary key, and table %s does not", t.Table.Name).
			WithDetail("with these options connector '%s' takes %s", t.Connector.Name, m.Changelog.Kinds()).
			WithHint("remove ON CONFLICT DO DEDUPLICATE")
	case given && !contained && b.conf.Enum(keyMaterialize) == "NONE" && changes(in):
		return diag.New(diag.Config, t.Conflict, "ON CONFLICT DO DEDUPLICATE needs what '%s' = 'NONE' turns off", keyMaterialize).
			WithDetail("the rows of each primary key are kept in state, so that the last one is known").WithHint("RESET '%s'", keyMaterialize)
	case !given && !contained && b.conf.Bool(keyOnConflict) && !b.conf.Batch():
		return diag.New(diag.Semantic, t.Pos.Pos, "rows of the query are told apart by %s, not by the primary key (%s) of table %s", describeKeys(in), strings.Join(m.Key, ", "), t.Table.Name).
			WithDetail("several can have one primary key, and '%s' = 'true' wants the query to say what becomes of them", keyOnConflict).
			WithHint("write ON CONFLICT DO DEDUPLICATE behind the query: the last one is written")
	}
	return nil
}
