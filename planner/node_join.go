package planner

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
)

// JoinKind is the kind of a Join.
type JoinKind = op.JoinKind

// The joins.
const (
	InnerJoin = op.InnerJoin
	LeftJoin  = op.LeftJoin
	RightJoin = op.RightJoin
	FullJoin  = op.FullJoin
	SemiJoin  = op.SemiJoin
	AntiJoin  = op.AntiJoin
)

// JoinKey is a pair of columns, of the left and of the right input, that a join compares for equality. Their values have
// the same encoding. NullSafe lets NULL equal NULL (IS NOT DISTINCT FROM).
type JoinKey struct {
	L, R     int
	NullSafe bool
}

// Join joins two inputs. The output is the fields of L, then those of R; of semi and anti joins it is those of L. As
// bound, all of the condition is Cond; the rule join-conditions takes the keys out of it.
type Join struct {
	L, R Node
	Kind JoinKind
	Keys []JoinKey
	Cond expr.Expr // over the fields of L, then those of R; nil = none
	// TTL is the STATE_TTL hint of each side in ms; -1 = table.exec.state.ttl. A nil slice is no hint.
	TTL []int64
}

// Inputs implements Node.
func (n *Join) Inputs() []Node { return []Node{n.L, n.R} }

func (n *Join) withInputs(in []Node) Node { c := *n; c.L, c.R = in[0], in[1]; return &c }

// Fields implements Node. Time attributes are lost on both sides: rows wait in state for any time. A name that the left
// side has already gets a number, as in Flink.
func (n *Join) Fields() []Field {
	l := n.L.Fields()
	if n.Kind.HalfJoin() {
		return joinedFields(nil, l, nil, false)
	}
	taken := make(map[string]bool, len(l))
	return joinedFields(joinedFields(nil, l, taken, n.Kind.PadsRight()), n.R.Fields(), taken, n.Kind.PadsLeft())
}

// joinedFields appends one side's fields to out, as plain columns.
func joinedFields(out, side []Field, taken map[string]bool, nullable bool) []Field {
	for _, f := range side {
		f.Time = NoTime
		if taken != nil {
			f.Name = unique(f.Name, taken)
		}
		if nullable {
			f.Type = f.Type.WithNull(true)
		}
		out = append(out, f)
	}
	return out
}

// sideFields are the fields the condition is over: both sides' own, whatever the kind.
func (n *Join) sideFields() []Field {
	taken := map[string]bool{}
	return joinedFields(joinedFields(nil, n.L.Fields(), taken, false), n.R.Fields(), taken, false)
}

// keyCols are the key columns of one side: 0 left, 1 right.
func (n *Join) keyCols(side int) []int {
	out := make([]int, len(n.Keys))
	for i, k := range n.Keys {
		out[i] = [2]int{k.L, k.R}[side]
	}
	return out
}

func (n *Join) label() string { return n.labelWith("") }

func (n *Join) labelWith(more string) string {
	all, left := n.sideFields(), len(n.L.Fields())
	var where []string
	for _, k := range n.Keys {
		op := "="
		if k.NullSafe {
			op = "IS NOT DISTINCT FROM"
		}
		where = append(where, fmt.Sprintf("(%s %s %s)", all[k.L].Name, op, all[left+k.R].Name))
	}
	if n.Cond != nil {
		for _, c := range expr.Conjuncts(n.Cond) {
			where = append(where, "("+renamed(c, all).String()+")")
		}
	}
	s := fmt.Sprintf("Join(joinType=[%s]", n.Kind)
	if where != nil {
		s += ", where=[" + strings.Join(where, " AND ") + "]"
	}
	return s + ", select=[" + strings.Join(fieldNames(n.Fields()), ", ") + "]" + more + ")"
}

// renamed gives the columns of e the names of fields, for printing.
func renamed(e expr.Expr, fields []Field) expr.Expr {
	return expr.Rewrite(e, func(x expr.Expr) expr.Expr {
		if c, ok := x.(*expr.Column); ok && c.Name != fields[c.Index].Name {
			return &expr.Column{Index: c.Index, Name: fields[c.Index].Name, T: c.T}
		}
		return x
	})
}
