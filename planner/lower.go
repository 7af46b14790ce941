package planner

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// lowering turns the physical plan into the executor's graph.
type lowering struct {
	b     *builder
	g     *exec.Graph
	o     Options
	used  map[string]bool
	print []string // of the fingerprint
}

// lower makes the graph. Operator ids are made of the names of what stands between an operator and its sink, so they
// stay the same when the statement is planned again, also with other parallelism or another filter.
func (b *builder) lower(plan *Plan, o Options) *exec.Graph {
	l := &lowering{b: b, g: &exec.Graph{Session: b.session}, o: o, used: map[string]bool{}}
	for _, r := range plan.roots {
		l.node(r, "")
	}
	slices.Sort(l.print)
	h := sha256.Sum256([]byte(strings.Join(l.print, "\n")))
	l.g.Fingerprint = hex.EncodeToString(h[:16])
	return l.g
}

// node lowers p and what it reads, and returns p's place in the graph.
func (l *lowering) node(p *phys, path string) int {
	if p.index >= 0 {
		return p.index
	}
	if n, ok := p.op.(*normalize); ok && n.removed {
		p.index = l.node(p.in[0], path)
		return p.index
	}
	id, below := l.id(p, path)
	n := &exec.Node{ID: checkpoint.OperatorID(id), Name: p.op.label(), Parallelism: p.par}
	for i, in := range p.in {
		sub := below
		if len(p.in) > 1 {
			sub = fmt.Sprintf("%s.%d", below, i)
		}
		e := p.ship[i]
		e.From = l.node(in, sub)
		n.Inputs = append(n.Inputs, e)
	}
	l.fill(n, p)
	p.id, p.index = id, len(l.g.Nodes)
	l.g.Nodes = append(l.g.Nodes, n)
	l.fingerprint(p)
	return p.index
}

// id names p, and gives the path that names what is below it. Operators without state do not lengthen the path: state
// survives when one appears or disappears.
func (l *lowering) id(p *phys, path string) (id, below string) {
	kind := ""
	switch n := p.op.(type) {
	case *Scan:
		return "source[" + n.Info.ID + "]", ""
	case *Sink:
		id = "sink[" + n.Target.ID + "]"
		return id, id
	case *Calc:
		kind = "calc"
	case *constraint:
		kind = "constraint"
	case *dropBefore:
		kind = "drop-before"
	case *Values:
		kind = "values"
	case *Aggregate:
		kind = "aggregate"
	case *WindowAggregate:
		kind = "window"
	case *WindowTVF:
		kind = "tvf"
	case *Union:
		kind = "union"
	case *Sort:
		kind = "sort"
	case *normalize:
		kind = "normalize"
	case *materialize:
		kind = "materialize"
	}
	id = path + "/" + kind
	for l.used[id] {
		id += "+"
	}
	l.used[id] = true
	if stateful(p) || kind == "union" {
		return id, id
	}
	return id, path
}

// stateful reports an operator with state in checkpoints.
func stateful(p *phys) bool {
	switch n := p.op.(type) {
	case *Aggregate, *WindowAggregate, *Sort, *materialize:
		return true
	case *normalize:
		return !n.removed
	}
	return false
}

// fingerprint adds what a checkpoint depends on: names of sources and sinks, and stateful operators with everything that
// decides what is in their state. Filters and projections of stateless jobs may change between runs.
func (l *lowering) fingerprint(p *phys) {
	switch n := p.op.(type) {
	case *Scan:
		l.print = append(l.print, p.id+" "+n.Info.Table.Connector())
	case *Sink:
		l.print = append(l.print, p.id+" "+n.Target.Connector.Name)
	default:
		if stateful(p) {
			l.print = append(l.print, p.id+" "+p.describe(true))
		}
	}
}

// describe is the subtree of p as text, types included.
func (p *phys) describe(top bool) string {
	s := p.op.label()
	for _, f := range p.fields {
		s += " " + f.Type.String()
	}
	for _, in := range p.in {
		if _, ok := in.op.(*Scan); ok && !top {
			s += " <- " + in.op.(*Scan).Info.ID
			continue
		}
		s += " <- " + in.describe(false)
	}
	return s
}

