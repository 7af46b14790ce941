package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/streamsql/streamsql/sql/diag"
)

// interval is the time between checkpoints in a check: short, so that faults meet every part of the protocol.
const interval = 150 * time.Millisecond

// runner is a check under way.
type runner struct {
	o        *Options
	job      *subject
	dir      string          // of runs: state directories, files
	schemas  map[string]bool // made so far, by database
	claimed  bool            // what has the check's id in its name is the check's own
	launched int
	children sync.WaitGroup

	net     *network // nil = not needed yet
	through bool     // the jobs go through it

	rate   float64         // rows a second
	golden time.Duration   // that a run without faults works
	want   map[string]rows // what it leaves in each sink, or "" = what the query gives
	late   int64
	visits map[string]int64
}

// Run checks a job. The report holds what was found also when an error, or the end of ctx, cut the check short. What it made in
// systems is removed again, unless it is to be kept; an error that is, or holds, a LeftError says that it could not be. When it is
// one, nothing else failed.
func Run(ctx context.Context, o Options) (rep *Report, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	r := &runner{o: &o, schemas: map[string]bool{}}
	if r.dir, err = os.MkdirTemp("", dirPrefix+o.ID+"-"); err != nil {
		return nil, err
	}
	r.o.Say("check " + o.ID) // for --clean, should this process be killed
	begun := time.Now()
	ctx, cancel := context.WithTimeout(ctx, o.Timeout)
	defer func() {
		timedOut := errors.Is(ctx.Err(), context.DeadlineExceeded)
		cancel()
		r.children.Wait()
		if timedOut && err != nil {
			rep.NotCovered = append(rep.NotCovered, fmt.Sprintf("what was left when the time was up (--timeout %s)", o.Timeout))
			err = nil
		}
		if cause := r.clean(); cause != nil {
			var left error = &LeftError{diag.New(diag.External, diag.Pos{}, "not all shadows are removed").Wrap(cause).
				WithHint("when their systems answer, streamsql chaos FILE --clean %s removes them", o.ID)}
			if err != nil {
				left = errors.Join(err, left)
			}
			err = left
		}
		rep.Seconds = time.Since(begun).Seconds()
		rep.conclude()
	}()
	rep = r.newReport()
	if err = r.inspect(ctx); r.job != nil {
		rep.describe(r)
	}
	if err == nil {
		err = r.measure(ctx, rep)
	}
	if err == nil && rep.Reason == "" {
		err = r.attack(ctx, rep)
	}
	var un *inconclusive
	if errors.As(err, &un) {
		rep.Reason, rep.Hint, err = un.why, un.hint, nil
	}
	return rep, err
}

// LeftError says that something which the check made could not be removed.
type LeftError struct{ Err error }

// Error implements error.
func (e *LeftError) Error() string { return e.Err.Error() }

// Unwrap is why.
func (e *LeftError) Unwrap() error { return e.Err }

// measure runs the jobs twice without faults: what they leave is what trials are compared with, if it is the same.
func (r *runner) measure(ctx context.Context, rep *Report) error {
	var total int64
	for _, x := range r.job.sources {
		total += x.rows
	}
	if total == 0 {
		total = r.o.Rows
	}
	r.rate = float64(total) / r.o.RunFor.Seconds()
	for _, k := range r.job.sinks {
		if err := k.place.claim(ctx); err != nil {
			return err
		}
	}
	r.claimed = true
	var first map[string]rows
	for i, parallelism := range []int{1, 2} {
		name := fmt.Sprintf("g%d", i+1)
		r.o.Say(fmt.Sprintf("run without faults %d of 2, parallelism %d", i+1, parallelism))
		got, reason, err := r.goldenRun(ctx, name, parallelism)
		if err != nil {
			return err
		}
		if reason != "" {
			rep.Reason = reason
			return nil
		}
		if first == nil {
			first = got
			continue
		}
		for sink, a := range first {
			b := got[sink]
			if d := compare(&a, &b); !d.none() {
				rep.Reason = fmt.Sprintf("%stwo runs without faults gave different rows, with parallelism 1 and 2: %s", prefixOf(sink), d.text())
				if r.late > 0 {
					rep.Reason += fmt.Sprintf("; %d rows came too late for their windows", r.late)
				}
				rep.Hint = "compare what must hold all the same: --oracle " + anOracle
				return nil
			}
		}
	}
	r.want = first
	rep.expect(r)
	var n int64
	for _, w := range first {
		n += w.len()
	}
	if n == 0 {
		rep.Reason = "the runs without faults wrote nothing, so nothing can get lost or come twice"
		rep.Hint = "give more input: --rows"
	}
	return nil
}

