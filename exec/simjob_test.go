package exec

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// simJob is the job inside a process: source subtasks, an exchange by key, and subtasks that count the rows of each key and
// write them with the count.
type simJob struct {
	coord    *checkpoint.Coordinator
	sources  []*simSource
	channels [][]*simChannel // by source, counter
	tasks    []*simTask
	inFlight []checkpoint.Event // to the coordinator
	given    map[checkpoint.ID]bool
	hasty    checkpoint.ID // whose barriers overtake
	aligned  checkpoint.ID // whose barriers may, later
}

// simChannel is an edge between two subtasks; credits bound its rows.
type simChannel struct {
	queue []message
	rows  int
}

const simCredits = 5

var (
	simSchema = types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "row", Type: types.BigIntType})
	simEdge   = Edge{From: 0, Ship: Hash, Keys: []int{0}}
	// simOwner tells which of so many subtasks a key belongs to.
	simOwner = sync.OnceValue(func() (owner [simSplits * simKeys][simParallel + 1]int) {
		for k := range owner {
			var keys checkpoint.Keys
			h := NewKeyEncoder(simEdge.Keys).Hashes(&simBatch(k, 0).Batch, &keys)[0]
			for p := 1; p <= simParallel; p++ {
				owner[k][p] = checkpoint.SubtaskOf(checkpoint.KeyGroup(h), p)
			}
		}
		return owner
	})
)

const simParallel = 3

func simBatch(key, row int) *pooled {
	p := newPooled(simSchema, nil)
	p.Cols[0].I64, p.Cols[1].I64, p.N = []int64{int64(key)}, []int64{int64(row)}, 1
	return p
}

func simGraph(parallelism int) *Graph {
	return &Graph{Nodes: []*Node{
		{ID: "source", Name: "source", Output: simSchema},
		{ID: "count", Name: "count", Parallelism: parallelism, Inputs: []Edge{simEdge}},
	}}
}

// run is the process's life, in the order of Job.runAttempt.
func (a *simAttempt) run() (ended bool, err error) {
	w, ctx := a.w, context.Background()
	a.step()
	store, err := a.openStore()
	if err != nil {
		return false, err
	}
	committer := w.target.committer(a)
	switch w.wrong {
	case "abort before commit":
		if err := committer.Abort(ctx, nil); err != nil {
			return false, err
		}
	}
	cp, err := checkpoint.Recover(ctx, store, checkpoint.Committers{"s": committer}, checkpoint.RecoverOptions{
		Sleep: func(context.Context, time.Duration) error { a.step(); return nil }})
	switch {
	case onlyNone(err):
		cp = nil
	case err != nil:
		return diag.CodeOf(err) == diag.Lost && !a.zombie, err
	}
	if cp != nil {
		if a.lineage = cp.Lineage; cp.Final {
			return true, nil
		}
	}
	ids, err := a.build(ctx, cp)
	if err != nil {
		return false, err
	}
	cfg := checkpoint.CoordinatorConfig{
		Interval: 25 * time.Millisecond, Timeout: 150 * time.Millisecond, MinPause: 4 * time.Millisecond,
		MaxConcurrent: 1, TolerableFailed: -1, Subtasks: ids, Sources: ids[:len(a.sources)], Lineage: a.lineage,
		NextID: store.NextID(),
	}
	if a.owned != nil {
		cfg.Fence = a.owned.Fence()
	}
	if w.hasty == 0 {
		cfg.MaxConcurrent += w.r.IntN(2)
	}
	if w.two {
		cfg.MaxConcurrent, cfg.Interval, cfg.MinPause = 2, 15*time.Millisecond, 0
	}
	a.coord = checkpoint.NewCoordinator(cfg, cp, true, w.clock())
	return a.loop(ctx, store, committer)
}

// onlyNone tells whether err says that there is no checkpoint, and nothing else went wrong.
func onlyNone(err error) bool {
	if u, ok := err.(interface{ Unwrap() []error }); ok {
		return !slices.ContainsFunc(u.Unwrap(), func(e error) bool { return e != checkpoint.ErrNone })
	}
	return err == checkpoint.ErrNone
}

