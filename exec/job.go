package exec

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// State is where a job is in its life.
type State uint8

// The states.
const (
	Created    State = iota
	Restoring        // committing and aborting what the last run left, opening state
	Running          //
	Restarting       // failed; waiting for the restart strategy's delay
	Finished         // all input read, or drained: everything is committed
	Suspended        // stopped at a committed checkpoint, to go on later
	Canceled         // stopped at once; the next start resumes at the last checkpoint
	Failed           //
)

// String is the state in Flink's spelling.
func (s State) String() string {
	return [...]string{"CREATED", "RESTORING", "RUNNING", "RESTARTING", "FINISHED", "SUSPENDED", "CANCELED", "FAILED"}[s]
}

// Ended reports the four states that are final.
func (s State) Ended() bool { return s >= Finished }

// Job runs a graph: it builds the tasks, carries out what the checkpoint coordinator decides, and starts again from the
// newest checkpoint after a failure. Run it once. All methods are safe for concurrent use.
type Job struct {
	// proven is set once the job has run, here or before its checkpoint: what it needs was there, so that a failure of the
	// outside is worth waiting for. A job that could never start is told what is missing instead. Only Run uses it.
	proven bool
	g      *Graph
	o      JobOptions

	counters registry
	cancel   context.CancelFunc // of Run
	canceled bool               // Cancel was called, perhaps before Run
	ended    chan struct{}

	mu       sync.Mutex
	state    State
	err      error
	cause    error // of the last restart
	started  time.Time
	restarts int
	stop     *checkpoint.StopMode
	wake     chan struct{} // has a token when stop or waiting changed
	waiting  []*waiter
	last     CheckpointStatus
	meters   map[splitKey]*splitMeter
	reread   reread
	sinks    []*sinkMeter // in the graph's order; they have locks of their own
	lineage  string
	degraded []checkpoint.Degradation
	known    []checkpoint.Degradation // of them, those that a checkpoint listed when this run began
	running  bool
	stopInto string // savepoint directory of Stop, "" = none

	history history          // has a lock of its own
	store   checkpoint.Meter // of keyed state; the same

	sounding map[string]bool // alarms that are on, by name; of the goroutine that watches
}

// waiter is a call of Checkpoint. id is 0 until a checkpoint started after the call.
type waiter struct {
	savepoint bool
	id        checkpoint.ID
	committed checkpoint.ID // the checkpoint that answered it: id, or one that subsumed it
	release   func()        // of a savepoint: ends the pin of committed
	done      chan error    // buffered
}

// NewJob prepares a job. It checks the graph but contacts nothing.
func NewJob(g *Graph, o JobOptions) (*Job, error) {
	if err := checkGraph(g); err != nil {
		return nil, err
	}
	if err := o.defaults(); err != nil {
		return nil, err
	}
	return &Job{
		g: g, o: o, ended: make(chan struct{}), wake: make(chan struct{}, 1),
		counters: registry{m: map[counterKey]*Counter{}}, meters: map[splitKey]*splitMeter{}, sinks: sinkMetersOf(g),
	}, nil
}

// Run runs the job until it ended: nil when all input was read and committed, or Stop succeeded; the context's error
// after Cancel; else why it failed. When Run returned, nothing of the job is left running.
func (j *Job) Run(ctx context.Context) error {
	j.mu.Lock()
	if j.running {
		j.mu.Unlock()
		return diag.New(diag.Internal, diag.Pos{}, "job %q is already run", j.o.Name)
	}
	j.running = true
	ctx, j.cancel = context.WithCancel(ctx)
	if j.canceled {
		j.cancel()
	}
	j.started = j.o.Now()
	j.mu.Unlock()
	defer j.cancel()
	j.history.open(&j.o)
	state, err := j.run(ctx)
	err = j.stopped(ctx, err)
	j.history.close()
	if j.o.ownerMade {
		err = errors.Join(err, j.o.Owner.Close())
	}
	j.finish(state, err)
	return err
}

// maxLosses bounds how often a job goes back because its transactions were aborted by others: two programs that share
// transactional ids would otherwise do that to each other for ever.
const maxLosses = 3

