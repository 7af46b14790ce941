package nexmark

import (
	"os"
	"strconv"
	"testing"
)

// The sources of the events.
const (
	generator   = "generator"
	kafkaSource = "kafka"
)

// options are what is measured, from the environment.
type options struct {
	dir         string // where the results go; "" for a plain test run
	events      int
	warmUp      int // events of the run before the first that is measured; Flink only
	rate        int // events in a second of event time
	rounds      int
	parallelism int
	interval    string // of checkpoints
	queries     []string
	engines     []engine
	source      string
	oneFlink    bool          // for all queries
	topics      map[int]topic // with the events, by their number
	runs        int           // scripts made for Kafka so far
}

// tiny is the number of events of the runs whose cost is taken off: starting, planning, stopping.
const tiny = 50

func readOptions(t *testing.T) *options {
	t.Helper()
	o := &options{dir: os.Getenv("STREAMSQL_NEXMARK"), events: 20_000, rounds: 1, parallelism: 2, interval: "10 s", source: generator, engines: []engine{ours}}
	if o.dir != "" {
		o.events = number(t, "NEXMARK_EVENTS", 10_000_000)
		o.rounds = number(t, "NEXMARK_ROUNDS", 3)
		o.parallelism = number(t, "NEXMARK_PARALLELISM", o.parallelism)
		o.warmUp = number(t, "NEXMARK_WARMUP", max(o.events/10, 1))
		o.engines = append(o.engines, flink)
		o.oneFlink = os.Getenv("NEXMARK_FLINK_SHARED") != ""
		if e := os.Getenv("NEXMARK_ENGINES"); e != "" {
			o.engines = nil
			for _, known := range []engine{ours, flink} {
				if e == string(known) {
					o.engines = []engine{known}
				}
			}
		}
		if s := os.Getenv("NEXMARK_SOURCE"); s != "" {
			o.source = s
		}
		if s := os.Getenv("NEXMARK_INTERVAL"); s != "" {
			o.interval = s
		}
	}
	if len(o.engines) == 0 || o.source != generator && o.source != kafkaSource {
		t.Fatalf("$NEXMARK_ENGINES is %s or %s, $NEXMARK_SOURCE %s or %s", ours, flink, generator, kafkaSource)
	}
	// All events fall into ten seconds, as in the benchmark's own runs of 100 million events at 10 million a second.
	o.rate = number(t, "NEXMARK_RATE", max(o.events/10, 1))
	o.queries = queryNames(t, os.Getenv("NEXMARK_QUERIES"))
	return o
}

// number is an environment variable with a positive number.
func number(t *testing.T, name string, usual int) int {
	t.Helper()
	s := os.Getenv(name)
	if s == "" {
		return usual
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 {
		t.Fatalf("$%s is %q, want a positive number", name, s)
	}
	return n
}
