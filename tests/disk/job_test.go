package disk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/errors/oserror"
	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// patience bounds every wait: a loaded machine is slow, a hang is for ever.
const patience = 5 * time.Minute

// The job reads files that come one after the other, and writes two tables. Each shows another way of being wrong: firsts has
// every id once, though each is read twice, as long as the state of the ids is kept; counts has every row read, and
// numbers the rows of each k, so that state that is lost, or counted twice, leaves a gap or a number that is there twice.
const script = `
CREATE TABLE src (id BIGINT, k BIGINT, s STRING, pt AS PROCTIME()) WITH ('connector' = 'filesystem', 'path' = '%[1]s/in', 'format' = 'json', 'source.monitor-interval' = '2 ms');
CREATE TABLE firsts (id BIGINT, s STRING) WITH ('connector' = 'filesystem', 'path' = '%[1]s/out/firsts', 'format' = 'json');
CREATE TABLE counts (id BIGINT, k BIGINT, n BIGINT) PARTITIONED BY (k) WITH ('connector' = 'filesystem', 'path' = '%[1]s/out/counts', 'format' = 'json');
EXECUTE STATEMENT SET BEGIN
  INSERT INTO firsts SELECT id, s FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY pt) AS rn FROM src) WHERE rn = 1;
  INSERT INTO counts SELECT id, k, COUNT(*) OVER (PARTITION BY k ORDER BY pt ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) FROM src;
END;
`

const (
	files   = 6   // of the input
	perFile = 120 // ids that are new in a file; as many are those of the file before
	keys    = 4
)

func text(id int) string {
	return fmt.Sprintf("%d:%s", id, strings.Repeat(string(rune('a'+id%26)), 120))
}

// run is one job, from its first row to its last, over as many processes as that takes.
type run struct {
	t    *testing.T
	seed uint64
	rnd  *rand.Rand
	root string
	v    *volume

	settings map[string]string
	memory   int64
	remote   bool
	inMemory bool
	restore  string // a savepoint, for the next start
	given    int    // files of the input that are there
	log      logBuffer
	seen     map[string]bool // output files that were read
	firsts   map[int]bool
	counts   map[[2]int]bool // k, n
	rows     map[int]int     // id: rows of it in counts
	bad      string          // a wrong row
}

