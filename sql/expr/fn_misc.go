package expr

import (
	"crypto/rand"
	"encoding/hex"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

func miscFuncs() []*Func {
	return []*Func{
		{Name: "CURRENT_DATABASE", Category: "catalog", Usage: "CURRENT_DATABASE()", Doc: "The name of the database in use. There is one, default_database.",
			Bind: rewrite("CURRENT_DATABASE()", 0, 0, func([]Expr) (Expr, error) {
				return &Literal{Value: types.StrDatum("default_database"), T: types.StringType.NotNull()}, nil
			})},
		{Name: "TYPEOF", Category: "conversion", Usage: "TYPEOF(value [, forceSerializable])",
			Doc:  "The name of the argument's type, such as INT NOT NULL.",
			Bind: bindTypeOf},
		{Name: "UUID", Category: "string", Usage: "UUID()", Doc: "A random UUID of version 4, another one for every row.",
			Bind: fn("UUID()", spec{ret: types.Lengthed(types.Char, 36), notNull: true, volatile: true, eval: texts(appendUUID)})},
		{Name: "RAND", Category: "arithmetic", Usage: "RAND([seed])",
			Doc: "A random DOUBLE of [0, 1). A constant seed gives the same sequence in every run, a seed that varies one number per value.",
			Bind: fn("RAND([seed])", spec{params: "|i", ret: types.DoubleType, volatile: true, eval: randEval(vecF64, 0,
				func(r *javaRandom, _ row) (float64, *diag.Error) { return r.double(), nil })})},
		{Name: "RAND_INTEGER", Category: "arithmetic", Usage: "RAND_INTEGER([seed,] bound)",
			Doc: "A random INT of [0, bound); seed as for RAND. The bound must be positive.",
			Bind: fn("RAND_INTEGER([seed,] bound)", spec{params: "i|i", ret: types.IntType, volatile: true, eval: randEval(vecI64, 1,
				func(r *javaRandom, x row) (int64, *diag.Error) {
					n := x.i64(len(x.args) - 1)
					if n <= 0 {
						return 0, badValue("RAND_INTEGER", "the bound must be positive, it is %d", n)
					}
					return int64(r.bounded(int32(n))), nil
				})})},
	}
}

func bindTypeOf(c *CallSite) (Bound, error) {
	const usage = "TYPEOF(value [, forceSerializable])"
	if len(c.Args) < 1 || len(c.Args) > 2 {
		return Bound{}, wrongArgs(c, usage)
	}
	if len(c.Args) == 2 {
		l, ok := c.Args[1].(*Literal)
		if !ok || l.T.Kind != types.Boolean || l.Value.IsNull {
			return Bound{}, wrongArgs(c, usage)
		}
	}
	return Bound{Rewrite: &Literal{Value: types.StrDatum(c.Args[0].Type().AsResult().String()), T: types.StringType.NotNull()}}, nil
}

func appendUUID(dst []byte, _ row) ([]byte, *diag.Error) {
	var u [16]byte
	rand.Read(u[:]) // never fails
	u[6], u[8] = u[6]&0x0F|0x40, u[8]&0x3F|0x80
	dst = append(hex.AppendEncode(dst, u[:4]), '-')
	dst = append(hex.AppendEncode(dst, u[4:6]), '-')
	dst = append(hex.AppendEncode(dst, u[6:8]), '-')
	dst = append(hex.AppendEncode(dst, u[8:10]), '-')
	return hex.AppendEncode(dst, u[10:]), nil
}

// javaRandom is java.util.Random.
type javaRandom struct{ seed uint64 }

func newJavaRandom(seed int64) *javaRandom {
	return &javaRandom{(uint64(seed) ^ 0x5DEECE66D) & (1<<48 - 1)}
}

func (r *javaRandom) next(bits uint) int32 {
	r.seed = (r.seed*0x5DEECE66D + 0xB) & (1<<48 - 1)
	return int32(r.seed >> (48 - bits))
}

func (r *javaRandom) double() float64 {
	return float64(int64(r.next(26))<<27+int64(r.next(27))) * (1.0 / (1 << 53))
}

func (r *javaRandom) bounded(n int32) int32 {
	v := r.next(31)
	m := n - 1
	if n&m == 0 {
		return int32(int64(n) * int64(v) >> 31)
	}
	for u := v; ; u = r.next(31) {
		if v = u % n; u-v+m >= 0 {
			return v
		}
	}
}

// randEval gives f a generator. With more than plain arguments the first one is the seed.
func randEval[T any](dst func(*batch.Vec) []T, plain int, f func(*javaRandom, row) (T, *diag.Error)) func(*site) func(Session) Eval {
	return func(b *site) func(Session) Eval {
		seeded := len(b.args) > plain
		return func(Session) Eval {
			var r *javaRandom
			return perRow(dst, func(x row) (T, *diag.Error) {
				switch {
				case seeded && !x.args[0].Const:
					r = newJavaRandom(x.i64(0))
				case seeded && r == nil:
					r = newJavaRandom(x.i64(0))
				case r == nil:
					r = newJavaRandom(time.Now().UnixNano())
				}
				return f(r, x)
			})
		}
	}
}
