package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// window is a window function over time column Time of its input, or with Kind op.Attached the windows that the columns
// Start and End name. Durations are milliseconds, with the meaning of op.Window.
type window struct {
	Kind                op.WindowKind
	Time                int
	Size, Slide, Offset int64
	Keys                []int         // SESSION: the PARTITION BY columns
	Start, End          int           // op.Attached
	Of                  op.WindowKind // op.Attached: what the windows are
	TimeKind            types.Kind
	Precision           int // of the time column; 3 where it is less
	Proctime            bool
}

func (w window) text(in []Field) string {
	if w.Kind == op.Attached {
		return fmt.Sprintf("%s, %s", in[w.Start].Name, in[w.End].Name)
	}
	over := in[w.Time].Name
	if len(w.Keys) > 0 {
		over += " PARTITION BY " + keyNames(in, w.Keys)
	}
	return w.describe(over + ", ")
}

// kindText is the window without what it is over.
func (w window) kindText() string { return w.describe("") }

func (w window) describe(over string) string {
	var s string
	switch w.kind() {
	case op.Hop:
		s = fmt.Sprintf("HOP(%sslide %s, size %s", over, millis(w.Slide), millis(w.Size))
	case op.Cumulate:
		s = fmt.Sprintf("CUMULATE(%sstep %s, max %s", over, millis(w.Slide), millis(w.Size))
	case op.Session:
		s = fmt.Sprintf("SESSION(%sgap %s", over, millis(w.Size))
	default:
		s = fmt.Sprintf("TUMBLE(%s%s", over, millis(w.Size))
	}
	if w.Offset != 0 {
		s += ", offset " + millis(w.Offset)
	}
	if w.Proctime {
		s += "; wall clock, results depend on when rows arrive"
	}
	return s + ")"
}

// same reports windows of one specification, whatever column they are over.
func (w window) same(o window) bool {
	return w.kind() == o.kind() && w.Size == o.Size && w.Slide == o.Slide && w.Offset == o.Offset && w.timeType().Equal(o.timeType()) && w.Proctime == o.Proctime
}

// kind is what the windows are, attached or not.
func (w window) kind() op.WindowKind {
	if w.Kind == op.Attached {
		return w.Of
	}
	return w.Kind
}

// remap is w over an input whose columns moved: m maps old ones to new ones.
func (w window) remap(m []int) window {
	if w.Kind == op.Attached {
		w.Start, w.End = m[w.Start], m[w.End]
		return w
	}
	w.Time = m[w.Time]
	if w.Keys != nil {
		w.Keys = remapInts(w.Keys, m)
	}
	return w
}

// reads marks the columns the window needs.
func (w window) reads(need []bool) {
	if w.Kind == op.Attached {
		need[w.Start], need[w.End] = true, true
		return
	}
	need[w.Time] = true
	for _, k := range w.Keys {
		need[k] = true
	}
}

func (w window) lower() op.Window {
	return op.Window{Kind: w.Kind, Time: w.Time, Size: w.Size, Slide: w.Slide, Offset: w.Offset, Start: w.Start, End: w.End,
		TimeType: w.timeType(), Proctime: w.Proctime}
}

// timeType is the type of window_time: that of the column that was windowed.
func (w window) timeType() types.Type { return types.TimestampOf(w.TimeKind, w.Precision) }

// fields are window_start, window_end and window_time. The bounds are wall clock, the time is of the type of the time
// attribute that was windowed.
func (w window) fields() [3]Field {
	bound := types.TimestampOf(types.Timestamp, 3).NotNull()
	t := Field{Name: "window_time", Type: w.timeType().NotNull(), Time: Rowtime}
	if w.Proctime {
		t.Time = Proctime
	}
	return [3]Field{{Name: "window_start", Type: bound}, {Name: "window_end", Type: bound}, t}
}

// WindowTVF is a window table-valued function, TUMBLE(TABLE in, DESCRIPTOR(t), size) or another: it appends window_start,
// window_end and window_time, and gives every row once per window it belongs to.
type WindowTVF struct {
	In     Node
	Window window
	Pos    diag.Pos // of the call
	Legacy bool     // a group window of GROUP BY
}

func (n *WindowTVF) Inputs() []Node { return []Node{n.In} }

func (n *WindowTVF) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. The time column stays a time attribute beside window_time.
func (n *WindowTVF) Fields() []Field {
	w := n.Window.fields()
	return append(append([]Field(nil), n.In.Fields()...), w[:]...)
}

func (n *WindowTVF) label() string {
	return fmt.Sprintf("WindowTVF(window=[%s])", n.Window.text(n.In.Fields()))
}

func (n *WindowTVF) identity(w *identity) { w.put("window", n.Window) }

func (n *WindowTVF) slug() string   { return "tvf" }
func (n *WindowTVF) stateful() bool { return n.Window.Kind == op.Session }
func (n *WindowTVF) physicalLabel() string {
	return strings.Replace(n.label(), "WindowTVF", "WindowTableFunction", 1)
}

// pushFilter moves conditions on the rows below the windows; below sessions only those on what they are partitioned by,
// since a row that is left out can be what joins two sessions.
func (n *WindowTVF) pushFilter(c expr.Expr) (Node, bool) {
	if !below(c, len(n.In.Fields())) {
		return nil, false
	}
	if n.Window.Kind == op.Session && slices.ContainsFunc(expr.ColumnsOf(c), func(i int) bool { return !slices.Contains(n.Window.Keys, i) }) {
		return nil, false
	}
	return n.withInputs([]Node{addFilter(n.In, c)}), true
}

func (n *WindowTVF) prune(need []bool) (Node, []int) {
	width := len(n.In.Fields())
	in := slices.Clone(need[:width])
	n.Window.reads(in)
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Window = x, n.Window.remap(im)
	w := len(x.Fields())
	return &c, append(slices.Clone(im), w, w+1, w+2)
}

// distribute exchanges the rows of sessions by what they are partitioned by.
func (n *WindowTVF) distribute(b *builder, p *phys) error {
	if n.Window.Kind == op.Session {
		b.keyed(p, n.Window.Keys)
		p.dist = n.Window.Keys
		return nil
	}
	p.par, p.dist = p.in[0].par, p.in[0].dist
	return nil
}

func (n *WindowTVF) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewWindowTVF(op.WindowTVFSpec{Input: p.schema(0), Window: n.Window.lower(), Keys: n.Window.Keys,
		Session: l.b.session, Output: x.Output})
}
