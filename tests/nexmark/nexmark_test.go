package nexmark

// Goal: what the Nexmark queries cost here and on Flink, in one run on one machine. Method: the engines take turns; of each run the
// cost of a run over few events is taken off. A plain test run checks that every query runs here.

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

func TestNexmark(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a process for each of 22 queries: run without -short")
	}
	o := readOptions(t)
	if o.source == kafkaSource {
		o.load(t)
	}
	if slices.Contains(o.engines, limit) {
		o.limitBin = buildLimit(t)
	}
	if slices.Contains(o.engines, flink) && slices.Contains(o.engines, ours) {
		sameEvents(t, o)
	}
	rep := newReport(o)
	shared := map[engine]runner{}
	if o.oneFlink && slices.Contains(o.engines, flink) {
		shared[flink] = startFlink(t, o)
	}
	for _, q := range o.queries {
		t.Run(q, func(t *testing.T) {
			rep.Queries = append(rep.Queries, measure(t, q, o, shared))
			if o.dir != "" {
				rep.write(t, o.dir, "nexmark") // after each query: a run of hours leaves what it has
			}
		})
	}
	if o.dir != "" {
		t.Logf("\n%s", rep.markdown())
	}
}

// measure runs a query on every engine in turn. Each query has a Flink of its own, so that its compiled code fits it alone, unless
// they share one.
func measure(t *testing.T, query string, o *options, shared map[engine]runner) queryReport {
	t.Helper()
	r := queryReport{Query: query, Runs: map[engine][]run{}}
	runners := map[engine]runner{}
	for _, e := range o.engines {
		if runners[e] = shared[e]; runners[e] == nil {
			if runners[e] = newRunner(t, e, query, o); runners[e] == nil {
				continue
			}
		}
		if e == flink {
			runners[e].run(t, script(t, query, e, o, o.warmUp), o.warmUp)
		}
	}
	for round := range o.rounds {
		for i := range o.engines {
			e := o.engines[(i+round)%len(o.engines)] // who is first changes
			if runners[e] == nil {
				continue
			}
			one := run{Start: runners[e].run(t, script(t, query, e, o, tiny), tiny), Whole: runners[e].run(t, script(t, query, e, o, o.events), o.events)}
			for _, c := range []cost{one.Start, one.Whole} {
				if c.Error != "" {
					t.Errorf("%s on %s over %d events: %s", query, e, c.Events, c.Error)
				}
			}
			r.Runs[e] = append(r.Runs[e], one)
			if o.dir != "" {
				t.Logf("%s %s: %s", query, e, one)
			}
		}
	}
	return r
}

// sameEvents checks that both engines are fed the same: sums over all fields.
func sameEvents(t *testing.T, o *options) {
	t.Helper()
	const fields = "person.id person.name person.emailAddress person.creditCard person.city person.state person.extra auction.id auction.itemName auction.description " +
		"auction.initialBid auction.reserve auction.seller auction.category auction.extra bid.auction bid.bidder bid.price bid.channel bid.url bid.extra"
	cols := []string{"COUNT(*)", "SUM(event_type)", "MAX(`dateTime`)", "MAX(auction.expires)"}
	for _, f := range strings.Fields(fields) {
		cols = append(cols, "SUM(CHAR_LENGTH(CAST("+f+" AS STRING)))", "MIN("+f+")", "MAX("+f+")")
	}
	for _, f := range []string{"bid.auction", "bid.bidder", "bid.price", "auction.reserve", "auction.seller"} {
		cols = append(cols, "SUM("+f+")")
	}
	sql := func(e engine) string {
		ddl, _, _ := strings.Cut(script(t, "q0", e, o, min(o.events, 200_000)), "CREATE VIEW")
		return ddl + "SELECT " + strings.Join(cols, ", ") + " FROM datagen;\n"
	}
	f := startFlink(t, o)
	c, theirs := f.ask(t, sql(flink))
	if c.Error != "" {
		t.Fatal(c.Error)
	}
	file := filepath.Join(t.TempDir(), "sum.sql")
	if err := os.WriteFile(file, []byte(sql(ours)), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"run", "-o", "json", "-q", file, "--state-dir", t.TempDir()}})
	if code, err := p.Wait(stuck); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	lines := strings.Split(strings.TrimSpace(p.Stdout()), "\n")
	if a, b := values(theirs), values(lines[len(lines)-1]); a != b || a == "" {
		t.Fatalf("the engines do not read the same events:\nFlink %s\nhere  %s", a, b)
	}
}

var (
	jsonKey = regexp.MustCompile(`"[^"]*":`)
	noise   = regexp.MustCompile(`["\[\]{}T ]|\.000|^[+]?[IU]`)
)

// values are the values of a row as either engine prints it.
func values(row string) string {
	if _, in, ok := strings.Cut(row, "["); ok && strings.HasPrefix(row, "+") {
		row = in
	}
	return noise.ReplaceAllString(jsonKey.ReplaceAllString(row, ""), "")
}

func (r run) String() string {
	return fmt.Sprintf("%.0f ns/event of processor time, %.0f ns/event of time, %d MiB resident", r.nanos(r.Whole.CPU-r.Start.CPU), r.nanos(r.Whole.Wall-r.Start.Wall), r.Whole.PeakRSS>>20)
}
