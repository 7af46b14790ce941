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

func exprList(list []expr.Expr) string {
	s := make([]string, len(list))
	for i, e := range list {
		s[i] = e.String()
	}
	return strings.Join(s, ", ")
}

func keyNames(fields []Field, keys []int) string {
	s := make([]string, len(keys))
	for i, k := range keys {
		s[i] = fields[k].Name
	}
	return strings.Join(s, ", ")
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
