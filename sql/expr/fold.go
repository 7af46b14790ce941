package expr

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Fold evaluates the constant parts of e and drops branches that cannot be taken. A constant part that fails (a CAST of
// bad text) stays as it is and fails when a row needs it, as in Flink; division by a constant zero was refused when the
// expression was built.
func Fold(e Expr, s Session) (Expr, error) {
	return Rewrite(e, func(x Expr) Expr {
		x = simplify(x)
		if !foldable(x) {
			return x
		}
		p, err := compile([]Expr{x}, newCompiler(s))
		if err != nil {
			return x
		}
		v, err := p.Eval(&batch.Batch{N: 1})
		if err != nil {
			return x
		}
		return &Literal{Value: v[0].Datum(0), T: x.Type()}
	}), nil
}

// foldable reports a node other than a literal whose operands are all literals.
func foldable(e Expr) bool {
	switch e := e.(type) {
	case *Column, *Literal:
		return false
	case *Binary:
		if (e.Op == "/" || e.Op == "%") && checkDivisor(e) != nil {
			return false // for CheckConstants to find
		}
	case *Call:
		if e.Bound.Volatile || e.Bound.Dynamic {
			return false
		}
	}
	for _, c := range e.Children() {
		if _, ok := c.(*Literal); !ok {
			return false
		}
	}
	return true
}

// simplify applies the rules of logic to a node with folded operands.
func simplify(e Expr) Expr {
	switch e := e.(type) {
	case *Binary:
		if e.Op == "AND" || e.Op == "OR" {
			return simplifyLogic(e)
		}
	case *Case:
		return simplifyCase(e)
	}
	return e
}

func simplifyLogic(e *Binary) Expr {
	absorbing := e.Op == "OR" // TRUE OR x = TRUE, FALSE AND x = FALSE
	for i, side := range []Expr{e.L, e.R} {
		l, ok := side.(*Literal)
		if !ok || l.Value.IsNull {
			continue
		}
		if l.Value.Bool == absorbing {
			return &Literal{Value: l.Value, T: e.T}
		}
		if other := []Expr{e.R, e.L}[i]; other.Type().Nullable == e.T.Nullable {
			return other
		}
	}
	return e
}

// simplifyCase removes conditions that are never TRUE and everything after one that always is.
func simplifyCase(e *Case) Expr {
	out := &Case{Else: e.Else, T: e.T}
	for i, w := range e.When {
		l, ok := w.(*Literal)
		if ok && !l.Value.IsNull && l.Value.Bool {
			out.Else = e.Then[i]
			break
		}
		if !ok {
			out.When = append(out.When, w)
			out.Then = append(out.Then, e.Then[i])
		}
	}
	if len(out.When) == 0 && out.Else.Type().Equal(e.T) {
		return out.Else
	}
	if len(out.When) == len(e.When) {
		return e
	}
	return out
}

// Constant is the value of e when it is one: a literal or an expression of literals. A constant that fails to evaluate
// has ok = false.
func Constant(e Expr, s Session) (d types.Datum, ok bool) {
	if !IsConstant(e) {
		return d, false
	}
	f, err := Fold(e, s)
	l, ok := f.(*Literal)
	if err != nil || !ok {
		return d, false
	}
	return l.Value, true
}
