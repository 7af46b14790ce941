package chaos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// childConfig is what a child process is told, in a file.
type childConfig struct {
	Steps    []step            `json:"steps"`
	StateDir string            `json:"state_dir"`
	Settings map[string]string `json:"settings"`
	Embedded string            `json:"embedded,omitempty"`
	TakeOver bool              `json:"take_over,omitempty"`
	// Restore are savepoints that jobs start from, by name, unless they have checkpoints of their own by now, or with Here all the
	// same. Ended are jobs that came to their end in a state directory of before.
	Restore map[string]string `json:"restore,omitempty"`
	Here    bool              `json:"here,omitempty"`
	Ended   []string          `json:"ended,omitempty"`
	Rate    float64           `json:"rate"` // rows a second out of all sources, 0 = no limit
	Count   bool              `json:"count,omitempty"`
	Result  string            `json:"result"` // file to write a childResult to
	// The wall clock is off by Offset, and after JumpAfter by Jump more.
	Offset    time.Duration `json:"offset,omitempty"`
	JumpAfter time.Duration `json:"jump_after,omitempty"`
	Jump      time.Duration `json:"jump,omitempty"`
	// With Savepoints, a directory to put them in, the jobs are stopped StopAfter they have got to work.
	Savepoints string        `json:"savepoints,omitempty"`
	StopAfter  time.Duration `json:"stop_after,omitempty"`
}

// childResult is what a child tells when its jobs have ended.
type childResult struct {
	Late     int64            `json:"late"` // rows that came too late for their windows
	Visits   map[string]int64 `json:"visits,omitempty"`
	Restarts int              `json:"restarts"` // of jobs within the process
	// Savepoints are those of the jobs that were stopped with one, by name; Ended are the jobs that have come to their end.
	Savepoints map[string]string `json:"savepoints,omitempty"`
	Ended      []string          `json:"ended,omitempty"`
}

// running is the line a child prints when all of its jobs have been restored and run.
const running = "running"

// Child is the child process: it runs the jobs of the file named by config until they end. Code 0 means that they have.
func Child(config string, out, errs io.Writer) int {
	// A file that may not grow makes its write fail, and shall do no more than that.
	signal.Ignore(syscall.SIGXFSZ)
	go func() { // the parent holds the other end until it dies
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(1)
	}()
	if err := runChild(context.Background(), config, out, errs); err != nil {
		fmt.Fprintln(errs, "error: "+diag.Render(err, "", ""))
		return 1
	}
	return 0
}

