package cli

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: the shell as a person sees it. Method: the real binary on a pseudo-terminal; every step types something and
// waits for text on the screen.

// screen is a shell on a pseudo-terminal and what it wrote so far.
type screen struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	done chan struct{} // closed when the shell's output has ended

	mu   sync.Mutex
	cond *sync.Cond
	text strings.Builder
	seen int // how much of text earlier expects have used up
	over bool
}

// patience is how long a step may take on a busy machine.
const patience = 4 * time.Minute

func openShell(t *testing.T, dir string, args ...string) *screen {
	t.Helper()
	cmd := exec.Command(harness.BuildStreamsql(t), args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "STREAMSQL_HISTORY="+filepath.Join(dir, "history"), "TERM=xterm")
	tty, err := pty.StartWithSize(cmd, &pty.Winsize{Rows: 40, Cols: 200})
	if err != nil {
		t.Fatal(err)
	}
	s := &screen{t: t, tty: tty, cmd: cmd, done: make(chan struct{})}
	s.cond = sync.NewCond(&s.mu)
	go s.read()
	t.Cleanup(func() {
		cmd.Process.Kill()
		<-s.done
		tty.Close()
		if t.Failed() {
			t.Logf("the screen:\n%s", s.text.String())
		}
	})
	return s
}

