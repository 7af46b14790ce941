package exec

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
)

// attempt is one run of the job's tasks, from restore to the first failure or the end.
type attempt struct {
	job    *Job
	ctx    context.Context
	cancel context.CancelFunc
	done   <-chan struct{}

	shared  connectors.Shared // of the attempt's connectors
	sinks   []*openSink
	sources map[checkpoint.OperatorID]connectors.Source
	was     map[checkpoint.OperatorID]checkpoint.OperatorID // ids in the restored checkpoint where they are others; "" = none
	tasks   []*task
	// ancestors are where the lineage began; see checkpoint.Checkpoint.
	ancestors []checkpoint.Origin
	// degraded are the guarantees given up so far, which every checkpoint lists.
	degraded []checkpoint.Degradation

	events  chan checkpoint.Event
	failed  chan error // the first failure
	commits chan checkpoint.Commit
	notices notices

	opened  sync.WaitGroup // tasks that have not opened their operators yet
	ready   chan struct{}  // closed when all have
	wg      sync.WaitGroup // every goroutine
	unended unended        // the same by name
	live    sync.WaitGroup // tasks

	hurry   *hurry
	last    maxInt64 // id of the checkpoint after which no rows follow, 0 = none
	mu      sync.Mutex
	givenUp map[checkpoint.ID]bool
	walk    *walk
	watch   stopwatch
}

// openSink is a sink with its committer, nil when it commits nothing.
type openSink struct {
	id        checkpoint.SinkID
	node      *Node
	spec      connectors.SinkSpec
	sink      connectors.Sink
	committer checkpoint.Committer
}

// runAttempt restores, runs the tasks, and cleans up whatever happened.
func (j *Job) runAttempt(parent context.Context, base *origin) (mode checkpoint.StopMode, err error) {
	ctx, cancel := context.WithCancel(parent)
	at := newAttempt(j, ctx, cancel)
	defer func() {
		if p := recover(); p != nil {
			err = j.panicked(p)
		}
		at.close()
		if parent.Err() != nil && err != nil {
			err = parent.Err()
		}
	}()
	j.setState(Restoring, nil)
	// What follows aborts what others of this job left open: a process that lost its directory must not begin.
	if err := j.o.Owner.Check(); err != nil {
		return 0, err
	}
	f, err := base.read(ctx, j.o.Store, j.o.Lineage, j.o.Checkpoints.OnDegraded == checkpoint.DegradedRepeat)
	if err != nil {
		return 0, err
	}
	j.mu.Lock()
	j.lineage = base.lineage
	j.mu.Unlock()
	if err := at.fit(f.cp); err != nil {
		return 0, err
	}
	j.proven = j.proven || f.cp != nil
	at.watch.end(&at.watch.parts.Metadata, j.o.Now())
	if err := at.abortEarlier(ctx, f); err != nil {
		return 0, err
	}
	if err := at.openSinks(ctx, base.lineage); err != nil {
		return 0, err
	}
	cp, err := at.restore(ctx, f, base.lineage)
	if err != nil {
		return 0, err
	}
	if err := at.recall(ctx, cp, f.known); err != nil {
		return 0, err
	}
	if f.ended != "" {
		at.sweep(ctx, f.ended)
	}
	at.watch.end(&at.watch.parts.Transactions, j.o.Now())
	j.reread.begin(cp)
	if cp != nil && cp.Final {
		// Drained before: committing, and saying that the run has ended, was all there was to do.
		return checkpoint.StopDrain, j.o.Store.End(ctx, base.lineage)
	}
	if err := j.o.Store.Begin(ctx, base.lineage); err != nil {
		return 0, err
	}
	if cp != nil {
		j.o.Log.Info("the job goes on from a checkpoint", "job", j.o.Name, "checkpoint", cp.ID, "taken", cp.StartedAt)
	}
	if err := j.o.Owner.Check(); err != nil { // writers fence others as they open
		return 0, err
	}
	if err := at.build(ctx, cp, base.lineage); err != nil {
		return 0, err
	}
	at.built()
	at.start()
	mode, err = at.coordinate(ctx, cp, base.lineage)
	if err == nil && mode == checkpoint.StopDrain {
		if base.taken {
			at.sweep(ctx, base.lineage)
		}
		err = j.o.Store.End(ctx, base.lineage)
	}
	return mode, err
}

