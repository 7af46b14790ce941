package streamsql

import (
	"encoding"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// AggregateFunc is an aggregate function made by Aggregate1, Aggregate2 or Aggregate3. It is called as a built-in one:
// with GROUP BY, in windows, with DISTINCT, FILTER and OVER.
type AggregateFunc struct {
	f   *expr.UserAgg
	err error
}

func (f AggregateFunc) register(r *expr.Registry) error {
	if f.err != nil {
		return f.err
	}
	return r.RegisterAgg(f.f)
}

// Aggregation is how an aggregate function computes. S is the state of a group: it begins as the zero value and is kept
// in checkpoints. Structs of numbers and booleans of fixed size are kept as such; other types as JSON of their exported
// fields, unless *S is an encoding.BinaryMarshaler and an encoding.BinaryUnmarshaler. F is the type of Add:
// func(*S, A) error with Aggregate1, func(*S, A, B) error with Aggregate2 and so on.
//
// A row with a NULL argument is skipped. An error fails the job, with the row it happened at.
type Aggregation[S any, F any, R Value] struct {
	// Add takes a row in.
	Add F
	// Retract takes a row out that Add took in, in any order. Without it the function refuses inputs that update or
	// delete rows, and OVER windows with a bounded frame.
	Retract F
	// Result is the value of a group; ok false makes it NULL. It must not change the state.
	Result func(s *S) (value R, ok bool, err error)
}

// Aggregate1 makes an aggregate function of one argument.
func Aggregate1[S any, A, R Value](name string, a Aggregation[S, func(*S, A) error, R]) AggregateFunc {
	get := datumGetter[A]()
	bind := func(f func(*S, A) error) step[S] {
		return func(s *S, args []types.Datum) error { return f(s, get(args[0])) }
	}
	return aggregate(name, []types.Type{typeOf[A]()}, a.Add != nil, a.Retract != nil, bind(a.Add), bind(a.Retract), a.Result)
}

// Aggregate2 makes an aggregate function of two arguments.
func Aggregate2[S any, A, B, R Value](name string, a Aggregation[S, func(*S, A, B) error, R]) AggregateFunc {
	get0, get1 := datumGetter[A](), datumGetter[B]()
	bind := func(f func(*S, A, B) error) step[S] {
		return func(s *S, args []types.Datum) error { return f(s, get0(args[0]), get1(args[1])) }
	}
	return aggregate(name, []types.Type{typeOf[A](), typeOf[B]()}, a.Add != nil, a.Retract != nil, bind(a.Add), bind(a.Retract), a.Result)
}

// Aggregate3 makes an aggregate function of three arguments.
func Aggregate3[S any, A, B, C, R Value](name string, a Aggregation[S, func(*S, A, B, C) error, R]) AggregateFunc {
	get0, get1, get2 := datumGetter[A](), datumGetter[B](), datumGetter[C]()
	bind := func(f func(*S, A, B, C) error) step[S] {
		return func(s *S, args []types.Datum) error { return f(s, get0(args[0]), get1(args[1]), get2(args[2])) }
	}
	return aggregate(name, []types.Type{typeOf[A](), typeOf[B](), typeOf[C]()}, a.Add != nil, a.Retract != nil, bind(a.Add), bind(a.Retract), a.Result)
}

// step takes the arguments of a row into or out of a state.
type step[S any] func(s *S, args []types.Datum) error

func aggregate[S any, R Value](name string, params []types.Type, adds, retracts bool, add, retract step[S], result func(*S) (R, bool, error)) AggregateFunc {
	name = strings.ToUpper(name)
	if !adds || result == nil {
		return AggregateFunc{err: diag.New(diag.Semantic, diag.Pos{}, "aggregate function %s has no Add or no Result", name).
			WithHint("set both in its Aggregation")}
	}
	c, lost := codecOf[S]()
	if lost != "" {
		return AggregateFunc{err: diag.New(diag.Semantic, diag.Pos{}, "aggregate function %s cannot keep its state of Go type %s", name, reflect.TypeFor[S]()).
			WithDetail("%s", lost).WithHint("export the fields, or give the type MarshalBinary and UnmarshalBinary")}
	}
	return AggregateFunc{f: &expr.UserAgg{
		Name: name, Usage: usageOf(name, params), Doc: "Registered by the program.", Params: params, Result: typeOf[R](), Retracts: retracts,
		New: func() expr.UserAccumulator {
			return &userAccumulator[S, R]{name: name, add: add, retract: retract, result: result, datum: datumFrom[R](),
				codec: c, args: make([]types.Datum, len(params))}
		},
	}}
}

// userAccumulator runs an aggregate function on encoded states.
type userAccumulator[S any, R Value] struct {
	name         string
	add, retract step[S]
	result       func(*S) (R, bool, error)
	datum        func(R) types.Datum
	codec        codec[S]
	args         []types.Datum
	buf          []byte
	value        types.Datum
}

// Step implements expr.UserAccumulator.
func (u *userAccumulator[S, R]) Step(acc []byte, v *batch.Vec, i int, sign int64) ([]byte, *types.Datum, error) {
	var s S
	if acc != nil {
		if err := u.codec.decode(acc, &s); err != nil {
			return nil, nil, u.failed("its state cannot be read", err).
				WithHint("was the Go type of the state changed? start the job without the old state")
		}
	}
	known, err := u.take(v, i)
	if err != nil {
		return nil, nil, err
	}
	if known {
		f := u.add
		if sign < 0 {
			f = u.retract
		}
		if err := f(&s, u.args); err != nil {
			return nil, nil, u.failed("", err)
		}
	}
	r, ok, err := u.result(&s)
	if err != nil {
		return nil, nil, u.failed("", err)
	}
	if u.buf, err = u.codec.encode(u.buf[:0], &s); err != nil {
		return nil, nil, u.failed("its state cannot be kept", err)
	}
	if !ok {
		return u.buf, nil, nil
	}
	u.value = u.datum(r)
	return u.buf, &u.value, nil
}

// take reads the arguments; known is false when one is NULL.
func (u *userAccumulator[S, R]) take(v *batch.Vec, i int) (known bool, err error) {
	if len(u.args) == 1 {
		u.args[0] = v.Datum(i)
		return true, nil
	}
	row, err := types.DecodeNested(v.Str[i], v.Type)
	if err != nil {
		return false, err
	}
	copy(u.args, row.List)
	for _, a := range u.args {
		if a.IsNull {
			return false, nil
		}
	}
	return true, nil
}

func (u *userAccumulator[S, R]) failed(what string, err error) *diag.Error {
	e := diag.New(diag.Data, diag.Pos{}, "aggregate function %s", u.name).Wrap(err)
	if what != "" {
		e.WithDetail("%s", what)
	}
	return e
}

// codec is how states become bytes.
type codec[S any] struct {
	encode func(dst []byte, s *S) ([]byte, error)
	decode func(b []byte, s *S) error
}

// codecOf chooses how states of type S are kept; lost says what would not be.
func codecOf[S any]() (c codec[S], lost string) {
	var s S
	_, marshals := any(&s).(encoding.BinaryMarshaler)
	_, unmarshals := any(&s).(encoding.BinaryUnmarshaler)
	size := binary.Size(&s)
	switch {
	case marshals && unmarshals:
		return codec[S]{
			encode: func(dst []byte, s *S) ([]byte, error) {
				b, err := any(s).(encoding.BinaryMarshaler).MarshalBinary()
				return append(dst, b...), err
			},
			decode: func(b []byte, s *S) error { return any(s).(encoding.BinaryUnmarshaler).UnmarshalBinary(b) },
		}, ""
	case lostField(reflect.TypeFor[S](), 0) != "":
		return c, lostField(reflect.TypeFor[S](), 0)
	case size >= 0:
		return codec[S]{
			encode: func(dst []byte, s *S) ([]byte, error) { return binary.Append(dst, binary.LittleEndian, s) },
			decode: func(b []byte, s *S) error {
				if len(b) != size {
					return fmt.Errorf("%d bytes, not %d", len(b), size)
				}
				_, err := binary.Decode(b, binary.LittleEndian, s)
				return err
			},
		}, ""
	}
	return codec[S]{
		encode: func(dst []byte, s *S) ([]byte, error) {
			b, err := json.Marshal(s)
			return append(dst, b...), err
		},
		decode: func(b []byte, s *S) error { return json.Unmarshal(b, s) },
	}, ""
}

// lostField names a part of t that neither package binary nor JSON keeps, "" when there is none.
func lostField(t reflect.Type, depth int) string {
	p := reflect.PointerTo(t)
	if depth > 16 || p.Implements(reflect.TypeFor[json.Marshaler]()) || p.Implements(reflect.TypeFor[encoding.TextMarshaler]()) {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			if !f.IsExported() {
				return fmt.Sprintf("field %s of %s is not exported", f.Name, t)
			}
			if lost := lostField(f.Type, depth+1); lost != "" {
				return lost
			}
		}
	case reflect.Array, reflect.Slice, reflect.Map, reflect.Pointer:
		return lostField(t.Elem(), depth+1)
	case reflect.Chan, reflect.Func, reflect.Interface, reflect.Complex64, reflect.Complex128, reflect.UnsafePointer:
		return fmt.Sprintf("a %s cannot be kept", t)
	}
	return ""
}

// datumGetter reads an argument of type T, which is not NULL.
func datumGetter[T Value]() func(types.Datum) T {
	var g any
	switch any(*new(T)).(type) {
	case bool:
		g = func(d types.Datum) bool { return d.Bool }
	case int64:
		g = func(d types.Datum) int64 { return d.I64 }
	case float64:
		g = func(d types.Datum) float64 { return d.F64 }
	case string:
		g = func(d types.Datum) string { return d.Str }
	case []byte:
		g = func(d types.Datum) []byte { return []byte(d.Str) }
	default:
		g = func(d types.Datum) time.Time { return time.UnixMicro(d.I64) }
	}
	return g.(func(types.Datum) T)
}

func datumFrom[T Value]() func(T) types.Datum {
	var g any
	switch any(*new(T)).(type) {
	case bool:
		g = types.BoolDatum
	case int64:
		g = types.IntDatum
	case float64:
		g = types.FloatDatum
	case string:
		g = types.StrDatum
	case []byte:
		g = func(b []byte) types.Datum { return types.StrDatum(string(b)) }
	default:
		g = func(t time.Time) types.Datum { return types.IntDatum(t.UnixMicro()) }
	}
	return g.(func(T) types.Datum)
}
