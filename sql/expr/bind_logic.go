package expr

import (
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func boolOperand(op string, x Expr) (Expr, error) {
	switch x.Type().Kind {
	case types.Boolean:
		return x, nil
	case types.Null:
		return convert(x, types.BoolType), nil
	}
	return nil, diag.New(diag.Semantic, diag.Pos{}, "%s needs a BOOLEAN, %s is of type %s", op, x,
		x.Type().WithNull(true)).WithHint("compare the value, such as %s <> 0", x)
}

func newLogic(op string, l, r Expr) (Expr, error) {
	l, err := boolOperand(op, l)
	if err != nil {
		return nil, err
	}
	if r, err = boolOperand(op, r); err != nil {
		return nil, err
	}
	return &Binary{Op: op, L: l, R: r, T: types.BoolType.WithNull(anyNullable(l, r))}, nil
}

func newComparison(op string, l, r Expr) (Expr, error) {
	l, r, total, err := alignOperands(op, l, r)
	if err != nil {
		return nil, err
	}
	t := types.BoolType.WithNull(anyNullable(l, r))
	if op == "IS DISTINCT FROM" || op == "IS NOT DISTINCT FROM" {
		t.Nullable = false
	}
	return &Binary{Op: op, L: l, R: r, T: t, total: total}, nil
}

func isEquality(op string) bool {
	return op == "=" || op == "<>" || op == "IS DISTINCT FROM" || op == "IS NOT DISTINCT FROM"
}

// alignOperands brings two operands to representations that one kernel can compare.
func alignOperands(op string, l, r Expr) (_, _ Expr, total bool, err error) {
	l, r = typeNulls(l, r, types.IntType)
	lt, rt := l.Type(), r.Type()
	switch {
	case lt.IsNumeric() && rt.IsNumeric():
		l, r, total = comparableNumbers(l, r)
		return l, r, total, nil
	case lt.IsString() && rt.IsString(), lt.IsBytes() && rt.IsBytes():
		return l, r, false, nil
	case lt.IsTimestamp() && rt.IsTimestamp():
		l, r = comparableTimestamps(l, r)
		return l, r, false, nil
	case isTemporal(lt) && rt.IsString():
		return l, timeOfText(r, lt), false, nil
	case lt.IsString() && isTemporal(rt):
		return timeOfText(l, rt), r, false, nil
	case lt.Kind == rt.Kind && !lt.IsNested() && lt.Kind != types.Variant:
		return l, r, false, nil
	case lt.Kind == rt.Kind && lt.IsNested() && isEquality(op):
		t, err := CommonType([]types.Type{lt, rt})
		if err != nil {
			return nil, nil, false, err
		}
		return convert(l, t), convert(r, t), false, nil
	}
	return nil, nil, false, incomparable(op, lt, rt)
}

// timeOfText converts the string x that is compared with a time of type t: text that is no time is NULL, and an error
// when it is a constant.
func timeOfText(x Expr, t types.Type) Expr {
	if l, ok := x.(*Literal); ok && !l.Value.IsNull {
		return &Cast{X: x, T: t.NotNull()}
	}
	return &Cast{X: x, T: t.WithNull(true), Mode: CastTry}
}

func isTemporal(t types.Type) bool {
	return t.IsTimestamp() || t.Kind == types.Date || t.Kind == types.Time
}

func incomparable(op string, lt, rt types.Type) error {
	err := diag.New(diag.Semantic, diag.Pos{}, "cannot compare %s with %s by %s", lt.WithNull(true), rt.WithNull(true), op)
	switch {
	case lt.IsString() || rt.IsString():
		other := rt
		if rt.IsString() {
			other = lt
		}
		err.WithDetail("strings are not converted silently").WithHint("CAST the string to %s", other.WithNull(true))
	case lt.Kind == types.Variant || rt.Kind == types.Variant:
		err.WithHint("CAST the VARIANT to a number or BOOLEAN, or compare JSON_STRING of it")
	case lt.IsNested():
		err.WithDetail("%s values have no order", lt.Kind).WithHint("compare elements or fields, or test for equality by =")
	default:
		err.WithHint("CAST one side to the type of the other")
	}
	return err
}

func comparableNumbers(l, r Expr) (_, _ Expr, total bool) {
	lt, rt := l.Type(), r.Type()
	exact := func(t types.Type) bool { return t.IsInteger() || t.Kind == types.Decimal }
	if exact(lt) && exact(rt) {
		return l, r, false // the kernel scales decimals
	}
	t := mergeNumeric(lt, rt)
	return convert(l, t), convert(r, t), lt.Kind == types.Decimal || rt.Kind == types.Decimal
}

func comparableTimestamps(l, r Expr) (_, _ Expr) {
	lt, rt := l.Type(), r.Type()
	if lt.Kind != rt.Kind {
		if lt.Precision <= rt.Precision {
			l = convert(l, types.TimestampOf(rt.Kind, rt.Precision))
		} else {
			r = convert(r, types.TimestampOf(lt.Kind, lt.Precision))
		}
		lt, rt = l.Type(), r.Type()
	}
	if lt.Phys() != rt.Phys() {
		t := types.TimestampOf(lt.Kind, max(lt.Precision, rt.Precision))
		return convert(l, t), convert(r, t)
	}
	return l, r
}

// NewIs is x IS [NOT] what for NULL, TRUE, FALSE and UNKNOWN.
func NewIs(x Expr, what string, not bool) (Expr, error) {
	switch what {
	case "NULL":
		return &Is{X: x, What: what, Not: not}, nil
	case "TRUE", "FALSE", "UNKNOWN":
		x, err := boolOperand("IS "+what, x)
		if err != nil {
			return nil, err
		}
		if what == "UNKNOWN" {
			what = "NULL"
		}
		return &Is{X: x, What: what, Not: not}, nil
	case "JSON", "JSON VALUE", "JSON SCALAR", "JSON ARRAY", "JSON OBJECT":
		return newIsJSON(x, what, not)
	}
	return nil, diag.New(diag.Unsupported, diag.Pos{}, "IS %s is not supported", what)
}

// NewBetween is x [NOT] BETWEEN [SYMMETRIC] lo AND hi, as comparisons.
func NewBetween(x, lo, hi Expr, not, symmetric bool) (Expr, error) {
	between := func(lo, hi Expr) (Expr, error) {
		a, err := NewBinary(">=", x, lo)
		if err != nil {
			return nil, err
		}
		b, err := NewBinary("<=", x, hi)
		if err != nil {
			return nil, err
		}
		return newLogic("AND", a, b)
	}
	e, err := between(lo, hi)
	if err == nil && symmetric {
		var swapped Expr
		if swapped, err = between(hi, lo); err == nil {
			e, err = newLogic("OR", e, swapped)
		}
	}
	if err == nil && not {
		e, err = NewUnary("NOT", e)
	}
	return e, err
}

// NewIn is x [NOT] IN (list). All values are brought to one common type, as Flink's IN does.
func NewIn(x Expr, list []Expr, not bool) (Expr, error) {
	list = numbersOfText(x.Type(), list)
	ts := []types.Type{x.Type()}
	for _, e := range list {
		ts = append(ts, e.Type())
	}
	var or Expr
	t, err := CommonType(ts)
	if err == nil && len(list) > 1 {
		if in, ok := newInLiterals(x, list, t, not); ok {
			return in, nil
		}
	}
	for _, e := range list {
		if err == nil {
			e = convert(e, t)
		}
		// Without a common type (a DATE and strings) every comparison has its own rule, or its own error.
		eq, cerr := newComparison("=", x, e)
		if cerr != nil {
			return nil, cerr
		}
		if or == nil {
			or = eq
		} else if or, cerr = newLogic("OR", or, eq); cerr != nil {
			return nil, cerr
		}
	}
	if or == nil {
		return nil, diag.New(diag.Semantic, diag.Pos{}, "IN needs at least one value")
	}
	if not {
		return NewUnary("NOT", or)
	}
	return or, nil
}

// numbersOfText converts the literals of an IN list that are numbers in quotes to the type of the number they are looked
// for in, as Flink does there and only there.
func numbersOfText(t types.Type, list []Expr) []Expr {
	if !t.IsNumeric() {
		return list
	}
	out := make([]Expr, len(list))
	for i, e := range list {
		out[i] = e
		l, ok := e.(*Literal)
		if !ok || l.Value.IsNull || !l.T.IsString() {
			continue
		}
		if d, ok := newCaster(Session{}, CastExplicit).fn(l.T, t)(l.Value); ok && !d.IsNull {
			out[i] = &Literal{Value: d, T: t.NotNull()}
		}
	}
	return out
}

// newInLiterals builds the set form when every element is a constant of a type that a hash set can hold.
func newInLiterals(x Expr, list []Expr, t types.Type, not bool) (Expr, bool) {
	if t.IsNested() || t.Kind == types.Float || t.Kind == types.Double {
		return nil, false
	}
	in := &In{X: convert(x, t), Not: not}
	for _, e := range list {
		d, ok := Constant(convert(e, t), Session{})
		if !ok || readsSession(e) {
			return nil, false
		}
		in.List = append(in.List, &Literal{Value: d, T: t.WithNull(t.Nullable || d.IsNull)})
	}
	return in, true
}

// readsSession reports a constant whose value may depend on the session's time zone, unknown while binding.
func readsSession(e Expr) bool {
	found := false
	Walk(e, func(x Expr) bool {
		_, call := x.(*Call)
		found = found || call || x.Type().Kind == types.TimestampLTZ
		return !found
	})
	return found
}

// NewLike is x [NOT] LIKE pat [ESCAPE esc], or SIMILAR TO; esc may be nil. A constant pattern is checked here.
func NewLike(x, pat, esc Expr, similar, not bool) (Expr, error) {
	op := "LIKE"
	if similar {
		op = "SIMILAR TO"
	}
	args := []*Expr{&x, &pat}
	if esc != nil {
		args = append(args, &esc)
	}
	for _, a := range args {
		t := (*a).Type()
		if t.Kind == types.Null {
			*a = convert(*a, types.StringType)
		} else if !t.IsString() {
			return nil, diag.New(diag.Semantic, diag.Pos{}, "%s needs strings, %s is of type %s", op, *a, t.WithNull(true)).
				WithHint("write CAST(%s AS STRING)", *a)
		}
	}
	l := &Like{X: x, Pattern: pat, Escape: esc, Similar: similar, Not: not}
	if p, e, ok := l.constantPattern(); ok {
		if _, err := newMatcher(p, e, similar); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// constantPattern is the pattern and escape when both are literals.
func (e *Like) constantPattern() (pat, esc string, ok bool) {
	p, ok := e.Pattern.(*Literal)
	if !ok || p.Value.IsNull {
		return "", "", false
	}
	if e.Escape == nil {
		return p.Value.Str, "", true
	}
	x, ok := e.Escape.(*Literal)
	if !ok || x.Value.IsNull {
		return "", "", false
	}
	return p.Value.Str, x.Value.Str, true
}

// NewCase is CASE [operand] WHEN when[i] THEN then[i] … [ELSE els] END; operand and els may be nil.
func NewCase(operand Expr, when, then []Expr, els Expr) (Expr, error) {
	if els == nil {
		els = NewNullLiteral()
	}
	ts := make([]types.Type, 0, len(then)+1)
	for _, e := range then {
		ts = append(ts, e.Type())
	}
	t, err := CommonType(append(ts, els.Type()))
	if err != nil {
		return nil, err
	}
	c := &Case{T: t, Else: convert(els, t)}
	for i, w := range when {
		if operand != nil {
			w, err = newComparison("=", operand, w)
		} else {
			w, err = boolOperand("WHEN", w)
		}
		if err != nil {
			return nil, err
		}
		c.When = append(c.When, w)
		c.Then = append(c.Then, convert(then[i], t))
	}
	return c, nil
}

// NewCoalesce is the first of args that is not NULL, in their common type.
func NewCoalesce(args []Expr) (Expr, error) {
	ts := make([]types.Type, len(args))
	nullable := true
	for i, a := range args {
		ts[i] = a.Type()
		nullable = nullable && (ts[i].Nullable || ts[i].Kind == types.Null)
	}
	t, err := CommonType(ts)
	if err != nil {
		return nil, err
	}
	c := &Coalesce{T: t.WithNull(nullable)}
	for _, a := range args {
		c.Args = append(c.Args, convert(a, t))
	}
	return c, nil
}