// build makes the subtasks, with another parallelism than before as often as not.
func (a *simAttempt) build(ctx context.Context, cp *checkpoint.Checkpoint) (ids []checkpoint.SubtaskID, err error) {
	w := a.w
	nSources, nTasks := 1+w.r.IntN(w.splits), 1+w.r.IntN(simParallel)
	if w.before > 0 && w.before != nTasks {
		w.rescales++
	}
	w.before = nTasks
	positions := map[int]int{}
	var counts []checkpoint.Snapshot
	if cp != nil {
		for _, s := range cp.Subtasks {
			for _, p := range s.Positions {
				split, _ := strconv.Atoi(string(p.Split))
				positions[split], _ = strconv.Atoi(string(p.Next))
			}
			if s.Subtask.Operator == "count" {
				counts = append(counts, s)
			}
		}
	}
	for i := range nSources {
		s := &simSource{a: a, id: checkpoint.SubtaskID{Operator: "source", Index: i}}
		for split := i; split < w.splits; split += nSources {
			pos := positions[split]
			if w.wrong == "resume from the acked position" {
				pos = max(pos, w.acked[split])
			}
			s.splits = append(s.splits, simSplit{split, pos})
		}
		a.sources, ids = append(a.sources, s), append(ids, s.id)
		row := make([]*simChannel, nTasks)
		for j := range row {
			row[j] = &simChannel{}
		}
		a.channels = append(a.channels, row)
	}
	writers := w.target.writers(a, nTasks)
	for j := range nTasks {
		t, err := a.newTask(ctx, j, nTasks, counts, writers[j])
		if err != nil {
			return nil, err
		}
		a.tasks, ids = append(a.tasks, t), append(ids, t.head.id)
	}
	return ids, nil
}

// loop is the job until it ends.
func (a *simAttempt) loop(ctx context.Context, store checkpoint.Store, committer checkpoint.Committer) (bool, error) {
	w := a.w
	for range 20000 {
		a.step()
		now := w.clock()
		var e checkpoint.Event
		switch w.r.IntN(8) {
		case 0:
			e = checkpoint.Tick{Now: now}
			if a.aligned != 0 && w.chance(6) {
				a.hasty, a.aligned = a.aligned, 0
			}
		case 1:
			if len(a.inFlight) > 0 {
				i := w.r.IntN(len(a.inFlight))
				e = retime(a.inFlight[i], now)
				if !w.chance(8) { // else it is delivered again later
					a.inFlight = slices.Delete(a.inFlight, i, i+1)
				}
			}
		case 2, 3:
			a.sources[w.r.IntN(len(a.sources))].advance()
		case 4, 5:
			i, j := w.r.IntN(len(a.sources)), w.r.IntN(len(a.tasks))
			if c := a.channels[i][j]; len(c.queue) > 0 {
				m := c.queue[0]
				c.queue = c.queue[1:]
				if m.kind == msgRows {
					c.rows--
				}
				a.tasks[j].gate.arrive(m)
				a.tasks[j].recorded(ctx)
			}
		default:
			a.tasks[w.r.IntN(len(a.tasks))].advance(ctx)
		}
		if e == nil {
			continue
		}
		for queue := []checkpoint.Event{e}; len(queue) > 0; queue = queue[1:] {
			for _, act := range a.coord.Step(queue[0]) {
				ev, stop, err := a.perform(ctx, act, store, committer)
				if stop || err != nil {
					return stop, err
				}
				if ev != nil {
					a.inFlight = append(a.inFlight, ev)
				}
			}
		}
	}
	if a.zombie {
		return false, nil // the source of a suspended process waits for nobody
	}
	return true, errors.New("the job does not end")
}

// retime gives an event the time of its delivery.
func retime(e checkpoint.Event, now time.Time) checkpoint.Event {
	switch e := e.(type) {
	case checkpoint.Acked:
		e.Now = now
		return e
	case checkpoint.Declined:
		e.Now = now
		return e
	case checkpoint.Published:
		e.Now = now
		return e
	case checkpoint.CommitDone:
		e.Now = now
		return e
	case checkpoint.TaskFinished:
		e.Now = now
		return e
	}
	return e
}

