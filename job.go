package streamsql

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/checkpoint/s3"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Job is a running or ended INSERT, statement set or query.
type Job struct {
	id    string
	plan  *planner.Plan
	job   *exec.Job
	query bool
	owner *checkpoint.Owner
	// savepoints is the directory that savepoints are made in by default.
	savepoints string
	now        func() time.Time
	done       chan struct{} // closed when everything of the job is released
	err        error         // why it ended; valid after done
}

// Status is a job's state, row counts, watermarks, lag and checkpoints at a moment.
type Status = exec.Status

// StopOptions say how a job is stopped.
type StopOptions = exec.StopOptions

// CheckpointID numbers the checkpoints of a job.
type CheckpointID = checkpoint.ID

// ID is the job's stable id: the same statement under the same pipeline.name has the same id after a restart.
func (j *Job) ID() string { return j.id }

// SavepointsDir is the directory below a state directory that savepoints are made in when nothing else is said.
const SavepointsDir = "savepoints"

// Name is pipeline.name, or Flink's default for the statement.
func (j *Job) Name() string { return j.plan.Name }

// Bounded reports that the job ends by itself when its input has been read.
func (j *Job) Bounded() bool { return j.plan.Bounded }

// Schema describes the rows of a query; nil for an INSERT or statement set.
func (j *Job) Schema() *types.Schema { return j.plan.Schema }

// Sinks are the tables the job writes and how.
func (j *Job) Sinks() []planner.SinkPlan { return j.plan.Sinks }

// Status is the job now. It does not block.
func (j *Job) Status() Status { return j.job.Status() }

// Flow is what went through a job since it was started by this process; rows that a restart repeated count twice.
type Flow struct {
	In, Out   int64          // rows out of its sources, rows into its sinks
	Watermark exec.Watermark // the lowest of the operators that have one; exec.NoWatermark when none has
	Lag       int64          // records behind the end of its splits, -1 when no source knows
}

// Flow adds up a status of the job.
func (j *Job) Flow(s Status) Flow {
	f := Flow{Watermark: exec.NoWatermark, Lag: -1}
	for i, n := range s.Nodes {
		if j.plan.Graph.Nodes[i].Source != nil {
			f.In += n.RowsOut
		}
		if j.plan.Graph.Nodes[i].Sink != nil {
			f.Out += n.RowsIn
		}
		if n.Watermark > exec.NoWatermark && (f.Watermark == exec.NoWatermark || n.Watermark < f.Watermark) {
			f.Watermark = n.Watermark
		}
	}
	for _, sp := range s.Splits {
		if sp.Lag >= 0 {
			f.Lag = max(f.Lag, 0) + sp.Lag
		}
	}
	return f
}

// Checkpoint takes a checkpoint now and returns when it is durable and its output committed.
func (j *Job) Checkpoint(ctx context.Context) (CheckpointID, error) { return j.job.Checkpoint(ctx) }

// Savepoint takes a checkpoint now and copies it to dir, which must not exist, when its output is committed. The job goes
// on. dir "" is a new directory as STOP JOB … WITH SAVEPOINT makes it. It returns where the savepoint is.
func (j *Job) Savepoint(ctx context.Context, dir string) (path string, id CheckpointID, err error) {
	if path, err = j.SavepointPath(dir); err != nil {
		return "", 0, err
	}
	id, err = j.job.Savepoint(ctx, path)
	return path, id, err
}

// SavepointPath is dir as an absolute path, or a new directory where settings say.
func (j *Job) SavepointPath(dir string) (string, error) {
	if dir == "" && j.savepoints == "" {
		return "", diag.New(diag.Config, diag.Pos{}, "job %q keeps its checkpoints in memory and cannot take a savepoint", j.Name()).
			WithHint("run it with a state directory")
	}
	if dir == "" {
		dir = filepath.Join(j.savepoints, fmt.Sprintf("savepoint-%.6s-%s", j.id, checkpoint.NewLineage()[:12]))
	}
	path, err := filepath.Abs(dir)
	if err != nil {
		return "", diag.New(diag.Config, diag.Pos{}, "savepoint directory %q", dir).Wrap(err)
	}
	return path, nil
}

// CheckpointTrace is the life of one checkpoint: what became of it, when, and where its barrier is.
type CheckpointTrace = checkpoint.Trace

// Checkpoints are the job's last checkpoints, newest first, those of earlier runs in the same state directory included.
func (j *Job) Checkpoints() []CheckpointTrace { return j.job.Checkpoints() }

