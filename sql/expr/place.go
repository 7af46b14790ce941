package expr

import (
	"errors"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Place says where in a statement e stands, for the errors of its rows: the nodes of e that no part of the statement has
// placed before get pos. It is for the binder that has just built e; the nodes are changed.
func Place(e Expr, pos diag.Pos) Expr {
	Walk(e, func(x Expr) bool {
		p := placeOf(x)
		switch {
		case p == nil:
			return true
		case p.Known():
			return false
		}
		*p = pos
		return true
	})
	return e
}

// placeOf is the place of a node that has one, else nil.
func placeOf(e Expr) *diag.Pos {
	switch e := e.(type) {
	case *Binary:
		return &e.Pos
	case *Like:
		return &e.Pos
	case *Cast:
		return &e.Pos
	case *Item:
		return &e.Pos
	case *Call:
		return &e.Pos
	}
	return nil
}

// CheckConstants finds a constant part of e that fails whenever e is evaluated, such as CAST('x' AS INT). Parts that
// AND, OR, CASE and COALESCE may pass over do not count. The error has the place of the part.
func CheckConstants(e Expr, s Session) error {
	folded, err := Fold(e, s)
	if err != nil {
		return err
	}
	return checkFolded(folded, s)
}

func checkFolded(e Expr, s Session) error {
	kids := e.Children()
	switch x := e.(type) {
	case *Binary:
		switch x.Op {
		case "AND", "OR":
			kids = kids[:1]
		case "/", "%":
			if err := checkDivisor(x); err != nil {
				return err
			}
		}
	case *Case:
		kids = kids[:min(1, len(x.When))]
	case *Coalesce:
		kids = kids[:1]
	}
	for _, k := range kids {
		if err := checkFolded(k, s); err != nil {
			return err
		}
	}
	if !foldable(e) {
		return nil
	}
	p, err := compile([]Expr{e}, newCompiler(s))
	if err != nil {
		return err
	}
	_, err = p.Eval(&batch.Batch{N: 1})
	var row *RowError
	if errors.As(err, &row) {
		return row.Err
	}
	return err
}

// checkDivisor refuses a constant divisor of zero: of exact numbers always, of doubles, where the quotient is infinite,
// when the dividend is a constant too.
func checkDivisor(e *Binary) error {
	zero, ok := e.R.(*Literal)
	if !ok || zero.Value.IsNull || zero.Value.I64 != 0 || zero.Value.Hi != 0 || zero.Value.F64 != 0 {
		return nil
	}
	if l, constant := e.L.(*Literal); constant && l.Value.IsNull || !constant && e.T.Phys() == types.PhysF64 {
		return nil
	}
	return diag.New(diag.Semantic, e.Pos, "division by zero").WithDetail("the divisor %s is the constant 0", e.R).
		WithHint("NULLIF(divisor, 0) gives NULL where the divisor is 0")
}
