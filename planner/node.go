package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// TimeAttr marks a column that carries time (Flink: time attribute).
type TimeAttr uint8

// The attributes.
const (
	NoTime   TimeAttr = iota
	Rowtime           // event time: watermarks speak about it
	Proctime          // the wall clock when the row is read
)

// Field is a column of a node's output.
type Field struct {
	Name string
	Type types.Type
	Time TimeAttr
}

// typeText is the type as EXPLAIN and DESCRIBE print it.
func (f Field) typeText() string {
	switch f.Time {
	case Rowtime:
		return f.Type.String() + " *ROWTIME*"
	case Proctime:
		return f.Type.String() + " *PROCTIME*"
	}
	return f.Type.String()
}

func schemaOf(fields []Field) *types.Schema {
	s := &types.Schema{Columns: make([]types.Column, len(fields))}
	for i, f := range fields {
		s.Columns[i] = types.Column{Name: f.Name, Type: f.Type}
	}
	return s
}

func fieldNames(fields []Field) []string {
	out := make([]string, len(fields))
	for i, f := range fields {
		out[i] = f.Name
	}
	return out
}

// col is a reference to output column i of fields.
func col(fields []Field, i int) expr.Expr {
	return &expr.Column{Index: i, Name: fields[i].Name, T: fields[i].Type}
}

// Node is a node of the logical plan: a tree, immutable; rules build new nodes.
type Node interface {
	// Fields is the output.
	Fields() []Field
	// Inputs are the nodes read, in port order.
	Inputs() []Node
	// withInputs is a copy that reads other inputs of the same shape.
	withInputs(in []Node) Node
	// label is the node in EXPLAIN, without its inputs.
	label() string
}

// Scan reads a table: the columns Cols (positions in the table), computed ones included.
type Scan struct {
	Info *tableInfo
	Cols []int
	// Pushed is the part of the filters above that the source may apply early, over the table's columns by their
	// position in the table; nil = none. The filters above stay.
	Pushed expr.Expr
}

// Values are constant rows.
type Values struct {
	Rows   [][]expr.Expr
	Schema []Field
}

// Filter keeps the rows for which Cond is TRUE.
type Filter struct {
	In   Node
	Cond expr.Expr
}

// Project computes Exprs over each row.
type Project struct {
	In    Node
	Exprs []expr.Expr
	Names []string
}

// Aggregate groups by the columns Keys; the output is the keys, then the aggregates. No keys: one global group.
// Distinct marks SELECT DISTINCT and UNION.
type Aggregate struct {
	In       Node
	Keys     []int
	Aggs     []expr.Agg
	Names    []string // of the aggregates
	Distinct bool
}

// window is a TUMBLE specification over rowtime column Time of the input; size and offset in milliseconds.
type window struct {
	Time         int
	Size, Offset int64
}

// WindowTVF is TUMBLE(TABLE in, DESCRIPTOR(t), size): it appends window_start, window_end and window_time.
type WindowTVF struct {
	In     Node
	Window window
}

// WindowAggregate groups by keys and tumbling window: output is keys, aggregates, window_start, window_end, window_time.
type WindowAggregate struct {
	In     Node
	Keys   []int
	Aggs   []expr.Agg
	Names  []string
	Window window
}

// Calc filters by Cond (nil = all rows) and then projects: what a chain of Filter and Project becomes.
type Calc struct {
	In    Node
	Cond  expr.Expr
	Exprs []expr.Expr
	Names []string
}

// Union is UNION ALL: rows of all inputs, whose types agree.
type Union struct {
	Ins []Node
	Out []Field
}

// Sort orders a bounded input and keeps Limit rows after Offset; Limit -1 keeps all.
type Sort struct {
	In            Node
	Keys          []SortKey
	Limit, Offset int64
}

// SortKey is one ORDER BY column.
type SortKey struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

// Sink writes its input to a table.
type Sink struct {
	In     Node
	Target *sinkTarget
}

// Inputs implements Node.
func (n *Scan) Inputs() []Node            { return nil }
func (n *Values) Inputs() []Node          { return nil }
func (n *Filter) Inputs() []Node          { return []Node{n.In} }
func (n *Project) Inputs() []Node         { return []Node{n.In} }
func (n *Aggregate) Inputs() []Node       { return []Node{n.In} }
func (n *WindowTVF) Inputs() []Node       { return []Node{n.In} }
func (n *WindowAggregate) Inputs() []Node { return []Node{n.In} }
func (n *Calc) Inputs() []Node            { return []Node{n.In} }
func (n *Union) Inputs() []Node           { return n.Ins }
func (n *Sort) Inputs() []Node            { return []Node{n.In} }
func (n *Sink) Inputs() []Node            { return []Node{n.In} }

