package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// deliver chooses how the rows of in reach the target and returns the Sink node over what it needs on the way:
//
//	constraints -> (exchange by primary key) -> materialiser -> sink
//
// The connector's modes are tried best first; the first that can take the query's changes is used. Where the query's
// key is not contained in the primary key of an upsert sink, the rows are materialised by it.
func (b *builder) deliver(in *phys, t *sinkTarget) (*phys, error) {
	if err := b.checkRowtime(in, t); err != nil {
		return nil, err
	}
	modes, err := b.sinkModes(t)
	if err != nil {
		return nil, err
	}
	c := &constraint{In: in.op, Target: t, Drop: b.conf.Enum(keyNotNull) == "DROP", Length: b.conf.Enum(keyTypeLength)}
	if !t.Collect && c.needed() {
		keys, kinds := in.keys, in.trait.Kinds
		in = wrap(c, in)
		in.keys, in.trait.Kinds = keys, kinds
	}
	for _, m := range modes {
		choice, ok := b.fit(in, t, m)
		if !ok {
			continue
		}
		if err := b.conflict(in, t, m); err != nil {
			return nil, err
		}
		again, err := b.determine(in, t, m, choice)
		if err != nil {
			return nil, err
		}
		if again {
			if choice, ok = b.fit(in, t, m); !ok {
				continue
			}
		}
		return b.attach(in, t, m, choice)
	}
	return nil, b.refuseSink(in, t, modes)
}

func (b *builder) sinkModes(t *sinkTarget) ([]connectors.SinkMode, error) {
	modes, err := t.Connector.SinkModes(t.Table)
	if err != nil {
		return nil, tableError("sink", t.Table, t.Pos.Pos, err)
	}
	if len(modes) == 0 {
		return nil, tableError("sink", t.Table, t.Pos.Pos, diag.New(diag.Config, t.Pos.Pos, "connector '%s' offers no way to write it", t.Connector.Name))
	}
	if t.Followed {
		modes = slices.Clone(modes)
		for i := range modes {
			modes[i].Reason = followReason
		}
	}
	return modes, nil
}

// choice is how a query fits a sink mode.
type choice struct {
	demand      demand
	materialize bool
	note        string
}

// fit tells whether the sink mode can take the stream, and how.
func (b *builder) fit(in *phys, t *sinkTarget, m connectors.SinkMode) (choice, bool) {
	updating := in.trait.Kinds != Inserts
	force := b.conf.Enum(keyMaterialize) == "FORCE"
	switch m.Changelog {
	case types.AppendOnly:
		return choice{demand: demand{Update: OnlyAfter}}, !updating && canGive(in, demand{Update: OnlyAfter})
	case types.Retract:
		return choice{demand: full}, canGive(in, full)
	}
	if len(m.Key) == 0 {
		d := full
		if len(in.keys) > 0 && canGive(in, demand{Update: OnlyAfter}) {
			d = demand{Update: OnlyAfter}
		}
		return choice{demand: d}, canGive(in, d)
	}
	key := sinkKey(t, m)
	switch contained, exact := keyFit(in.keys, key); {
	case force && contained && exact && canGive(in, demand{Update: OnlyAfter}):
		return choice{demand: demand{Update: OnlyAfter}, materialize: true, note: "materialised by the primary key as " + keyMaterialize + " = FORCE asks"}, true
	case force:
		return choice{demand: full, materialize: true, note: "materialised by the primary key as " + keyMaterialize + " = FORCE asks"}, canGive(in, full)
	case !updating:
		return choice{demand: demand{Update: OnlyAfter}, note: "the query only inserts: a later row of a key replaces the earlier one"}, canGive(in, demand{Update: OnlyAfter})
	case contained:
		// With a smaller key the other columns of the primary key can change: the old row must be deleted.
		d := demand{Update: OnlyAfter, KeyDeletes: !enforcesNotNull(in)}
		if exact && canGive(in, d) {
			return choice{demand: d}, true
		}
		return choice{demand: full, note: "the query sends the old row before each new one, so a row that leaves the result is deleted"}, canGive(in, full)
	case b.conf.Enum(keyMaterialize) == "NONE":
		return choice{demand: full, note: "the query's key is not contained in the primary key and " + keyMaterialize + " = NONE: rows of one key may overwrite each other in any order"}, canGive(in, full)
	}
	note := fmt.Sprintf("the query's rows are identified by %s, not by the primary key (%s): the last row of each primary key is kept in state and written",
		describeKeys(in), strings.Join(m.Key, ", "))
	return choice{demand: full, materialize: true, note: note}, canGive(in, full)
}

// canGive tells whether the stream can be had as demanded. A scan is shared and decides nothing itself: its -U rows are
// dropped for the sink.
func canGive(p *phys, d demand) bool {
	if _, ok := p.op.(*Scan); ok && d.Update == OnlyAfter && p.trait.Update == BeforeAndAfter {
		return true
	}
	return p.settle(d, false)
}

func enforcesNotNull(in *phys) bool {
	c, ok := in.op.(*constraint)
	return ok && c.notNull() != nil
}

// sinkKey are the positions of the mode's key columns in the sink's rows.
func sinkKey(t *sinkTarget, m connectors.SinkMode) []int {
	key := make([]int, len(m.Key))
	for i, k := range m.Key {
		key[i] = t.Columns.Index(k)
	}
	return key
}

