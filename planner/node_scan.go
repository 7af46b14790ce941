package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Scan reads a table: the columns Cols (positions in the table), computed ones included, and behind them the fields
// Nested of ROW columns.
type Scan struct {
	Info   *tableInfo
	Cols   []int
	Nested []expr.Expr // FieldRefs over the table's columns; see readFields
	// Pushed is the part of the filters above that the source may apply early, and once scans are shared the part that it does
	// apply, over the table's columns by their position in the table; nil = none. The filters above stay.
	Pushed expr.Expr
	// Unmarked: nothing above acts on event time, so that no watermark is made.
	Unmarked bool
}

// Inputs implements Node.
func (n *Scan) Inputs() []Node { return nil }

func (n *Scan) withInputs([]Node) Node { return n }

// Fields implements Node.
func (n *Scan) Fields() []Field {
	out := make([]Field, len(n.Cols))
	for i, c := range n.Cols {
		out[i] = n.Info.Fields[c]
	}
	for _, e := range n.Nested {
		out = append(out, Field{Name: e.String(), Type: e.Type()})
	}
	return out
}

// stored is what the scan's output is made of: columns of the table and fields of them.
func (n *Scan) stored() []expr.Expr {
	out := make([]expr.Expr, len(n.Cols))
	for i, c := range n.Cols {
		out[i] = col(n.Info.Fields, c)
	}
	return append(out, n.Nested...)
}

func (n *Scan) label() string {
	s := fmt.Sprintf("Scan(table=[%s], columns=[%s]", n.Info.Table.Name, strings.Join(fieldNames(n.Fields()), ", "))
	if n.Pushed != nil {
		s += fmt.Sprintf(", filter=[%s]", n.Pushed)
	}
	return s + ")"
}

// identity names what is read. A column's place in the table says nothing: others may be added before it.
func (n *Scan) identity(w *identity) {
	w.put("table", n.Info.ID)
	for _, e := range n.stored() {
		var names []any
		e = expr.Rewrite(substitute(e, n.Info.definitions()), func(x expr.Expr) expr.Expr {
			c, ok := x.(*expr.Column)
			if !ok {
				return x
			}
			name := "column " + c.Name
			if def := n.Info.Table.Columns[c.Index]; def.Kind == catalog.Metadata {
				name = "metadata " + def.Key
			}
			names = append(names, name)
			return &expr.Column{Index: len(names) - 1, Name: c.Name, T: c.T}
		})
		w.put("read", append([]any{e}, names...)...)
	}
}

// definitions are the columns of the table as expressions over those that are not computed.
func (t *tableInfo) definitions() []expr.Expr {
	out := make([]expr.Expr, len(t.Fields))
	for i, e := range t.Computed {
		if out[i] = e; e == nil {
			out[i] = col(t.Fields, i)
		}
	}
	return out
}

func (n *Scan) slug() string   { return "source" }
func (n *Scan) stateful() bool { return false }
func (n *Scan) updates() bool  { return n.Info.Mode != types.AppendOnly }

func (n *Scan) physicalLabel() string {
	return strings.TrimSuffix("TableSource"+n.label(), ")") + sourceDetail(n) + ")"
}

// marked reports that the scan makes watermarks.
func (n *Scan) marked() bool { return n.Info.Rowtime >= 0 && !n.Info.Batch && !n.Unmarked }

func sourceDetail(n *Scan) string {
	s := ""
	if n.Unmarked && !n.Info.Batch {
		return ", watermark=[unused]"
	}
	if n.marked() {
		s += fmt.Sprintf(", watermark=[%s]", n.Info.Watermark)
		if v, ok := n.Info.Table.Options.Get("scan.watermark.emit.strategy"); ok {
			s += fmt.Sprintf(", watermarkEmitStrategy=[%s]", v)
		}
		if d := n.Info.maxAhead(); d > 0 {
			s += fmt.Sprintf(", maxFutureSkew=[%s]", shortDuration(d))
		}
	}
	return s
}

// modify keeps what the source declares.
func (n *Scan) modify(p *phys, _ Kinds) Kinds { return p.trait.Kinds }

// settle: a scan gives what its source declares; consumers adapt it. It is shared, so nothing is decided here.
func (n *Scan) settle(p *phys, d demand, t *Trait, _ bool) bool {
	*t = p.trait
	return p.trait.Kinds == Inserts || p.trait.Update == d.Update
}

func (n *Scan) upsertKeys(*phys) [][]int { return scanKeys(n) }

func scanKeys(s *Scan) [][]int {
	pk := s.Info.Table.PrimaryKey
	if len(pk) == 0 {
		return nil
	}
	key := make([]int, len(pk))
	for i, name := range pk {
		key[i] = slices.IndexFunc(s.Cols, func(c int) bool { return s.Info.Fields[c].Name == name })
		if key[i] < 0 {
			return nil
		}
	}
	slices.Sort(key)
	return [][]int{key}
}

// readsMetadata reports a metadata column among cols.
func (t *tableInfo) readsMetadata(cols []int) bool {
	return slices.ContainsFunc(cols, func(c int) bool { return t.Table.Columns[c].Kind == catalog.Metadata })
}

func (n *Scan) distribute(b *builder, p *phys) error { return b.scanParallelism(p, n) }

