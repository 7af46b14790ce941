package expr

import (
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// The kit the function tables are written with. A function is a row of a table: its parameters as a short text, its
// result type, and a Go function of one row; the adapters below turn the latter into an Eval over columns.
//
// Parameters, one letter each; '|' starts the optional ones, '*' lets the last repeat:
//
//	s  character string     i  INT            n  number       a  ARRAY     t  TIMESTAMP or TIMESTAMP_LTZ
//	b  BYTES                l  BIGINT         d  DOUBLE       m  MAP       x  anything
//	q  string or BYTES      I  any integer    c  BOOLEAN

// row is one row of the arguments of a call.
type row struct {
	args []*batch.Vec
	r    int
}

func (x row) str(i int) string  { v := x.args[i]; return v.Str[v.Idx(x.r)] }
func (x row) i64(i int) int64   { v := x.args[i]; return v.I64[v.Idx(x.r)] }
func (x row) f64(i int) float64 { v := x.args[i]; return v.F64[v.Idx(x.r)] }
func (x row) bool(i int) bool   { v := x.args[i]; return v.Bool[v.Idx(x.r)] }
func (x row) null(i int) bool   { return x.args[i].IsNull(x.r) }
func (x row) has(i int) bool    { return i < len(x.args) }

// datum decodes nested values: for functions whose work is of that size anyway.
func (x row) datum(i int) types.Datum { return x.args[i].Datum(x.r) }

// isNull is what a row function returns as error for a NULL result.
var isNull = diag.New(diag.Internal, diag.Pos{}, "NULL")

// site is a call whose arguments have been checked and coerced.
type site struct {
	*CallSite
	args []Expr
	ret  types.Type
}

// literal is the value of argument i when it is a literal, or minus a literal, and not NULL. Other constant expressions
// do not count, as in Flink: a bad pattern such as '(' || ” fails when a row meets it.
func (b *site) literal(i int) (types.Datum, bool) {
	if i >= len(b.args) {
		return types.Datum{}, false
	}
	x := b.args[i]
	if u, ok := x.(*Unary); ok && u.Op == "-" {
		if f, err := Fold(x, b.Session); err == nil {
			x = f
		}
	}
	l, ok := x.(*Literal)
	if !ok || l.Value.IsNull {
		return types.Datum{}, false
	}
	return l.Value, true
}

// spec says how a function binds.
type spec struct {
	params   string
	ret      types.Type                        // the result type, or
	retOf    func(b *site) (types.Type, error) // computes it; nullability is that of the arguments
	nullable bool                              // the result may be NULL for arguments that are not
	notNull  bool                              // the result is never NULL
	sees     bool                              // the function sees NULL arguments
	volatile bool
	dynamic  bool
	clock    bool                // dynamic when called without arguments
	check    func(b *site) error // what the parameters cannot say
	key      func(b *site) string
	eval     func(b *site) func(Session) Eval
}

// fn makes the Bind of a function.
func fn(usage string, sp spec) func(*CallSite) (Bound, error) {
	return func(c *CallSite) (Bound, error) {
		args, ok := matchParams(sp.params, c.Args)
		if !ok {
			return Bound{}, wrongArgs(c, usage)
		}
		b := &site{CallSite: c, args: args, ret: sp.ret}
		if sp.retOf != nil {
			t, err := sp.retOf(b)
			if err != nil {
				return Bound{}, err
			}
			b.ret = t
		}
		b.ret.Nullable = !sp.notNull && (sp.nullable || anyNullable(args...))
		if sp.check != nil {
			if err := sp.check(b); err != nil {
				return Bound{}, err
			}
		}
		out := Bound{Args: b.args, Type: b.ret, Strict: !sp.sees, Volatile: sp.volatile, Dynamic: sp.dynamic || sp.clock && len(args) == 0, NewEval: sp.eval(b)}
		if sp.key != nil {
			out.Key = sp.key(b)
		}
		return out, nil
	}
}

// matchParams checks args against the parameters and coerces them.
func matchParams(params string, args []Expr) ([]Expr, bool) {
	required, optional, _ := strings.Cut(params, "|")
	all := required + optional
	repeat := strings.HasSuffix(all, "*")
	all = strings.TrimSuffix(all, "*")
	least := len(strings.TrimSuffix(required, "*"))
	if len(args) < least || len(args) > len(all) && !repeat {
		return nil, false
	}
	out := make([]Expr, len(args))
	for i, a := range args {
		p := all[min(i, len(all)-1)]
		x, ok := matchParam(p, a)
		if !ok {
			return nil, false
		}
		out[i] = x
	}
	return out, true
}

// paramTypes are the types of NULL arguments, and what numbers convert to.
var paramTypes = map[byte]types.Type{
	's': types.StringType, 'q': types.StringType, 'b': types.BytesType, 'i': types.IntType, 'l': types.BigIntType,
	'I': types.IntType, 'n': types.IntType, 'd': types.DoubleType, 'c': types.BoolType, 't': types.TimestampMs,
}

func matchParam(p byte, a Expr) (Expr, bool) {
	t := a.Type()
	if t.Kind == types.Null {
		to, ok := paramTypes[p]
		if !ok {
			return a, p == 'x'
		}
		return convert(a, to), true
	}
	switch p {
	case 's':
		return a, t.IsString()
	case 'b':
		return a, t.IsBytes()
	case 'q':
		return a, t.IsString() || t.IsBytes()
	case 'i':
		return a, t.IsInteger() && t.Kind != types.BigInt
	case 'l', 'I':
		return a, t.IsInteger()
	case 'n':
		return a, t.IsNumeric()
	case 'd':
		if !t.IsNumeric() {
			return a, false
		}
		return convert(a, types.DoubleType), true
	case 'c':
		return a, t.Kind == types.Boolean
	case 'a':
		return a, t.Kind == types.Array
	case 'm':
		return a, t.Kind == types.Map
	case 't':
		return a, t.IsTimestamp()
	}
	return a, true
}

// common coerces the given arguments to their common type.
func (b *site) common(from, to int) (types.Type, error) {
	es, t, err := unify(b.args[from:to])
	if err != nil {
		return t, err
	}
	copy(b.args[from:to], es)
	return t, nil
}

// The adapters. A row function returns isNull for NULL, another error to fail the row.

func perRow[T any](dst func(*batch.Vec) []T, f func(row) (T, *diag.Error)) Eval {
	return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
		o := dst(out)
		for _, r := range rows {
			v, err := f(row{args, int(r)})
			switch err {
			case nil:
				o[r] = v
			case isNull:
				out.SetNull(int(r), n)
			default:
				fail(r, err)
			}
		}
	}
}

