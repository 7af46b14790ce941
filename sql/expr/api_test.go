package expr

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func testColumns() map[string]*Column {
	cols := map[string]*Column{}
	for i, c := range []struct {
		name string
		t    types.Type
	}{
		{"a", types.IntType}, {"b", types.IntType}, {"s", types.StringType}, {"p", types.BoolType}, {"d", types.DecimalOf(10, 2)},
		{"arr", types.ArrayOf(types.IntType)}, {"r", types.RowOf(types.Field{Name: "x", Type: types.IntType})},
		{"ts", types.TimestampMs}, {"n", types.IntType.NotNull()}, {"f", types.DoubleType},
	} {
		cols[c.name] = &Column{Index: i, Name: c.name, T: c.t}
	}
	return cols
}

// TestPrintFolded shows expressions as EXPLAIN prints them, after folding.
func TestPrintFolded(t *testing.T) {
	cases := []struct{ in, want string }{
		{"a + 1 + 2", "(a + 1) + 2"}, {"a + (1 + 2)", "a + 3"}, {"-a * (b - 1)", "(-a) * (b - 1)"}, {"NOT p", "NOT p"},
		{"p AND TRUE", "p"}, {"p AND FALSE", "FALSE"}, {"p OR 1 = 1", "TRUE"}, {"FALSE OR p", "p"}, {"p AND UNKNOWN", "p AND CAST(NULL AS BOOLEAN)"},
		{"n = 1 AND TRUE", "n = 1"},
		{"CASE WHEN FALSE THEN 1 WHEN p THEN 2 WHEN TRUE THEN 3 ELSE 4 END", "CASE WHEN p THEN 2 ELSE 3 END"},
		{"CASE WHEN 1 = 1 THEN a ELSE b END", "a"}, {"CASE a WHEN 1 THEN 'x' END", "CASE WHEN a = 1 THEN 'x' ELSE CAST(NULL AS CHAR(1)) END"},
		{"a BETWEEN 1 AND 2", "(a >= 1) AND (a <= 2)"}, {"a IN (1, 2, 1 + 2)", "a IN (1, 2, 3)"}, {"a NOT IN (1, 2)", "a NOT IN (1, 2)"},
		{"a IN (b, 1)", "(a = b) OR (a = 1)"}, {"a IN (1)", "a = 1"}, {"a NOT IN (1)", "NOT (a = 1)"},
		{"s LIKE 'a%'", "s LIKE 'a%'"}, {"s NOT LIKE 'a%' ESCAPE '!'", "s NOT LIKE 'a%' ESCAPE '!'"}, {"s SIMILAR TO s", "s SIMILAR TO s"},
		{"CAST(a AS STRING)", "CAST(a AS STRING)"}, {"TRY_CAST(s AS DECIMAL(10, 2))", "TRY_CAST(s AS DECIMAL(10, 2))"}, {"CAST(a AS INT)", "a"},
		{"CAST('7' AS INT) + a", "7 + a"}, {"CAST('x' AS INT) + a", "CAST('x' AS INT) + a"}, {"a + f", "CAST(a AS DOUBLE) + f"},
		{"COALESCE(a, b, 1)", "COALESCE(a, b, 1)"}, {"arr[1]", "arr[1]"}, {"r.x", "r.x"}, {"ARRAY[a, 1]", "ARRAY[a, 1]"}, {"MAP['k', a]", "MAP['k', a]"},
		{"ROW(a, 1)", "ROW(a, 1)"}, {"a IS NOT NULL", "a IS NOT NULL"}, {"p IS UNKNOWN", "p IS NULL"}, {"a IS DISTINCT FROM b", "a IS DISTINCT FROM b"},
		{"ts + INTERVAL '1' DAY", "ts + INTERVAL '1' DAY"}, {"ts > TIMESTAMP '2020-01-01 00:00:00'", "ts > TIMESTAMP '2020-01-01 00:00:00'"},
		{"d * 1.10", "d * 1.10"}, {"x'0aff' || x'01'", "x'0aff01'"}, {"DATE '2020-01-31' + INTERVAL '1' MONTH", "DATE '2020-02-29'"}, {"s || 'it''s'", "s || 'it''s'"},
		{"NULLIF(a, 0)", "CASE WHEN a = 0 THEN CAST(NULL AS INT) ELSE a END"}, {"MOD(a, 3)", "a % 3"}, {"INTERVAL '14' MONTH", "INTERVAL '14' MONTH"},
	}
	for _, c := range cases {
		e := mustParse(t, c.in, testColumns())
		f, err := Fold(e, Session{})
		if err != nil || f.String() != c.want {
			t.Errorf("%s: %v, %v; want %s", c.in, f, err, c.want)
		}
		if !f.Type().SameIgnoringNull(e.Type()) {
			t.Errorf("%s: folding changed %s to %s", c.in, e.Type(), f.Type())
		}
	}
}

