package exec_test

import (
	"context"
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
	"github.com/streamsql/streamsql/sql/types"
)

// brakes are operators that process a batch only when they are told to: a sink that is slow, without the time.
type brakes struct {
	free   chan struct{} // closed: all go on
	mu     sync.Mutex
	token  map[int]chan struct{} // for one batch of one subtask
	open   map[int]exec.Subtask
	stands map[int]bool
}

func newBrakes() *brakes {
	return &brakes{free: make(chan struct{}), token: map[int]chan struct{}{}, open: map[int]exec.Subtask{}, stands: map[int]bool{}}
}

type brake struct {
	pass
	b     *brakes
	id    int
	token chan struct{}
	ctx   context.Context
}

func (b *brake) Open(s exec.Subtask) error {
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	b.id, b.ctx = s.ID().Index, exec.ContextOf(s)
	b.token = make(chan struct{})
	b.b.open[b.id], b.b.token[b.id] = s, b.token
	return nil
}

func (b *brake) Process(_ int, in *batch.Batch, out exec.Emitter) error {
	b.stand(true)
	defer b.stand(false)
	select {
	case <-b.token:
	case <-b.b.free:
	case <-b.ctx.Done():
		return b.ctx.Err()
	}
	return out.Emit(in)
}

func (b *brake) stand(on bool) {
	b.b.mu.Lock()
	defer b.b.mu.Unlock()
	b.b.stands[b.id] = on
}

// give lets each subtask finish one batch.
func (b *brakes) give() {
	b.mu.Lock()
	var all []chan struct{}
	for _, c := range b.token {
		all = append(all, c)
	}
	b.mu.Unlock()
	for _, c := range all {
		c <- struct{}{}
	}
}

// only is the token of the only subtask, nil while there is none.
func (b *brakes) only() chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.token[0]
}

// until waits until all n subtasks stand in a batch and ok says so of what waits for each: batches per channel, barriers. They
// stand as long as ok looks.
func (b *brakes) until(t *testing.T, n int, ok func(batches [][]int, barriers []int) bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		var batches [][]int
		var barriers []int
		b.mu.Lock()
		for id, s := range b.open {
			if b.stands[id] {
				x, y := exec.Queued(s)
				batches, barriers = append(batches, x), append(barriers, y)
			}
		}
		b.mu.Unlock()
		if len(batches) == n && ok(batches, barriers) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d subtasks stand, before batches %v, barriers %v", len(batches), n, batches, barriers)
		}
		time.Sleep(time.Millisecond)
	}
}

// stuckProducers tells whether every producer is out of credits on one of its channels.
func stuckProducers(batches [][]int, _ []int) bool {
	for c := range batches[0] {
		if !slices.ContainsFunc(batches, func(l []int) bool { return l[c] >= 3 }) { // of four; one may be in a subtask
			return false
		}
	}
	return true
}

// behind tells whether every subtask has something to do besides the batch it stands in.
func behind(batches [][]int, _ []int) bool {
	return !slices.ContainsFunc(batches, func(l []int) bool { return slices.Max(l) == 0 })
}

// announced tells whether the barrier of every channel has arrived everywhere.
func announced(batches [][]int, barriers []int) bool {
	return !slices.ContainsFunc(barriers, func(n int) bool { return n < len(batches[0]) })
}

// pressed is source ─hash▶ count ─hash▶ brake ─▶ sink, all but the source with parallelism p.
func pressed(bus *memory.Bus, b *brakes, sources, p int) *exec.Graph {
	g := newGraph(bus)
	edge := func(from, key int) exec.Edge {
		if sources == 1 && p == 1 {
			return forward(from) // one chain without a gate, as the planner makes it
		}
		return exec.Edge{From: from, Ship: exec.Hash, Keys: []int{key}}
	}
	count := g.op("count", p, func() exec.Operator { return &counter{} }, edge(g.source("in", sources, nil), 0))
	g.sink("out", p, forward(g.op("brake", p, func() exec.Operator { return &brake{b: b} }, edge(count, 1))))
	return g.g
}

// load appends n rows and adds to want what the counters make of them.
func load(f *memory.Feed, n int, counts map[int64]int64, want []memory.Row) []memory.Row {
	splits := make([][]memory.Row, 3)
	for i := range n {
		k := int64(i*i) % 101
		counts[k]++
		want = append(want, memory.Insert(types.IntDatum(k), types.IntDatum(counts[k]), types.NullDatum, types.IntDatum(0)))
		splits[i%3] = append(splits[i%3], row(k, int64(i), 0))
	}
	for i, rows := range splits {
		f.Append(i, rows...)
	}
	return want
}