func (j *Job) panicked(p any) error {
	j.o.Log.Error("the job panicked", "panic", p, "stack", string(debug.Stack()))
	return diag.New(diag.Internal, diag.Pos{}, "panic: %v", p).WithHint("this is a bug in streamsql; the log has the stack")
}

// firstAfterRestore is how long after a restore the first periodic checkpoint starts, if the interval is not shorter: readers of
// committed output have waited for the restore already, and are not to wait for most of an interval as well.
const firstAfterRestore = 200 * time.Millisecond

// coordinate runs the loop and ends the tasks in order when it ended well.
func (at *attempt) coordinate(ctx context.Context, cp *checkpoint.Checkpoint, lineage string) (checkpoint.StopMode, error) {
	j := at.job
	cfg := checkpoint.CoordinatorConfig{
		Interval: j.o.Checkpoints.Interval, Timeout: j.o.Checkpoints.Timeout, MinPause: j.o.Checkpoints.MinPause,
		MaxConcurrent: j.o.Checkpoints.MaxConcurrent, TolerableFailed: j.o.Checkpoints.TolerableFailed,
		Lineage: lineage, Identities: j.g.Identities, Fence: j.o.Owner.Fence(), NextID: j.o.Store.NextID(),
		Parallelism: map[checkpoint.OperatorID]int{},
	}
	for _, n := range j.g.Nodes {
		cfg.Parallelism[n.ID] = n.Parallelism
		for i := range n.Parallelism {
			id := checkpoint.SubtaskID{Operator: n.ID, Index: i}
			cfg.Subtasks = append(cfg.Subtasks, id)
			if n.Source != nil {
				cfg.Sources = append(cfg.Sources, id)
			}
		}
	}
	select {
	case <-at.ready:
	case err := <-at.failed:
		return 0, err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	at.running(cp)
	if cp != nil {
		cfg.First = firstAfterRestore
	}
	// The interval begins when rows flow.
	l := &loop{at: at, job: j, coord: checkpoint.NewCoordinator(cfg, cp, true, j.o.Now()),
		started: map[checkpoint.ID]time.Time{}, published: map[checkpoint.ID][]checkpoint.Snapshot{}}
	j.mu.Lock()
	if cp != nil {
		j.last.Restored = cp.ID
	}
	for _, w := range j.waiting {
		w.id = 0 // what they waited for went down with the last attempt
	}
	j.mu.Unlock()
	j.proven = true
	j.history.begin(at, cp, len(cfg.Subtasks))
	j.setState(Running, nil)
	mode, err := l.run(ctx)
	j.history.end(err, j.o.Now())
	if err != nil {
		return 0, err
	}
	for _, t := range at.tasks {
		t.box.put(command{kind: cmdExit})
	}
	at.live.Wait()
	select {
	case n := <-at.notices:
		at.deliver(ctx, n)
	default:
	}
	select {
	case err := <-at.failed:
		// Everything is durable and committed: what fails now is only a connection being closed.
		j.o.Log.Warn("a task failed after the final checkpoint was committed", "err", err)
	default:
	}
	return mode, nil
}

// ownedCommitter aborts only while this process owns the job: a suspended one that wakes up in the middle of its restore
// would otherwise abort what its replacement has open.
type ownedCommitter struct {
	checkpoint.Committer
	owner *checkpoint.Owner
}

// Abort implements checkpoint.Committer.
func (c ownedCommitter) Abort(ctx context.Context, keep []checkpoint.Committable) error {
	if err := c.owner.Check(); err != nil {
		return err
	}
	return c.Committer.Abort(ctx, keep)
}

// openSinks opens sinks and committers, and asks each sink to refuse what cannot work.
func (at *attempt) openSinks(ctx context.Context, lineage string) (err error) {
	if at.sinks, err = at.makeSinks(ctx, lineage); err != nil {
		return err
	}
	for _, s := range at.sinks {
		m := at.job.meterOf(s.id)
		if s.committer == nil {
			m.attach(nil)
			continue
		}
		s.committer = timedCommitter{s.committer, m, at.job.o.Now}
		m.attach(s.sink)
	}
	return nil
}

// makeSinks makes the job's sinks for a lineage, with their committers. Those made before an error are returned too.
func (at *attempt) makeSinks(ctx context.Context, lineage string) (sinks []*openSink, err error) {
	for _, n := range at.job.g.Nodes {
		if n.Sink == nil {
			continue
		}
		s := &openSink{id: n.Sink.Spec.ID, node: n, spec: n.Sink.Spec}
		s.spec.Job, s.spec.Embedded, s.spec.Parallel = at.info(lineage), at.job.o.Embedded, n.Parallelism
		if s.sink, err = n.Sink.Connector.NewSink(ctx, s.spec); err != nil {
			return sinks, at.nodeError(n, err)
		}
		sinks = append(sinks, s)
		if err := s.sink.Preflight(ctx); err != nil {
			return sinks, at.nodeError(n, err)
		}
		if s.committer, err = s.sink.Committer(ctx); err != nil {
			return sinks, at.nodeError(n, err)
		}
		if s.committer != nil {
			s.committer = ownedCommitter{s.committer, at.job.o.Owner}
		}
	}
	return sinks, nil
}

func closeSinks(sinks []*openSink) error {
	var errs []error
	for _, s := range sinks {
		if s.committer != nil {
			errs = append(errs, s.committer.Close())
		}
		errs = append(errs, s.sink.Close())
	}
	return errors.Join(errs...)
}

func (at *attempt) nodeError(n *Node, err error) error {
	return (&member{node: n, id: checkpoint.SubtaskID{Operator: n.ID}}).wrap(err)
}

// info is what connectors are told about the job.
func (at *attempt) info(lineage string) connectors.JobInfo {
	o := &at.job.o
	return connectors.JobInfo{
		Name: o.Name, ID: o.ID, Lineage: lineage, Fence: o.Owner.Fence(),
		CheckpointInterval: o.Checkpoints.Interval.Milliseconds(), CheckpointTimeout: o.Checkpoints.Timeout.Milliseconds(),
		MinPause: o.Checkpoints.MinPause.Milliseconds(), MaxConcurrentCheckpoints: o.Checkpoints.MaxConcurrent, Log: o.Log,
		MaxDowntime: o.Checkpoints.MaxDowntime.Milliseconds(),
		Shared:      &at.shared, Owned: o.Owner.Check,
	}
}

// start runs a goroutine per task and the job's own.
func (at *attempt) start() {
	at.opened.Add(len(at.tasks))
	at.live.Add(len(at.tasks))
	for _, t := range at.tasks {
		at.spawn(t.doing, func() error {
			defer at.live.Done()
			opened := sync.OnceFunc(at.opened.Done)
			defer opened()
			return t.run(at.ctx, opened)
		})
		at.spawn(named("the state of "+t.head.node.Name), func() error { return t.finish(at.ctx) })
	}
	at.spawn(named("the commit of a checkpoint by a sink"), func() error { return at.commitLoop(at.ctx) })
	at.spawn(named("the ages of transactions"), at.watchLoop)
	at.spawn(named("a source that is told of a checkpoint"), func() error { return at.noticeLoop(at.ctx) })
	for _, n := range at.job.g.Nodes {
		if src := at.sources[n.ID]; src != nil && src.DiscoveryInterval() > 0 {
			at.spawn(named("the connector of source "+n.Name+", looking for splits"), func() error { return at.discover(at.ctx, n, src) })
		}
	}
	at.spawn(named("the start of the tasks"), func() error {
		at.opened.Wait() // a task that fails counts as well: the attempt then ends by its failure
		close(at.ready)
		return nil
	})
}

// spawn runs f, which name names, on a goroutine of the attempt. Its failure, or panic, ends the attempt.
func (at *attempt) spawn(name func() string, f func() error) {
	at.wg.Add(1)
	ended := at.unended.add(name)
	go func() {
		defer at.wg.Done()
		defer ended()
		defer func() {
			if p := recover(); p != nil {
				at.fail(at.job.panicked(p))
			}
		}()
		if err := f(); err != nil && !errors.Is(err, errStopping) {
			at.fail(err)
		}
	}()
}

// fail records the first failure. Later ones are usually its consequences and go to the log.
func (at *attempt) fail(err error) {
	if at.ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return
	}
	select {
	case at.failed <- err:
	default:
		at.job.o.Log.Debug("another failure of the same attempt", "err", err)
	}
}