func (b *builder) scanParallelism(p *phys, n *Scan) error {
	p.par = b.conf.Parallelism()
	t := n.Info.Table
	v, ok := t.Options.Get("scan.parallelism")
	if !ok {
		return nil
	}
	k, err := strconv.Atoi(v)
	if err != nil || k < 1 || k > maxParallelism {
		return diag.New(diag.Config, optionPos(t, "scan.parallelism", n.Info.Pos), "table %s: option 'scan.parallelism': '%s' is not valid", t.Name, v).
			WithDetail("a number from 1 to %d is expected", maxParallelism)
	}
	p.par = k
	return nil
}

func (n *Scan) prune(need []bool) (Node, []int) { return pruneScan(n, need) }

// pruneScan keeps what is needed, the rowtime and what its watermark reads, and the key of an upsert source. A scan
// always reads something: rows have to be counted.
func pruneScan(n *Scan, need []bool) (Node, []int) {
	keep := map[int]bool{}
	for i, c := range n.Cols {
		if need[i] {
			keep[c] = true
		}
	}
	if n.Info.Rowtime >= 0 && !n.Unmarked {
		keep[n.Info.Rowtime] = true
		for _, c := range expr.ColumnsOf(n.Info.Watermark) {
			keep[c] = true
		}
	}
	if n.Info.Mode != types.AppendOnly {
		for i, f := range n.Info.Fields {
			if slices.Contains(n.Info.Table.PrimaryKey, f.Name) {
				keep[i] = true
			}
		}
	}
	if len(keep) == 0 {
		keep[cheapest(n)] = true
	}
	s, m := *n, make([]int, len(n.Cols))
	s.Cols = nil
	for i, c := range n.Cols {
		m[i] = -1
		if keep[c] {
			m[i] = len(s.Cols)
			s.Cols = append(s.Cols, c)
		}
	}
	return &s, m
}

// cheapest is the first column of fixed width, else the first.
func cheapest(n *Scan) int {
	for _, c := range n.Cols {
		if n.Info.Computed[c] == nil && n.Info.Fields[c].Type.Phys() != types.PhysStr {
			return c
		}
	}
	return n.Cols[0]
}

func (n *Scan) lower(l *lowering, x *exec.Node, _ *phys) { x.Source = l.source(n) }

// source is the scan: the connector reads the physical and metadata columns that the output needs, or single fields of
// them; computed columns are made from those.
func (l *lowering) source(s *Scan) *exec.SourceNode {
	info := s.Info
	var r reads
	r.info = info
	rows := make([]expr.Expr, 0, len(s.Cols)+len(s.Nested)) // the output over the table's stored columns
	for _, e := range s.stored() {
		if c, ok := e.(*expr.Column); ok && info.Computed[c.Index] != nil {
			e = info.Computed[c.Index]
		}
		rows = append(rows, e)
	}
	r.add(rows...)
	in := r.layout()
	n := &exec.SourceNode{Connector: info.Connector, Spec: connectors.SourceSpec{Table: info.Table, Columns: in.columns, Paths: in.paths,
		Schema: in.schema, Session: l.b.session, Embedded: l.o.Embedded}}
	same := len(rows) == len(in.columns)
	for i, e := range rows {
		e, _ = in.place(e)
		c, ok := e.(*expr.Column)
		same = same && ok && c.Index == i
		n.Rows = append(n.Rows, e)
	}
	if same {
		n.Rows = nil
	}
	n.Spec.Filter, n.Spec.Marked = s.Pushed, s.marked()
	if s.marked() {
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

// onEvent reports that watermarks are made with every row, not now and then.
func (t *tableInfo) onEvent(conf *Config) bool {
	if v, ok := t.Table.Options.Get("scan.watermark.emit.strategy"); ok {
		return strings.EqualFold(v, "on-event")
	}
	return conf.Duration(keyAutoWatermark) == 0
}

// maxAhead is how far rows may lie in the future to count for the watermark; 0 = any time counts.
func (t *tableInfo) maxAhead() time.Duration {
	v, ok := t.Table.Options.Get(keyMaxFutureSkew)
	if !ok {
		return 0
	}
	d, _ := connectors.ParseDuration(v) // checkWatermarkOptions has read it
	return d
}

// pushed is the part of the filters above that the source applies itself. Where a watermark is made with every row, a row that is
// left out could have made a later one late. Nor may rows be left out where the greatest time need not be the one that counts.
func (n *Scan) pushed(conf *Config) expr.Expr {
	push := n.Info.Connector.PushFilter
	if n.Pushed == nil || push == nil || n.marked() && (n.Info.onEvent(conf) || n.Info.maxAhead() > 0) {
		return nil
	}
	var mark expr.Expr
	if n.marked() {
		mark = substitute(n.Info.Watermark, n.Info.definitions())
	}
	return push(n.Info.Table, n.Pushed, mark)
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
		OnEvent:   s.Info.onEvent(l.b.conf),
	}
	if v, ok := s.Info.Table.Options.Get("scan.watermark.idle-timeout"); ok {
		if d, err := connectors.ParseDuration(v); err == nil {
			w.IdleAfter = d.Milliseconds()
		}
	}
	if w.MaxAhead = s.Info.maxAhead().Milliseconds(); w.MaxAhead > 0 && s.Info.Fields[s.Info.Rowtime].Type.Kind == types.Timestamp {
		w.Zone = l.b.conf.Zone()
	}
	return w
}
