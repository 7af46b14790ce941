package chaos

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// comesBack bounds how long a server is on its way up: a broker on a loaded machine takes minutes.
const comesBack = 10 * time.Minute

// bounce has the user's command kill and restart a broker or a database under a process at work, waits until the systems of all
// sinks answer again, and lets the jobs come to their end.
func (u *run) bounce(ctx context.Context, f *fault) (done bool, err error) {
	command := u.r.o.Servers[f.rand().IntN(len(u.r.o.Servers))]
	u.where("at %.0f %%: %s", 100*f.at, command)
	p, err := u.launch(ctx, launch{})
	if err != nil {
		return false, err
	}
	defer p.kill()
	ended, err := u.reached(ctx, p, f)
	if err != nil {
		return false, err
	}
	if ended {
		u.out.Missed++
		return u.over(p)
	}
	if err := u.r.command(ctx, command); err != nil {
		return false, err
	}
	u.out.Injected++
	if err := u.r.answer(ctx, u.name, command); err != nil {
		return false, err
	}
	if _, err = p.awaitEnd(ctx, u.r.o.Timeout); err != nil {
		return false, err
	}
	return u.over(p)
}

// command runs a command of the user's with the shell. What it starts may live on.
func (r *runner) command(ctx context.Context, text string) error {
	out, err := os.Create(filepath.Join(r.dir, "server-fault.out"))
	if err != nil {
		return err
	}
	defer out.Close()
	limited, cancel := context.WithTimeout(ctx, comesBack)
	defer cancel()
	cmd := exec.CommandContext(limited, "/bin/sh", "-c", text)
	// A file and no pipe: a server that it starts may hold its output for ever. A group of its own, so that Ctrl-C reaches this
	// process only.
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = out, out, &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	if err == nil {
		return nil
	}
	why := err.Error()
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case limited.Err() != nil:
		why = fmt.Sprintf("it did not end within %s", comesBack)
	}
	if said, err := os.ReadFile(out.Name()); err == nil && len(said) > 0 {
		why += ": " + shorten(strings.TrimSpace(string(said)))
	}
	return &inconclusive{fmt.Sprintf("the command of --server-fault failed: %s: %s", text, why),
		"the command has to end with 0 when the server is on its way up again; a server that it starts runs in the background"}
}

// answerWithin bounds one question to a system that may be on its way up.
const answerWithin = 10 * time.Second

// answer waits until the systems of all sinks answer, as they did before the user's command.
func (r *runner) answer(ctx context.Context, run, command string) error {
	for _, k := range r.job.sinks {
		for deadline := time.Now().Add(comesBack); ; {
			err := k.place.answers(ctx, run)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if time.Now().After(deadline) {
				return &inconclusive{fmt.Sprintf("table %s: its system has not answered for %s after %q: %v", k.table.Name, comesBack, command, err),
					"the command of --server-fault has to start again what it stops"}
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}