func TestNullability(t *testing.T) {
	cases := []struct {
		in       string
		nullable bool
	}{
		{"n + 1", false}, {"n + a", true}, {"n = 1", false}, {"a = 1", true}, {"a IS NULL", false}, {"a IS DISTINCT FROM b", false},
		{"COALESCE(a, n)", false}, {"COALESCE(a, b)", true}, {"CAST(n AS STRING)", false}, {"TRY_CAST(n AS STRING)", true},
		{"CASE WHEN p THEN n ELSE 1 END", false}, {"CASE WHEN p THEN n END", true}, {"n IN (1, 2)", false}, {"n IN (1, NULL)", true}, {"ARRAY[a]", false}, {"arr[1]", true},
		{"n > 1 AND p", true}, {"NOT n > 1", false}, {"IFNULL(a, n)", false}, {"NULLIF(n, 1)", true}, {"GREATEST(n, 1)", false}, {"GREATEST(n, a)", true},
	}
	for _, c := range cases {
		if e := mustParse(t, c.in, testColumns()); e.Type().Nullable != c.nullable {
			t.Errorf("%s: nullable %t", c.in, e.Type().Nullable)
		}
	}
}

func TestTreeHelpers(t *testing.T) {
	cols := testColumns()
	all := "CASE WHEN a IN (1, 2) OR s LIKE 'x' THEN COALESCE(arr[b], r.x) ELSE CAST(-d AS INT) END"
	e := mustParse(t, all, cols)
	if got := fmt.Sprint(ColumnsOf(e)); got != "[0 1 2 4 5 6]" {
		t.Errorf("columns %s", got)
	}
	m := []int{10, 11, 12, 13, 14, 15, 16}
	moved := Remap(e, m)
	if got := fmt.Sprint(ColumnsOf(moved)); got != "[10 11 12 14 15 16]" || moved.String() != e.String() {
		t.Errorf("columns %s of %s", got, moved)
	}
	if Equal(e, moved) || !Equal(e, mustParse(t, all, cols)) {
		t.Error("Equal is wrong")
	}
	// Every pair of different expressions is different, whatever they share.
	var es []Expr
	for _, s := range []string{"a", "b", "a + b", "b + a", "a - b", "a = b", "a <> b", "a IS NULL", "a IS NOT NULL", "CAST(a AS BIGINT)", "TRY_CAST(a AS BIGINT)", "CAST(a AS STRING)",
		"a IN (1, 2)", "a IN (1, 3)", "a NOT IN (1, 2)", "s LIKE 'a'", "s NOT LIKE 'a'", "s SIMILAR TO 'a'", "COALESCE(a, b)", "COALESCE(a, b, a)", "1", "1.0", "'1'", "NULL", "arr[1]", "r.x",
		"ROW(a)", "ARRAY[a]", "ARRAY[a, b]", "CASE WHEN p THEN a ELSE b END", "CASE WHEN p THEN b ELSE a END", "NOT p", "-a", "p AND p", "p OR p"} {
		es = append(es, mustParse(t, s, cols))
	}
	for i, a := range es {
		for j, b := range es {
			if Equal(a, b) != (i == j) {
				t.Errorf("Equal(%s, %s) is %t", a, b, i != j)
			}
		}
	}
	parts := Conjuncts(mustParse(t, "a = 1 AND (b = 2 AND p) AND (p OR p)", cols))
	if len(parts) != 4 || And(parts...).String() != "(((a = 1) AND (b = 2)) AND p) AND (p OR p)" || And() != nil {
		t.Errorf("conjuncts %v", parts)
	}
	if d, ok := Constant(mustParse(t, "1 + 2", nil), Session{}); !ok || d.I64 != 3 {
		t.Errorf("1 + 2 is %v %t", d, ok)
	}
	for _, s := range []string{"a", "CAST('x' AS INT)"} {
		if d, ok := Constant(mustParse(t, s, cols), Session{}); ok {
			t.Errorf("%s is the constant %v", s, d)
		}
	}
	if !IsConstant(mustParse(t, "1 + 2", nil)) || IsConstant(e) || !IsDeterministic(e) {
		t.Error("IsConstant or IsDeterministic is wrong")
	}
}