// TestBackPressure: with a sink that stands still the barrier of an unaligned checkpoint is at once before it, past every
// queue and past producers without credits; one more batch and the checkpoint is complete, with what it overtook in it. An
// aligned one is not: the barrier is behind batches that the sink has not processed. With a timeout the same checkpoint is
// aligned until it is over.
func TestBackPressure(t *testing.T) {
	for _, mode := range []string{"aligned", "unaligned", "timeout"} {
		t.Run(mode, func(t *testing.T) {
			bus := memory.NewBus()
			want := load(bus.Feed("in").SetSplits(3), 60_000, map[int64]int64{}, nil)
			b := newBrakes()
			const p = 2
			var clock testClock
			o := exec.JobOptions{Now: clock.now, Checkpoints: exec.CheckpointConfig{Timeout: 1000 * time.Hour, Unaligned: mode != "aligned"}}
			if mode == "timeout" {
				o.Checkpoints.AlignedTimeout = time.Second
			}
			j := start(t, pressed(bus, b, 3, p), o)
			b.until(t, p, stuckProducers)
			b.until(t, p, behind)
			done := make(chan error, 1)
			go func() {
				_, err := j.Checkpoint(patient(t))
				done <- err
			}()
			if mode == "unaligned" {
				b.until(t, p, announced)
			}
			b.give()
			if mode != "unaligned" {
				// Each is in its second batch, or still in its first: that the checkpoint is not complete does not depend on the
				// time.
				select {
				case err := <-done:
					t.Fatalf("an aligned checkpoint is complete before the rows in front of it: %v", err)
				default:
				}
			}
			switch mode {
			case "aligned":
				close(b.free)
			case "timeout":
				b.until(t, p, func(batches [][]int, barriers []int) bool {
					clock.advance(time.Second) // how often is up to the start of the checkpoint
					return announced(batches, barriers)
				})
				b.give()
			}
			select {
			case err := <-done:
				if err != nil {
					t.Fatal(err)
				}
			case <-time.After(patience):
				t.Fatalf("the checkpoint does not become complete: %+v", j.Status().Checkpoint)
			}
			if s := j.Status().Checkpoint; s.Unaligned != (mode != "aligned") || (s.InFlight > 0) != s.Unaligned || (s.Overtaken == 1) != s.Unaligned {
				t.Fatalf("%+v", s)
			}
			if mode != "aligned" {
				close(b.free)
			}
			bus.Feed("in").Close()
			if err := j.wait(); err != nil {
				t.Fatal(err)
			}
			same(t, bus.Queue("out").Rows(), want)
		})
	}
}

// TestUnalignedRescale: a job is killed after an unaligned checkpoint with rows in flight on both of its exchanges and goes on
// at another parallelism, 1 to 4 to 2 to 3 to 1, again and again; counts per key stay exact.
func TestUnalignedRescale(t *testing.T) {
	bus := memory.NewBus()
	f := bus.Feed("in").SetSplits(3)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	counts := map[int64]int64{}
	var want []memory.Row
	for _, p := range []int{1, 4, 2, 3, 3, 1, 2} {
		want = load(f, 12_000*p, counts, want)
		b := newBrakes()
		sources := min(p, 2)
		j := start(t, pressed(bus, b, sources, p), exec.JobOptions{Owner: owner, Checkpoints: exec.CheckpointConfig{Unaligned: true}})
		if p > 1 {
			b.until(t, p, behind)
		}
		done := make(chan error, 1)
		go func() {
			_, err := j.Checkpoint(patient(t))
			done <- err
		}()
		if p > 1 {
			b.until(t, p, announced)
			b.give()
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		}
		if p == 1 {
			b.until(t, p, func([][]int, []int) bool { return true })
		}
		for taken := p > 1; !taken; { // one chain: the barrier waits for the batch at hand
			select {
			case err := <-done:
				if taken = true; err != nil {
					t.Fatal(err)
				}
			case b.only() <- struct{}{}:
			}
		}
		j.Cancel()
		_ = j.wait()
		if s := j.Status().Checkpoint; (s.InFlight > 0) != (p > 1) {
			t.Fatalf("parallelism %d: %+v", p, s)
		}
	}
	b := newBrakes()
	close(b.free)
	f.Close()
	if err := start(t, pressed(bus, b, 2, 3), exec.JobOptions{Owner: owner}).wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
}

// TestUnalignedToChain: rows in flight on an exchange round robin, which is none at the parallelism of the restore, are
// processed by the operators that are chained to the source now.
func TestUnalignedToChain(t *testing.T) {
	bus := memory.NewBus()
	want := fill(bus.Feed("in"), 3, 12_000)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	build := func(b *brakes, p int) *exec.Graph {
		g := newGraph(bus)
		in := g.source("in", 2, nil)
		e := rebalance(in)
		if p == 2 {
			e = forward(in)
		}
		g.sink("out", p, forward(g.op("brake", p, func() exec.Operator { return &brake{b: b} }, e)))
		return g.g
	}
	b := newBrakes()
	j := start(t, build(b, 3), exec.JobOptions{Owner: owner, Checkpoints: exec.CheckpointConfig{Unaligned: true}})
	b.until(t, 3, behind)
	done := make(chan error, 1)
	go func() {
		_, err := j.Checkpoint(patient(t))
		done <- err
	}()
	b.until(t, 3, announced)
	b.give()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if s := j.Status().Checkpoint; s.InFlight == 0 {
		t.Fatalf("%+v", s)
	}
	j.Cancel()
	_ = j.wait()
	free := newBrakes()
	close(free.free)
	bus.Feed("in").Close()
	if err := start(t, build(free, 2), exec.JobOptions{Owner: owner}).wait(); err != nil {
		t.Fatal(err)
	}
	same(t, bus.Queue("out").Rows(), want)
}

