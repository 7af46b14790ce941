package expr

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// The reference for the kernels is the same expression over a batch of one row: one code path (dense, no selection) that
// the tables of semantics_test.go pin down. Here random expressions over random columns with NULLs must give row for row
// the same over large batches, dense and sparse, whatever mix of columns and constants.

var columnTypes = []string{"TINYINT", "INT", "BIGINT", "DOUBLE", "FLOAT", "DECIMAL(7,2)", "DECIMAL(18,4)", "DECIMAL(30,5)", "STRING", "BOOLEAN",
	"TIMESTAMP(3)", "TIMESTAMP(9)", "DATE", "TIME", "ARRAY<INT>"}

type generator struct {
	r    *rand.Rand
	cols []*Column
}

// expr is a random expression of a type that ok accepts.
func (g *generator) expr(depth int) Expr {
	for {
		if depth == 0 && g.r.IntN(3) == 0 {
			t := g.cols[g.r.IntN(len(g.cols))].T
			if d := g.datum(t); !t.IsNested() {
				return &Literal{Value: d, T: t.WithNull(d.IsNull)}
			}
		}
		if depth == 0 {
			return g.cols[g.r.IntN(len(g.cols))]
		}
		e, err := g.node(depth - 1)
		if err == nil {
			return e
		}
	}
}

func (g *generator) node(depth int) (Expr, error) {
	pick := func(ops ...string) string { return ops[g.r.IntN(len(ops))] }
	switch g.r.IntN(18) {
	case 0, 1, 2:
		return NewBinary(pick("+", "-", "*", "/", "%"), g.expr(depth), g.expr(depth))
	case 3, 4:
		return NewBinary(pick("=", "<>", "<", "<=", ">", ">=", "IS DISTINCT FROM", "IS NOT DISTINCT FROM"), g.expr(depth), g.expr(depth))
	case 5:
		return NewBinary(pick("AND", "OR"), g.expr(depth), g.expr(depth))
	case 6:
		return NewUnary(pick("NOT", "-"), g.expr(depth))
	case 7:
		return NewCase(nil, []Expr{g.expr(depth), g.expr(depth)}, []Expr{g.expr(depth), g.expr(depth)}, g.expr(depth))
	case 8:
		return NewCoalesce([]Expr{g.expr(depth), g.expr(depth), g.expr(depth)})
	case 9, 10:
		k := columnTypes[g.r.IntN(len(columnTypes)-1)]
		p := &exprParser{}
		for _, m := range tokenRE.FindAllStringSubmatch(k, -1) {
			p.toks = append(p.toks, m[1])
		}
		return NewCast(g.expr(depth), p.typ(), g.r.IntN(2) == 0)
	case 11:
		return NewIs(g.expr(depth), pick("NULL", "TRUE", "FALSE"), g.r.IntN(2) == 0)
	case 12:
		return NewBetween(g.expr(depth), g.expr(depth), g.expr(depth), g.r.IntN(2) == 0, g.r.IntN(2) == 0)
	case 13:
		return NewIn(g.expr(depth), []Expr{g.expr(0), g.expr(0), g.expr(0)}, g.r.IntN(2) == 0)
	case 14:
		return NewLike(g.expr(depth), g.expr(depth), nil, false, g.r.IntN(2) == 0)
	case 15:
		return NewItem(g.expr(depth), g.expr(0))
	case 16:
		op := pick("+", "-")
		unit := pick("DAY", "MONTH")
		t := types.Of(types.IntervalDayTime)
		if unit == "MONTH" {
			t = types.Of(types.IntervalYearMonth)
		}
		return NewBinary(op, g.expr(depth), NewIntervalLiteral(t, int64(g.r.IntN(5))))
	}
	return NewBinary("||", g.expr(depth), g.expr(depth))
}

