package nexmark

// Goal: to see whether a change made a query slower. Method: the processor time of an event, over that of a loop which is measured beside
// each run, is compared with what was recorded last; the least of the rounds counts on both sides. It reports and does not fail: the
// machine has a say too.

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

var record = flag.Bool("record", false, "record the figures of TestCheck instead of comparing with them")

// checked are the queries of the check: scalar, joins, windows, distinct and grouped aggregates, deduplication.
var checked = []string{"q0", "q1", "q4", "q5", "q15", "q17", "q18", "q20"}

// worse is how much slower a query must be to be reported.
const worse = 1.15

// recorded are the figures of the last recording: loops an event, by query.
type recorded struct {
	When, Machine string
	Events        int
	Loops         map[string]float64
}

func TestCheck(t *testing.T) {
	if os.Getenv("STREAMSQL_NEXMARK") == "" {
		t.Skip("a measurement: make bench-check")
	}
	file := filepath.Join("testdata", "check.json")
	o := readOptions(t)
	o.source, o.engines = generator, []engine{ours}
	o.events, o.rounds = number(t, "NEXMARK_EVENTS", 1_000_000), number(t, "NEXMARK_ROUNDS", 5)
	now := recorded{When: time.Now().UTC().Format(time.DateOnly), Machine: machine(), Events: o.events, Loops: map[string]float64{}}
	r := ourRunner{bin: harness.BuildStreamsql(t)}
	for _, q := range checked {
		for range o.rounds {
			loop := calibrate()
			one := run{Start: r.run(t, script(t, q, ours, o, tiny), tiny), Whole: r.run(t, script(t, q, ours, o, o.events), o.events)}
			loop = min(loop, calibrate())
			if e := one.Start.Error + one.Whole.Error; e != "" {
				t.Fatalf("%s: %s", q, e)
			}
			if v := one.nanos(one.Whole.CPU-one.Start.CPU) / loop; now.Loops[q] == 0 || v < now.Loops[q] {
				now.Loops[q] = v
			}
		}
		t.Logf("%s: %.1f loops an event", q, now.Loops[q])
	}
	if *record {
		data, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	var last recorded
	data, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(data, &last)
	}
	if err != nil {
		t.Fatalf("%v: record figures first (make bench-check RECORD=1)", err)
	}
	t.Logf("\n%s", compare(last, now))
}

// compare is the report.
func compare(last, now recorded) string {
	var s strings.Builder
	fmt.Fprintf(&s, "Recorded %s on %s, %d events; now %d events on %s.\n\n| query | recorded | now | ratio | |\n|---|---|---|---|---|\n", last.When, last.Machine, last.Events, now.Events, now.Machine)
	for _, q := range checked {
		ratio, note := now.Loops[q]/last.Loops[q], ""
		if ratio > worse {
			note = "slower"
		}
		fmt.Fprintf(&s, "| %s | %.1f | %.1f | %.2f | %s |\n", q, last.Loops[q], now.Loops[q], ratio, note)
	}
	return s.String()
}

// sum keeps the loop from being left out.
var sum uint64

// calibrate is the time of one step of a loop that hashes numbers and reads a table of a megabyte, in ns: the least of some tries. The
// loop runs alone on its thread, so time is processor time but for what the neighbours take.
func calibrate() float64 {
	const steps = 4 << 20
	table := make([]uint64, 1<<17)
	least := time.Duration(1 << 62)
	for range 7 {
		began := time.Now()
		h := uint64(1)
		for i := range uint64(steps) {
			h = (h ^ i) * 0x9E3779B97F4A7C15
			h ^= h >> 29
			table[h&(1<<17-1)] += h
		}
		least = min(least, time.Since(began))
		sum += table[h&(1<<17-1)]
	}
	return float64(least) / steps
}

// The report names the query that became slower, and no other.
func TestCompare(t *testing.T) {
	last, now := recorded{Loops: map[string]float64{}}, recorded{Loops: map[string]float64{}}
	for i, q := range checked {
		last.Loops[q], now.Loops[q] = float64(10+i), float64(10+i)*1.1
	}
	now.Loops["q5"] *= 1.1
	for _, l := range strings.Split(compare(last, now), "\n") {
		if strings.Contains(l, "slower") != strings.HasPrefix(l, "| q5 ") {
			t.Errorf("%q", l)
		}
	}
}
