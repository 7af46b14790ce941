package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql/expr"
)

// Over adds to every row of the input what Calls compute over the rows of its partition, in Order. The output is the
// input's columns, then the calls. All calls of a node have the same partition and order; frames may differ.
type Over struct {
	In        Node
	Partition []int
	Order     []SortKey
	Calls     []overCall
}

// overCall is a call of Over and the name of its column.
type overCall struct {
	expr.OverCall
	Name string
}

// Inputs implements Node.
func (n *Over) Inputs() []Node { return []Node{n.In} }

func (n *Over) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. Time attributes stay.
func (n *Over) Fields() []Field {
	out := append([]Field(nil), n.In.Fields()...)
	for _, c := range n.Calls {
		out = append(out, Field{Name: c.Name, Type: c.Agg.Type})
	}
	return out
}

func (n *Over) label() string {
	in := n.In.Fields()
	order := make([]string, len(n.Order))
	for i, k := range n.Order {
		order[i] = sortKeyText(k, in)
	}
	calls := make([]string, len(n.Calls))
	for i, c := range n.Calls {
		calls[i] = c.Agg.Text + " AS " + c.Name
	}
	frame := ""
	if len(n.Calls) > 0 {
		frame = ", window=[" + n.Calls[0].Frame.String() + "]"
	}
	return fmt.Sprintf("Over(partitionBy=[%s], orderBy=[%s]%s, select=[%s])", keyNames(in, n.Partition), strings.Join(order, ", "),
		frame, strings.Join(calls, ", "))
}

// sortKeyText is a sort key as SQL, with what SQL does not say left out: ASC and NULLS FIRST of ASC, NULLS LAST of DESC.
func sortKeyText(k SortKey, in []Field) string {
	s := in[k.Col].Name
	if k.Desc {
		s += " DESC"
	}
	if k.NullsFirst && k.Desc {
		s += " NULLS FIRST"
	}
	if !k.NullsFirst && !k.Desc {
		s += " NULLS LAST"
	}
	return s
}
