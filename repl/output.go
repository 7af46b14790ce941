package repl

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Format is how rows are written.
type Format string

// The formats.
const (
	// Table is Flink's tableau; control characters are escaped (\n, \t, \u001b).
	Table Format = "table"
	CSV   Format = "csv"  // RFC 4180 with a header line; NULL is nothing and '' is "", BYTES are x'00ff'
	JSON  Format = "json" // one object a line
	// Markdown is a table of Markdown; NULL is empty.
	Markdown Format = "markdown"
)

// ResultMode is what is shown of a query.
type ResultMode string

// The modes.
const (
	FinalTable ResultMode = "table"     // the rows there are when a bounded query has ended
	Changelog  ResultMode = "changelog" // every change as it comes, with its kind
)

const defaultMaxWidth = 30

// ParseFormat checks the name of a format.
func ParseFormat(s string) (Format, error) {
	switch f := Format(strings.ToLower(s)); f {
	case Table, CSV, JSON, Markdown:
		return f, nil
	}
	return "", diag.New(diag.Config, diag.Pos{}, "unknown output format %q", s).WithHint("use table, csv, json or markdown")
}

// ParseResultMode checks the name of a result mode.
func ParseResultMode(s string) (ResultMode, error) {
	switch m := ResultMode(strings.ToLower(s)); m {
	case FinalTable, Changelog:
		return m, nil
	case "tableau":
		return Changelog, nil // Flink's name
	}
	return "", diag.New(diag.Config, diag.Pos{}, "unknown result mode %q", s).WithHint("use table or changelog")
}

// Printer writes results to Out.
type Printer struct {
	Out    io.Writer
	Format Format
	Mode   ResultMode
	// MaxWidth is the widest a variable-size column of a table may be (table.display.max-column-width); 0 = 30.
	MaxWidth int
	// Expanded shows each row of a table as a block of lines, one a column.
	Expanded bool
	// Timing ends a table with the time it took.
	Timing bool
}

// under is the printer of one result, with what the session's settings say about results.
func (p Printer) under(e *streamsql.Engine, res *streamsql.Result) *Printer {
	if !res.IsQuery() {
		return &p
	}
	if m, err := ParseResultMode(e.Setting("sql-client.execution.result-mode")); err == nil && m == Changelog {
		p.Mode = m
	}
	if w := atoi(e.Setting("table.display.max-column-width")); w > 0 && p.MaxWidth == 0 {
		p.MaxWidth = w
	}
	return &p
}

// rowWriter writes the rows of one result in one format.
type rowWriter interface {
	// row writes one row; the kind is written in changelog mode only.
	row(c streamsql.Change) error
	// end finishes the output.
	end(e ending) error
}

// ending is how a result ended.
type ending struct {
	rows        int
	interrupted bool   // the user stopped the query
	cost        string // " (1.23 seconds)", or ""
}

// Print writes all rows of a result and returns how many. Rows of the engine itself (SHOW, DESCRIBE, …) and final
// tables have no kinds. A query that never ends by itself has no final table: its changes are written instead. When
// ctx is done the query is stopped and its output ended; that is no error.
func (p *Printer) Print(ctx context.Context, res *streamsql.Result) (n int, err error) {
	if res.IsQuery() {
		defer context.AfterFunc(ctx, res.Job.Cancel)()
	}
	out := &rowBuffer{out: p.Out}
	start := time.Now()
	changelog := res.IsQuery() && (p.Mode == Changelog || !res.Bounded)
	w := p.writer(out, res, changelog)
	if !res.IsQuery() || changelog {
		n, err = each(ctx, res, w.row)
	} else {
		n, err = printFinal(ctx, res, w)
	}
	if err == nil {
		e := ending{rows: n, interrupted: ctx.Err() != nil}
		if p.Timing {
			e.cost = fmt.Sprintf(" (%.2f seconds)", time.Since(start).Seconds())
		}
		err = w.end(e)
	}
	return n, errors.Join(err, out.Flush())
}

