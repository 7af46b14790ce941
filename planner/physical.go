package planner

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// phys is a node of the physical plan. Scans may have several consumers, and once reuse has run window aggregations; all other
// nodes have one.
type phys struct {
	op     Node // an operator: what it does; its own inputs are only looked at for field names
	in     []*phys
	ship   []exec.Edge // per input; From is unused
	fields []Field
	trait  Trait
	keys   [][]int // upsert keys: columns that identify a row of the stream
	par    int
	// keyedBy are the columns of each input that state is kept by, where the operator has keys.
	keyedBy map[int][]int
	dist    []int // columns its output is hash-distributed by, in order; nil = unknown
	id      string
	index   int // in the graph, once lowered; -1 before
}

// schema is the rows of input i.
func (p *phys) schema(i int) *types.Schema { return schemaOf(p.in[i].fields) }

// mode is the changelog mode of input i.
func (p *phys) mode(i int) types.ChangelogMode { return p.in[i].trait.Mode() }

// before reports that p has to send -U rows.
func (p *phys) before() bool { return p.trait.Update == BeforeAndAfter }

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
	if t, ok := n.(*TemporalJoin); ok {
		p.in[1] = t.versions(p.in[1])
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
