package kafka

import (
	"context"
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
	"github.com/streamsql/streamsql/sql/types"
)

// Connector is 'kafka': records as rows, or as changes when the value format describes changes.
func Connector() *connectors.Connector { return connector(false) }

// UpsertConnector is 'upsert-kafka': the newest record of a key is the row, a NULL value deletes it.
func UpsertConnector() *connectors.Connector { return connector(true) }

func connector(upsert bool) *connectors.Connector {
	c := &connectors.Connector{
		Name: "kafka", Doc: "topics of Apache Kafka and compatible brokers",
		Options: kafkaOptions(), OptionPrefixes: []string{propertyPrefix}, NeedsFormat: true, Metadata: metadataColumns,
	}
	if upsert {
		c.Name, c.Doc, c.Options = "upsert-kafka", "topics of Apache Kafka as tables by key", upsertOptions()
	}
	c.SourceMode = func(t *catalog.Table) (types.ChangelogMode, error) {
		x, err := parseTable(t, upsert)
		if err != nil {
			return 0, err
		}
		if upsert {
			return types.Upsert, nil
		}
		return x.fm.Value.Source, nil
	}
	c.ReadsFields = func(t *catalog.Table, col int) bool {
		x, err := parseTable(t, upsert)
		return err == nil && x.fm.Value.ReadsFields && !slices.ContainsFunc(x.key, func(f field) bool { return f.col == col })
	}
	c.Bounded = func(t *catalog.Table) (bool, error) {
		x, err := parseTable(t, upsert)
		if err != nil {
			return false, err
		}
		return x.v.Enum("scan.bounded.mode") != "unbounded", nil
	}
	c.Check = func(t *catalog.Table, use connectors.Use) error { return check(t, upsert, use) }
	c.NewSource = func(ctx context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
		return newSource(spec, upsert)
	}
	c.Replay = func(t *catalog.Table) (connectors.Replay, error) { return replay(t, upsert) }
	c.Lint = func(s connectors.LintSpec) []lint.Finding { return lintTable(s, upsert) }
	c.Claims = claims
	c.SinkModes = func(t *catalog.Table) ([]connectors.SinkMode, error) { return sinkModes(t, upsert) }
	c.NewSink = func(ctx context.Context, spec connectors.SinkSpec) (connectors.Sink, error) {
		return newSink(spec, upsert)
	}
	c.Transactions = openTransactions
	c.Endpoints = endpoints
	c.Ranges = true
	return c
}

func check(t *catalog.Table, upsert bool, use connectors.Use) error {
	x, err := parseTable(t, upsert)
	if err != nil {
		return err
	}
	if err := x.fm.Check(schemaOf(x.value), schemaOf(x.key), x.v, use); err != nil {
		return err
	}
	// Without servers the table means the embedded broker; whether there is one is known when it is opened.
	if _, err := newClient(t, "embedded:0", nil); err != nil {
		return err
	}
	if use == connectors.UseSource {
		return x.checkSource()
	}
	return x.checkSink()
}

func sinkModes(t *catalog.Table, upsert bool) ([]connectors.SinkMode, error) {
	x, err := parseTable(t, upsert)
	if err != nil {
		return nil, err
	}
	m := connectors.SinkMode{Changelog: x.fm.Value.Sink}
	if upsert {
		m.Changelog, m.Key = types.Upsert, t.PrimaryKey
	}
	m.Behind = behind(t)
	embedded := ""
	if !x.v.Has("sink.delivery-guarantee") {
		m.Reason = "default of streamsql (Flink: at-least-once)"
	} else {
		m.Reason = "'sink.delivery-guarantee' = '" + x.guarantee() + "'"
	}
	if _, ok := t.Options.Get(propertyPrefix + "bootstrap.servers"); !ok {
		embedded = EmbeddedWeakness
	}
	switch x.guarantee() {
	case "exactly-once":
		m.Delivery = connectors.TwoPhaseCommit
		m.Weakness = embedded
		if x.ahead() {
			m.Reason += "; 'sink.commit-protocol' = 'write-ahead': rows are kept in the checkpoint and written with a marker record in one Kafka transaction after it is durable"
			m.Commit = x.aheadCommitment()
			break
		}
		m.Reason += "; Kafka transactions, committed when the checkpoint is durable"
		m.Commit = x.commitment()
		x.splitting(&m)
	case "at-least-once":
		m.Delivery = connectors.AtLeastOnce
		m.Weakness = "records can repeat after a restart"
	default:
		m.Delivery = connectors.NoGuarantee
		m.Weakness = "records can be lost or repeat after a failure"
	}
	return []connectors.SinkMode{m}, nil
}

