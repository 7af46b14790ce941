package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/cmd/streamsql/control"
	"github.com/streamsql/streamsql/cmd/streamsql/metrics"
	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

func runFiles(args []string, out, errs io.Writer) int {
	f := newFlags("run", "FILE…", `Runs SQL files: statements in order, until every job has ended. The rows of a SELECT go to standard output before the
next statement starts. A bounded INSERT is waited for; an unbounded one runs on beside the statements that follow.
Ctrl-C or SIGTERM stops after a final checkpoint and commit, a second one at once. Run the same file again to go on from
the newest checkpoint. When a run was cut short, the same text does not repeat jobs that had read all their input; when all
had, they start over. Relative paths are relative to the working folder.
Exit codes: 0 done, 1 a job failed, 2 the SQL or the configuration is wrong, 130 (143) Ctrl-C (SIGTERM) came before the end:
of the statements, of a query or INSERT over bounded input. An unbounded job that is stopped is done.`, errs)
	f.examples = `  streamsql run job.sql                                    state in .streamsql/job
  streamsql run job.sql --state-dir /var/lib/job --restore none
  streamsql run -D parallelism.default=2 -D execution.checkpointing.interval=1s job.sql
  streamsql run tables.sql job.sql --embedded-kafka        no broker at hand
  streamsql run report.sql -o csv > report.csv             rows of its SELECTs
`
	f.engineFlags()
	f.outputFlags()
	f.scriptFlags()
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	return f.runTexts(append(pos, f.files...), out, errs)
}

// scriptFlags adds the flags that name what to run.
func (f *flags) scriptFlags() {
	f.set.Var(&f.statements, "e", "`SQL` to run, after the files; may be repeated")
	f.set.Var(&f.files, "f", "`file` to run; may be repeated")
	f.set.StringVar(&f.initFile, "i", "", "`file` of definitions and settings to run first")
}

// source is a text to run and its name for messages.
type source struct{ name, text string }

// runTexts runs files and statements on one engine.
func (f *flags) runTexts(files []string, out, errs io.Writer) int {
	name := "statements"
	if len(files) > 0 {
		name = files[len(files)-1]
	}
	sources, err := f.sources(files)
	if err != nil {
		fmt.Fprintf(errs, "streamsql: %v\n", err)
		return exitUsage
	}
	if len(sources) == 0 {
		fmt.Fprintln(errs, "streamsql run: no file\n  hint: streamsql run job.sql, or streamsql -e \"SELECT 1\"")
		return exitUsage
	}
	return f.withSession(name, out, errs, func(s *session) int {
		return s.run(func(ctx context.Context) (source, error) {
			if err := s.eng.BeginRun(runKey(sources)); err != nil {
				return source{}, err
			}
			for _, src := range sources {
				if err := s.runner().Run(ctx, src.text); err != nil {
					return src, err
				}
			}
			return source{}, s.eng.EndRun()
		})
	})
}

// runKey tells runs of other texts apart.
func runKey(sources []source) string {
	h := sha256.New()
	for _, s := range sources {
		fmt.Fprintf(h, "%d\n%s", len(s.text), s.text)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// sources reads the files, the init file first, and adds the statements.
func (f *flags) sources(files []string) (out []source, err error) {
	if f.initFile != "" {
		files = append([]string{f.initFile}, files...)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			return nil, err
		}
		out = append(out, source{name, string(b)})
	}
	for _, s := range f.statements {
		out = append(out, source{"", s})
	}
	return out, nil
}

// withSession opens the engine for body and closes it.
func (f *flags) withSession(name string, out, errs io.Writer, body func(*session) int) int {
	// A reader that has seen enough ("| head") is no failure: writes then return EPIPE, which run understands.
	signal.Ignore(syscall.SIGPIPE)
	p, err := f.printer(out)
	if err != nil {
		return fail(errs, err, source{})
	}
	endProfile, err := f.profile()
	if err != nil {
		return fail(errs, err, source{})
	}
	defer endProfile()
	rows := &printed{w: out, gone: make(chan struct{})}
	f.printed = rows
	eng, err := f.engine(name, errs)
	if err != nil {
		return fail(errs, err, source{})
	}
	if f.metricsAt != "" {
		m, err := metrics.Serve(eng.Jobs, f.metricsAt, f.log)
		if err != nil {
			_ = eng.Close() // nothing runs yet
			return fail(errs, err, source{})
		}
		defer m.Close()
		if !f.quiet {
			fmt.Fprintf(errs, "notice: metrics are at http://%s/metrics\n", m.Address())
		}
	}
	ctl, err := control.Serve(eng, f.stateDir)
	if err != nil {
		f.log.Warn("other processes cannot reach this one", "err", err)
	}
	s := &session{eng: eng, printer: p, errs: errs, quiet: f.quiet, gone: rows.gone, noted: map[string]bool{}}
	code := body(s)
	if ctl != nil {
		ctl.Withdraw() // while the directory is still ours
		defer ctl.Close()
	}
	if err := eng.Close(); err != nil && code == exitOK {
		return fail(errs, err, source{})
	}
	return code
}

// printed is the output of connector 'print'. When the reader has gone, rows have nowhere to go and that is no failure of
// the job: it tells gone, once.
type printed struct {
	w    io.Writer
	once sync.Once
	gone chan struct{}
}

// Write implements io.Writer.
func (p *printed) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		p.once.Do(func() { close(p.gone) })
		return len(b), nil
	}
	return n, err
}

