package expr

import (
	"strings"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The inner nodes. Build them with the New functions, which check and coerce operands; rules may read the fields. Those
// whose evaluation can fail have a Pos, the place in the statement; see Place.
type (
	// Binary is L Op R: + - * / % || = <> < <= > >= AND OR, "IS DISTINCT FROM", "IS NOT DISTINCT FROM".
	Binary struct {
		Op   string
		L, R Expr
		T    types.Type
		// total compares doubles by Double.compare: NaN is the greatest and equal to itself, -0.0 < 0.0.
		total bool
		Pos   diag.Pos
	}
	// Unary is "-" or NOT.
	Unary struct {
		Op string
		X  Expr
		T  types.Type
	}
	// Is is X IS [NOT] What with What one of NULL, TRUE, FALSE; UNKNOWN is NULL.
	Is struct {
		X    Expr
		What string
		Not  bool
	}
	// In is X [NOT] IN (List) with literals of X's type. Lists of other expressions become comparisons joined by OR.
	In struct {
		X    Expr
		List []*Literal
		Not  bool
	}
	// Like is X [NOT] LIKE Pattern [ESCAPE Escape], or SIMILAR TO. Escape may be nil.
	Like struct {
		X, Pattern, Escape Expr
		Similar, Not       bool
		Pos                diag.Pos
	}
	// Case is CASE WHEN When[i] THEN Then[i] … ELSE Else END; all results have type T and only the taken one is evaluated.
	Case struct {
		When, Then []Expr
		Else       Expr
		T          types.Type
	}
	// Coalesce is the first argument that is not NULL; later arguments are not evaluated.
	Coalesce struct {
		Args []Expr
		T    types.Type
	}
	// Cast is CAST(X AS T), TRY_CAST, or a conversion the binder added.
	Cast struct {
		X    Expr
		T    types.Type
		Mode CastMode
		Pos  diag.Pos
	}
	// Item is X[Index] of an ARRAY (1-based) or MAP.
	Item struct {
		X, Index Expr
		T        types.Type
		Pos      diag.Pos
	}
	// FieldRef is field Field of the ROW X.
	FieldRef struct {
		X     Expr
		Field int
		T     types.Type
	}
	// Construct is ARRAY[…], MAP[…] (keys and values alternate) or ROW(…), by T.Kind.
	Construct struct {
		Elems []Expr
		T     types.Type
	}
	// Call is a call of a registered function.
	Call struct {
		Func    *Func
		Bound   Bound
		Options CallOptions
		Pos     diag.Pos
	}
)

// CastMode says how a Cast treats failures and lengths.
type CastMode uint8

// The modes.
const (
	CastExplicit CastMode = iota // CAST: a failure is an error of the row; CHAR and BINARY lengths are enforced
	CastTry                      // TRY_CAST: a failure is NULL
	CastImplicit                 // added by the binder: a failure is NULL, lengths of strings and bytes are left alone
)

// Type implements Expr.
func (e *Binary) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Binary) Children() []Expr { return []Expr{e.L, e.R} }

// With implements Expr.
func (e *Binary) With(c []Expr) Expr { return &Binary{e.Op, c[0], c[1], e.T, e.total, e.Pos} }

// String implements Expr.
func (e *Binary) String() string {
	// A chain of ten thousand ANDs leans to the left. Its text is built in one pass: each level copying the text of the
	// one below would take quadratic time.
	chain := []*Binary{e}
	for {
		l, ok := chain[len(chain)-1].L.(*Binary)
		if !ok {
			break
		}
		chain = append(chain, l)
	}
	var sb strings.Builder
	for range chain[1:] {
		sb.WriteByte('(')
	}
	sb.WriteString(operand(chain[len(chain)-1].L))
	for i := len(chain) - 1; i >= 0; i-- {
		sb.WriteString(" " + chain[i].Op + " ")
		sb.WriteString(operand(chain[i].R))
		if i > 0 {
			sb.WriteByte(')')
		}
	}
	return sb.String()
}

// Type implements Expr.
func (e *Unary) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Unary) Children() []Expr { return []Expr{e.X} }

// With implements Expr.
func (e *Unary) With(c []Expr) Expr { return &Unary{e.Op, c[0], e.T} }

// String implements Expr.
func (e *Unary) String() string {
	if e.Op == "-" {
		return "-" + operand(e.X)
	}
	return e.Op + " " + operand(e.X)
}

// Type implements Expr.
func (e *Is) Type() types.Type { return types.BoolType.NotNull() }

// Children implements Expr.
func (e *Is) Children() []Expr { return []Expr{e.X} }

// With implements Expr.
func (e *Is) With(c []Expr) Expr { return &Is{c[0], e.What, e.Not} }

// String implements Expr.
func (e *Is) String() string { return operand(e.X) + " IS " + not(e.Not) + e.What }

// Type implements Expr.
func (e *In) Type() types.Type {
	t := types.BoolType.WithNull(e.X.Type().Nullable)
	for _, l := range e.List {
		t.Nullable = t.Nullable || l.Value.IsNull
	}
	return t
}

// Children implements Expr.
func (e *In) Children() []Expr { return []Expr{e.X} }

// With implements Expr.
func (e *In) With(c []Expr) Expr { return &In{c[0], e.List, e.Not} }

// String implements Expr.
func (e *In) String() string {
	parts := make([]string, len(e.List))
	for i, l := range e.List {
		parts[i] = l.String()
	}
	return operand(e.X) + " " + not(e.Not) + "IN (" + strings.Join(parts, ", ") + ")"
}

