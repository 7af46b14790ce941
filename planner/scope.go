package planner

import (
	"errors"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
)

// scope is the columns an expression may name: column i is output column i of the node it is bound over.
type scope struct {
	cols    []scopeCol
	aliases []string // of the SELECT list, which is computed later
}

type scopeCol struct {
	table   string // alias or name of the table; "" = none
	field   Field
	refused string // why the column must not be used here, "" = it may
	// qualified: reached by its table's name only, because a column of USING stands for it.
	qualified bool
	// timed is the time attribute of a table below a join, which the join may keep after all.
	timed TimeAttr
}

// scopeOf makes a scope of a node's output under one table name.
func scopeOf(table string, fields []Field) *scope {
	s := &scope{cols: make([]scopeCol, len(fields))}
	for i, f := range fields {
		s.cols[i] = scopeCol{table: table, field: f}
	}
	return s
}

// retime takes the time attributes from fields: a WHERE clause can make interval joins, which keep them.
func (s *scope) retime(fields []Field) {
	for i := range min(len(s.cols), len(fields)) {
		s.cols[i].field.Time = fields[i].Time
	}
}

// names are the column names, for "did you mean".
func (s *scope) names() []string {
	out := make([]string, len(s.cols))
	for i, c := range s.cols {
		out[i] = c.field.Name
	}
	return out
}

// namesOf are the names of one table's columns.
func (s *scope) namesOf(table string) []string {
	var out []string
	for _, c := range s.cols {
		if c.table == table {
			out = append(out, c.field.Name)
		}
	}
	return out
}

// find is the column called name of the given table ("" = any): its index, or how many there are if not one.
func (s *scope) find(table, name string) (index, count int) {
	index = -1
	for i, c := range s.cols {
		if c.field.Name == name && (table == "" && !c.qualified || table != "" && c.table == table) {
			count++
			if index < 0 {
				index = i
			}
		}
	}
	return index, count
}

func (s *scope) hasTable(name string) bool {
	for _, c := range s.cols {
		if c.table == name {
			return true
		}
	}
	return false
}

// tableNames are the tables of the scope, in order.
func (s *scope) tableNames() []string {
	var out []string
	for _, c := range s.cols {
		if c.table != "" && !slices.Contains(out, c.table) {
			out = append(out, c.table)
		}
	}
	return out
}

func (s *scope) tables() string { return strings.Join(s.tableNames(), ", ") }

// onlyTable is the name of the table all columns are of, "" when there is not one.
func (s *scope) onlyTable() string {
	if names := s.tableNames(); len(names) == 1 && !slices.ContainsFunc(s.cols, func(c scopeCol) bool { return c.table == "" }) {
		return names[0]
	}
	return ""
}

// knows reports that the scope has something a path can begin with: a column, or a table.
func (s *scope) knows(path sql.Path) bool {
	_, n := s.find("", path[0].Text)
	return n > 0 || len(path) > 1 && (s.hasTable(path[0].Text) || path[0].Text == catalog.DefaultCatalog || path[0].Text == catalog.DefaultDatabase)
}

// resolve finds the column a path names and the fields that follow it.
func (s *scope) resolve(path sql.Path) (index int, rest sql.Path, err error) {
	p := path
	if len(p) > 3 && p[0].Text == catalog.DefaultCatalog && p[1].Text == catalog.DefaultDatabase {
		p = p[2:]
	} else if len(p) > 2 && p[0].Text == catalog.DefaultDatabase && !s.hasTable(p[0].Text) {
		p = p[1:]
	}
	table, name, fields := "", p[0], p[1:]
	if len(p) > 1 && s.hasTable(p[0].Text) {
		if _, n := s.find(p[0].Text, p[1].Text); n > 0 {
			table, name, fields = p[0].Text, p[1], p[2:]
		} else if _, n := s.find("", p[0].Text); n == 0 {
			return 0, nil, s.unknown(p[1], p[0].Text)
		}
	}
	i, n := s.find(table, name.Text)
	switch {
	case n == 0 && len(p) > 1 && s.tables() != "":
		// Written as table.column: the table is wrong, most often by its name in place of its alias.
		return 0, nil, s.unknownTable(name, p[1].Text)
	case n == 0:
		return 0, nil, s.unknown(name, table)
	case n > 1:
		return 0, nil, diag.New(diag.Semantic, name.Pos, "column %s is ambiguous", name.Text).
			WithHint("write it with its table: %s.%s", s.cols[i].table, name.Text)
	case s.cols[i].refused != "":
		return 0, nil, diag.New(diag.Semantic, name.Pos, "column %s cannot be used here", name.Text).WithDetail("%s", s.cols[i].refused).
			WithHint("write its expression instead of the name")
	}
	return i, fields, nil
}

// unknownTable is the error for name.column.
func (s *scope) unknownTable(name sql.Name, column string) error {
	tables := s.tableNames()
	table := tables[0]
	if i, n := s.find("", column); n > 0 {
		table = s.cols[i].table
	}
	if near := diag.Nearest(name.Text, tables); near != "" {
		table = near
	}
	e := diag.New(diag.Semantic, name.Pos, "%s is neither a table of the FROM clause nor a column", name.Text).WithHint("write %s.%s", table, column)
	if len(tables) > 1 {
		return e.WithDetail("the FROM clause has %s", strings.Join(tables, ", "))
	}
	return e.WithDetail("the FROM clause has %s; its columns: %s", tables[0], strings.Join(s.names(), ", "))
}

func (s *scope) unknown(n sql.Name, table string) error {
	what := "column " + n.Text
	if table != "" {
		what += " of " + table
	}
	e := diag.New(diag.Semantic, n.Pos, "%s does not exist", what)
	if len(s.cols) == 0 {
		return e.WithDetail("there is no FROM clause to take columns from").WithHint("for text write '%s' in single quotes", n.Text)
	}
	names := s.names()
	if table != "" {
		names = s.namesOf(table)
		if i, count := s.find("", n.Text); count > 0 && s.cols[i].table != "" {
			return e.WithDetail("columns of %s: %s", table, strings.Join(names, ", ")).WithHint("write %s.%s", s.cols[i].table, n.Text)
		}
	}
	if n.Text == "window_start" || n.Text == "window_end" || n.Text == "window_time" {
		e.WithHint("a window adds it: FROM TABLE(TUMBLE(TABLE t, DESCRIPTOR(time_column), INTERVAL '1' MINUTE))")
	} else if table == "" && slices.Contains(s.aliases, n.Text) {
		e.WithHint("%s is named in the SELECT list, which is computed later: repeat the expression, or use the name in an outer query", n.Text)
	} else if near := diag.Nearest(n.Text, names); near != "" {
		e.WithHint("did you mean %s?", near)
	}
	if e.Hint == "" {
		e.WithHint("write one of the columns; for text write '%s' in single quotes", n.Text)
	}
	if len(names) > 30 {
		names = append(names[:30:30], "…")
	}
	return e.WithDetail("columns: %s", strings.Join(names, ", "))
}

// columnAt is a reference to column i.
func (s *scope) columnAt(i int) expr.Expr {
	f := s.cols[i].field
	return &expr.Column{Index: i, Name: f.Name, T: f.Type}
}

// asDiag finds the *diag.Error in err's chain.
func asDiag(err error, target **diag.Error) bool { return errors.As(err, target) }
