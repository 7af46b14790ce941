package planner

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// WindowRank is the Top-N of every window: of every partition, which holds the window's start and end, the rows at the
// places From to To of the order. They leave when the window ends. The first row by the time attribute is a deduplication.
type WindowRank struct {
	In         Node
	Partition  []int
	Order      []SortKey
	From, To   int64
	Number     string // name of the column with the place, "" = not in the output
	Start, End int    // columns of the window
	TimeKind   types.Kind
	Last       bool // of rows equal in the order the last to arrive is the first
	Pos        diag.Pos
}

// Inputs implements Node.
func (n *WindowRank) Inputs() []Node { return []Node{n.In} }

func (n *WindowRank) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. Time attributes stay.
func (n *WindowRank) Fields() []Field { return rankFields(n.In.Fields(), n.Number) }

func (n *WindowRank) label() string {
	in := n.In.Fields()
	s := fmt.Sprintf("WindowRank(rows=[%d to %d], partitionBy=[%s], orderBy=[%s]", n.From, n.To, keyNames(in, n.Partition), orderText(n.Order, in))
	if n.Last {
		s += ", ties=[last]"
	}
	if n.Number != "" {
		s += ", number=[" + n.Number + "]"
	}
	return s + ")"
}

func (n *WindowRank) identity(w *identity) {
	w.put("partition", n.Partition)
	w.put("order", n.Order)
	w.put("rows", n.From, n.To)
	w.put("window", n.Start, n.End)
	w.put("number", n.Number != "")
	w.put("last", n.Last)
}

func (n *WindowRank) slug() string   { return "windowrank" }
func (n *WindowRank) stateful() bool { return true }
func (n *WindowRank) updates() bool  { return false }

// passWindow implements windowPasser: rows keep their window, and leave before the watermark that ends it.
func (n *WindowRank) passWindow(c int) (Node, int, bool) { return n.In, c, c < len(n.In.Fields()) }

func (n *WindowRank) modify(*phys, Kinds) Kinds { return Inserts }

func (n *WindowRank) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

// upsertKeys: a key of the input stays one if all rows of it are of one partition.
func (n *WindowRank) upsertKeys(p *phys) [][]int {
	partition := append([]int{}, n.Partition...)
	slices.Sort(partition)
	if n.From == n.To {
		return [][]int{partition}
	}
	var out [][]int
	for _, k := range p.in[0].keys {
		if subset(n.Partition, k) {
			out = append(out, k)
		}
	}
	if n.Number != "" {
		out = append(out, append(partition, len(p.in[0].fields)))
	}
	return out
}

func (n *WindowRank) distribute(b *builder, p *phys) error {
	if kinds := p.in[0].trait.Kinds &^ Inserts; kinds != 0 {
		return diag.New(diag.Semantic, n.Pos, "a Top-N of windows does not support consuming %s changes produced by %s",
			kinds.words(), origin(p.in[0]).op.label()).
			WithDetail("its rows leave once, when their window ends, and cannot be taken back").
			WithHint("aggregate by window_start and window_end first, whose results are final, or leave them out of PARTITION BY")
	}
	b.keyed(p, n.Partition)
	p.dist = slices.Clone(n.Partition)
	return nil
}

func (n *WindowRank) prune(need []bool) (Node, []int) {
	width := len(n.In.Fields())
	in := slices.Clone(need[:width])
	markRank(in, n.Partition, n.Order)
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Partition, c.Order, c.Start, c.End = x, remapInts(n.Partition, im), remapOrder(n.Order, im), im[n.Start], im[n.End]
	m := slices.Clone(im)
	if n.Number != "" {
		if need[width] {
			m = append(m, len(x.Fields()))
		} else {
			c.Number = ""
			m = append(m, -1)
		}
	}
	return &c, m
}

func (n *WindowRank) lower(l *lowering, x *exec.Node, p *phys) {
	x.Operator = op.NewWindowRank(op.WindowRankSpec{Input: p.schema(0), WindowEnd: n.End, Partition: n.Partition, Order: opKeys(n.Order),
		From: n.From, To: n.To, LastOfEqual: n.Last, Number: n.Number != "", InstantEnd: n.TimeKind == types.TimestampLTZ,
		Session: l.b.session, Output: x.Output})
}