// EmbeddedWeakness is what EXPLAIN says of exactly-once tables on the embedded broker.
const EmbeddedWeakness = "the embedded broker shares this process: when the process is killed it aborts open transactions, " +
	"so the newest checkpoint can be discarded and its rows produced again; acknowledged records are in the page cache only, " +
	"and a power loss can take them. For trying things out; use a Kafka cluster for data that matters"

func (x *table) guarantee() string { return x.v.Enum("sink.delivery-guarantee") }

func (x *table) checkSink() error {
	if n := x.v.Int("sink.transactional-id-slots"); n < minSlots || n > 100 {
		return x.fail("sink.transactional-id-slots", "option 'sink.transactional-id-slots' must be from %d to 100, not %d", minSlots, n).
			WithDetail("one id is being written, one is prepared, one is committed but still listed in the newest checkpoint")
	}
	if x.v.Has("sink.transactional-id-prefix") && x.v.String("sink.transactional-id-prefix") == "" {
		return x.fail("sink.transactional-id-prefix", "option 'sink.transactional-id-prefix' is empty")
	}
	if err := x.checkPartitioner(); err != nil {
		return err
	}
	if err := x.checkAhead(); err != nil {
		return err
	}
	if err := x.checkSplit(); err != nil {
		return err
	}
	c, err := newClient(x.t, "embedded:0", nil)
	if err != nil {
		return err
	}
	if x.guarantee() == "exactly-once" && (c.acks != "all" || !c.idempotent) {
		return x.fail(propertyPrefix+"acks", "exactly-once needs acks = 'all' and enable.idempotence = 'true'").
			WithHint("remove 'properties.acks' and 'properties.enable.idempotence', or set 'sink.delivery-guarantee' = 'at-least-once'")
	}
	writesTopic, headers := false, ""
	for _, col := range x.t.Columns {
		if col.Kind != catalog.Metadata || col.Virtual {
			continue
		}
		switch col.Key {
		case "topic":
			writesTopic = true
			if x.single() != "" {
				return diag.New(diag.Semantic, diag.Pos{}, "table %s: metadata column '%s' cannot be written: the table has one topic", x.t.Name, col.Name).
					WithHint("declare it VIRTUAL, or list the topics rows may go to: 'topic' = 'a;b'")
			}
		case "headers", "header-list":
			if headers != "" {
				return diag.New(diag.Semantic, diag.Pos{}, "table %s: columns '%s' and '%s' both write the headers", x.t.Name, headers, col.Name).
					WithHint("declare one of them VIRTUAL")
			}
			headers = col.Name
		}
	}
	if x.single() == "" && !writesTopic {
		return x.fail("topic", "it is not clear which topic rows go to").
			WithHint("name one topic, or add a column `topic` STRING NOT NULL METADATA")
	}
	if x.upsert {
		if (x.v.Int("sink.buffer-flush.max-rows") > 0) != (x.v.Duration("sink.buffer-flush.interval") > 0) {
			return x.fail("sink.buffer-flush.max-rows", "'sink.buffer-flush.max-rows' and 'sink.buffer-flush.interval' must be given together").
				WithHint("set both above 0, or neither")
		}
	}
	return nil
}

func (x *table) checkPartitioner() error {
	if x.upsert {
		return nil
	}
	switch p := x.v.String("sink.partitioner"); p {
	case "default", "fixed":
	case "round-robin":
		if x.key != nil {
			return x.fail("sink.partitioner", "'sink.partitioner' = 'round-robin' cannot be combined with 'key.fields'").
				WithHint("use 'default': records of one key stay in one partition")
		}
	case "":
		return x.fail("sink.partitioner", "option 'sink.partitioner' is empty").WithHint("use 'default', 'fixed' or 'round-robin'")
	default:
		return diag.New(diag.Unsupported, x.t.Options.Pos("sink.partitioner"), "table %s: partitioner '%s' is not supported", x.t.Name, p).
			WithDetail("Java classes cannot run here").WithHint("use 'default', 'fixed' or 'round-robin'")
	}
	return nil
}