func prefixOf(sink string) string {
	if sink == "" {
		return ""
	}
	return "table " + sink + ": "
}

// goldenRun runs the jobs without faults and gives what they leave, or the reason why they do not end.
func (r *runner) goldenRun(ctx context.Context, name string, parallelism int) (got map[string]rows, reason string, err error) {
	steps, err := r.prepare(ctx, name)
	if err != nil {
		return nil, "", err
	}
	first := (&run{r: r, name: name}).stateDir()
	p, err := r.start(ctx, name, launch{childConfig: childConfig{Steps: steps, Settings: r.settings(parallelism), Rate: r.rate, Count: true, StateDir: first}})
	if err != nil {
		return nil, "", err
	}
	defer p.kill()
	if _, err = p.awaitRunning(ctx); err == nil {
		_, err = p.awaitEnd(ctx, r.o.Timeout)
	}
	if err != nil {
		return nil, "", err
	}
	if !p.finished() {
		return nil, "the jobs fail without any fault: " + p.reason(), nil
	}
	res, err := p.read()
	if err != nil {
		return nil, "", err
	}
	r.late += res.Late
	// On a machine with other work a run can take longer than it has to, and another one not.
	r.visits, r.golden = res.Visits, min(time.Since(p.ran), r.o.RunFor)
	got, residue, litter, err := r.look(ctx, name)
	if residue = append(residue, litter...); err == nil && len(residue) > 0 {
		reason = "a run without faults leaves something open: " + residue[0]
	}
	return got, reason, errors.Join(err, r.forget(ctx, name))
}

// look reads what a run left: the rows of each sink, or of the query that was asked for, what is open, and hidden files.
func (r *runner) look(ctx context.Context, name string) (got map[string]rows, residue, litter []string, err error) {
	got = map[string]rows{}
	for _, k := range r.job.sinks {
		left, err := k.place.residue(ctx, name)
		if err != nil {
			return nil, nil, nil, err
		}
		if _, files := k.place.(*dirPlace); files {
			litter = append(litter, left...)
		} else {
			residue = append(residue, left...)
		}
		if r.o.Oracle != "" {
			continue
		}
		if got[k.table.Name], err = k.place.read(ctx, name); err != nil {
			return nil, nil, nil, err
		}
	}
	if r.o.Oracle != "" {
		if got[""], err = r.query(ctx, name, r.o.Oracle); err != nil {
			return nil, nil, nil, err
		}
	}
	open, err := r.open(ctx, name)
	return got, append(residue, open...), litter, err
}

// attack carries the trials out.
func (r *runner) attack(ctx context.Context, rep *Report) (err error) {
	kinds := slices.Clone(r.o.Kinds)
	if !canLimit && slices.Contains(kinds, Disk) {
		kinds = without(kinds, Disk)
		rep.NotCovered = append(rep.NotCovered, "full disks: limits of processes can be set on Linux only, this is "+runtime.GOOS)
	}
	if slices.Contains(kinds, Network) {
		if r.net, err = r.connect(ctx); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, r.net.close()) }()
		rep.NotCovered = append(rep.NotCovered, r.net.direct...)
		if len(r.net.lines) == 0 {
			kinds = without(kinds, Network)
			rep.NotCovered = append(rep.NotCovered, "the network: the jobs have no tables behind one that can be broken")
		}
	}
	if slices.Contains(kinds, ReadOnly) {
		if err := r.cannotSeal(); err != nil {
			kinds = without(kinds, ReadOnly)
			rep.NotCovered = append(rep.NotCovered, "a state directory that is read-only: "+err.Error())
		}
	}
	if len(r.o.Servers) == 0 {
		kinds = without(kinds, Server)
	}
	trials := schedule(r.o.Seed, kinds, r.o.Faults, r.visits)
	if r.o.Only > 0 {
		if r.o.Only > len(trials) {
			rep.Reason = fmt.Sprintf("there is no trial %d: the seed and the flags give %d", r.o.Only, len(trials))
			return nil
		}
		trials = trials[r.o.Only-1 : r.o.Only]
	}
	for i := range trials {
		t := &trials[i]
		r.o.Say(fmt.Sprintf("trial %d of %d: %s, %d faults", i+1, len(trials), t.kind, len(t.faults)))
		out, err := r.try(ctx, t)
		if err != nil {
			return err
		}
		r.o.Say(fmt.Sprintf("trial %d: %s", t.n, out.line()))
		rep.Trials = append(rep.Trials, *out)
	}
	return nil
}

// without are the kinds but for one.
func without(kinds []string, kind string) []string {
	return slices.DeleteFunc(slices.Clone(kinds), func(k string) bool { return k == kind })
}
