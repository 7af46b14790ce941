package nexmark

import (
	"bufio"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// cost is what one run took.
type cost struct {
	Events      int
	Wall, CPU   float64 // seconds
	PeakRSS     int64   // bytes
	StateBytes  int64   // most bytes of files below the state's directory, as seen every half second
	Checkpoints int     `json:",omitempty"`
	Checkpoint  int64   `json:",omitempty"` // bytes that the checkpoints wrote, ours to a MiB
	Unfinished  bool    `json:",omitempty"` // stopped after Events events: a lower bound of what one costs, as state only grows
	Error       string  `json:",omitempty"`
	Result      string  `json:",omitempty"` // the last row printed by a digest
}

// runner runs a script of an engine over events.
type runner interface {
	run(t *testing.T, script string, events int) cost
}

// ourRunner starts a process for every script; what it costs to start is in the run over few events too, and goes out.
type ourRunner struct {
	bin  string
	args []string
}

func (r ourRunner) run(t *testing.T, script string, events int) cost {
	t.Helper()
	dir := t.TempDir()
	file, state := filepath.Join(dir, "job.sql"), filepath.Join(dir, "state")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	return process(t, events, state, r.bin, append([]string{"run", file, "--state-dir", state}, r.args...)...)
}

// checkpoints is in what streamsql says when a job has ended.
var checkpoints = regexp.MustCompile(`out, (\d+) checkpoints?(?: of (\d+) MiB)?`)

// process runs a program to its end.
func process(t *testing.T, events int, state, bin string, args ...string) cost {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), stuck)
	defer cancel()
	cmd := exec.CommandContext(ctx, bin, args...)
	size := watch(state)
	begin := time.Now()
	out, err := cmd.CombinedOutput()
	c := cost{Events: events, Wall: time.Since(begin).Seconds(), StateBytes: size()}
	if err != nil {
		c.Error = strings.TrimSpace(string(out)) + ": " + err.Error()
		return c
	}
	c.CPU = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	if u, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		c.PeakRSS = u.Maxrss << 10
	}
	c.Result = lastPrinted(string(out))
	if m := checkpoints.FindSubmatch(out); m != nil {
		c.Checkpoints, _ = strconv.Atoi(string(m[1]))
		mib, _ := strconv.ParseInt(string(m[2]), 10, 64)
		c.Checkpoint = mib << 20
	}
	return c
}

// limitRunner runs the query's program by hand.
type limitRunner struct {
	bin, query string
	rate       int
}

func (r limitRunner) run(t *testing.T, _ string, events int) cost {
	t.Helper()
	return process(t, events, t.TempDir(), r.bin, "-query", r.query, "-events", strconv.Itoa(events), "-rate", strconv.Itoa(r.rate))
}

// buildLimit is the program with the queries by hand.
func buildLimit(t *testing.T) string {
	t.Helper()
	bin := filepath.Join(t.TempDir(), "limit")
	if out, err := exec.Command("go", "build", "-o", bin, "./limit").CombinedOutput(); err != nil {
		t.Fatalf("go build ./limit: %v\n%s", err, out)
	}
	return bin
}

// stuck bounds a run.
const stuck = 2 * time.Hour

// flinkRunner is a Flink cluster that lives for all the runs of a query: its compiled code is warm.
type flinkRunner struct {
	in    *os.File
	lines *bufio.Reader
	state string
	last  string // line that a digest printed
}

// startFlink starts a cluster with a slot for each subtask.
func startFlink(t *testing.T, o *options) *flinkRunner {
	t.Helper()
	dir := t.TempDir()
	r := &flinkRunner{state: filepath.Join(dir, "checkpoints")}
	memory := os.Getenv("NEXMARK_FLINK_MANAGED")
	if memory == "" {
		memory = "4g"
	}
	cmd := exec.CommandContext(t.Context(), "./flink", fmt.Sprintf("taskmanager.numberOfTaskSlots=%d", o.parallelism),
		"taskmanager.memory.managed.size="+memory, "taskmanager.memory.network.min=256m", "taskmanager.memory.network.max=256m",
		"execution.checkpointing.dir=file://"+r.state, "io.tmp.dirs="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdin, r.in, r.lines = child, in, bufio.NewReader(out)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	child.Close()
	t.Cleanup(func() {
		in.Close() // the process ends at the end of its input
		cmd.Wait()
	})
	if l := r.answer(t, "ready"); l != "" {
		t.Fatalf("Flink: %s", l)
	}
	return r
}

// answer reads lines up to one that begins with word, and gives the rest of it.
func (r *flinkRunner) answer(t *testing.T, word string) string {
	t.Helper()
	for {
		l, err := r.lines.ReadString('\n')
		if err != nil {
			t.Fatalf("Flink ended: %v", err)
		}
		if rest, ok := strings.CutPrefix(strings.TrimSuffix(l, "\n"), word); ok {
			return rest
		}
		if printed.MatchString(l) {
			r.last = l
		}
	}
}

func (r *flinkRunner) run(t *testing.T, script string, events int) cost {
	t.Helper()
	c, _ := r.ask(t, script)
	if !c.Unfinished {
		c.Events = events
	}
	return c
}

// ask runs a script and gives its cost and the last row of its SELECT.
func (r *flinkRunner) ask(t *testing.T, script string) (c cost, row string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "job.sql")
	if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	size := watch(r.state)
	fmt.Fprintln(r.in, file)
	r.last = ""
	line := r.answer(t, "done")
	c.Result = lastPrinted(r.last)
	c.StateBytes = size()
	for _, kv := range strings.Split(line, "\t") {
		k, v, _ := strings.Cut(kv, "=")
		n, _ := strconv.ParseInt(v, 10, 64)
		switch k {
		case "error":
			c.Error = v
		case "row":
			row = v
		case "events":
			c.Events, c.Unfinished = int(n), true
		case "wall":
			c.Wall = time.Duration(n).Seconds()
		case "cpu":
			c.CPU = time.Duration(n).Seconds()
		case "rss":
			c.PeakRSS = n
		case "checkpoints":
			c.Checkpoints = int(n)
		case "checkpoint_bytes":
			c.Checkpoint = n
		}
	}
	return c, row
}

// watch adds up the files of a directory every half second until the function it gives is called, which says the most.
func watch(dir string) func() int64 {
	stop, most := make(chan struct{}), make(chan int64)
	go func() {
		var max int64
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for {
			n, seen := int64(0), map[uint64]bool{} // checkpoints are links of the same files
			filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
				if err != nil || d.IsDir() {
					return nil
				}
				if info, err := d.Info(); err == nil {
					if st, ok := info.Sys().(*syscall.Stat_t); !ok || !seen[st.Ino] {
						n += info.Size()
						if ok {
							seen[st.Ino] = true
						}
					}
				}
				return nil
			})
			if n > max {
				max = n
			}
			select {
			case <-stop:
				most <- max
				return
			case <-tick.C:
			}
		}
	}()
	return func() int64 {
		close(stop)
		return <-most
	}
}

// newRunner is what runs the scripts of an engine for one query; nil when there is none.
func newRunner(t *testing.T, e engine, query string, o *options) runner {
	t.Helper()
	switch e {
	case flink:
		return startFlink(t, o)
	case limit:
		r := limitRunner{o.limitBin, query, o.rate}
		if r.run(t, "", tiny).Error != "" {
			return nil
		}
		return r
	}
	r := ourRunner{bin: harness.BuildStreamsql(t)}
	if o.memory != "" {
		r.args = []string{"--memory", o.memory}
	}
	return r
}
