package nexmark

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

// topic is where the events are in Kafka.
type topic struct {
	broker, name string
	output       string
}

// withSource puts the source's options into a script.
func (o *options) withSource(text string, events int) string {
	if o.source == generator {
		return sourceOptions.ReplaceAllLiteralString(text, o.generatorOptions(events))
	}
	in := o.topics[events]
	return sourceOptions.ReplaceAllLiteralString(text, fmt.Sprintf("'connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', "+
		"'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', 'format' = 'json'", in.name, in.broker))
}

func (o *options) generatorOptions(events int) string {
	return fmt.Sprintf("'connector' = 'nexmark', 'first-event.rate' = '%d', 'next-event.rate' = '%[1]d', 'events.num' = '%d'", o.rate, events)
}

// updating are the queries whose results change rows.
var updating = []string{"q4", "q9", "q15", "q16", "q17", "q18", "q19"}

// sink is the options of a query's sink.
func (o *options) sink(query string) string {
	if o.source == generator {
		return "'connector' = 'blackhole'"
	}
	format := "json"
	if slices.Contains(updating, query) {
		format = "debezium-json"
	}
	o.runs++
	out := o.topics[tiny]
	return fmt.Sprintf("'connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', 'format' = '%s', "+
		"'sink.delivery-guarantee' = 'exactly-once', 'sink.transactional-id-prefix' = '%s-%d', 'properties.transaction.timeout.ms' = '900000'",
		out.output, out.broker, format, out.output, o.runs)
}

// load writes the events as JSON into a topic for each number of them, a partition for each subtask: their order is kept.
func (o *options) load(t *testing.T) {
	t.Helper()
	k := harness.SharedKafka(t)
	bin := ourRunner{bin: harness.BuildStreamsql(t)}
	o.topics = map[int]topic{}
	numbers := []int{tiny, o.events}
	if o.warmUp > 0 {
		numbers = append(numbers, o.warmUp)
	}
	for _, n := range numbers {
		in := topic{broker: k.Addr(), name: k.Topic(t, int32(o.parallelism)), output: k.Topic(t, int32(o.parallelism))}
		ddl, _, _ := strings.Cut(string(script(t, "q0", ours, &options{parallelism: o.parallelism, interval: "10 s", rate: o.rate, source: generator}, n)), "CREATE VIEW")
		c := bin.run(t, ddl+fmt.Sprintf("CREATE TABLE events WITH ('connector' = 'kafka', 'topic' = '%s', 'properties.bootstrap.servers' = '%s', 'format' = 'json', "+
			"'json.encode.ignore-null-fields' = 'true', 'sink.partitioner' = 'fixed', 'sink.delivery-guarantee' = 'at-least-once') LIKE datagen (EXCLUDING ALL);\n"+
			"INSERT INTO events SELECT event_type, person, auction, bid FROM datagen;\n", in.name, in.broker), n)
		if c.Error != "" {
			t.Fatal(c.Error)
		}
		o.topics[n] = in
	}
}
