package file

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors/format"
	"github.com/streamsql/streamsql/sql/diag"
)

// headerKey says that the first line of every file holds the names of the columns. It stands beside csv's own options,
// but only files have a first line.
const headerKey = "csv.header"

// resolveHeader reads headerKey.
func (c *config) resolveHeader() error {
	if c.header = c.v.Bool(headerKey); c.header && c.fm.Value.Name != "csv" {
		return c.v.Errorf(headerKey, "format '%s' has no header", c.fm.Value.Name).WithHint("remove the option")
	}
	return nil
}

// delimiter is what separates the fields of a csv file.
func (c *config) delimiter() rune {
	r, _ := format.CSVDelimiter(c.v.Sub(c.fm.ValuePrefix))
	return r
}

// checkHeader refuses a first line that has names of the table's columns in other places: fields are read by position,
// so that values would come into the wrong columns. Other names than the table's are the user's choice.
func (c *config) checkHeader(line []byte) (why string) {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(line, []byte("\ufeff"))))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = c.delimiter(), true, -1
	names, err := r.Read()
	if err != nil {
		return ""
	}
	columns := c.body.Names()
	for i, n := range names {
		n = strings.TrimSpace(n)
		at := slices.IndexFunc(columns, func(have string) bool { return strings.EqualFold(have, n) })
		if at >= 0 && at != i {
			return fmt.Sprintf("the header has %s in place %d, the table in place %d: fields are read by position", n, i+1, at+1)
		}
	}
	return ""
}

// headerLine is the first line of a file to write.
func (c *config) headerLine() []byte {
	var sb bytes.Buffer
	w := csv.NewWriter(&sb)
	w.Comma = c.delimiter()
	_ = w.Write(c.body.Names()) // into memory
	w.Flush()
	return sb.Bytes()
}

// skipHeader takes the first line of f, which is in r.msgs, and returns its bytes with its end.
func (r *reader) skipHeader(f *file) (int, error) {
	if why := r.s.checkHeader(r.msgs[0]); why != "" {
		return 0, diag.New(diag.Data, diag.Pos{}, "table %s: file %s, line 1: %s", r.s.t.Name, f.name, why).
			WithHint("declare the columns in the order of the file; a SELECT can put them into another")
	}
	n := bytes.IndexByte(f.data, '\n') + 1
	if n == 0 {
		n = len(f.data)
	}
	f.consume(n, 1)
	r.msgs = r.msgs[1:]
	return n, nil
}