// perform carries out an action of the coordinator, as loop.perform does.
func (a *simAttempt) perform(ctx context.Context, act checkpoint.Action, store checkpoint.Store, committer checkpoint.Committer) (ev checkpoint.Event, stop bool, err error) {
	w := a.w
	if w.tell != nil {
		text := fmt.Sprintf("%T%+v", act, act)[len("checkpoint."):]
		a.say("%s", text[:min(len(text), 120)])
	}
	switch act := act.(type) {
	case checkpoint.Inject:
		if r, ok := store.(reserver); ok {
			if err := r.Reserve(ctx, act.Barrier.ID); err != nil {
				return nil, false, err
			}
		}
		if a.aligned = 0; w.hasty > 0 && !act.Savepoint && !act.Barrier.Final {
			if a.aligned = act.Barrier.ID; w.hasty == 1 {
				a.hasty, a.aligned = a.aligned, 0
			}
		}
		for _, s := range a.sources {
			s.barriers = append(s.barriers, act.Barrier)
		}
	case checkpoint.Publish:
		c := act.Checkpoint
		switch w.wrong {
		case "commit before completion":
			_ = committer.Commit(ctx, c.Pending)
		case "committables are not carried":
			c.Pending = slices.DeleteFunc(slices.Clone(c.Pending), func(p checkpoint.Committable) bool { return p.Checkpoint != c.ID })
		case "transaction id not in the checkpoint":
			c.Pending = nil
		}
		if err := store.Publish(ctx, c); err != nil {
			return checkpoint.PublishFailed{ID: c.ID, Err: err, Now: w.clock()}, false, nil
		}
		return checkpoint.Published{ID: c.ID, Now: w.clock()}, false, nil
	case checkpoint.Commit:
		if act.Attempt == 0 && len(act.Pending) > 0 && act.Pending[0].Checkpoint != act.Pending[len(act.Pending)-1].Checkpoint {
			w.doubles++
		}
		if w.wrong == "confirm before commit" {
			if err := store.Confirm(ctx, act.ID); err != nil {
				return nil, false, err
			}
		}
		if w.wrong == "the newest is committed first" {
			act.Pending = slices.Clone(act.Pending)
			slices.Reverse(act.Pending)
			err = committer.Commit(ctx, act.Pending)
		} else {
			err = checkpoint.Committers{"s": committer}.Commit(ctx, act.Pending)
		}
		if err != nil {
			return checkpoint.CommitFailed{ID: act.ID, Err: err, Now: w.clock()}, false, nil
		}
		return checkpoint.CommitDone{ID: act.ID, Now: w.clock()}, false, nil
	case checkpoint.Confirm:
		if err := store.Confirm(ctx, act.ID); err != nil {
			return checkpoint.ConfirmFailed{ID: act.ID, Err: err, Now: w.clock()}, false, nil
		}
		return checkpoint.Confirmed{ID: act.ID, Now: w.clock()}, false, nil
	case checkpoint.NotifyCommitted:
		if !w.chance(4) { // the notice may be lost
			for _, t := range a.tasks {
				t.writer.committed(act.ID)
			}
		}
		if c, ok := store.(collector); ok {
			_ = c.Collect(ctx)
		}
	case checkpoint.Abort:
		a.given[act.ID] = true
		for _, t := range a.tasks {
			t.givenUp = append(t.givenUp, act.ID)
		}
	case checkpoint.Fail:
		return nil, false, act.Err // the job restarts
	case checkpoint.Stop:
		return nil, true, nil
	}
	return nil, false, nil
}

// send tells the coordinator.
func (a *simAttempt) send(e checkpoint.Event) { a.inFlight = append(a.inFlight, e) }

type simSplit struct{ split, pos int }

// simSource is a source subtask.
type simSource struct {
	a        *simAttempt
	id       checkpoint.SubtaskID
	splits   []simSplit
	barriers []checkpoint.Barrier
	told     bool // that all is read
}

func (s *simSource) exhausted() bool {
	return !slices.ContainsFunc(s.splits, func(p simSplit) bool { return p.pos < simRows })
}

