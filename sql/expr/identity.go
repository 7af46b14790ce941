package expr

import (
	"fmt"
	"strings"

	"github.com/streamsql/streamsql/sql/types"
)

// fingerprint is a text that is equal for equal expressions and only for those, within one process.
func fingerprint(e Expr) string {
	var w identity
	w.expr(e)
	return w.String()
}

// Identity is a text for what e computes over the columns by their places, whatever they and e's parts are called: the same in every
// process, for checkpoints to be told apart by. Two functions of one name in different databases have the same.
func Identity(e Expr) string {
	w := identity{lasting: true}
	w.expr(e)
	return w.String()
}

type identity struct {
	strings.Builder
	lasting bool
}

func (sb *identity) expr(e Expr) {
	sb.head(e)
	sb.WriteByte('(')
	for _, k := range e.Children() {
		sb.expr(k)
		sb.WriteByte(';')
	}
	sb.WriteByte(')')
}

// head writes what sets e apart from other expressions over the same operands.
func (sb *identity) head(e Expr) {
	switch e := e.(type) {
	case *Column:
		fmt.Fprintf(sb, "#%d", e.Index)
	case *Literal:
		fmt.Fprintf(sb, "%s:%q", e.T, types.AppendValue(nil, e.Value, e.T))
	case *Binary:
		fmt.Fprintf(sb, "%s %t %s", e.Op, e.total, e.T)
	case *Unary:
		fmt.Fprintf(sb, "u%s %s", e.Op, e.T)
	case *Is:
		fmt.Fprintf(sb, "is %s %t", e.What, e.Not)
	case *In:
		fmt.Fprintf(sb, "in %t", e.Not)
		for _, l := range e.List {
			sb.WriteByte(',')
			sb.head(l)
		}
	case *Like:
		fmt.Fprintf(sb, "like %t %t", e.Similar, e.Not)
	case *Case:
		fmt.Fprintf(sb, "case %s", e.T)
	case *Coalesce:
		fmt.Fprintf(sb, "coalesce %s", e.T)
	case *Cast:
		fmt.Fprintf(sb, "cast %s %s", [...]string{"explicit", "try", "implicit"}[e.Mode], e.T)
	case *Item:
		sb.WriteString("item")
	case *FieldRef:
		fmt.Fprintf(sb, "field %d", e.Field)
	case *Construct:
		fmt.Fprintf(sb, "new %s", e.T)
	case *Call:
		if sb.lasting {
			sb.WriteString("call " + e.Func.Name)
		} else {
			fmt.Fprintf(sb, "call %p", e.Func)
		}
		fmt.Fprintf(sb, " %s %v %v %s", e.Bound.Type, e.Options.Unit, e.Options.Words, e.Bound.Key)
		if e.Options.Return != nil {
			sb.WriteString(e.Options.Return.String())
		}
	default:
		panic(fmt.Sprintf("expr: no identity for %T", e))
	}
}
