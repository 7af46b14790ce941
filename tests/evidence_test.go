package tests

// Goal: the pages that say what shows a guarantee tell the truth. Method: read their tables, and look every test and make
// target they name up in the repository.

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// evidencePages are the pages, the letter of their line numbers, and how many lines they have.
var evidencePages = []struct {
	page, letter string
	lines        int
}{
	{"exactly-once-checklist.md", "R", 108},
	{"failures.md", "F", 99},
}

var (
	evidenceLine = regexp.MustCompile(`^\| ([RF])([0-9]+) \|.*\| ([^|]+) \|$`)
	namedTest    = regexp.MustCompile("`((?:Test|Fuzz)[A-Za-z0-9_]+)")
	namedTarget  = regexp.MustCompile("`make ([a-z0-9-]+)")
	aTest        = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)[A-Za-z0-9_]+)\(`)
)

func TestEvidence(t *testing.T) {
	tests := testNames(t, "..")
	makefile, err := os.ReadFile("../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range evidencePages {
		text, err := os.ReadFile(filepath.Join("../docs", p.page))
		if err != nil {
			t.Fatal(err)
		}
		next, open := 1, 0
		for i, line := range strings.Split(string(text), "\n") {
			m := evidenceLine.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at := fmt.Sprintf("docs/%s:%d", p.page, i+1)
			if want := fmt.Sprintf("%s%d", p.letter, next); m[1]+m[2] != want {
				t.Errorf("%s: line %s%s, want %s next", at, m[1], m[2], want)
			}
			next++
			shown := 0
			for _, name := range namedTest.FindAllStringSubmatch(m[3], -1) {
				if shown++; !tests[name[1]] {
					t.Errorf("%s: no test is called %s", at, name[1])
				}
			}
			for _, target := range namedTarget.FindAllStringSubmatch(m[3], -1) {
				if shown++; !strings.Contains(string(makefile), "\n"+target[1]+": ") {
					t.Errorf("%s: the Makefile has no target %s", at, target[1])
				}
			}
			switch {
			case strings.Contains(m[3], "**not yet**"):
				open++
			case shown == 0 && !regexp.MustCompile("`streamsql |`go test |docs/|cannot occur|impossible").MatchString(m[3]):
				t.Errorf("%s: %s names nothing that shows it, and does not say why", at, m[1]+m[2])
			}
		}
		if next-1 != p.lines {
			t.Errorf("docs/%s has %d lines, want %d", p.page, next-1, p.lines)
		}
		t.Logf("docs/%s: %d of %d lines are wholly or partly not yet shown", p.page, open, p.lines)
	}
}

// Goal: the page of fuzzers has all of them and no others. What has no fuzzer is missing in its tables, where a reader sees it.
func TestFuzzersAreListed(t *testing.T) {
	text, err := os.ReadFile("../docs/fuzzing.md")
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, m := range namedTest.FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = true
	}
	there := testNames(t, "..")
	for name := range there {
		if strings.HasPrefix(name, "Fuzz") && !listed[name] {
			t.Errorf("docs/fuzzing.md lacks %s", name)
		}
	}
	for name := range listed {
		if !there[name] {
			t.Errorf("docs/fuzzing.md lists %s, which is not there", name)
		}
	}
}

// testNames are the names of all tests and fuzzers below root.
func testNames(t *testing.T, root string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range aTest.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
