package repl

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
)

// Goal: every format shows every type as documented. Method: real queries on an engine in memory; the printed text is
// the golden file. Arguments: format=, mode=, expanded, width=.
func TestPrinters(t *testing.T) {
	datadriven.Walk(t, "testdata/print", func(t *testing.T, path string) {
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			eng := open(t)
			var out bytes.Buffer
			p := &Printer{Out: &out, Format: Table, Mode: FinalTable, Expanded: d.HasArg("expanded")}
			d.MaybeScanArgs(t, "format", (*string)(&p.Format))
			d.MaybeScanArgs(t, "mode", (*string)(&p.Mode))
			d.MaybeScanArgs(t, "width", &p.MaxWidth)
			r := &Runner{Engine: eng, Printer: p, Notice: func(n string) { fmt.Fprintln(&out, "notice: "+n) }}
			if err := r.Run(context.Background(), d.Input); err != nil {
				fmt.Fprintln(&out, diag.Render(err, "", d.Input))
			}
			return out.String()
		})
	})
}

func open(t *testing.T) *streamsql.Engine {
	t.Helper()
	eng, err := streamsql.Open("", &streamsql.Options{Settings: map[string]string{"parallelism.default": "1", "table.local-time-zone": "UTC"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	return eng
}

// typed is a terminal that types the lines of a script.
type typed struct {
	lines  []string
	prompt []string
	kept   []string
}

func (t *typed) ReadLine(prompt string) (string, error) {
	t.prompt = append(t.prompt, prompt)
	if len(t.lines) == 0 {
		return "", io.EOF
	}
	l := t.lines[0]
	t.lines = t.lines[1:]
	if l == "^C" {
		return "", errInterrupt
	}
	return l, nil
}

func (t *typed) Remember(s string) { t.kept = append(t.kept, s) }

// Goal: what the shell answers to statements and commands. Method: typed lines, the screen is the golden file.
func TestShell(t *testing.T) {
	datadriven.Walk(t, "testdata/shell", func(t *testing.T, path string) {
		eng := open(t)
		var out bytes.Buffer
		sh := &Shell{Engine: eng, Printer: &Printer{Format: Table, Mode: FinalTable}, Out: &out, Err: &out}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			out.Reset()
			in := &typed{lines: strings.Split(d.Input, "\n")}
			if err := sh.read(context.Background(), in); err != nil {
				t.Fatal(err)
			}
			if d.HasArg("prompts") {
				fmt.Fprintf(&out, "%q\n", in.prompt)
			}
			if d.HasArg("history") {
				fmt.Fprintf(&out, "%q\n", in.kept)
			}
			return out.String()
		})
	})
}

// Goal: completion knows where in a statement it is. Method: "before|" completes at the bar; the answers are golden.
func TestCompletion(t *testing.T) {
	eng := open(t)
	for _, stmt := range []string{
		"CREATE TABLE orders (order_id BIGINT, user_name STRING) WITH ('connector' = 'datagen')",
		"CREATE TABLE outcomes (k STRING) WITH ('connector' = 'blackhole')",
		"CREATE VIEW late AS SELECT order_id AS late_id FROM orders",
	} {
		if _, err := eng.Exec(context.Background(), stmt); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ before, line, want string }{
		{"", "SEL", "ECT "},
		{"", "sel", "ect "},
		{"", "SELECT * FROM o", "rders|utcomes"},
		{"", "SELECT * FROM ", "late|orders|outcomes"},
		{"SELECT *\n", "FROM la", "te "},
		{"", "INSERT INTO outc", "omes "},
		{"SELECT user_name FROM orders\n", "WHERE orde", "r_id|r|rs"},
		{"", "SELECT o.u FROM orders AS o WHERE o.user", "_name "},
		{"", "SELECT x FROM orders o WHERE o.", "order_id|user_name"},
		{"", "SELECT x FROM late WHERE late.", "late_id "},
		{"", "SELECT 'sel", ""},
		{"", "SELECT char_len", "gth("},
		{"", "SELECT CURRENT_DAT", "ABASE(|E"},
		{"", "SELECT order", "_id||s"},
		{"", "SET 'parallelism", ".default' = '"},
		{"", "SET 'table.dml-sync' = 't", "rue'"},
		{"", "RESET 'parallelism", ".default'"},
		{"", `\set execution.runtime-mode b`, "atch "},
		{"CREATE TABLE t (a INT) WITH (\n", "'conn", "ector' = '"},
		{"CREATE TABLE t (a INT) WITH (\n", "'connector' = 'files", "ystem'"},
		{"", "CREATE TABLE t (a INT) WITH ('connector' = 'datagen', 'rows", "-per-second' = '"},
		{"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem', 'format' = 'csv',\n", "'csv.f", "ail-on-missing-columns|ield-delimiter"},
		{"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem',\n", "'scan.on-error' = '", "fail|skip"},
		{"CREATE TABLE t (a INT) WITH ('connector' = 'filesystem',\n", "'format' = 'js", "on'"},
		{"CREATE TABLE t (a INT) WITH ('connector' = 'print', 'connector", "", ""},
		{"", "SELECT ", ""},
		{"", `\tim`, "ing "},
		{"", ".ta", "bles "},
		{"", `\d or`, "ders "},
		{"", `\timing `, "off|on"},
		{"", ".mode c", "hangelog|sv"},
	} {
		rest, _ := complete(eng, c.before, c.line)
		if got := strings.Join(rest, "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.before+c.line, got, c.want)
		}
	}
}

func TestParseCommand(t *testing.T) {
	for _, c := range []struct {
		line, name string
		args       []string
	}{
		{`\d`, `\d`, nil},
		{`  \d orders ;`, `\d`, []string{"orders"}},
		{`\i 'my file.sql'`, `\i`, []string{"my file.sql"}},
		{`.mode csv`, ".mode", []string{"csv"}},
		{"QUIT;", `\q`, nil},
		{"exit", `\q`, nil},
		{"Help", `\?`, nil},
		{"clear ;", `\clear`, nil},
		{"exit now", "", nil},
		{".5", "", nil},
		{"SELECT 1;", "", nil},
		{";", "", nil},
	} {
		name, args, ok := parseCommand(c.line)
		if ok != (c.name != "") || name != c.name || len(args) != len(c.args) || strings.Join(args, "|") != strings.Join(c.args, "|") {
			t.Errorf("%q: %q %q %v", c.line, name, args, ok)
		}
	}
}

// A reader that went away ends a query with its error, and the query with it.
func TestPrintBrokenOutput(t *testing.T) {
	eng := open(t)
	gone := errors.New("gone")
	r := &Runner{Engine: eng, Printer: &Printer{Out: failing{gone}, Format: JSON, Mode: Changelog}}
	err := r.Run(context.Background(), "CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen'); SELECT id FROM g;")
	if !errors.Is(err, gone) {
		t.Errorf("error %v", err)
	}
}

type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 0, f.err }

// An interrupted query ends its output and is no error.
func TestPrintInterrupted(t *testing.T) {
	eng := open(t)
	var out bytes.Buffer
	ctx, cancel := context.WithCancel(context.Background())
	if _, err := eng.Exec(ctx, "CREATE TABLE g (id BIGINT) WITH ('connector' = 'datagen')"); err != nil {
		t.Fatal(err)
	}
	res, err := eng.Exec(ctx, "SELECT id FROM g")
	if err != nil {
		t.Fatal(err)
	}
	p := &Printer{Out: writerFunc(func(b []byte) (int, error) { cancel(); return out.Write(b) }), Format: Table}
	if _, err := p.Print(ctx, res); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "Query terminated, received a total of ") {
		t.Errorf("printed\n%s", out.String())
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(b []byte) (int, error) { return f(b) }
