package repl

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Shell reads statements and commands and executes them one after the other, for a person at a terminal. INSERTs run
// as background jobs; a query is shown as it goes until it ends or is interrupted.
type Shell struct {
	Engine  *streamsql.Engine
	Printer *Printer
	Out     io.Writer // results
	Err     io.Writer // errors and notices
	// Started is told of every job; nil = nobody is.
	Started func(*streamsql.Job)
	// Interrupts has a value for every Ctrl-C pressed while something runs.
	Interrupts <-chan os.Signal

	in     lines
	buf    strings.Builder // statement being typed
	timing bool
	out    io.WriteCloser // file of \o, nil = Out
	told   map[string]*streamsql.Job
	depth  int // of \i inside files
}

// lines is where a shell reads from.
type lines interface {
	// ReadLine returns the next line without its end: io.EOF after the last, errInterrupt when the user gave it up.
	ReadLine(prompt string) (string, error)
	// Remember keeps a statement for the user to call back.
	Remember(statement string)
}

var (
	errInterrupt = errors.New("interrupted")
	errQuit      = errors.New("quit")
)

const (
	promptFirst = "streamsql> "
	promptMore  = "        -> "
)

// Banner greets the user.
func Banner(version string) string {
	return "streamsql " + version + " · streaming SQL, exactly once\n" +
		`End statements with ";". \? lists the commands, \d the tables, \q leaves.` + "\n"
}

// Run reads from a terminal until the user leaves or ctx is done. Jobs are left running, for the caller to stop.
func (s *Shell) Run(ctx context.Context, historyFile string) error {
	t, err := newTerminal(historyFile, s.complete)
	if err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { t.Close() })()
	defer t.Close()
	return s.read(ctx, t)
}

func (s *Shell) read(ctx context.Context, in lines) error {
	s.in = in
	for ctx.Err() == nil {
		s.Announce()
		prompt := promptFirst
		if s.buf.Len() > 0 {
			prompt = promptMore
		}
		line, err := in.ReadLine(prompt)
		switch {
		case err == errInterrupt:
			s.buf.Reset()
			continue
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := s.line(ctx, line); err == errQuit {
			return nil
		}
	}
	return nil
}

// line takes one line and executes what it completes. The only error it returns is errQuit; others are shown.
func (s *Shell) line(ctx context.Context, line string) error {
	if s.buf.Len() == 0 {
		if strings.Trim(line, "; \t") == "" {
			return nil
		}
		if c, args, ok := parseCommand(line); ok {
			s.in.Remember(line)
			return s.command(ctx, c, args)
		}
	} else if strings.HasPrefix(line, `\`) && !insideQuotes(s.buf.String()) {
		// No SQL line starts with a backslash: as in psql, a command runs and the statement stays as it is.
		if c, args, ok := parseCommand(line); ok {
			return s.command(ctx, c, args)
		}
	}
	s.buf.WriteString(line + "\n")
	text := s.buf.String()
	if !streamsql.Complete(text) {
		return nil
	}
	s.buf.Reset()
	s.in.Remember(text)
	_ = s.statements(ctx, text, "") // shown
	return nil
}

// statements executes a text. The first error is shown and returned; Ctrl-C gives up what follows, with errInterrupt.
func (s *Shell) statements(ctx context.Context, text, name string) error {
	script := s.Engine.Script(text)
	for {
		ran := false
		err := s.interruptible(ctx, func(ctx context.Context) error {
			res, err := script.Next(ctx)
			if errors.Is(err, context.Canceled) && ctx.Err() != nil {
				return errInterrupt
			}
			if err != nil {
				return err
			}
			ran = true
			if err := s.show(ctx, res); err != nil || ctx.Err() == nil {
				return err
			}
			return errInterrupt
		})
		if err == io.EOF {
			return nil
		}
		if err == errInterrupt {
			return err
		}
		if err != nil {
			if ran {
				s.fail(err, "", "")
			} else {
				s.fail(err, name, text)
			}
			return err
		}
	}
}

// interruptible runs f with a context that Ctrl-C cancels.
func (s *Shell) interruptible(ctx context.Context, f func(context.Context) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for len(s.Interrupts) > 0 {
		<-s.Interrupts // pressed when nothing ran
	}
	done, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-s.Interrupts:
			cancel()
		case <-done:
		}
	}()
	defer func() {
		close(done)
		<-watched // else it could take the Ctrl-C meant for what runs next
	}()
	return f(ctx)
}

// show prints what a statement returned.
func (s *Shell) show(ctx context.Context, res *streamsql.Result) error {
	for _, n := range res.Notices {
		fmt.Fprintln(s.Err, "notice: "+n)
	}
	if res.Schema != nil {
		_, err := s.printer(res).Print(ctx, res)
		return err
	}
	if res.Job == nil {
		_, err := fmt.Fprintln(s.rows(), res.Message)
		return err
	}
	if s.Started != nil {
		s.Started(res.Job)
	}
	if s.told == nil {
		s.told = map[string]*streamsql.Job{}
	}
	if !syncInserts(s.Engine) {
		s.told[res.Job.ID()] = res.Job
		_, err := fmt.Fprintln(s.rows(), "Job ID: "+res.Job.ID())
		return err
	}
	return s.waitFor(ctx, res.Job)
}

// waitFor waits for a job with its progress. Ctrl-C stops the job.
func (s *Shell) waitFor(ctx context.Context, j *streamsql.Job) error {
	p := NewProgress(s.Engine, s.Err)
	err := j.Wait(ctx)
	if ctx.Err() != nil {
		p.Clear()
		fmt.Fprintln(s.Err, "stopping the job with a final checkpoint")
		err = j.Stop(context.Background(), streamsql.StopOptions{})
	}
	p.Close()
	if err == nil {
		fmt.Fprintln(s.Err, Summary(j, time.Now()))
	}
	return err
}

// printer is how a result is shown: the session's settings over the flags.
func (s *Shell) printer(res *streamsql.Result) *Printer {
	p := *s.Printer
	p.Out = s.rows()
	p.Timing = s.timing
	return p.under(s.Engine, res)
}

func (s *Shell) rows() io.Writer {
	if s.out != nil {
		return s.out
	}
	return s.Out
}

// Background tells whether j was started by the shell and runs, or ran, beside it, and its end has not been told yet.
func (s *Shell) Background(j *streamsql.Job) bool { return s.told[j.ID()] == j }

// Announce tells of background jobs that ended since the last prompt. Whoever ran the shell calls it once more when the
// jobs that were left running have been stopped.
func (s *Shell) Announce() {
	for _, j := range s.Engine.Jobs() {
		if !s.Background(j) || !j.Status().State.Ended() {
			continue
		}
		<-j.Done()
		delete(s.told, j.ID())
		if err := j.Wait(context.Background()); err != nil && !errors.Is(err, context.Canceled) {
			fmt.Fprintf(s.Err, "job %s failed (%s)\n", j.Name(), j.ID())
			s.fail(err, "", "")
			continue
		}
		fmt.Fprintln(s.Err, Summary(j, time.Now()))
	}
}

func (s *Shell) fail(err error, name, text string) {
	fmt.Fprintln(s.Err, diag.Render(err, name, text))
}

func atoi(text string) (n int) {
	for _, c := range text {
		if c < '0' || c > '9' || n > 1<<20 {
			return 0
		}
		n = 10*n + int(c-'0')
	}
	return n
}
