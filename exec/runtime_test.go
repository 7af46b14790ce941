package exec_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// trace records what operators see, in order.
type trace struct {
	mu      sync.Mutex
	lines   []string
	changed chan struct{}
}

func newTrace() *trace { return &trace{changed: make(chan struct{})} }

func (l *trace) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
	close(l.changed)
	l.changed = make(chan struct{})
}

func (l *trace) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.lines, " ")
}

// until waits until the trace ends in s.
func (l *trace) until(ctx context.Context, t *testing.T, s string) {
	t.Helper()
	for {
		l.mu.Lock()
		text, changed := strings.Join(l.lines, " "), l.changed
		l.mu.Unlock()
		if strings.HasSuffix(text, s) {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("trace %q does not come to end in %q", text, s)
		}
	}
}

// probe traces rows (their v), watermarks and barriers of a single subtask, and passes rows on.
type probe struct {
	exec.Stateless
	log *trace
}

func (p *probe) Open(exec.Subtask) error { return nil }
func (p *probe) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	for i := range b.Len() {
		p.log.add("%d", b.Cols[1].I64[b.Row(i)])
	}
	return out.Emit(b)
}
func (p *probe) OnWatermark(w exec.Watermark, _ exec.Emitter) error {
	if w == exec.MaxWatermark {
		p.log.add("w=max")
	} else {
		p.log.add("w=%d", w)
	}
	return nil
}

func probed(bus *memory.Bus, l *trace, w *exec.WatermarkSpec) *exec.Graph {
	g := newGraph(bus)
	g.sink("out", 1, forward(g.op("probe", 1, func() exec.Operator { return &probe{log: l} }, forward(g.source("in", 1, w)))))
	return g.g
}

// TestOnEventWatermarks: the watermark comes right after the row that causes it wherever a later row would be late.
func TestOnEventWatermarks(t *testing.T) {
	bus := memory.NewBus()
	bus.Feed("in").Append(0, row(1, 1, 10), row(1, 2, 20), row(1, 3, 30), row(1, 4, 15), row(1, 5, 40), row(1, 6, 40), row(1, 7, 50))
	bus.Feed("in").Close()
	l := newTrace()
	if err := start(t, probed(bus, l, rowtime(true, 200, 0)), exec.JobOptions{}).wait(); err != nil {
		t.Fatal(err)
	}
	if got, want := l.String(), "1 2 3 w=30 4 5 w=40 6 7 w=50 w=max"; got != want {
		t.Fatalf("%s, want %s", got, want)
	}
}