func (n *Scan) withInputs([]Node) Node         { return n }
func (n *Values) withInputs([]Node) Node       { return n }
func (n *Filter) withInputs(in []Node) Node    { c := *n; c.In = in[0]; return &c }
func (n *Project) withInputs(in []Node) Node   { c := *n; c.In = in[0]; return &c }
func (n *Aggregate) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }
func (n *WindowTVF) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }
func (n *WindowAggregate) withInputs(in []Node) Node {
	c := *n
	c.In = in[0]
	return &c
}
func (n *Calc) withInputs(in []Node) Node  { c := *n; c.In = in[0]; return &c }
func (n *Union) withInputs(in []Node) Node { c := *n; c.Ins = in; return &c }
func (n *Sort) withInputs(in []Node) Node  { c := *n; c.In = in[0]; return &c }
func (n *Sink) withInputs(in []Node) Node  { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Scan) Fields() []Field {
	out := make([]Field, len(n.Cols))
	for i, c := range n.Cols {
		out[i] = n.Info.Fields[c]
	}
	return out
}

// Fields implements Node.
func (n *Values) Fields() []Field { return n.Schema }

// Fields implements Node.
func (n *Filter) Fields() []Field { return n.In.Fields() }

// Fields implements Node. A plain column keeps its time attribute; anything computed from it loses it.
func (n *Project) Fields() []Field { return projectFields(n.In.Fields(), n.Exprs, n.Names) }

// Fields implements Node.
func (n *Calc) Fields() []Field { return projectFields(n.In.Fields(), n.Exprs, n.Names) }

func projectFields(in []Field, exprs []expr.Expr, names []string) []Field {
	out := make([]Field, len(exprs))
	for i, e := range exprs {
		out[i] = Field{Name: names[i], Type: e.Type()}
		if c, ok := e.(*expr.Column); ok {
			out[i].Time = in[c.Index].Time
		} else if isProctime(e) {
			out[i].Time = Proctime
		}
	}
	return out
}

// Fields implements Node. Grouping loses time attributes, but for window_time beside window_start and window_end.
func (n *Aggregate) Fields() []Field {
	out := aggFields(n.In.Fields(), n.Keys, n.Aggs, n.Names)
	if !n.windowed() {
		return out
	}
	for i, k := range n.Keys {
		if tvf, c := traceWindow(n.In, k); tvf != nil && c == len(tvf.In.Fields())+2 {
			out[i].Time = Rowtime
		}
	}
	return out
}

func aggFields(in []Field, keys []int, aggs []expr.Agg, names []string) []Field {
	out := make([]Field, 0, len(keys)+len(aggs))
	for _, k := range keys {
		out = append(out, Field{Name: in[k].Name, Type: in[k].Type})
	}
	for i, a := range aggs {
		out = append(out, Field{Name: names[i], Type: a.Type})
	}
	return out
}

// windowFields are window_start, window_end and window_time for a rowtime of type t. The bounds are wall clock.
func windowFields(t types.Type) (start, end, time Field) {
	bound := types.TimestampOf(types.Timestamp, 3).NotNull()
	return Field{Name: "window_start", Type: bound}, Field{Name: "window_end", Type: bound},
		Field{Name: "window_time", Type: types.TimestampOf(t.Kind, 3).NotNull(), Time: Rowtime}
}

// Fields implements Node. The rowtime of the input is a plain timestamp beside window_time.
func (n *WindowTVF) Fields() []Field {
	in := n.In.Fields()
	out := append([]Field(nil), in...)
	for i := range out {
		if out[i].Time == Rowtime {
			out[i].Time = NoTime
		}
	}
	s, e, t := windowFields(in[n.Window.Time].Type)
	return append(out, s, e, t)
}

// Fields implements Node.
func (n *WindowAggregate) Fields() []Field {
	in := n.In.Fields()
	out := aggFields(in, n.Keys, n.Aggs, n.Names)
	s, e, t := windowFields(in[n.Window.Time].Type)
	return append(out, s, e, t)
}

// Fields implements Node.
func (n *Union) Fields() []Field { return n.Out }

// Fields implements Node.
func (n *Sort) Fields() []Field { return n.In.Fields() }

// Fields implements Node.
func (n *Sink) Fields() []Field { return n.In.Fields() }

func exprList(list []expr.Expr) string {
	s := make([]string, len(list))
	for i, e := range list {
		s[i] = e.String()
	}
	return strings.Join(s, ", ")
}

