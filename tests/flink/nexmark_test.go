package flink

// Goal: the queries of the Nexmark benchmark give Flink's results over the same events. Method: Flink read the events of our
// source from a file; sizes and hashes of what the results leave are compared.

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors"
)

// eventsEnv asks for another number of events than the 100,000 of the scripts, 1000000 for the answers that are recorded.
const eventsEnv = "STREAMSQL_NEXMARK_EVENTS"

const million = "1000000"

// cheap are the queries that a plain test run puts a million events through as well. make nexmark-answers does so with all.
var cheap = []string{"q02", "q03", "q04", "q05", "q08", "q11", "q14", "q15", "q21"}

// patience are how many rows, two a second, keep q12 running until the last window of the clock is over: neither engine gives out
// those that are open at the end. Its file has as many as Flink needs on a busy machine; here fewer do, as a rule.
var patience = []string{"-40", "-400"}

func TestNexmark(t *testing.T) {
	events := os.Getenv(eventsEnv)
	if events == "" {
		if testing.Short() {
			t.Skip("100,000 events through every query take half a minute: run without -short")
		}
		events = "100000"
	} else if _, err := strconv.Atoi(events); err != nil {
		t.Fatalf("$%s: %v", eventsEnv, err)
	}
	files, err := filepath.Glob("testdata/nexmark/q??.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no queries: %v", err)
	}
	failed, total := map[string]string{}, map[string]int{}
	for _, f := range files {
		query := strings.TrimSuffix(filepath.Base(f), ".sql")
		runs := []string{events}
		if os.Getenv(eventsEnv) == "" && slices.Contains(cheap, query) {
			runs = append(runs, million)
		}
		for _, n := range runs {
			total["nexmark"]++
			begin := time.Now()
			why := nexmarkDiffers(t, f, n, "")
			for _, rows := range patience {
				if why == "" || query != "q12" {
					break
				}
				why = nexmarkDiffers(t, f, n, rows)
			}
			if why != "" {
				failed["nexmark/"+query] = why
			}
			t.Logf("%s over %s events: %v, as Flink: %t", query, n, time.Since(begin).Round(time.Millisecond), why == "")
		}
	}
	settle(t, "nexmark/", failed, total)
}

// nexmarkDiffers says how the result of a query over so many events is not Flink's. rows is of patience.
func nexmarkDiffers(t *testing.T, file, events, rows string) string {
	t.Helper()
	if rows == "" {
		rows = "-5"
	}
	suffix := ""
	if events != "100000" {
		suffix = "." + events
	}
	golden, err := os.ReadFile(strings.TrimSuffix(file, ".sql") + suffix + ".golden")
	if err != nil {
		t.Fatalf("%v: record it (make test-nexmark)", err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Replace(string(text), "'events.num' = '100000'", "'events.num' = '"+events+"'", 1)
	script = strings.Replace(script, "'fields.bidder.start' = '-400'", "'fields.bidder.start' = '"+rows+"'", 1)
	_, want, _ := strings.Cut(string(golden), "\n")
	got, err := answerWithin(10*time.Minute, script, func(c connectors.Connector) connectors.Connector { return c })
	switch {
	case strings.Contains(want, "error: "):
		// Flink cannot run it: nothing to compare with.
		t.Logf("%s: Flink says %s; here: %v", file, strings.TrimSpace(want), err)
	case err != nil:
		return err.Error()
	case want != got:
		return difference(want, got)
	}
	return ""
}
