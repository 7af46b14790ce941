package repl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// command is a verb of the shell itself. The first name is the one \? shows.
type command struct {
	names     []string
	args, doc string
	run       func(s *Shell, ctx context.Context, name string, args []string) error
}

// words are the commands that need no backslash, as in Flink's client.
var words = map[string]string{"quit": `\q`, "exit": `\q`, "help": `\?`, "clear": `\clear`}

func commands() []command {
	return []command{
		{[]string{`\?`, ".help"}, "", "this list", (*Shell).help},
		{[]string{`\h`}, "[WORD]", "what statements there are, or those that start with WORD", (*Shell).statementHelp},
		{[]string{`\d`, `\d+`, ".schema"}, "[NAME]", "tables and views, also by a pattern, or the columns of one; + its definition", (*Shell).describe},
		{[]string{`\dt`, ".tables"}, "[PATTERN]", "tables; patterns take * and ?", (*Shell).listObjects},
		{[]string{`\dv`, ".views"}, "[PATTERN]", "views", (*Shell).listObjects},
		{[]string{`\df`, ".functions"}, "[PATTERN]", "functions and how they are called", (*Shell).listFunctions},
		{[]string{`\jobs`, ".jobs"}, "", "jobs of this shell and what went through them", (*Shell).listJobs},
		{[]string{`\checkpoints`, ".checkpoints"}, "[JOB]", "the last checkpoints: state, time, size, what they wait for or failed of", (*Shell).listCheckpoints},
		{[]string{`\stop`, ".stop"}, "ID", "stop a job with a final checkpoint; the start of its id will do", (*Shell).stopJob},
		{[]string{`\timing`, ".timer"}, "[on|off]", "show how long statements take", (*Shell).setTiming},
		{[]string{`\x`, ".expanded"}, "[on|off]", "show rows as blocks, a line a column", (*Shell).setExpanded},
		{[]string{`\mode`, ".mode"}, "[table|csv|json|markdown|changelog|final]", "format of rows; what to show of a query", (*Shell).setMode},
		{[]string{`\i`, ".read"}, "FILE", "run a file here", (*Shell).include},
		{[]string{`\o`, ".output"}, "[FILE]", "write results to a file, or to the terminal again", (*Shell).setOutput},
		{[]string{`\set`, ".set"}, "[KEY [VALUE]]", "settings: all, one, or change one (also SET 'key' = 'value')", (*Shell).setting},
		{[]string{`\restore`}, "", "how jobs of this shell continue after it ends", (*Shell).restoreHelp},
		{[]string{`\clear`, ".clear"}, "", "clear the screen", (*Shell).clear},
		{[]string{`\q`, ".quit", ".exit"}, "", "stop the jobs with a final checkpoint and leave (also Ctrl-D)", (*Shell).quit},
	}
}

// parseCommand recognises a line that is a command: a backslash or a dot and a word, or one of the plain words. name is
// as typed, except that plain words become their backslash form.
func parseCommand(line string) (name string, args []string, ok bool) {
	f := splitWords(strings.TrimSuffix(strings.TrimSpace(line), ";"))
	if len(f) == 0 {
		return "", nil, false
	}
	if w, ok := words[strings.ToLower(f[0])]; ok && len(f) == 1 {
		return w, nil, true
	}
	dot := len(f[0]) > 1 && f[0][0] == '.' && (f[0][1]|0x20 >= 'a' && f[0][1]|0x20 <= 'z')
	if f[0][0] != '\\' && !dot {
		return "", nil, false
	}
	return f[0], f[1:], true
}

// splitWords splits at blanks outside single quotes; the quotes are dropped.
func splitWords(line string) (out []string) {
	var sb strings.Builder
	quoted, open := false, false
	for _, r := range line {
		switch {
		case r == '\'':
			quoted, open = !quoted, true
		case !quoted && (r == ' ' || r == '\t' || r == '\n'):
			if open {
				out = append(out, sb.String())
			}
			sb.Reset()
			open = false
		default:
			sb.WriteRune(r)
			open = true
		}
	}
	if open {
		out = append(out, sb.String())
	}
	return out
}

