package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// WindowAggregate groups by keys and window: output is keys, aggregates, window_start, window_end, window_time. With a
// window of kind op.Attached the rows have been given their window further down.
type WindowAggregate struct {
	In     Node
	Keys   []int
	Aggs   []expr.Agg
	Names  []string
	Window window
	global bool // its input is a localAggregate
}

func (n *WindowAggregate) Inputs() []Node { return []Node{n.In} }

func (n *WindowAggregate) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *WindowAggregate) Fields() []Field {
	w := n.Window.fields()
	return append(aggFields(n.In.Fields(), n.Keys, n.Aggs, n.Names), w[:]...)
}

func (n *WindowAggregate) label() string {
	sel := strings.TrimPrefix(aggList(n.Aggs, n.Names)+", window_start, window_end, window_time", ", ")
	return fmt.Sprintf("WindowAggregate(groupBy=[%s], window=[%s], select=[%s])",
		keyNames(n.In.Fields(), n.Keys), n.Window.text(n.In.Fields()), sel)
}

func (n *WindowAggregate) identity(w *identity) {
	w.put("keys", n.Keys)
	w.put("aggs", n.Aggs)
	w.put("window", n.Window)
}

func (n *WindowAggregate) physicalLabel() string {
	if n.global {
		return "Global" + n.label()
	}
	return n.label()
}

func (n *WindowAggregate) slug() string   { return "window" }
func (n *WindowAggregate) stateful() bool { return true }
func (n *WindowAggregate) updates() bool  { return false }

func (n *WindowAggregate) modify(*phys, Kinds) Kinds { return Inserts }

func (n *WindowAggregate) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

// upsertKeys are the group keys with what tells windows apart: windows of CUMULATE share starts, attached ones may share
// starts or ends, and where the clock is put forward several windows end at one instant.
func (n *WindowAggregate) upsertKeys(*phys) [][]int {
	k, w := len(n.Keys), len(n.Keys)+len(n.Aggs)
	key := func(more ...int) []int { return append(upTo(0, k), more...) }
	switch n.Window.Kind {
	case op.Attached:
		return [][]int{key(w, w+1)}
	case op.Cumulate:
		return [][]int{key(w + 1)}
	case op.Hop:
		return [][]int{key(w), key(w + 1)}
	}
	return [][]int{key(w), key(w + 1), key(w + 2)}
}

func (n *WindowAggregate) distribute(b *builder, p *phys) error {
	if err := retractable(n.Aggs, p.in[0]); err != nil {
		return err
	}
	b.keyed(p, n.Keys)
	p.dist = upTo(0, len(n.Keys))
	w := n.Window
	if w.Kind == op.Session {
		return nil // Flink has one phase for them too
	}
	if b.splitPhases(p, &localAggregate{In: n.In, Keys: n.Keys, Aggs: n.Aggs, Names: n.Names, Window: &w}) {
		c := *n
		c.global, p.op = true, &c
	}
	return nil
}

func (n *WindowAggregate) prune(need []bool) (Node, []int) {
	in := make([]bool, len(n.In.Fields()))
	n.Window.reads(in)
	aggs, m := keepAggs(n.Keys, n.Aggs, need, in)
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Keys, c.Window = x, remapInts(n.Keys, im), n.Window.remap(im)
	c.Aggs, c.Names = remapAggs(n.Aggs, aggs, im), pick(n.Names, aggs)
	for i := range 3 {
		m = append(m, len(n.Keys)+len(aggs)+i)
	}
	return &c, m
}

func (n *WindowAggregate) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewWindowAggregate(op.WindowAggSpec{Input: p.schema(0), Keys: n.Keys, Aggs: n.Aggs, Window: n.Window.lower(),
		InputMode: p.mode(0), Session: l.b.session, Output: x.Output, Partial: partial(p)})
}