func runChild(ctx context.Context, config string, out, errs io.Writer) error {
	text, err := os.ReadFile(config)
	if err != nil {
		return err
	}
	var c childConfig
	if err := json.Unmarshal(text, &c); err != nil {
		return err
	}
	if c.Count {
		checkpoint.CountFailpoints()
	}
	conns := streamsql.DefaultConnectors(io.Discard)
	p := &pace{rate: c.Rate}
	for i := range conns {
		conns[i] = p.connector(conns[i])
	}
	begun, err := c.begunJobs()
	if err != nil {
		return err
	}
	eng, err := streamsql.Open(c.StateDir, &streamsql.Options{
		Settings: c.Settings, Connectors: conns, EmbeddedAddr: c.Embedded, Redefine: true, TakeOver: c.TakeOver, Output: io.Discard, Now: c.clock(),
		Log: slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return err
	}
	jobs, ended, err := c.start(ctx, eng, begun)
	if err != nil {
		return errors.Join(err, eng.Close())
	}
	res := childResult{Savepoints: map[string]string{}, Ended: ended}
	announced := make(chan struct{})
	go func() {
		defer close(announced)
		announce(jobs, out)
		if c.Savepoints != "" {
			c.stop(ctx, jobs)
		}
	}()
	for _, j := range jobs {
		// A job that fails takes the others down with it: they go on in the next process.
		if err := j.Wait(ctx); err != nil {
			for _, other := range jobs {
				other.Cancel()
			}
			_ = eng.Close() // the first error counts
			return fmt.Errorf("job %s: %w", j.Name(), err)
		}
		s := j.Status()
		res.Late += s.LateDropped
		res.Restarts += s.Restarts
		if s.State == exec.Suspended {
			res.Savepoints[j.Name()] = c.savepoint(j)
		} else {
			res.Ended = append(res.Ended, j.Name())
		}
	}
	<-announced
	res.Visits = checkpoint.FailpointVisits()
	if err := eng.EndRun(); err != nil {
		return errors.Join(err, eng.Close())
	}
	if err := eng.Close(); err != nil {
		return err
	}
	text, err = json.Marshal(res)
	if err != nil {
		return err
	}
	return os.WriteFile(c.Result, text, 0o666)
}

// savepoint is where the savepoint of a job goes.
func (c *childConfig) savepoint(j *streamsql.Job) string { return filepath.Join(c.Savepoints, j.ID()) }

// stop stops the jobs with savepoints, all at once.
func (c *childConfig) stop(ctx context.Context, jobs []*streamsql.Job) {
	time.Sleep(c.StopAfter)
	for _, j := range jobs {
		go func() {
			// A job that fails to stop says so in Wait; one that has just ended cannot be stopped.
			_ = j.Stop(ctx, streamsql.StopOptions{Savepoint: c.savepoint(j)})
		}()
	}
}

// start executes the statements, as one run of a file. ended are the jobs that have come to their end in it before, and are not
// run again.
func (c *childConfig) start(ctx context.Context, eng *streamsql.Engine, begun map[string]bool) (jobs []*streamsql.Job, ended []string, err error) {
	if err := eng.BeginRun("chaos"); err != nil {
		return nil, nil, err
	}
	ended = slices.Clone(c.Ended)
	for _, s := range c.Steps {
		text := s.Text
		before := len(jobs)
		switch path, ok := c.Restore[s.Job]; {
		case slices.Contains(c.Ended, s.Job):
			continue
		case ok && !begun[s.Job]:
			text = fmt.Sprintf("SET '%s' = %s;\n%sRESET '%s';\n", recoveryPath, sql.QuoteString(path), text, recoveryPath)
		}
		for script := eng.Script(text); ; {
			res, err := script.Next(ctx)
			if isEOF(err) {
				break
			}
			if err != nil {
				return nil, nil, err
			}
			if res.Job != nil {
				jobs = append(jobs, res.Job)
			}
		}
		if s.Job != "" && len(jobs) == before {
			ended = append(ended, s.Job)
		}
	}
	return jobs, ended, nil
}

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

// announce prints a line when all jobs have got to work.
func announce(jobs []*streamsql.Job, out io.Writer) {
	for slices.ContainsFunc(jobs, func(j *streamsql.Job) bool {
		s := j.Status().State
		return s != exec.Running && !s.Ended()
	}) {
		time.Sleep(2 * time.Millisecond)
	}
	fmt.Fprintln(out, running)
}

// clock is the jobs' clock; nil = the machine's.
func (c *childConfig) clock() func() time.Time {
	if c.Offset == 0 && c.Jump == 0 {
		return nil
	}
	begun := time.Now()
	return exec.SteadyClock(func() time.Time {
		now := time.Now().Add(c.Offset)
		if c.Jump != 0 && time.Since(begun) > c.JumpAfter {
			now = now.Add(c.Jump)
		}
		return now
	})
}

// recoveryPath is the setting that names a savepoint to start from.
const recoveryPath = "execution.state-recovery.path"

// begunJobs are the jobs, by name, that do not start from their savepoints: they have a checkpoint in the state directory.
func (c *childConfig) begunJobs() (map[string]bool, error) {
	out := map[string]bool{}
	if c.Here || len(c.Restore) == 0 {
		return out, nil
	}
	dirs, err := filepath.Glob(filepath.Join(c.StateDir, "jobs", "*"))
	if err != nil {
		return nil, err
	}
	for _, d := range dirs {
		cs, err := checkpoint.ReadCheckpoints(vfs.Default, d)
		if err != nil {
			return nil, err
		}
		if len(cs) > 0 {
			out[cs[0].Job.Name] = true
		}
	}
	return out, nil
}

// pace slows sources down, so that a small input takes long enough for faults to meet the job at work.
type pace struct {
	rate  float64 // rows a second
	once  sync.Once
	begun time.Time // of the first read, which can come long after the process started
	rows  atomic.Int64
}

func (p *pace) connector(c connectors.Connector) connectors.Connector {
	inner := c.NewSource
	if inner == nil || p.rate == 0 {
		return c
	}
	c.NewSource = func(ctx context.Context, spec connectors.SourceSpec) (connectors.Source, error) {
		s, err := inner(ctx, spec)
		if err != nil {
			return nil, err
		}
		return &pacedSource{s, p}, nil
	}
	return c
}

type pacedSource struct {
	connectors.Source
	p *pace
}

// Open implements connectors.Source.
func (s *pacedSource) Open(ctx context.Context, splits []checkpoint.Position) (connectors.Reader, error) {
	r, err := s.Source.Open(ctx, splits)
	if err != nil {
		return nil, err
	}
	return &pacedReader{r, s.p}, nil
}

type pacedReader struct {
	connectors.Reader
	p *pace
}

// Next implements connectors.Reader. While the rows given so far are ahead of their time it gives none, after a moment, so
// that barriers pass.
func (r *pacedReader) Next(ctx context.Context, out *batch.Builder) (connectors.Progress, error) {
	r.p.once.Do(func() { r.p.begun = time.Now() })
	due := r.p.begun.Add(time.Duration(float64(r.p.rows.Load()) / r.p.rate * float64(time.Second)))
	if wait := time.Until(due); wait > 0 {
		t := time.NewTimer(min(wait, 10*time.Millisecond))
		defer t.Stop()
		select {
		case <-ctx.Done():
			return connectors.Progress{}, ctx.Err()
		case <-t.C:
			return connectors.Progress{}, nil
		}
	}
	before := out.Len()
	p, err := r.Reader.Next(ctx, out)
	r.p.rows.Add(int64(out.Len() - before))
	return p, err
}

// Positions implements connectors.Positioner for readers that do.
func (r *pacedReader) Positions() []checkpoint.Position {
	if p, ok := r.Reader.(connectors.Positioner); ok {
		return p.Positions()
	}
	return nil
}
