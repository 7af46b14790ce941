package flink

// Goal: the queries of the Nexmark benchmark give Flink's results over the same events. Method: Flink read the events of our
// source from a file; sizes and hashes of what the results leave are compared.

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors"
)

// eventsEnv asks for another number of events than the 100,000 of the scripts.
const eventsEnv = "STREAMSQL_NEXMARK_EVENTS"

func TestNexmark(t *testing.T) {
	suffix, events := "", "100000"
	if n := os.Getenv(eventsEnv); n != "" {
		if _, err := strconv.Atoi(n); err != nil {
			t.Fatalf("$%s: %v", eventsEnv, err)
		}
		suffix, events = "."+n, n
	} else if testing.Short() {
		t.Skip("100,000 events through every query take half a minute: run without -short")
	}
	files, err := filepath.Glob("testdata/nexmark/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no queries: %v", err)
	}
	failed, total := map[string]string{}, map[string]int{}
	for _, f := range files {
		name := "nexmark/" + strings.TrimSuffix(filepath.Base(f), ".sql")
		golden, err := os.ReadFile(strings.TrimSuffix(f, ".sql") + suffix + ".golden")
		if err != nil {
			t.Fatalf("%v: record it (make test-flink T=nexmark)", err)
		}
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		total["nexmark"]++
		begin := time.Now()
		_, want, _ := strings.Cut(string(golden), "\n")
		got, failure := answerWithin(10*time.Minute, strings.Replace(string(text), "'events.num' = '100000'", "'events.num' = '"+events+"'", 1),
			func(c connectors.Connector) connectors.Connector { return c })
		switch {
		case strings.Contains(want, "error: "):
			// Flink cannot run it: nothing to compare with.
			t.Logf("%s: Flink says %s; here: %v", name, strings.TrimSpace(want), failure)
		case failure != nil:
			failed[name] = failure.Error()
		case want != got:
			failed[name] = difference(want, got)
		}
		t.Logf("%s: %v", name, time.Since(begin).Round(time.Millisecond))
	}
	settle(t, "nexmark/", failed, total)
}
