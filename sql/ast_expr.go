package sql

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Expr is a scalar expression as written: names are not resolved and nothing is typed but casts, literals and intervals.
type Expr interface {
	Node
	expr()
}

// LitKind is the kind of a literal.
type LitKind uint8

// The literal kinds. Text of a Literal is the value without quotes and with escapes undone.
const (
	LitString    LitKind = iota // 'abc', U&'caf\00e9'
	LitInteger                  // 42; digits only, of any length
	LitDecimal                  // 0.10
	LitApprox                   // 1e3, a DOUBLE
	LitNull                     // NULL
	LitBool                     // TRUE, FALSE; UNKNOWN is the NULL of type BOOLEAN
	LitDate                     // DATE '2024-01-01'
	LitTime                     // TIME '10:00:00'
	LitTimestamp                // TIMESTAMP '2024-01-01 10:00:00.123'
	LitBinary                   // X'1F'; Text is the hex digits, of even number
)

// NullTreatment is the NULL handling of FIRST_VALUE, LAST_VALUE, LEAD and LAG.
type NullTreatment uint8

// The null treatments.
const (
	NullsUnset NullTreatment = iota
	RespectNulls
	IgnoreNulls
)

// The expressions.
type (
	// Ident is a column, or a path of table, column and fields: the binder decides.
	Ident struct {
		Place
		Path Path
	}
	// Star is * or t.* in a select list. It occurs nowhere else.
	Star struct {
		Place
		Qualifier Path
	}
	// Literal is a constant. Text is upper case for LitNull and LitBool.
	Literal struct {
		Place
		Kind LitKind
		Text string
	}
	// Interval is INTERVAL [-]'text' unit [TO unit]. Type is INTERVAL YEAR TO MONTH or DAY TO SECOND with its precisions;
	// Value is months or milliseconds with the sign applied.
	Interval struct {
		Place
		Negative bool
		Text     string
		From, To string // singular upper-case units; To is "" for a single unit
		Type     types.Type
		Value    int64
	}
	// Call is a function or aggregate call. The SQL spellings SUBSTRING(s FROM 1 FOR 2), POSITION(a IN s),
	// OVERLAY(s PLACING r FROM 1), TRIM(BOTH c FROM s) and JSON_OBJECT(KEY k VALUE v) are normalised to positional Args:
	// (s, 1, 2), (a, s), (s, r, 1), (c, s) and (k, v). TRIM without characters has one argument.
	Call struct {
		Place
		Name     Path // function names are case-insensitive; the spelling is kept
		Args     []Expr
		Star     bool   // COUNT(*)
		Distinct bool   // COUNT(DISTINCT x)
		Unit     string // of EXTRACT, CEIL, FLOOR, TIMESTAMPADD, TIMESTAMPDIFF; singular, upper case
		Trim     string // of TRIM: "", BOTH, LEADING, TRAILING
		JSON     *JSONOptions
		Within   []OrderItem // WITHIN GROUP (ORDER BY ..)
		Nulls    NullTreatment
		Filter   Expr    // FILTER (WHERE ..)
		Over     *Window // OVER (..) or OVER name
		Niladic  bool    // CURRENT_TIMESTAMP and the like: written without parentheses
	}
	// Cast is CAST(X AS Type) and TRY_CAST.
	Cast struct {
		Place
		X       Expr
		Type    types.Type
		TypePos diag.Pos
		Try     bool
	}
	// Unary is prefix "-", "+" or "NOT".
	Unary struct {
		Place
		Op string
		X  Expr
	}
	// Binary is an infix operator: OR AND = <> < > <= >= + - * / % ||, the words IS [NOT] DISTINCT FROM, and OVERLAPS
	// between two rows of two elements.
	Binary struct {
		Place
		Op    string
		OpPos diag.Pos
		L, R  Expr
	}
	// Is is X IS [NOT] What. What is NULL, TRUE, FALSE, UNKNOWN, JSON, "JSON VALUE", "JSON OBJECT", "JSON ARRAY" or
	// "JSON SCALAR".
	Is struct {
		Place
		X    Expr
		What string
		Not  bool
	}
	// Between is X [NOT] BETWEEN [SYMMETRIC] Lo AND Hi.
	Between struct {
		Place
		X, Lo, Hi      Expr
		Not, Symmetric bool
	}
	// In is X [NOT] IN (List) or X [NOT] IN (Query); exactly one of List and Query is set.
	In struct {
		Place
		X     Expr
		List  []Expr
		Query Query
		Not   bool
	}
	// Like is X [NOT] LIKE Pattern [ESCAPE Escape], or SIMILAR TO.
	Like struct {
		Place
		X, Pattern, Escape Expr // Escape is nil when absent
		Similar, Not       bool
	}
	// TimeDiff is (L - R) unit [TO unit], the interval between two times.
	TimeDiff struct {
		Place
		L, R Expr
		Type types.Type
	}
	// Case is CASE [X] WHEN .. THEN .. [ELSE Else] END. X and Else may be nil.
	Case struct {
		Place
		X     Expr
		Whens []When
		Else  Expr
	}
	// When is one branch of Case.
	When struct {
		Cond, Then Expr
	}
	// Item is X[Index] of an array or map.
	Item struct {
		Place
		X, Index Expr
	}
	// FieldAccess is X.Name where X is not a name, e.g. f(x).a or arr[1].a; a plain a.b.c is one Ident.
	FieldAccess struct {
		Place
		X    Expr
		Name Name
	}
	// ArrayExpr is ARRAY[..].
	ArrayExpr struct {
		Place
		Elems []Expr
	}
	// MapExpr is MAP[k1, v1, ..]; Keys and Values have equal length.
	MapExpr struct {
		Place
		Keys, Values []Expr
	}
	// RowExpr is ROW(..), or (a, b) with at least two elements.
	RowExpr struct {
		Place
		Elems []Expr
	}
	// Subquery is a scalar (or, in VALUES and IN lists, row) subquery.
	Subquery struct {
		Place
		Query Query
	}
	// Exists is EXISTS (query).
	Exists struct {
		Place
		Query Query
	}
	// Quantified is X Op ANY|ALL (query); SOME is ANY.
	Quantified struct {
		Place
		X     Expr
		Op    string
		OpPos diag.Pos
		All   bool
		Query Query
	}
	// NamedArg is name => value in a call.
	NamedArg struct {
		Place
		Name Name
		X    Expr
	}
	// TableArg is TABLE t or (query), with PARTITION BY and ORDER BY, as an argument of a table function.
	// Exactly one of Table and Query is set.
	TableArg struct {
		Place
		Table     Path
		Query     Query
		Partition []Expr
		Order     []OrderItem
	}
	// Descriptor is DESCRIPTOR(c, ..).
	Descriptor struct {
		Place
		Columns []Name
	}
)

