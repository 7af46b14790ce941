package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// attempts bounds how often a run is started again after it failed by itself.
const attempts = 6

// patience bounds what must happen soon, on a loaded machine too.
const patience = 2 * time.Minute

// Trial is what became of one run with faults.
type Trial struct {
	N        int      `json:"n"`
	Fault    string   `json:"fault"`
	Where    []string `json:"where"`    // of each fault
	Injected int      `json:"injected"` // faults that met the jobs at work
	Missed   int      `json:"missed"`   // that came when the jobs had ended
	Starts   int      `json:"starts"`   // of processes
	Restarts int      `json:"restarts"` // of jobs within the last process
	// Recovery is how long each process took from its start until the jobs ran, in milliseconds.
	Recovery []int64 `json:"recovery_ms"`
	Verdict  string  `json:"verdict"`
	Reason   string  `json:"reason,omitempty"` // why nothing can be said
	// Sinks are those that differ.
	Sinks   map[string]Difference `json:"sinks,omitempty"`
	Residue []string              `json:"residue,omitempty"`
	// Litter are hidden files of a process that woke up when another had its place: nobody sees or waits for them.
	Litter  []string `json:"litter,omitempty"`
	Stopped []string `json:"stopped,omitempty"` // reasons of processes that stopped by themselves
	// Unclean is what processes did that no fault excuses: a panic, a stop that does not name its cause.
	Unclean []string `json:"unclean,omitempty"`
	Millis  int64    `json:"ms"`
	Replay  string   `json:"replay,omitempty"`

	late int64
}

// run is a trial under way.
type run struct {
	r     *runner
	t     *trial
	name  string
	steps []step
	out   *Trial

	parallelism int
	offset      time.Duration
	restore     map[string]string // savepoints that jobs start from, by name
	saved       bool              // they were taken by the process before
	ended       []string          // jobs that came to their end in state directories of before
	moved       int               // how often the state directory was left for a new one
}

// prepare makes the shadows and the directory of a run.
func (r *runner) prepare(ctx context.Context, name string) ([]step, error) {
	steps, err := r.script(name)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(filepath.Join(r.dir, "run-"+name), 0o777); err != nil {
		return nil, err
	}
	for _, k := range r.job.sinks {
		if err := k.place.create(ctx, name); err != nil {
			return nil, err
		}
	}
	return steps, nil
}

// forget removes what a run left.
func (r *runner) forget(ctx context.Context, name string) error {
	if r.o.Keep {
		return nil
	}
	for _, k := range r.job.sinks {
		if err := k.place.drop(ctx, name); err != nil {
			return err
		}
	}
	return removeAll(filepath.Join(r.dir, "run-"+name))
}

// try carries a trial out. An error is one of the outside; what became of the jobs is in the Trial.
func (r *runner) try(ctx context.Context, t *trial) (*Trial, error) {
	begun := time.Now()
	u := &run{r: r, t: t, name: fmt.Sprint(t.n), parallelism: t.parallelism, out: &Trial{N: t.n, Fault: t.kind}}
	var err error
	r.through = t.kind == Network
	defer func() { r.through = false }()
	if u.steps, err = r.prepare(ctx, u.name); err != nil {
		return nil, err
	}
	reason, err := u.injure(ctx)
	if err != nil {
		return nil, err
	}
	u.out.Millis = time.Since(begun).Milliseconds()
	if reason != "" {
		u.out.Verdict, u.out.Reason = Inconclusive, reason
	} else if err := r.judge(ctx, u); err != nil {
		return nil, err
	}
	return u.out, r.forget(ctx, u.name)
}

// launch starts a process of the run.
func (u *run) launch(ctx context.Context, l launch) (*process, error) {
	u.out.Starts++
	l.Steps, l.Settings, l.Rate, l.StateDir = u.steps, u.r.settings(u.parallelism), u.r.rate, u.stateDir()
	l.Restore, l.Ended, l.Here, u.saved = u.restore, u.ended, u.saved, false
	if l.Offset == 0 {
		l.Offset = u.offset
	}
	return u.r.start(ctx, u.name, l)
}

