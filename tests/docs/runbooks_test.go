package docs

// Goal: there is a page for every alarm, and what the pages say to type works. Method: the sh blocks of a page are one script,
// run beside a job that goes on, with the program built here; of commands in other blocks the flags must exist.

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	runtime "github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

const (
	runbooks = "../../docs/runbooks"
	patience = 3 * time.Minute
	// The job of the pages: it never ends, has state, and writes exactly once.
	runbookJob = `SET 'execution.checkpointing.interval' = '100 ms';
CREATE TABLE g (id BIGINT, ts AS CURRENT_TIMESTAMP, WATERMARK FOR ts AS ts)
  WITH ('connector' = 'datagen', 'rows-per-second' = '100', 'fields.id.kind' = 'sequence', 'fields.id.start' = '1', 'fields.id.end' = '1000000');
CREATE TABLE f (id BIGINT) WITH ('connector' = 'filesystem', 'format' = 'json', 'path' = 'out');
INSERT INTO f SELECT id FROM g;
`
)

var (
	flagUsed  = regexp.MustCompile(`(^|\s)(--?[a-zA-Z][a-z-]*)`)
	metricsAt = regexp.MustCompile(`http://([0-9.:]+)/metrics`)
)

func runbookPages(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob(runbooks + "/*.md")
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	return pages
}

func TestRunbooksAreComplete(t *testing.T) {
	index, err := os.ReadFile(runbooks + "/README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range runtime.AlarmNames() {
		if _, err := os.Stat(filepath.Join(runbooks, name+".md")); err != nil {
			t.Errorf("alarm %s has no page", name)
		}
		if !strings.Contains(string(index), fmt.Sprintf("[%[1]s](%[1]s.md)", name)) {
			t.Errorf("README.md does not list alarm %s", name)
		}
	}
	for _, p := range runbookPages(t) {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		if name := filepath.Base(p); name != "README.md" && !strings.Contains(string(index), "("+name+")") {
			t.Errorf("README.md does not list %s", name)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if _, err := os.Stat(filepath.Join(runbooks, m[1])); err != nil {
				t.Errorf("%s links to %s, which is not there", filepath.Base(p), m[1])
			}
		}
	}
}

func TestRunbookCommands(t *testing.T) {
	if testing.Short() {
		t.Skip("builds and runs the program: not with -short")
	}
	bin := harness.BuildStreamsql(t)
	help := map[string]string{}
	for _, p := range runbookPages(t) {
		text, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		pieces, err := split(string(text))
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
		script := ""
		for _, x := range pieces {
			if !x.fenced {
				continue
			}
			for l := range strings.Lines(x.body) {
				checkCommand(t, p, bin, l, help)
			}
			if x.info == "sh" {
				script += x.body
			} else if x.info != "text" {
				t.Errorf("%s: line %d: a block is sh or text", p, x.line)
			}
		}
		if script != "" {
			t.Run(filepath.Base(p), func(t *testing.T) { runBeside(t, bin, script) })
		}
	}
}

// checkCommand looks for the flags of a command of the program in its help.
func checkCommand(t *testing.T, page, bin, line string, help map[string]string) {
	t.Helper()
	words := strings.Fields(line)
	if len(words) < 2 || words[0] != "streamsql" {
		return
	}
	if help[words[1]] == "" {
		b, err := exec.Command(bin, words[1], "--help").CombinedOutput()
		if err != nil {
			t.Fatalf("%s: streamsql %s --help: %v\n%s", page, words[1], err, b)
		}
		help[words[1]] = string(b)
	}
	line, _, _ = strings.Cut(line, "|") // what follows is of another program
	for _, m := range flagUsed.FindAllStringSubmatch(line, -1) {
		if !strings.Contains(help[words[1]], "  "+m[2]+" ") && !strings.Contains(help[words[1]], "  "+m[2]+"\n") {
			t.Errorf("%s: %q: streamsql %s has no flag %s", page, strings.TrimSpace(line), words[1], m[2])
		}
	}
}

// runBeside runs a page's commands while the job runs, and ends both.
func runBeside(t *testing.T, bin, script string) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "job.sql"), []byte(runbookJob), 0o600); err != nil {
		t.Fatal(err)
	}
	p := harness.Start(t, harness.Command{Path: bin, Dir: dir, Args: []string{"run", "job.sql", "--metrics-listen", "127.0.0.1:0"}})
	var address string
	for deadline := time.Now().Add(patience); ; time.Sleep(10 * time.Millisecond) {
		if m := metricsAt.FindStringSubmatch(p.Output()); m != nil {
			address = m[1]
		}
		if chk, _ := filepath.Glob(filepath.Join(dir, ".streamsql", "job", "jobs", "*", "chk-*", "MANIFEST")); len(chk) > 0 && address != "" {
			break
		}
		if !p.Alive() || time.Now().After(deadline) {
			t.Fatalf("the job does not run:\n%s", p.Output())
		}
	}
	script = strings.ReplaceAll(script, "127.0.0.1:9249", address)
	sh := exec.Command("sh", "-exc", script)
	sh.Dir = dir
	sh.Env = withProgram(bin)
	if out, err := sh.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s\nthe job wrote:\n%s", err, out, p.Output())
	}
	if err := p.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	// 143: its input ends at some time, and the signal came before.
	if code, err := p.Wait(patience); err != nil || code != 0 && code != 143 {
		t.Errorf("the job ended with %d, %v:\n%s", code, err, p.Output())
	}
}
