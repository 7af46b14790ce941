package savepoint

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/cmd/streamsql/control"
	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: savepoints of running and of stopped jobs, from the command line, through kills of whoever makes or removes them.
// Method: the real binary; the process that has the failpoint dies there, the next command finds a whole savepoint or none,
// and the job goes on exactly from what is there.

// shop is a job in files of its own.
type shop struct {
	*world
	state string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	s := &shop{world: newWorld(t, []sink{{"grouped", "k BIGINT, n BIGINT, hi BIGINT", "SELECT k, COUNT(*), MAX(id) FROM ev GROUP BY k"}})}
	s.state = filepath.Join(s.dir, "state")
	for name, rate := range map[string]int{"slow.sql": slowly, "fast.sql": fast} {
		// No checkpoint but those that are asked for: what a killed process leaves is then known.
		text := "SET 'pipeline.name' = 'shop';\nSET 'parallelism.default' = '2';\nSET 'table.local-time-zone' = 'UTC';\nSET 'execution.checkpointing.interval' = '1 h';\n" +
			fmt.Sprintf(sources, s.past, rate, genRows-1, s.ver)
		for _, k := range s.sinks {
			text += fmt.Sprintf("CREATE TABLE %s (%s) WITH ('connector' = 'filesystem', 'format' = 'changelog-json', 'path' = '%s');\nINSERT INTO %s %s;\n",
				k.name, k.columns, s.out(k), k.name, k.query)
		}
		if err := os.WriteFile(filepath.Join(s.dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// command starts the program; failpoint "" arms none.
func (s *shop) command(failpoint string, args ...string) *harness.Process {
	s.t.Helper()
	c := harness.Command{Path: harness.BuildStreamsql(s.t), Args: args, Dir: s.dir}
	if failpoint != "" {
		c.Env = []string{checkpoint.FailpointEnv + "=" + failpoint}
	}
	return harness.Start(s.t, c)
}

// run runs the program to its end and wants this exit code; -1 is a kill.
func (s *shop) run(want int, failpoint string, args ...string) (out, errs string) {
	s.t.Helper()
	p := s.command(failpoint, args...)
	code, err := p.Wait(patience)
	if err != nil {
		s.t.Fatal(err)
	}
	if code != want {
		s.t.Fatalf("streamsql %s: exit code %d, want %d:\n%s", strings.Join(args, " "), code, want, p.Output())
	}
	return p.Stdout(), p.Stderr()
}

// job starts the job and waits until its process answers and it runs.
func (s *shop) job(failpoint string, args ...string) *harness.Process {
	s.t.Helper()
	p := s.command(failpoint, append([]string{"run", "slow.sql", "--state-dir", s.state}, args...)...)
	for ctx := patient(s.t); ; time.Sleep(time.Millisecond) {
		jobs, err := control.NewClient(s.state).Jobs(ctx)
		if err == nil && len(jobs) == 1 && jobs[0].State == "RUNNING" {
			return p
		}
		if ctx.Err() != nil || !p.Alive() {
			s.t.Fatalf("%v %v:\n%s", jobs, err, p.Output())
		}
	}
}

func (s *shop) savepoint() string { return filepath.Join(s.dir, "save") }

// present tells whether the savepoint is there; it is then whole.
func (s *shop) present() bool {
	s.t.Helper()
	if _, err := os.Stat(s.savepoint()); err != nil {
		return false
	}
	s.run(0, "", "savepoint", "verify", s.savepoint())
	return true
}

// ends starts the job from the savepoint in a new state directory and wants the whole result.
func (s *shop) ends(want map[string]map[string]int) {
	s.t.Helper()
	s.run(0, "", "run", "fast.sql", "--state-dir", filepath.Join(s.t.TempDir(), "state"), "--restore", s.savepoint())
	s.compare(want)
}

var points = []string{"savepoint.begin", "savepoint.copied", "savepoint.written", "savepoint.after"}

// The process that runs the job dies while it makes a savepoint.
func TestKilledRunningJob(t *testing.T) {
	want := undisturbed(t, newShop(t).sinks)
	for _, point := range points {
		t.Run(point, func(t *testing.T) {
			if testing.Short() && point != "savepoint.written" {
				t.Skip("one point is enough for -short")
			}
			s := newShop(t)
			p := s.job(point)
			_, errs := s.run(1, "", "savepoint", "create", "--state-dir", s.state, s.savepoint())
			if !strings.Contains(errs, "did not answer to the end") {
				t.Errorf("the command says %s", errs)
			}
			if code, err := p.Wait(patience); err != nil || code != -1 {
				t.Fatalf("exit code %d, %v: the process was not killed", code, err)
			}
			made := s.present()
			if made != (point == "savepoint.after") {
				t.Fatalf("the savepoint is there: %v", made)
			}
			if !made {
				// Nobody runs the job: its newest checkpoint becomes the savepoint.
				s.run(0, "", "savepoint", "create", "--state-dir", s.state, s.savepoint())
			}
			s.ends(want)
		})
	}
}

// The command that makes a savepoint of a stopped job dies, and the one that removes it.
func TestKilledCommand(t *testing.T) {
	s := newShop(t)
	want := undisturbed(t, s.sinks)
	p := s.job("")
	s.run(0, "", "stop", "--state-dir", s.state)
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatalf("the process of the stopped job: %d %v\n%s", code, err, p.Output())
	}
	for _, point := range points {
		s.run(-1, point, "savepoint", "create", "--state-dir", s.state, s.savepoint())
		if made := s.present(); made != (point == "savepoint.after") {
			t.Fatalf("%s: the savepoint is there: %v", point, made)
		}
	}
	out, _ := s.run(0, "", "savepoint", "list", s.dir, "-o", "json")
	var found []struct {
		Path, State string
		Checkpoint  int
	}
	if err := json.Unmarshal([]byte(out), &found); err != nil || len(found) != 1 || found[0].Path != s.savepoint() || found[0].State != "complete" {
		t.Fatalf("%v %s", err, out)
	}
	s.ends(want)
	s.run(-1, "dispose.moved", "savepoint", "dispose", s.savepoint())
	if s.present() {
		t.Fatal("it is still there")
	}
	if out, _ := s.run(0, "", "savepoint", "list", s.dir); !strings.Contains(out, "unfinished") {
		t.Fatalf("the list says %s", out)
	}
	s.run(0, "", "savepoint", "dispose", s.savepoint())
	if left, _ := filepath.Glob(s.savepoint() + "*"); len(left) > 0 {
		t.Fatalf("left: %v", left)
	}
	s.run(2, "", "savepoint", "dispose", s.savepoint())
}

// A process that dies between the final checkpoint and its savepoint has stopped the job: nothing is lost, and the
// savepoint can be made afterwards.
func TestKilledStop(t *testing.T) {
	want := undisturbed(t, newShop(t).sinks)
	for _, point := range []string{"publish.after", "commit.after", "savepoint.copied"} {
		t.Run(point, func(t *testing.T) {
			s := newShop(t)
			p := s.job(point)
			s.run(1, "", "stop", "--state-dir", s.state, "--savepoint", s.savepoint())
			if code, err := p.Wait(patience); err != nil || code != -1 {
				t.Fatalf("exit code %d, %v: the process was not killed", code, err)
			}
			if s.present() {
				t.Fatal("a savepoint of a commit that was not confirmed")
			}
			if point != "savepoint.copied" { // its output may not be committed: not below that checkpoint
				_, errs := s.run(2, "", "savepoint", "create", "--state-dir", s.state, s.savepoint())
				if !strings.Contains(errs, "lists output that is not committed") {
					t.Fatalf("the command says %s", errs)
				}
				p := s.job("")
				s.run(0, "", "stop", "--state-dir", s.state, "--savepoint", s.savepoint())
				if code, err := p.Wait(patience); err != nil || code != 0 {
					t.Fatal(code, err)
				}
			} else {
				s.run(0, "", "savepoint", "create", "--state-dir", s.state, s.savepoint())
			}
			s.ends(want)
		})
	}
}

// The control socket: for its user only, replaced after a kill, in a directory with a long name too.
func TestControlSocket(t *testing.T) {
	s := newShop(t)
	s.state = filepath.Join(s.dir, strings.Repeat("long", 40), "state")
	p := s.job("")
	st, err := os.Stat(filepath.Join(s.state, control.SocketName))
	if err != nil || st.Mode().Perm() != 0o600 || st.Mode().Type() != os.ModeSocket {
		t.Fatalf("%v %v", st, err)
	}
	_, errs := s.run(2, "", "stop", "--state-dir", s.state, "--job", "nope")
	if !strings.Contains(errs, `there is no job "nope"`) || !strings.Contains(errs, "shop") {
		t.Fatalf("the command says %s", errs)
	}
	s.run(2, "", "savepoint", "create", "--state-dir", s.state, s.dir) // exists
	s.run(2, "", "run", "slow.sql", "--state-dir", s.state)            // owned
	p.Kill()
	if _, err := os.Stat(filepath.Join(s.state, control.SocketName)); err != nil {
		t.Fatal(err)
	}
	_, errs = s.run(2, "", "stop", "--state-dir", s.state)
	if !strings.Contains(errs, "no process runs jobs") {
		t.Fatalf("the command says %s", errs)
	}
	p = s.job("")
	out, _ := s.run(0, "", "stop", "--job", "shop", "--state-dir", s.state, "--drain", "--savepoint", "default", "-o", "json")
	var stopped control.Stopped
	if err := json.Unmarshal([]byte(out), &stopped); err != nil || filepath.Dir(stopped.Path) != filepath.Join(s.state, "savepoints") || stopped.Name != "shop" {
		t.Fatalf("%v %s", err, out)
	}
	if code, err := p.Wait(patience); err != nil || code != 0 {
		t.Fatal(code, err)
	}
	left, err := filepath.Glob(filepath.Join(s.state, "*control*"))
	if err != nil || len(left) > 0 {
		t.Fatalf("left: %v %v", left, err)
	}
	s.run(0, "", "savepoint", "show", stopped.Path)
	s.run(0, "", "check", filepath.Join(s.dir, "fast.sql"), "--against", stopped.Path)
}
