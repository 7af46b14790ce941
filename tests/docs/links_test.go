package docs

// Goal: whoever follows a link of docs/sql arrives, and finds every page from its README. Method: read the headings.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)\s]+\.md)?(#[^)\s]+)?\)`)
	heading  = regexp.MustCompile(`(?m)^#+ (.+)$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```")
	unlinked = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// anchors are the names that a page's headings can be linked by, as GitHub makes them.
func anchors(text string) map[string]bool {
	out := map[string]bool{}
	for _, m := range heading.FindAllStringSubmatch(fenced.ReplaceAllString(text, ""), -1) {
		out["#"+strings.ReplaceAll(unlinked.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-")] = true
	}
	return out
}

func TestLinks(t *testing.T) {
	files, err := filepath.Glob(folder + "/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	read := func(file string) string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	index := read(folder + "/README.md")
	for _, f := range files {
		text := fenced.ReplaceAllString(read(f), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			to := f
			if m[1] != "" {
				to = filepath.Join(folder, m[1])
			}
			if m[2] != "" && !anchors(read(to))[m[2]] {
				t.Errorf("%s links to %s%s, but there is no such heading", filepath.Base(f), m[1], m[2])
			}
		}
		if name := filepath.Base(f); name != "README.md" && !strings.Contains(index, "("+name+")") {
			t.Errorf("README.md does not list %s", name)
		}
	}
}

func TestAnchors(t *testing.T) {
	got := anchors("# A b\n\n```\n# no heading\n```\n## Group windows (old form)\n## EXISTS and IN: semi and anti joins\n")
	for _, want := range []string{"#a-b", "#group-windows-old-form", "#exists-and-in-semi-and-anti-joins"} {
		if !got[want] {
			t.Errorf("no anchor %s in %v", want, got)
		}
	}
	if len(got) != 3 {
		t.Errorf("anchors %v", got)
	}
}
