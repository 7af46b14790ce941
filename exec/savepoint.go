package exec

import (
	"context"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/diag"
)

// saver is a store that can keep a checkpoint from its garbage collection, and copy it.
type saver interface {
	Pin(id checkpoint.ID) (release func())
	Savepoint(ctx context.Context, id checkpoint.ID, dir string) error
}

// saver is the job's store, if it can make savepoints.
func (j *Job) saver() (saver, error) {
	if s, ok := j.o.Store.(saver); ok && !j.o.ownerMade {
		return s, nil
	}
	return nil, diag.New(diag.Config, diag.Pos{}, "job %q keeps its checkpoints in memory and cannot take a savepoint", j.o.Name).
		WithHint("run it with a state directory")
}

// Savepoint takes a checkpoint now, and copies it to dir, which must not exist, when its output is committed. It returns
// the checkpoint's id when all of that is durable. The job goes on.
func (j *Job) Savepoint(ctx context.Context, dir string) (checkpoint.ID, error) {
	s, err := j.saver()
	if err == nil {
		err = checkpoint.PrepareSavepoint(j.o.Owner.FS(), dir) // before the work
	}
	if err != nil {
		return 0, err
	}
	w, err := j.request(ctx, true)
	if err != nil {
		return 0, err
	}
	defer w.release()
	return w.committed, s.Savepoint(ctx, w.committed, dir)
}

// request asks for a checkpoint and waits until it, or one that covers it, is committed.
func (j *Job) request(ctx context.Context, savepoint bool) (*waiter, error) {
	w := &waiter{savepoint: savepoint, done: make(chan error, 1), release: func() {}}
	j.mu.Lock()
	if j.state.Ended() {
		j.mu.Unlock()
		return nil, j.endedError()
	}
	j.waiting = append(j.waiting, w)
	j.mu.Unlock()
	j.nudge()
	select {
	case err := <-w.done:
		return w, err
	case <-ctx.Done():
		j.drop(w)
		return nil, ctx.Err()
	}
}

// drop forgets a caller that has given up waiting.
func (j *Job) drop(w *waiter) {
	j.mu.Lock()
	j.waiting = slices.DeleteFunc(j.waiting, func(x *waiter) bool { return x == w })
	j.mu.Unlock()
	w.release() // it may have been answered meanwhile
}

// keep notes that checkpoint id answers those who wait for it, and keeps it for the savepoints among them: before the store
// may collect it.
func (j *Job) keep(id checkpoint.ID) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, w := range j.waiting {
		if w.id == 0 || w.id > id {
			continue
		}
		w.committed = id
		if s, ok := j.o.Store.(saver); ok && w.savepoint {
			w.release = s.Pin(id)
		}
	}
}

// Stop ends the job with a final checkpoint, committed before it returns nil, and with StopOptions.Savepoint copied there.
// Rows after that checkpoint are not written; the next start resumes there. When ctx ends first the job goes on stopping.
func (j *Job) Stop(ctx context.Context, o StopOptions) error {
	mode := checkpoint.StopSuspend
	if o.Drain {
		mode = checkpoint.StopDrain
	}
	if o.Savepoint != "" {
		_, err := j.saver()
		if err == nil {
			err = checkpoint.PrepareSavepoint(j.o.Owner.FS(), o.Savepoint)
		}
		if err != nil {
			return err // the job goes on
		}
	}
	j.mu.Lock()
	switch {
	case o.Savepoint != "" && j.state.Ended():
		j.mu.Unlock()
		return j.endedError()
	case o.Savepoint != "" && j.stopInto != "" && j.stopInto != o.Savepoint:
		into := j.stopInto
		j.mu.Unlock()
		return diag.New(diag.Conflict, diag.Pos{}, "job %q is being stopped with savepoint %q already", j.o.Name, into)
	case o.Savepoint != "":
		j.stopInto = o.Savepoint
	}
	if j.stop == nil {
		j.stop = &mode
	}
	j.mu.Unlock()
	j.nudge()
	if err := j.Wait(ctx); err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			return j.stopping(err)
		}
		return err
	}
	return nil
}

// stopping says where a job is that did not stop in time.
func (j *Job) stopping(err error) error {
	last := j.Status().Checkpoint
	e := diag.New(diag.External, diag.Pos{}, "job %q is still stopping", j.o.Name).Wrap(err)
	if last.Last > last.Committed {
		return e.WithDetail("checkpoint %d in %q is durable and its output is being committed", last.Last, j.o.Owner.Dir()).
			WithHint("it commits when its targets answer; a process that is ended before does so at its next start")
	}
	return e.WithHint("it takes its final checkpoint when the rows before that have passed; the log of its process says what it waits for")
}

// stopped completes a run that Stop ended: it writes the savepoint, and says of a failure what is durable nevertheless.
func (j *Job) stopped(ctx context.Context, err error) error {
	j.mu.Lock()
	stop, into, last := j.stop, j.stopInto, j.last
	j.mu.Unlock()
	if stop == nil || errors.Is(err, context.Canceled) {
		return err
	}
	if err != nil {
		if last.Last > last.Committed {
			// Not below what is published: its output may be committed in part.
			return diag.New(diag.CodeOf(err), diag.Pos{}, "job %q stopped at checkpoint %d, whose output is not committed", j.o.Name, last.Last).Wrap(err).
				WithDetail("the checkpoint is durable in %q", j.o.Owner.Dir()).
				WithHint("start the job again: it commits that output first, and goes on from there")
		}
		return err
	}
	if into == "" {
		return nil
	}
	s, err := j.saver()
	if err == nil {
		err = s.Savepoint(ctx, last.Committed, into)
	}
	if err == nil {
		return nil
	}
	return diag.New(diag.CodeOf(err), diag.Pos{}, "job %q stopped, but its savepoint was not written", j.o.Name).Wrap(err).
		WithDetail("its final checkpoint %d is committed and durable in %q", last.Committed, j.o.Owner.Dir()).
		WithHint("streamsql savepoint create makes a savepoint of it once the cause is removed")
}