// JSONOptions are the clauses of the SQL/JSON functions. A clause that is absent is zero; the binder knows the defaults.
type JSONOptions struct {
	Returning *types.Type // JSON_VALUE, JSON_QUERY
	Wrapper   string      // JSON_QUERY: WITHOUT, CONDITIONAL, UNCONDITIONAL
	OnEmpty   JSONBehavior
	OnError   JSONBehavior
	OnNull    string // JSON_OBJECT, JSON_ARRAY and aggregates: NULL, ABSENT
}

// JSONBehavior is what ON EMPTY or ON ERROR does: NULL, ERROR, DEFAULT (with Default), "EMPTY ARRAY", "EMPTY OBJECT",
// TRUE, FALSE, UNKNOWN; Kind "" means the clause is absent.
type JSONBehavior struct {
	Kind    string
	Default Expr
}

// OrderItem is one element of ORDER BY.
type OrderItem struct {
	X     Expr
	Desc  bool
	Nulls string // "", FIRST, LAST
}

// BoundKind is the kind of a window frame bound.
type BoundKind uint8

// The frame bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Bound is one end of a window frame; X is set for Preceding and Following.
type Bound struct {
	Kind BoundKind
	X    Expr
}

// Window is the inside of OVER (..) or WINDOW w AS (..). Frame is "", ROWS or RANGE; Lo and Hi count only when it is
// set. Ref is the name in OVER w, or the base window of OVER (w ..); Bare tells the two apart.
type Window struct {
	Place
	Ref       *Name
	Bare      bool // OVER w, without parentheses
	Partition []Expr
	Order     []OrderItem
	Frame     string
	Lo, Hi    Bound
}

func (*Ident) expr()       {}
func (*Star) expr()        {}
func (*Literal) expr()     {}
func (*Interval) expr()    {}
func (*Call) expr()        {}
func (*Cast) expr()        {}
func (*Unary) expr()       {}
func (*Binary) expr()      {}
func (*Is) expr()          {}
func (*Between) expr()     {}
func (*In) expr()          {}
func (*Like) expr()        {}
func (*TimeDiff) expr()    {}
func (*Case) expr()        {}
func (*Item) expr()        {}
func (*FieldAccess) expr() {}
func (*ArrayExpr) expr()   {}
func (*MapExpr) expr()     {}
func (*RowExpr) expr()     {}
func (*Subquery) expr()    {}
func (*Exists) expr()      {}
func (*Quantified) expr()  {}
func (*NamedArg) expr()    {}
func (*TableArg) expr()    {}
func (*Descriptor) expr()  {}
