package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// dirPrefix begins the name of a check's directory; its id follows.
const dirPrefix = "streamsql-chaos-"

// Clean removes what an earlier check with the given id left behind: its topics, consumer groups and schemas in the systems of
// the script, and, when it ran on this machine, its directory and the transactions that its jobs left open.
func Clean(ctx context.Context, o Options, id string) error {
	o.ID, o.Faults, o.Rows, o.RunFor, o.Keep = id, 1, 1, time.Second, false
	if err := o.check(); err != nil {
		return err
	}
	r := &runner{o: &o, schemas: map[string]bool{}, claimed: true}
	if err := r.tables(); err != nil {
		return err
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), dirPrefix+id+"-*"))
	if err != nil {
		return err
	}
	found := len(left) > 0
	for _, k := range r.job.sinks {
		cause := k.place.claim(ctx)
		if diag.CodeOf(cause) == diag.Conflict { // taken
			found = true
		} else {
			err = errors.Join(err, cause)
		}
	}
	for _, r.dir = range left {
		err = errors.Join(err, r.abort(ctx), removeAll(r.dir))
	}
	if err == nil && !found {
		err = diag.New(diag.Config, diag.Pos{}, "there is nothing of a check %q", id).
			WithDetail("no topic or schema has it in its name in the systems of the file, and no directory below %s", os.TempDir()).
			WithHint("a check says its id when it begins; one that came to its end has removed everything itself")
	}
	for _, k := range r.job.sinks {
		err = errors.Join(err, k.place.clean(ctx, false))
	}
	return err
}

// clean removes what the check made, whatever became of it.
func (r *runner) clean() error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var errs []error
	if r.claimed {
		if !r.o.Keep {
			// A prepared transaction would hold locks on what is to be removed.
			errs = append(errs, r.abort(ctx))
		}
		for _, k := range r.job.sinks {
			errs = append(errs, k.place.clean(ctx, r.o.Keep))
		}
	}
	if r.o.Keep {
		r.o.Say("kept: " + r.dir)
	} else {
		errs = append(errs, removeAll(r.dir))
	}
	return errors.Join(errs...)
}

// transactions gives do the transactions that jobs of a run have open or prepared, as soon as none of their processes looks
// alive any more.
func (r *runner) transactions(ctx context.Context, run string, do func(*streamsql.Txns, streamsql.TxnReport) error) error {
	steps, err := r.rewritten(run)
	if err != nil {
		return err
	}
	dirs, err := filepath.Glob(filepath.Join(r.dir, "run-"+run, "state-*", "jobs", "*"))
	if err != nil || len(dirs) == 0 {
		return err
	}
	x, err := streamsql.OpenTxns(streamsql.TxnOptions{Scripts: []string{textOf(steps)}, JobDirs: dirs, Settings: r.settings(1), Embedded: r.o.Embedded, Log: r.o.Log})
	if err != nil {
		return err
	}
	list, err := x.Settled(ctx, nil)
	for _, t := range list {
		if slices.ContainsFunc(dirs, func(d string) bool { return filepath.Base(d) == t.JobID }) {
			err = errors.Join(err, do(x, t))
		}
	}
	return errors.Join(err, x.Close())
}

// open are the transactions that a run's jobs left, which have ended. One whose outcome is decided is waited for.
func (r *runner) open(ctx context.Context, run string) (out []string, err error) {
	for deadline := time.Now().Add(settleFor); ; {
		out = nil
		err := r.transactions(ctx, run, func(_ *streamsql.Txns, t streamsql.TxnReport) error {
			out = append(out, fmt.Sprintf("transaction %s is %s", t.ID, t.State))
			return nil
		})
		if err != nil || len(out) == 0 || time.Now().After(deadline) {
			return out, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// abort ends the transactions of runs that were cut short. All they wrote is going to be removed.
func (r *runner) abort(ctx context.Context) error {
	runs, err := filepath.Glob(filepath.Join(r.dir, "run-*"))
	if err != nil {
		return err
	}
	for _, dir := range runs {
		run := strings.TrimPrefix(filepath.Base(dir), "run-")
		err = errors.Join(err, r.transactions(ctx, run, func(x *streamsql.Txns, t streamsql.TxnReport) error {
			switch t.Verdict {
			case streamsql.TxnEnding, streamsql.TxnCommitted, streamsql.TxnLost: // no longer open, or about to end
				return nil
			}
			return x.Abort(ctx, t, true)
		}))
	}
	return err
}
