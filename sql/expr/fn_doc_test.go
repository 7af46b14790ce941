package expr

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

//go:generate go test -run TestFunctionsDoc -update-docs

var updateDocs = flag.Bool("update-docs", false, "write docs/sql/functions.md")

// TestFunctionsDoc: the page is the one the table gives. go generate writes it.
func TestFunctionsDoc(t *testing.T) {
	path := filepath.Join("..", "..", "docs", "sql", "functions.md")
	want := FunctionsDoc()
	if *updateDocs {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Error("docs/sql/functions.md is old: run go generate ./sql/expr")
	}
	for _, f := range NewRegistry().Functions() {
		if f.Doc == "" || !strings.HasPrefix(f.Usage, f.Name) || strings.Count(want, "\n| `"+docCell(f.Usage)+"`") != 1 {
			t.Errorf("%s has no line of its own: usage %q, doc %q", f.Name, f.Usage, f.Doc)
		}
	}
	used := map[string]bool{}
	for _, e := range NewRegistry().Reference() {
		// CURRENT_WATERMARK needs a table: tests/slt/stream/current_watermark.slt.
		if len(e.Examples) == 0 && e.Name != "CURRENT_WATERMARK" || e.Group == "" {
			t.Errorf("%s %q has no example", e.Name, e.Usage)
		}
		used[e.Name], used[e.Usage] = true, true
	}
	for key := range examples {
		if _, agg := LookupAgg(key); !used[key] && (agg || !IsFlinkAgg(key)) {
			t.Errorf("there is nothing called %q to have an example", key)
		}
	}
}

// TestFlinkNames: every function of Flink is there or refused as unsupported, with something to write instead; other
// names are unknown.
func TestFlinkNames(t *testing.T) {
	r := NewRegistry()
	have := 0
	for _, n := range flinkFunctions {
		if r.Lookup(n) != nil {
			have++
			continue
		}
		_, err := r.NewCall(strings.ToLower(n), nil, CallOptions{}, Session{})
		if err == nil || !strings.Contains(err.Error(), "function "+n+" is not supported") || insteadOf(n) == "" {
			t.Errorf("%s: %v", n, err)
		}
	}
	if have < 140 {
		t.Errorf("%d of Flink's functions", have)
	}
	known := map[string]bool{}
	for _, n := range flinkFunctions {
		known[n] = true
	}
	for _, f := range r.Functions() {
		if !known[f.Name] {
			t.Errorf("%s is no function of Flink", f.Name)
		}
	}
	if _, err := r.NewCall("frobnicate", nil, CallOptions{}, Session{}); err == nil || !strings.Contains(err.Error(), "unknown function") {
		t.Errorf("got %v", err)
	}
}