// TestChainedWatermarkStays: an operator chained to its source finds the event time of before a restart again, though the split that the
// restart finds behind, idle before, would give a lower one.
func TestChainedWatermarkStays(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(2)
	f.Append(1, row(1, 1, 50))
	f.Append(0, row(1, 2, 100))
	l := newTrace()
	var clock testClock
	o := exec.JobOptions{Owner: checkpoint.OwnMemory(), Now: clock.now}
	defer o.Owner.Close()
	ctx := patient(t)
	j := start(t, probed(bus, l, rowtime(true, 0, 1000)), o)
	l.until(ctx, t, "w=50")
	untilRead(ctx, t, j, 2)
	clock.advance(600 * time.Millisecond)
	f.Append(0, row(1, 3, 200))
	l.until(ctx, t, "3")
	untilRead(ctx, t, j, 3)
	clock.advance(600 * time.Millisecond) // split 1 is idle now
	l.until(ctx, t, "w=200")
	f.Append(1, row(1, 4, 60)) // and is back, behind
	l.until(ctx, t, "4")
	untilRead(ctx, t, j, 4)
	if err := j.Stop(ctx, exec.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	l = newTrace()
	j = start(t, probed(bus, l, rowtime(true, 0, 1000)), o)
	f.Append(1, row(1, 5, 300))
	l.until(ctx, t, "5")
	f.Append(0, row(1, 6, 310))
	l.until(ctx, t, "w=300")
	// Once when the operator is opened, once from the source.
	if got, want := l.String(), "w=200 w=200 5 6 w=300"; got != want {
		t.Errorf("after the restart the operator finds %q, want %q", got, want)
	}
	if err := j.Stop(ctx, exec.StopOptions{}); err != nil {
		t.Fatal(err)
	}
}

// TestSplitWatermarks: the source's watermark is the minimum over its splits; an idle split leaves it, comes back
// without moving it back, and the restored watermarks are those of the checkpoint.
func TestSplitWatermarks(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(2)
	f.Append(0, row(1, 1, 100))
	l := newTrace()
	var clock testClock
	o := exec.JobOptions{Owner: checkpoint.OwnMemory(), Now: clock.now}
	defer o.Owner.Close()
	ctx := patient(t)
	j := start(t, probed(bus, l, rowtime(true, 0, 1000)), o)
	l.until(ctx, t, "1")
	f.Append(1, row(1, 2, 50))
	l.until(ctx, t, "1 2 w=50")
	// Time that passes while a row is on its way down the chain counts as backpressure, not as idleness: let it arrive.
	untilRead(ctx, t, j, 2)
	clock.advance(600 * time.Millisecond)
	f.Append(0, row(1, 3, 110))
	l.until(ctx, t, "3")
	untilRead(ctx, t, j, 3)
	clock.advance(600 * time.Millisecond) // split 1 is idle now
	l.until(ctx, t, "3 w=110")
	f.Append(1, row(1, 4, 90))
	l.until(ctx, t, "4")
	f.Append(0, row(1, 5, 200))
	l.until(ctx, t, "5")
	f.Append(1, row(1, 6, 150))
	l.until(ctx, t, "5 6 w=150")
	if err := j.Stop(ctx, exec.StopOptions{}); err != nil {
		t.Fatal(err)
	}
	l.until(ctx, t, "6 w=150")
	l = newTrace()
	j = start(t, probed(bus, l, rowtime(true, 0, 1000)), o)
	l.until(ctx, t, "w=150")
	if err := j.Stop(ctx, exec.StopOptions{Drain: true}); err != nil {
		t.Fatal(err)
	}
	l.until(ctx, t, "w=max")
	if s := j.Status().State; s != exec.Finished {
		t.Fatal(s)
	}
}

// untilRead waits until the sources have read n rows and their chains have processed them, and until the start is over: rows are read
// before the status tells of the restore.
func untilRead(ctx context.Context, t *testing.T, j *running, n int64) {
	t.Helper()
	for {
		var read int64
		st := j.Status()
		for _, s := range st.Splits {
			read += s.Records
		}
		if read == n && st.State != exec.Restoring && st.State != exec.Restarting {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d rows were read, want %d", read, n)
		case <-time.After(time.Millisecond):
		}
	}
}

// testClock is a clock that stands still.
type testClock struct {
	mu sync.Mutex
	d  time.Duration
}

func (c *testClock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Unix(1000, 0).Add(c.d)
}

func (c *testClock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.d += d
}

// alarm emits nothing but a trace when its processing-time timer rings, one second after Open.
type alarm struct {
	probe
	at int64
}

func (a *alarm) Open(s exec.Subtask) error {
	a.at = s.Now() + 1000
	return nil
}
func (a *alarm) NextTimer() (int64, bool) { return a.at, a.at > 0 }
func (a *alarm) OnTimer(now int64, _ exec.Emitter) error {
	a.log.add("ring at %d", now-a.at)
	a.at = 0
	return nil
}

// TestProcessingTimers: a timer rings once the job's clock has reached it, not before, and not after the last barrier.
func TestProcessingTimers(t *testing.T) {
	for _, stop := range []bool{false, true} {
		bus := memory.NewBus()
		l := newTrace()
		var clock testClock
		g := newGraph(bus)
		g.sink("out", 1, forward(g.op("alarm", 1, func() exec.Operator { return &alarm{probe: probe{log: l}} }, hash(g.source("in", 1, nil)))))
		j := start(t, g.g, exec.JobOptions{Now: clock.now})
		if _, err := j.Checkpoint(patient(t)); err != nil {
			t.Fatal(err)
		}
		clock.advance(999 * time.Millisecond)
		if _, err := j.Checkpoint(patient(t)); err != nil {
			t.Fatal(err)
		}
		want := ""
		if !stop {
			clock.advance(3 * time.Millisecond)
			l.until(patient(t), t, "ring at 2")
			want = "ring at 2 "
		} else {
			bus.Queue("out").OnOp(func(op memory.Op) {
				if op == memory.OpPreCommit {
					clock.advance(time.Minute) // between the last barrier and the end
				}
			})
		}
		if err := j.Stop(patient(t), exec.StopOptions{Drain: true}); err != nil {
			t.Fatal(err)
		}
		if got := l.String(); got != want+"w=max" {
			t.Fatalf("stop %v: %q", stop, got)
		}
	}
}

// counter counts rows per key in keyed state and emits (k, count so far).
type counter struct {
	exec.Stateless
	table checkpoint.Table
	enc   *exec.KeyEncoder
	keys  checkpoint.Keys
	refs  []checkpoint.Ref
	out   *batch.Builder
}

func (c *counter) Open(s exec.Subtask) (err error) {
	c.enc, c.out = exec.NewKeyEncoder([]int{0}), batch.NewBuilder(testSchema)
	c.table, err = s.Table(checkpoint.TableOptions{Name: "counts", Format: "u64"})
	return err
}

func (c *counter) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	c.enc.Encode(b, &c.keys)
	c.refs = append(c.refs[:0], make([]checkpoint.Ref, b.Len())...)
	if err := c.table.Probe(&c.keys, c.refs); err != nil {
		return err
	}
	c.out.Reset()
	for i, r := range c.refs {
		if r == checkpoint.NoRow {
			var err error
			if r, _, err = c.table.Insert(&c.keys, i, 8); err != nil {
				return err
			}
		}
		v := c.table.Mutable(r)
		n := binary.LittleEndian.Uint64(v) + 1
		binary.LittleEndian.PutUint64(v, n)
		c.out.Cols[0].AppendFrom(b.Cols[0], b.Row(i))
		c.out.Cols[1].AppendI64(int64(n))
		c.out.Cols[2].AppendNull()
		c.out.Cols[3].AppendI64(0)
		c.out.RowDone()
	}
	return out.Emit(c.out.Finish())
}

