// Command streamsql runs streaming SQL: files as jobs, statements from the command line, or an interactive shell.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1   // a job failed
	exitUsage  = 2   // the SQL or the configuration is wrong
	exitSignal = 128 // and the signal's number: interrupted before the end (130 = Ctrl-C, 143 = SIGTERM)
)

// command is a verb of the command line.
type command struct {
	name, args, doc string
	run             func(args []string, out, errs io.Writer) int
}

func commands() []command {
	return []command{
		{"run", "FILE…", "run a SQL file: its statements in order, until its jobs have ended", runFiles},
		{"repl", "", "interactive shell (also without a command)", runShell},
		{"explain", "FILE", "show the plans of a file's queries and INSERTs, and how each sink is delivered to", explainFile},
		{"check", "FILE", "parse, bind and plan a file, validate its options and look for mistakes; contact nothing", checkFile},
		{"probe", "FILE…", "measure disk, checkpoint storage, brokers and databases against the checkpoint interval", probeCommand},
		{"checkpoint", "show|trace [DIR]", "what a state directory holds: checkpoints, positions, pending output; their lives", checkpointCommand},
		{"txn", "list|abort|commit", "transactions that jobs left open in Kafka and PostgreSQL: whose they are, what may be done", txnCommand},
		{"savepoint", "create…", "take, list, show, verify and dispose savepoints, and compare them with a changed file", savepointCommand},
		{"stop", "", "stop a job of a running process with a final checkpoint or a savepoint", stopCommand},
		{"reconcile", "FILE…", "compare what sinks hold with what sources and queries give, at a checkpoint", reconcileCommand},
		{"chaos", "FILE…", "check exactly-once on your own job: kill, suspend and rescale it over shadows of its sinks", chaosCommand},
		{"demo", "", "exactly-once through kill -9, on an embedded broker and real data", runDemo},
		{"version", "", "print the version", printVersion},
	}
}

func main() {
	if os.Getenv("GOGC") == "" {
		tuneCollector()
	}
	os.Exit(dispatch(os.Args[1:], os.Stdout, os.Stderr))
}

func dispatch(args []string, out, errs io.Writer) int {
	if len(args) > 0 {
		for _, c := range commands() {
			if args[0] == c.name {
				return c.run(args[1:], out, errs)
			}
		}
		switch a := args[0]; {
		case a == "help" || a == "-h" || a == "--help" || a == "-help":
			usage(out)
			return exitOK
		case a == "--version":
			return printVersion(nil, out, errs)
		case a[0] != '-':
			names := make([]string, 0, 8)
			for _, c := range commands() {
				names = append(names, c.name)
			}
			fmt.Fprintf(errs, "streamsql: unknown command %q\n", a)
			if n := diag.Nearest(a, names); n != "" {
				fmt.Fprintf(errs, "  hint: did you mean %q?\n", n)
			} else {
				fmt.Fprintf(errs, "  hint: streamsql --help lists the commands; streamsql run %s runs a file\n", a)
			}
			return exitUsage
		}
	}
	return runShell(args, out, errs)
}

func usage(out io.Writer) {
	fmt.Fprint(out, `streamsql runs streaming SQL (Flink SQL's dialect) over Kafka, PostgreSQL and files, exactly once.

usage:
  streamsql                       interactive shell
  streamsql -e "SELECT 1"         run statements and exit; also -f FILE, -i FILE
`)
	for _, c := range commands() {
		fmt.Fprintf(out, "  streamsql %-21s %s\n", c.name+" "+c.args, c.doc)
	}
	fmt.Fprint(out, `
"streamsql COMMAND --help" explains a command, with examples; "streamsql repl --help" the flags without a command. Exit
codes: 0 done, 1 a job failed, 2 the SQL or the configuration is wrong.
`)
}

// exitCode sorts an error: what the user wrote, or what happened while it ran.
func exitCode(err error) int {
	if err == nil {
		return exitOK
	}
	var job *repl.JobError
	if errors.As(err, &job) && diag.CodeOf(err) != diag.Config {
		return exitFailed
	}
	switch diag.CodeOf(err) {
	case diag.Syntax, diag.Unsupported, diag.Semantic, diag.Config, diag.Conflict:
		return exitUsage
	}
	return exitFailed
}