func (n *Scan) label() string {
	s := fmt.Sprintf("Scan(table=[%s], columns=[%s]", n.Info.Table.Name, strings.Join(fieldNames(n.Fields()), ", "))
	if n.Pushed != nil {
		s += fmt.Sprintf(", filter=[%s]", n.Pushed)
	}
	return s + ")"
}

func (n *Values) label() string {
	rows := make([]string, len(n.Rows))
	for i, r := range n.Rows {
		rows[i] = "{" + exprList(r) + "}"
	}
	if len(rows) > 8 {
		rows = append(rows[:8:8], fmt.Sprintf("… %d rows", len(n.Rows)))
	}
	return fmt.Sprintf("Values(rows=[%s])", strings.Join(rows, ", "))
}

func (n *Filter) label() string { return fmt.Sprintf("Filter(condition=[%s])", n.Cond) }

func projection(list []expr.Expr, names []string) string {
	s := make([]string, len(list))
	for i, e := range list {
		s[i] = e.String()
		if s[i] != names[i] {
			s[i] += " AS " + names[i]
		}
	}
	return strings.Join(s, ", ")
}

func (n *Calc) label() string {
	s := "Calc(select=[" + projection(n.Exprs, n.Names) + "]"
	if n.Cond != nil {
		s += ", where=[" + n.Cond.String() + "]"
	}
	return s + ")"
}

func (n *Project) label() string {
	return fmt.Sprintf("Project(select=[%s])", projection(n.Exprs, n.Names))
}

func keyNames(fields []Field, keys []int) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = fields[k].Name
	}
	return strings.Join(s, ", ")
}

func aggList(aggs []expr.Agg, names []string) string {
	s := make([]string, len(aggs))
	for i, a := range aggs {
		s[i] = a.Text + " AS " + names[i]
	}
	return strings.Join(s, ", ")
}

func (n *Aggregate) label() string {
	return fmt.Sprintf("Aggregate(groupBy=[%s], select=[%s])", keyNames(n.In.Fields(), n.Keys), aggList(n.Aggs, n.Names))
}

func (w window) text(in []Field) string {
	s := fmt.Sprintf("TUMBLE(%s, %s", in[w.Time].Name, millis(w.Size))
	if w.Offset != 0 {
		s += ", offset " + millis(w.Offset)
	}
	return s + ")"
}

// millis prints milliseconds in the largest unit that divides them.
func millis(ms int64) string {
	for _, u := range []struct {
		n    int64
		name string
	}{{86400000, "d"}, {3600000, "h"}, {60000, "min"}, {1000, "s"}} {
		if ms != 0 && ms%u.n == 0 {
			return fmt.Sprintf("%d %s", ms/u.n, u.name)
		}
	}
	return fmt.Sprintf("%d ms", ms)
}

func (n *WindowTVF) label() string {
	return fmt.Sprintf("WindowTVF(window=[%s])", n.Window.text(n.In.Fields()))
}

func (n *WindowAggregate) label() string {
	sel := strings.TrimPrefix(aggList(n.Aggs, n.Names)+", window_start, window_end, window_time", ", ")
	return fmt.Sprintf("WindowAggregate(groupBy=[%s], window=[%s], select=[%s])",
		keyNames(n.In.Fields(), n.Keys), n.Window.text(n.In.Fields()), sel)
}

func (n *Union) label() string { return "UnionAll()" }

func (n *Sort) label() string {
	in := n.In.Fields()
	keys := make([]string, len(n.Keys))
	for i, k := range n.Keys {
		dir := "ASC"
		if k.Desc {
			dir = "DESC"
		}
		nulls := "NULLS LAST"
		if k.NullsFirst {
			nulls = "NULLS FIRST"
		}
		keys[i] = in[k.Col].Name + " " + dir + " " + nulls
	}
	s := fmt.Sprintf("Sort(orderBy=[%s]", strings.Join(keys, ", "))
	if n.Limit >= 0 {
		s += fmt.Sprintf(", limit=[%d]", n.Limit)
	}
	if n.Offset > 0 {
		s += fmt.Sprintf(", offset=[%d]", n.Offset)
	}
	return s + ")"
}

func (n *Sink) label() string {
	return fmt.Sprintf("Sink(table=[%s], columns=[%s])", n.Target.Table.Name, strings.Join(n.Target.Columns.Names(), ", "))
}

// tree prints a logical plan, one node per line, inputs indented below their consumer.
func tree(n Node) string {
	var sb strings.Builder
	var walk func(n Node, indent string)
	walk = func(n Node, indent string) {
		sb.WriteString(indent + n.label() + "\n")
		for _, in := range n.Inputs() {
			walk(in, indent+"  ")
		}
	}
	walk(n, "")
	return sb.String()
}
