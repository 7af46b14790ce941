package types

// RowKind says what a row does to the table its stream describes (Flink's RowKind).
type RowKind uint8

// The four kinds. Insert is zero so that "no kinds" means append-only.
const (
	Insert       RowKind = iota // +I
	UpdateBefore                // -U: the old row of an update
	UpdateAfter                 // +U: the new row of an update
	Delete                      // -D
)

var rowKindText = [...]string{"+I", "-U", "+U", "-D"}

// String is "+I", "-U", "+U" or "-D".
func (k RowKind) String() string { return rowKindText[k] }

// IsRetract reports -U and -D: the row leaves the table.
func (k RowKind) IsRetract() bool { return k == UpdateBefore || k == Delete }

// ChangelogMode is the set of row kinds a stream may carry.
type ChangelogMode uint8

// The modes of Flink's planner.
const (
	AppendOnly ChangelogMode = iota // +I only
	Upsert                          // +I +U -D; a row is addressed by the upsert key
	Retract                         // +I -U +U -D; every update carries the old row
)

// String is "append-only", "upsert" or "retract".
func (m ChangelogMode) String() string {
	return [...]string{"append-only", "upsert", "retract"}[m]
}

// Kinds is Flink's notation of the mode: "[I]", "[I,UA,D]" or "[I,UB,UA,D]".
func (m ChangelogMode) Kinds() string {
	return [...]string{"[I]", "[I,UA,D]", "[I,UB,UA,D]"}[m]
}

// Column is a named, typed column.
type Column struct {
	Name string
	Type Type
}

// Schema is the ordered list of columns of a batch or stream. It is immutable once shared.
type Schema struct {
	Columns []Column
}

// NewSchema makes a schema of the given columns.
func NewSchema(cols ...Column) *Schema { return &Schema{Columns: cols} }

// Len is the number of columns.
func (s *Schema) Len() int { return len(s.Columns) }

// Index is the position of the column called name (case-sensitive, as Flink), or -1.
func (s *Schema) Index(name string) int {
	for i := range s.Columns {
		if s.Columns[i].Name == name {
			return i
		}
	}
	return -1
}

// Names are the column names in order.
func (s *Schema) Names() []string {
	out := make([]string, len(s.Columns))
	for i := range s.Columns {
		out[i] = s.Columns[i].Name
	}
	return out
}

// Types are the column types in order.
func (s *Schema) Types() []Type {
	out := make([]Type, len(s.Columns))
	for i := range s.Columns {
		out[i] = s.Columns[i].Type
	}
	return out
}
