package nexmark

import (
	"os"
	"slices"
	"strconv"
	"strings"
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
	limitBin    string        // the program with the queries by hand
	topics      map[int]topic // with the events, by their number
	runs        int           // scripts made for Kafka so far
	memory      string        // that streamsql may take for state, such as 4gb; "" is its default
	digest      bool          // the queries' results are summed up and printed
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
		o.oneFlink = os.Getenv("NEXMARK_FLINK_SHARED") != ""
		o.engines = append(o.engines, flink, limit)
		if e := os.Getenv("NEXMARK_ENGINES"); e != "" {
			o.engines = nil
			for _, name := range words(e) {
				o.engines = append(o.engines, engine(name))
			}
		}
		if s := os.Getenv("NEXMARK_SOURCE"); s != "" {
			o.source = s
		}
		if s := os.Getenv("NEXMARK_INTERVAL"); s != "" {
			o.interval = s
		}
	}
	if o.source != generator && o.source != kafkaSource {
		t.Fatalf("$NEXMARK_SOURCE is %s or %s", generator, kafkaSource)
	}
	for _, e := range o.engines {
		if e != ours && e != flink && e != limit {
			t.Fatalf("$NEXMARK_ENGINES: no engine %s: there are %s, %s and %s", e, ours, flink, limit)
		}
	}
	if o.source == kafkaSource { // the programs by hand make their events
		o.engines = slices.DeleteFunc(o.engines, func(e engine) bool { return e == limit })
	}
	// All events fall into ten seconds, as in the benchmark's own runs of 100 million events at 10 million a second.
	o.rate = number(t, "NEXMARK_RATE", max(o.events/10, 1))
	o.queries = queryNames(t, os.Getenv("NEXMARK_QUERIES"))
	return o
}

// words are the parts of a list with commas or blanks.
func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == ' ' })
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
