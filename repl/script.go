package repl

import (
	"context"
	"io"

	"github.com/streamsql/streamsql"
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

// Run runs text. It stops at the first statement that fails, or when ctx is done: then running jobs are left running,
// for the caller to stop. The error is a *JobError when a job failed.
func (r *Runner) Run(ctx context.Context, text string) error {
	s := r.Engine.Script(text)
	var running []*streamsql.Job
	for {
		res, err := s.Next(ctx)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		for _, n := range res.Notices {
			r.notice(n)
		}
		if res.Job != nil && r.Started != nil {
			r.Started(res.Job)
		}
		if res.Schema != nil {
			if err := r.print(ctx, res); err != nil {
				return err
			}
			continue
		}
		if res.Job == nil {
			continue
		}
		if res.Job.Bounded() || r.Engine.Setting("table.dml-sync") == "true" {
			if err := wait(ctx, res.Job); err != nil {
				return err
			}
		} else {
			running = append(running, res.Job)
		}
	}
	for _, j := range running {
		if err := wait(ctx, j); err != nil {
			return err
		}
	}
	return nil
}

func (r *Runner) print(ctx context.Context, res *streamsql.Result) error {
	if !res.IsQuery() {
		_, err := r.Printer.Print(res)
		return err
	}
	if !res.Bounded && r.Printer.Mode == FinalTable {
		r.notice("the query has no end, so it has no final table: its changes are shown (--result-mode changelog)")
	}
	stop := context.AfterFunc(ctx, res.Job.Cancel)
	defer stop()
	if _, err := r.Printer.Print(res); err != nil {
		return &JobError{Err: err}
	}
	return ctx.Err()
}

func (r *Runner) notice(text string) {
	if r.Notice != nil {
		r.Notice(text)
	}
}

func wait(ctx context.Context, j *streamsql.Job) error {
	err := j.Wait(ctx)
	if err != nil && ctx.Err() == nil {
		return &JobError{Job: j, Err: err}
	}
	return err
}
