package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/signal"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/planner"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/lint"
)

func checkFile(args []string, out, errs io.Writer) int {
	f := newFlags("check", "FILE…", `Parses, binds and plans SQL files, validates their options, and looks for what works but is hardly meant: the rules of
docs/lints.md, each with a code. Contacts nothing and runs nothing, but for --live. Several files are one script, as for
run. Exit codes: 0 clean or warnings only, 2 an error, or with --strict a warning.`, errs)
	f.examples = `  streamsql check job.sql                    names, types, options, and what each sink can promise
  streamsql check --live job.sql             and ask the brokers and databases: topics, limits, columns, privileges
  streamsql check --strict -o json job.sql   for a build: warnings fail, findings as JSON
  streamsql check --ignore SSQL-W301 job.sql
  streamsql check --rule SSQL-W301           what a rule is about, with a bad and a good example
  streamsql check job.sql --against /backup/monday   what a changed statement keeps of a savepoint
  streamsql check --syntax *.sql             parse only
`
	c := &checkRun{flags: f, out: out, errs: errs, seen: map[string]bool{}, texts: map[string]string{}}
	f.settingFlags()
	f.set.Var(&f.statements, "e", "`SQL` to check; may be repeated")
	f.set.StringVar(&f.against, "against", "", "`path` of a savepoint or checkpoint: report what of its state the INSERTs would go on with, and fail when some would be lost")
	f.set.BoolVar(&f.allowDrop, "allow-dropped-state", false, "with --against: losing state is no failure")
	f.set.BoolVar(&f.syntax, "syntax", false, "parse only: names need not exist")
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "assume an embedded broker for Kafka tables without bootstrap servers")
	f.set.BoolVar(&c.live, "live", false, "ask the systems that tables name what a job asks before its first row; changes nothing there")
	f.set.BoolVar(&c.strict, "strict", false, "warnings are errors")
	f.set.Var(&c.ignore, "ignore", "`code` of a rule not to report; may be repeated, or a list with commas")
	f.set.StringVar(&c.format, "o", "text", "`format`: text or json")
	rule := ""
	f.set.StringVar(&rule, "rule", "", "explain the rule with this `code`")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if rule != "" {
		return c.explainRule(rule)
	}
	if err := c.valid(); err != nil {
		return fail(errs, err, source{})
	}
	switch {
	case f.against != "":
		return c.compare(pos)
	case f.syntax:
		return c.parse(pos)
	}
	return c.run(pos)
}

// compare reports what of a savepoint's state the files would go on with.
func (c *checkRun) compare(files []string) int {
	return c.flags.eachFile("check", files, c.errs, func(eng *streamsql.Engine, src source) error {
		all, err := eng.CompareState(src.text, c.flags.against)
		if err == nil {
			_, err = io.WriteString(c.out, comparisons(c.flags.against, all))
		}
		if err == nil {
			err = checkAll(all, c.flags.allowDrop)
		}
		return err
	})
}

func (c *checkRun) parse(files []string) int {
	return c.flags.eachFile("check", files, c.errs, func(_ *streamsql.Engine, src source) error {
		err := streamsql.CheckSyntax(src.text)
		if err == nil && src.name != "" {
			fmt.Fprintf(c.out, "%s: OK\n", src.name)
		}
		return err
	})
}

// checkRun is one run of check.
type checkRun struct {
	flags        *flags
	out, errs    io.Writer
	live, strict bool
	format       string
	ignore       list
	checker      *streamsql.Checker
	seen         map[string]bool   // notices told
	texts        map[string]string // of files, for the line of a finding
	found        []streamsql.CheckFinding
	asked        []string
	worst        int // exit code of findings
}

func (c *checkRun) valid() error {
	if c.format != "text" && c.format != "json" {
		return diag.New(diag.Config, diag.Pos{}, "flag -o: %q is not a format of check", c.format).WithHint("use text or json")
	}
	var codes []string
	for _, r := range lint.Rules {
		codes = append(codes, r.Code)
	}
	for _, list := range c.ignore {
		for _, code := range strings.Split(list, ",") {
			if lint.Find(strings.TrimSpace(code)) == nil {
				return diag.New(diag.Config, diag.Pos{}, "flag --ignore: there is no rule %q", code).WithHint("the rules are %s", strings.Join(codes, ", "))
			}
		}
	}
	return nil
}

func (c *checkRun) ignored(code string) bool {
	return slices.ContainsFunc(c.ignore, func(l string) bool { return slices.Contains(strings.Split(strings.ReplaceAll(l, " ", ""), ","), code) })
}

func (c *checkRun) run(files []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	code := c.flags.eachFile("check", files, c.errs, func(eng *streamsql.Engine, src source) error {
		if c.checker == nil {
			c.checker = eng.Checker(streamsql.CheckOptions{Live: c.live})
		}
		c.texts[src.name] = src.text
		r, err := c.checker.Check(ctx, src.name, src.text)
		c.report(src, r, err)
		return err
	})
	if c.format == "json" {
		c.json(code)
	}
	return max(code, c.worst)
}

