package exec

import (
	"log/slog"
	"time"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// Mode is execution.checkpointing.mode.
type Mode uint8

// The modes.
const (
	ExactlyOnce Mode = iota // gates align barriers: a snapshot never mixes two checkpoints
	AtLeastOnce             // gates count barriers without blocking: a restore may repeat rows
)

// String is Flink's value of execution.checkpointing.mode.
func (m Mode) String() string { return [...]string{"EXACTLY_ONCE", "AT_LEAST_ONCE"}[m] }

// CheckpointConfig are Flink's execution.checkpointing.* keys.
type CheckpointConfig struct {
	Interval        time.Duration // .interval; 0 = only on request, at Stop and at the end of bounded input
	Timeout         time.Duration // .timeout; 0 = 10 min
	MinPause        time.Duration // .min-pause, from the end of one to the start of the next
	MaxConcurrent   int           // .max-concurrent-checkpoints; 0 = 1
	TolerableFailed int           // .tolerable-failed-checkpoints: consecutive failures the job survives
	MaxDowntime     time.Duration // streamsql.max-downtime: what transaction timeouts have to outlast beside a checkpoint
	// OnDegraded is streamsql.on-degraded: what a restore does when it cannot keep exactly once.
	OnDegraded checkpoint.OnDegraded
	Mode       Mode // .mode
	// Unaligned lets barriers overtake rows that wait at gates (.unaligned.enabled). It needs ExactlyOnce and
	// MaxConcurrent 1. Savepoints and the job's last checkpoint stay aligned.
	Unaligned bool
	// AlignedTimeout is how long an unaligned checkpoint is tried with aligned barriers first
	// (.aligned-checkpoint-timeout).
	AlignedTimeout time.Duration
}

// RestoreMode says where a job starts.
type RestoreMode uint8

// The modes.
const (
	RestoreLatest RestoreMode = iota // the newest usable checkpoint of the job's directory; a fresh start when none
	RestoreNone                      // a fresh start with a new lineage
	RestorePath                      // Restore.From, under a new lineage
)

// Restore says where a job starts.
type Restore struct {
	Mode RestoreMode
	From *checkpoint.Checkpoint // RestorePath: a savepoint whose files the caller brought into the store
	// AllowDropped lets a changed plan drop state of the checkpoint that it has no place for, and start operators empty whose
	// input goes on; without it such a restore is refused.
	AllowDropped bool
}

// JobOptions are what a job is run with. The zero value of every field but Name is usable: an ephemeral job without
// durable state, which restarts nothing.
type JobOptions struct {
	Name    string // pipeline.name
	ID      string // stable within the state directory; "" = Name
	Lineage string // of a fresh start; "" = made up. A restored job keeps its checkpoint's
	// Owner holds the job's state directory; its fencing number goes into every manifest. Nil keeps state and
	// checkpoints in memory, so that they survive a restart within Run only.
	Owner *checkpoint.Owner
	// Store keeps the checkpoints, by default in Owner's directory.
	Store checkpoint.Store
	// Memory bounds the resident keyed state of the job; nil = a quarter of the machine's memory.
	Memory *checkpoint.MemoryBudget
	// Disk is how keyed state that memory has no room for is laid out on disk.
	Disk    checkpoint.DiskOptions
	Restore Restore
	// Checkpoints, Restart: Flink's keys.
	Checkpoints CheckpointConfig
	Restart     RestartStrategy
	// Linger is how long a partly filled batch may wait at an exchange; 0 = 5 ms.
	Linger time.Duration
	// Embedded is the address of the embedded broker for tables without bootstrap servers.
	Embedded string
	Log      *slog.Logger
	// Now is the clock of timers, idleness and timeouts; nil = a wall clock that never steps back.
	Now func() time.Time
	// OnState is called at every change of the job's state, from the job's goroutine; nil = nobody listens.
	OnState func(State, error)

	// poison makes exchanges overwrite returned batches, so that tests see whoever kept one.
	poison    bool
	ownerMade bool
}

// StopOptions are how Stop ends a job.
type StopOptions struct {
	// Drain ends event time before the final checkpoint: sources emit the maximum watermark, all event-time timers
	// fire, and the checkpoint is marked Final, so that a restore has nothing to do but commit. Without it the job can
	// go on from the final checkpoint later.
	Drain bool
	// Savepoint is a directory, not existing yet, that the final checkpoint is copied to when its output is committed;
	// "" = none.
	Savepoint string
}

func (o *JobOptions) defaults() error {
	if o.ID == "" {
		o.ID = o.Name
	}
	if o.Checkpoints.Timeout == 0 {
		o.Checkpoints.Timeout = 10 * time.Minute
	}
	if o.Checkpoints.MaxConcurrent == 0 {
		o.Checkpoints.MaxConcurrent = 1
	}
	if err := o.Checkpoints.Check(); err != nil {
		return err
	}
	if o.Linger == 0 {
		o.Linger = 5 * time.Millisecond
	}
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Now == nil {
		o.Now = steadyClock()
	}
	if o.Owner == nil {
		o.Owner = checkpoint.OwnMemory()
		o.ownerMade = true
	}
	if o.Memory == nil {
		o.Memory = checkpoint.NewMemoryBudget(0)
	}
	if o.Store == nil {
		store, err := checkpoint.OpenStore(o.Owner, checkpoint.StoreOptions{Log: o.Log})
		if err != nil {
			return err
		}
		o.Store = store
	}
	return nil
}

// Check refuses combinations that cannot be kept.
func (c *CheckpointConfig) Check() error {
	switch {
	case !c.Unaligned:
		return nil
	case c.Mode != ExactlyOnce:
		return diag.New(diag.Config, diag.Pos{}, "'execution.checkpointing.unaligned.enabled' needs 'execution.checkpointing.mode' = 'EXACTLY_ONCE'").
			WithHint("with AT_LEAST_ONCE barriers are not aligned anyway: leave unaligned checkpoints off")
	case c.MaxConcurrent > 1:
		return diag.New(diag.Config, diag.Pos{}, "'execution.checkpointing.unaligned.enabled' needs 'execution.checkpointing.max-concurrent-checkpoints' = 1, not %d", c.MaxConcurrent).
			WithHint("a barrier that overtakes does not wait, so that a second checkpoint beside it gains nothing: set it to 1")
	}
	return nil
}