// fill sets the node's work.
func (l *lowering) fill(n *exec.Node, p *phys) {
	n.Output = schemaOf(p.fields)
	var in *types.Schema
	var mode types.ChangelogMode
	if len(p.in) > 0 {
		in, mode = schemaOf(p.in[0].fields), p.in[0].trait.Mode()
	}
	before := p.trait.Update == BeforeAndAfter
	ttl := l.b.conf.StateTTL().Milliseconds()
	switch x := p.op.(type) {
	case *Scan:
		n.Source = l.source(x)
	case *Values:
		n.Source = valuesSource(x, l.b.session)
	case *Sink:
		n.Output = nil
		n.Sink = l.sink(x, p)
	case *Calc:
		n.Operator = op.NewCalc(op.CalcSpec{Filter: x.Cond, Project: x.Exprs, Session: l.b.session})
	case *Aggregate:
		n.Operator = op.NewGroupAggregate(op.GroupAggSpec{Input: in, Keys: x.Keys, Aggs: x.Aggs, InputMode: mode,
			EmitUpdateBefore: before, TTL: ttl, Output: n.Output})
	case *WindowAggregate:
		n.Operator = op.NewWindowAggregate(op.WindowAggSpec{Input: in, Keys: x.Keys, Aggs: x.Aggs, Time: x.Window.Time,
			Size: x.Window.Size, Offset: x.Window.Offset, InputMode: mode, Session: l.b.session, Output: n.Output})
	case *WindowTVF:
		n.Operator = op.NewWindowTVF(op.WindowTVFSpec{Input: in, Time: x.Window.Time, Size: x.Window.Size,
			Offset: x.Window.Offset, Session: l.b.session, Output: n.Output})
	case *Union:
		n.Operator = op.NewUnion()
	case *Sort:
		n.Operator = sortOperator(x, in, mode)
	case *normalize:
		n.Operator = op.NewNormalize(op.NormalizeSpec{Input: in, Key: x.Key, EmitUpdateBefore: before, TTL: ttl})
	case *materialize:
		n.Operator = op.NewMaterialize(op.MaterializeSpec{Input: in, Key: x.Key, InputKey: x.InputKey, TTL: ttl})
	case *dropBefore:
		n.Operator = op.NewDropUpdateBefore()
	case *constraint:
		rule := map[string]op.LengthRule{"IGNORE": op.LengthIgnore, "TRIM_PAD": op.LengthTrimPad, "ERROR": op.LengthError}[x.Length]
		n.Operator = op.NewConstraint(op.ConstraintSpec{Table: x.Target.Table.Name, Input: n.Output, NotNull: x.notNull(), DropNull: x.Drop, Length: rule})
	}
}

func sortOperator(s *Sort, in *types.Schema, mode types.ChangelogMode) func() exec.Operator {
	if len(s.Keys) == 0 && mode == types.AppendOnly && s.Limit >= 0 {
		return op.NewLimit(op.LimitSpec{Limit: s.Limit, Offset: s.Offset})
	}
	spec := op.SortSpec{Input: in, InputMode: mode, Limit: s.Limit, Offset: s.Offset}
	for _, k := range s.Keys {
		spec.Keys = append(spec.Keys, op.SortKey{Col: k.Col, Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return op.NewSort(spec)
}

// source is the scan: the connector reads the physical and metadata columns that the output needs, computed columns are
// made from them.
func (l *lowering) source(s *Scan) *exec.SourceNode {
	info := s.Info
	var read []int
	add := func(cols ...int) {
		for _, c := range cols {
			if !slices.Contains(read, c) {
				read = append(read, c)
			}
		}
	}
	computed := false
	for _, c := range s.Cols {
		if info.Computed[c] == nil {
			add(c)
			continue
		}
		computed = true
		add(expr.ColumnsOf(info.Computed[c])...)
	}
	if len(read) == 0 {
		read = []int{firstStored(info.Table)}
	}
	slices.Sort(read)
	n := &exec.SourceNode{Connector: info.Connector, Spec: connectors.SourceSpec{Table: info.Table, Columns: read,
		Schema: selectColumns(info.Table.Schema(), read), Session: l.b.session, Embedded: l.o.Embedded}}
	stored := make([]expr.Expr, len(info.Fields)) // a column of the table, over what the connector reads
	for i, c := range read {
		stored[c] = &expr.Column{Index: i, Name: info.Fields[c].Name, T: info.Fields[c].Type}
		if t, other := info.Supplied[c]; other {
			computed = true
			n.Spec.Schema.Columns[i].Type = t
			stored[c], _ = expr.NewCast(&expr.Column{Index: i, Name: info.Fields[c].Name, T: t}, info.Fields[c].Type, false) // suppliedTypes checked it
		}
	}
	if computed || !slices.Equal(read, s.Cols) {
		for _, c := range s.Cols {
			e := stored[c]
			if info.Computed[c] != nil {
				e = substitute(info.Computed[c], stored)
			}
			n.Rows = append(n.Rows, e)
		}
	}
	if s.Pushed != nil && !slices.ContainsFunc(expr.ColumnsOf(s.Pushed), func(c int) bool { return !slices.Contains(read, c) }) {
		n.Spec.Filter = substitute(s.Pushed, stored)
	}
	if info.Rowtime >= 0 {
		n.Watermark = l.watermark(s)
	}
	return n
}

// firstStored is a column to count rows by when only constants are computed.
func firstStored(t *catalog.Table) int {
	for i, c := range t.Columns {
		if c.Kind == catalog.Physical {
			return i
		}
	}
	return 0
}

// watermark is the watermark over the scan's output, with the options of the table over those of the session.
func (l *lowering) watermark(s *Scan) *exec.WatermarkSpec {
	at := make([]int, len(s.Info.Fields))
	for i, c := range s.Cols {
		at[c] = i
	}
	w := &exec.WatermarkSpec{
		Expr: expr.Remap(s.Info.Watermark, at), Column: at[s.Info.Rowtime],
		Interval:  l.b.conf.Duration(keyAutoWatermark).Milliseconds(),
		IdleAfter: l.b.conf.Duration(keyIdleTimeout).Milliseconds(),
	}
	w.OnEvent = w.Interval == 0
	if v, ok := s.Info.Table.Options.Get("scan.watermark.emit.strategy"); ok {
		w.OnEvent = strings.EqualFold(v, "on-event")
	}
	if v, ok := s.Info.Table.Options.Get("scan.watermark.idle-timeout"); ok {
		if d, err := connectors.ParseDuration(v); err == nil {
			w.IdleAfter = d.Milliseconds()
		}
	}
	return w
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