// report tells what was found in a file.
func (c *checkRun) report(src source, r *streamsql.CheckReport, err error) {
	for _, n := range r.Notices {
		if !c.seen[n] {
			fmt.Fprintln(c.errs, "notice: "+n)
		}
		c.seen[n] = true
	}
	counts := map[lint.Severity]int{}
	for _, f := range r.Findings {
		if c.ignored(f.Code) {
			continue
		}
		counts[f.Severity()]++
		c.found = append(c.found, f)
		if f.Severity() == lint.Error || c.strict {
			c.worst = exitUsage
		}
		if c.format == "text" {
			fmt.Fprintln(c.errs, f.Render(f.File, c.texts[f.File]))
		}
	}
	c.asked = append(c.asked, r.Asked...)
	if c.format != "text" {
		return
	}
	for _, a := range r.Asked {
		fmt.Fprintln(c.out, "asked: "+a)
	}
	if err != nil || src.name == "" {
		return
	}
	fmt.Fprintf(c.out, "%s: %s\n", src.name, summary(counts))
}

func summary(counts map[lint.Severity]int) string {
	var parts []string
	for _, s := range []lint.Severity{lint.Error, lint.Warning} {
		switch n := counts[s]; {
		case n == 1:
			parts = append(parts, "1 "+s.String())
		case n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", n, s))
		}
	}
	if parts == nil {
		return "OK"
	}
	return strings.Join(parts, ", ")
}

// json writes all findings as one document; errors of the SQL itself are on stderr, as without.
func (c *checkRun) json(code int) {
	doc := struct {
		OK       bool              `json:"ok"`
		Findings []json.RawMessage `json:"findings"`
		Asked    []string          `json:"asked,omitempty"`
	}{OK: max(code, c.worst) == exitOK, Findings: []json.RawMessage{}, Asked: c.asked}
	for _, f := range c.found {
		b, err := json.Marshal(f.Finding)
		if err == nil && f.File != "" {
			name, _ := json.Marshal(f.File)
			b = append([]byte(`{"file":`+string(name)+","), b[1:]...)
		}
		if err == nil {
			doc.Findings = append(doc.Findings, b)
		}
	}
	_ = printJSON(c.out, doc) // a reader that went away
}

// explainRule prints a rule of docs/lints.md.
func (c *checkRun) explainRule(code string) int {
	r := lint.Find(strings.ToUpper(strings.TrimSpace(code)))
	if r == nil {
		var codes []string
		for _, r := range lint.Rules {
			codes = append(codes, r.Code)
		}
		fmt.Fprintf(c.errs, "streamsql check: there is no rule %q\n  hint: the rules are %s\n", code, strings.Join(codes, ", "))
		return exitUsage
	}
	fmt.Fprint(c.out, r.Text())
	return exitOK
}

func explainFile(args []string, out, errs io.Writer) int {
	f := newFlags("explain", "FILE…", "Shows the plan of every query and INSERT of SQL files, and for each sink how its rows are delivered and why.", errs)
	f.examples = `  streamsql explain job.sql
  streamsql explain --guarantees job.sql          what each sink is worth after a failure, and what decides it
  streamsql explain --guarantees -o json job.sql
  streamsql explain -e "SELECT COUNT(*) FROM (VALUES (1), (2)) AS t(x)"
`
	var guarantees bool
	format := "text"
	f.settingFlags()
	f.set.BoolVar(&f.embedded, "embedded-kafka", false, "assume an embedded broker for Kafka tables without bootstrap servers")
	f.set.BoolVar(&guarantees, "guarantees", false, "show what EXPLAIN GUARANTEES shows instead of the plans")
	f.set.StringVar(&format, "o", "text", "`format`: text, or json with --guarantees")
	f.set.Var(&f.statements, "e", "`SQL` to explain; may be repeated")
	pos, code, ok := f.parse(args, out)
	if !ok {
		return code
	}
	if format != "text" && (format != "json" || !guarantees) {
		fmt.Fprintf(errs, "streamsql explain: -o %s is not possible\n  hint: use -o text, or --guarantees -o json\n", format)
		return exitUsage
	}
	all := []*planner.Guarantees{}
	code = f.eachFile("explain", pos, errs, func(eng *streamsql.Engine, src source) error {
		if guarantees {
			gs, err := eng.Guarantees(src.text)
			all = append(all, gs...)
			return err
		}
		texts, err := eng.Explain(src.text)
		for _, t := range texts {
			fmt.Fprintln(out, t)
		}
		return err
	})
	switch {
	case format == "json" && code == exitOK:
		_ = printJSON(out, all) // a reader that went away
	case format == "text":
		for i, g := range all {
			if i > 0 {
				fmt.Fprintln(out)
			}
			fmt.Fprint(out, g.Text())
		}
	}
	return code
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