// each gives do every row until ctx is done.
func each(ctx context.Context, res *streamsql.Result, do func(streamsql.Change) error) (n int, err error) {
	for c, err := range res.Rows() {
		if ctx.Err() != nil && (err == nil || errors.Is(err, context.Canceled)) {
			return n, nil
		}
		if err == nil {
			err = do(c)
		}
		if err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

// printFinal writes the rows there are when a bounded query has ended; none when it was interrupted before that.
func printFinal(ctx context.Context, res *streamsql.Result, w rowWriter) (n int, err error) {
	t := newFinalTable()
	changes, err := each(ctx, res, func(c streamsql.Change) error { t.apply(c); return nil })
	if err != nil || ctx.Err() != nil {
		return changes, err
	}
	for _, c := range t.rows() {
		if err := w.row(c); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (p *Printer) writer(out io.Writer, res *streamsql.Result, changelog bool) rowWriter {
	switch p.Format {
	case JSON:
		return &jsonWriter{out: out, changelog: changelog}
	case Markdown:
		w := &markdownWriter{out: out, changelog: changelog}
		w.header(res.Schema.Names())
		return w
	case CSV:
		w := &csvWriter{w: bufio.NewWriter(out), changelog: changelog}
		w.header(res.Schema)
		return w
	}
	width := p.MaxWidth
	if width <= 0 {
		width = defaultMaxWidth
	}
	switch {
	case p.Expanded:
		return &expandedTable{out: out, schema: res.Schema, changelog: changelog, query: res.IsQuery()}
	case changelog:
		return newStreamTable(out, res.Schema, width)
	case !res.IsQuery():
		width = math.MaxInt
	}
	return &batchTable{out: out, names: res.Schema.Names(), max: width, query: res.IsQuery()}
}

// finalTable is the table a changelog describes: equal rows are counted, order is that of arrival.
type finalTable struct {
	index map[string][]int // encoded row → positions in list
	list  []streamsql.Change
	gone  []bool
	key   []byte
}

func newFinalTable() *finalTable { return &finalTable{index: map[string][]int{}} }

func (t *finalTable) apply(c streamsql.Change) {
	t.key = t.key[:0]
	for i, col := range c.Schema().Columns {
		t.key = types.AppendValue(t.key, c.Datum(i), col.Type)
	}
	at := t.index[string(t.key)]
	if !c.Kind.IsRetract() {
		t.index[string(t.key)] = append(at, len(t.list))
		t.list = append(t.list, c)
		t.gone = append(t.gone, false)
		return
	}
	if len(at) > 0 {
		t.gone[at[0]] = true
		if len(at) == 1 {
			delete(t.index, string(t.key))
		} else {
			t.index[string(t.key)] = at[1:]
		}
	}
}

func (t *finalTable) rows() []streamsql.Change {
	out := t.list[:0]
	for i, c := range t.list {
		if !t.gone[i] {
			out = append(out, c)
		}
	}
	return out
}

// csvWriter writes CSV (RFC 4180, lines end with \n). NULL is nothing and ” is "", as in COPY of PostgreSQL and of DuckDB;
// encoding/csv writes nothing for both.
type csvWriter struct {
	w         *bufio.Writer
	changelog bool
	line      []byte
}

func (w *csvWriter) header(s *types.Schema) {
	w.line = w.line[:0]
	if w.changelog {
		w.line = append(w.line, "op,"...)
	}
	for i, name := range s.Names() {
		w.field(i, name)
	}
	_, _ = w.w.Write(append(w.line, '\n')) // the first row's error is the same
}

func (w *csvWriter) row(c streamsql.Change) error {
	w.line = w.line[:0]
	if w.changelog {
		w.line = append(append(w.line, c.Kind.String()...), ',')
	}
	for i := range c.Len() {
		if text, null := c.Display(i); !null {
			w.field(i, text)
		} else if i > 0 {
			w.line = append(w.line, ',')
		}
	}
	if _, err := w.w.Write(append(w.line, '\n')); err != nil {
		return err
	}
	if w.changelog {
		return w.w.Flush() // a slow query is seen as it goes
	}
	return nil
}

// field appends field i, quoted where a reader could take the text for something else.
func (w *csvWriter) field(i int, text string) {
	if i > 0 {
		w.line = append(w.line, ',')
	}
	if text != "" && text != `\.` && text[0] != ' ' && text[0] != '\t' && !strings.ContainsAny(text, ",\"\r\n") {
		w.line = append(w.line, text...)
		return
	}
	w.line = append(w.line, '"')
	w.line = append(w.line, strings.ReplaceAll(text, `"`, `""`)...)
	w.line = append(w.line, '"')
}

func (w *csvWriter) end(ending) error { return w.w.Flush() }

// jsonWriter writes JSON lines.
type jsonWriter struct {
	out       io.Writer
	changelog bool
	buf       []byte
}

func (w *jsonWriter) row(c streamsql.Change) error {
	w.buf = w.buf[:0]
	if w.changelog {
		w.buf = append(append(append(w.buf, `{"op":"`...), c.Kind.String()...), `","row":`...)
	}
	w.buf = appendRowJSON(w.buf, c.Row)
	if w.changelog {
		w.buf = append(w.buf, '}')
	}
	_, err := w.out.Write(append(w.buf, '\n'))
	return err
}

func (w *jsonWriter) end(ending) error { return nil }

func plural(n int) string {
	if n > 1 {
		return strconv.Itoa(n) + " rows"
	}
	return strconv.Itoa(n) + " row"
}
