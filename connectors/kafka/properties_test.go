package kafka

import (
	"os"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/harness"
)

func offline(options ...string) *catalog.Table {
	return (&env{addr: "localhost:9092"}).table("orders", idCols, options...)
}

// Properties and options that are refused say which and what to do.
func TestRefusedOptions(t *testing.T) {
	jaas := `org.apache.kafka.common.security.scram.ScramLoginModule required username="u" password="p";`
	for _, c := range []struct {
		use     connectors.Use
		options []string
		want    string
	}{
		{connectors.UseSource, []string{"properties.transactional.id", "x"}, "'properties.transactional.id': not supported"},
		{connectors.UseSource, []string{"properties.enable.auto.commit", "true"}, "'true' is not possible"},
		{connectors.UseSource, []string{"properties.isolation.levl", "x"}, "unknown property"},
		{connectors.UseSource, []string{"properties.isolation.level", "serializable"}, "not one of read_committed, read_uncommitted"},
		{connectors.UseSource, []string{"properties.fetch.max.bytes", "many"}, "not an integer"},
		{connectors.UseSource, []string{"properties.bootstrap.servers", "broker"}, "has no port"},
		{connectors.UseSource, []string{"properties.ssl.truststore.location", "/x.jks"}, "TLS is not used"},
		{connectors.UseSource, []string{"properties.security.protocol", "SSL", "properties.ssl.truststore.type", "JKS"}, "only PEM is"},
		{connectors.UseSource, []string{"properties.security.protocol", "SASL_SSL", "properties.sasl.jaas.config", jaas}, "sasl.mechanism': is missing"},
		{connectors.UseSource, []string{"properties.security.protocol", "SASL_SSL", "properties.sasl.mechanism", "PLAIN", "properties.sasl.jaas.config", jaas}, "does not fit"},
		{connectors.UseSource, []string{"properties.sasl.mechanism", "PLAIN"}, "SASL is not used"},
		{connectors.UseSource, []string{"properties.sasl.mechanism", "GSSAPI"}, "not one of PLAIN"},
		{connectors.UseSource, []string{"topic-pattern", "("}, "not a regular expression"},
		{connectors.UseSource, []string{"topic", "a/b"}, "cannot be a topic name"},
		{connectors.UseSource, []string{"key.fields", "id"}, "needs 'key.format'"},
		{connectors.UseSource, []string{"key.format", "json"}, "needs 'key.fields'"},
		{connectors.UseSource, []string{"key.format", "json", "key.fields", "nope"}, "not a physical column"},
		{connectors.UseSource, []string{"key.format", "json", "key.fields", "id", "key.fields-prefix", "i"}, "needs 'value.fields-include'"},
		{connectors.UseSource, []string{"scan.startup.mode", "newest"}, "'newest' is not one of its values"},
		{connectors.UseSource, []string{"scan.startup.mode", "timestamp"}, "needs 'scan.startup.timestamp-millis'"},
		{connectors.UseSource, []string{"scan.startup.timestamp-millis", "1"}, "has no effect"},
		{connectors.UseSource, []string{"scan.startup.mode", "group-offsets"}, "needs 'properties.group.id'"},
		{connectors.UseSource, []string{"scan.startup.mode", "specific-offsets", "scan.startup.specific-offsets", "0:1"}, "not a list of offsets"},
		{connectors.UseSource, []string{"scan.on-error", "dead-letter"}, "must be given together"},
		{connectors.UseSource, []string{"scan.on-error", "dead-letter", "scan.dead-letter.topic", "orders"}, "topic of the table itself"},
		{connectors.UseSource, []string{"scan.watermark.alignment.group", "g"}, "not supported"},
		{connectors.UseSource, []string{"sink.partitioners", "fixed"}, "does not support"},
		{connectors.UseSink, []string{"properties.acks", "1"}, "exactly-once needs acks"},
		{connectors.UseSink, []string{"properties.enable.idempotence", "false"}, "exactly-once needs acks"},
		{connectors.UseSink, []string{"sink.transactional-id-slots", "2"}, "must be from 3"},
		{connectors.UseSink, []string{"sink.partitioner", "org.x.P"}, "partitioner 'org.x.P' is not supported"},
		{connectors.UseSink, []string{"sink.partitioner", "round-robin", "key.format", "json", "key.fields", "id"}, "cannot be combined"},
		{connectors.UseSink, []string{"topic", "a;b"}, "not clear which topic"},
	} {
		tab := offline(c.options...)
		err := Connector().Check(tab, c.use)
		var d *diag.Error
		if !asDiag(err, &d) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.options, err, c.want)
			continue
		}
		if d.Hint == "" && d.Detail == "" {
			t.Errorf("%v: %v has neither detail nor hint", c.options, err)
		}
	}
}

func TestAcceptedProperties(t *testing.T) {
	tab := offline("properties.client.id", "me", "properties.compression.type", "lz4", "properties.linger.ms", "3", "properties.batch.size", "1000",
		"properties.max.request.size", "2000000", "properties.buffer.memory", "1000000", "properties.request.timeout.ms", "5000",
		"properties.fetch.min.bytes", "1", "properties.fetch.max.bytes", "1000000", "properties.fetch.max.wait.ms", "100",
		"properties.max.partition.fetch.bytes", "500000", "properties.isolation.level", "read_uncommitted", "properties.acks", "all",
		"properties.enable.auto.commit", "false", "properties.key.deserializer", "x", "properties.transaction.timeout.ms", "900000")
	must(t, Connector().Check(tab, connectors.UseSource))
	must(t, Connector().Check(tab, connectors.UseSink))
	c, err := newClient(tab, "", nil)
	must(t, err)
	if len(c.warnings) != 2 || c.txnTimeoutMs != 900_000 || c.isolation != kgo.ReadUncommitted() {
		t.Fatalf("client: %+v", c)
	}
	cl, err := kgo.NewClient(c.opts(c.producer, c.consumer)...)
	must(t, err)
	cl.Close()
}