// datum is a small random value, so that equal values, zeros and overflows occur.
func (g *generator) datum(t types.Type) types.Datum {
	if g.r.IntN(6) == 0 {
		return types.NullDatum
	}
	n := int64(g.r.IntN(7)) - 3
	switch t.Kind {
	case types.Boolean:
		return types.BoolDatum(n > 0)
	case types.TinyInt:
		return types.IntDatum(int64(int8(n * 41)))
	case types.BigInt:
		return types.IntDatum(n * (math.MaxInt64 / 3))
	case types.Double, types.Float:
		return types.FloatDatum([]float64{math.NaN(), math.Inf(1), -1.5, math.Copysign(0, -1), 0, 2, 1e20}[n+3])
	case types.Decimal:
		if t.Precision > 18 {
			v, _ := types.Rescale(types.I128(n), 0, 25, 38)
			return types.I128Datum(v)
		}
		return types.IntDatum(n * types.Pow10I64(t.Precision-1))
	case types.Varchar:
		return types.StrDatum([]string{"", "a", "ab", "1", "2020-01-01", "true", "-5.5"}[n+3])
	case types.Timestamp:
		return types.JoinTimestamp(n*86400*31, 123456789, t.Precision)
	case types.Time:
		return types.IntDatum((n + 3) * 3600000)
	case types.Array:
		return types.ListDatum(types.IntDatum(n), types.NullDatum)
	}
	return types.IntDatum(n)
}

func TestKernelsAgree(t *testing.T) {
	s := Session{Zone: time.UTC}
	for seed := range uint64(short.Or(400, 100)) {
		g := &generator{r: rand.New(rand.NewPCG(seed, 11))}
		b := &batch.Batch{N: 1 + g.r.IntN(130)}
		for i := 0; i < 6; i++ {
			typ := parseType(t, columnTypes[g.r.IntN(len(columnTypes))])
			g.cols = append(g.cols, &Column{Index: i, Name: fmt.Sprintf("c%d", i), T: typ})
			b.Cols = append(b.Cols, g.column(typ, b.N))
		}
		if g.r.IntN(3) > 0 {
			b.Sel = []int32{}
			density := g.r.IntN(10)
			for r := 0; r < b.N; r++ {
				if g.r.IntN(10) <= density {
					b.Sel = append(b.Sel, int32(r))
				}
			}
		}
		es := []Expr{g.expr(3), g.expr(2), g.expr(3)}
		checkAgainstRows(t, s, es, b)
		checkFilter(t, s, es, b)
		if t.Failed() {
			t.Fatalf("seed %d: %v", seed, es)
		}
	}
}

func (g *generator) column(typ types.Type, n int) *batch.Vec {
	if g.r.IntN(4) == 0 {
		return batch.NewConst(typ, g.datum(typ))
	}
	v := batch.NewVec(typ, n)
	nulls := g.r.IntN(2) == 0
	for r := 0; r < n; r++ {
		d := g.datum(typ)
		for d.IsNull && !nulls {
			d = g.datum(typ)
		}
		if d.IsNull {
			v.SetNull(r, n)
			if typ.IsNested() {
				v.Set(r, types.ListDatum())
			}
			continue
		}
		v.Set(r, d)
	}
	return v
}

// oneRow is row r of b as a batch of its own.
func oneRow(b *batch.Batch, r int) *batch.Batch {
	out := &batch.Batch{N: 1}
	for _, v := range b.Cols {
		w := batch.NewVec(v.Type, 1)
		if v.IsNull(r) {
			w.SetNull(0, 1)
		} else {
			w.Set(0, v.Datum(r))
		}
		out.Cols = append(out.Cols, w)
	}
	return out
}

func checkAgainstRows(t *testing.T, s Session, es []Expr, b *batch.Batch) {
	t.Helper()
	p, err := Compile(es, s)
	if err != nil {
		t.Fatal(err)
	}
	q, err := Compile(es, s)
	if err != nil {
		t.Fatal(err)
	}
	// Twice over the same batch: state left in the program must not show.
	for round := 0; round < 2; round++ {
		out, err := p.Eval(b)
		failed := map[int]bool{}
		for i := 0; i < b.Len(); i++ {
			r := b.Row(i)
			want, werr := q.Eval(oneRow(b, r))
			if werr != nil {
				failed[r] = true
				continue
			}
			if err != nil {
				continue
			}
			for k := range es {
				if got, want := Text(out[k].Datum(r), out[k].Type, s), Text(want[k].Datum(0), want[k].Type, s); got != want {
					t.Errorf("%s: row %d: %s, alone %s", es[k], r, got, want)
				}
			}
		}
		var re *RowError
		if errors.As(err, &re) != (len(failed) > 0) || re != nil && !failed[re.Row] {
			t.Errorf("%v: error %v, rows that fail alone: %v", es, err, failed)
		}
	}
}