// Type implements Expr.
func (e *Like) Type() types.Type { return types.BoolType.WithNull(anyNullable(e.Children()...)) }

// Children implements Expr.
func (e *Like) Children() []Expr {
	if e.Escape == nil {
		return []Expr{e.X, e.Pattern}
	}
	return []Expr{e.X, e.Pattern, e.Escape}
}

// With implements Expr.
func (e *Like) With(c []Expr) Expr {
	r := &Like{X: c[0], Pattern: c[1], Similar: e.Similar, Not: e.Not, Pos: e.Pos}
	if len(c) > 2 {
		r.Escape = c[2]
	}
	return r
}

// String implements Expr.
func (e *Like) String() string {
	op := "LIKE "
	if e.Similar {
		op = "SIMILAR TO "
	}
	s := operand(e.X) + " " + not(e.Not) + op + operand(e.Pattern)
	if e.Escape != nil {
		s += " ESCAPE " + operand(e.Escape)
	}
	return s
}

// Type implements Expr.
func (e *Case) Type() types.Type { return e.T }

// Children implements Expr: when, then, when, then, …, else.
func (e *Case) Children() []Expr {
	out := make([]Expr, 0, 2*len(e.When)+1)
	for i := range e.When {
		out = append(out, e.When[i], e.Then[i])
	}
	return append(out, e.Else)
}

// With implements Expr.
func (e *Case) With(c []Expr) Expr {
	r := &Case{Else: c[len(c)-1], T: e.T}
	for i := 0; i+1 < len(c); i += 2 {
		r.When = append(r.When, c[i])
		r.Then = append(r.Then, c[i+1])
	}
	return r
}

// String implements Expr.
func (e *Case) String() string {
	var sb strings.Builder
	sb.WriteString("CASE")
	for i := range e.When {
		sb.WriteString(" WHEN " + e.When[i].String() + " THEN " + e.Then[i].String())
	}
	sb.WriteString(" ELSE " + e.Else.String() + " END")
	return sb.String()
}

// Type implements Expr.
func (e *Coalesce) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Coalesce) Children() []Expr { return e.Args }

// With implements Expr.
func (e *Coalesce) With(c []Expr) Expr { return &Coalesce{c, e.T} }

// String implements Expr.
func (e *Coalesce) String() string { return "COALESCE(" + joinExprs(e.Args) + ")" }

// Type implements Expr.
func (e *Cast) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Cast) Children() []Expr { return []Expr{e.X} }

// With implements Expr.
func (e *Cast) With(c []Expr) Expr { return &Cast{c[0], e.T, e.Mode, e.Pos} }

// String implements Expr.
func (e *Cast) String() string {
	n := "CAST("
	if e.Mode == CastTry {
		n = "TRY_CAST("
	}
	return n + e.X.String() + " AS " + e.T.WithNull(true).String() + ")"
}

// Type implements Expr.
func (e *Item) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Item) Children() []Expr { return []Expr{e.X, e.Index} }

// With implements Expr.
func (e *Item) With(c []Expr) Expr { return &Item{c[0], c[1], e.T, e.Pos} }

// String implements Expr.
func (e *Item) String() string { return operand(e.X) + "[" + e.Index.String() + "]" }

// Type implements Expr.
func (e *FieldRef) Type() types.Type { return e.T }

// Children implements Expr.
func (e *FieldRef) Children() []Expr { return []Expr{e.X} }

// With implements Expr.
func (e *FieldRef) With(c []Expr) Expr { return &FieldRef{c[0], e.Field, e.T} }

// String implements Expr.
func (e *FieldRef) String() string {
	return operand(e.X) + "." + e.X.Type().Fields[e.Field].Name
}

// Type implements Expr.
func (e *Construct) Type() types.Type { return e.T }

// Children implements Expr.
func (e *Construct) Children() []Expr { return e.Elems }

// With implements Expr.
func (e *Construct) With(c []Expr) Expr { return &Construct{c, e.T} }

// String implements Expr.
func (e *Construct) String() string {
	if e.T.Kind == types.Row {
		return "ROW(" + joinExprs(e.Elems) + ")"
	}
	return e.T.Kind.String() + "[" + joinExprs(e.Elems) + "]"
}

// Type implements Expr.
func (e *Call) Type() types.Type { return e.Bound.Type }

// Children implements Expr.
func (e *Call) Children() []Expr { return e.Bound.Args }

// With implements Expr.
func (e *Call) With(c []Expr) Expr {
	r := *e
	r.Bound.Args = c
	return &r
}

// String implements Expr.
func (e *Call) String() string {
	if e.Func == isJSONFunc {
		return isJSONText(e)
	}
	if e.Func == timeDiffFunc {
		return "(" + operand(e.Bound.Args[0]) + " - " + operand(e.Bound.Args[1]) + ") " + e.Bound.Type.Unit
	}
	args := joinExprs(e.Bound.Args)
	if u := e.Options.Unit; u != "" {
		args = u + ", " + args
	}
	return e.Func.Name + "(" + args + ")"
}

func joinExprs(es []Expr) string {
	parts := make([]string, len(es))
	for i, e := range es {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

// operand prints e in parentheses where an operator around it could bind tighter.
func operand(e Expr) string {
	switch e.(type) {
	case *Binary, *Unary, *Is, *In, *Like:
		return "(" + e.String() + ")"
	}
	return e.String()
}

func not(n bool) string {
	if n {
		return "NOT "
	}
	return ""
}

func anyNullable(es ...Expr) bool {
	for _, e := range es {
		if e.Type().Nullable {
			return true
		}
	}
	return false
}