// injure carries the faults out and lets the jobs come to their end. reason says why they did not.
func (u *run) injure(ctx context.Context) (reason string, err error) {
	for i := range u.t.faults {
		f := &u.t.faults[i]
		ended := false
		switch u.t.kind {
		case Failpoint:
			u.where("%s, visit %d", f.point, f.hit)
			ended, err = u.crash(ctx, launch{failpoint: fmt.Sprintf("%s:%d:crash", f.point, f.hit)})
		case Network:
			ended, err = u.disturb(ctx, f)
		case Pause:
			ended, err = u.pause(ctx, f)
		case Savepoint:
			ended, err = u.save(ctx, f)
		case Disk:
			ended, err = u.fill(ctx, f)
		case ReadOnly:
			ended, err = u.lock(ctx, f)
		case Server:
			ended, err = u.bounce(ctx, f)
		case Clock:
			u.where("set by %s at %.0f %%, killed later", f.jump, 50*f.at)
			ended, err = u.killAt(ctx, f, launch{childConfig: childConfig{JumpAfter: u.after(f.at / 2), Jump: f.jump}})
			u.offset = f.jump
		case Rescale:
			u.where("at %.0f %%, parallelism %d to %d", 100*f.at, u.parallelism, f.parallelism)
			ended, err = u.killAt(ctx, f, launch{})
		default:
			u.where("at %.0f %%", 100*f.at)
			ended, err = u.killAt(ctx, f, launch{})
		}
		if err != nil {
			return "", err
		}
		u.parallelism = f.parallelism
		if ended {
			u.out.Missed += len(u.t.faults) - i - 1
			return "", nil
		}
	}
	u.offset = 0
	return u.finish(ctx)
}

func (u *run) where(format string, args ...any) {
	u.out.Where = append(u.out.Where, fmt.Sprintf(format, args...))
}

func (u *run) unclean(format string, args ...any) {
	u.out.Unclean = append(u.out.Unclean, fmt.Sprintf(format, args...))
}

// after is a moment of a process's life: of the work that is left when each fault comes later than the one before.
func (u *run) after(fraction float64) time.Duration {
	return time.Duration(fraction * float64(u.r.golden) / float64(len(u.t.faults)))
}

// arrived waits until the jobs run, and notes how long that took. ended reports that the process has ended before.
func (u *run) arrived(ctx context.Context, p *process) (ended bool, err error) {
	if ended, err = p.awaitRunning(ctx); !ended && err == nil {
		u.out.Recovery = append(u.out.Recovery, p.ran.Sub(p.started).Milliseconds())
	}
	return ended, err
}

// reached waits until the jobs run and the moment of the fault has come. ended reports that the process has ended before.
func (u *run) reached(ctx context.Context, p *process, f *fault) (ended bool, err error) {
	if ended, err = u.arrived(ctx, p); ended || err != nil {
		return ended, err
	}
	return p.awaitEnd(ctx, u.after(f.at))
}

// over sorts the end of a process that nobody killed: done, or stopped by itself, which is noted.
func (u *run) over(p *process) (done bool, err error) {
	if !p.finished() {
		u.out.Stopped = append(u.out.Stopped, p.reason())
		if !p.refused() {
			u.unclean("a process broke down: %s", p.reason())
		}
		return false, nil
	}
	res, err := p.read()
	u.out.late += res.Late
	u.out.Restarts = res.Restarts
	return true, err
}

// killAt kills the process at a moment of its work.
func (u *run) killAt(ctx context.Context, f *fault, l launch) (done bool, err error) {
	p, err := u.launch(ctx, l)
	if err != nil {
		return false, err
	}
	ended, err := u.reached(ctx, p, f)
	p.kill()
	if err != nil {
		return false, err
	}
	if ended || !p.killed() {
		u.out.Missed++
		return u.over(p)
	}
	u.out.Injected++
	return false, nil
}

// crash lets a failpoint kill the process.
func (u *run) crash(ctx context.Context, l launch) (done bool, err error) {
	p, err := u.launch(ctx, l)
	if err != nil {
		return false, err
	}
	if _, err = u.arrived(ctx, p); err == nil {
		_, err = p.awaitEnd(ctx, u.r.o.Timeout)
	}
	if err != nil {
		p.kill()
		return false, err
	}
	if p.killed() {
		u.out.Injected++
		return false, nil
	}
	u.out.Missed++
	return u.over(p)
}