func (j *Job) run(ctx context.Context) (State, error) {
	again := newRestarter(j.o.Restart)
	base := &origin{mode: j.o.Restore.Mode, from: j.o.Restore.From}
	losses := 0
	for {
		mode, err := j.runAttempt(ctx, base)
		switch {
		case err == nil && mode == checkpoint.StopDrain:
			return Finished, nil
		case err == nil && mode == checkpoint.StopSuspend:
			return Suspended, nil
		case err == nil || ctx.Err() != nil:
			return Canceled, context.Canceled
		}
		// Whatever failed, a process that lost its directory failed because of that, and must not try again.
		if lost := j.o.Owner.Check(); diag.CodeOf(lost) == diag.Conflict {
			j.o.Log.Warn("the job failed after its state directory was taken over", "job", j.o.Name, "err", err)
			return Failed, lost
		}
		class, wait, ok := ClassOf(err), time.Duration(0), false
		// A failure while stopping ends the job: the next start resumes exactly.
		can := class == TransientError && (j.proven || diag.CodeOf(err) != diag.External)
		if diag.CodeOf(err) == diag.Lost && j.Status().State == Running && losses < maxLosses {
			// A transaction was taken away under a running attempt. Recovery proves whether going back is exact, and is
			// the one to give up.
			losses++
			can = true
		}
		if can && j.stopMode() == nil {
			if wait, ok = again.failed(j.o.Now()); !ok && j.o.Restart.Kind != RestartNever {
				err = gaveUp(err, j.Status().Restarts, again.spent())
			}
		}
		if !ok {
			j.o.Log.Info("the job failed", "job", j.o.Name, "class", class.String(), "err", err)
			return Failed, err
		}
		j.o.Log.Warn("the job failed and will restart", "job", j.o.Name, "after", wait, "class", class.String(), "restarts left", again.left(), "err", err)
		j.mu.Lock()
		j.restarts++
		j.cause = err
		j.mu.Unlock()
		j.setState(Restarting, err)
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return Canceled, context.Canceled
		}
	}
}

func (j *Job) setState(s State, err error) {
	j.mu.Lock()
	j.state = s
	j.mu.Unlock()
	if j.o.OnState != nil {
		j.o.OnState(s, err)
	}
}

func (j *Job) finish(s State, err error) {
	j.mu.Lock()
	j.state, j.err = s, err
	waiting := j.waiting
	j.waiting = nil
	j.mu.Unlock()
	for _, w := range waiting {
		w.done <- j.endedError()
	}
	if j.o.OnState != nil {
		j.o.OnState(s, err)
	}
	close(j.ended)
}

func (j *Job) endedError() error {
	return diag.New(diag.Conflict, diag.Pos{}, "job %q has ended", j.o.Name)
}

// Cancel ends the job at once, without a checkpoint. It does not wait; see Wait.
func (j *Job) Cancel() {
	j.mu.Lock()
	j.canceled = true
	cancel := j.cancel
	j.mu.Unlock()
	if cancel != nil {
		cancel()
	}
}

// Wait waits until the job ended and returns what Run returned, or ctx's error.
func (j *Job) Wait(ctx context.Context) error {
	select {
	case <-j.ended:
		j.mu.Lock()
		defer j.mu.Unlock()
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Ended is closed when the job ended.
func (j *Job) Ended() <-chan struct{} { return j.ended }

// Checkpoint takes a checkpoint now and returns its id when it is durable and committed.
func (j *Job) Checkpoint(ctx context.Context) (checkpoint.ID, error) {
	w, err := j.request(ctx, false)
	if err != nil {
		return 0, err
	}
	return w.id, nil
}

// nudge makes the attempt look at stop and waiting.
func (j *Job) nudge() {
	select {
	case j.wake <- struct{}{}:
	default:
	}
}

func (j *Job) stopMode() *checkpoint.StopMode {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.stop
}

// checkGraph refuses graphs that cannot run: a planner's mistake, not a user's.
func checkGraph(g *Graph) error {
	bad := func(n *Node, why string) error {
		return diag.New(diag.Internal, diag.Pos{}, "graph: node %q %s", n.Name, why)
	}
	ids := map[checkpoint.OperatorID]bool{}
	for i, n := range g.Nodes {
		kinds := 0
		for _, set := range []bool{n.Source != nil, n.Operator != nil, n.Sink != nil} {
			if set {
				kinds++
			}
		}
		switch {
		case kinds != 1:
			return bad(n, "must be one of source, operator and sink")
		case n.Parallelism < 1 || n.Parallelism > checkpoint.KeyGroups:
			return bad(n, "has a parallelism outside 1 to 128")
		case ids[n.ID]:
			return bad(n, "has the id of another node")
		case (n.Source != nil) != (len(n.Inputs) == 0):
			return bad(n, "is a source with inputs or has none")
		case n.Sink != nil && n.Output != nil: // what it pre-commits goes with its answer to the barrier, never over an edge
			return bad(n, "is a sink with output")
		}
		ids[n.ID] = true
		for _, e := range n.Inputs {
			if e.From < 0 || e.From >= i {
				return bad(n, "comes before its input")
			}
			from := g.Nodes[e.From]
			if from.Output == nil {
				return bad(n, "reads a node without output")
			}
			if e.Ship == Forward && from.Parallelism != n.Parallelism {
				return bad(n, "is fed forward from another parallelism")
			}
			if e.Ship == Hash && len(e.Keys) == 0 {
				return bad(n, "is fed by hash without keys")
			}
		}
	}
	return nil
}
