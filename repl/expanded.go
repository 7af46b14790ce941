package repl

import (
	"io"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/types"
)

// expandedTable writes every row as a block, one line a column: for rows wider than the terminal.
type expandedTable struct {
	out       io.Writer
	schema    *types.Schema
	changelog bool
	query     bool
	n         int
}

func (t *expandedTable) row(c streamsql.Change) error {
	t.n++
	null := nullCell
	if !t.query {
		null = ""
	}
	names, values := t.schema.Names(), cells(c.Row, null)
	if t.changelog {
		names, values = append([]string{"op"}, names...), append([]string{c.Kind.String()}, values...)
	}
	escapeAll(names, "")
	escapeAll(values, "\n")
	width := 0
	for _, n := range names {
		width = max(width, displayWidth(n))
	}
	var sb strings.Builder
	head := "-[ RECORD " + strconv.Itoa(t.n) + " ]-"
	sb.WriteString(head + strings.Repeat("-", max(0, width+3-len(head))) + "\n")
	margin := "\n" + strings.Repeat(" ", width) + " | "
	for i, n := range names {
		sb.WriteString(n + strings.Repeat(" ", width-displayWidth(n)) + " | ")
		sb.WriteString(strings.ReplaceAll(values[i], "\n", margin) + "\n")
	}
	_, err := io.WriteString(t.out, sb.String())
	return err
}

func (t *expandedTable) end(e ending) error {
	text := inSet(e)
	if t.changelog {
		text = received(e)
	}
	_, err := io.WriteString(t.out, text+"\n")
	return err
}
