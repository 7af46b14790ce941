package expr

import (
	"time"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// Expr is a bound, typed, immutable expression.
type Expr interface {
	// Type is the result type.
	Type() types.Type
	// Children are the operands in order; nil for leaves.
	Children() []Expr
	// With is a copy of the node with other operands of the same types, for rewriting rules.
	With(children []Expr) Expr
	// String is the expression as SQL, for EXPLAIN.
	String() string
}

// Column reads input column Index. Name is for printing.
type Column struct {
	Index int
	Name  string
	T     types.Type
}

// Type implements Expr.
func (c *Column) Type() types.Type { return c.T }

// Children implements Expr.
func (c *Column) Children() []Expr { return nil }

// With implements Expr.
func (c *Column) With([]Expr) Expr { return c }

// String implements Expr: the column's name.
func (c *Column) String() string { return c.Name }

// Literal is a constant.
type Literal struct {
	Value types.Datum
	T     types.Type
}

// Type implements Expr.
func (l *Literal) Type() types.Type { return l.T }

// Children implements Expr.
func (l *Literal) Children() []Expr { return nil }

// With implements Expr.
func (l *Literal) With([]Expr) Expr { return l }

// String implements Expr: the literal as SQL.
func (l *Literal) String() string { return literalSQL(l) }

// Session is what evaluation depends on beside the rows. It is fixed for the life of a Program.
type Session struct {
	// Zone is table.local-time-zone.
	Zone *time.Location
	// Now is the start of the query for CURRENT_TIMESTAMP in bounded mode; the zero time means "per batch", Flink's
	// rule for streaming.
	Now time.Time

	clock *clock // of the Program being compiled
}

// RowError is an error of one row during evaluation. Row is the physical row of the batch. The place of Err, when it is
// known, is that of the failing expression in the statement.
type RowError struct {
	Row  int
	Expr string
	Err  *diag.Error
}

// Error implements error. The place is that of Err, which what presents the error shows in front of it all.
func (e *RowError) Error() string {
	err := *e.Err
	err.Pos = diag.Pos{}
	return e.Expr + ": " + err.Error()
}

// Unwrap returns the *diag.Error.
func (e *RowError) Unwrap() error { return e.Err }