// session runs statements on an engine until they end or the user stops them.
type session struct {
	eng     *streamsql.Engine
	printer *repl.Printer
	errs    io.Writer
	quiet   bool
	gone    <-chan struct{} // closed when nobody reads the output any more

	progress *repl.Progress
	mu       sync.Mutex // of errs and noted
	noted    map[string]bool
	jobs     sync.WaitGroup // whose summaries are due
}

func (s *session) runner() *repl.Runner {
	return &repl.Runner{Engine: s.eng, Printer: s.printer, Notice: s.notice, Started: s.started}
}

// run executes body. The first interrupt or SIGTERM cancels its context and stops the jobs with a final checkpoint, the
// second ends the process. The exit code tells whether that left something undone.
func (s *session) run(body func(context.Context) (source, error)) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM) // to the end of the process, which lateSignals minds
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Add(1)
	interrupted := exitOK
	go func() {
		defer watching.Done()
		select {
		case <-done:
			return
		case <-s.gone:
			cancel()
			<-done
			return
		case sig := <-stop:
			interrupted = exitOf(sig)
		}
		cancel()
		s.say("stopping after a final checkpoint; once more to stop at once")
		select {
		case <-done:
		case sig := <-stop:
			os.Exit(exitOf(sig))
		}
	}()
	if !s.quiet && isTerminal(s.errs) {
		s.progress = repl.NewProgress(s.eng, s.errs)
	}
	code := exitOK
	src, err := body(ctx)
	stopped := ctx.Err() != nil && errors.Is(err, context.Canceled)
	if err != nil && !stopped && !errors.Is(err, syscall.EPIPE) {
		s.jobsEnded(err)
		s.progress.Clear()
		code = fail(s.errs, err, src)
	}
	code = max(code, s.stopJobs())
	s.jobs.Wait()
	s.progress.Close()
	close(done)
	watching.Wait()
	go lateSignals(stop)
	if code == exitOK && errors.Is(err, repl.ErrUnfinished) {
		return interrupted
	}
	return code
}

// lateSignals minds the signals that come when the work is done and its exit code is known, as after `streamsql stop`: one
// does not change the code, a second ends a process that hangs on its way out.
func lateSignals(stop <-chan os.Signal) {
	<-stop
	os.Exit(exitOf(<-stop))
}

// exitOf is the exit code of a process that a signal interrupted, as shells give it.
func exitOf(sig os.Signal) int {
	n, _ := sig.(syscall.Signal)
	return exitSignal + int(n)
}

// jobsEnded lets the summary of a failed job come before its error.
func (s *session) jobsEnded(err error) {
	var job *repl.JobError
	if errors.As(err, &job) && job.Job != nil && len(s.eng.Jobs()) == 1 {
		s.jobs.Wait()
	}
}

// started arranges for the summary of a job.
func (s *session) started(j *streamsql.Job) {
	if j.Schema() != nil {
		return
	}
	s.jobs.Add(1)
	go func() {
		defer s.jobs.Done()
		<-j.Done()
		s.say(repl.Summary(j, time.Now()))
	}()
}

// stopJobs stops what still runs with a final checkpoint.
func (s *session) stopJobs() int {
	code := exitOK
	for _, j := range s.eng.Jobs() {
		if j.Status().State.Ended() {
			continue
		}
		if err := j.Stop(context.Background(), streamsql.StopOptions{}); err != nil {
			s.progress.Clear()
			fmt.Fprintln(s.errs, diag.Render(err, "", ""))
			code = exitFailed
		}
	}
	return code
}

// notice shows a remark, once however often it is made.
func (s *session) notice(text string) {
	s.mu.Lock()
	seen := s.noted[text]
	s.noted[text] = true
	s.mu.Unlock()
	if !seen {
		s.say("notice: " + text)
	}
}

func (s *session) say(text string) {
	if s.quiet {
		return
	}
	s.progress.Clear()
	s.mu.Lock()
	defer s.mu.Unlock()
	fmt.Fprintln(s.errs, text)
}

// fail prints an error with its place in the source.
func fail(errs io.Writer, err error, src source) int {
	fmt.Fprintln(errs, diag.Render(err, src.name, src.text))
	return exitCode(err)
}
