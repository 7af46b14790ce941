package streamsql

import (
	"context"
	"errors"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// BeginRun says that the statements executed from now on are one run of what key names, such as the text of a file. Until all
// of its jobs have come to their end (EndRun), executing the statement of one that has does nothing when a later process begins
// the same run again: its output is there, and the run goes on with the others. Without BeginRun, or when the run had come to
// its end, such a statement is a new run of the job, which writes everything again.
//
// Options.Restore.None makes all begin afresh. An engine in memory keeps no note of runs.
func (e *Engine) BeginRun(key string) error {
	leave, err := e.enter()
	if err != nil {
		return err
	}
	defer leave()
	if e.owner == nil {
		return nil
	}
	r, err := checkpoint.OpenRun(e.owner, key, e.restore.None)
	if err != nil {
		return err
	}
	e.mu.Lock()
	e.runNote = r
	e.mu.Unlock()
	return nil
}

// EndRun says that all statements of the run have been executed. It has come to its end if its jobs have; one that was stopped
// goes on when the run is begun again.
func (e *Engine) EndRun() error {
	leave, err := e.enter()
	if err != nil {
		return err
	}
	defer leave()
	for _, j := range e.Jobs() {
		if j.Status().State != exec.Finished {
			return nil
		}
	}
	if r := e.currentRun(); r != nil {
		return r.End()
	}
	return nil
}

func (e *Engine) currentRun() *checkpoint.Run {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.runNote
}

// errDone is the error of a start that is not needed: the job came to its end earlier in this run.
var errDone = errors.New("the job has come to its end in this run")

// beginIn notes that the run begins a job, whose store says that it has come to its end under lineage ended, "" = it has not.
func (e *Engine) beginIn(j *Job, ended string) error {
	r := e.currentRun()
	if r == nil {
		return nil
	}
	begun, err := r.Begin(j.id, ended)
	switch {
	case err != nil:
		return err
	case begun == checkpoint.BegunDone:
		return errDone
	case begun == checkpoint.BegunAgain:
		j.plan.Notices = append(j.plan.Notices, fmt.Sprintf("job %q had come to its end, and starts over: what is run has changed since its last run, which was cut short", j.Name()))
	}
	return nil
}

// endedAs is the lineage under which the store's job has come to its end, "" when it has not.
func endedAs(ctx context.Context, s jobStore) (string, error) {
	ended, err := s.Ended(ctx)
	if !ended || err != nil {
		return "", err
	}
	last, _, err := s.Latest(ctx)
	if err != nil {
		return "", err
	}
	return last.Lineage, nil
}

// doneBefore is the result of a statement whose job has nothing to do.
func doneBefore(name string) *Result {
	return &Result{Message: "OK", Notices: []string{fmt.Sprintf(
		"job %q had come to its end when the last run was cut short, and is not run again (--restore none runs everything afresh)", name)}}
}
