package bigstate

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/streamsql/streamsql/tests/harness"
)

func TestMain(m *testing.M) { harness.Main(m) }

// scale is the size of a run. Keys come as 0, 1, 2, …; the first rows-keys of them come a second time when memory has
// long held others.
type scale struct {
	keys, rows int64
	memory     string // -memory: rows of state, their index, filters and the block cache
	goLimit    string // GOMEMLIMIT: the Go heap and what the runtime needs for it
	bound      int64  // bytes that may be resident at any moment: everything, the program itself included
	interval   string
	timeout    time.Duration
}

// rowBytes is the least that a group takes in memory: row head 24, key 9 padded to 16, counters 32, index slot 8.
const rowBytes = 80

var (
	small = scale{keys: 2_000_000, rows: 2_500_000, memory: "64mb", goLimit: "160MiB", bound: 256 << 20, interval: "1 s", timeout: 5 * time.Minute}
	big   = scale{keys: 20_000_000, rows: 22_000_000, memory: "256mb", goLimit: "512MiB", bound: 800 << 20, interval: "10 s", timeout: 40 * time.Minute}
)

const job = `
SET 'pipeline.name' = 'bigstate';
SET 'execution.checkpointing.interval' = '%[1]s';
SET 'parallelism.default' = '2';
CREATE TABLE src (id BIGINT) WITH ('connector' = 'datagen', 'rows-per-second' = '1000000000',
  'fields.id.kind' = 'sequence', 'fields.id.start' = '0', 'fields.id.end' = '%[2]d');
CREATE TABLE totals (ks BIGINT, n BIGINT, s BIGINT, h BIGINT) WITH (
  'connector' = 'filesystem', 'path' = '%[4]s', 'format' = 'changelog-json');
INSERT INTO totals
  SELECT COUNT(*), SUM(n), SUM(s), SUM(MOD(k * 31 + s * n, CAST(1000003 AS BIGINT)))
  FROM (SELECT MOD(id, %[3]d) AS k, COUNT(*) AS n, SUM(id) AS s FROM src GROUP BY MOD(id, %[3]d)) AS g;
`

// totals is one row of the sink: keys, rows, sum of all values, and a hash of every group that depends on its key.
type totals struct{ Ks, N, S, H int64 }

func (s scale) want() totals {
	w := totals{Ks: s.keys, N: s.rows, S: s.rows * (s.rows - 1) / 2}
	for k := range s.keys {
		n, sum := int64(1), k
		if k < s.rows-s.keys {
			n, sum = 2, 2*k+s.keys
		}
		w.H += (k*31 + sum*n) % 1000003
	}
	return w
}

// The grouped state is several times its memory limit. The process is killed while rows are on disk only, restored from
// a checkpoint, killed again, and ends with the exact result.
func TestLargerThanMemory(t *testing.T) {
	s := small
	if os.Getenv("STREAMSQL_BIG") != "" {
		s = big
	}
	if testing.Short() {
		t.Skip("moves millions of rows: run without -short")
	}
	if limit := int64(mebibytes(t, s.memory)); s.keys*rowBytes < 2*limit {
		t.Fatalf("%d keys fit into %d bytes: the test would show nothing", s.keys, limit)
	}
	bin := harness.BuildStreamsql(t)
	dir := t.TempDir()
	r := &run{t: t, s: s, out: filepath.Join(dir, "out"), state: filepath.Join(dir, "state"), file: filepath.Join(dir, "job.sql"), bin: bin}
	text := fmt.Sprintf(job, s.interval, s.rows-1, s.keys, r.out)
	if err := os.WriteFile(r.file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	for kill := range 2 {
		p := r.start()
		if err := p.WaitOutput("cold rows go to disk", s.timeout); err != nil {
			t.Fatal(err)
		}
		r.waitPublished(p)
		p.Kill()
		t.Logf("kill %d after %v: %d files visible", kill+1, time.Since(began).Round(time.Second), len(r.files()))
	}
	p := r.start()
	if code, err := p.Wait(s.timeout); err != nil || code != 0 {
		t.Fatalf("exit %d, %v", code, err)
	}
	if err := p.WaitOutput("cold rows go to disk", 0); err != nil {
		t.Error(err)
	}
	r.check()
	user, sys := p.CPU()
	t.Logf("%d keys, %d rows, memory %s, GOMEMLIMIT %s: %v wall with two kills; last run %v user, %v system; most resident %d MiB, allowed %d MiB",
		s.keys, s.rows, s.memory, s.goLimit, time.Since(began).Round(time.Second), user.Round(time.Second), sys.Round(time.Second), r.peak.Load()>>20, s.bound>>20)
}

func mebibytes(t *testing.T, s string) int {
	n, err := strconv.Atoi(strings.TrimSuffix(s, "mb"))
	if err != nil {
		t.Fatal(err)
	}
	return n << 20
}

type run struct {
	t                     *testing.T
	s                     scale
	bin, file, out, state string
	peak                  atomic.Int64 // most bytes resident in any of the processes
}

func (r *run) start() *harness.Process {
	p := harness.Start(r.t, harness.Command{Path: r.bin, Env: []string{"GOMEMLIMIT=" + r.s.goLimit},
		Args: []string{"run", r.file, "--state-dir", r.state, "--memory", r.s.memory, "--log", "info"}})
	go r.watch(p)
	return p
}

// watch keeps the process's high-water mark of resident memory. The mark only grows, so that the last sample before the
// end is the truth but for the last moments.
func (r *run) watch(p *harness.Process) {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.Done():
			return
		case <-tick.C:
		}
		peak, ok := highWater(p.Pid())
		for ok {
			old := r.peak.Load()
			if peak <= old || r.peak.CompareAndSwap(old, peak) {
				break
			}
		}
	}
}

