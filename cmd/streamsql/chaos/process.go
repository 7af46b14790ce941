package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
)

// process is a child that runs the jobs of a run.
type process struct {
	cmd     *exec.Cmd
	stdin   io.Closer // open as long as the child may live
	started time.Time
	running chan struct{} // closed when its jobs run
	ran     time.Time     // when; valid after running
	done    chan struct{} // closed when it has ended
	logs    *tail
	result  string
}

// launch is how a child is started.
type launch struct {
	childConfig
	failpoint string
}

// start starts a child for a run. It is killed when ctx ends.
func (r *runner) start(ctx context.Context, run string, l launch) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	r.launched++
	dir := filepath.Join(r.dir, "run-"+run)
	config := filepath.Join(dir, fmt.Sprintf("start-%d.json", r.launched))
	l.Result, l.Embedded = config+".result", r.o.Embedded
	text, err := json.MarshalIndent(l.childConfig, "", " ")
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(config, text, 0o600); err != nil { // it can hold passwords of tables
		return nil, err
	}
	p := &process{cmd: exec.CommandContext(ctx, self, append(append([]string{}, r.o.Child...), config)...), logs: &tail{}, result: l.Result,
		running: make(chan struct{}), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), checkpoint.FailpointEnv+"="+l.failpoint)
	p.cmd.SysProcAttr = childAttributes()
	p.cmd.Stderr = p.logs
	out, w := io.Pipe()
	p.cmd.Stdout = w
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	started, heard := make(chan error, 1), make(chan struct{})
	r.children.Go(func() {
		// The kernel sends the death signal when the thread that forked ends, so this one is kept until the child is gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		p.started = time.Now()
		err := p.cmd.Start()
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // ProcessState tells how
		}
		_ = w.Close()
		<-heard
		close(p.done)
	})
	go func() {
		defer close(heard)
		p.listen(out)
	}()
	return p, <-started
}

// listen waits for the line that tells that the jobs run, and reads what else there is.
func (p *process) listen(out io.Reader) {
	lines := bufio.NewScanner(out)
	for told := false; lines.Scan(); {
		if lines.Text() == running && !told {
			p.ran, told = time.Now(), true
			close(p.running)
		}
	}
}

// kill ends the child as a power cut would, also one that is suspended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended just now
	<-p.done
}

func (p *process) signal(s syscall.Signal) { _ = p.cmd.Process.Signal(s) } // it may have ended just now

// killed reports that it ended by SIGKILL.
func (p *process) killed() bool {
	ws, ok := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL
}

// finished reports that its jobs have ended.
func (p *process) finished() bool { return p.cmd.ProcessState.ExitCode() == 0 }

// refused reports that it ended with an error that it tells, as opposed to a panic or a signal.
func (p *process) refused() bool {
	_, ok := p.lastError()
	return ok && p.cmd.ProcessState.ExitCode() == 1
}

// lastError is the error that it told at its end, on one line.
func (p *process) lastError() (text string, ok bool) {
	lines := strings.Split(strings.TrimSpace(p.logs.String()), "\n")
	for i := len(lines) - 1; i >= 0; i-- {
		if rest, found := strings.CutPrefix(lines[i], "error: "); found {
			return strings.Join(append([]string{rest}, lines[i+1:]...), " "), true
		}
	}
	return "", false
}

// says reports that its last error holds text.
func (p *process) says(text string) bool {
	last, ok := p.lastError()
	return ok && strings.Contains(last, text)
}

// reason is why it failed, for people: its last error, or how it ended and what it wrote first of that.
func (p *process) reason() string {
	if text, ok := p.lastError(); ok {
		return shorten(text)
	}
	out := p.cmd.ProcessState.String()
	lines := strings.Split(strings.TrimSpace(p.logs.String()), "\n")
	i := slices.IndexFunc(lines, func(l string) bool { return strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") })
	return shorten(out + ": " + strings.Join(lines[max(i, 0):], " "))
}

// awaitRunning waits until the jobs run, or the child has ended, which it reports.
func (p *process) awaitRunning(ctx context.Context) (ended bool, err error) {
	select {
	case <-p.running:
		return false, nil
	case <-p.done:
		return true, ctx.Err()
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// awaitEnd waits for the child's end, at most d.
func (p *process) awaitEnd(ctx context.Context, d time.Duration) (ended bool, err error) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-p.done:
		return true, ctx.Err()
	case <-t.C:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// read is what the child told at its end.
func (p *process) read() (res childResult, err error) {
	text, err := os.ReadFile(p.result)
	if err == nil {
		err = json.Unmarshal(text, &res)
	}
	return res, err
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

const tailSize = 16 << 10

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p...)
	if n := len(t.kept) - tailSize; n > 0 {
		t.kept = t.kept[n:]
	}
	return len(p), nil
}

// String is the text kept.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.kept)
}