func (s *screen) read() {
	defer close(s.done)
	buf := make([]byte, 4096)
	for {
		n, err := s.tty.Read(buf)
		s.mu.Lock()
		s.text.Write(buf[:n])
		s.over = err != nil
		s.cond.Broadcast()
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// keys types text.
func (s *screen) keys(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// enter types a line.
func (s *screen) enter(line string) { s.t.Helper(); s.keys(line + "\r") }

// expect waits until text appears behind what earlier expects found.
func (s *screen) expect(text string) {
	s.t.Helper()
	late := time.AfterFunc(patience, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.over = true
		s.cond.Broadcast()
	})
	defer late.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		if i := strings.Index(s.text.String()[s.seen:], text); i >= 0 {
			s.seen += i + len(text)
			return
		}
		if s.over {
			s.t.Fatalf("the screen does not show %q", text)
		}
		s.cond.Wait()
	}
}

// exit waits for the end of the shell and checks its exit code.
func (s *screen) exit(code int) {
	s.t.Helper()
	<-s.done
	s.cmd.Wait()
	if got := s.cmd.ProcessState.ExitCode(); got != code {
		s.t.Errorf("exit code %d, want %d", got, code)
	}
}

const generator = "CREATE TABLE numbers (id BIGINT, name STRING) WITH ('connector' = 'datagen', 'rows-per-second' = '50');"

func TestShellStatements(t *testing.T) {
	s := openShell(t, t.TempDir())
	s.expect("streamsql> ")
	// Several lines, a semicolon in a string and one in a comment.
	s.enter("SELECT 'a;b' AS x -- ;")
	s.expect("        -> ")
	s.enter(";")
	s.expect("| a;b |")
	s.expect("1 row in set")
	s.expect("streamsql> ")
	s.enter("SELEC 1;")
	s.expect("1:1: expected a statement, found SELEC")
	s.expect("hint: did you mean SELECT?")
	s.expect("streamsql> ")
	// Ctrl-C gives up a statement.
	s.enter("SELECT")
	s.expect("        -> ")
	s.keys("\x03")
	s.expect("streamsql> ")
	s.enter("SELECT 7 AS seven;")
	s.expect("| seven |")
	s.expect("streamsql> ")
	// The history has whole statements.
	s.keys("\x10")
	s.expect("SELECT 7 AS seven;")
	s.keys("\r")
	s.expect("| seven |")
	s.expect("streamsql> ")
	s.enter("QUIT;")
	s.exit(0)
}

func TestShellCommands(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "more.sql"), []byte("CREATE VIEW v AS SELECT id FROM numbers;\n\n\nSELECT nope FROM v;\nSELECT 99 AS never;\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openShell(t, dir)
	s.expect("streamsql> ")
	s.enter(generator)
	s.expect("OK")
	s.expect("streamsql> ")
	s.enter(`\d`)
	s.expect("| numbers | table |       2 |")
	s.expect("streamsql> ")
	s.enter(`\d numbers`)
	s.expect("BIGINT")
	s.expect("streamsql> ")
	s.enter(`\i more.sql`)
	s.expect("OK")
	s.expect("more.sql:4:8: ")
	s.expect("streamsql> ")
	s.enter(`\dv`)
	s.expect("|    v | view |       1 |")
	s.expect("streamsql> ")
	s.enter(`\df upp`)
	s.expect("UPPER")
	s.expect("streamsql> ")
	s.enter(`\x`)
	s.expect("expanded display is on")
	s.expect("streamsql> ")
	s.enter("SELECT 1 AS uno, 'x' AS name;")
	s.expect("-[ RECORD 1 ]-")
	s.expect("uno  | 1")
	s.expect("name | x")
	s.expect("streamsql> ")
	s.enter(`\timing`)
	s.expect("timing is on")
	s.expect("streamsql> ")
	s.enter("SELECT 1 AS uno;")
	s.expect("1 row in set (")
	s.expect(" seconds)")
	s.expect("streamsql> ")
	s.enter(`\jops`)
	s.expect(`did you mean \jobs?`)
	s.expect("streamsql> ")
	s.enter(`\o rows.txt`)
	s.enter("SELECT 5 AS five;")
	s.enter(`\o`)
	s.enter(`\q`)
	s.exit(0)
	b, err := os.ReadFile(filepath.Join(dir, "rows.txt"))
	if err != nil || !strings.Contains(string(b), "five | 5") {
		t.Errorf("rows.txt: %q, %v", b, err)
	}
}

func TestShellCompletion(t *testing.T) {
	s := openShell(t, t.TempDir())
	s.expect("streamsql> ")
	s.enter(generator)
	s.expect("OK")
	s.expect("streamsql> ")
	s.keys("describ\t")
	s.expect("describe ")
	s.keys("num\t;\r")
	s.expect("BIGINT")
	s.expect("streamsql> ")
	s.keys("\\tim\t\r")
	s.expect("timing is on")
	s.expect("streamsql> ")
	s.keys("\x04") // Ctrl-D
	s.exit(0)
}

func TestShellStreamingQuery(t *testing.T) {
	s := openShell(t, t.TempDir())
	s.expect("streamsql> ")
	s.enter(generator)
	s.expect("OK")
	s.expect("streamsql> ")
	s.enter("SELECT id FROM numbers;")
	s.expect("| op |")
	s.expect("| +I |")
	s.keys("\x03")
	s.expect("Query terminated, received a total of ")
	s.expect("streamsql> ")
	s.enter("SELECT 'alive' AS x;") // the shell lives on
	s.expect("| alive |")
	s.expect("streamsql> ")
	s.enter("exit")
	s.exit(0)
}

func TestShellJobs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "bad.json"), []byte("{\"id\":1}\n{\"id\":\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	s := openShell(t, dir)
	s.expect("streamsql> ")
	for _, stmt := range []string{
		generator,
		"CREATE TABLE bin (id BIGINT) WITH ('connector' = 'blackhole');",
		"CREATE TABLE bad (id BIGINT) WITH ('connector' = 'filesystem', 'path' = 'bad.json', 'format' = 'json');",
	} {
		s.enter(stmt)
		s.expect("OK")
		s.expect("streamsql> ")
	}
	s.enter("INSERT INTO bin SELECT id FROM numbers;")
	s.expect("Job ID: ")
	s.expect("streamsql> ")
	s.enter(`\jobs`)
	s.expect("insert-into_default_catalog.default_database.bin")
	s.expect("streamsql> ")
	s.enter("SET 'pipeline.name' = 'broken';")
	s.expect("OK")
	s.expect("streamsql> ")
	s.enter("INSERT INTO bin SELECT id FROM bad;")
	s.expect("Job ID: ")
	// A failure is told before the next prompt.
	for !strings.Contains(s.screenText(), "job broken failed") {
		s.expect("streamsql> ")
		s.enter("SELECT 1 AS waiting;")
		s.expect("1 row in set")
	}
	s.expect("streamsql> ") // a key pressed between two prompts is lost to the terminal's line discipline
	s.keys("\x04")
	s.expect("stopping 1 job with a final checkpoint")
	s.expect("stopped after")
	s.exit(0)
}

func (s *screen) screenText() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.text.String()
}

func TestShellSecondShellIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := openShell(t, dir)
	s.expect("streamsql> ")
	second := openShell(t, dir)
	second.expect("is in use")
	second.expect("hint: ")
	second.exit(2)
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	s.exit(0) // SIGTERM leaves like \q
}
