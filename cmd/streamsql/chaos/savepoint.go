package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
)

// stateDir is where the run keeps checkpoints now: a savepoint can have moved it.
func (u *run) stateDir() string {
	return filepath.Join(u.r.dir, "run-"+u.name, fmt.Sprintf("state-%d", u.moved+1))
}

// save stops the jobs with savepoints, from which the next process starts, with another parallelism perhaps, in the same state
// directory or in a new one. Some processes are killed while they are at it: then the jobs go on from their checkpoints.
func (u *run) save(ctx context.Context, f *fault) (done bool, err error) {
	n := len(u.out.Where) + 1
	dir := filepath.Join(u.r.dir, "run-"+u.name, fmt.Sprintf("savepoint-%d", n))
	after := u.after(f.at)
	p, err := u.launch(ctx, launch{childConfig: childConfig{StopAfter: after, Savepoints: dir}})
	if err != nil {
		return false, err
	}
	defer p.kill()
	what := fmt.Sprintf("at %.0f %%, parallelism %d to %d", 100*f.at, u.parallelism, f.parallelism)
	switch {
	case f.late:
		what += fmt.Sprintf(", killed %s later", f.hold)
	case f.fresh:
		what += ", to a new state directory"
	}
	u.where("%s", what)
	ended, err := u.arrived(ctx, p)
	if err == nil && !ended && f.late {
		ended, err = p.awaitEnd(ctx, after+f.hold)
		p.kill()
	}
	if err == nil && !ended && !f.late {
		_, err = p.awaitEnd(ctx, u.r.o.Timeout)
	}
	if err != nil {
		return false, err
	}
	if p.killed() {
		u.out.Injected++
		return false, nil
	}
	if !p.finished() {
		u.out.Injected++
		return u.over(p)
	}
	res, err := p.read()
	if err != nil {
		return false, err
	}
	if len(res.Savepoints) == 0 {
		u.out.Missed++
		return u.over(p)
	}
	u.out.Injected++
	u.out.late += res.Late
	u.restore, u.saved = res.Savepoints, true
	if f.fresh {
		u.moved++
		u.ended = append(slices.Clone(u.ended), res.Ended...)
	}
	return false, nil
}
