package metrics

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var rewrite = flag.Bool("rewrite", false, "write the table of docs/metrics.md")

const (
	page  = "../../../docs/metrics.md"
	begin = "<!-- figures: go test ./metrics -rewrite -->\n"
	end   = "<!-- end of figures -->\n"
)

// Goal: docs/metrics.md lists every figure, and no other. Method: its table is made from the list.
func TestPage(t *testing.T) {
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(b), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the figures", page)
	}
	var sb strings.Builder
	sb.WriteString("| name | labels behind the job's | kind | meaning |\n|---|---|---|---|\n")
	for _, f := range figures {
		labels := ""
		for _, l := range f.labels()[2:] {
			labels += ", `" + l + "`"
		}
		kind := map[bool]string{true: "counter", false: "gauge"}[f.kind == jobRestarts.kind]
		mark := ""
		if f.flink {
			mark = " (Flink)"
		}
		fmt.Fprintf(&sb, "| `%s` | %s | %s | %s%s |\n", f.Name(), strings.TrimPrefix(labels, ", "), kind, f.help, mark)
	}
	want := head + begin + sb.String() + end + tail
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if want != string(b) {
		t.Errorf("%s does not list the figures as they are: go test ./metrics -rewrite", page)
	}
}
