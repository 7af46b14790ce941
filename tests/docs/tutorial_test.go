package docs

// Goal: what the tutorial has the reader type gives what it prints. Method: its sh blocks are run from top to bottom in one
// fresh folder, with the program built here; the text block behind a block is what it prints on standard output, where "…"
// in a line stands for what differs from run to run, and alone for lines left out. The runs end by themselves: where one is
// killed, it is at a named place of the protocol, not after a time.

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/tests/harness"
)

const tutorial = "../../docs/tutorial-exactly-once.md"

func TestTutorial(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program: not with -short")
	}
	t.Parallel()
	text, err := os.ReadFile(tutorial)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := split(string(text))
	if err != nil {
		t.Fatal(err)
	}
	bin, dir := harness.BuildStreamsql(t), t.TempDir()
	shown := map[int]bool{}
	for i, p := range ps {
		switch {
		case !p.fenced:
			continue
		case p.info == "text" && shown[i]:
			continue
		case p.info != "sh":
			t.Fatalf("line %d: a block is sh, or the text that the one before it prints", p.line)
		}
		want := ""
		if at := result(ps, i); at >= 0 {
			want, shown[at] = ps[at].body, true
		}
		sh := exec.CommandContext(t.Context(), "sh", "-ec", p.body)
		sh.Dir, sh.Env = dir, withProgram(bin)
		var out, errs bytes.Buffer
		sh.Stdout, sh.Stderr = &out, &errs
		if err := sh.Run(); err != nil {
			t.Fatalf("line %d: %v\n%s%s", p.line, err, out.String(), errs.String())
		}
		got := trailing.ReplaceAllString(out.String(), "")
		if !printsAs(want, got) {
			t.Errorf("line %d prints\n%s\nthe page says\n%s\non standard error:\n%s", p.line, got, want, errs.String())
		}
	}
}

// withProgram is the environment in which "streamsql" is bin, and nothing is armed.
func withProgram(bin string) []string {
	env := slices.DeleteFunc(os.Environ(), func(e string) bool {
		return strings.HasPrefix(e, "PATH=") || strings.HasPrefix(e, "STREAMSQL_")
	})
	return append(env, "PATH="+filepath.Dir(bin)+":"+os.Getenv("PATH"))
}

// printsAs tells whether got is what the page shows: equal, but for what "…" stands for.
func printsAs(page, got string) bool {
	var re strings.Builder
	re.WriteString("^")
	for l := range strings.Lines(page) {
		if strings.TrimSpace(l) == "…" {
			re.WriteString("(?:.*\n)*?")
			continue
		}
		for i, part := range strings.Split(l, "…") {
			if i > 0 {
				re.WriteString(".*?")
			}
			re.WriteString(regexp.QuoteMeta(part))
		}
	}
	re.WriteString("$")
	return regexp.MustCompile(re.String()).MatchString(got)
}

// TestPrintsAs: dots stand for something within a line, or for lines, and for nothing else.
func TestPrintsAs(t *testing.T) {
	const page = "rows 20, dup … of …\n  …\nend\n"
	for got, want := range map[string]bool{
		"rows 20, dup 3 of x\nend\n":                  true,
		"rows 20, dup 3 of x\nmore\n\nagain\nend\n":   true,
		"rows 21, dup 3 of x\nend\n":                  false,
		"rows 20, dup 3\nof x\nend\n":                 false,
		"rows 20, dup 3 of x\nend\nmore\n":            false,
		"before\nrows 20, dup 3 of x\nmore\nend\n":    false,
		"rows 20, dup 3 of x\nmore\nand more end\n":   false,
		"rows 20, dup 3 of x\nmore\nand more\nend.\n": false,
	} {
		if printsAs(page, got) != want {
			t.Errorf("printsAs(%q) is not %v", got, want)
		}
	}
	if !printsAs("", "") || printsAs("", "x\n") {
		t.Error("a block without text prints nothing")
	}
}