// TestKeyedState: counts per key go on exactly over failures, restarts and changes of parallelism.
func TestKeyedState(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(3)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	build := func(p int) *exec.Graph {
		g := newGraph(bus)
		g.sink("out", 1, rebalance(g.op("count", p, func() exec.Operator { return &counter{} }, hash(g.source("in", 2, nil)))))
		return g.g
	}
	counts := map[int64]int64{}
	var want []memory.Row
	var rows int64
	for round, p := range []int{2, 1, 4, 3} {
		arm(t, []string{"precommit.after:2:error", "publish.after:1:error", "source.poll:40:error", "publish.before:2:error"}[round])
		j := start(t, build(p), exec.JobOptions{Owner: owner, Restart: quickRestart(), Checkpoints: exec.CheckpointConfig{Interval: 3 * time.Millisecond}})
		for range 4 {
			for i := range 500 {
				k := (rows * rows) % 101
				counts[k]++
				want = append(want, memory.Insert(types.IntDatum(k), types.IntDatum(counts[k]), types.NullDatum, types.IntDatum(0)))
				f.Append(i%3, row(k, rows, 0))
				rows++
			}
			if err := bus.Queue("out").Wait(patient(t), rows); err != nil {
				t.Fatal(err)
			}
		}
		// A failure while it stops ends the job; the next round resumes all the same.
		if err := j.Stop(patient(t), exec.StopOptions{}); err != nil && !checkpoint.FailpointHit() {
			t.Fatal(err)
		}
	}
	arm(t, "")
	f.Close()
	if err := start(t, build(2), exec.JobOptions{Owner: owner}).wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
}

// bomb panics at its first rows, once.
type bomb struct {
	pass
	once *sync.Once
}

func (b *bomb) Process(port int, in *batch.Batch, out exec.Emitter) error {
	b.once.Do(func() { panic("boom") })
	return out.Emit(in)
}

