package streamsql_test

// Goal: docs/explain.md shows what EXPLAIN prints with the real connectors. Method: run its statements.

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/streamsql/streamsql"
)

// The example of docs/explain.md is what EXPLAIN prints. STREAMSQL_REWRITE=1 writes it.
func TestExplainDoc(t *testing.T) {
	path := filepath.Join("docs", "explain.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), "```sql\n")
	script, rest, ok2 := strings.Cut(rest, "```\n")
	gap, rest, ok3 := strings.Cut(rest, "```\n")
	old, tail, ok4 := strings.Cut(rest, "```\n")
	if !ok || !ok2 || !ok3 || !ok4 {
		t.Fatal("the page must have a sql block and then the output")
	}
	eng := must(streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": "2"}}))
	defer eng.Close()
	plans, err := eng.Explain(script)
	if err != nil || len(plans) != 1 {
		t.Fatalf("%d plans, %v", len(plans), err)
	}
	want := plans[0]
	if os.Getenv("STREAMSQL_REWRITE") != "" {
		text := head + "```sql\n" + script + "```\n" + gap + "```\n" + want + "```\n" + tail
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if old != want {
		t.Errorf("docs/explain.md shows\n%s\nEXPLAIN prints\n%s", old, want)
	}
}
