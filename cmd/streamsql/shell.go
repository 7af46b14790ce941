package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

// historyEnv names the environment variable with the shell's history file; empty means none.
const historyEnv = "STREAMSQL_HISTORY"

// runShell is the command without a verb: -e and -f run statements and files, otherwise the shell starts, or, when
// standard input is not a terminal, what stands there is run.
func runShell(args []string, out, errs io.Writer) int {
	f := newFlags("", "", `Without -e and -f: the interactive shell; when standard input is not a terminal, the statements there are run like a
file. INSERTs of the shell run as background jobs; leaving it stops them with a final checkpoint, and the same INSERT
goes on from there in a later shell. Tables and state are kept in the state directory. The history is kept in the
user's configuration folder, or in the file that STREAMSQL_HISTORY names.`, errs)
	f.examples = `  streamsql                                    the shell; \? lists its commands
  streamsql -i tables.sql                      the shell, with the tables of a file
  streamsql -e "SELECT 1"                      run and exit
  echo "SHOW TABLES;" | streamsql --state-dir .streamsql/job -o json
`
	f.engineFlags()
	f.outputFlags()
	f.scriptFlags()
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) > 0 {
		fmt.Fprintf(errs, "streamsql: unexpected argument %q\n  hint: streamsql run %s runs a file, streamsql --help lists the commands\n", pos[0], pos[0])
		return exitUsage
	}
	if len(f.files)+len(f.statements) > 0 {
		return f.runTexts(f.files, out, errs)
	}
	first, err := f.sources(nil)
	if err != nil {
		fmt.Fprintf(errs, "streamsql: %v\n", err)
		return exitUsage
	}
	return f.withSession("shell", out, errs, func(s *session) int {
		if isTerminal(os.Stdin) && isTerminal(out) {
			return s.interactive(first, out)
		}
		return s.piped(first)
	})
}

// piped runs standard input statement by statement, as they come.
func (s *session) piped(first []source) int {
	return s.run(func(ctx context.Context) (source, error) {
		r := s.runner()
		for _, src := range first {
			if err := r.Run(ctx, src.text); err != nil {
				return src, err
			}
		}
		text, err := repl.RunPipe(ctx, r, s.errs, os.Stdin)
		return source{"", text}, err
	})
}

// interactive is the shell.
func (s *session) interactive(first []source, out io.Writer) int {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	interrupts := make(chan os.Signal, 2)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	end := make(chan os.Signal, 1)
	signal.Notify(end, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(end)
	go func() {
		select {
		case <-end:
			cancel()
		case <-ctx.Done():
		}
	}()

	for _, src := range first {
		if err := s.runner().Run(ctx, src.text); err != nil {
			return fail(s.errs, err, src)
		}
	}
	fmt.Fprint(out, repl.Banner(version()))
	sh := &repl.Shell{Engine: s.eng, Printer: s.printer, Out: out, Err: s.errs, Interrupts: interrupts}
	if err := sh.Run(ctx, historyFile()); err != nil {
		return fail(s.errs, err, source{})
	}
	return s.leave(sh, interrupts)
}

// leave stops the jobs of the shell and tells how they ended, those too that ended since its last prompt. An interrupt ends
// the process at once.
func (s *session) leave(sh *repl.Shell, interrupts <-chan os.Signal) int {
	running := slices.DeleteFunc(s.eng.Jobs(), func(j *streamsql.Job) bool { return j.Status().State.Ended() })
	if n := len(running); n > 0 {
		what := fmt.Sprintf("%d jobs", n)
		if n == 1 {
			what = "1 job"
		}
		s.say("stopping " + what + " with a final checkpoint; Ctrl-C to stop at once")
		go func() {
			<-interrupts
			os.Exit(exitFailed)
		}()
	}
	code := exitOK
	for _, j := range running {
		if err := j.Stop(context.Background(), streamsql.StopOptions{}); err != nil {
			code = exitFailed
			if !sh.Background(j) {
				fmt.Fprintln(s.errs, diag.Render(err, "", ""))
			}
		}
	}
	s.jobs.Wait()
	sh.Announce()
	return code
}

// historyFile is where the shell keeps its lines, "" for nowhere.
func historyFile() string {
	if name, set := os.LookupEnv(historyEnv); set {
		return name
	}
	dir, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "streamsql", "history")
}
