package slt

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/streamsql/streamsql"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/sql/types"
)

// tableInfo is what the runner knows of a table.
type tableInfo struct {
	bus   string // name of its feed and queue
	types []types.Type
	texts []string
	key   []int // primary key, when rows are upserts
	// bounded: the table ends with its feed.
	bounded bool
}

// values evaluates SQL expressions: rows of scripts are written in the language they test. Results are shared by all
// modes of a script.
var values = struct {
	sync.Mutex
	eng  *streamsql.Engine
	rows map[string][]types.Datum
}{rows: map[string][]types.Datum{}}

// info describes a table from DESCRIBE and SHOW CREATE TABLE.
func (r *runner) info(table string) *tableInfo {
	if i := r.tables[table]; i != nil {
		return i
	}
	res, err := r.eng.Exec(r.ctx, "DESCRIBE "+table)
	if err != nil {
		r.t.Fatalf("%s: %v", r.at, err)
	}
	i := &tableInfo{bus: table}
	for c, err := range res.Rows() {
		if err != nil {
			r.t.Fatal(err)
		}
		cell := func(k int) string { s, _ := c.Text(k); return s }
		if strings.HasPrefix(cell(4), "AS ") || strings.HasPrefix(cell(4), "METADATA") {
			continue
		}
		if strings.HasPrefix(cell(3), "PRI(") {
			i.key = append(i.key, len(i.texts))
		}
		i.texts = append(i.texts, strings.TrimSuffix(strings.TrimSuffix(cell(1), " *ROWTIME*"), " NOT NULL"))
	}
	create := must(r.eng.Exec(r.ctx, "SHOW CREATE TABLE "+table))
	for c := range create.Rows() {
		text, _ := c.Text(0)
		if !strings.Contains(text, "'changelog' = 'upsert'") {
			i.key = nil
		}
		i.bounded = strings.Contains(text, "'bounded' = 'true'")
		if _, after, ok := strings.Cut(text, "'name' = '"); ok {
			i.bus, _, _ = strings.Cut(after, "'")
		}
	}
	if len(i.texts) > 0 {
		nulls := make([]string, len(i.texts))
		for k, t := range i.texts {
			nulls[k] = "CAST(NULL AS " + t + ")"
		}
		_, i.types = r.evaluate("SELECT " + strings.Join(nulls, ", "))
	}
	r.tables[table] = i
	return i
}

// evaluate runs a bounded SELECT in an engine of its own.
func (r *runner) evaluate(query string) (rows [][]types.Datum, ts []types.Type) {
	values.Lock()
	defer values.Unlock()
	if values.eng == nil {
		values.eng = must(streamsql.Open("", &streamsql.Options{Settings: map[string]string{
			"parallelism.default": "1", "table.local-time-zone": "UTC"}}))
	}
	res, err := values.eng.Exec(r.ctx, query)
	if err != nil {
		r.t.Fatalf("%s: %s: %v", r.at, query, err)
	}
	for c, err := range res.Rows() {
		if err != nil {
			r.t.Fatalf("%s: %s: %v", r.at, query, err)
		}
		row := make([]types.Datum, c.Len())
		for k := range row {
			row[k] = c.Datum(k)
		}
		rows = append(rows, row)
	}
	return rows, res.Schema.Types()
}

// parseRows reads the rows of a feed command.
func (r *runner) parseRows(table, text string) ([]memory.Row, error) {
	info := r.info(table)
	var rows []memory.Row
	for _, line := range strings.Split(text, "\n") {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		k, exprs := kindOf(line)
		cells := splitTop(exprs)
		if len(cells) != len(info.texts) {
			return nil, fmt.Errorf("%q has %d values for %d columns", line, len(cells), len(info.texts))
		}
		for i := range cells {
			cells[i] = "CAST(" + cells[i] + " AS " + info.texts[i] + ")"
		}
		q := "SELECT " + strings.Join(cells, ", ")
		values.Lock()
		row, known := values.rows[q]
		values.Unlock()
		if !known {
			got, _ := r.evaluate(q)
			row = got[0]
			values.Lock()
			values.rows[q] = row
			values.Unlock()
		}
		rows = append(rows, memory.Row{Kind: k, Values: row})
	}
	return rows, nil
}

// splitTop splits at commas outside quotes and brackets.
func splitTop(s string) []string {
	var out []string
	depth, from, quoted := 0, 0, false
	for i, c := range s {
		switch {
		case c == '\'':
			quoted = !quoted
		case quoted:
		case c == '(' || c == '[':
			depth++
		case c == ')' || c == ']':
			depth--
		case c == ',' && depth == 0:
			out = append(out, strings.TrimSpace(s[from:i]))
			from = i + 1
		}
	}
	return append(out, strings.TrimSpace(s[from:]))
}

// sink is what a sink, or a query, was sent.
type sink struct {
	info  *tableInfo
	zone  *time.Location
	seen  int
	log   []string          // changes, in order
	order []string          // rows of +I changes, in order
	count map[string]int    // without key: how many of each row
	byKey map[string]string // with key: the row of each
}

func (r *runner) sink(table string) *sink {
	s := r.sinks[table]
	if s == nil {
		s = &sink{info: r.info(table), zone: time.UTC}
		r.sinks[table] = s
	}
	return s
}

// take applies the rows of a queue that it has not seen, and returns them.
func (s *sink) take(all []memory.Row) []string {
	from := len(s.log)
	for _, row := range all[s.seen:] {
		cells := make([]string, len(row.Values))
		for i, d := range row.Values {
			cells[i] = "NULL"
			if !d.IsNull {
				cells[i] = string(types.AppendDisplay(nil, d, s.info.types[i], s.zone))
			}
		}
		var key []string
		for _, k := range s.info.key {
			key = append(key, cells[k])
		}
		s.apply(row.Kind, strings.Join(cells, ", "), strings.Join(key, ", "))
	}
	s.seen = len(all)
	return s.log[from:]
}

func (s *sink) apply(k types.RowKind, row, key string) {
	s.log = append(s.log, k.String()+"("+row+")")
	add := k == types.Insert || k == types.UpdateAfter
	if add {
		s.order = append(s.order, row)
	}
	if s.info != nil && len(s.info.key) > 0 {
		if s.byKey == nil {
			s.byKey = map[string]string{}
		}
		if add {
			s.byKey[key] = row
		} else {
			delete(s.byKey, key)
		}
		return
	}
	if s.count == nil {
		s.count = map[string]int{}
	}
	if add {
		s.count[row]++
	} else {
		s.count[row]--
	}
}

func (s *sink) appended() bool { return len(s.order) == len(s.log) }

// table is the rows the changes leave, sorted. A row that was taken back without having been there shows as missing.
func (s *sink) table() string {
	var out []string
	for _, row := range s.byKey {
		out = append(out, row)
	}
	for row, n := range s.count {
		for range n {
			out = append(out, row)
		}
		for range -n {
			out = append(out, "missing: "+row)
		}
	}
	slices.Sort(out)
	return strings.Join(out, "\n")
}
