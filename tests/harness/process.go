package harness

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Command says what child process to start.
type Command struct {
	Path string   // the program
	Args []string // its arguments, without the program's name
	Env  []string // added to this process's environment, "key=value"
	Dir  string   // working folder; "" is this process's
	// Stdin is what the child reads before it sees the end of its input.
	Stdin string

	cred  *syscall.Credential // run as this user
	death syscall.Signal      // what the child gets when this process dies; 0 is SIGKILL
}

// Process is a running or ended child process whose output is kept in memory. Its methods may be called from any
// goroutine.
type Process struct {
	cmd    *exec.Cmd
	name   string
	out    output
	done   chan struct{} // closed when the child is reaped
	err    error         // cmd.Wait's answer; read after done
	forget func()
}

// Start starts a child process. It is killed when the test ends, and its last output is logged when the test failed.
func Start(t testing.TB, c Command) *Process {
	t.Helper()
	p, err := start(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s (pid %d, %s) wrote:\n%s", p.name, p.Pid(), p.cmd.ProcessState, tail(p.Output(), 40))
		}
	})
	return p
}

func start(c Command) (*Process, error) {
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Env, cmd.Dir = append(os.Environ(), c.Env...), c.Dir
	cmd.Stdin = strings.NewReader(c.Stdin)
	p := &Process{cmd: cmd, name: c.Path, done: make(chan struct{})}
	p.out.cond = sync.NewCond(&p.out.mu)
	cmd.Stdout, cmd.Stderr = &stream{o: &p.out, b: &p.out.stdout}, &stream{o: &p.out, b: &p.out.stderr}
	// A grandchild that keeps the pipe open must not make Wait hang after the child died. The delay is long, since what is
	// still in the pipe after it is lost: on a loaded machine, reading it takes a while.
	cmd.WaitDelay = 15 * time.Second
	death := c.death
	if death == 0 {
		death = syscall.SIGKILL
	}
	cmd.SysProcAttr = sysProcAttr(c.cred, death)

	started := make(chan error)
	go func() {
		// The kernel sends the death signal when the *thread* that forked ends, so this one is kept until the child is
		// gone.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		if err == nil {
			p.forget = notePID(cmd.Process.Pid)
		}
		started <- err
		if err != nil {
			return
		}
		p.err = cmd.Wait()
		p.forget()
		close(p.done)
		p.out.end()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// Pid returns the child's process id.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Done is closed when the child has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// Alive reports whether the child still runs; a stopped (SIGSTOP) one does.
func (p *Process) Alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// Signal sends sig. A child that has ended is not an error.
func (p *Process) Signal(sig syscall.Signal) error {
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("send %v to %s: %w", sig, p.name, err)
	}
	return nil
}

// Kill ends the child with SIGKILL and returns when it is gone.
func (p *Process) Kill() {
	p.cmd.Process.Kill()
	<-p.done
}

// Pause stops the child (SIGSTOP), as a machine that hangs would: it keeps its connections and answers nothing.
func (p *Process) Pause() error { return p.Signal(syscall.SIGSTOP) }

// Resume lets a paused child go on (SIGCONT).
func (p *Process) Resume() error { return p.Signal(syscall.SIGCONT) }

// Wait waits until the child has ended and returns its exit code, -1 when a signal ended it. A child that still runs
// after the timeout is an error and goes on running.
func (p *Process) Wait(timeout time.Duration) (code int, err error) {
	select {
	case <-p.done:
	case <-time.After(timeout):
		return 0, fmt.Errorf("%s still runs after %v; it wrote:\n%s", p.name, timeout, tail(p.Output(), 20))
	}
	var exit *exec.ExitError
	if p.err != nil && !errors.As(p.err, &exit) && !errors.Is(p.err, exec.ErrWaitDelay) {
		return 0, p.err
	}
	return p.cmd.ProcessState.ExitCode(), nil
}

// CPU returns the processor time that the child used, all its threads together. It is zero while the child runs.
func (p *Process) CPU() (user, system time.Duration) {
	select {
	case <-p.done:
		return p.cmd.ProcessState.UserTime(), p.cmd.ProcessState.SystemTime()
	default:
		return 0, 0
	}
}

// Output returns what the child wrote to both streams so far, in the order it arrived.
func (p *Process) Output() string { return p.out.text(&p.out.both) }

// Stdout returns what the child wrote to its standard output so far.
func (p *Process) Stdout() string { return p.out.text(&p.out.stdout) }

// Stderr returns what the child wrote to its standard error so far.
func (p *Process) Stderr() string { return p.out.text(&p.out.stderr) }

// WaitOutput waits until text stands in the child's output (either stream). It is an error when the child ends first or
// the timeout passes.
func (p *Process) WaitOutput(text string, timeout time.Duration) error {
	late := false
	timer := time.AfterFunc(timeout, func() {
		p.out.mu.Lock()
		defer p.out.mu.Unlock()
		late = true
		p.out.cond.Broadcast()
	})
	defer timer.Stop()
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	for !strings.Contains(p.out.both.String(), text) {
		if p.out.ended || late {
			why := "ended"
			if late {
				why = fmt.Sprintf("wrote for %v", timeout)
			}
			return fmt.Errorf("%s %s without writing %q; its last lines:\n%s", p.name, why, text, tail(p.out.both.String(), 20))
		}
		p.out.cond.Wait()
	}
	return nil
}

// output holds both streams of a child.
type output struct {
	mu                   sync.Mutex
	cond                 *sync.Cond
	stdout, stderr, both strings.Builder
	ended                bool
}

func (o *output) text(b *strings.Builder) string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return b.String()
}

func (o *output) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.ended = true
	o.cond.Broadcast()
}

// stream is the writer behind one of the two.
type stream struct {
	o *output
	b *strings.Builder
}

func (s *stream) Write(b []byte) (int, error) {
	s.o.mu.Lock()
	defer s.o.mu.Unlock()
	s.b.Write(b)
	s.o.both.Write(b)
	s.o.cond.Broadcast()
	return len(b), nil
}