// advance reads a row or passes a barrier.
func (s *simSource) advance() {
	a := s.a
	w := a.w
	if len(s.barriers) > 0 && (w.chance(3) || s.exhausted()) {
		b := s.barriers[0]
		s.barriers = s.barriers[1:]
		a.step()
		for _, c := range a.channels[s.id.Index] {
			c.queue = append(c.queue, message{kind: msgBarrier, input: s.id.Index, barrier: b})
		}
		if !b.Final && w.chance(20) {
			a.send(declined(b.ID, s.id, w.chance(2), "not ready"))
			return
		}
		snap := checkpoint.Snapshot{Subtask: s.id}
		for _, p := range s.splits {
			w.acked[p.split] = max(w.acked[p.split], p.pos)
			snap.Positions = append(snap.Positions, checkpoint.Position{Split: checkpoint.Split(strconv.Itoa(p.split)), Next: []byte(strconv.Itoa(p.pos))})
		}
		a.send(checkpoint.Acked{ID: b.ID, Snapshot: snap})
		return
	}
	if s.exhausted() {
		if !s.told {
			s.told = true
			a.send(checkpoint.TaskFinished{Subtask: s.id})
		}
		return
	}
	p := &s.splits[w.r.IntN(len(s.splits))]
	if p.pos == simRows {
		return
	}
	row := a.life*100000 + p.split*1000 + p.pos
	c := a.channels[s.id.Index][simOwner()[rowKey(row)][len(a.tasks)]]
	if c.rows == simCredits {
		return
	}
	p.pos++
	c.rows++
	c.queue = append(c.queue, message{kind: msgRows, input: s.id.Index, rows: simBatch(rowKey(row), row)})
}

// simTask is a counter with its writer, behind a gate. The gate, and what loads its rows in flight, are of a task.
type simTask struct {
	*task
	a       *simAttempt
	count   [simSplits * simKeys]int
	writer  simWriter
	cut     *checkpoint.Acked // of the barrier that overtook, until all in flight is recorded
	givenUp []checkpoint.ID   // commands not seen yet
}

