package repl

import (
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
		name := escape(c.Name, "")
		t.widths = append(t.widths, max(typeWidth(c.Type, maxWidth), displayWidth(name), len(nullCell)))
		head = append(head, name)
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
	return t.write(line(append([]string{c.Kind.String()}, escapeAll(cells(c.Row, nullCell), "")...), t.widths))
}

func (t *streamTable) end(e ending) error {
	tail := ""
	if t.n > 0 {
		tail = border(t.widths)
	}
	return t.write(tail + received(e) + "\n")
}

// received is the last line of a changelog.
func received(e ending) string {
	if e.interrupted {
		return "Query terminated, received a total of " + plural(e.rows) + e.cost
	}
	return "Received a total of " + plural(e.rows) + e.cost
}

// inSet is the last line of a finished table.
func inSet(e ending) string {
	switch {
	case e.interrupted:
		return received(e)
	case e.rows == 0:
		return "Empty set" + e.cost
	}
	return plural(e.rows) + " in set" + e.cost
}

// batchTable writes a finished table; widths are those of the content.
type batchTable struct {
	out   io.Writer
	names []string
	max   int
	query bool
	rows  [][]string
}

func (t *batchTable) row(c streamsql.Change) error {
	null := nullCell
	if !t.query {
		null = ""
	}
	t.rows = append(t.rows, cells(c.Row, null))
	return nil
}

func (t *batchTable) end(e ending) error {
	var sb strings.Builder
	switch {
	case len(t.rows) == 0:
	case !t.query && len(t.rows) == 1 && len(t.names) == 1 && strings.Contains(t.rows[0][0], "\n"):
		// A text of several lines (EXPLAIN, SHOW CREATE) is for reading and copying, not for a frame.
		_, err := io.WriteString(t.out, strings.TrimRight(t.rows[0][0], "\n")+"\n")
		return err
	default:
		escapeAll(t.names, "")
		for _, r := range t.rows {
			escapeAll(r, "")
		}
		appendTable(&sb, t.names, t.rows, t.max)
	}
	sb.WriteString(inSet(e) + "\n")
	_, err := io.WriteString(t.out, sb.String())
	return err
}

// appendTable draws a table as wide as its content, columns at most maxWidth.
func appendTable(sb *strings.Builder, names []string, rows [][]string, maxWidth int) {
	widths := make([]int, len(names))
	for i, n := range names {
		widths[i] = displayWidth(n)
		for _, r := range rows {
			widths[i] = max(widths[i], displayWidth(r[i]))
		}
		widths[i] = min(widths[i], max(maxWidth, len(nullCell)))
	}
	sb.WriteString(border(widths) + line(names, widths) + border(widths))
	for _, r := range rows {
		sb.WriteString(line(r, widths))
	}
	sb.WriteString(border(widths))
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