// findCommand is the command of a name; nil with the nearest name when there is none.
func findCommand(name string) (c *command, nearest string) {
	var all []string
	for _, c := range commands() {
		for _, n := range c.names {
			if strings.EqualFold(n, name) {
				return &c, ""
			}
		}
		all = append(all, c.names...)
	}
	near := diag.Nearest(name, all)
	if len(near) <= 2 {
		near = "" // one letter is near any other
	}
	return nil, near
}

// foreignCommands are commands of psql and DuckDB that do not exist here, with what to do instead.
var foreignCommands = map[string]string{
	`\l`: "SHOW DATABASES; there is one", `\c`: "there is one database; tables name the systems they are in", `\dn`: "there is one database; \\d lists its tables",
	`\du`: "there are no users here", `\di`: "there are no indexes; \\d+ NAME shows a table with its key",
	`\copy`: "CREATE TABLE with 'connector' = 'filesystem', then INSERT INTO it or SELECT from it", `\watch`: "a query over a stream keeps running and shows every change; Ctrl-C stops it",
	`\e`: "write the statement into a file and run it with \\i FILE", `\g`: "end the statement with ;", `\a`: "\\mode csv", `\t`: "\\mode csv",
	`\pset`: "\\mode and \\x set how rows are shown", `\!`: "commands of the system run outside of the shell", ".import": "CREATE TABLE with 'connector' = 'filesystem' and the path of the file",
	".databases": "SHOW DATABASES; there is one", ".once": "\\o FILE, and \\o for the terminal again", ".maxrows": "LIMIT in the query",
}

// lookup finds a command and checks that it takes arguments if it got some.
func lookup(name string, args []string) (*command, error) {
	c, near := findCommand(name)
	if c == nil {
		err := diag.New(diag.Syntax, diag.Pos{}, "unknown command %s", name).WithHint(`\? lists the commands`)
		if other := foreignCommands[strings.TrimSuffix(strings.ToLower(name), "+")]; other != "" {
			return nil, err.WithHint("%s", other)
		}
		if near != "" {
			err.WithHint(`did you mean %s? \? lists the commands`, near)
		}
		return nil, err
	}
	if len(args) > 0 && c.args == "" {
		return nil, diag.New(diag.Syntax, diag.Pos{}, "%s takes no argument, not %q", name, args[0])
	}
	return c, nil
}

// command runs a command. Like line it returns errQuit or nil.
func (s *Shell) command(ctx context.Context, name string, args []string) error {
	c, err := lookup(name, args)
	if err == nil {
		err = c.run(s, ctx, strings.ToLower(name), args)
	}
	if err == errQuit {
		return err
	}
	if err != nil && err != errShown {
		s.fail(err, "", "")
	}
	return nil
}

var errShown = errors.New("shown")

func (s *Shell) help(context.Context, string, []string) error {
	var sb strings.Builder
	for _, c := range commands() {
		left := strings.Join(c.names, " ") + " " + c.args
		fmt.Fprintf(&sb, "  %-34s %s\n", strings.TrimSpace(left), c.doc)
	}
	sb.WriteString("  Statements end with \";\". Ctrl-C stops a query or gives up the line, Ctrl-D leaves, Tab completes.\n")
	_, err := fmt.Fprint(s.Out, sb.String())
	return err
}

func (s *Shell) quit(context.Context, string, []string) error { return errQuit }

func (s *Shell) clear(context.Context, string, []string) error {
	_, err := fmt.Fprint(s.Out, "\x1b[H\x1b[2J")
	return err
}

// toggle reads on or off, or turns a switch over.
func toggle(v *bool, args []string) error {
	switch {
	case len(args) == 0:
		*v = !*v
	case strings.EqualFold(args[0], "on"):
		*v = true
	case strings.EqualFold(args[0], "off"):
		*v = false
	default:
		return diag.New(diag.Config, diag.Pos{}, "%q is neither on nor off", args[0])
	}
	return nil
}

func onOff(v bool) string {
	if v {
		return "on"
	}
	return "off"
}

func (s *Shell) setTiming(_ context.Context, _ string, args []string) error {
	err := toggle(&s.timing, args)
	if err == nil {
		fmt.Fprintln(s.Out, "timing is "+onOff(s.timing))
	}
	return err
}