// nowFunc is a function that is the same for a whole batch, upperFunc a strict one.
func nowFunc() *Func {
	return &Func{Name: "NOW", Aliases: []string{"CURRENT_TIMESTAMP"}, Bind: func(*CallSite) (Bound, error) {
		return Bound{Type: types.TimestampOf(types.TimestampLTZ, 3).NotNull(), Dynamic: true, NewEval: func(s Session) Eval {
			return func(_ []*batch.Vec, rows []int32, _ int, out *batch.Vec, _ func(int32, *diag.Error)) {
				for _, r := range rows {
					out.I64[r] = s.Instant().UnixMicro()
				}
			}
		}}, nil
	}}
}

func upperFunc() *Func {
	return &Func{Name: "UPPER", Bind: func(c *CallSite) (Bound, error) {
		if len(c.Args) != 1 {
			return Bound{}, wrongArgs(c, "UPPER(string)")
		}
		x, err := ImplicitCast(c.Args[0], types.StringType)
		return Bound{Args: []Expr{x}, Type: types.StringType.WithNull(true), Strict: true, NewEval: func(Session) Eval {
			return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, fail func(int32, *diag.Error)) {
				for _, r := range rows {
					if args[0].IsNull(int(r)) {
						panic("a strict function saw NULL")
					}
					s := args[0].Str[args[0].Idx(int(r))]
					if s == "bad" {
						fail(r, diag.New(diag.Data, diag.Pos{}, "bad string"))
						continue
					}
					out.Str[r] = strings.ToUpper(s)
				}
			}
		}}, err
	}}
}