func (a *simAttempt) newTask(ctx context.Context, index, parallelism int, old []checkpoint.Snapshot, writer simWriter) (*simTask, error) {
	w := a.w
	g := simGraph(parallelism)
	gate := newGate(ExactlyOnce, make([]int, len(a.sources)))
	if w.wrong == "barriers do not align" {
		gate.mode = AtLeastOnce
	}
	for i := range gate.inputs {
		gate.inputs[i].from, gate.inputs[i].shape = i, shapeOf(g, simEdge)
	}
	m := &member{node: g.Nodes[1], id: checkpoint.SubtaskID{Operator: "count", Index: index}, restore: restored{was: "count", snapshots: old}}
	at := &attempt{job: &Job{g: g, o: JobOptions{Owner: a.owned, Now: w.clock}}}
	t := &simTask{task: &task{at: at, head: m, all: []*member{m}, gate: gate}, a: a, writer: writer}
	for i, s := range old {
		_, state := unframeState(s.State)
		for k, n := range state {
			if n > 0 && simOwner()[k][parallelism] == index {
				t.count[k] = int(n)
			}
		}
		if hasFlight(s) && index == 0 {
			if w.flights++; len(old) != parallelism {
				w.scattered++
			}
		}
		if w.wrong == "rows in flight stay with their old subtask" && len(old) != parallelism {
			if i%parallelism != index {
				m.restore.snapshots = slices.Clone(m.restore.snapshots)
				m.restore.snapshots[i].Files = nil
			}
		}
	}
	if w.wrong == "rows in flight stay with their old subtask" && len(old) > 0 && len(old) != parallelism {
		m.node.Parallelism = 1 // all that is left is its own
	}
	if len(old) > 0 {
		if err := t.loadFlights(ctx); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// advance does what runGate does in one round, except for arrivals.
func (t *simTask) advance(ctx context.Context) {
	for _, id := range t.givenUp {
		t.giveUp(id)
	}
	t.givenUp = nil
	if b, ok := t.gate.waiting(); ok && t.a.hasty == b.ID && !t.a.given[b.ID] && t.a.w.chance(2) {
		t.perform(ctx, t.gate.overtake(b))
		return
	}
	if m, ok := t.gate.replayed(); ok {
		t.perform(ctx, t.gate.accept(m))
	}
}

func (t *simTask) perform(ctx context.Context, events []gateEvent) {
	for _, e := range events {
		switch e.kind {
		case msgRows:
			for i := range e.rows.N {
				k := int(e.rows.Cols[0].I64[i])
				t.count[k]++
				t.writer.write(counted(int(e.rows.Cols[1].I64[i]), t.count[k]))
			}
		case msgBarrier:
			t.barrier(ctx, e.barrier)
		case msgGivenUp:
			t.decline(e.barrier.ID)
		}
	}
}

// barrier takes the task's part of a checkpoint, as task.barrier does.
func (t *simTask) barrier(ctx context.Context, b checkpoint.Barrier) {
	if t.cut != nil {
		t.giveUp(t.cut.ID)
	}
	w := t.a.w
	if t.a.given[b.ID] || !b.Final && w.chance(25) {
		t.gate.forgetCapture()
		t.decline(b.ID)
		return
	}
	state := make([]byte, len(t.count))
	for k, n := range t.count {
		state[k] = byte(n)
	}
	t.a.step()
	cut := &checkpoint.Acked{ID: b.ID, Snapshot: checkpoint.Snapshot{
		Subtask: t.head.id, State: frameState(NoWatermark, state), Committables: t.writer.preCommit(b.ID)}}
	t.a.step()
	if t.gate.capture != nil {
		t.cut = cut
		t.recorded(ctx)
		return
	}
	t.submit(cut, b.Final)
}

// submit answers a barrier; the snapshot can still fail to be written.
func (t *simTask) submit(cut *checkpoint.Acked, final bool) {
	if !final && t.a.w.chance(20) {
		t.refuse(cut, "io")
		return
	}
	t.a.send(*cut)
}

// refuse answers a barrier with what was pre-committed at it, without a snapshot.
func (t *simTask) refuse(cut *checkpoint.Acked, why string) {
	d := declined(cut.ID, t.head.id, false, why)
	d.Committables = cut.Snapshot.Committables
	if t.a.w.wrong == "a declined snapshot's committables are dropped" {
		d.Committables = nil
	}
	t.a.send(d)
}

// recorded answers the barrier that overtook, once all that is in flight is recorded, as task.recorded does.
func (t *simTask) recorded(ctx context.Context) {
	c := t.gate.capture
	if t.cut == nil || c == nil {
		return
	}
	if !c.complete() {
		if t.a.w.wrong != "what arrives after the barrier passed is not recorded" {
			return
		}
		t.gate.forgetCapture()
	}
	cut := t.cut
	t.cut, t.gate.capture = nil, nil
	if !c.empty() && t.a.w.wrong != "rows in flight are not in the checkpoint" {
		f, err := checkpoint.WriteInFlight(ctx, t.a.owned, c.id, fmt.Sprint("count-", t.head.id.Index), c.file())
		if err != nil {
			t.refuse(cut, err.Error())
			return
		}
		cut.Snapshot.Files = []checkpoint.StateFile{f}
	}
	t.submit(cut, false)
}

// giveUp ends the recording for a checkpoint that will not complete, as task.giveUp does.
func (t *simTask) giveUp(id checkpoint.ID) {
	cut := t.cut
	if cut == nil || cut.ID != id {
		return
	}
	t.cut = nil
	if c := t.gate.capture; c != nil && c.id == id {
		t.gate.forgetCapture()
	}
	t.refuse(cut, "given up while rows in flight were recorded")
}

// decline answers a barrier that came after its checkpoint was given up, or to a task that is not ready.
func (t *simTask) decline(id checkpoint.ID) {
	t.a.send(declined(id, t.head.id, true, "not ready"))
}

// declined is the event of a subtask that takes no part, because of why.
func declined(id checkpoint.ID, s checkpoint.SubtaskID, notReady bool, why string) checkpoint.Declined {
	d := checkpoint.Declined{ID: id, Subtask: s, NotReady: notReady}
	if notReady {
		d.Reason = why
	} else {
		d.Err = errors.New(why)
	}
	return d
}
