package main

import (
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/repl"
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
	quiet      bool
	syntax     bool
	statements list
	files      list
	initFile   string
}

func newFlags(name, args, doc string, errs io.Writer) *flags {
	f := &flags{set: flag.NewFlagSet(name, flag.ContinueOnError), settings: settings{}}
	f.set.SetOutput(errs)
	f.set.Usage = func() {
		fmt.Fprintf(f.set.Output(), "usage: streamsql %s [flags] %s\n%s\n\nflags:\n", name, args, doc)
		f.set.PrintDefaults()
	}
	f.set.Var(f.settings, "D", "`key=value` of a session setting, as SET; may be repeated")
	return f
}

// engineFlags adds the flags of commands that run jobs.
func (f *flags) engineFlags() {
	s := f.set
	s.StringVar(&f.stateDir, "state-dir", "", "`directory` of tables, checkpoints and state; one process at a time (default .streamsql/<file name>)")
	s.StringVar(&f.restore, "restore", "latest", "where INSERT jobs start: latest, none (afresh), or the `path` of a savepoint")
	s.BoolVar(&f.embedded, "embedded-kafka", false, "run a Kafka broker inside this process for Kafka tables without bootstrap servers; topics are kept below the state directory. Weaker than a real broker: a kill of the process aborts open transactions (the job then rewinds one checkpoint)")
	s.StringVar(&f.kafkaAddr, "embedded-kafka-addr", "", "`host:port` of an embedded broker that another streamsql process runs")
	s.BoolVar(&f.takeOver, "take-over", false, "take the state directory from a process that hangs or is suspended")
	s.StringVar(&f.memory, "memory", "", "`size` of keyed state held in memory, e.g. 512mb (default a quarter of the machine's memory); more goes to disk")
	s.StringVar(&f.logLevel, "log", "warn", "log `level` on stderr: debug, info, warn, error, off")
}

// outputFlags adds the flags of commands that print rows.
func (f *flags) outputFlags() {
	f.set.StringVar(&f.output, "o", "table", "`format` of rows: table, csv or json")
	f.set.StringVar(&f.resultMode, "result-mode", "table", "`what` to show of a query: table (the final rows of a bounded query) or changelog")
	f.set.BoolVar(&f.quiet, "q", false, "no progress and no notices on stderr")
}

// parse reads args, flags and positional arguments in any order. ok is false when the command should end with code.
func (f *flags) parse(args []string, out io.Writer) (pos []string, code int, ok bool) {
	for {
		for _, a := range args {
			if a == "-h" || a == "--help" || a == "-help" {
				f.set.SetOutput(out)
			}
		}
		if err := f.set.Parse(args); err != nil {
			if err == flag.ErrHelp {
				return nil, exitOK, false
			}
			return nil, exitUsage, false
		}
		rest := f.set.Args()
		if len(rest) == 0 {
			return pos, exitOK, true
		}
		pos = append(pos, rest[0])
		args = rest[1:]
	}
}

// engine opens the engine the flags describe. name names the default state directory.
func (f *flags) engine(name string, errs io.Writer) (*streamsql.Engine, error) {
	o := &streamsql.Options{Redefine: true, Settings: f.settings, EmbeddedKafka: f.embedded, EmbeddedAddr: f.kafkaAddr, TakeOver: f.takeOver, Log: f.logger(errs)}
	switch f.restore {
	case "latest", "":
	case "none":
		o.Restore.None = true
	default:
		o.Restore.Path = f.restore
	}
	if f.memory != "" {
		n, err := connectors.ParseMemory(f.memory)
		if err != nil {
			return nil, fmt.Errorf("flag -memory: %w", err)
		}
		o.Memory = n
	}
	dir := f.stateDir
	if dir == "" {
		dir = filepath.Join(".streamsql", strings.TrimSuffix(filepath.Base(name), filepath.Ext(name)))
	}
	return streamsql.Open(dir, o)
}

func (f *flags) logger(errs io.Writer) *slog.Logger {
	var level slog.Level
	if f.logLevel == "off" {
		return slog.New(slog.DiscardHandler)
	}
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		level = slog.LevelWarn
	}
	return slog.New(slog.NewTextHandler(errs, &slog.HandlerOptions{Level: level}))
}

func (f *flags) printer(out io.Writer) (*repl.Printer, error) {
	format, err := repl.ParseFormat(f.output)
	if err != nil {
		return nil, err
	}
	mode, err := repl.ParseResultMode(f.resultMode)
	if err != nil {
		return nil, err
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
