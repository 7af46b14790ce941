package harness

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// shared is what one test binary shares between its tests. Guarded by mu, except that mu is not held while a server
// starts: each server has a start lock of its own.
var shared struct {
	mu    sync.Mutex
	main  bool
	dir   string   // this process's directory, "" until first use
	owner *os.File // lock that shows other processes that dir is in use
	stop  []func() // run last to first by Run
	kafka lazy[*Broker]
	pg    lazy[*PG]
	built lazy[string]
}

// lazy starts something once and remembers its outcome. A failed start is remembered too: the tests after the first
// fail at once with the same error instead of waiting again.
type lazy[T any] struct {
	once sync.Once
	v    T
	err  error
}

func (l *lazy[T]) get(start func() (T, error)) (T, error) {
	l.once.Do(func() { l.v, l.err = start() })
	return l.v, l.err
}

// Main runs the tests of a package that uses shared servers, stops the servers and exits. It is the whole TestMain:
//
//	func TestMain(m *testing.M) { harness.Main(m) }
func Main(m *testing.M) { os.Exit(Run(m)) }

// MainParallel is Main for a package whose tests wait for servers and clocks more than they compute: n of those marked
// parallel run at a time, instead of one per processor. The flag -parallel, when it is given, counts more.
func MainParallel(m *testing.M, n int) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", strconv.Itoa(n)); err != nil {
			fmt.Fprintf(os.Stderr, "harness: %v\n", err)
			os.Exit(2)
		}
	}
	Main(m)
}

// Run is Main without the exit, for a TestMain that has more to check: when Run returns, every server is stopped and
// every goroutine of this package has ended.
func Run(m *testing.M) int {
	shared.mu.Lock()
	shared.main = true
	shared.mu.Unlock()
	defer stopShared()
	return m.Run()
}

func stopShared() {
	shared.mu.Lock()
	stop := shared.stop
	shared.stop = nil
	shared.mu.Unlock()
	for i := len(stop) - 1; i >= 0; i-- {
		stop[i]()
	}
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.dir != "" {
		os.RemoveAll(shared.dir)
		shared.owner.Close()
		shared.dir = ""
	}
}

func onStop(f func()) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.stop = append(shared.stop, f)
}

// needMain fails the test of a package that asks for a shared server without a TestMain that would stop it.
func needMain(t testing.TB) {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if !shared.main {
		t.Fatal("harness: a shared server needs this package to declare: func TestMain(m *testing.M) { harness.Main(m) }")
	}
}

// skipShort skips, aloud, a test that needs a real part when the run is -short.
func skipShort(t testing.TB, part string) {
	t.Helper()
	if testing.Short() {
		t.Skipf("needs a real %s: run without -short", part)
	}
}

const dirPrefix = "streamsql-test-"

// runDir returns the directory of this process, made on first use; each caller gets a fresh folder in it.
func runDir(name string) (string, error) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.dir == "" {
		sweep()
		// Not t.TempDir: the servers outlive tests, PostgreSQL runs as another user who must be able to enter, and its
		// socket path may not be longer than 107 bytes.
		dir, err := os.MkdirTemp("", dirPrefix)
		if err != nil {
			return "", err
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			return "", err
		}
		// Locked before it has the name that sweep looks for: the sweep of another process could otherwise come between.
		fresh := filepath.Join(dir, "owner.new")
		if shared.owner, err = lockFile(fresh, true); err != nil {
			return "", err
		}
		if err := os.Rename(fresh, filepath.Join(dir, "owner.lock")); err != nil {
			return "", err
		}
		shared.dir = dir
	}
	return os.MkdirTemp(shared.dir, name)
}

// sweep removes what dead test processes left behind: their directories, and children that still run. Only outside
// Linux can there be such children, since there the kernel ends them with their parent.
func sweep() {
	dirs, _ := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+"*"))
	for _, dir := range dirs {
		path := filepath.Join(dir, "owner.lock")
		if _, err := os.Stat(path); err != nil {
			continue // being made right now, or the ports directory
		}
		lock, err := lockFile(path, false)
		if err != nil || lock == nil {
			continue
		}
		pids, _ := filepath.Glob(filepath.Join(dir, "*.pid"))
		for _, f := range pids {
			pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(f), ".pid"))
			if err != nil {
				continue
			}
			// A pid may belong to another program by now; ours names its directory on its command line.
			if out, _ := exec.Command("ps", "-o", "command=", "-p", fmt.Sprint(pid)).Output(); strings.Contains(string(out), dir) {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		os.RemoveAll(dir)
		lock.Close()
	}
}

// notePID records a child so that sweep can find it should this process die.
func notePID(pid int) (forget func()) {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	if shared.dir == "" {
		return func() {}
	}
	f := filepath.Join(shared.dir, fmt.Sprintf("%d.pid", pid))
	os.WriteFile(f, nil, 0o644)
	return func() { os.Remove(f) }
}

// tail returns the last n lines of s.
func tail(s string, n int) string {
	lines := strings.Split(strings.TrimRight(s, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
