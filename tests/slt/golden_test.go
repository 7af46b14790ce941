package slt

// Goal: an error is part of the product: it says where, what and which edit puts it right. Method: read every golden
// error of the repository.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// leastErrors is how many different wrong statements the goldens have to hold.
const leastErrors = 400

var (
	// goldenError begins an error in the goldens of planner and parser ("1:8: column ...") and in scripts ("error: 1:8: ...").
	goldenError = regexp.MustCompile(`^(error: )?(\d+:\d+: )(.+)$`)
	// wanted is the message of the parser that names what has to stand there: its own hint.
	wanted = regexp.MustCompile(`^expected .+, found .+$`)
	// running is an error of a job: it names table, column and value instead of a place in the statement.
	running = regexp.MustCompile(`^error: task: `)
)

func TestErrorsSayTheEdit(t *testing.T) {
	var files []string
	for _, p := range []string{"*/*.slt", "../../planner/testdata/*.test", "../../sql/testdata/*.txt"} {
		fs, err := filepath.Glob(p)
		if err != nil || len(fs) == 0 {
			t.Fatalf("%s: no goldens: %v", p, err)
		}
		files = append(files, fs...)
	}
	seen := map[string]bool{}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(text), "\n")
		for i, line := range lines {
			m := goldenError.FindStringSubmatch(line)
			if m == nil {
				if strings.HasPrefix(line, "error: ") && !running.MatchString(line) {
					t.Errorf("%s:%d: no position: %s", f, i+1, line)
				}
				continue
			}
			seen[m[3]] = true
			if !hinted(lines[i+1:]) && !wanted.MatchString(m[3]) {
				t.Errorf("%s:%d: no hint: %s", f, i+1, line)
			}
		}
	}
	if len(seen) < leastErrors {
		t.Errorf("%d different errors, want %d", len(seen), leastErrors)
	}
}

// hinted reports that the indented lines that follow an error have a hint.
func hinted(lines []string) bool {
	for _, l := range lines {
		if !strings.HasPrefix(l, "  ") {
			return false
		}
		if strings.HasPrefix(l, "  hint: ") {
			return true
		}
	}
	return false
}