// TestPanic: a panic in a task is an error of the job that names the node, and restarts it like any other.
func TestPanic(t *testing.T) {
	for _, restart := range []bool{false, true} {
		bus := memory.NewBus()
		want := fill(bus.Feed("in"), 1, 10)
		bus.Feed("in").Close()
		var once sync.Once
		g := newGraph(bus)
		g.sink("out", 1, forward(g.op("bomb", 1, func() exec.Operator { return &bomb{once: &once} }, hash(g.source("in", 1, nil)))))
		o := exec.JobOptions{}
		if restart {
			o.Restart = quickRestart()
		}
		j := start(t, g.g, o)
		err := j.wait()
		if restart {
			if err != nil || j.Status().Restarts != 1 {
				t.Fatalf("%v, %d restarts", err, j.Status().Restarts)
			}
			same(t, bus.Queue("out").Rows(), want)
			continue
		}
		var te *exec.TaskError
		if !errors.As(err, &te) || te.Node != "bomb" || diag.CodeOf(err) != diag.Internal || !strings.Contains(err.Error(), "boom") {
			t.Fatal(err)
		}
	}
}

// TestDiscovery: a split that appears while the job runs, or while it was down, is read from its beginning, once.
func TestDiscovery(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetDiscovery(1)
	want := []memory.Row{row(1, 1, 0)}
	f.Append(0, want[0])
	g := newGraph(bus)
	g.sink("out", 2, hash(g.source("in", 2, nil)))
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	o := exec.JobOptions{Owner: owner, Checkpoints: exec.CheckpointConfig{Interval: time.Millisecond}}
	for round := range 2 {
		j := start(t, g.g, o)
		for k := range 2 {
			n := 2 + 2*round + k
			f.SetSplits(n)
			r := row(1, int64(n), 0)
			f.Append(n-1, r)
			want = append(want, r)
			if err := bus.Queue("out").Wait(patient(t), int64(len(want))); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.Stop(patient(t), exec.StopOptions{}); err != nil {
			t.Fatal(err)
		}
		same(t, bus.Queue("out").Rows(), want)
		if n := len(j.Status().Splits); n != 3+2*round {
			t.Fatalf("%d splits", n)
		}
	}
}

// TestLostTransactions: prepared transactions that their system aborted while the job was down are produced again when
// an older checkpoint proves that to be exact, and stop the job otherwise.
func TestLostTransactions(t *testing.T) {
	for _, tc := range []struct {
		name   string
		forget func(*memory.Queue)
		first  bool // nothing was committed before
		code   diag.Code
	}{
		{"expired after an earlier checkpoint", (*memory.Queue).Expire, false, ""},
		{"expired, no earlier checkpoint", (*memory.Queue).Expire, true, diag.Lost},
	} {
		t.Run(tc.name, func(t *testing.T) {
			bus := memory.NewBus()
			f := bus.Feed("in")
			g := newGraph(bus)
			g.sink("out", 2, hash(g.source("in", 1, nil)))
			owner := checkpoint.OwnMemory()
			defer owner.Close()
			o := exec.JobOptions{Owner: owner}
			j := start(t, g.g, o)
			want := []memory.Row{row(1, 1, 0), row(2, 2, 0)}
			if !tc.first {
				f.Append(0, want...)
				waitRows(t, j, 2)
				if _, err := j.Checkpoint(patient(t)); err != nil {
					t.Fatal(err)
				}
			}
			more := []memory.Row{row(3, 3, 0), row(4, 4, 0), row(5, 5, 0)}
			f.Append(0, more...)
			waitRows(t, j, len(more)+map[bool]int{false: 2}[tc.first])
			crashAtCommit(j, bus.Queue("out"))
			_, _ = j.Checkpoint(patient(t))
			_ = j.wait()
			bus.Queue("out").OnOp(nil)
			tc.forget(bus.Queue("out"))
			f.Close()
			err := start(t, g.g, o).wait()
			if tc.code != "" {
				var e *diag.Error
				if !errors.As(err, &e) || e.Code != tc.code || !strings.Contains(e.Detail, "checkpoint 1, subtask") {
					t.Fatalf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			same(t, bus.Queue("out").Rows(), append(want, more...))
		})
	}
}

// crashAtCommit cancels the job at its next commit, which is never carried out, nor is its repetition should the job get to
// that before it notices: the manifest is durable, the output is not committed.
func crashAtCommit(j *running, q *memory.Queue) {
	q.OnOp(func(op memory.Op) {
		if op == memory.OpCommit {
			q.Fail(memory.OpCommit, errors.New("crash"))
			j.Cancel()
		}
	})
}

// waitRows waits until the job's source has read n rows.
func waitRows(t *testing.T, j *running, n int) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		for _, node := range j.Status().Nodes {
			if node.ID == "in" && node.RowsOut >= int64(n) {
				return
			}
		}
		if time.Now().After(deadline) {
			t.Fatalf("%+v", j.Status())
		}
		time.Sleep(time.Millisecond)
	}
}

// TestChangedPlanIsRefused: a checkpoint of another plan is not restored, unless the user says to start without it; then
// what it had published is still committed.
func TestChangedPlanIsRefused(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in")
	want := fill(f, 1, 100)
	g := newGraph(bus)
	g.sink("out", 1, hash(g.source("in", 1, nil)))
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	o := exec.JobOptions{Owner: owner}
	j := start(t, g.g, o)
	waitRows(t, j, 100)
	crashAtCommit(j, bus.Queue("out"))
	_, _ = j.Checkpoint(patient(t))
	_ = j.wait()
	bus.Queue("out").OnOp(nil)
	f.Close()
	g.g.Identities = map[checkpoint.OperatorID]string{"other": "1:1"}
	err := start(t, g.g, o).wait()
	if diag.CodeOf(err) != diag.Config || !strings.Contains(diag.Render(err, "", ""), "test: gone, its state would be dropped") {
		t.Fatal(err)
	}
	o.Restore.Mode = exec.RestoreNone
	if err := start(t, g.g, o).wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), append(want, want...))
}

