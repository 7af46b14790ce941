package expr

import (
	"regexp"
	"strings"
	"testing"
)

// Goal: what is recommended in place of another dialect's function exists. Method: every function call in a
// recommendation is looked up.
func TestForeignNamesExistingFunctions(t *testing.T) {
	r := NewRegistry()
	call := regexp.MustCompile(`\b([A-Z][A-Z0-9_]*)\(`)
	// FILTER and the window's words are syntax, the others below are bound outside of the registry.
	syntax := " TUMBLE DESCRIPTOR ROW DECIMAL CAST FILTER "
	for name, text := range foreign {
		if _, ok := r.funcs[name]; ok {
			t.Errorf("%s exists, so nothing need stand in for it", name)
		}
		for _, m := range call.FindAllStringSubmatch(text, -1) {
			_, scalar := r.funcs[m[1]]
			_, agg := LookupAgg(m[1])
			if !scalar && !agg && !strings.Contains(syntax, " "+m[1]+" ") && !isOver(m[1]) {
				t.Errorf("for %s the unknown %s is recommended: %s", name, m[1], text)
			}
		}
	}
}

func isOver(name string) bool { return name == "ROW_NUMBER" }