func vecI64(v *batch.Vec) []int64   { return v.I64 }
func vecF64(v *batch.Vec) []float64 { return v.F64 }
func vecBool(v *batch.Vec) []bool   { return v.Bool }
func vecStr(v *batch.Vec) []string  { return v.Str }

func always(e Eval) func(*site) func(Session) Eval {
	return func(*site) func(Session) Eval { return func(Session) Eval { return e } }
}

// ints, floats, bools: functions of stateless row functions.
func ints(f func(row) (int64, *diag.Error)) func(*site) func(Session) Eval {
	return always(perRow(vecI64, f))
}

func floats(f func(row) (float64, *diag.Error)) func(*site) func(Session) Eval {
	return always(perRow(vecF64, f))
}

func bools(f func(row) (bool, *diag.Error)) func(*site) func(Session) Eval {
	return always(perRow(vecBool, f))
}

// pieces is for results that are pieces of the arguments: no bytes are copied.
func pieces(f func(row) (string, *diag.Error)) func(*site) func(Session) Eval {
	return always(perRow(vecStr, f))
}

// texts is for results built byte by byte: f appends to dst, the memory of the whole batch.
func texts(f func(dst []byte, x row) ([]byte, *diag.Error)) func(*site) func(Session) Eval {
	return func(*site) func(Session) Eval { return func(Session) Eval { return textEval(f) } }
}

func textEval(f func(dst []byte, x row) ([]byte, *diag.Error)) Eval {
	ar := &arena{}
	return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
		ar.reset()
		for _, r := range rows {
			buf, err := f(ar.buf, row{args, int(r)})
			switch err {
			case nil:
				ar.buf = buf
				out.Str[r] = ar.take()
			case isNull:
				out.SetNull(int(r), n)
			default:
				fail(r, err)
			}
		}
	}
}

// datums is for results of any type, given as a Datum. Nested results are encoded.
func datums(f func(b *site) func(row) (types.Datum, *diag.Error)) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		return func(Session) Eval { return datumEval(b.ret, f(b)) }
	}
}

func datumEval(t types.Type, f func(row) (types.Datum, *diag.Error)) Eval {
	ar := &arena{}
	return func(args []*batch.Vec, rows []int32, n int, out *batch.Vec, fail func(int32, *diag.Error)) {
		ar.reset()
		for _, r := range rows {
			d, err := f(row{args, int(r)})
			switch {
			case err == isNull || err == nil && d.IsNull:
				out.SetNull(int(r), n)
			case err != nil:
				fail(r, err)
			case t.IsNested():
				ar.buf = types.AppendNested(ar.buf, d, t)
				out.Str[r] = ar.take()
			default:
				out.Set(int(r), d)
			}
		}
	}
}

// argType is the type of argument i as the result type.
func argType(i int) func(*site) (types.Type, error) {
	return func(b *site) (types.Type, error) { return b.args[i].Type(), nil }
}

// varchar is the type of argument i, or VARCHAR of its length when that is CHAR.
func varchar(i int) func(*site) (types.Type, error) {
	return func(b *site) (types.Type, error) {
		t := b.args[i].Type()
		if t.Kind == types.Char {
			t.Kind = types.Varchar
		}
		return t, nil
	}
}

func badCall(c *CallSite, format string, args ...any) *diag.Error {
	return diag.New(diag.Semantic, diag.Pos{}, strings.ToUpper(c.Name)+": "+format, args...)
}

func badValue(name, format string, args ...any) *diag.Error {
	return diag.New(diag.Data, diag.Pos{}, name+": "+format, args...)
}
