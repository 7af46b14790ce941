package streamsql

import (
	"fmt"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Value is the Go types a registered function can take and return, with their SQL types: BOOLEAN, BIGINT, DOUBLE,
// STRING, BYTES, TIMESTAMP_LTZ(6).
type Value interface {
	bool | int64 | float64 | string | []byte | time.Time
}

// Callable is what Register takes: Func, TableFunc and AggregateFunc.
type Callable interface {
	register(r *expr.Registry) error
}

// Func is a scalar function made of a Go function by Func1, Func2 or Func3.
type Func struct{ f *expr.Func }

func (f Func) register(r *expr.Registry) error { return r.Register(f.f) }

// NonDeterministic is f for a function that does not give equal results for equal arguments: calls are not computed
// ahead or merged, and a query in which that could leave rows behind that are taken back is refused or gets a notice
// (docs/sql/determinism.md). After a failure it is called again for the same rows.
func (f Func) NonDeterministic() Func {
	c := *f.f
	bind := c.Bind
	c.Bind = func(s *expr.CallSite) (expr.Bound, error) {
		b, err := bind(s)
		b.Volatile = true
		return b, err
	}
	return Func{&c}
}

const userCategory = expr.UserCategory

// Register makes f callable in statements planned from now on. The name must not be that of a built-in function.
// Functions are called from several goroutines and must be deterministic, or say that they are not: after a failure they
// are called again for the same rows.
func (e *Engine) Register(f Callable) error { return f.register(e.planner.Functions()) }

// Func1 makes a SQL function of one argument. A NULL argument gives NULL without a call; an error fails the job, with
// the row it happened at.
func Func1[A, R Value](name string, f func(A) (R, error)) Func {
	return scalar[R](name, []types.Type{typeOf[A]()}, func() expr.Eval {
		get := getter[A]()
		set := setter[R]()
		return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, fail func(int32, *diag.Error)) {
			for _, r := range rows {
				v, err := f(get(args[0], int(r)))
				finish(name, out, int(r), v, err, set, fail)
			}
		}
	})
}

// Func2 is Func1 for two arguments.
func Func2[A, B, R Value](name string, f func(A, B) (R, error)) Func {
	return scalar[R](name, []types.Type{typeOf[A](), typeOf[B]()}, func() expr.Eval {
		get0, get1 := getter[A](), getter[B]()
		set := setter[R]()
		return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, fail func(int32, *diag.Error)) {
			for _, r := range rows {
				v, err := f(get0(args[0], int(r)), get1(args[1], int(r)))
				finish(name, out, int(r), v, err, set, fail)
			}
		}
	})
}

// Func3 is Func1 for three arguments.
func Func3[A, B, C, R Value](name string, f func(A, B, C) (R, error)) Func {
	return scalar[R](name, []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}, func() expr.Eval {
		get0, get1, get2 := getter[A](), getter[B](), getter[C]()
		set := setter[R]()
		return func(args []*batch.Vec, rows []int32, _ int, out *batch.Vec, fail func(int32, *diag.Error)) {
			for _, r := range rows {
				v, err := f(get0(args[0], int(r)), get1(args[1], int(r)), get2(args[2], int(r)))
				finish(name, out, int(r), v, err, set, fail)
			}
		}
	})
}

func scalar[R Value](name string, params []types.Type, eval func() expr.Eval) Func {
	name = strings.ToUpper(name)
	usage := usageOf(name, params)
	return Func{&expr.Func{
		Name: name, Category: userCategory, Usage: usage, Doc: "Registered by the program.",
		Bind: func(c *expr.CallSite) (expr.Bound, error) {
			args, err := expr.UserArgs(name, usage, params, c.Args)
			if err != nil {
				return expr.Bound{}, err
			}
			return expr.Bound{Args: args, Type: typeOf[R](), Strict: true, NewEval: func(expr.Session) expr.Eval { return eval() }}, nil
		},
	}}
}

// usageOf is a call of a function with the types of its arguments.
func usageOf(name string, params []types.Type) string {
	texts := make([]string, len(params))
	for i, p := range params {
		texts[i] = p.String()
	}
	return fmt.Sprintf("%s(%s)", name, strings.Join(texts, ", "))
}

func finish[R Value](name string, out *batch.Vec, r int, v R, err error, set func(*batch.Vec, int, R), fail func(int32, *diag.Error)) {
	if err != nil {
		fail(int32(r), diag.New(diag.Data, diag.Pos{}, "function %s", name).Wrap(err))
		return
	}
	set(out, r, v)
}

func typeOf[T Value]() types.Type {
	var zero T
	switch any(zero).(type) {
	case bool:
		return types.BoolType
	case int64:
		return types.BigIntType
	case float64:
		return types.DoubleType
	case string:
		return types.StringType
	case []byte:
		return types.BytesType
	}
	return types.TimestampOf(types.TimestampLTZ, 6)
}

// getter reads arguments of type T; it is chosen once, so that calls need no type switch and no boxing.
func getter[T Value]() func(*batch.Vec, int) T {
	var g any
	switch any(*new(T)).(type) {
	case bool:
		g = func(v *batch.Vec, r int) bool { return v.Bool[v.Idx(r)] }
	case int64:
		g = func(v *batch.Vec, r int) int64 { return v.I64[v.Idx(r)] }
	case float64:
		g = func(v *batch.Vec, r int) float64 { return v.F64[v.Idx(r)] }
	case string:
		g = func(v *batch.Vec, r int) string { return v.Str[v.Idx(r)] }
	case []byte:
		g = func(v *batch.Vec, r int) []byte { return []byte(v.Str[v.Idx(r)]) }
	default:
		g = func(v *batch.Vec, r int) time.Time { return time.UnixMicro(v.I64[v.Idx(r)]) }
	}
	return g.(func(*batch.Vec, int) T)
}

func setter[T Value]() func(*batch.Vec, int, T) {
	var s any
	switch any(*new(T)).(type) {
	case bool:
		s = func(v *batch.Vec, r int, x bool) { v.Bool[r] = x }
	case int64:
		s = func(v *batch.Vec, r int, x int64) { v.I64[r] = x }
	case float64:
		s = func(v *batch.Vec, r int, x float64) { v.F64[r] = x }
	case string:
		s = func(v *batch.Vec, r int, x string) { v.Str[r] = x }
	case []byte:
		s = func(v *batch.Vec, r int, x []byte) { v.Str[r] = string(x) }
	default:
		s = func(v *batch.Vec, r int, x time.Time) { v.I64[r] = x.UnixMicro() }
	}
	return s.(func(*batch.Vec, int, T))
}