// The page lists every property this client takes, and no other.
func TestDocsListProperties(t *testing.T) {
	b, err := os.ReadFile("../../docs/kafka.md")
	must(t, err)
	page := string(b)
	for k := range handlers() {
		if !strings.Contains(page, "`"+k+"`") {
			t.Errorf("docs/kafka.md does not mention property %s", k)
		}
	}
	for _, o := range concat(kafkaOptions(), bufferOptions) {
		if !strings.Contains(page, "`"+o.Key+"`") {
			t.Errorf("docs/kafka.md does not mention option %s", o.Key)
		}
	}
}

func TestTransactionTimeoutRule(t *testing.T) {
	j := job("j")
	j.CheckpointInterval, j.CheckpointTimeout = 60_000, 120_000
	for _, c := range []struct {
		max, timeout int64
		given        bool
		want, hint   string
	}{
		{900_000, 900_000, false, "", ""},
		{900_000, 240_000, true, "", ""},
		{900_000, 239_999, true, "can time out before", "'240000'"},
		{900_000, 3_600_000, true, "larger than the brokers allow", "at most 900000"},
		{200_000, 200_000, false, "can time out before", "80 s"},
		{100_000, 100_000, false, "can time out before", "at least 240000"},
		{0, 900_000, false, "", ""},
	} {
		_, err := checkTimeout(offline(), j, c.max, c.timeout, c.given)
		var d *diag.Error
		if c.want == "" {
			must(t, err)
		} else if !asDiag(err, &d) || !strings.Contains(err.Error(), c.want) || !strings.Contains(d.Hint, c.hint) {
			t.Errorf("%+v: %v %+v", c, err, d)
		}
	}
}

func TestBrokerWithoutTransactions(t *testing.T) {
	e := fake(t, 2)
	topic := e.topic(t, 1)
	s := openSink(t, e.table(topic, idCols), "s", 1, job("j"))
	k, err := s.configure(testCtx(t))
	must(t, err)
	k.noTxns = "EndTxn"
	s.k = &k
	if err := s.Preflight(testCtx(t)); err == nil || !strings.Contains(err.Error(), "has no transactions") {
		t.Fatalf("preflight: %v", err)
	}
}

func TestPEMOnOneLine(t *testing.T) {
	got := unfoldPEM("-----BEGIN CERTIFICATE----- QUJD REVG -----END CERTIFICATE-----")
	if got != "-----BEGIN CERTIFICATE-----\nQUJD\nREVG\n-----END CERTIFICATE-----\n" {
		t.Fatalf("%q", got)
	}
}

func TestSinkModes(t *testing.T) {
	modes, err := Connector().SinkModes(offline())
	must(t, err)
	if m := modes[0]; m.Delivery != connectors.TwoPhaseCommit || m.Changelog != types.AppendOnly || m.Weakness != "" {
		t.Fatalf("%+v", m)
	}
	tab := offline("sink.delivery-guarantee", "at-least-once")
	tab.Options = without(tab.Options, "properties.bootstrap.servers")
	modes, err = Connector().SinkModes(tab)
	must(t, err)
	if modes[0].Delivery != connectors.AtLeastOnce {
		t.Fatalf("%+v", modes[0])
	}
	modes, err = Connector().SinkModes(offline("format", "debezium-json"))
	must(t, err)
	if modes[0].Changelog == types.AppendOnly {
		t.Fatalf("%+v", modes[0])
	}
}

// SASL over TLS against a real broker: reading, and writing with transactions.
func TestSecurity(t *testing.T) {
	for _, c := range []struct{ mechanism, jaas string }{
		{"PLAIN", `org.apache.kafka.common.security.plain.PlainLoginModule required username="alice" password="s3c;ret";`},
		{"SCRAM-SHA-512", `org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="s3c;ret";`},
	} {
		t.Run(c.mechanism, func(t *testing.T) {
			b := harness.Kafka(t, harness.KafkaSASL(c.mechanism, "alice", "s3c;ret"), harness.KafkaTLS())
			e := newEnv(t, b.Addr(), b.ClientOpts()...)
			e.more = map[string]string{"properties.security.protocol": "SASL_SSL", "properties.sasl.mechanism": c.mechanism,
				"properties.sasl.jaas.config": c.jaas, "properties.ssl.truststore.location": b.CAFile(), "properties.ssl.truststore.type": "PEM"}
			topic := e.topic(t, 1)
			tab := e.table(topic, idCols, "scan.bounded.mode", "latest-offset")
			s := openSink(t, tab, "s", 1, job(topic))
			must(t, s.Preflight(testCtx(t)))
			cm := committerOf(t, s)
			must(t, cm.Abort(testCtx(t), nil))
			w := openWriters(t, s)[0]
			must(t, w.Write(testCtx(t), ids(0, 5)))
			cs, err := w.PreCommit(testCtx(t), 1)
			must(t, err)
			must(t, cm.Commit(testCtx(t), cs))
			waitFor(t, func() bool { return len(scanAll(t, tab, -1).rows) == 5 })
			tab.Options.Set("properties.sasl.jaas.config", strings.Replace(c.jaas, "s3c", "bad", 1), diag.Pos{})
			if _, err := sourceOf(t, tab, job(topic)).Splits(testCtx(t)); err == nil {
				t.Fatal("a wrong password was accepted")
			}
		})
	}
}