// newRun prepares a job on a disk, in memory or the machine's.
func newRun(t *testing.T, seed uint64, inMemory bool) *run {
	t.Helper()
	r := &run{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 11)), root: t.TempDir(), inMemory: inMemory}
	r.settings = map[string]string{
		"pipeline.name": "disk", "parallelism.default": "2", "execution.checkpointing.interval": "1000 d",
		"restart-strategy.type": "fixed-delay", "restart-strategy.fixed-delay.delay": "1 ms", "restart-strategy.fixed-delay.attempts": "3",
		"execution.checkpointing.tolerable-failed-checkpoints": []string{"0", "2"}[r.rnd.IntN(2)],
	}
	// All state in memory, or hardly any: rows then go to cold chunks and to Pebble.
	r.memory = []int64{0, 64 << 10, 4 << 10}[r.rnd.IntN(3)]
	for _, dir := range []string{"in", "state", "save"} {
		if err := os.Mkdir(filepath.Join(r.root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	var fs vfs.FS = machine
	if inMemory {
		mem := vfs.NewCrashableMem()
		for _, dir := range []string{"state", "save"} {
			if err := mem.MkdirAll(filepath.Join(r.root, dir), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		// The directories above are older than the job: a power cut does not take them away.
		for d := r.root; ; d = filepath.Dir(d) {
			if f, err := mem.OpenDir(d); err == nil {
				_ = f.Sync()
				_ = f.Close()
			}
			if d == "/" {
				break
			}
		}
		fs = split{mem, filepath.Join(r.root, "in")}
	}
	r.v = newVolume(r.root, fs, r.rnd)
	r.forget()
	return r
}

// elsewhere keeps the checkpoints outside of the state directory, as several machines would.
func (r *run) elsewhere() {
	r.remote = true
	r.settings["execution.checkpointing.dir"] = "file://" + filepath.Join(r.root, "remote")
}

// forget makes the run read its output again.
func (r *run) forget() {
	r.seen, r.firsts, r.counts, r.rows = map[string]bool{}, map[int]bool{}, map[[2]int]bool{}, map[int]int{}
}

// repower is the disk after its end: what a power cut left, or as it is.
func (r *run) repower() {
	fs := r.v.FS
	if r.v.after != nil {
		fs = split{r.v.after, filepath.Join(r.root, "in")}
	}
	r.v = newVolume(r.root, fs, r.rnd)
}

func (r *run) failf(format string, args ...any) {
	r.t.Helper()
	r.t.Fatalf("seed %d: %s\nreplay: STREAMSQL_TEST_DISK_SEED=%d go test ./tests/disk -run TestDiskFaults -v\nlog of the job:\n%s",
		r.seed, fmt.Sprintf(format, args...), r.seed, r.log.tail())
}

// give adds the next file to the input.
func (r *run) give() {
	r.t.Helper()
	if r.given == files {
		return
	}
	var b bytes.Buffer
	for i := range perFile {
		for _, f := range []int{r.given, max(r.given-1, 0)} {
			id := f*perFile + i
			if f != r.given || r.given == 0 {
				id = f*perFile + perFile - 1 - i // the second time in another order
			}
			fmt.Fprintf(&b, `{"id":%d,"k":%d,"s":"%s"}`+"\n", id, id%keys, text(id))
		}
	}
	name := filepath.Join(r.root, "in", fmt.Sprintf("%02d.jsonl", r.given))
	err := os.WriteFile(filepath.Join(r.root, "in", ".new"), b.Bytes(), 0o600)
	if err == nil {
		err = os.Rename(filepath.Join(r.root, "in", ".new"), name)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	r.given++
}

// ids is how many ids the input has so far, times how often each row of an id is read.
func (r *run) ids() int { return r.given * perFile }

// times is how often the input has id.
func (r *run) times(id int) int {
	switch f := id / perFile; {
	case f == 0 && r.given > 1:
		return 3 // twice in the first file, once in the second
	case f == 0:
		return 2
	case f < r.given-1:
		return 2
	}
	return 1
}

// numbered is how many rows of k the input has.
func (r *run) numbered(k int) (n int) {
	for id := k; id < r.ids(); id += keys {
		n += r.times(id)
	}
	return n
}

// complete tells whether all output is there for the input so far. Wrong rows are noted in r.bad.
func (r *run) complete() bool {
	r.look()
	n := 0
	for k := range keys {
		n += r.numbered(k)
	}
	return len(r.firsts) == r.ids() && len(r.counts) == n
}

// look reads output that is new.
func (r *run) look() {
	r.lookIn(filepath.Join(r.root, "out", "firsts"), 0)
	for k := range keys {
		r.lookIn(filepath.Join(r.root, "out", "counts", fmt.Sprintf("k=%d", k)), k)
	}
}

func (r *run) lookIn(dir string, k int) {
	names, err := r.v.FS.List(dir)
	if oserror.IsNotExist(err) {
		return
	}
	if err != nil {
		r.t.Fatal(err)
	}
	for _, name := range names {
		path := filepath.Join(dir, name)
		if name[0] == '.' || r.seen[path] {
			continue
		}
		r.seen[path] = true
		f, err := r.v.FS.Open(path)
		if err != nil {
			r.t.Fatal(err)
		}
		data, err := io.ReadAll(f)
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			r.t.Fatal(err)
		}
		for line := range bytes.Lines(data) {
			r.row(path, line, k, strings.Contains(dir, "firsts"))
		}
	}
}

func (r *run) row(path string, line []byte, k int, first bool) {
	var x struct {
		ID int    `json:"id"`
		S  string `json:"s"`
		N  int    `json:"n"`
	}
	wrong := func(why string) {
		if r.bad == "" {
			r.bad = fmt.Sprintf("%s in %s: %s", bytes.TrimSpace(line), path, why)
		}
	}
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	switch err := d.Decode(&x); {
	case err != nil:
		wrong(err.Error())
	case x.ID < 0 || x.ID >= r.ids():
		wrong("no such row was in the input")
	case first && x.S != text(x.ID):
		wrong("another text was in the input")
	case first && r.firsts[x.ID]:
		wrong("the id is there twice")
	case first:
		r.firsts[x.ID] = true
	case x.ID%keys != k:
		wrong("the row belongs to another key")
	case x.N < 1 || x.N > r.numbered(k):
		wrong("so many rows were not in the input")
	case r.counts[[2]int{k, x.N}]:
		wrong("the number is there twice")
	case r.rows[x.ID] == r.times(x.ID):
		wrong("the row is there too often")
	default:
		r.counts[[2]int{k, x.N}] = true
		r.rows[x.ID]++
	}
}

// process is what became of the job in one process.
type process struct {
	err      error // why it failed, if it did
	cut      bool  // it was cut off from its disk
	saved    bool  // it stopped with a savepoint
	done     bool  // all input was read and committed
	restarts int
	givenUp  int // checkpoints
}

// plan is what is done to the job in one process, apart from faults.
type plan struct {
	pauseAt int // stop without a trace when so many files are given, 0 = never
	// saveAt is to take a savepoint then and go on, stopAt to stop with one.
	saveAt, stopAt int
	into           string
}

// process runs the job once, until its end, its failure, or what the plan says.
func (r *run) process(p plan) (out process) {
	r.t.Helper()
	vfs.Default = r.v
	defer func() { vfs.Default = machine }()
	o := &streamsql.Options{Settings: r.settings, Memory: r.memory, Redefine: true, Log: slog.New(slog.NewTextHandler(&r.log, nil))}
	o.Restore.Path = r.restore
	e, err := streamsql.Open(filepath.Join(r.root, "state"), o)
	if err != nil {
		return process{err: err, cut: r.isCut()}
	}
	j, err := r.begin(e)
	if err != nil {
		_ = e.Close() // what it could not start is the error
		return process{err: err, cut: r.isCut()}
	}
	over, died := make(chan struct{}), r.v.died
	go func() {
		select {
		case <-died:
			j.Cancel()
		case <-over:
		}
	}()
	defer close(over)
	out = r.feed(j, p)
	s := j.Status()
	out.restarts, out.givenUp, out.cut = s.Restarts, s.Checkpoint.GivenUp, r.isCut()
	if err := e.Close(); err != nil && out.err == nil && !out.cut {
		out.err = err
	}
	return out
}

func (r *run) isCut() bool {
	r.v.mu.Lock()
	defer r.v.mu.Unlock()
	return r.v.dead
}

func (r *run) begin(e *streamsql.Engine) (*streamsql.Job, error) {
	for s := e.Script(fmt.Sprintf(script, r.root)); ; {
		res, err := s.Next(context.Background())
		if err != nil {
			return nil, err
		}
		if res.Job != nil {
			return res.Job, nil
		}
	}
}

func (r *run) feed(j *streamsql.Job, p plan) (out process) {
	ctx := context.Background()
	for deadline := time.Now().Add(patience); ; {
		r.give()
		_, err := j.Checkpoint(ctx)
		if err == nil && p.saveAt == r.given {
			p.saveAt = 0
			if _, _, err := j.Savepoint(ctx, p.into+"-before"); err != nil {
				r.clean(err)
			}
		}
		switch {
		case j.Status().State.Ended():
			if err := j.Wait(ctx); !errors.Is(err, context.Canceled) {
				out.err, out.done = err, err == nil
			}
			return out
		case p.pauseAt == r.given:
			j.Cancel()
			_ = j.Wait(ctx)
			return out
		case p.stopAt == r.given:
			err := j.Stop(ctx, streamsql.StopOptions{Savepoint: p.into})
			return process{err: err, saved: err == nil}
		case r.given == files && r.complete():
			err := j.Stop(ctx, streamsql.StopOptions{Drain: true})
			return process{err: err, done: err == nil}
		case r.bad != "":
			r.failf("wrong row %s", r.bad)
		case time.Now().After(deadline):
			r.failf("the job does not come to its end: it is %s, %v; %d of %d ids", j.Status().State, j.Status().Err, len(r.firsts), r.ids())
		}
	}
}

// clean checks that an error is one that a person can act on: it is no bug, and names the fault and the file.
func (r *run) clean(err error) {
	r.t.Helper()
	var de *diag.Error
	if !errors.As(err, &de) || de.Code == diag.Internal {
		r.failf("not a clean error: %v", err)
	}
	var fired []string
	for _, f := range r.v.happened() {
		if f.what == slow {
			continue
		}
		if names(err.Error(), f, r.root) {
			return
		}
		fired = append(fired, f.String())
	}
	r.failf("the error names none of the faults %q: %v", fired, err)
}

// finished checks what a job that came to its end left.
func (r *run) finished(residue bool) {
	r.t.Helper()
	r.forget()
	if done := r.complete(); !done || r.bad != "" {
		r.failf("the output is not what the input says: %d ids of %d, %d numbered rows; first wrong row: %q", len(r.firsts), r.ids(), len(r.counts), r.bad)
	}
	if !residue {
		return
	}
	dirs := []string{"firsts"}
	for k := range keys {
		dirs = append(dirs, fmt.Sprintf("counts/k=%d", k))
	}
	for _, d := range dirs {
		names, err := r.v.FS.List(filepath.Join(r.root, "out", d))
		if err != nil {
			r.t.Fatal(err)
		}
		for _, n := range names {
			if n[0] == '.' {
				r.failf("left behind: %s/%s", d, n)
			}
		}
	}
}

// logBuffer keeps the log of a job.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func (l *logBuffer) tail() string {
	s := l.text()
	return s[max(0, len(s)-6000):]
}

// names tells whether the text of an error names a fault: what the operating system said, and of which file.
func names(text string, f *fault, root string) bool {
	if !strings.Contains(text, f.errno().Error()) {
		return false
	}
	if f.what == full {
		return strings.Contains(text, root) // any file that was next
	}
	return strings.Contains(text, filepath.Base(f.path))
}

// ended tells whether the run has said durably that it has come to its end: starting the job again would be a new run.
func (r *run) ended() bool {
	r.t.Helper()
	if r.remote {
		return r.given == files && r.complete() // the directory is a copy that may be older
	}
	jobs := filepath.Join(r.root, "state", "jobs")
	names, err := r.v.FS.List(jobs)
	if err != nil || len(names) == 0 {
		return false
	}
	dir := filepath.Join(jobs, names[0])
	cs, err := checkpoint.ReadCheckpoints(r.v.FS, dir)
	if err != nil || len(cs) == 0 {
		return false
	}
	confirmed, err := checkpoint.ReadConfirmed(r.v.FS, dir)
	if err != nil {
		return false
	}
	open, err := checkpoint.ReadLineages(r.v.FS, dir)
	return err == nil && cs[0].Final && confirmed >= cs[0].ID && !slices.Contains(open, cs[0].Lineage)
}
