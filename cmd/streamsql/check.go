package main

import (
	"fmt"
	"io"
	"os"
	"runtime/debug"

	"github.com/streamsql/streamsql"
)

func checkFile(args []string, out, errs io.Writer) int {
	f := newFlags("check", "FILE…", "Parses, binds and plans SQL files and validates their options. Contacts nothing and runs nothing.", errs)
	f.set.BoolVar(&f.syntax, "syntax", false, "parse only: names need not exist")
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "assume an embedded broker for Kafka tables without bootstrap servers")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	return f.eachFile("check", pos, errs, func(eng *streamsql.Engine, src source) error {
		if f.syntax {
			return streamsql.CheckSyntax(src.text)
		}
		notices, err := eng.Check(src.text)
		for _, n := range notices {
			fmt.Fprintln(errs, "notice: "+n)
		}
		if err == nil {
			fmt.Fprintf(out, "%s: OK\n", src.name)
		}
		return err
	})
}

func explainFile(args []string, out, errs io.Writer) int {
	f := newFlags("explain", "FILE…", "Shows the plan of every query and INSERT of SQL files, and for each sink how its rows are delivered and why.", errs)
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
	eng, err := streamsql.Open("", o)
	if err != nil {
		return fail(errs, err, source{})
	}
	defer eng.Close()
	var sources []source
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
	for _, src := range sources {
		if err := do(eng, src); err != nil {
			return fail(errs, err, src)
		}
	}
	return exitOK
}

func printVersion(_ []string, out, _ io.Writer) int {
	version := "devel"
	if info, ok := debug.ReadBuildInfo(); ok {
		if v := info.Main.Version; v != "" && v != "(devel)" {
			version = v
		}
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" && version == "devel" && len(s.Value) >= 12 {
				version = "devel " + s.Value[:12]
			}
		}
		fmt.Fprintf(out, "streamsql %s (%s)\n", version, info.GoVersion)
		return exitOK
	}
	fmt.Fprintf(out, "streamsql %s\n", version)
	return exitOK
}