// checkFilter compares Filter with the column of the same condition.
func checkFilter(t *testing.T, s Session, es []Expr, b *batch.Batch) {
	t.Helper()
	for _, e := range es {
		if e.Type().Kind != types.Boolean {
			continue
		}
		f, err := CompileFilter(e, s)
		if err != nil {
			t.Fatal(err)
		}
		p, _ := Compile([]Expr{e}, s)
		before := fmt.Sprint(b.Sel)
		got, ferr := f.Apply(b)
		out, perr := p.Eval(b)
		// UNKNOWN AND x must be computed for a result; the filter drops the row without x.
		if ferr != nil && perr == nil {
			t.Errorf("%s: filter error %v, program error %v", e, ferr, perr)
		}
		if before != fmt.Sprint(b.Sel) {
			t.Errorf("%s: the filter changed its input", e)
		}
		if ferr != nil || perr != nil {
			continue
		}
		var want, have []int
		for i := 0; i < b.Len(); i++ {
			if r := b.Row(i); !out[0].IsNull(r) && out[0].Bool[out[0].Idx(r)] {
				want = append(want, r)
			}
		}
		for i := 0; i < got.Len(); i++ {
			have = append(have, got.Row(i))
		}
		if fmt.Sprint(want) != fmt.Sprint(have) {
			t.Errorf("%s: filter keeps %v, want %v", e, have, want)
		}
		checkCalc(t, s, e, append(es, e), b)
	}
}

// checkCalc: a Calc, whose filter and projection share their common parts, gives what the two give one after the other.
func checkCalc(t *testing.T, s Session, cond Expr, es []Expr, b *batch.Batch) {
	t.Helper()
	c, err := CompileCalc(cond, es, s)
	if err != nil {
		t.Fatal(err)
	}
	f, _ := CompileFilter(cond, s)
	p, _ := Compile(es, s)
	for range 2 {
		kept, werr := f.Apply(b)
		var want []*batch.Vec
		if werr == nil {
			want, werr = p.Eval(kept)
		}
		got, err := c.Apply(b)
		if (err == nil) != (werr == nil) {
			t.Errorf("WHERE %s SELECT %v: error %v, want %v", cond, es, err, werr)
		}
		if err != nil || werr != nil {
			continue
		}
		if fmt.Sprint(got.Sel) != fmt.Sprint(kept.Sel) {
			t.Errorf("WHERE %s: keeps %v, want %v", cond, got.Sel, kept.Sel)
			continue
		}
		for i := 0; i < got.Len(); i++ {
			for k := range es {
				r := got.Row(i)
				if x, y := Text(got.Cols[k].Datum(r), want[k].Type, s), Text(want[k].Datum(r), want[k].Type, s); x != y {
					t.Errorf("WHERE %s SELECT %s: row %d: %s, want %s", cond, es[k], r, x, y)
				}
			}
		}
	}
}

// TestErrorsOfUnneededRows: an error counts only where the row's result is used.
func TestErrorsOfUnneededRows(t *testing.T) {
	x := &Column{Index: 0, Name: "x", T: types.IntType}
	cols := map[string]*Column{"x": x}
	v := batch.NewVec(types.IntType, 4)
	copy(v.I64, []int64{0, 2, 0, 5})
	b := &batch.Batch{N: 4, Cols: []*batch.Vec{v}}
	cases := []struct{ text, want string }{
		{"x <> 0 AND 10 / x > 3", "[FALSE TRUE FALSE FALSE]"},
		{"x = 0 OR 10 / x > 3", "[TRUE TRUE TRUE FALSE]"},
		{"CASE WHEN x = 0 THEN -1 ELSE 10 / x END", "[-1 5 -1 2]"},
		{"CASE WHEN x = 0 THEN -1 WHEN 10 / x > 3 THEN 10 / x ELSE 0 END", "[-1 5 -1 0]"},
		{"COALESCE(NULLIF(x, 0), 7)", "[7 2 7 5]"},
		{"COALESCE(x, 1 / (x - x))", "[0 2 0 5]"},
		{"10 / x", "error row 0"},
		{"x = 2 AND 10 / (x - 2) > 0", "error row 1"},
		{"10 / x > 3 AND x <> 0", "error row 0"},
		{"10 / NULLIF(x, 0)", "[NULL 5 NULL 2]"},
	}
	for _, c := range cases {
		e, err := parseExpr(c.text, cols)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Compile([]Expr{e}, Session{})
		if err != nil {
			t.Fatal(err)
		}
		out, err := p.Eval(b)
		var re *RowError
		got := ""
		if errors.As(err, &re) {
			got = fmt.Sprintf("error row %d", re.Row)
		} else {
			var parts []string
			for r := 0; r < 4; r++ {
				parts = append(parts, Text(out[0].Datum(r), out[0].Type, Session{}))
			}
			got = fmt.Sprint(parts)
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", c.text, got, c.want)
		}
	}
	// Both halves share 10 / x, which is computed for all rows; the filter needs it for some.
	f, err := CompileFilter(mustParse(t, "x <> 0 AND 10 / x > 1 AND 10 / x < 5", cols), Session{})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := f.Apply(b); err != nil || fmt.Sprint(out.Sel) != "[3]" {
		t.Errorf("filter: %v, %v", out, err)
	}
	// A row outside the selection may divide by zero.
	e, _ := parseExpr("10 / x", cols)
	p, _ := Compile([]Expr{e}, Session{})
	b.Sel = []int32{1, 3}
	if out, err := p.Eval(b); err != nil || out[0].I64[1] != 5 || out[0].I64[3] != 2 {
		t.Errorf("sparse: %v", err)
	}
	_, err = p.Eval(&batch.Batch{N: 4, Cols: []*batch.Vec{v}})
	if err == nil || !strings.Contains(err.Error(), "10 / x: division by zero") {
		t.Errorf("got %v", err)
	}
}

