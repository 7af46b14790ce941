package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/types"
)

// Sort orders a bounded input and keeps Limit rows after Offset; Limit -1 keeps all.
type Sort struct {
	In            Node
	Keys          []SortKey
	Limit, Offset int64
}

func (n *Sort) Inputs() []Node { return []Node{n.In} }

func (n *Sort) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Sort) Fields() []Field { return n.In.Fields() }

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

func (n *Sort) identity(w *identity) {
	w.put("keys", n.Keys)
	w.put("rows", n.Limit, n.Offset)
}

// SortKey is one ORDER BY column.
type SortKey struct {
	Col        int
	Desc       bool
	NullsFirst bool
}

func (n *Sort) slug() string   { return "sort" }
func (n *Sort) stateful() bool { return true }
func (n *Sort) updates() bool  { return false }
func (n *Sort) physicalLabel() string {
	s := n.label()
	if len(n.Keys) == 0 {
		s = strings.Replace(s, "Sort(orderBy=[], ", "Limit(", 1)
		s = strings.Replace(s, "Sort(orderBy=[]", "FinalTable(", 1)
	}
	return s
}

func (n *Sort) modify(*phys, Kinds) Kinds { return Inserts }

func (n *Sort) settle(p *phys, _ demand, _ *Trait, apply bool) bool {
	return p.settleInput(0, full, apply)
}

func (n *Sort) upsertKeys(p *phys) [][]int { return p.in[0].keys }

func (n *Sort) distribute(b *builder, p *phys) error {
	b.exchange(p, 0, 1, nil)
	p.par = 1
	return nil
}

func (n *Sort) prune(need []bool) (Node, []int) {
	in := slices.Clone(need)
	for _, k := range n.Keys {
		in[k.Col] = true
	}
	x, im := prune(n.In, in)
	c := *n
	c.In, c.Keys = x, slices.Clone(n.Keys)
	for i := range c.Keys {
		c.Keys[i].Col = im[c.Keys[i].Col]
	}
	return &c, im
}

func (n *Sort) lower(_ *lowering, x *exec.Node, p *phys) {
	x.Operator = sortOperator(n, p.schema(0), p.mode(0))
}

// firstRows reports that the sort is the first rows of its input as they come.
func (n *Sort) firstRows(mode types.ChangelogMode) bool {
	return len(n.Keys) == 0 && mode == types.AppendOnly && n.Limit >= 0
}

func (n *Sort) atEnd(p *phys) bool { return !n.firstRows(p.mode(0)) }

func sortOperator(s *Sort, in *types.Schema, mode types.ChangelogMode) func() exec.Operator {
	if s.firstRows(mode) {
		return op.NewLimit(op.LimitSpec{Limit: s.Limit, Offset: s.Offset})
	}
	spec := op.SortSpec{Input: in, InputMode: mode, Limit: s.Limit, Offset: s.Offset}
	for _, k := range s.Keys {
		spec.Keys = append(spec.Keys, op.SortKey{Col: k.Col, Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return op.NewSort(spec)
}
