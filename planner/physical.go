package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// phys is a node of the physical plan. Scans may have several consumers, all other nodes have one.
type phys struct {
	op     Node // what it does; its own inputs are only looked at for field names
	in     []*phys
	ship   []exec.Edge // per input; From is unused
	fields []Field
	trait  Trait
	keys   [][]int // upsert keys: columns that identify a row of the stream
	par    int
	dist   []int // columns its output is hash-distributed by, in order; nil = unknown
	id     string
	index  int // in the graph, once lowered; -1 before
}

// Operators that only the physical plan has.
type (
	// normalize turns an upsert source into a full changelog by its primary key (Flink: ChangelogNormalize).
	normalize struct {
		In      Node
		Key     []int
		removed bool // the consumer needs neither -U nor whole deletes: rows pass through
	}
	// dropBefore removes -U rows for a consumer that wants +U only.
	dropBefore struct{ In Node }
	// constraint enforces NOT NULL and lengths before a sink.
	constraint struct {
		In     Node
		Target *sinkTarget
		Drop   bool   // NULLs drop the row instead of failing
		Length string // IGNORE, TRIM_PAD or ERROR
	}
	// materialize keeps the rows of each primary key and shows the sink the last one (Flink: SinkUpsertMaterializer).
	materialize struct {
		In       Node
		Key      []int
		InputKey []int
		target   *sinkTarget
	}
)

func (n *normalize) Fields() []Field         { return n.In.Fields() }
func (n *normalize) Inputs() []Node          { return []Node{n.In} }
func (n *normalize) withInputs([]Node) Node  { return n }
func (n *dropBefore) Fields() []Field        { return n.In.Fields() }
func (n *dropBefore) Inputs() []Node         { return []Node{n.In} }
func (n *dropBefore) withInputs([]Node) Node { return n }
func (n *constraint) Fields() []Field {
	out := slices.Clone(n.In.Fields())
	for i := range out {
		out[i].Type = n.Target.Columns.Columns[i].Type
	}
	return out
}
func (n *constraint) Inputs() []Node          { return []Node{n.In} }
func (n *constraint) withInputs([]Node) Node  { return n }
func (n *materialize) Fields() []Field        { return n.In.Fields() }
func (n *materialize) Inputs() []Node         { return []Node{n.In} }
func (n *materialize) withInputs([]Node) Node { return n }

func (n *normalize) label() string {
	return fmt.Sprintf("ChangelogNormalize(key=[%s])", keyNames(n.In.Fields(), n.Key))
}
func (n *dropBefore) label() string { return "DropUpdateBefore()" }
func (n *constraint) label() string {
	var parts []string
	if cols := n.notNull(); cols != nil {
		parts = append(parts, fmt.Sprintf("%s=[%s]", map[bool]string{false: "notNull", true: "notNullDrop"}[n.Drop], keyNames(n.Fields(), cols)))
	}
	if cols := n.lengths(); cols != nil {
		parts = append(parts, fmt.Sprintf("length=[%s: %s]", strings.ToLower(n.Length), keyNames(n.Fields(), cols)))
	}
	return "ConstraintEnforcer(" + strings.Join(parts, ", ") + ")"
}
func (n *materialize) label() string {
	s := fmt.Sprintf("SinkMaterialize(key=[%s]", keyNames(n.In.Fields(), n.Key))
	if n.InputKey != nil {
		s += fmt.Sprintf(", rowsBy=[%s]", keyNames(n.In.Fields(), n.InputKey))
	}
	return s + ")"
}

// notNull are the columns that can be NULL in the input and must not be in the sink.
func (n *constraint) notNull() []int {
	var out []int
	for i, f := range n.In.Fields() {
		if f.Type.Nullable && !n.Target.Columns.Columns[i].Type.Nullable {
			out = append(out, i)
		}
	}
	return out
}

// lengths are the columns whose values can be longer (or, for CHAR and BINARY, shorter) than the sink's type says.
func (n *constraint) lengths() []int {
	if n.Length == "IGNORE" {
		return nil
	}
	var out []int
	for i, given := range n.Target.Given {
		t := n.Target.Columns.Columns[i].Type
		if !t.IsString() && !t.IsBytes() || t.Precision == types.MaxLength {
			continue
		}
		exact := t.Kind == types.Char || t.Kind == types.Binary
		if exact && !(given.Kind == t.Kind && given.Precision == t.Precision) || !exact && given.Precision > t.Precision {
			out = append(out, i)
		}
	}
	return out
}

func (n *constraint) needed() bool { return n.notNull() != nil || n.lengths() != nil }

// sinkTarget is a table being written.
type sinkTarget struct {
	Table     *catalog.Table
	Connector *connectors.Connector
	Columns   *types.Schema // persisted columns in declared order: what the sink gets
	Given     []types.Type  // per column: what the query gives for it, before it was converted
	ID        string        // stable: the table's name, "#2" … when a job writes it twice
	Parallel  int           // sink.parallelism, 0 = the input's
	Collect   bool          // the result of a SELECT
	Pos       sql.Place
	Delivery  connectors.SinkMode
	Reason    string // why this delivery and what happens to the rows on the way
	InputKey  []int
}

// builder makes physical plans; it shares the scans of one statement.
type builder struct {
	conf    *Config
	scans   map[string]*phys
	session expr.Session
	notices []string
}

// build makes the physical tree of a rewritten logical plan.
func (b *builder) build(n Node) *phys {
	if s, ok := n.(*Scan); ok {
		return b.scan(s)
	}
	p := &phys{op: n, fields: n.Fields(), index: -1}
	for _, in := range n.Inputs() {
		p.in = append(p.in, b.build(in))
	}
	p.ship = make([]exec.Edge, len(p.in))
	p.deriveKinds()
	p.keys = upsertKeys(p)
	return p
}

// scan makes the scan of a table, or finds it: scans of equal tables were given equal columns before. The normaliser of
// an upsert source belongs to one reader.
func (b *builder) scan(s *Scan) *phys {
	p, ok := b.scans[s.Info.Key]
	if !ok {
		p = &phys{op: s, fields: s.Fields(), trait: traitOf(s.Info.Mode), index: -1}
		p.keys = upsertKeys(p)
		b.scans[s.Info.Key] = p
	}
	dup := b.conf.Bool(keyCDCDuplicate) && s.Info.Mode != types.AppendOnly
	if s.Info.Mode != types.Upsert && !dup {
		return p
	}
	if len(p.keys) == 0 {
		return p // the planner reads all key columns of upsert sources; see keepKeys
	}
	if s.Info.Mode == types.Retract {
		f := wrap(&dropBefore{In: s}, p)
		f.trait, f.keys = Trait{p.trait.Kinds, OnlyAfter, p.trait.Delete}, p.keys
		p = f
	}
	n := wrap(&normalize{In: s, Key: p.keys[0]}, p)
	n.deriveKinds()
	n.keys = upsertKeys(n)
	return n
}

// wrap puts op between p and its consumer.
func wrap(op Node, p *phys) *phys {
	n := &phys{op: op, in: []*phys{p}, ship: make([]exec.Edge, 1), fields: op.Fields(), index: -1}
	return n
}
