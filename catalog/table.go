package catalog

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// ColumnKind says where a column's value comes from.
type ColumnKind uint8

// The kinds of columns.
const (
	Physical ColumnKind = iota // stored in the external system, read and written through the format
	Computed                   // AS expr: evaluated on read, never written
	Metadata                   // METADATA [FROM 'key'] [VIRTUAL]: supplied by the connector or format
)

// Column is a column of a table.
type Column struct {
	Name    string
	Type    types.Type // of Computed columns: filled in by the binder when the table is created
	Kind    ColumnKind
	Expr    string // Computed: the SQL text
	Key     string // Metadata: the connector's key; equals Name when FROM was not given
	Virtual bool   // Metadata: read only
	Comment string
}

// Watermark is WATERMARK FOR Column AS Expr.
type Watermark struct {
	Column string
	Expr   string // the SQL text
}

// Options are the WITH options of a table as written: Flink's keys, string values. Positions serve error messages.
type Options struct {
	values map[string]string
	pos    map[string]diag.Pos
}

// NewOptions makes an empty set.
func NewOptions() *Options {
	return &Options{values: map[string]string{}, pos: map[string]diag.Pos{}}
}

// Set stores key = value; pos is where the key was written.
func (o *Options) Set(key, value string, pos diag.Pos) {
	o.values[key] = value
	o.pos[key] = pos
}

// Get is the value of key.
func (o *Options) Get(key string) (value string, ok bool) {
	value, ok = o.values[key]
	return
}

// Pos is the place where key was written; unknown when it was not written in a statement at hand.
func (o *Options) Pos(key string) diag.Pos { return o.pos[key] }

// Keys are the keys in ascending order.
func (o *Options) Keys() []string { return sortedKeys(o.values) }

// Clone is an independent copy, to which hints are applied.
func (o *Options) Clone() *Options {
	c := NewOptions()
	for k, v := range o.values {
		c.Set(k, v, o.pos[k])
	}
	return c
}

// Table is CREATE TABLE, resolved. It is immutable once in a catalog.
type Table struct {
	Name       string
	Temporary  bool
	Columns    []Column
	PrimaryKey []string // column names; NOT ENFORCED, the columns are NOT NULL
	Watermark  *Watermark
	Comment    string
	Partitions []string // PARTITIONED BY
	Options    *Options
	Text       string // the CREATE statement, for SHOW CREATE TABLE and persistence
}

// Connector is the value of the option 'connector', "" when missing.
func (t *Table) Connector() string {
	c, _ := t.Options.Get("connector")
	return c
}

// PhysicalSchema is the schema of the physical columns in declared order: what formats see.
func (t *Table) PhysicalSchema() *types.Schema {
	s := &types.Schema{}
	for _, c := range t.Columns {
		if c.Kind == Physical {
			s.Columns = append(s.Columns, types.Column{Name: c.Name, Type: c.Type})
		}
	}
	return s
}

// Column is the column called name, or nil.
func (t *Table) Column(name string) *Column {
	for i := range t.Columns {
		if t.Columns[i].Name == name {
			return &t.Columns[i]
		}
	}
	return nil
}

// View is CREATE VIEW: a named query.
type View struct {
	Name      string
	Temporary bool
	Columns   []string // the column list, nil when not given
	Query     string   // the query's text, names as written
	Comment   string
	Text      string
}