// TestUnalignedChangedPlan: a plan without the operator that rows are in flight to, even one without state, or with other rows
// there, is refused: it would lose them, or take them for something else.
func TestUnalignedChangedPlan(t *testing.T) {
	bus := memory.NewBus()
	load(bus.Feed("in").SetSplits(3), 24_000, map[int64]int64{}, nil)
	owner := checkpoint.OwnMemory()
	defer owner.Close()
	b := newBrakes()
	j := start(t, pressed(bus, b, 2, 2), exec.JobOptions{Owner: owner, Checkpoints: exec.CheckpointConfig{Unaligned: true}})
	b.until(t, 2, behind)
	done := make(chan error, 1)
	go func() {
		_, err := j.Checkpoint(patient(t))
		done <- err
	}()
	b.until(t, 2, announced)
	b.give()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	j.Cancel()
	_ = j.wait()
	for name, change := range map[string]func(*exec.Graph){
		"in flight to brake, which this plan does not have": func(g *exec.Graph) { g.Nodes[2].ID = "other" },
		"that this plan does not have there": func(g *exec.Graph) {
			g.Nodes[1].Output = types.NewSchema(append(slices.Clone(testSchema.Columns[:3]), types.Column{Name: "other", Type: types.TimestampMs})...)
		},
	} {
		g := pressed(bus, newBrakes(), 2, 2)
		change(g)
		if err := start(t, g, exec.JobOptions{Owner: owner}).wait(); err == nil || !strings.Contains(err.Error(), name) {
			t.Fatalf("%v, want %q", err, name)
		}
	}
}

// TestUnalignedRestarts: TestRestartAtEveryFailpoint with barriers that overtake, and a failure while rows in flight are
// written, which costs the checkpoint and not the job.
func TestUnalignedRestarts(t *testing.T) {
	for k, point := range append([]string{"inflight.write"}, points...) {
		for _, hit := range []int{1, 3} {
			t.Run(fmt.Sprintf("%s/%d", point, hit), func(t *testing.T) {
				bus := memory.NewBus()
				want := fill(bus.Feed("in"), 3, 3000)
				owner := checkpoint.OwnMemory()
				defer owner.Close()
				g := newGraph(bus)
				mid := g.op("mid", 3, newPass, hash(g.source("in", 2, nil)))
				g.sink("out", 2, hash(mid))
				g.sink("other", 1, rebalance(mid))
				arm(t, fmt.Sprintf("%s:%d:error", point, hit))
				o := exec.JobOptions{Owner: owner, Restart: quickRestart(), Checkpoints: exec.CheckpointConfig{Interval: time.Millisecond, TolerableFailed: 1000,
					Unaligned: true, AlignedTimeout: time.Duration(k%2) * time.Millisecond}}
				j := start(t, g.g, o)
				for range 6 {
					_, _ = j.Checkpoint(patient(t))
				}
				bus.Feed("in").Close()
				if err := j.wait(); err != nil && !checkpoint.FailpointHit() {
					t.Fatal(err)
				} else if err != nil { // a failure while it ends: the next start goes on
					if err := start(t, g.g, o).wait(); err != nil {
						t.Fatal(err)
					}
				}
				same(t, bus.Queue("out").Rows(), want)
				same(t, bus.Queue("other").Rows(), want)
			})
		}
	}
}

// TestUnalignedRefused: what cannot be kept is refused by name.
func TestUnalignedRefused(t *testing.T) {
	for _, c := range []exec.CheckpointConfig{{Unaligned: true, Mode: exec.AtLeastOnce}, {Unaligned: true, MaxConcurrent: 2}} {
		_, err := exec.NewJob(pressed(memory.NewBus(), newBrakes(), 1, 1), options(exec.JobOptions{Checkpoints: c}))
		if err == nil || !strings.Contains(err.Error(), "unaligned.enabled") {
			t.Fatalf("%+v: %v", c, err)
		}
	}
}

// TestSinksHaveNoOutput: there is no edge on which what a sink pre-commits could be overtaken: a graph with one is refused.
func TestSinksHaveNoOutput(t *testing.T) {
	g := pressed(memory.NewBus(), newBrakes(), 2, 2)
	sink := g.Nodes[len(g.Nodes)-1]
	sink.Output = testSchema
	if _, err := exec.NewJob(g, options(exec.JobOptions{})); err == nil || !strings.Contains(err.Error(), "sink with output") {
		t.Fatal(err)
	}
	sink.Output = nil
	g.Nodes = append(g.Nodes, &exec.Node{ID: "committer", Name: "committer", Parallelism: 2, Operator: newPass, Output: testSchema, Inputs: []exec.Edge{hash(len(g.Nodes) - 1)}})
	if _, err := exec.NewJob(g, options(exec.JobOptions{})); err == nil || !strings.Contains(err.Error(), "without output") {
		t.Fatal(err)
	}
}