// Stop ends the job with a final checkpoint and commits its output. With Drain event time ends first: every window
// fires. With Savepoint the final checkpoint is copied there. A stopped job goes on from there when its statement is
// executed again.
func (j *Job) Stop(ctx context.Context, o StopOptions) error {
	err := j.job.Stop(ctx, o)
	select {
	case <-j.done: // with its state directory given back: the statement can be executed again
	case <-ctx.Done():
	}
	return err
}

// Cancel ends the job at once. What is not yet committed is produced again when the job is resumed.
func (j *Job) Cancel() { j.job.Cancel() }

// Wait returns when the job has ended: nil when its input ended or it was stopped, context.Canceled after Cancel, else
// why it failed.
func (j *Job) Wait(ctx context.Context) error {
	select {
	case <-j.done:
		return j.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Done is closed when the job has ended.
func (j *Job) Done() <-chan struct{} { return j.done }

// jobID derives the stable id of a job from its name: readable where it is short and plain.
func jobID(name string) string {
	h := sha256.Sum256([]byte(name))
	return hex.EncodeToString(h[:16])
}

// start runs a plan as a job.
func (e *Engine) start(plan *planner.Plan, conf *planner.Config) (*Job, error) {
	leave, err := e.enter()
	if err != nil {
		return nil, err
	}
	defer leave()
	o := conf.JobOptions()
	o.Name = plan.Name
	o.ID = jobID(plan.Name)
	o.Log = e.log
	o.Memory = e.memory
	o.Now = e.now
	o.Embedded = e.embedded
	j := &Job{id: o.ID, plan: plan, query: plan.Schema != nil, now: time.Now, done: make(chan struct{})}
	if e.now != nil {
		j.now = e.now
	}
	if j.query {
		// A query's rows cannot be taken back once shown: it is not restarted, and it leaves nothing behind.
		o.ID = checkpoint.NewLineage()
		j.id = o.ID
		o.Checkpoints.Interval = 0
		o.Restart = exec.DefaultRestart(exec.RestartNever)
	} else if err := e.prepareState(j, &o, conf); err != nil {
		return nil, err
	}
	job, err := exec.NewJob(plan.Graph, o)
	if err != nil {
		j.release()
		return nil, err
	}
	j.job = job
	e.register(j)
	go func() {
		j.err = job.Run(context.Background())
		j.release()
		close(j.done)
		if j.query {
			e.forget(j)
		}
	}()
	return j, nil
}

// prepareState opens the job's directory and settles where it starts.
func (e *Engine) prepareState(j *Job, o *exec.JobOptions, conf *planner.Config) (err error) {
	if e.dir == "" {
		if conf.Recovery().Path != "" || e.restore.Path != "" {
			return diag.New(diag.Config, diag.Pos{}, "a job in memory cannot start from a checkpoint").
				WithHint("open the engine with a state directory")
		}
		if conf.Storage().Kept() {
			return diag.New(diag.Config, diag.Pos{}, "a job in memory cannot keep checkpoints in 'execution.checkpointing.dir'").
				WithHint("open the engine with a state directory: state files are made there")
		}
		return nil
	}
	j.savepoints = cmp.Or(conf.Recovery().SavepointDir, filepath.Join(e.dir, SavepointsDir))
	if err := e.refuseSecond(j); err != nil {
		return err
	}
	if j.owner, err = own(filepath.Join(e.dir, "jobs", j.id), e.takeOver); err != nil {
		return err
	}
	o.Owner = j.owner
	o.Restore, err = e.restoreFor(j, o, conf)
	if err != nil {
		j.release()
	}
	return err
}

// restoreFor settles where a job starts. A run that finished is not resumed: executing the statement again is a new run.
// A run whose process died between its last commit and saying so is resumed, and ends at once. One that came to its end earlier
// in what BeginRun began is not started (errDone).
func (e *Engine) restoreFor(j *Job, o *exec.JobOptions, conf *planner.Config) (exec.Restore, error) {
	ctx := context.Background()
	ask := conf.Recovery()
	path, rewind := cmp.Or(ask.Path, e.restore.Path), ask.AllowRewind || e.restore.AllowRewind
	r := exec.Restore{AllowDropped: ask.AllowDropped || e.restore.AllowDropped}
	keep, _ := conf.Get("execution.checkpointing.num-retained")
	store, err := openStore(o, conf.Storage(), checkpoint.StoreOptions{Log: o.Log, Retain: atoi(keep)})
	if err != nil {
		return r, err
	}
	o.Store = store
	ended, err := endedAs(ctx, store)
	var lost *checkpoint.UnreadableError
	if errors.As(err, &lost) && len(lost.Earlier) > 0 && o.Checkpoints.OnDegraded == checkpoint.DegradedRepeat {
		err = nil // the restore goes back to one of them: its run has not ended
	}
	if err != nil && !e.restore.None { // which is a way out of a directory that cannot be read
		return r, err
	}
	if err == nil {
		err = e.beginIn(j, ended)
		if errors.Is(err, errDone) && (path != "" || e.restore.None) {
			err = nil // it is asked for
		}
		if err != nil {
			return r, err
		}
	}
	switch {
	case path != "":
		found, err := store.Import(ctx, path, rewind)
		if found.From != nil {
			r.Mode, r.From = exec.RestorePath, found.From
		}
		if found.Rewound != 0 {
			e.log.Warn("the job goes back to an older savepoint, as allowed: output is written again", "job", o.Name, "savepoint", path, "left behind", found.Rewound)
		}
		return r, err
	case e.restore.None || ended != "":
		r.Mode = exec.RestoreNone
		if ended == "" {
			err = leaveBehind(store)
		}
	}
	return r, err
}

// leaveBehind puts on record that a job begins anew although it has a checkpoint to go on from.
func leaveBehind(store jobStore) error {
	ctx := context.Background()
	last, _, err := store.Latest(ctx)
	if errors.Is(err, checkpoint.ErrNone) {
		return nil
	}
	if err != nil {
		return err
	}
	return store.Degrade(ctx, checkpoint.Degradation{At: time.Now().UTC(), Lineage: last.Lineage, From: last.ID, By: "--restore none",
		Why: "the job was started without its state"})
}

// jobStore is what a job needs of a store before it runs.
type jobStore interface {
	checkpoint.Store
	Import(ctx context.Context, path string, allowRewind bool) (checkpoint.Imported, error)
	Ended(ctx context.Context) (bool, error)
	checkpoint.Recorder
}

// onRecord are the guarantees that the job of plan gave up in earlier runs, nil when nothing of it is here.
func (e *Engine) onRecord(plan *planner.Plan) ([]checkpoint.Degradation, error) {
	if e.dir == "" || plan.Schema != nil {
		return nil, nil
	}
	return checkpoint.ReadDegraded(vfs.Default, filepath.Join(e.dir, "jobs", jobID(plan.Name)))
}

// openStore opens the job's checkpoints where the settings say they are.
func openStore(o *exec.JobOptions, s planner.Storage, so checkpoint.StoreOptions) (jobStore, error) {
	ctx := context.Background()
	var objects checkpoint.ObjectStore
	var err error
	switch {
	case s.Bucket != "":
		objects, err = s3.Open(ctx, s.Bucket, s3.Options{Endpoint: s.Endpoint, Region: s.Region, AccessKey: s.AccessKey, SecretKey: s.SecretKey, PathStyle: s.PathStyle})
	case s.Dir != "":
		objects, err = checkpoint.OpenDirObjects(o.Owner.FS(), s.Dir)
	default:
		return checkpoint.OpenStore(o.Owner, so)
	}
	if err != nil && diag.CodeOf(err) == diag.Internal {
		err = diag.New(diag.External, diag.Pos{}, "checkpoint storage %q cannot be used", s.Dir).Wrap(err).
			WithHint("'execution.checkpointing.dir' names a directory that this user may write")
	}
	if err != nil {
		return nil, err
	}
	return checkpoint.OpenRemote(ctx, o.Owner, objects, path.Join(s.Path, o.ID), so)
}

func atoi(s string) (n int) {
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}

func (j *Job) release() {
	if j.owner != nil {
		_ = j.owner.Close() // the lock goes with the process at the latest
		j.owner = nil
	}
}

// refuseSecond refuses a job that runs already. One that has ended, but not yet given back its state directory, is waited
// for.
func (e *Engine) refuseSecond(j *Job) error {
	e.mu.Lock()
	old := e.jobs[j.id]
	e.mu.Unlock()
	if old == nil {
		return nil
	}
	if !old.job.Status().State.Ended() {
		return diag.New(diag.Conflict, diag.Pos{}, "job %q is already running", j.plan.Name).
			WithHint("STOP JOB '%s' first, or give this one its own name: SET 'pipeline.name' = '…'", j.id)
	}
	<-old.done
	return nil
}

func (e *Engine) register(j *Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.jobs[j.id] == nil {
		e.order = append(e.order, j.id)
	}
	e.jobs[j.id] = j
}

func (e *Engine) forget(j *Job) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.jobs, j.id)
	for i, id := range e.order {
		if id == j.id {
			e.order = append(e.order[:i], e.order[i+1:]...)
			break
		}
	}
}
