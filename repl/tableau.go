package repl

import (
	"bytes"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/types"
)

// The tables are Flink's tableau: right-aligned cells between borders, kinds in a first column while rows stream.

const nullCell = "<NULL>"

// streamTable writes rows as they come; widths are settled by the types.
type streamTable struct {
	out    io.Writer
	widths []int
	n      int
}

func newStreamTable(out io.Writer, s *types.Schema, maxWidth int) *streamTable {
	t := &streamTable{out: out, widths: []int{2}}
	head := []string{"op"}
	for _, c := range s.Columns {
		w := max(typeWidth(c.Type, maxWidth), displayWidth(c.Name), len(nullCell))
		t.widths = append(t.widths, min(w, max(maxWidth, len(nullCell))))
		head = append(head, c.Name)
	}
	t.write(border(t.widths) + line(head, t.widths) + border(t.widths))
	return t
}

func (t *streamTable) write(s string) error {
	_, err := io.WriteString(t.out, s)
	return err
}

// typeWidth is the width Flink reserves for a type.
func typeWidth(t types.Type, maxWidth int) int {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Boolean:
		return 6
	case types.Int:
		return 11
	case types.BigInt:
		return 20
	case types.Decimal:
		return t.Precision + 2
	case types.Date:
		return 10
	case types.Time:
		if t.Precision == 0 {
			return 8
		}
		return 9 + t.Precision
	case types.Timestamp, types.TimestampLTZ:
		return [...]int{19, 23, 23, 23, 26, 26, 26, 29, 29, 29}[t.Precision]
	}
	return maxWidth
}

func (t *streamTable) row(c streamsql.Change) error {
	t.n++
	return t.write(line(append([]string{c.Kind.String()}, cells(c.Row, nullCell)...), t.widths))
}

func (t *streamTable) end(interrupted bool) error {
	tail := ""
	if t.n > 0 {
		tail = border(t.widths)
	}
	if interrupted {
		return t.write(tail + "Query terminated, received a total of " + plural(t.n) + "\n")
	}
	return t.write(tail + "Received a total of " + plural(t.n) + "\n")
}

// batchTable writes a finished table; widths are those of the content.
type batchTable struct {
	out    io.Writer
	schema *types.Schema
	max    int
	query  bool
	rows   [][]string
}

func (t *batchTable) row(c streamsql.Change) error {
	null := nullCell
	if !t.query {
		null = ""
	}
	t.rows = append(t.rows, cells(c.Row, null))
	return nil
}

func (t *batchTable) end(bool) error {
	var out bytes.Buffer
	if len(t.rows) == 0 {
		_, err := io.WriteString(t.out, "Empty set\n")
		return err
	}
	if len(t.rows) == 1 && t.schema.Len() == 1 && strings.Contains(t.rows[0][0], "\n") {
		// A text of several lines (EXPLAIN, SHOW CREATE) is for reading and copying, not for a frame.
		_, err := io.WriteString(t.out, strings.TrimRight(t.rows[0][0], "\n")+"\n")
		return err
	}
	widths := make([]int, t.schema.Len())
	for i, n := range t.schema.Names() {
		widths[i] = displayWidth(n)
		for _, r := range t.rows {
			widths[i] = max(widths[i], displayWidth(r[i]))
		}
		widths[i] = min(widths[i], max(t.max, displayWidth(n)))
	}
	out.WriteString(border(widths) + line(t.schema.Names(), widths) + border(widths))
	for _, r := range t.rows {
		out.WriteString(line(r, widths))
	}
	out.WriteString(border(widths) + plural(len(t.rows)) + " in set\n")
	_, err := t.out.Write(out.Bytes())
	return err
}

func cells(r streamsql.Row, null string) []string {
	out := make([]string, r.Len())
	for i := range out {
		text, isNull := r.Display(i)
		if isNull {
			text = null
		}
		out[i] = text
	}
	return out
}

func border(widths []int) string {
	var sb strings.Builder
	for _, w := range widths {
		sb.WriteByte('+')
		sb.WriteString(strings.Repeat("-", w+2))
	}
	sb.WriteString("+\n")
	return sb.String()
}

func line(cells []string, widths []int) string {
	var sb strings.Builder
	for i, c := range cells {
		sb.WriteString("| ")
		sb.WriteString(fit(c, widths[i]))
		sb.WriteByte(' ')
	}
	sb.WriteString("|\n")
	return sb.String()
}

// fit pads c on the left to width, or cuts it to width with "..." at its end.
func fit(c string, width int) string {
	w := displayWidth(c)
	if w <= width {
		return strings.Repeat(" ", width-w) + c
	}
	var sb strings.Builder
	used := 0
	for _, r := range c {
		n := runeWidth(r)
		if used+n > width-3 {
			break
		}
		sb.WriteRune(r)
		used += n
	}
	return strings.Repeat(" ", width-3-used) + sb.String() + "..."
}

func displayWidth(s string) int {
	if len(s) == utf8.RuneCountInString(s) {
		return len(s)
	}
	w := 0
	for _, r := range s {
		w += runeWidth(r)
	}
	return w
}

// runeWidth is 2 for East Asian wide characters (the blocks of Unicode's EastAsianWidth W and F that occur in text).
func runeWidth(r rune) int {
	switch {
	case r >= 0x1100 && r <= 0x115f, r >= 0x2e80 && r <= 0xa4cf, r >= 0xac00 && r <= 0xd7a3, r >= 0xf900 && r <= 0xfaff,
		r >= 0xfe30 && r <= 0xfe6f, r >= 0xff00 && r <= 0xff60, r >= 0xffe0 && r <= 0xffe6, r >= 0x1f300 && r <= 0x1f64f,
		r >= 0x1f900 && r <= 0x1f9ff, r >= 0x20000 && r <= 0x3fffd:
		return 2
	}
	return 1
}