func (s *Shell) setExpanded(_ context.Context, _ string, args []string) error {
	err := toggle(&s.Printer.Expanded, args)
	if err == nil {
		fmt.Fprintln(s.Out, "expanded display is "+onOff(s.Printer.Expanded))
	}
	return err
}

func (s *Shell) setMode(_ context.Context, _ string, args []string) error {
	for _, a := range args {
		switch strings.ToLower(a) {
		case "changelog":
			s.Printer.Mode = Changelog
		case "final":
			s.Printer.Mode = FinalTable
		default:
			f, err := ParseFormat(a)
			if err != nil {
				return diag.New(diag.Config, diag.Pos{}, "unknown mode %q", a).WithHint("formats are table, csv, json and markdown; of a query, changelog or final is shown")
			}
			s.Printer.Format = f
		}
	}
	shown := "the final rows"
	if s.Printer.Mode == Changelog {
		shown = "all changes"
	}
	_, err := fmt.Fprintf(s.Out, "rows are written as %s; of a bounded query %s are shown\n", s.Printer.Format, shown)
	return err
}

func (s *Shell) setOutput(_ context.Context, _ string, args []string) error {
	if s.out != nil {
		err := s.out.Close()
		s.out = nil
		if err != nil {
			return err
		}
	}
	if len(args) == 0 {
		return nil
	}
	f, err := os.Create(args[0])
	if err != nil {
		return err
	}
	s.out = f
	return nil
}

func (s *Shell) setting(ctx context.Context, _ string, args []string) error {
	if len(args) == 0 {
		return s.sql(ctx, "SET")
	}
	if len(args) == 1 {
		fmt.Fprintf(s.Out, "'%s' = '%s'\n", args[0], s.Engine.Setting(args[0]))
		return nil
	}
	return s.sql(ctx, "SET "+quote(args[0])+" = "+quote(strings.Join(args[1:], " ")))
}

func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (s *Shell) restoreHelp(context.Context, string, []string) error {
	_, err := fmt.Fprint(s.Out, "Leaving the shell stops its jobs with a final checkpoint. The same INSERT, executed in a later shell on the\n"+
		"same state directory, goes on from there; streamsql --restore none starts it afresh, --restore PATH from a\n"+
		"savepoint, as does SET 'execution.state-recovery.path' = '…'.\n")
	return err
}

// include runs the lines of a file as if they were typed; the first error ends it.
func (s *Shell) include(ctx context.Context, _ string, args []string) error {
	if len(args) != 1 {
		return diag.New(diag.Syntax, diag.Pos{}, `\i takes one file`)
	}
	if s.depth >= 16 {
		return diag.New(diag.Config, diag.Pos{}, `%s: files that run files, 16 deep`, args[0]).WithHint("does the file run itself?")
	}
	b, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	s.depth++
	defer func() { s.depth-- }()
	return s.text(ctx, args[0], string(b))
}

// text runs a file: statements, and commands at the start of a line between them.
func (s *Shell) text(ctx context.Context, name, text string) error {
	pending, skipped := "", 0 // statement so far, and the lines before it
	for i, line := range strings.Split(text, "\n") {
		if strings.TrimSpace(pending) == "" {
			if c, args, ok := parseCommand(line); ok {
				if err := s.command(ctx, c, args); err != nil {
					return err
				}
				pending, skipped = "", i+1
				continue
			}
		}
		pending += line + "\n"
		if streamsql.Complete(pending) {
			// The blank lines make positions those of the file.
			if err := s.statements(ctx, strings.Repeat("\n", skipped)+pending, name); err != nil {
				return errShown
			}
			pending, skipped = "", i+1
		}
	}
	if strings.TrimSpace(pending) != "" && s.statements(ctx, strings.Repeat("\n", skipped)+pending, name) != nil {
		return errShown
	}
	return nil
}

// sql executes a statement of the shell's own and shows its result.
func (s *Shell) sql(ctx context.Context, text string) error {
	res, err := s.Engine.Exec(ctx, text)
	if err != nil {
		var d *diag.Error
		if errors.As(err, &d) {
			d.Pos = diag.Pos{} // of a text the user did not write
		}
		return err
	}
	return s.show(ctx, res)
}
