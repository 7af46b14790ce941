package repl

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Runner runs a script to its end: the statements in order, each query's rows printed before the next statement
// starts. An INSERT that ends by itself is waited for, as is every INSERT when table.dml-sync is true; others run on,
// and are waited for at the end of the script.
type Runner struct {
	Engine  *streamsql.Engine
	Printer *Printer
	// Notice receives remarks for the user; nil = they are dropped.
	Notice func(text string)
	// Started is told of every job; nil = nobody is.
	Started func(*streamsql.Job)

	running []background
}

// background is a job that runs beside the statements that follow its own, which stands at pos.
type background struct {
	job *streamsql.Job
	pos diag.Pos
}

// JobError is the failure of a job, as opposed to a statement that was refused.
type JobError struct {
	Job *streamsql.Job // nil for a query
	Err error
}

// Error is the job's error.
func (e *JobError) Error() string { return e.Err.Error() }

// Unwrap is the job's error.
func (e *JobError) Unwrap() error { return e.Err }

// ErrUnfinished is in the error of a script that was interrupted before its end: statements were not run, or a query or
// INSERT that ends by itself did not get there. What has no end is complete when it is stopped.
var ErrUnfinished = errors.New("interrupted before the end of the script")

// cut is err, with ErrUnfinished when that is what it means.
func cut(ctx context.Context, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrUnfinished) {
		return err
	}
	return errors.Join(ErrUnfinished, err)
}

// Run runs text and waits for its jobs. It stops at the first statement that fails, or when ctx is done: then running
// jobs are left running, for the caller to stop. The error is a *JobError when a job failed.
func (r *Runner) Run(ctx context.Context, text string) error {
	if err := r.Step(ctx, text); err != nil {
		return err
	}
	return r.Finish(ctx)
}

// Step is Run without waiting for the jobs that have no end.
func (r *Runner) Step(ctx context.Context, text string) error {
	s := r.Engine.Script(text)
	for {
		res, err := s.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return cut(ctx, err)
		}
		if err := r.result(ctx, res); err != nil {
			return err
		}
	}
}

// Finish waits for the jobs that earlier Steps left running. It returns as soon as one has failed.
func (r *Runner) Finish(ctx context.Context) error {
	ended := make(chan error, len(r.running))
	for _, b := range r.running {
		go func() { ended <- wait(ctx, b.job, b.pos) }()
	}
	for range r.running {
		if err := <-ended; err != nil {
			return err
		}
	}
	r.running = nil
	return nil
}

func (r *Runner) result(ctx context.Context, res *streamsql.Result) error {
	for _, n := range res.Notices {
		r.notice(n)
	}
	if res.Job != nil && r.Started != nil {
		r.Started(res.Job)
	}
	switch {
	case res.Schema != nil:
		return r.print(ctx, res)
	case res.Job == nil:
		return nil
	case res.Job.Bounded():
		return cut(ctx, wait(ctx, res.Job, res.Pos))
	case syncInserts(r.Engine):
		return wait(ctx, res.Job, res.Pos)
	}
	r.running = append(r.running, background{res.Job, res.Pos})
	return nil
}

func syncInserts(e *streamsql.Engine) bool {
	return strings.EqualFold(e.Setting("table.dml-sync"), "true")
}

func (r *Runner) print(ctx context.Context, res *streamsql.Result) error {
	if !res.IsQuery() {
		_, err := r.Printer.Print(ctx, res)
		return err
	}
	p := r.Printer.under(r.Engine, res)
	if !res.Bounded && p.Mode == FinalTable {
		r.notice("the query has no end, so it has no final table: its changes are shown (--result-mode changelog)")
	}
	if _, err := p.Print(ctx, res); err != nil {
		return &JobError{Err: diag.At(err, res.Pos)}
	}
	if res.Bounded {
		return cut(ctx, ctx.Err())
	}
	return ctx.Err()
}

func (r *Runner) notice(text string) {
	if r.Notice != nil {
		r.Notice(text)
	}
}

// wait is until j has ended. An error without a place of its own gets that of the statement.
func wait(ctx context.Context, j *streamsql.Job, pos diag.Pos) error {
	err := j.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return &JobError{Job: j, Err: diag.At(err, pos)}
	}
	return err
}
