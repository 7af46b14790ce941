package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/streamsql/streamsql/cmd/streamsql/chaos"
	"github.com/streamsql/streamsql/sql/diag"
)

// Exit codes of chaos beside those of all commands.
const (
	exitViolated     = 3
	exitInconclusive = 4
)

// chaosChild is the argument of "streamsql chaos" that makes it one of the check's own children.
const chaosChild = "run-child"

func chaosCommand(args []string, out, errs io.Writer) int {
	if len(args) == 2 && args[0] == chaosChild {
		return chaos.Child(args[1], out, errs)
	}
	f := newFlags("chaos", "FILE…", `Checks exactly-once on your own job, on your own brokers and databases, without touching its output: runs the job over a
bounded part of its input into shadows of its sinks, twice without faults, then with processes that are killed, suspended,
rescaled, moved by savepoints, cut off from their disk or put to another time, and compares what readers of committed rows see.
  sources  read, not written: pinned offsets of topics, files as they are, generated rows; no group commits offsets
  sinks    topics TOPIC__chaos_ID_RUN, tables in schema chaos_ID, files in a temporary directory; removed at the end
  faults   kill9      SIGKILL at a random time
           failpoint  SIGKILL at a named place of the protocol, such as publish.after
           net        connections are delayed, cut, left half-open, or lose the answer to a commit
           pause      SIGSTOP; another process takes over, then the first one wakes up
           rescale    SIGKILL, and on with another parallelism
           savepoint  stopped with a savepoint, and on from that, with another parallelism or in a new state directory
           disk       no file can grow for a while
           readonly   nothing in the state directory can be made or renamed, for a while or when a process starts
           server     one of the commands of --server-fault kills and restarts a broker or a database
           clock      the clock jumps by up to two hours, back or forth
Exit codes: 0 exact, 3 violated (with the rows that differ, and the command that repeats the trial), 4 inconclusive (with
the reason), 1 something failed, 2 the SQL or the configuration is wrong.`, errs)
	f.examples = `  streamsql chaos job.sql                                 some sixteen faults; a minute or more
  streamsql chaos job.sql --kills 200 --rows 200000 --timeout 1h --html report.html
  streamsql chaos job.sql --faults failpoint,pause --json report.json
  streamsql chaos job.sql --server-fault 'docker restart -t 0 kafka' --server-fault 'docker kill pg && docker start pg'
  streamsql chaos job.sql --junit chaos.xml               for a CI system
  streamsql chaos job.sql --seed 42 --only 17             one trial again
  streamsql chaos job.sql --oracle "SELECT COUNT(*), SUM(amount) FROM totals"   where rows differ by nature
  streamsql chaos job.sql --clean 3f9a1c                  remove what a check that was killed left behind
`
	var o chaos.Options
	var faults, jsonFile, htmlFile, junitFile, clean string
	f.settingFlags()
	f.set.Uint64Var(&o.Seed, "seed", 1, "`number` that decides the faults: the same seed and flags give the same trials, at about the same moments")
	f.set.IntVar(&o.Faults, "kills", 16, "`number` of faults, in all trials together")
	f.set.Int64Var(&o.Rows, "rows", 20000, "`number` of rows to read of each source, at most")
	f.set.StringVar(&faults, "faults", strings.Join(chaos.Kinds(), ","), "`kinds` of faults, a list with commas")
	f.set.DurationVar(&o.Timeout, "timeout", 15*time.Minute, "`time` for the whole check; what is done by then counts")
	f.set.IntVar(&o.Only, "only", 0, "`number` of the one trial to carry out")
	f.set.StringVar(&o.Oracle, "oracle", "", "`query` over the sinks whose rows are compared instead of the sinks' own")
	f.set.DurationVar(&o.RunFor, "run-for", 3*time.Second, "`time` that a run without faults is made to last, so that faults meet it at work")
	f.set.BoolVar(&o.Keep, "keep", false, "keep shadows, state directories and files, and say where they are")
	f.set.StringVar(&o.ID, "id", "", "`id` of this check in the names of shadows (default random)")
	f.set.StringVar(&clean, "clean", "", "remove the shadows of the check with this `id`, and do nothing else")
	f.set.StringVar(&jsonFile, "json", "", "`file` to write the report to as JSON")
	f.set.Var((*list)(&o.Servers), "server-fault", "`command` for the shell that kills and restarts a broker or a database of the jobs, as often as the schedule says; may be repeated. It ends with 0 when the server is on its way up")
	f.set.StringVar(&junitFile, "junit", "", "`file` to write the report to as JUnit's XML")
	f.set.StringVar(&htmlFile, "html", "", "`file` to write the report to as a page")
	f.set.StringVar(&o.Embedded, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	f.set.BoolVar(&f.quiet, "q", false, "no progress on stderr")
	f.set.StringVar(&f.logLevel, "log", "error", "log `level` on stderr: debug, info, warn, error, off")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if len(pos) == 0 {
		fmt.Fprintln(errs, "streamsql chaos: no file\n  hint: streamsql chaos job.sql")
		return exitUsage
	}
	src := source{}
	for _, name := range pos {
		b, err := os.ReadFile(name)
		if err != nil {
			return fail(errs, diag.New(diag.Config, diag.Pos{}, "cannot read %s", name).Wrap(err), source{})
		}
		o.Script += string(b) + "\n"
	}
	if src.text = o.Script; len(pos) == 1 {
		src.name = pos[0]
	}
	var err error
	if o.Log, err = f.logger(errs); err != nil {
		return fail(errs, err, source{})
	}
	o.Settings, o.Kinds, o.Child = f.settings, splitList(faults), []string{"chaos", chaosChild}
	o.Replay = replayOf(f, pos, o.Servers)
	if !f.quiet {
		begun := time.Now()
		o.Say = func(text string) { fmt.Fprintf(errs, "%6.1fs  %s\n", time.Since(begun).Seconds(), text) }
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if clean != "" {
		if err := chaos.Clean(ctx, o, clean); err != nil {
			return fail(errs, err, src)
		}
		return exitOK
	}
	if o.ID == "" {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		o.ID = hex.EncodeToString(b[:])
	}
	rep, err := chaos.Run(ctx, o)
	_, only := err.(*chaos.LeftError) // of what was made, not of what was found: the report is as good as ever
	switch {
	case ctx.Err() != nil:
		var left *chaos.LeftError
		if fmt.Fprintln(errs, "interrupted"); errors.As(err, &left) {
			fail(errs, left, source{})
		}
		return exitSignal + int(syscall.SIGINT)
	case err != nil && !only:
		return max(fail(errs, err, src), exitFailed)
	}
	err = errors.Join(err, rep.Text(out), writeReport(jsonFile, rep.JSON), writeReport(htmlFile, rep.HTML), writeReport(junitFile, rep.JUnit))
	if err != nil {
		return max(fail(errs, err, source{}), exitFailed)
	}
	return map[string]int{chaos.Exact: exitOK, chaos.Violated: exitViolated, chaos.Inconclusive: exitInconclusive}[rep.Verdict]
}

// splitList are the words of a list with commas.
func splitList(s string) (out []string) {
	for w := range strings.SplitSeq(s, ",") {
		if w = strings.TrimSpace(w); w != "" {
			out = append(out, w)
		}
	}
	return out
}

// replayOf is the command line that plans the same trials, but for the seed and the trial.
func replayOf(f *flags, files, servers []string) string {
	parts := []string{"streamsql chaos"}
	for _, name := range files {
		parts = append(parts, quoteArg(name))
	}
	for _, k := range slices.Sorted(maps.Keys(f.settings)) {
		parts = append(parts, "-D", quoteArg(k+"="+f.settings[k]))
	}
	for _, name := range []string{"kills", "rows", "faults", "run-for", "oracle", "embedded-kafka-addr"} {
		if x := f.set.Lookup(name); x.Value.String() != x.DefValue {
			parts = append(parts, "--"+name, quoteArg(x.Value.String()))
		}
	}
	for _, c := range servers {
		parts = append(parts, "--server-fault", quoteArg(c))
	}
	return strings.Join(parts, " ")
}

// quoteArg is a word of a shell command.
func quoteArg(s string) string {
	if strings.ContainsAny(s, " \t\n\"'$`\\*?()<>|&;") {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// writeReport writes a report to a file, if one is named.
func writeReport(name string, write func(io.Writer) error) error {
	if name == "" {
		return nil
	}
	w, err := os.Create(name)
	if err != nil {
		return err
	}
	return errors.Join(write(w), w.Close())
}