// send passes an event to the loop.
func (at *attempt) send(e checkpoint.Event) {
	select {
	case at.events <- e:
	case <-at.done:
	}
}

func (at *attempt) exhausted(id checkpoint.SubtaskID) {
	at.send(checkpoint.TaskFinished{Subtask: id, Now: at.job.o.Now()})
}

func (at *attempt) nowMs() int64 { return at.job.o.Now().UnixMilli() }

func (at *attempt) waitOpened() error {
	select {
	case <-at.ready:
		return nil
	case <-at.done:
		return errStopping
	}
}

// isLast tells whether no rows follow barrier id.
func (at *attempt) isLast(id checkpoint.ID) bool {
	last := at.last.v.Load()
	return last != 0 && int64(id) >= last
}

// abandon marks checkpoint id as given up: tasks that meet its barrier later only pass it on.
func (at *attempt) abandon(id checkpoint.ID) {
	at.mu.Lock()
	at.givenUp[id] = true
	at.mu.Unlock()
}

func (at *attempt) abandoned(id checkpoint.ID) bool {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.givenUp[id]
}

// forget drops marks that no barrier can meet any more: id is complete, so every earlier barrier was answered.
func (at *attempt) forget(id checkpoint.ID) {
	at.mu.Lock()
	for k := range at.givenUp {
		if k < id {
			delete(at.givenUp, k)
		}
	}
	at.mu.Unlock()
	at.walk.forget(id)
}