// highWater is VmHWM of a process, in bytes; ok is false where /proc has none.
func highWater(pid int) (int64, bool) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, false
	}
	_, rest, ok := strings.Cut(string(b), "VmHWM:")
	if !ok {
		return 0, false
	}
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	return kib << 10, err == nil
}

// files are the visible files of the sink, oldest first.
func (r *run) files() []string {
	entries, err := os.ReadDir(r.out)
	if err != nil && !os.IsNotExist(err) {
		r.t.Fatal(err)
	}
	type file struct {
		path string
		at   time.Time
	}
	var fs []file
	for _, e := range entries {
		if e.IsDir() || strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_") {
			continue
		}
		info, err := e.Info()
		if err != nil {
			r.t.Fatal(err)
		}
		fs = append(fs, file{filepath.Join(r.out, e.Name()), info.ModTime()})
	}
	slices.SortFunc(fs, func(a, b file) int { return a.at.Compare(b.at) })
	paths := make([]string, len(fs))
	for i, f := range fs {
		paths[i] = f.path
	}
	return paths
}

// waitPublished waits until a checkpoint of this process has made a file visible.
func (r *run) waitPublished(p *harness.Process) {
	r.t.Helper()
	before := len(r.files())
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	late := time.After(r.s.timeout)
	for len(r.files()) == before {
		select {
		case <-tick.C:
		case <-p.Done():
			r.t.Fatalf("the job ended before it could be killed")
		case <-late:
			r.t.Fatalf("no checkpoint within %v", r.s.timeout)
		}
	}
}

// check folds the changelog: each change takes back exactly the row before it, and the last row is the result. A row
// lost, repeated or out of date breaks the chain.
func (r *run) check() {
	r.t.Helper()
	var cur totals
	live := false
	changes := 0
	for _, path := range r.files() {
		f, err := os.Open(path)
		if err != nil {
			r.t.Fatal(err)
		}
		defer f.Close()
		for in := bufio.NewScanner(f); in.Scan(); {
			var c struct {
				Data totals
				Op   string
			}
			if err := json.Unmarshal(in.Bytes(), &c); err != nil {
				r.t.Fatalf("%s: %v", path, err)
			}
			changes++
			switch insert := c.Op == "+I" || c.Op == "+U"; {
			case insert && live, !insert && (!live || c.Data != cur):
				r.t.Fatalf("%s: change %d is %s %+v, after %+v", filepath.Base(path), changes, c.Op, c.Data, cur)
			case insert:
				cur, live = c.Data, true
			default:
				live = false
			}
		}
	}
	if want := r.s.want(); !live || cur != want {
		r.t.Errorf("after %d changes the result is %+v, want %+v", changes, cur, want)
	}
	if peak := r.peak.Load(); peak > r.s.bound {
		r.t.Errorf("%d MiB were resident, the bound is %d MiB", peak>>20, r.s.bound>>20)
	}
}
