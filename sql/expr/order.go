package expr

import (
	"slices"
	"strings"
)

// cheapFirst orders the operands of an AND or OR: one that costs next to nothing and cannot fail is evaluated before a
// costly one, so that the costly one sees fewer rows. SQL leaves the order open; the order as written is kept in all other
// cases, because what is on the left may be there to keep the right from failing.
func cheapFirst(operands []Expr) []Expr {
	if !slices.ContainsFunc(operands, costly) {
		return operands
	}
	out := make([]Expr, 0, len(operands))
	var later []Expr // costly ones
	for _, e := range operands {
		switch {
		case costly(e):
			later = append(later, e)
		case len(later) > 0 && !cheap(e):
			out = append(append(out, later...), e)
			later = nil
		default:
			out = append(out, e)
		}
	}
	return append(out, later...)
}

// costly reports a call that takes about a microsecond a row or more.
func costly(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Call); ok && (strings.HasPrefix(c.Func.Name, "REGEXP") || strings.HasPrefix(c.Func.Name, "JSON_")) {
			found = true
		}
		return !found
	})
	return found
}

// neverFail are cheap functions without a row that fails.
var neverFail = []string{"LOWER", "UPPER", "TRIM", "LTRIM", "RTRIM", "BTRIM", "CHAR_LENGTH", "CHARACTER_LENGTH"}

// cheap reports an expression that costs far less than a costly call and cannot fail.
func cheap(e Expr) bool {
	ok := true
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Column, *Literal, *Is, *In, *FieldRef:
		case *Binary:
			ok = ok && (x.Op == "AND" || x.Op == "OR" || slices.Contains([]string{"=", "<>", "<", "<=", ">", ">="}, x.Op))
		case *Unary:
			ok = ok && x.Op == "NOT"
		case *Call:
			ok = ok && slices.Contains(neverFail, x.Func.Name)
		default:
			ok = false
		}
		return ok
	})
	return ok
}
