package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// window is a TUMBLE specification over rowtime column Time of the input; size and offset in milliseconds.
type window struct {
	Time         int
	Size, Offset int64
}

func (w window) text(in []Field) string {
	s := fmt.Sprintf("TUMBLE(%s, %s", in[w.Time].Name, millis(w.Size))
	if w.Offset != 0 {
		s += ", offset " + millis(w.Offset)
	}
	return s + ")"
}

// WindowTVF is TUMBLE(TABLE in, DESCRIPTOR(t), size): it appends window_start, window_end and window_time.
type WindowTVF struct {
	In     Node
	Window window
}

func (n *WindowTVF) Inputs() []Node { return []Node{n.In} }

func (n *WindowTVF) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

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

func (n *WindowTVF) label() string {
	return fmt.Sprintf("WindowTVF(window=[%s])", n.Window.text(n.In.Fields()))
}

// WindowAggregate groups by keys and tumbling window: output is keys, aggregates, window_start, window_end, window_time.
type WindowAggregate struct {
	In     Node
	Keys   []int
	Aggs   []expr.Agg
	Names  []string
	Window window
}

func (n *WindowAggregate) Inputs() []Node { return []Node{n.In} }

func (n *WindowAggregate) withInputs(in []Node) Node {
	c := *n
	c.In = in[0]
	return &c
}

// Fields implements Node.
func (n *WindowAggregate) Fields() []Field {
	in := n.In.Fields()
	out := aggFields(in, n.Keys, n.Aggs, n.Names)
	s, e, t := windowFields(in[n.Window.Time].Type)
	return append(out, s, e, t)
}

func (n *WindowAggregate) label() string {
	sel := strings.TrimPrefix(aggList(n.Aggs, n.Names)+", window_start, window_end, window_time", ", ")
	return fmt.Sprintf("WindowAggregate(groupBy=[%s], window=[%s], select=[%s])",
		keyNames(n.In.Fields(), n.Keys), n.Window.text(n.In.Fields()), sel)
}

// windowFields are window_start, window_end and window_time for a rowtime of type t. The bounds are wall clock.
func windowFields(t types.Type) (start, end, time Field) {
	bound := types.TimestampOf(types.Timestamp, 3).NotNull()
	return Field{Name: "window_start", Type: bound}, Field{Name: "window_end", Type: bound},
		Field{Name: "window_time", Type: types.TimestampOf(t.Kind, 3).NotNull(), Time: Rowtime}
}

func (n *WindowTVF) slug() string   { return "tvf" }
func (n *WindowTVF) stateful() bool { return false }
func (n *WindowTVF) physicalLabel() string {
	return strings.Replace(n.label(), "WindowTVF", "WindowTableFunction", 1)
}

func (n *WindowTVF) pushFilter(c expr.Expr) (Node, bool) {
	if !below(c, len(n.In.Fields())) {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, c)}), true
}

func (n *WindowTVF) prune(need []bool) (Node, []int) {
	width := len(n.In.Fields())
	in := slices.Clone(need[:width])
	in[n.Window.Time] = true
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Window.Time = x, im[n.Window.Time]
	w := len(x.Fields())
	return &c, append(slices.Clone(im), w, w+1, w+2)
}

func (n *WindowTVF) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewWindowTVF(op.WindowTVFSpec{Input: p.schema(0), Time: n.Window.Time, Size: n.Window.Size,
		Offset: n.Window.Offset, Session: l.b.session, Output: x.Output})
}

func (n *WindowAggregate) slug() string   { return "window" }
func (n *WindowAggregate) stateful() bool { return true }
func (n *WindowAggregate) updates() bool  { return false }

func (n *WindowAggregate) modify(*phys, Kinds) Kinds { return Inserts }

func (n *WindowAggregate) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

// upsertKeys are the group keys with one of the window's columns.
func (n *WindowAggregate) upsertKeys(*phys) [][]int {
	k, w := len(n.Keys), len(n.Keys)+len(n.Aggs)
	var out [][]int
	for i := range 3 {
		out = append(out, append(upTo(0, k), w+i))
	}
	return out
}

func (n *WindowAggregate) distribute(b *builder, p *phys) error {
	b.keyed(p, n.Keys)
	p.dist = upTo(0, len(n.Keys))
	return nil
}

func (n *WindowAggregate) prune(need []bool) (Node, []int) {
	in := make([]bool, len(n.In.Fields()))
	in[n.Window.Time] = true
	aggs, m := keepAggs(n.Keys, n.Aggs, need, in)
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Keys, c.Window.Time = x, remapInts(n.Keys, im), im[n.Window.Time]
	c.Aggs, c.Names = remapAggs(n.Aggs, aggs, im), pick(n.Names, aggs)
	for i := range 3 {
		m = append(m, len(n.Keys)+len(aggs)+i)
	}
	return &c, m
}

func (n *WindowAggregate) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewWindowAggregate(op.WindowAggSpec{Input: p.schema(0), Keys: n.Keys, Aggs: n.Aggs, Time: n.Window.Time,
		Size: n.Window.Size, Offset: n.Window.Offset, InputMode: p.mode(0), Session: l.b.session, Output: x.Output})
}
