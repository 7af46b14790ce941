package expr

import (
	"slices"

	"github.com/streamsql/streamsql/sql/types"
)

// Walk calls f for e and everything below it, parents first, until f returns false for a node (its children are skipped).
func Walk(e Expr, f func(Expr) bool) {
	if !f(e) {
		return
	}
	for _, c := range e.Children() {
		Walk(c, f)
	}
}

// Rewrite replaces nodes bottom-up: f gets every node with its children already rewritten. Unchanged subtrees are shared.
func Rewrite(e Expr, f func(Expr) Expr) Expr {
	return f(mapChildren(e, func(c Expr) Expr { return Rewrite(c, f) }))
}

// mapChildren is e with its children replaced, e itself when none changes.
func mapChildren(e Expr, f func(Expr) Expr) Expr {
	kids := e.Children()
	var out []Expr
	for i, c := range kids {
		n := f(c)
		if n != c && out == nil {
			out = slices.Clone(kids)
		}
		if out != nil {
			out[i] = n
		}
	}
	if out == nil {
		return e
	}
	return e.With(out)
}

// IsConstant reports that e reads no column and always gives the same value: Fold can evaluate it.
func IsConstant(e Expr) bool {
	constant := true
	Walk(e, func(x Expr) bool {
		switch x := x.(type) {
		case *Column:
			constant = false
		case *Call:
			constant = constant && !x.Bound.Volatile && !x.Bound.Dynamic
		}
		return constant
	})
	return constant
}

// IsDeterministic reports that e gives equal results for equal rows: it calls no RAND, UUID, NOW or the like.
func IsDeterministic(e Expr) bool {
	det := true
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Call); ok && (c.Bound.Volatile || c.Bound.Dynamic) {
			det = false
		}
		return det
	})
	return det
}

// ColumnsOf are the input columns e reads, ascending and without repeats.
func ColumnsOf(e Expr) []int {
	var out []int
	Walk(e, func(x Expr) bool {
		if c, ok := x.(*Column); ok {
			out = append(out, c.Index)
		}
		return true
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// Remap moves e to another input: column i becomes column m[i].
func Remap(e Expr, m []int) Expr {
	return Rewrite(e, func(x Expr) Expr {
		if c, ok := x.(*Column); ok && m[c.Index] != c.Index {
			return &Column{Index: m[c.Index], Name: c.Name, T: c.T}
		}
		return x
	})
}

// Equal reports that a and b are the same expression: same operators and types over the same columns and constants.
func Equal(a, b Expr) bool {
	if a == b {
		return true
	}
	return fingerprint(a) == fingerprint(b)
}

// Conjuncts splits e at its top-level ANDs.
func Conjuncts(e Expr) []Expr {
	if b, ok := e.(*Binary); ok && b.Op == "AND" {
		return append(Conjuncts(b.L), Conjuncts(b.R)...)
	}
	return []Expr{e}
}

// And joins BOOLEAN expressions; nil when there are none.
func And(es ...Expr) Expr {
	var out Expr
	for _, e := range es {
		if out == nil {
			out = e
			continue
		}
		out = &Binary{Op: "AND", L: out, R: e, T: types.BoolType.WithNull(anyNullable(out, e))}
	}
	return out
}

// Replace replaces parts of e top-down: f gets a node before its children and says whether it has a replacement, which is
// taken as it is. Unchanged subtrees are shared.
func Replace(e Expr, f func(Expr) (Expr, bool)) Expr {
	if x, ok := f(e); ok {
		return x
	}
	return mapChildren(e, func(c Expr) Expr { return Replace(c, f) })
}

// FieldPath is the way to e when e is a field of a ROW column, or a field of a field: the column and the positions of the
// fields, outermost first. The path is nil for anything else.
func FieldPath(e Expr) (c *Column, path []int) {
	f, ok := e.(*FieldRef)
	if !ok {
		return nil, nil
	}
	if c, ok := f.X.(*Column); ok {
		return c, []int{f.Field}
	}
	if c, path = FieldPath(f.X); c != nil {
		path = append(path, f.Field)
	}
	return c, path
}

// RisesWith is the column that e rises with: later times give later watermarks, NULL gives NULL; -1 = unknown. A month before is
// none: of the 30th and the 31st of March it is the 28th of February, at any time of the day.
func RisesWith(e Expr) int {
	switch e := e.(type) {
	case *Column:
		if k := e.T.Kind; k == types.Timestamp || k == types.TimestampLTZ {
			return e.Index
		}
	case *Binary:
		if l, ok := e.R.(*Literal); ok && !l.Value.IsNull && l.T.Kind == types.IntervalDayTime && (e.Op == "-" || e.Op == "+") {
			return RisesWith(e.L)
		}
	case *Cast:
		if e.X.Type().Kind == e.T.Kind {
			return RisesWith(e.X)
		}
	}
	return -1
}
