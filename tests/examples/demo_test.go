package examples

// Goal: "streamsql demo" shows what it promises and leaves nothing behind. Method: run the program, look at what it
// prints, and interrupt it half-way.

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// patience bounds every wait for a process: a loaded machine is slow, a hang is for ever.
const patience = 10 * time.Minute

func TestMain(m *testing.M) { harness.Main(m) }

// startDemo starts the demo with its temporary files in a folder that the test can look into.
func startDemo(t *testing.T, args ...string) (p *harness.Process, tmp string) {
	t.Helper()
	if testing.Short() {
		t.Skip("kills processes for half a minute: run without -short")
	}
	tmp = t.TempDir()
	return harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: append([]string{"demo"}, args...),
		Env: []string{"TMPDIR=" + tmp}}), tmp
}

func TestDemo(t *testing.T) {
	p, tmp := startDemo(t)
	code, err := p.Wait(patience)
	if err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	out := p.Stdout()
	if n := strings.Count(out, "kill -9 "); n != 2 {
		t.Errorf("%d kills, want 2", n)
	}
	for _, want := range []string{
		`rows seen once +608\n`, `duplicates +0\n`, `missing +0\n`, `wrong values +0\n`, `rows left in open transactions +0\n`,
		`INSERT INTO quakes_per_hour`,
		`at-least-once, crash at event 7 +22 +20 +2 +0 `,
		`2PC, crash before commit +20 +20 +0 +0 `,
		`2PC, crash after commit +20 +20 +0 +0 `,
		`2PC, commit before the checkpoint +25 +20 +5 +0 `,
	} {
		if !regexp.MustCompile(want).MatchString(out) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
	if m := regexp.MustCompile(`rows of killed transactions, never visible +(\d+)`).FindStringSubmatch(out); m == nil || m[1] == "0" {
		t.Errorf("no transaction was killed in mid-flight: %v", m)
	}
	nothingLeft(t, tmp)
}

// An interrupted demo ends its child and removes its files.
func TestDemoInterrupted(t *testing.T) {
	p, tmp := startDemo(t)
	if err := p.WaitOutput("job started (pid ", patience); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if code, err := p.Wait(patience); err != nil || code != 1 {
		t.Errorf("exit %d, %v; want 1", code, err)
	}
	if !strings.Contains(p.Stderr(), "interrupted") {
		t.Errorf("stderr: %s", p.Stderr())
	}
	pid := regexp.MustCompile(`job started \(pid (\d+)\)`).FindStringSubmatch(p.Stdout())
	if _, err := os.Stat(filepath.Join("/proc", pid[1])); err == nil {
		t.Errorf("child %s is still there", pid[1])
	}
	nothingLeft(t, tmp)
}

// The cases of the orders can be had by name, each on the real engine with the crash it is for.
func TestDemoCases(t *testing.T) {
	p, tmp := startDemo(t, "early-commit", "before-commit")
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	out := p.Stdout()
	if !regexp.MustCompile(`(?s)2PC, commit before the checkpoint +25 +20 +5 +0 .*2PC, crash before commit +20 +20 +0 +0 `).MatchString(out) ||
		strings.Contains(out, "at-least-once, crash") || strings.Contains(out, "quakes") {
		t.Errorf("not the two cases alone:\n%s", out)
	}
	nothingLeft(t, tmp)
	p, _ = startDemo(t, "nonsense")
	if code, err := p.Wait(patience); err != nil || code != 2 || !strings.Contains(p.Stderr(), "at-least-once, before-commit, after-commit, early-commit") {
		t.Errorf("exit %d, %v: %s", code, err, p.Stderr())
	}
}

func TestDemoHelp(t *testing.T) {
	p := harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"demo", "--help"}})
	if code, err := p.Wait(patience); err != nil || code != 0 || !strings.Contains(p.Stdout(), "-rate") {
		t.Errorf("exit %d, %v: %s", code, err, p.Stdout())
	}
	p = harness.Start(t, harness.Command{Path: harness.BuildStreamsql(t), Args: []string{"demo", "-rate", "0"}})
	if code, err := p.Wait(patience); err != nil || code != 2 {
		t.Errorf("exit %d, %v; want 2", code, err)
	}
}

func nothingLeft(t *testing.T, tmp string) {
	t.Helper()
	left, err := os.ReadDir(tmp)
	if err != nil || len(left) > 0 {
		t.Errorf("left in the temporary folder: %v, %v", left, err)
	}
}
