package catalog

import (
	"strings"

	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Define builds the table that stmt describes, on top of base (the table of its LIKE clause, nil without one). It checks
// all that can be checked without typing expressions: names, keys, partitions, the LIKE rules. The types of computed
// columns are left zero and the watermark is unchecked: that is the binder's part.
func Define(stmt *sql.CreateTable, base *Table, text string) (*Table, error) {
	t := &Table{Name: stmt.Path.Last(), Temporary: stmt.Temporary, Comment: stmt.Comment, Options: NewOptions(), Text: text}
	if stmt.Distribution != nil {
		return nil, diag.New(diag.Unsupported, stmt.Distribution.Pos, "DISTRIBUTED is not supported").
			WithDetail("no connector of streamsql has buckets").
			WithHint("remove the clause; for files use PARTITIONED BY")
	}
	own, err := ownColumns(stmt)
	if err != nil {
		return nil, err
	}
	opts, err := ownOptions(stmt.Options)
	if err != nil {
		return nil, err
	}
	if base != nil {
		if err := mergeLike(t, base, stmt, own, opts); err != nil {
			return nil, err
		}
	} else {
		t.Columns, t.Options = own, opts
	}
	if stmt.Watermark != nil {
		col := stmt.Watermark.Column
		if len(col) != 1 {
			return nil, diag.New(diag.Unsupported, col.Position(), "a watermark on the nested field %s is not supported", col.Plain()).
				WithHint("add a computed column: ts AS %s, and declare WATERMARK FOR ts", col)
		}
		t.Watermark = &Watermark{Column: col.Last(), Expr: stmt.Watermark.ExprText}
	}
	if err := setPrimaryKey(t, stmt); err != nil {
		return nil, err
	}
	if err := setPartitions(t, stmt); err != nil {
		return nil, err
	}
	return t, checkTable(t, stmt)
}

// ownColumns are the columns written in stmt; each name may occur once.
func ownColumns(stmt *sql.CreateTable) ([]Column, error) {
	var out []Column
	seen := map[string]bool{}
	for _, d := range stmt.Columns {
		if seen[d.Name.Text] {
			return nil, diag.New(diag.Semantic, d.Name.Pos, "column %s is declared twice", d.Name.Text).
				WithHint("remove or rename one of them")
		}
		seen[d.Name.Text] = true
		c := Column{Name: d.Name.Text, Type: d.Type, Comment: d.Comment, Virtual: d.Virtual}
		switch d.Kind {
		case sql.ComputedColumn:
			c.Kind, c.Expr = Computed, d.ExprText
		case sql.MetadataColumn:
			c.Kind, c.Key = Metadata, d.MetadataKey
			if c.Key == "" {
				c.Key = c.Name
			}
		}
		out = append(out, c)
	}
	return out, nil
}

func ownOptions(list []sql.Option) (*Options, error) {
	o := NewOptions()
	for _, kv := range list {
		if _, twice := o.Get(kv.Key); twice {
			return nil, diag.New(diag.Config, kv.KeyPos, "option '%s' is given twice", kv.Key)
		}
		o.Set(kv.Key, kv.Value, kv.KeyPos)
	}
	return o, nil
}

func setPrimaryKey(t *Table, stmt *sql.CreateTable) error {
	if stmt.PrimaryKey == nil {
		return nil
	}
	if t.PrimaryKey != nil {
		return diag.New(diag.Semantic, stmt.PrimaryKey.Pos, "the base table %s has a primary key already", stmt.Like.Table.Plain()).
			WithHint("write LIKE %s (EXCLUDING CONSTRAINTS) to replace it", stmt.Like.Table.Plain())
	}
	for i, n := range stmt.PrimaryKey.Columns {
		c := t.Column(n.Text)
		switch {
		case c == nil:
			return unknownColumn(t, n, "primary key")
		case c.Kind != Physical:
			return diag.New(diag.Semantic, n.Pos, "primary key column %s is a %s column", n.Text, c.Kind).
				WithDetail("a primary key consists of physical columns").
				WithHint("declare the key over columns that the table stores, or declare %s with its type", n.Text)
		}
		for _, m := range stmt.PrimaryKey.Columns[:i] {
			if m.Text == n.Text {
				return diag.New(diag.Semantic, n.Pos, "column %s occurs twice in the primary key", n.Text).WithHint("list it once")
			}
		}
		for _, d := range stmt.Columns {
			if d.Name.Text == n.Text && d.NullSet {
				return diag.New(diag.Semantic, d.TypePos, "primary key column %s is declared NULL", n.Text).
					WithHint("declare it NOT NULL")
			}
		}
		c.Type.Nullable = false
		t.PrimaryKey = append(t.PrimaryKey, n.Text)
	}
	return nil
}

func unknownColumn(t *Table, n sql.Name, where string) error {
	var names []string
	for _, c := range t.Columns {
		names = append(names, c.Name)
	}
	e := diag.New(diag.Semantic, n.Pos, "%s column %s does not exist", where, n.Text).
		WithDetail("table %s has the columns %s", t.Name, strings.Join(names, ", ")).WithHint("name one of them, or declare %s", n.Text)
	if near := diag.Nearest(n.Text, names); near != "" {
		e.WithHint("did you mean %s?", near)
	}
	return e
}

func setPartitions(t *Table, stmt *sql.CreateTable) error {
	if stmt.PartitionBy == nil {
		return nil
	}
	if t.Partitions != nil {
		return diag.New(diag.Semantic, stmt.PartitionBy[0].Pos, "the base table %s has partitions already", stmt.Like.Table.Plain()).
			WithHint("write LIKE %s (EXCLUDING PARTITIONS) to replace them", stmt.Like.Table.Plain())
	}
	for _, n := range stmt.PartitionBy {
		c := t.Column(n.Text)
		if c == nil {
			return unknownColumn(t, n, "partition")
		}
		if c.Kind != Physical {
			return diag.New(diag.Semantic, n.Pos, "partition column %s is a %s column", n.Text, c.Kind).
				WithDetail("partition columns are physical columns")
		}
		t.Partitions = append(t.Partitions, n.Text)
	}
	return nil
}

// checkTable checks rules over the merged table.
func checkTable(t *Table, stmt *sql.CreateTable) error {
	keys := map[string]string{}
	for _, c := range t.Columns {
		if c.Kind != Metadata {
			continue
		}
		if other, twice := keys[c.Key]; twice {
			return diag.New(diag.Semantic, stmt.Pos, "columns %s and %s both read the metadata key '%s'", other, c.Name, c.Key).
				WithHint("keep one of them; a computed column can copy it")
		}
		keys[c.Key] = c.Name
	}
	if t.Watermark != nil && t.Column(t.Watermark.Column) == nil {
		n := sql.Name{Text: t.Watermark.Column, Pos: stmt.Pos}
		if stmt.Watermark != nil {
			n.Pos = stmt.Watermark.Column.Position()
		}
		return unknownColumn(t, n, "watermark")
	}
	if len(t.Columns) == 0 {
		return diag.New(diag.Semantic, stmt.Path.Position(), "table %s has no columns", t.Name)
	}
	return nil
}

// String is "physical", "computed" or "metadata".
func (k ColumnKind) String() string { return [...]string{"physical", "computed", "metadata"}[k] }

// Schema is the schema of all columns in declared order.
func (t *Table) Schema() *types.Schema {
	s := &types.Schema{}
	for _, c := range t.Columns {
		s.Columns = append(s.Columns, types.Column{Name: c.Name, Type: c.Type})
	}
	return s
}

// Persisted are the positions of the columns an INSERT writes: physical and writable metadata columns.
func (t *Table) Persisted() []int {
	var out []int
	for i, c := range t.Columns {
		if c.Kind == Physical || c.Kind == Metadata && !c.Virtual {
			out = append(out, i)
		}
	}
	return out
}

// WithOptions is the table with the given options set, as an OPTIONS hint does. t is unchanged.
func (t *Table) WithOptions(list []sql.Option) *Table {
	if len(list) == 0 {
		return t
	}
	c := *t
	c.Options = t.Options.Clone()
	for _, o := range list {
		c.Options.Set(o.Key, o.Value, o.KeyPos)
	}
	return &c
}
