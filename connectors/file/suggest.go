package file

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/streamsql/streamsql/sql"
)

// sampleSize bounds what Suggest reads of a file.
const sampleSize = 256 << 10

// column is a column of a table to suggest.
type column struct{ name, typ string }

var plainName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// Suggest looks at a file on this machine and writes the CREATE TABLE that reads it, with columns guessed from its first
// lines, and a query of it: something for a person to copy and correct. When the file cannot be read or is in a format
// that streamsql does not have, it says so instead.
func Suggest(path string) string {
	var columns []column
	var options []string
	switch ext := strings.ToLower(strings.TrimPrefix(filepath.Ext(path), ".")); ext {
	case "parquet", "orc", "avro":
		return fmt.Sprintf("format '%s' is not supported: write the data as csv or as JSON, one object a line, and use that file", ext)
	default:
		text, err := sample(path)
		if err != nil {
			return fmt.Sprintf("%s; %s", err, general(path))
		}
		if first := bytes.TrimSpace(text); ext == "json" || ext == "jsonl" || ext == "ndjson" || bytes.HasPrefix(first, []byte("{")) {
			if columns, options = sketchJSON(text); columns == nil {
				return "the file is not JSON with one object a line, which format 'json' reads: jq -c '.[]' makes that of an array; " + general(path)
			}
		} else if columns, options = sketchCSV(text, ext == "tsv"); columns == nil {
			return general(path)
		}
	}
	name := tableName(path)
	var sb strings.Builder
	fmt.Fprintf(&sb, "create a table over the file (look the guessed types through), then use its name:\nCREATE TABLE %s (", name)
	for i, c := range columns {
		if i > 0 {
			sb.WriteString(", ")
		}
		sb.WriteString(quoted(c.name) + " " + c.typ)
	}
	fmt.Fprintf(&sb, ")\nWITH ('connector' = 'filesystem', 'path' = %s, %s);\nSELECT * FROM %s;", sql.QuoteString(path), strings.Join(options, ", "), name)
	return sb.String()
}

func general(path string) string {
	return "CREATE TABLE " + tableName(path) + " (...) WITH ('connector' = 'filesystem', 'path' = " + sql.QuoteString(path) + ", 'format' = '...'), then use the name"
}

// tableName is the file's name without folders and ending.
func tableName(path string) string {
	base := filepath.Base(path)
	if n := strings.IndexByte(base, '.'); n > 0 {
		base = base[:n]
	}
	return quoted(base)
}

// quoted is a name as SQL takes it, in backticks if it needs them.
func quoted(name string) string {
	if plainName.MatchString(name) && !sql.IsReserved(name) {
		return name
	}
	return sql.QuoteIdent(name)
}

// sample is the beginning of a file, up to the end of a line.
func sample(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, sampleSize))
	if err != nil {
		return nil, err
	}
	if len(text) == sampleSize {
		text = text[:bytes.LastIndexByte(text, '\n')+1]
	}
	return bytes.TrimPrefix(text, []byte("\ufeff")), nil
}