// pause suspends a process, lets another one take over, and wakes the first one up while the other works or when it has
// ended. Whatever the first one does then must not be seen.
func (u *run) pause(ctx context.Context, f *fault) (done bool, err error) {
	zombie, err := u.launch(ctx, launch{})
	if err != nil {
		return false, err
	}
	defer zombie.kill()
	ended, err := u.reached(ctx, zombie, f)
	if err != nil {
		return false, err
	}
	when := fmt.Sprintf("wakes after %s", f.hold)
	if f.late {
		when = "wakes when the other has ended"
	}
	u.where("at %.0f %%, %s", 100*f.at, when)
	if ended {
		u.out.Missed++
		return u.over(zombie)
	}
	zombie.signal(syscall.SIGSTOP)
	u.out.Injected++
	other, err := u.launch(ctx, launch{childConfig: childConfig{TakeOver: true}})
	if err != nil {
		return false, err
	}
	defer other.kill()
	if ended, err = u.arrived(ctx, other); err == nil && !ended && !f.late {
		_, err = other.awaitEnd(ctx, f.hold)
	}
	if err == nil && f.late {
		_, err = other.awaitEnd(ctx, u.r.o.Timeout)
	}
	if err != nil {
		return false, err
	}
	zombie.signal(syscall.SIGCONT)
	if ended, err = zombie.awaitEnd(ctx, patience); err != nil {
		return false, err
	}
	if !ended {
		u.out.Stopped = append(u.out.Stopped, "the process that woke up did not end by itself")
	}
	if _, err = other.awaitEnd(ctx, u.r.o.Timeout); err != nil {
		return false, err
	}
	return u.over(other)
}

// fill keeps files from growing for a while. The process may wait, restart its jobs or stop; it must not lose anything.
func (u *run) fill(ctx context.Context, f *fault) (done bool, err error) {
	p, err := u.launch(ctx, launch{})
	if err != nil {
		return false, err
	}
	defer p.kill()
	u.where("at %.0f %%, for %s", 100*f.at, f.hold)
	ended, err := u.reached(ctx, p, f)
	if err != nil {
		return false, err
	}
	if !ended {
		if err := limitFiles(p.cmd.Process.Pid, 0); err != nil {
			u.out.Missed++
			u.out.Stopped = append(u.out.Stopped, "the limit cannot be set: "+err.Error())
		} else {
			u.out.Injected++
		}
		if ended, err = p.awaitEnd(ctx, f.hold); err != nil {
			return false, err
		}
	} else {
		u.out.Missed++
	}
	if !ended {
		// It may have ended just now; then there is nothing to lift.
		_ = limitFiles(p.cmd.Process.Pid, 1<<63-1)
		if _, err = p.awaitEnd(ctx, u.r.o.Timeout); err != nil {
			return false, err
		}
	}
	return u.over(p)
}

// finish runs the jobs without faults until they end.
func (u *run) finish(ctx context.Context) (reason string, err error) {
	for n := 0; n < attempts; n++ {
		p, err := u.launch(ctx, launch{})
		if err != nil {
			return "", err
		}
		_, err = u.arrived(ctx, p)
		if err == nil {
			_, err = p.awaitEnd(ctx, u.r.o.Timeout)
		}
		if err != nil {
			p.kill()
			return "", err
		}
		if done, err := u.over(p); done || err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("the jobs stopped %d times in a row: %s", attempts, u.out.Stopped[len(u.out.Stopped)-1]), nil
}

// judge compares what readers see with the run without faults.
func (r *runner) judge(ctx context.Context, u *run) error {
	got, residue, litter, err := r.look(ctx, u.name)
	if err != nil {
		return err
	}
	if u.t.kind == Pause {
		// The replacement cannot remove what is written after it has looked, and has ended perhaps.
		u.out.Litter, litter = litter, nil
	}
	residue = append(residue, litter...)
	u.out.Residue = residue
	u.out.Verdict = Exact
	for name, want := range r.want {
		have := got[name]
		if d := compare(&want, &have); !d.none() {
			if u.out.Sinks == nil {
				u.out.Sinks = map[string]Difference{}
			}
			u.out.Sinks[name] = d
			u.out.Verdict = Violated
		}
	}
	if len(residue) > 0 || len(u.out.Unclean) > 0 {
		u.out.Verdict = Violated
	}
	if late := u.out.late + r.late; len(u.out.Sinks) > 0 && late > 0 {
		u.out.Verdict = Inconclusive
		u.out.Reason = fmt.Sprintf("%d rows came too late for their windows: which ones depends on the order in which partitions are read", late)
	}
	if u.out.Verdict == Violated {
		u.out.Replay = fmt.Sprintf("%s --seed %d --only %d", r.o.Replay, r.o.Seed, u.t.n)
	}
	return nil
}
