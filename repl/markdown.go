package repl

import (
	"io"
	"strings"

	"github.com/streamsql/streamsql"
)

// markdownWriter writes a table of Markdown, row by row.
type markdownWriter struct {
	out       io.Writer
	changelog bool
}

// markdownCell keeps a text in its cell.
var markdownCell = strings.NewReplacer("|", `\|`, "\n", "<br>")

func (w *markdownWriter) line(cells []string) error {
	var sb strings.Builder
	for _, c := range cells {
		sb.WriteString("| " + markdownCell.Replace(escape(strings.ReplaceAll(c, "\r\n", "\n"), "\n\t")) + " ")
	}
	_, err := io.WriteString(w.out, sb.String()+"|\n")
	return err
}

func (w *markdownWriter) header(names []string) {
	if w.changelog {
		names = append([]string{"op"}, names...)
	}
	_ = w.line(names) // the first row's error is the same
	_, _ = io.WriteString(w.out, strings.Repeat("|---", len(names))+"|\n")
}

func (w *markdownWriter) row(c streamsql.Change) error {
	cells := cells(c.Row, "")
	if w.changelog {
		cells = append([]string{c.Kind.String()}, cells...)
	}
	return w.line(cells)
}

func (w *markdownWriter) end(ending) error { return nil }
