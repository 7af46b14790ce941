package planner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/types"
)

// Expand gives every row once per grouping set: the input's columns, those of Nulls[i] as NULL in copy i, and the id
// of the copy as a last column. Aggregations with GROUPING SETS, ROLLUP or CUBE group by it too.
type Expand struct {
	In    Node
	Nulls [][]int // per grouping set, ascending
	IDs   []int64
}

func (n *Expand) Inputs() []Node { return []Node{n.In} }

func (n *Expand) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. A column that is NULL in a copy is no time attribute any more.
func (n *Expand) Fields() []Field {
	out := append([]Field(nil), n.In.Fields()...)
	for i := range out {
		if !n.keeps(i) {
			out[i].Type, out[i].Time = out[i].Type.WithNull(true), NoTime
		}
	}
	return append(out, Field{Name: expandID, Type: types.BigIntType.NotNull()})
}

// expandID names the column of the copy's id.
const expandID = "$e"

// keeps reports that output column c is the input's column c in every copy.
func (n *Expand) keeps(c int) bool {
	return c < len(n.In.Fields()) && !slices.ContainsFunc(n.Nulls, func(s []int) bool { return slices.Contains(s, c) })
}

func (n *Expand) label() string {
	in := n.In.Fields()
	var sets []string
	for i, nulls := range n.Nulls {
		s := make([]string, len(in), len(in)+1)
		for c := range in {
			if s[c] = in[c].Name; slices.Contains(nulls, c) {
				s[c] = "NULL AS " + s[c]
			}
		}
		sets = append(sets, "{"+strings.Join(append(s, strconv.FormatInt(n.IDs[i], 10)+" AS "+expandID), ", ")+"}")
	}
	return fmt.Sprintf("Expand(projects=[%s])", strings.Join(sets, ", "))
}

func (n *Expand) identity(w *identity) { w.put("sets", n.Nulls, n.IDs) }

func (n *Expand) slug() string   { return "expand" }
func (n *Expand) stateful() bool { return false }

// upsertKeys are the keys of the input with the copy's id, as long as no copy hides a part of them.
func (n *Expand) upsertKeys(p *phys) [][]int {
	id := len(n.In.Fields())
	var out [][]int
	for _, k := range p.in[0].keys {
		if !slices.ContainsFunc(k, func(c int) bool { return !n.keeps(c) }) {
			out = append(out, append(slices.Clone(k), id))
		}
	}
	return out
}

// distribute keeps the input's distribution only while no copy hides a column of it.
func (n *Expand) distribute(_ *builder, p *phys) error {
	p.par = p.in[0].par
	if !slices.ContainsFunc(p.in[0].dist, func(c int) bool { return !n.keeps(c) }) {
		p.dist = p.in[0].dist
	}
	return nil
}

func (n *Expand) prune(need []bool) (Node, []int) {
	w := len(n.In.Fields())
	x, im := prune(n.In, need[:w])
	c := &Expand{In: x, IDs: n.IDs}
	for _, nulls := range n.Nulls {
		var s []int
		for _, i := range nulls {
			if im[i] >= 0 {
				s = append(s, im[i])
			}
		}
		slices.Sort(s)
		c.Nulls = append(c.Nulls, s)
	}
	return c, append(slices.Clone(im), len(x.Fields()))
}

func (n *Expand) lower(_ *lowering, x *exec.Node, _ *phys) {
	x.Operator = op.NewExpand(op.ExpandSpec{Nulls: n.Nulls, IDs: n.IDs, Output: x.Output})
}