func TestFunctions(t *testing.T) {
	r := NewRegistry()
	for _, f := range []*Func{nowFunc(), upperFunc()} {
		if r.Lookup(f.Name) == nil {
			if err := r.Register(f); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := r.Register(&Func{Name: "MY", Aliases: []string{"coalesce"}}); err == nil || r.Lookup("MY") != nil {
		t.Errorf("clash accepted: %v", err)
	}
	names := []string{}
	for _, f := range r.Functions() {
		names = append(names, f.Name)
	}
	if !slices.IsSorted(names) || !slices.Contains(names, "COALESCE") || slices.Contains(names, "SUBSTR") {
		t.Errorf("functions %v", names)
	}
	if _, err := r.NewCall("COALESC", nil, CallOptions{}, Session{}); err == nil || !strings.Contains(err.(*diag.Error).Hint, "COALESCE") {
		t.Errorf("no suggestion: %v", err)
	}
}

// TestStrictCall: strict functions see no NULLs; errors count only where the result is used.
func TestStrictCall(t *testing.T) {
	r := &Registry{funcs: map[string]*Func{}}
	if err := r.Register(upperFunc()); err != nil {
		t.Fatal(err)
	}
	s := &Column{Index: 0, Name: "s", T: types.StringType}
	call, err := r.NewCall("upper", []Expr{s}, CallOptions{}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	v := batch.NewVec(types.StringType, 4)
	copy(v.Str, []string{"a", "", "bad", "d"})
	v.SetNull(1, 4)
	b := &batch.Batch{N: 4, Cols: []*batch.Vec{v}}
	p, err := Compile([]Expr{call}, Session{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Eval(b); err == nil || err.(*RowError).Row != 2 || diag.CodeOf(err) != diag.Data {
		t.Errorf("got %v", err)
	}
	b.Sel = []int32{0, 1, 3}
	out, err := p.Eval(b)
	if err != nil || out[0].Str[0] != "A" || !out[0].IsNull(1) || out[0].Str[3] != "D" {
		t.Errorf("got %v, %v", out, err)
	}
	konst := batch.NewConst(types.StringType, types.StrDatum("bad"))
	if _, err := p.Eval(&batch.Batch{N: 4, Sel: []int32{2}, Cols: []*batch.Vec{konst}}); err == nil || err.(*RowError).Row != 2 {
		t.Errorf("const: %v", err)
	}
	if _, err := p.Eval(&batch.Batch{N: 0, Cols: []*batch.Vec{konst}}); err != nil {
		t.Errorf("no rows: %v", err)
	}
	lit, _ := r.NewCall("UPPER", []Expr{NewStringLiteral("x")}, CallOptions{}, Session{})
	if f, err := Fold(lit, Session{}); err != nil || f.String() != "'X'" {
		t.Errorf("folded to %v, %v", f, err)
	}
}

// TestInstant: one time per batch, shared by all calls; a fixed one when the session says so; never folded.
func TestInstant(t *testing.T) {
	r := &Registry{funcs: map[string]*Func{}}
	if err := r.Register(nowFunc()); err != nil {
		t.Fatal(err)
	}
	now := func() Expr {
		e, err := r.NewCall("current_timestamp", nil, CallOptions{}, Session{})
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	eq, _ := NewBinary("=", now(), &Cast{X: now(), T: now().Type()})
	fixed := time.Date(2020, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, s := range []Session{{}, {Now: fixed}} {
		p, err := Compile([]Expr{eq, now()}, s)
		if err != nil {
			t.Fatal(err)
		}
		b := &batch.Batch{N: 3}
		out, err := p.Eval(b)
		if err != nil || !out[0].Bool[0] || !out[0].Bool[2] {
			t.Fatalf("%v %v", out, err)
		}
		first := out[1].I64[0]
		if !s.Now.IsZero() && first != fixed.UnixMicro() {
			t.Errorf("got %d", first)
		}
		for i := 0; s.Now.IsZero(); i++ {
			if out, _ := p.Eval(b); out[1].I64[0] > first {
				break
			}
		}
	}
}

// TestFilterKeepsAll: a filter that keeps every row keeps "no selection"; one that keeps none has an empty selection.
func TestFilterKeepsAll(t *testing.T) {
	cols := testColumns()
	v := batch.NewVec(types.IntType, 100)
	b := &batch.Batch{N: 100, Cols: []*batch.Vec{v}}
	for text, want := range map[string]int{"a = 0": 100, "a <> 0": 0, "1 = 1": 100, "1 = 2": 0, "a = NULL": 0, "a = 0 AND a < 5": 100, "a = 0 AND a > 5": 0} {
		f, err := CompileFilter(mustParse(t, text, cols), Session{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := f.Apply(b)
		if err != nil || out.Len() != want || (out.Sel == nil) != (want == 100) {
			t.Errorf("%s: %d rows, selection %v, %v", text, out.Len(), out.Sel != nil, err)
		}
	}
}
