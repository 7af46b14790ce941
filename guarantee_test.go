package streamsql_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: EXPLAIN GUARANTEES says what each connector is worth, and names the segment that is broken. Method: golden files,
// with the real connectors and nothing contacted.
//
//	guarantees  the report of a script's INSERTs and queries
//	json        the same for programs
func TestGuarantees(t *testing.T) {
	datadriven.Walk(t, "testdata/guarantees", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			eng, err := streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": "2"}})
			if err != nil {
				t.Fatal(err)
			}
			defer eng.Close()
			if err := eng.Register(streamsql.Func1("score", func(s string) (int64, error) { return int64(len(s)), nil })); err != nil {
				t.Fatal(err)
			}
			if err := eng.Register(streamsql.Func1("rate", func(s string) (float64, error) { return 1, nil }).NonDeterministic()); err != nil {
				t.Fatal(err)
			}
			all, err := eng.Guarantees(d.Input)
			if err != nil {
				return diag.Render(err, "", d.Input) + "\n"
			}
			if d.Cmd == "json" {
				var b bytes.Buffer
				e := json.NewEncoder(&b)
				e.SetIndent("", "  ")
				e.SetEscapeHTML(false)
				if err := e.Encode(all); err != nil {
					t.Fatal(err)
				}
				return b.String()
			}
			var out []string
			for _, g := range all {
				out = append(out, strings.TrimPrefix(g.Text(), "== Guarantees ==\n"))
			}
			return strings.Join(out, "\n")
		})
	})
}