// TestCheckpointTimeout: a checkpoint that a stuck sink holds up is given up and named, the job goes on, and a later one
// commits everything; what late tasks pre-committed for the one given up is not lost.
func TestCheckpointTimeout(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 2, 50)
	g := newGraph(bus)
	mid := g.op("mid", 2, newPass, hash(g.source("in", 2, nil)))
	g.sink("out", 2, forward(mid))
	g.sink("other", 1, rebalance(mid))
	release := make(chan struct{})
	var once sync.Once
	// The time of the checkpoint that is stuck passes, and of no other, however slow the machine is.
	var clock testClock
	bus.Queue("other").OnOp(func(op memory.Op) {
		if op == memory.OpPreCommit {
			once.Do(func() {
				clock.advance(time.Minute)
				<-release
			})
		}
	})
	j := start(t, g.g, exec.JobOptions{Now: clock.now, Checkpoints: exec.CheckpointConfig{Timeout: time.Minute, TolerableFailed: 3}})
	waitRows(t, j, 100)
	if _, err := j.Checkpoint(patient(t)); err == nil || !strings.Contains(err.Error(), "expired") {
		t.Fatalf("error %v", err)
	}
	if s := j.Status().Checkpoint; s.GivenUp != 1 || !strings.Contains(s.Cause, "expired: no answer within 1m0s; ") || s.Counts != (exec.CheckpointCounts{Expired: 1}) ||
		s.FailedInARow != 1 || s.TolerableLeft != 2 {
		t.Fatalf("%+v", s)
	}
	// Others may not have answered yet either.
	stuck := func(w checkpoint.Waiting) bool { return w.String() == "to other (subtask 0) takes its snapshot" }
	if x := j.Checkpoints()[0]; x.State != checkpoint.TraceExpired || !slices.ContainsFunc(x.Waiting, stuck) || x.Duration(clock.now()) < time.Minute {
		t.Fatalf("%+v", x)
	}
	close(release)
	bus.Feed("in").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
	same(t, bus.Queue("other").Rows(), want)
}

// TestAtLeastOnceMode: without alignment no row is lost over a failure.
func TestAtLeastOnceMode(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 3, 1000)
	g := newGraph(bus)
	g.sink("out", 2, hash(g.op("mid", 3, newPass, hash(g.source("in", 2, nil)))))
	arm(t, "publish.after:3:error")
	j := start(t, g.g, exec.JobOptions{Restart: quickRestart(), Checkpoints: exec.CheckpointConfig{Interval: time.Millisecond, Mode: exec.AtLeastOnce}})
	for range 4 {
		_, _ = j.Checkpoint(patient(t))
	}
	bus.Feed("in").Close()
	if err := j.wait(); err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, s := range texts(bus.Queue("out").Rows()) {
		got[s] = true
	}
	for _, s := range texts(want) {
		if !got[s] {
			t.Fatalf("row %q is lost", s)
		}
	}
}
