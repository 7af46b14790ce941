package nexmark

// Goal: the queries with the largest state are exact, and how fast, when the state does not fit the memory the engines are given. Method: the
// rows that a query's changes leave are counted and summed up by an aggregate that both engines print the changes of, so that the measured
// run itself shows its result; the results of all runs must be equal. A plain test run has few events and less memory, so that state lies on
// disk here too, and compares with Flink's recorded results.

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// largeQueries keep most rows.
var largeQueries = []string{"q7", "q9", "q18", "q19", "q20"}

// loose are the columns of a query that depend on the order in which rows of equal rank come: they are read, but not summed up.
var loose = map[string][]string{
	"q9":  {"bidder", "bid_extra"},
	"q18": {"price", "channel", "url", "extra"},
	"q19": {"bidder", "channel", "url", "`dateTime`", "extra"},
}

// largeResults has what Flink printed: query, events, rate → row.
const largeResults = "testdata/large.json"

func TestLarge(t *testing.T) {
	if testing.Short() {
		t.Skip("starts ten processes: run without -short")
	}
	o := readOptions(t)
	o.digest, o.engines = true, slices.DeleteFunc(o.engines, func(e engine) bool { return e == limit })
	if os.Getenv("NEXMARK_QUERIES") == "" {
		o.queries = largeQueries
	}
	if o.dir == "" {
		o.memory = "1mb"
		checkLarge(t, o)
		return
	}
	o.events, o.rounds, o.memory = number(t, "NEXMARK_EVENTS", 100_000_000), number(t, "NEXMARK_ROUNDS", 1), os.Getenv("NEXMARK_MEMORY")
	if o.memory == "" {
		o.memory = "4gb"
	}
	o.rate, o.warmUp = number(t, "NEXMARK_RATE", max(o.events/10, 1)), number(t, "NEXMARK_WARMUP", max(o.events/100, 1))
	rep, recorded := newReport(o), map[string]string{}
	for _, q := range o.queries {
		t.Run(q, func(t *testing.T) {
			r := measure(t, q, o, nil)
			if !slices.ContainsFunc(r.Runs[flink], func(r run) bool { return !r.Whole.Unfinished }) { // nothing to compare with but all the memory there is
				ample := *o
				ample.memory = ""
				c := newRunner(t, ours, q, &ample).run(t, script(t, q, ours, o, o.events), o.events)
				t.Logf("%s with memory for all: %.0f ns/event of processor time, %d MiB resident", q, c.CPU*1e9/float64(o.events), c.PeakRSS>>20)
				r.Runs[ours] = append(r.Runs[ours], run{Whole: cost{Error: "with more memory", Result: c.Result}})
			}
			rep.Queries = append(rep.Queries, r)
			rep.write(t, o.dir, "nexmark-large")
			results := map[string]bool{}
			for _, runs := range r.Runs {
				for _, run := range runs {
					if run.Whole.Unfinished {
						continue
					}
					results[run.Whole.Result] = true
				}
			}
			if len(results) != 1 || results[""] {
				t.Errorf("%s: the runs do not have one result: %q", q, slices.Sorted(maps.Keys(results)))
			}
			t.Logf("%s: %s", q, slices.Sorted(maps.Keys(results)))
			for _, run := range r.Runs[flink] {
				if run.Whole.Unfinished {
					continue
				}
				recorded[key(q, o)] = run.Whole.Result
			}
		})
	}
	t.Logf("\n%s", rep.markdown())
	if *record && !t.Failed() {
		data, err := json.MarshalIndent(recorded, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(largeResults, append(data, '\n'), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// key names a result in the recorded ones.
func key(query string, o *options) string { return fmt.Sprintf("%s %d %d", query, o.events, o.rate) }

// checkLarge compares with what Flink printed.
func checkLarge(t *testing.T, o *options) {
	t.Helper()
	data, err := os.ReadFile(largeResults)
	if err != nil {
		t.Fatal(err)
	}
	var want map[string]string
	if err := json.Unmarshal(data, &want); err != nil {
		t.Fatal(err)
	}
	for _, q := range o.queries {
		t.Run(q, func(t *testing.T) {
			c := newRunner(t, ours, q, o).run(t, script(t, q, ours, o, o.events), o.events)
			if theirs := want[key(q, o)]; c.Error != "" || c.Result != theirs || c.Result == "" {
				t.Errorf("%s: %s %s\nFlink: %s", key(q, o), c.Result, c.Error, theirs)
			}
		})
	}
}

var (
	insertion = regexp.MustCompile(`(?s)CREATE TABLE (nexmark_q\d+) \((.*?)\) WITH \('connector' = 'memory'[^)]*\);\s*INSERT INTO nexmark_q\d+\s+(.*);\s*$`)
	keyClause = regexp.MustCompile(`, PRIMARY KEY \([^)]*\) NOT ENFORCED`)
	printed   = regexp.MustCompile(`(?m)^digest> ?\+[IU]\[(.*)\]$`)
)

// withDigest replaces the INSERT of a query's script by one of the count and sums of the rows it leaves. All columns are read.
func withDigest(text, query string) (string, error) {
	m := insertion.FindStringSubmatchIndex(text)
	if m == nil {
		return "", fmt.Errorf("%s: no INSERT at the end", query)
	}
	columns, body := keyClause.ReplaceAllString(text[m[4]:m[5]], ""), text[m[6]:m[7]]
	var names, sums, mixed []string
	for _, c := range strings.Split(columns, ", ") {
		name, typ, _ := strings.Cut(c, " ")
		names = append(names, name)
		number := name
		switch {
		case strings.HasPrefix(typ, "VARCHAR"):
			number = "CAST(CHAR_LENGTH(" + name + ") AS BIGINT)"
		case strings.HasPrefix(typ, "TIMESTAMP"):
			number = "CAST(TIMESTAMPDIFF(SECOND, TIMESTAMP '2015-07-15 00:00:00', " + name + ") AS BIGINT) * 1000 + EXTRACT(MILLISECOND FROM " + name + ")"
		}
		if slices.Contains(loose[query], name) {
			sums = append(sums, "SUM(CASE WHEN "+number+" > -1 THEN CAST(1 AS BIGINT) ELSE CAST(0 AS BIGINT) END)")
			continue
		}
		sums = append(sums, "SUM("+number+")")
		mixed = append(mixed, strconv.Itoa(2*len(mixed)+3)+" * ("+number+")")
	}
	// Which values stand in one row shows in the sum of what is left of a division.
	sums = append(sums, "SUM(MOD("+strings.Join(mixed, " + ")+", CAST(1000003 AS BIGINT)))")
	var table []string
	for i := range sums {
		table = append(table, fmt.Sprintf("s%d BIGINT", i))
	}
	return text[:m[0]] + "CREATE TABLE digest (n BIGINT, " + strings.Join(table, ", ") + ") WITH ('connector' = 'print', 'print-identifier' = 'digest', 'sink.parallelism' = '1');\n" +
		"INSERT INTO digest SELECT COUNT(*), " + strings.Join(sums, ", ") + "\nFROM (\n" + body + "\n) AS r (" + strings.Join(names, ", ") + ");\n", nil
}

// lastPrinted is the last row that a digest had.
func lastPrinted(out string) string {
	all := printed.FindAllStringSubmatch(out, -1)
	if len(all) == 0 {
		return ""
	}
	return all[len(all)-1][1]
}
