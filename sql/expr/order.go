package expr

import (
	"slices"
	"strings"
)

// worth is what decides when an operand is evaluated.
type worth struct {
	costly bool // has a call that takes about a microsecond a row or more
	cheap  bool // costs far less than that, and cannot fail
}

// worth looks at an expression once, however often it is asked about the ones around it.
func (c *compiler) worth(e Expr) worth {
	w, ok := c.worths[e]
	if ok {
		return w
	}
	switch x := e.(type) {
	case *Column, *Literal, *Is, *In, *FieldRef:
		w.cheap = true
	case *Binary:
		w.cheap = slices.Contains([]string{"AND", "OR", "=", "<>", "<", "<=", ">", ">="}, x.Op)
	case *Unary:
		w.cheap = x.Op == "NOT"
	case *Call:
		w.cheap = slices.Contains(neverFail, x.Func.Name)
		w.costly = strings.HasPrefix(x.Func.Name, "REGEXP") || strings.HasPrefix(x.Func.Name, "JSON_")
	}
	for _, k := range e.Children() {
		kw := c.worth(k)
		w.costly = w.costly || kw.costly
		w.cheap = w.cheap && kw.cheap
	}
	c.worths[e] = w
	return w
}

// neverFail are cheap functions without a row that fails.
var neverFail = []string{"LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "BTRIM", "CHAR_LENGTH", "CHARACTER_LENGTH"}

// cheapFirst orders the operands of an AND or OR: one that costs next to nothing and cannot fail is evaluated before a
// costly one, so that the costly one sees fewer rows. SQL leaves the order open; the order as written is kept in all other
// cases, because what is on the left may be there to keep the right from failing.
func (c *compiler) cheapFirst(operands []Expr) []Expr {
	if !slices.ContainsFunc(operands, func(e Expr) bool { return c.worth(e).costly }) {
		return operands
	}
	out := make([]Expr, 0, len(operands))
	var later []Expr // costly ones
	for _, e := range operands {
		switch w := c.worth(e); {
		case w.costly:
			later = append(later, e)
		case len(later) > 0 && !w.cheap:
			out = append(append(out, later...), e)
			later = nil
		default:
			out = append(out, e)
		}
	}
	return append(out, later...)
}
