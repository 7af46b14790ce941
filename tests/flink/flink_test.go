package flink

// Goal: this engine answers scripts and expressions as Apache Flink does. Method: Flink's answers are recorded beside them
// (README.md); what does not agree yet is listed by name, so that nothing that agrees can be lost unseen.

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var rewriteMisses = flag.Bool("misses", false, "write testdata/misses.txt anew, and the .own answers that are not there")

const (
	missesFile    = "testdata/misses.txt"
	acceptsFile   = "testdata/accepts.txt"
	explainedFile = "testdata/explained.txt"
)

// listed are the scripts and expressions of a file that begin with prefix.
func listed(t *testing.T, file, prefix string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	for _, l := range strings.Split(string(text), "\n") {
		if strings.HasPrefix(l, prefix) {
			out[l] = true
		}
	}
	return out
}

// explanation is why some expressions are answered differently on purpose.
type explanation struct {
	why  string
	what *regexp.Regexp
	used bool
}

// explanations reads explainedFile: a line "# why", then expressions as in missesFile or, within slashes, patterns of them.
func explanations(t *testing.T) []*explanation {
	t.Helper()
	text, err := os.ReadFile(explainedFile)
	if err != nil {
		t.Fatal(err)
	}
	var out []*explanation
	why := ""
	for _, l := range strings.Split(string(text), "\n") {
		if w, ok := strings.CutPrefix(l, "# "); ok {
			why = w
			continue
		}
		pattern := regexp.QuoteMeta(l)
		if len(l) > 2 && l[0] == '/' && l[len(l)-1] == '/' {
			pattern = l[1 : len(l)-1]
		}
		if l != "" {
			out = append(out, &explanation{why: why, what: regexp.MustCompile("^(?:" + pattern + ")$")})
		}
	}
	return out
}

// settle compares what did not agree with the list, and says what each area has.
func settle(t *testing.T, prefix string, failed map[string]string, total map[string]int) {
	t.Helper()
	if *rewriteMisses {
		rewrite(t, missesFile, prefix, failed)
		return
	}
	known := listed(t, missesFile, prefix)
	perArea := map[string]int{}
	for _, name := range sorted(failed) {
		perArea[areaOf(name)]++
		if known[name] {
			t.Logf("differs: %s: %s", name, failed[name])
			continue
		}
		t.Errorf("%s: %s", name, failed[name])
	}
	fixed := 0
	for name := range known {
		if _, ok := failed[name]; !ok {
			fixed++
			if testing.Verbose() {
				t.Logf("agrees now: %s", name)
			}
		}
	}
	if fixed > 0 {
		t.Logf("%d entries of %s agree now or are gone: go test ./tests/flink -misses takes them out", fixed, missesFile)
	}
	for _, a := range sorted(total) {
		t.Logf("%-24s %4d of %4d agree with Flink", a, total[a]-perArea[a], total[a])
	}
}

func areaOf(name string) string {
	a, _, _ := strings.Cut(name, " ")
	if i := strings.LastIndexByte(a, '/'); i >= 0 && !strings.HasPrefix(a, "expr/") {
		return a[:i]
	}
	return a
}

// rewrite replaces the entries of a file that begin with prefix.
func rewrite(t *testing.T, file, prefix string, entries map[string]string) {
	text, err := os.ReadFile(file)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var out []string
	for _, l := range strings.Split(strings.TrimSpace(string(text)), "\n") {
		if l != "" && !strings.HasPrefix(l, prefix) {
			out = append(out, l)
		}
	}
	out = append(out, sorted(entries)...)
	slices.Sort(out)
	if err := os.WriteFile(file, []byte(strings.Join(out, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestScripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*/*.sql")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	failed, total := map[string]string{}, map[string]int{}
	for _, f := range files {
		if strings.HasPrefix(f, "testdata/nexmark/") {
			continue // TestNexmark
		}
		name := "sql/" + strings.TrimSuffix(strings.TrimPrefix(f, "testdata/"), ".sql")
		total[areaOf(name)]++
		if why := judge(t, f); why != "" {
			failed[name] = why
		}
	}
	settle(t, "sql/", failed, total)
}

// judge runs a script and says how its answer differs from Flink's; "" when it does not.
func judge(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	base := strings.TrimSuffix(path, ".sql")
	golden, err := os.ReadFile(base + ".golden")
	if err != nil {
		return "has no answer of Flink yet: make test-flink"
	}
	_, want, _ := strings.Cut(string(golden), "\n")
	got, failure := answer(string(text))
	if header(string(text))["differs"] != "" {
		own, err := os.ReadFile(base + ".own")
		if os.IsNotExist(err) && *rewriteMisses {
			err = os.WriteFile(base+".own", []byte(got), 0o644)
			own = []byte(got)
		}
		if err != nil {
			t.Fatal(err)
		}
		if got != string(own) {
			return "differs from its .own answer:\n" + got
		}
		return ""
	}
	wantRows, wantError, fails := strings.Cut(want, "error: ")
	gotRows, _, _ := strings.Cut(got, "error: ")
	switch {
	case failure != nil && !fails:
		if refused(failure) {
			return "refused: " + failure.Error()
		}
		return "fails: " + failure.Error()
	case fails && failure == nil:
		return "answers where Flink says: " + wantError
	case fails && refused(failure) && !aboutSupport.MatchString(wantError):
		return "refused, as by Flink but for another reason: " + failure.Error() + "\nFlink: " + wantError
	}
	if header(string(text))["compare"] == "kinds" {
		wantRows, gotRows = anyOrder(wantRows), anyOrder(gotRows)
	}
	return difference(wantRows, gotRows)
}

// anyOrder sorts the changes of each result.
func anyOrder(s string) string {
	lines := strings.Split(strings.TrimSuffix(s, "\n"), "\n")
	change := func(l string) bool { return len(l) > 2 && (l[0] == '+' || l[0] == '-') && l[2] == '(' }
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && change(lines[j]) {
			j++
		}
		slices.Sort(lines[i:j])
		i = max(i, j-1)
	}
	return strings.Join(lines, "\n") + "\n"
}

var aboutSupport = regexp.MustCompile(`(?i)support|only|must|can't|cannot|not allowed|unknown join type`)

// difference compares answers line by line. Types are compared without NOT NULL, which is part of neither result.
func difference(want, got string) string {
	w, g := strings.Split(plain(want), "\n"), strings.Split(plain(got), "\n")
	if slices.Equal(w, g) {
		return ""
	}
	var out strings.Builder
	for i := range max(len(w), len(g)) {
		a, b := "", ""
		if i < len(w) {
			a = w[i]
		}
		if i < len(g) {
			b = g[i]
		}
		if a != b {
			fmt.Fprintf(&out, "\n    line %d\n      Flink: %s\n      here:  %s", i+1, a, b)
			if strings.Count(out.String(), "line ") == 3 {
				break
			}
		}
	}
	return "another answer:" + out.String()
}

func plain(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		if strings.HasPrefix(l, "schema: ") {
			lines[i] = sameType(l)
		}
	}
	return strings.Join(lines, "\n")
}

// sameType takes out of a type what the comparison leaves alone: NOT NULL, and Flink's marks of time attributes.
func sameType(s string) string {
	return strings.NewReplacer(" NOT NULL", "", " *ROWTIME*", "", " *PROCTIME*", "").Replace(s)
}
