package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

// settings collects repeated -D key=value.
type settings map[string]string

// String implements flag.Value.
func (s settings) String() string { return "" }

// Set implements flag.Value.
func (s settings) Set(v string) error {
	key, value, ok := strings.Cut(v, "=")
	if !ok || key == "" {
		return fmt.Errorf("write key=value")
	}
	s[key] = value
	return nil
}

// list collects a repeated flag.
type list []string

// String implements flag.Value.
func (l *list) String() string { return strings.Join(*l, ", ") }

// Set implements flag.Value.
func (l *list) Set(v string) error {
	*l = append(*l, v)
	return nil
}

// flags are the command line's options, shared by the commands that open an engine.
type flags struct {
	set        *flag.FlagSet
	settings   settings
	stateDir   string
	restore    string
	output     string
	resultMode string
	embedded   bool
	kafkaAddr  string
	takeOver   bool
	memory     string
	logLevel   string
	cpuProfile string
	metricsAt  string
	quiet      bool
	syntax     bool
	printed    io.Writer // where connector 'print' writes; nil = standard output
	dump       bool
	against    string
	log        *slog.Logger // once an engine is open
	allowDrop  bool
	allowBack  bool

	errs            io.Writer
	name, args, doc string
	examples        string // for help, indented lines

	statements list
	files      list
	initFile   string
}

func newFlags(name, args, doc string, errs io.Writer) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError), settings: settings{}, restore: "latest", errs: errs, name: name, args: args, doc: doc}
	f.set.SetOutput(io.Discard) // parse and help write what there is to say
	f.set.Usage = func() {}
	return f
}

// settingFlags adds the flag of commands that open an engine, or plan a script.
func (f *flags) settingFlags() {
	f.set.Var(f.settings, "D", "`key=value` of a session setting, as SET; may be repeated")
}

// only refuses flags that were given and that the command, used as verb, would ignore: whoever gives them expects something of them.
func (f *flags) only(verb string, used ...string) error {
	var err error
	f.set.Visit(func(x *flag.Flag) {
		if !slices.Contains(used, x.Name) && err == nil {
			dash := "--"
			if len(x.Name) == 1 {
				dash = "-"
			}
			err = fmt.Errorf("%s does not take %s%s", verb, dash, x.Name)
		}
	})
	return err
}

// command is how the command is called.
func (f *flags) command() string { return strings.TrimSpace("streamsql " + f.name) }

// help teaches the command: what it does, examples, flags.
func (f *flags) help(out io.Writer) {
	fmt.Fprintf(out, "usage: %s [flags] %s\n%s\n", f.command(), f.args, f.doc)
	if f.examples != "" {
		fmt.Fprintf(out, "\nexamples:\n%s", f.examples)
	}
	fmt.Fprint(out, "\nflags:\n")
	f.set.VisitAll(func(x *flag.Flag) {
		dash := "--"
		if len(x.Name) == 1 {
			dash = "-"
		}
		value, usage := flag.UnquoteUsage(x)
		if x.DefValue != "" && x.DefValue != "false" {
			usage += fmt.Sprintf(" (default %s)", x.DefValue)
		}
		fmt.Fprintf(out, "  %s\n", strings.TrimSpace(dash+x.Name+" "+value))
		for _, l := range wrap(usage, 100) {
			fmt.Fprintf(out, "        %s\n", l)
		}
	})
}

// wrap breaks text into lines of at most width bytes where it has blanks.
func wrap(text string, width int) (lines []string) {
	line := ""
	for _, w := range strings.Fields(text) {
		if line != "" && len(line)+1+len(w) > width {
			lines, line = append(lines, line), ""
		}
		line = strings.TrimSpace(line + " " + w)
	}
	return append(lines, line)
}

