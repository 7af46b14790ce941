package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/streamsql/streamsql/cmd/streamsql/control"
	"github.com/streamsql/streamsql/sql/diag"
)

// stopCommand stops a job of a running process, from another one.
func stopCommand(args []string, out, errs io.Writer) int {
	f := newFlags("stop", "", `Stops a job that a streamsql process runs: it takes a final checkpoint, commits its output and ends. When the command
has ended with 0, all of that is durable. The job goes on from there when its file is run again. A process whose last
job has ended ends too, unless it is a shell.`, errs)
	f.examples = `  streamsql stop --state-dir .streamsql/job
  streamsql stop --savepoint /backup/monday        and copy the final checkpoint there
  streamsql stop --savepoint default               to a new directory where the job's settings say
  streamsql stop --drain --savepoint /backup/last  let every window fire first: for a job that does not go on
`
	var job, dir string
	var drain bool
	var timeout time.Duration
	f.set.StringVar(&f.stateDir, "state-dir", "", "state `directory` of the job; by default the only one below .streamsql")
	f.set.StringVar(&job, "job", "", "the job's `id`, the beginning of one, or its pipeline.name; not needed when one runs")
	f.set.StringVar(&dir, "savepoint", "", "`directory`, not existing yet, that the final checkpoint is copied to; default = a new one where 'execution.checkpointing.savepoint-dir' says, or in STATE-DIR/savepoints")
	f.set.BoolVar(&drain, "drain", false, "end event time first, so that every window fires; do not go on from such a savepoint, rows would come late")
	f.set.DurationVar(&timeout, "timeout", 0, "how long to wait, such as 5m; the job goes on stopping; 0 = until it has ended")
	f.set.StringVar(&f.output, "o", "text", "`format`: text or json")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) > 0 {
		return f.usage(fmt.Errorf("unexpected argument %q", pos[0]))
	}
	if f.output != "text" && f.output != "json" {
		return f.usage(fmt.Errorf("-o %s: use text or json", f.output))
	}
	r := control.StopRequest{Job: job, Drain: drain, Savepoint: dir != ""}
	if dir != "" && dir != "default" {
		abs, err := filepath.Abs(dir)
		if err != nil {
			return fail(errs, err, source{})
		}
		r.Dir = abs
	}
	if err := f.stop(r, timeout, out, errs); err != nil {
		return fail(errs, err, source{})
	}
	return exitOK
}

func (f *flags) stop(r control.StopRequest, timeout time.Duration, out, errs io.Writer) error {
	dir, err := f.findStateDir()
	if err != nil {
		return err
	}
	ctx, cancel := waitContext(timeout)
	defer cancel()
	done, err := control.NewClient(dir).Stop(ctx, r)
	switch {
	case errors.Is(err, control.ErrNobody):
		return diag.New(diag.Conflict, diag.Pos{}, "no process runs jobs in state directory %q", dir).
			WithHint("streamsql checkpoint show %s tells where its jobs are; streamsql savepoint create makes a savepoint of that", dir)
	case errors.Is(err, context.DeadlineExceeded):
		return diag.New(diag.External, diag.Pos{}, "the job is still stopping after %s", timeout).
			WithDetail("its final checkpoint, once durable, is in %q; output that is not committed then is committed when its targets answer, or at the next start", dir).
			WithHint("streamsql checkpoint show %s tells how far it is", dir)
	case err != nil:
		return err
	}
	if f.output == "json" {
		return printJSON(out, done)
	}
	if done.Path != "" {
		if _, err := fmt.Fprintln(out, done.Path); err != nil {
			return err
		}
	}
	fmt.Fprintf(errs, "job %s stopped at checkpoint %d, its output is committed\n", done.Name, done.Checkpoint)
	return nil
}
