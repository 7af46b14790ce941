package checkpoint

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// Failpoints are named places in the protocol where a test can crash, stop or fail the program. The environment
// variable STREAMSQL_FAILPOINT arms one in this process: name[:hit[:action]]. hit counts from 1 (default) and is the
// visit at which it acts, once; action is crash (SIGKILL to this process, the default), stop (SIGSTOP to this process,
// which goes on from there at SIGCONT), error, hang, sleep=DURATION, or hold=FILE (wait as long as the file exists).
// Tests in the same process use SetFailpoint.
//
// The engine's points, in the order of the protocol: source.poll, barrier.inject, precommit.before, precommit.after,
// inflight.write (unaligned checkpoints), publish.before, publish.after, commit.before, commit.during, commit.after, confirm.after; restore.begin,
// restore.degraded, restore.committed, restore.aborted. A RemoteStore adds publish.uploaded and
// publish.logged. Connectors may add their own.

// FailpointEnv is the environment variable that arms a failpoint.
const FailpointEnv = "STREAMSQL_FAILPOINT"

// failpoint is an armed point, or with counts one that only counts the visits of all points.
type failpoint struct {
	name   string
	hit    int64
	action func(name string) error
	visits atomic.Int64
	counts *sync.Map // name → *atomic.Int64
}

var (
	armed   atomic.Pointer[failpoint]
	envOnce sync.Once
	envErr  error
)

// Failpoint is called at a named place. It returns nil, and costs two atomic loads, unless the point is armed and this
// is the visit to act at.
func Failpoint(name string) error {
	envOnce.Do(armFromEnv)
	f := armed.Load()
	if f == nil {
		return envErr
	}
	if f.counts != nil {
		f.count(name)
		return nil
	}
	if f.name != name || f.visits.Add(1) != f.hit {
		return nil
	}
	return f.action(name)
}

// SetFailpoint arms a point from its text form, see FailpointEnv; "" disarms. It replaces what was armed before.
func SetFailpoint(spec string) error {
	envOnce.Do(func() {})
	return setFailpoint(spec)
}

// CountFailpoints arms nothing and counts the visits of every point from here on: what a run passes, and how often, tells
// where a later one can be made to fail.
func CountFailpoints() {
	envOnce.Do(func() {})
	armed.Store(&failpoint{counts: &sync.Map{}})
}

// FailpointVisits are the visits of each point since CountFailpoints; nil when they are not counted.
func FailpointVisits() map[string]int64 {
	f := armed.Load()
	if f == nil || f.counts == nil {
		return nil
	}
	out := map[string]int64{}
	f.counts.Range(func(name, n any) bool {
		out[name.(string)] = n.(*atomic.Int64).Load()
		return true
	})
	return out
}

func (f *failpoint) count(name string) {
	n, ok := f.counts.Load(name)
	if !ok {
		n, _ = f.counts.LoadOrStore(name, &atomic.Int64{})
	}
	n.(*atomic.Int64).Add(1)
}

// FailpointHit reports whether the armed point has acted.
func FailpointHit() bool {
	f := armed.Load()
	return f != nil && f.visits.Load() >= f.hit
}

// armFromEnv keeps a bad specification: a crash test that arms nothing must not pass.
func armFromEnv() {
	if spec := os.Getenv(FailpointEnv); spec != "" {
		envErr = setFailpoint(spec)
	}
}

func setFailpoint(spec string) error {
	if spec == "" {
		armed.Store(nil)
		return nil
	}
	parts := strings.SplitN(spec, ":", 3)
	f := &failpoint{name: parts[0], hit: 1, action: crash}
	if len(parts) > 1 {
		n, err := strconv.ParseInt(parts[1], 10, 64)
		if err != nil || n < 1 {
			return badFailpoint(spec, "the hit must be a number from 1")
		}
		f.hit = n
	}
	if len(parts) > 2 {
		action, arg, _ := strings.Cut(parts[2], "=")
		switch action {
		case "crash":
		case "stop":
			f.action = suspend
		case "error":
			f.action = failWith
		case "hang":
			f.action = func(string) error { select {} }
		case "sleep":
			d, err := time.ParseDuration(arg)
			if err != nil {
				return badFailpoint(spec, "sleep needs a duration, as in sleep=2s")
			}
			f.action = func(string) error { time.Sleep(d); return nil }
		case "hold":
			if arg == "" {
				return badFailpoint(spec, "hold needs a file, as in hold=/tmp/held")
			}
			f.action = func(string) error { return holdWhile(arg) }
		default:
			return badFailpoint(spec, "actions are crash, stop, error, hang, sleep=DURATION and hold=FILE")
		}
	}
	armed.Store(f)
	return nil
}

func badFailpoint(spec, why string) error {
	return diag.New(diag.Config, diag.Pos{}, "bad failpoint %q in %s", spec, FailpointEnv).WithDetail("%s", why).
		WithHint("write name[:hit[:action]], for example publish.after:2:crash")
}

// crash ends the process as a power cut would: no deferred call runs, nothing is flushed.
func crash(string) error {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // the signal is on its way
}

// suspend halts the whole process, as a hanging machine would, until somebody sends SIGCONT. The signal stops the
// process a moment after it was sent; without the wait this goroutine could pass the point and commit before it does.
func suspend(string) error {
	if err := syscall.Kill(os.Getpid(), syscall.SIGSTOP); err != nil {
		return err
	}
	time.Sleep(100 * time.Millisecond)
	return nil
}

// holdWhile waits until file is gone.
func holdWhile(file string) error {
	for {
		if _, err := os.Stat(file); err != nil {
			return nil
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func failWith(name string) error { return &FailpointError{Name: name} }

// FailpointError is what a failpoint with action error returns. It counts as a failure of the outside: retryable.
type FailpointError struct{ Name string }

// Error implements error.
func (e *FailpointError) Error() string { return fmt.Sprintf("failpoint %s", e.Name) }