// engineFlags adds the flags of commands that run jobs.
func (f *flags) engineFlags() {
	s := f.set
	f.settingFlags()
	s.StringVar(&f.stateDir, "state-dir", "", "`directory` of tables, checkpoints and state; one process at a time (default .streamsql/ and the name of the last file without its extension; .streamsql/statements for -e alone, .streamsql/shell for the shell)")
	s.StringVar(&f.restore, "restore", "latest", "where INSERT jobs start: latest (the newest checkpoint of the state directory), none (afresh), or the `path` of a savepoint")
	s.BoolVar(&f.allowDrop, "allow-dropped-state", false, "let a changed statement drop state of the checkpoint it starts from, and start operators empty whose input goes on (Flink: --allowNonRestoredState)")
	s.BoolVar(&f.allowBack, "allow-rewind", false, "let --restore go back behind output that is committed: it is written again")
	s.BoolVar(&f.embedded, "embedded-kafka", false, "run a Kafka broker inside this process for Kafka tables without bootstrap servers; topics are kept below the state directory. Weaker than a real broker: a kill of the process aborts open transactions (the job then rewinds one checkpoint)")
	s.StringVar(&f.kafkaAddr, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	s.BoolVar(&f.takeOver, "take-over", false, "take the state directory from a process that hangs or is suspended")
	s.StringVar(&f.memory, "memory", "", "`size` of keyed state held in memory, e.g. 512mb (default a quarter of the machine's memory); more goes to disk")
	s.StringVar(&f.metricsAt, "metrics-listen", "", "`host:port` to answer Prometheus at (/metrics), and whether all is well (/healthz); not protected, so keep it to a host that only the scraper reaches")
	s.StringVar(&f.cpuProfile, "cpuprofile", "", "`file` to write a CPU profile of the run to, for go tool pprof")
	s.StringVar(&f.logLevel, "log", "warn", "log `level` on stderr: debug, info, warn, error, off")
}

// outputFlags adds the flags of commands that print rows.
func (f *flags) outputFlags() {
	f.set.StringVar(&f.output, "o", "table", "`format` of rows: table, csv (NULL is nothing, an empty string is \"\"), json or markdown")
	f.set.StringVar(&f.resultMode, "result-mode", "table", "`what` to show of a query: table (the final rows of a bounded query) or changelog")
	f.set.BoolVar(&f.quiet, "q", false, "no progress and no notices on stderr")
}

// parse reads args, flags and positional arguments in any order. ok is false when the command should end with code.
func (f *flags) parse(args []string, out io.Writer) (pos []string, code int, ok bool) {
	for {
		err := f.set.Parse(args)
		if err == flag.ErrHelp {
			f.help(out)
			return nil, exitOK, false
		}
		if err != nil {
			return nil, f.usage(err), false
		}
		rest := f.set.Args()
		if len(rest) == 0 {
			return pos, exitOK, true
		}
		if n := len(args) - len(rest); n > 0 && args[n-1] == "--" {
			return append(pos, rest...), exitOK, true
		}
		pos = append(pos, rest[0])
		args = rest[1:]
	}
}

// usage tells what is wrong with the command line and what to write instead.
func (f *flags) usage(err error) int {
	text := err.Error()
	hint := f.command() + " --help lists the flags"
	if name, unknown := strings.CutPrefix(text, "flag provided but not defined: -"); unknown {
		text = "unknown flag -" + name
		if len(name) > 1 {
			text = "unknown flag --" + name
		}
		var names []string
		f.set.VisitAll(func(x *flag.Flag) { names = append(names, x.Name) })
		if n := diag.Nearest(name, names); n != "" && len(n) > 1 {
			hint = "did you mean --" + n + "? " + hint
		}
	}
	fmt.Fprintf(f.errs, "%s: %s\n  hint: %s\n", f.command(), text, hint)
	return exitUsage
}

// engine opens the engine the flags describe. name names the default state directory.
func (f *flags) engine(name string, errs io.Writer) (*streamsql.Engine, error) {
	o := &streamsql.Options{Redefine: true, Settings: f.settings, EmbeddedKafka: f.embedded, EmbeddedAddr: f.kafkaAddr, TakeOver: f.takeOver}
	o.Restore.AllowDropped, o.Restore.AllowRewind = f.allowDrop, f.allowBack
	switch f.restore {
	case "latest":
	case "":
		return nil, diag.New(diag.Config, diag.Pos{}, "flag --restore has no value").
			WithHint("give latest, none, or the path of a savepoint; a variable of the shell in its place may be unset")
	case "none":
		o.Restore.None = true
	default:
		o.Restore.Path = f.restore
	}
	if f.memory != "" {
		n, err := connectors.ParseMemory(f.memory)
		if err != nil {
			return nil, diag.New(diag.Config, diag.Pos{}, "flag --memory=%s", f.memory).Wrap(err)
		}
		o.Memory = n
	}
	if f.printed != nil {
		o.Output = f.printed
	}
	var err error
	if o.Log, err = f.logger(errs); err != nil {
		return nil, err
	}
	f.log = o.Log
	if f.stateDir == "" {
		f.stateDir = defaultStateDir(name)
	}
	eng, err := streamsql.Open(f.stateDir, o)
	if err != nil {
		return nil, f.settingError(err)
	}
	if !f.quiet {
		for _, n := range eng.Notices() {
			fmt.Fprintln(errs, "notice: flag -D: "+n)
		}
	}
	return eng, nil
}

// defaultStateDir is the state directory of a run of file name.
func defaultStateDir(name string) string {
	return filepath.Join(".streamsql", strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
}

// settingError names the flag when a setting was refused or the directory is in use.
func (f *flags) settingError(err error) error {
	var s *streamsql.SettingError
	var d *diag.Error
	if errors.As(err, &d) && d.Code == diag.Conflict {
		d.Hint = "stop the other process, or give this one another directory with --state-dir; --take-over takes it from one that hangs"
	}
	if !errors.As(err, &s) || d == nil {
		return err
	}
	out := diag.New(d.Code, diag.Pos{}, "flag -D %s=%s", s.Key, f.settings[s.Key]).Wrap(s.Err)
	out.Detail, out.Hint = d.Detail, d.Hint
	return out
}

func (f *flags) logger(errs io.Writer) (*slog.Logger, error) {
	var level slog.Level
	if f.logLevel == "off" {
		return slog.New(slog.DiscardHandler), nil
	}
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "flag --log: unknown level %q", f.logLevel).WithHint("use debug, info, warn, error or off")
	}
	return slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: level})), nil
}

func (f *flags) printer(out io.Writer) (*repl.Printer, error) {
	format, err := repl.ParseFormat(f.output)
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "flag -o").Wrap(err).WithHint("use table, csv, json or markdown")
	}
	mode, err := repl.ParseResultMode(f.resultMode)
	if err != nil {
		return nil, diag.New(diag.Config, diag.Pos{}, "flag --result-mode").Wrap(err).WithHint("use table or changelog")
	}
	return &repl.Printer{Out: out, Format: format, Mode: mode}, nil
}

// isTerminal reports that w is a terminal, where progress may be drawn.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok {
		return false
	}
	st, err := f.Stat()
	return err == nil && st.Mode()&os.ModeCharDevice != 0
}

// printJSON writes what -o json asks for.
func printJSON(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}
