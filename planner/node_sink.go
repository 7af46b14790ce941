package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Sink writes its input to a table.
type Sink struct {
	In     Node
	Target *sinkTarget
}

func (n *Sink) Inputs() []Node { return []Node{n.In} }

func (n *Sink) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Sink) Fields() []Field { return n.In.Fields() }

func (n *Sink) label() string {
	return fmt.Sprintf("Sink(table=[%s], columns=[%s])", n.Target.Table.Name, strings.Join(n.Target.Columns.Names(), ", "))
}

func (n *Sink) identity(w *identity) { w.put("sink", n.Target.ID) }

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
	Followed  bool   // the delivery is the job's mode, not the table's own; see follow
	InputKey  []int
	Conflict  diag.Pos // of ON CONFLICT DO DEDUPLICATE
	Risks     []risk   // of non-deterministic updates, that the job runs with
}

func (n *Sink) slug() string   { return "sink" }
func (n *Sink) stateful() bool { return false }
func (n *Sink) physicalLabel() string {
	return strings.TrimSuffix(n.label(), ")") + fmt.Sprintf(", delivery=[%s])", n.Target.Delivery.Delivery)
}

func (n *Sink) distribute(b *builder, p *phys) error { return b.sinkParallelism(p, n.Target) }

func (b *builder) sinkParallelism(p *phys, t *sinkTarget) error {
	in := p.in[0]
	par := in.par
	switch {
	case t.Collect:
		par = 1
	case t.Parallel > 0:
		par = t.Parallel
	}
	p.par = par
	if len(t.Delivery.Key) > 0 {
		key := sinkKey(t, t.Delivery)
		if in.par == par && len(in.dist) > 0 && subset(in.dist, key) {
			return nil // rows of one key are in one subtask already, and a sink has no key groups
		}
		b.exchange(p, 0, par, key)
		return nil
	}
	if par != in.par && par > 1 && in.trait.Kinds != Inserts && len(t.Table.PrimaryKey) == 0 {
		return diag.New(diag.Semantic, t.Pos.Pos, "table %s: 'sink.parallelism' = %d differs from the query's parallelism %d", t.Table.Name, par, in.par).
			WithDetail("the query updates rows, and without a primary key their order would be lost").
			WithHint("declare a primary key on %s, or remove 'sink.parallelism'", t.Table.Name)
	}
	if par == in.par {
		return nil
	}
	keys := rowKey(in)
	if pk := t.Table.PrimaryKey; keys != nil && len(pk) > 0 {
		keys = nil
		for _, k := range pk {
			keys = append(keys, t.Columns.Index(k))
		}
	}
	b.exchange(p, 0, par, keys)
	return nil
}

func (n *Sink) lower(l *lowering, x *exec.Node, p *phys) {
	x.Output = nil
	x.Sink = l.sink(n, p)
}

func (l *lowering) sink(s *Sink, p *phys) *exec.SinkNode {
	t := s.Target
	rowtime := 0
	if !t.Collect && l.b.conf.Enum(keyRowtimeInserter) != "DISABLED" {
		rowtime = 1 + slices.IndexFunc(p.in[0].fields, func(f Field) bool { return f.Time == Rowtime })
	}
	return &exec.SinkNode{Connector: t.Connector, Spec: connectors.SinkSpec{
		ID: checkpoint.SinkID(t.ID), Table: t.Table, Schema: t.Columns, Mode: t.Delivery, InputKey: t.InputKey,
		Rowtime: rowtime, Parallel: p.par, Session: l.b.session, Embedded: l.o.Embedded,
	}}
}