// keyFit tells whether some upsert key is contained in (equal to) the sink's key.
func keyFit(keys [][]int, sink []int) (contained, exact bool) {
	for _, k := range keys {
		if subset(k, sink) {
			contained = true
			exact = exact || len(k) == len(sink)
		}
	}
	return contained, exact
}

// describeKeys lists the upsert keys for people.
func describeKeys(p *phys) string {
	if len(p.keys) == 0 {
		return "no key"
	}
	s := make([]string, len(p.keys))
	for i, k := range p.keys {
		s[i] = "(" + keyNames(p.fields, k) + ")"
	}
	return strings.Join(s, " or ")
}

// attach settles the tree and puts materialiser and sink on top.
func (b *builder) attach(in *phys, t *sinkTarget, m connectors.SinkMode, c choice) (*phys, error) {
	in.settle(c.demand, true)
	if s, ok := in.op.(*Scan); ok && c.demand.Update == OnlyAfter && in.trait.Update == BeforeAndAfter {
		f := wrap(&dropBefore{In: s}, in)
		f.trait, f.keys = Trait{in.trait.Kinds, OnlyAfter, in.trait.Delete}, in.keys
		in = f
	}
	t.Delivery, t.Reason = m, c.note
	t.InputKey = smallest(in.keys)
	if c.materialize {
		n := wrap(&materialize{In: in.op, Key: sinkKey(t, m), InputKey: smallest(in.keys), target: t}, in)
		n.trait = Trait{AllKinds, OnlyAfter, DeleteFull}
		n.keys = upsertKeys(n)
		in, t.InputKey = n, n.op.(*materialize).Key
	}
	s := wrap(&Sink{In: in.op, Target: t}, in)
	s.trait = in.trait
	s.keys = in.keys
	return s, nil
}

// checkRowtime refuses two rowtime columns, of which neither can be the record's timestamp.
func (b *builder) checkRowtime(in *phys, t *sinkTarget) error {
	if t.Collect || b.conf.Enum(keyRowtimeInserter) == "DISABLED" {
		return nil
	}
	var names []string
	for _, f := range in.fields {
		if f.Time == Rowtime {
			names = append(names, f.Name)
		}
	}
	if len(names) < 2 {
		return nil
	}
	return diag.New(diag.Semantic, t.Pos.Pos, "the query for table %s has %d rowtime columns: %s", t.Table.Name, len(names), strings.Join(names, ", ")).
		WithDetail("at most one can be the timestamp of the written record").
		WithHint("CAST the others to TIMESTAMP(3), or SET '%s' = 'DISABLED'", keyRowtimeInserter)
}

// refuseSink says why no mode of the sink takes the query, and what would.
func (b *builder) refuseSink(in *phys, t *sinkTarget, modes []connectors.SinkMode) error {
	extra := in.trait.Kinds &^ Inserts
	producer := in
	for {
		if _, ok := producer.op.(*constraint); !ok {
			break
		}
		producer = producer.in[0]
	}
	e := diag.New(diag.Semantic, t.Pos.Pos, "table sink %s does not support consuming %s changes produced by %s",
		t.Table.Name, extra.words(), producer.op.label())
	e.WithDetail("rows sent before are changed by %s (changelog %s); connector '%s' with these options only takes %s",
		origin(in).op.label(), naturalMode(in), t.Connector.Name, acceptedModes(modes))
	var fixes []string
	if len(t.Table.PrimaryKey) == 0 && len(in.keys) > 0 {
		var ks []string
		for _, k := range in.keys {
			if len(k) == 0 {
				continue
			}
			ks = append(ks, "PRIMARY KEY ("+keyNames(in.fields, k)+") NOT ENFORCED")
		}
		if ks != nil && canUpsert(t.Connector) {
			fixes = append(fixes, "declare "+strings.Join(ks, " or ")+" on "+t.Table.Name)
		}
	}
	switch t.Connector.Name {
	case "kafka":
		fixes = append(fixes, "use a changelog format ('debezium-json', 'changelog-json')", "use 'connector' = 'upsert-kafka' with a primary key")
	case "filesystem":
		fixes = append(fixes, "use 'format' = 'changelog-json' or 'debezium-json'")
	}
	fixes = append(fixes, "aggregate by a window (TUMBLE), whose results are final")
	if ends(in) {
		fixes = append(fixes, "as all input ends, SET '"+keyRuntimeMode+"' = 'batch' to write the final rows only")
	}
	e.Hint = strings.Join(fixes, "; or ")
	return e
}

// ends reports that everything p reads ends by itself.
func ends(p *phys) bool {
	if s, ok := p.op.(*Scan); ok {
		return s.Info.Bounded
	}
	for _, in := range p.in {
		if !ends(in) {
			return false
		}
	}
	return true
}

// origin is the node where the stream begins to have changes.
func origin(p *phys) *phys {
	for {
		var next *phys
		for _, in := range p.in {
			if in.trait.Kinds != Inserts {
				next = in
			}
		}
		if _, own := p.op.(modifier); next == nil || own {
			return p
		}
		p = next
	}
}

// canUpsert lists the connectors that write by primary key when one is declared.
func canUpsert(c *connectors.Connector) bool {
	return slices.Contains([]string{"jdbc", "postgres", "upsert-kafka", "memory"}, c.Name)
}

func naturalMode(p *phys) string {
	return Trait{p.trait.Kinds, BeforeAndAfter, DeleteFull}.String()
}

func acceptedModes(modes []connectors.SinkMode) string {
	var out []string
	for _, m := range modes {
		if s := m.Changelog.Kinds(); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return strings.Join(out, " or ")
}