// TestLongChain: compiling takes time in proportion to the expression, not to its square.
func TestLongChain(t *testing.T) {
	x := &Column{Index: 0, Name: "x", T: types.IntType}
	var e Expr
	const n = 20000
	for i := 0; i < n; i++ {
		eq, err := NewBinary("=", x, &Literal{Value: types.IntDatum(int64(i)), T: types.IntType.NotNull()})
		if err != nil {
			t.Fatal(err)
		}
		if e == nil {
			e = eq
		} else if e, err = NewBinary("OR", e, eq); err != nil {
			t.Fatal(err)
		}
	}
	f, err := CompileFilter(e, Session{})
	if err != nil {
		t.Fatal(err)
	}
	v := batch.NewVec(types.IntType, 2)
	v.I64[0], v.I64[1] = n-1, n
	if out, err := f.Apply(&batch.Batch{N: 2, Cols: []*batch.Vec{v}}); err != nil || fmt.Sprint(out.Sel) != "[0]" {
		t.Errorf("%v, %v", out, err)
	}
}

// TestSharedOnce: an expression that occurs twice is evaluated once, a volatile one every time.
func TestSharedOnce(t *testing.T) {
	calls := 0
	counting := func(volatile bool) *Func {
		return &Func{Name: "COUNTED", Bind: func(c *CallSite) (Bound, error) {
			return Bound{Args: c.Args, Type: types.IntType, Volatile: volatile, Strict: true, NewEval: func(Session) Eval {
				return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, _ func(int32, *diag.Error)) {
					calls++
					for _, r := range rows {
						out.I64[r] = args[0].I64[args[0].Idx(int(r))]
					}
				}
			}}, nil
		}}
	}
	for _, volatile := range []bool{false, true} {
		r := &Registry{funcs: map[string]*Func{}}
		if err := r.Register(counting(volatile)); err != nil {
			t.Fatal(err)
		}
		x := &Column{Index: 0, Name: "x", T: types.IntType}
		call := func() Expr {
			e, err := r.NewCall("counted", []Expr{x}, CallOptions{}, Session{})
			if err != nil {
				t.Fatal(err)
			}
			return e
		}
		sum, _ := NewBinary("+", call(), call())
		p, err := Compile([]Expr{sum, call()}, Session{})
		if err != nil {
			t.Fatal(err)
		}
		calls = 0
		v := batch.NewVec(types.IntType, 3)
		if _, err := p.Eval(&batch.Batch{N: 3, Cols: []*batch.Vec{v}}); err != nil {
			t.Fatal(err)
		}
		if want := map[bool]int{false: 1, true: 3}[volatile]; calls != want {
			t.Errorf("volatile %t: %d calls, want %d", volatile, calls, want)
		}
		// BETWEEN needs its operand twice but evaluates it once, volatile or not.
		between, err := NewBetween(call(), x, x, false, true)
		if err != nil {
			t.Fatal(err)
		}
		if p, err = Compile([]Expr{between}, Session{}); err != nil {
			t.Fatal(err)
		}
		calls = 0
		if _, err := p.Eval(&batch.Batch{N: 3, Cols: []*batch.Vec{v}}); err != nil || calls != 1 {
			t.Errorf("between, volatile %t: %d calls, %v", volatile, calls, err)
		}
	}
}
