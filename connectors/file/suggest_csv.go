package file

import (
	"bytes"
	"encoding/csv"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// sketchCSV guesses the columns of a csv file: nil when there is nothing in it.
func sketchCSV(text []byte, tabs bool) (columns []column, options []string) {
	first, _, _ := bytes.Cut(text, []byte("\n"))
	delim := ','
	if tabs {
		delim = '\t'
	} else {
		for _, d := range []string{";", "\t", "|"} {
			if bytes.Count(first, []byte(d)) > bytes.Count(first, []byte(string(delim))) {
				delim = rune(d[0])
			}
		}
	}
	r := csv.NewReader(bytes.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord = delim, true, -1
	rows, _ := r.ReadAll() // what could be read before an error is enough
	if len(rows) == 0 {
		return nil, nil
	}
	header := isHeader(rows)
	data, blanks := rows, false
	if header {
		data = rows[1:]
	}
	for i, cell := range rows[0] {
		c := column{name: fmt.Sprintf("c%d", i+1), typ: "STRING"}
		if header {
			c.name = strings.TrimSpace(cell)
		}
		blank := false
		c.typ, blank = cellsType(data, i)
		blanks = blanks || blank && c.typ != "STRING"
		columns = append(columns, c)
	}
	options = []string{"'format' = 'csv'"}
	switch delim {
	case ',':
	case '\t':
		options = append(options, `'csv.field-delimiter' = '\t'`)
	default:
		options = append(options, "'csv.field-delimiter' = '"+string(delim)+"'")
	}
	if header {
		options = append(options, "'"+headerKey+"' = 'true'")
	}
	if blanks {
		options = append(options, "'csv.null-literal' = ''")
	}
	return columns, options
}

// isHeader reports that the first row holds names: all different, none empty or a value, and either another row has values
// in some column, or all of them look like identifiers.
func isHeader(rows [][]string) bool {
	seen := map[string]bool{}
	identifiers := true
	for _, c := range rows[0] {
		c = strings.TrimSpace(c)
		if c == "" || seen[c] || cellType(c) != "STRING" {
			return false
		}
		seen[c] = true
		identifiers = identifiers && plainName.MatchString(c) && strings.ToLower(c) == c
	}
	for i := range rows[0] {
		if t, _ := cellsType(rows[1:], i); t != "STRING" {
			return true
		}
	}
	return identifiers
}

// cellsType is the narrowest type of all cells of a column, and whether some are empty.
func cellsType(rows [][]string, i int) (typ string, blank bool) {
	for _, r := range rows {
		if i >= len(r) {
			continue
		}
		if r[i] == "" {
			blank = true
			continue
		}
		typ = merged(typ, cellType(r[i]))
	}
	if typ == "" {
		return "STRING", blank
	}
	return typ, blank
}

// merged is the type that holds values of both; "" holds none.
func merged(a, b string) string {
	switch {
	case a == "" || a == b:
		return b
	case b == "":
		return a
	case a == "BIGINT" && b == "DOUBLE", a == "DOUBLE" && b == "BIGINT":
		return "DOUBLE"
	}
	return "STRING"
}

var (
	numberCell = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$`) // no 007: that is a code
	dateCell   = regexp.MustCompile(`^\d{4}-\d\d-\d\d$`)
	timeCell   = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(\.\d{1,9})?$`)
)

// cellType is the type that one text could be a value of.
func cellType(c string) string {
	switch {
	case numberCell.MatchString(c):
		if _, err := strconv.ParseInt(c, 10, 64); err == nil {
			return "BIGINT"
		}
		return "DOUBLE"
	case c == "true" || c == "false":
		return "BOOLEAN"
	case dateCell.MatchString(c):
		return "DATE"
	case timeCell.MatchString(c):
		return "TIMESTAMP(3)"
	}
	return "STRING"
}
