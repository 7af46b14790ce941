package crash

import (
	"bytes"
	"fmt"
	"os"
	"reflect"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

// Goal: a process that is suspended, replaced and woken up writes nothing that anybody sees, says why it ends, and does
// not disturb its replacement. Method: the failpoint action stop suspends the process exactly at a point of the
// protocol; the replacement takes the state directory over.

// zombiePoints are moments at which a process can be suspended: in the middle of a transaction, on either side of
// pre-commit, publish and commit.
var zombiePoints = []string{
	"source.poll:60", "precommit.before:7", "kafka.precommit.before:3", "kafka.precommit.after:3", "postgres.precommit.before:5", "postgres.precommit.after:5",
	"file.precommit.renamed:3", "publish.before:3", "publish.after:3", "kafka.commit.before:3", "postgres.commit.during:3",
	"file.commit.linked:3", "commit.after:3", "confirm.after:3",
}

// suspended starts the job and waits until the failpoint has stopped it.
func (f *fixture) suspended(point string, args ...string) *harness.Process {
	f.t.Helper()
	if runtime.GOOS != "linux" {
		f.t.Skip("reads a process's state from /proc")
	}
	p := f.start(point+":stop", args...)
	deadline := time.Now().Add(patience)
	for !stopped(p.Pid()) {
		if !p.Alive() {
			f.t.Fatalf("the job ended before %s\n%s", point, p.Output())
		}
		if time.Now().After(deadline) {
			f.t.Fatalf("the job did not come to %s within %v\n%s", point, patience, p.Output())
		}
		time.Sleep(5 * time.Millisecond)
	}
	return p
}

// stopped reports whether the process is in state T of proc(5).
func stopped(pid int) bool {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, after, _ := bytes.Cut(b, []byte(") "))
	return bytes.HasPrefix(after, []byte("T"))
}

func (f *fixture) resume(p *harness.Process) {
	if err := p.Signal(syscall.SIGCONT); err != nil {
		f.t.Fatal(err)
	}
}

// gone waits for a woken zombie: it must fail, and say that another process has its place.
func (f *fixture) gone(zombie *harness.Process) {
	f.t.Helper()
	f.refused(zombie, 1, "was taken over", "by process ", "let one process run this job")
}

// The zombie wakes up when its replacement has finished all the work.
func TestZombieWakesAfterReplacementEnded(t *testing.T) {
	t.Parallel()
	for _, point := range harness.Sample(t, 7, zombiePoints) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := newFixtureWith(t, setup{sinks: "kpwuf"})
			zombie := f.suspended(point)
			f.finish("--take-over")
			f.check(rows)
			before := f.visible()
			f.resume(zombie)
			f.gone(zombie)
			if !reflect.DeepEqual(before, f.visible()) {
				t.Error("the zombie changed what readers see")
			}
			f.check(rows)
		})
	}
}

// The zombie wakes up while its replacement is in the middle of the work: it must not take anything from it either.
func TestZombieWakesAtWork(t *testing.T) {
	t.Parallel()
	others := slices.Clone(zombiePoints)
	slices.Reverse(others) // on a day, not those of the other test
	for _, point := range harness.Sample(t, 7, others) {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := newFixtureWith(t, setup{sinks: "kpwuf"})
			zombie := f.suspended(point)
			f.pace(4 * usualRate)
			replacement := f.suspended("publish.after:2", "--take-over")
			f.resume(zombie)
			f.gone(zombie)
			f.resume(replacement)
			f.wait(replacement)
			f.check(rows)
		})
	}
}

// The zombie was suspended while it restored, before and after it committed what the checkpoint lists: when it wakes up,
// aborting leftovers would hit what its replacement has open.
func TestZombieWakesInRestore(t *testing.T) {
	t.Parallel()
	for _, point := range []string{"restore.begin:1", "kafka.commit.before:1", "postgres.commit.during:1", "restore.committed:1", "restore.aborted:1"} {
		t.Run(point, func(t *testing.T) {
			t.Parallel()
			f := newFixtureWith(t, setup{sinks: "kpwuf"})
			f.crashAt("publish.after:2")
			zombie := f.suspended(point)
			f.pace(4 * usualRate)
			replacement := f.suspended("publish.after:2", "--take-over")
			f.resume(zombie)
			f.gone(zombie)
			f.resume(replacement)
			f.wait(replacement)
			f.check(rows)
		})
	}
}