// close ends everything and waits for it.
func (at *attempt) close() {
	at.cancel()
	ended := make(chan struct{})
	go func() { at.wg.Wait(); close(ended) }()
	for waiting := true; waiting; {
		select {
		case <-ended:
			waiting = false
		case <-time.After(slowCancel):
			at.job.o.Log.Warn("still waiting for the job's tasks to end", "job", at.job.o.Name, "for", at.unended.String())
		}
	}
	for _, s := range at.sinks {
		at.job.meterOf(s.id).attach(nil)
		if s.committer != nil {
			at.logClose(s.node, s.committer.Close())
		}
		at.logClose(s.node, s.sink.Close())
	}
	for _, n := range at.job.g.Nodes {
		if src := at.sources[n.ID]; src != nil {
			at.logClose(n, src.Close())
		}
	}
}

// logClose notes a failed close: nothing that a checkpoint lists depends on it.
func (at *attempt) logClose(n *Node, err error) {
	if err != nil {
		at.job.o.Log.Warn("closing failed", "node", n.Name, "err", err)
	}
}

// discover looks for new splits of a source and hands them to its subtasks.
func (at *attempt) discover(ctx context.Context, n *Node, src connectors.Source) error {
	known := map[checkpoint.Split]bool{}
	var tasks []*task
	for _, t := range at.tasks {
		if t.head.node == n {
			tasks = append(tasks, t)
			for _, sp := range t.source.splits {
				known[sp.name] = true
			}
		}
	}
	next := len(known)
	every := time.NewTicker(time.Duration(src.DiscoveryInterval()) * time.Millisecond)
	defer every.Stop()
	for {
		select {
		case <-every.C:
		case <-at.done:
			return errStopping
		}
		splits, err := src.Splits(ctx)
		if err != nil {
			if ctx.Err() == nil {
				at.job.o.Log.Warn("looking for new splits failed", "node", n.Name, "err", err)
			}
			continue
		}
		for _, sp := range splits {
			if !known[sp] {
				known[sp] = true
				at.job.o.Log.Info("new split", "node", n.Name, "split", sp)
				tasks[next%len(tasks)].box.put(command{kind: cmdAddSplit, split: checkpoint.Position{Split: sp}})
				next++
			}
		}
	}
}

// restoredOf are the snapshots of an operator in cp, by old subtask index; none for an operator that starts empty.
func (at *attempt) restoredOf(cp *checkpoint.Checkpoint, id checkpoint.OperatorID) restored {
	if cp == nil {
		return restored{}
	}
	if was, other := at.was[id]; other {
		if was == "" {
			return restored{}
		}
		id = was
	}
	if cp.Parallelism[id] == 0 {
		return restored{} // an operator without state that was not there
	}
	r := restored{was: id, snapshots: make([]checkpoint.Snapshot, cp.Parallelism[id])}
	for _, s := range cp.Subtasks {
		if s.Subtask.Operator == id && s.Subtask.Index < len(r.snapshots) {
			r.snapshots[s.Subtask.Index] = s
		}
	}
	return r
}
