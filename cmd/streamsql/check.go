package main

import (
	"fmt"
	"io"
	"runtime/debug"

	"github.com/streamsql/streamsql"
)

func checkFile(args []string, out, errs io.Writer) int {
	f := newFlags("check", "FILE…", "Parses, binds and plans SQL files and validates their options. Contacts nothing and runs nothing. Several files are one\nscript, as for run.", errs)
	f.examples = `  streamsql check job.sql                 names, types, options, and what each sink can promise
  streamsql check job.sql --against /backup/monday   what a changed statement keeps of a savepoint
  streamsql check --syntax *.sql          parse only
`
	f.set.Var(&f.statements, "e", "`SQL` to check; may be repeated")
	f.set.StringVar(&f.against, "against", "", "`path` of a savepoint or checkpoint: report what of its state the INSERTs would go on with, and fail when some would be lost")
	f.set.BoolVar(&f.allowDrop, "allow-dropped-state", false, "with --against: losing state is no failure")
	f.set.BoolVar(&f.syntax, "syntax", false, "parse only: names need not exist")
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "assume an embedded broker for Kafka tables without bootstrap servers")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	seen := map[string]bool{}
	done := func(src source, err error) error {
		if err == nil && src.name != "" {
			fmt.Fprintf(out, "%s: OK\n", src.name)
		}
		return err
	}
	if f.against != "" {
		return f.eachFile("check", pos, errs, func(eng *streamsql.Engine, src source) error {
			all, err := eng.CompareState(src.text, f.against)
			if err == nil {
				_, err = io.WriteString(out, comparisons(f.against, all))
			}
			if err == nil {
				err = checkAll(all, f.allowDrop)
			}
			return err
		})
	}
	return f.eachFile("check", pos, errs, func(eng *streamsql.Engine, src source) error {
		if f.syntax {
			return done(src, streamsql.CheckSyntax(src.text))
		}
		notices, err := eng.Check(src.text)
		for _, n := range notices {
			if !seen[n] {
				fmt.Fprintln(errs, "notice: "+n)
			}
			seen[n] = true
		}
		return done(src, err)
	})
}

func explainFile(args []string, out, errs io.Writer) int {
	f := newFlags("explain", "FILE…", "Shows the plan of every query and INSERT of SQL files, and for each sink how its rows are delivered and why.", errs)
	f.examples = `  streamsql explain job.sql
  streamsql explain -e "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(x)"
`
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "assume an embedded broker for Kafka tables without bootstrap servers")
	f.set.Var(&f.statements, "e", "`SQL` to explain; may be repeated")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	return f.eachFile("explain", pos, errs, func(eng *streamsql.Engine, src source) error {
		texts, err := eng.Explain(src.text)
		for _, t := range texts {
			fmt.Fprintln(out, t)
		}
		return err
	})
}

// eachFile gives every file and -e statement to do, on an engine in memory.
func (f *flags) eachFile(verb string, files []string, errs io.Writer, do func(*streamsql.Engine, source) error) int {
	if len(files)+len(f.statements) == 0 {
		fmt.Fprintf(errs, "streamsql %s: no file\n  hint: streamsql %s job.sql\n", verb, verb)
		return exitUsage
	}
	o := &streamsql.Options{Settings: f.settings}
	if f.embedded {
		o.EmbeddedAddr = "127.0.0.1:9092"
	}
	sources, err := f.sources(files)
	if err != nil {
		fmt.Fprintf(errs, "streamsql: %v\n", err)
		return exitUsage
	}
	eng, err := streamsql.Open("", o)
	if err != nil {
		return fail(errs, f.settingError(err), source{})
	}
	defer eng.Close()
	for _, n := range eng.Notices() {
		fmt.Fprintln(errs, "notice: flag -D: "+n)
	}
	for _, src := range sources {
		if err := do(eng, src); err != nil {
			return fail(errs, err, src)
		}
	}
	return exitOK
}

func printVersion(args []string, out, errs io.Writer) int {
	f := newFlags("version", "", "Prints the version, the revision it was built from and the Go version.", errs)
	if _, code, ok := f.parse(args, out); !ok {
		return code
	}
	text := "streamsql " + version()
	if info, ok := debug.ReadBuildInfo(); ok {
		text += " (" + info.GoVersion + ")"
	}
	fmt.Fprintln(out, text)
	return exitOK
}

// version is the module's version, or "devel" and the revision.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "devel"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && len(s.Value) >= 12 {
			return "devel " + s.Value[:12]
		}
	}
	return "devel"
}
