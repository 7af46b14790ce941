package checkpoint

import (
	"context"
	"errors"
	"log/slog"
)

// BackendOptions configure a Backend.
type BackendOptions struct {
	// Budget is shared by all backends of the job; nil means NewMemoryBudget(0).
	Budget *MemoryBudget
	// OwnsKeyGroup tells which key groups the subtask owns; nil = all.
	OwnsKeyGroup func(group int) bool
	// Now is the processing time in ms, for TTL; nil = the wall clock.
	Now func() int64
	// Log receives Pebble's warnings; nil discards.
	Log *slog.Logger
}

// ErrSealing is returned by Seal while an earlier seal is still being written: decline the checkpoint (not ready).
var ErrSealing = errors.New("the state of an earlier checkpoint is still being written")

// Backend is the keyed state of one task: the tables of all operators in a chain, in one Pebble.
type Backend struct{}

// OpenBackend opens an empty backend for the task called name (unique in the job, e.g. "agg-0": file name characters)
// in the directory that owner holds. Working files of an earlier process under that name are removed.
func OpenBackend(owner *Owner, name string, o BackendOptions) (*Backend, error) {
	return nil, errors.New("not built yet")
}

// Restore gives the backend the state files of all old subtasks of this chain, from the restored checkpoint, before the
// first Table. Rows of key groups that the subtask does not own are left out.
func (b *Backend) Restore(ctx context.Context, files []StateFile) error { return nil }

// Table opens a table of an operator. A table in the restored checkpoint with another Format is an error that names
// operator and table.
func (b *Backend) Table(op OperatorID, o TableOptions) (Table, error) { return nil, nil }

// Seal is the synchronous part of checkpoint id, called at the barrier on the subtask's goroutine: it copies the changed
// rows. The function returned is the asynchronous part, to be called exactly once, on any goroutine, while the subtask
// goes on: it writes the rows and returns the files of the snapshot, durable. Close waits for it.
func (b *Backend) Seal(id ID) (func(context.Context) ([]StateFile, error), error) { return nil, nil }

// DirtyBytes is the size of the rows changed since the last Seal: a reason for an early checkpoint.
func (b *Backend) DirtyBytes() int64 { return 0 }

// Close releases memory and removes the working files.
func (b *Backend) Close() error { return nil }
