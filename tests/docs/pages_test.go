package docs

// Goal: every example of docs/sql, and of docs/explain.md, does what its page says. Method: the ```sql blocks of a page are one script, run from
// top to bottom in one engine in a fresh folder; the ```text block behind a block is what it prints. A block that
// prints something and has no result behind it is an error, as is a fence of another kind that looks like SQL:
// ```sql-syntax is for what cannot run. -rewrite records the results.

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/repl"
	"github.com/streamsql/streamsql/sql/diag"
)

var rewrite = flag.Bool("rewrite", false, "record what the examples print")

const folder = "../../docs/sql"

// piece is a part of a page: text, or a fenced block with its info word.
type piece struct {
	line   int // of its first line, from 1
	fenced bool
	info   string // of a fenced piece
	body   string // without the fences; lines end with \n
}

func (p piece) String() string {
	if !p.fenced {
		return p.body
	}
	return "```" + p.info + "\n" + p.body + "```\n"
}

// split cuts a page into its pieces; joined again they are the page.
func split(page string) ([]piece, error) {
	var out []piece
	cur := piece{line: 1}
	for i, l := range strings.SplitAfter(page, "\n") {
		info, fence := strings.CutPrefix(strings.TrimSuffix(l, "\n"), "```")
		switch {
		case fence && !cur.fenced:
			out = append(out, cur)
			cur = piece{line: i + 1, fenced: true, info: info}
		case fence:
			if info != "" {
				return nil, fmt.Errorf("line %d: a block opens before the one of line %d is closed", i+1, cur.line)
			}
			out = append(out, cur)
			cur = piece{line: i + 2}
		default:
			cur.body += l
		}
	}
	if cur.fenced {
		return nil, fmt.Errorf("the block of line %d is never closed", cur.line)
	}
	return append(out, cur), nil
}

// result is the index of the piece that holds what piece i prints, or -1.
func result(ps []piece, i int) int {
	for j := i + 1; j < len(ps); j++ {
		switch {
		case !ps[j].fenced && strings.TrimSpace(ps[j].body) == "":
		case ps[j].fenced && (ps[j].info == "text" || ps[j].info == ""):
			return j
		default:
			return -1
		}
	}
	return -1
}

func TestPages(t *testing.T) {
	files, err := filepath.Glob(folder + "/*.md")
	if err != nil || len(files) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	root, err := filepath.Abs(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := filepath.Base(f)
		t.Run(name, func(t *testing.T) { runPage(t, filepath.Join(root, name)) })
	}
	for _, name := range []string{"explain.md"} { // beside the folder
		t.Run(name, func(t *testing.T) { runPage(t, filepath.Join(filepath.Dir(root), name)) })
	}
}

func runPage(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	ps, err := split(string(text))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	ctx, stop := context.WithTimeout(t.Context(), 5*time.Minute) // a hang, also on a loaded machine
	defer stop()
	s := newScript(t)
	var page []piece
	for i := 0; i < len(ps); i++ {
		p := ps[i]
		page = append(page, p)
		if !p.fenced || p.info != "sql" {
			if p.fenced && strings.Contains(p.info, "sql") && p.info != "sql-syntax" {
				t.Errorf("line %d: a block %q is not run: write sql, or sql-syntax for what cannot run", p.line, p.info)
			}
			continue
		}
		got, want := s.run(ctx, p.body), ""
		at := result(ps, i)
		if at >= 0 {
			want = ps[at].body
		}
		switch {
		case got == want || !ordered.MatchString(p.body) && anyOrder(got) == anyOrder(want):
		case *rewrite && at >= 0:
			ps[at].body, ps[at].info = got, "text"
		case *rewrite:
			page = append(page, piece{fenced: true, info: "text", body: got})
		default:
			t.Errorf("line %d: the example prints\n%s\nthe page says\n%s\nrecord it: go test ./tests/docs -run Pages -rewrite", p.line, got, want)
		}
	}
	if !*rewrite {
		return
	}
	var out strings.Builder
	for _, p := range page {
		out.WriteString(p.String())
	}
	if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ordered are blocks whose rows have an order to compare. Without ORDER BY, which of two tables is read first decides.
var ordered = regexp.MustCompile(`(?i)\bORDER\s+BY\b`)

// anyOrder sorts the rows of each table of a result, except those of changelogs.
func anyOrder(text string) string {
	lines := strings.Split(text, "\n")
	for i := 0; i < len(lines); i++ {
		j := i
		for j < len(lines) && strings.HasPrefix(lines[j], "| ") {
			j++
		}
		if j > i && i > 1 && strings.HasPrefix(lines[i-1], "+--") && strings.HasPrefix(lines[i-2], "| ") && !strings.HasPrefix(lines[i-2], "| op |") {
			slices.Sort(lines[i:j])
		}
		i = max(i, j-1)
	}
	return strings.Join(lines, "\n")
}

// script is the session of a page.
type script struct {
	out    bytes.Buffer
	runner *repl.Runner
}

func newScript(t *testing.T) *script {
	s := &script{}
	eng, err := streamsql.Open("", &streamsql.Options{
		Connectors: streamsql.DefaultConnectors(&s.out),
		Settings:   map[string]string{"parallelism.default": "1", "table.local-time-zone": "UTC", "pipeline.auto-watermark-interval": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := eng.Close(); err != nil {
			t.Error(err)
		}
	})
	s.runner = &repl.Runner{Engine: eng, Printer: &repl.Printer{Out: &s.out, Format: repl.Table, Mode: repl.FinalTable}}
	return s
}

// run runs a block and returns what it prints, with the error that ended it as the program shows it.
func (s *script) run(ctx context.Context, text string) string {
	s.out.Reset()
	if err := s.runner.Run(ctx, text); err != nil {
		io.WriteString(&s.out, strings.TrimRight(diag.Render(err, "", text), "\n")+"\n")
	}
	return trailing.ReplaceAllString(s.out.String(), "")
}

var trailing = regexp.MustCompile(`(?m)[ \t]+$`)

// TestAnyOrder: the rows of a table have no order, its header, other lines and changelogs have one.
func TestAnyOrder(t *testing.T) {
	const a = "+--+\n| x|\n| b |\n+--+\n| 2 |\n| 1 |\n+--+\n2 rows\n+----+---+\n| op | k |\n+----+---+\n| +I | 2 |\n| +I | 1 |\n+----+---+\n"
	want := strings.Replace(a, "| 2 |\n| 1 |\n+--+", "| 1 |\n| 2 |\n+--+", 1)
	if got := anyOrder(a); got != want {
		t.Errorf("got %q", got)
	}
}

// TestSplit: what is written back is the page, and broken fences are told.
func TestSplit(t *testing.T) {
	const page = "a\n```sql\nSELECT 1;\n```\n\n```text\n1\n```\nb ``` c\n```\nx\n```\n"
	ps, err := split(page)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, p := range ps {
		out.WriteString(p.String())
	}
	if out.String() != page {
		t.Errorf("joined again: %q", out.String())
	}
	if ps[1].info != "sql" || ps[1].line != 2 || result(ps, 1) != 3 {
		t.Errorf("pieces %+v", ps)
	}
	for _, bad := range []string{"```sql\nSELECT 1;\n", "```sql\n```text\n"} {
		if _, err := split(bad); err == nil {
			t.Errorf("split(%q) succeeded", bad)
		}
	}
}
