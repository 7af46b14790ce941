package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

func runFiles(args []string, out, errs io.Writer) int {
	f := newFlags("run", "FILE…", "Runs SQL files: statements in order, until every job has ended. Ctrl-C or SIGTERM stops after a final checkpoint\nand commit; a second one at once. Run the same file again to go on from the newest checkpoint.", errs)
	f.engineFlags()
	f.outputFlags()
	f.set.Var(&f.statements, "e", "`SQL` to run, after the files; may be repeated")
	f.set.Var(&f.files, "f", "`file` to run; the same as naming it")
	f.set.StringVar(&f.initFile, "i", "", "`file` of definitions and settings to run first")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	return f.runTexts(append(pos, f.files...), out, errs)
}

// source is a text to run and its name for messages.
type source struct{ name, text string }

// runTexts runs files and statements on one engine.
func (f *flags) runTexts(files []string, out, errs io.Writer) int {
	var sources []source
	if f.initFile != "" {
		files = append([]string{f.initFile}, files...)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			fmt.Fprintf(errs, "streamsql: %v\n", err)
			return exitUsage
		}
		sources = append(sources, source{name, string(b)})
	}
	for _, s := range f.statements {
		sources = append(sources, source{"", s})
	}
	if len(sources) == 0 {
		fmt.Fprintln(errs, "streamsql run: no file\n  hint: streamsql run job.sql, or streamsql -e \"SELECT 1\"")
		return exitUsage
	}
	p, err := f.printer(out)
	if err != nil {
		return fail(errs, err, source{})
	}
	name := "statements"
	if len(files) > 0 {
		name = files[len(files)-1]
	}
	eng, err := f.engine(name, errs)
	if err != nil {
		return fail(errs, err, source{})
	}
	s := &session{eng: eng, printer: p, errs: errs, quiet: f.quiet}
	code := s.run(sources)
	if err := eng.Close(); err != nil && code == exitOK {
		return fail(errs, err, source{})
	}
	return code
}

// session runs texts on an engine until they end or the user stops them.
type session struct {
	eng     *streamsql.Engine
	printer *repl.Printer
	errs    io.Writer
	quiet   bool
}

func (s *session) run(sources []source) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	stop := make(chan os.Signal, 2)
	signal.Notify(stop, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(stop)
	interrupted := false
	var stopped sync.WaitGroup
	stopped.Add(1)
	done := make(chan struct{})
	go func() {
		defer stopped.Done()
		select {
		case <-done:
			return
		case <-stop:
		}
		interrupted = true
		cancel()
		s.say("stopping after a final checkpoint; once more to stop at once")
		select {
		case <-done:
		case <-stop:
			os.Exit(exitFailed)
		}
	}()
	progress := newProgress(s.eng, s.errs, !s.quiet && isTerminal(s.errs))
	code := exitOK
	for _, src := range sources {
		r := &repl.Runner{Engine: s.eng, Printer: s.printer, Notice: s.notice}
		if err := r.Run(ctx, src.text); err != nil && !(interrupted && errors.Is(err, context.Canceled)) {
			progress.clear()
			code = fail(s.errs, err, src)
			break
		}
		if ctx.Err() != nil {
			break
		}
	}
	code = max(code, s.stopJobs())
	progress.close()
	close(done)
	stopped.Wait()
	return code
}

// stopJobs stops what still runs with a final checkpoint.
func (s *session) stopJobs() int {
	code := exitOK
	for _, j := range s.eng.Jobs() {
		if j.Status().State.Ended() {
			continue
		}
		if err := j.Stop(context.Background(), streamsql.StopOptions{}); err != nil {
			fmt.Fprintln(s.errs, diag.Render(err, "", ""))
			code = exitFailed
		}
	}
	return code
}

func (s *session) notice(text string) { s.say("notice: " + text) }

func (s *session) say(text string) {
	if !s.quiet {
		fmt.Fprintln(s.errs, text)
	}
}

// fail prints an error with its place in the source.
func fail(errs io.Writer, err error, src source) int {
	fmt.Fprintln(errs, diag.Render(err, src.name, src.text))
	return exitCode(err)
}
