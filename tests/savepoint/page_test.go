package savepoint

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/cmd/streamsql/control"
	"github.com/streamsql/streamsql/tests/harness"
)

// The commands of docs/savepoints.md work, in the order they stand there. A line that ends with & runs beside the others, from
// the moment its process answers.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/savepoints.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	bin := harness.BuildStreamsql(t)
	ran := 0
	for i, block := range strings.Split(string(page), "```") {
		lang, body, _ := strings.Cut(block, "\n")
		switch {
		case i%2 == 0:
		case lang == "sql-syntax":
			if err := os.WriteFile(filepath.Join(dir, "job.sql"), []byte(body), 0o600); err != nil {
				t.Fatal(err)
			}
		case lang == "sh":
			for _, line := range strings.Split(strings.TrimSpace(body), "\n") {
				ran++
				line, beside := strings.CutSuffix(line, " &")
				words := strings.Fields(line)
				if words[0] == "curl" {
					continue // nothing runs there any more; TestControlSocket asks the socket
				}
				if words[0] == "streamsql" {
					words[0] = bin
				}
				path := words[0]
				if path == "mv" {
					path = "/bin/mv"
				}
				p := harness.Start(t, harness.Command{Path: path, Args: words[1:], Dir: dir})
				if beside {
					answers(t, p, dir)
				} else if code, err := p.Wait(patience); err != nil || code != 0 {
					t.Fatalf("%s: exit code %d, %v\n%s", line, code, err, p.Output())
				}
			}
		}
	}
	if ran < 10 {
		t.Fatalf("the page has %d commands", ran)
	}
}

// answers waits until a process in some state directory below dir has a job running.
func answers(t *testing.T, p *harness.Process, dir string) {
	t.Helper()
	for ctx := patient(t); ; time.Sleep(time.Millisecond) {
		states, _ := filepath.Glob(filepath.Join(dir, ".streamsql", "*"))
		for _, s := range states {
			jobs, err := control.NewClient(s).Jobs(ctx)
			if err == nil && len(jobs) == 1 && jobs[0].State == "RUNNING" {
				return
			}
		}
		if ctx.Err() != nil || !p.Alive() {
			t.Fatalf("no job runs:\n%s", p.Output())
		}
	}
}
