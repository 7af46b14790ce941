package expr

import (
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// cast picks the cheapest way to convert: none (the representation is the same), a numeric kernel, text into an arena, or
// value by value.
func (c *compiler) cast(n *node, e *Cast) error {
	from, to := e.X.Type(), e.T
	switch k := numericCast(from, to); {
	case retypes(from, to, e.Mode):
		n.run = func(c *evalCtx, n *node, sel []int32) {
			n.out = *n.kids[0].eval(c, sel)
			n.out.Type = to
			n.vec = &n.out
			n.inherit(n.kids)
		}
	case k != nil:
		n.run = strict(to, true, k)
	case to.IsString() && !from.IsString() && !from.IsBytes():
		n.run, n.lazy = strict(to, false, textCast(from, to, c.session)), true
	default:
		n.run, n.lazy = strict(to, false, valueCast(e, newCaster(c.session, e.Mode).fn(from, to))), true
	}
	return c.kids(n, e.X)
}

// retypes reports that every value of type from is stored alike in type to.
func retypes(from, to types.Type, mode CastMode) bool {
	switch {
	case from.IsNested():
		return retypesNested(from, to, mode)
	case from.IsInteger() && to.IsInteger():
		return from.Kind <= to.Kind
	case from.IsInteger() && to.Kind == types.Decimal:
		p, _ := from.AsDecimal()
		return to.Scale == 0 && to.Phys() == types.PhysI64 && to.Precision >= p
	case from.IsString() && to.IsString(), from.IsBytes() && to.IsBytes():
		fixed := to.Kind == types.Char || to.Kind == types.Binary
		return mode == CastImplicit || !fixed && to.Precision >= from.Precision ||
			from.Kind == to.Kind && to.Precision == from.Precision
	case from.Kind != to.Kind || from.Phys() != to.Phys():
		return false
	}
	switch from.Kind {
	case types.Decimal:
		return from.Scale == to.Scale && from.Precision <= to.Precision
	case types.Timestamp, types.TimestampLTZ:
		return from.Precision <= to.Precision
	case types.Time:
		return min(from.Precision, 3) <= to.Precision
	}
	return true
}

func retypesNested(from, to types.Type, mode CastMode) bool {
	if from.Kind != to.Kind || len(from.Fields) != len(to.Fields) {
		return false
	}
	for i := range from.Fields {
		if !retypes(from.Fields[i].Type, to.Fields[i].Type, mode) {
			return false
		}
	}
	return (from.Elem == nil || retypes(*from.Elem, *to.Elem, mode)) && (from.Key == nil || retypes(*from.Key, *to.Key, mode))
}

// numericCast is a kernel for the frequent conversions that cannot fail, or nil.
func numericCast(from, to types.Type) kernel {
	switch {
	case from.IsInteger() && to.IsInteger():
		return func(_ *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, _ int) {
			addCK(out.I64, a[0].I64, 0, sel)
			wrap(to, out.I64, sel)
		}
	case from.IsInteger() && to.Kind == types.Double:
		return mapKernel(func(v *batch.Vec) []int64 { return v.I64 }, func(v *batch.Vec) []float64 { return v.F64 },
			func(x int64) float64 { return float64(x) })
	case from.IsInteger() && to.Kind == types.Float:
		return mapKernel(func(v *batch.Vec) []int64 { return v.I64 }, func(v *batch.Vec) []float64 { return v.F64 },
			func(x int64) float64 { return float64(float32(x)) })
	case from.Kind == types.Double && to.Kind == types.Float:
		return mapKernel(func(v *batch.Vec) []float64 { return v.F64 }, func(v *batch.Vec) []float64 { return v.F64 },
			func(x float64) float64 { return float64(float32(x)) })
	case from.Kind == types.Decimal || from.IsInteger():
		if k := decimalWiden(from, to); k != nil || to.Kind != types.Decimal {
			return k
		}
		return decimalCast(from, to)
	}
	return nil
}

// decimalWiden moves exact numbers to a DECIMAL that holds them all: more scale, no fewer whole digits.
func decimalWiden(from, to types.Type) kernel {
	p, s := from.AsDecimal()
	if to.Kind != types.Decimal || to.Scale < s || to.Precision-to.Scale < p-s {
		return nil
	}
	if to.Phys() == types.PhysI64 {
		f := types.Pow10I64(to.Scale - s)
		return func(_ *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, _ int) {
			mulCK(out.I64, a[0].I64, f, sel)
		}
	}
	if from.Phys() == types.PhysI64 && to.Scale-s <= 18 {
		f := types.Pow10I64(to.Scale - s)
		return mapKernel(func(v *batch.Vec) []int64 { return v.I64 }, func(v *batch.Vec) []types.Int128 { return v.I128 },
			func(x int64) types.Int128 { return types.Mul64(x, f) })
	}
	if from.Phys() == types.PhysI128 && to.Scale == s {
		return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
			if sel == nil {
				copy(out.I128[:rows], a[0].I128)
				return
			}
			copyVals(out.I128, a[0].I128, a[0].Const, sel)
		}
	}
	return nil
}

// decimalCast moves exact numbers to any DECIMAL; a number that does not fit is NULL.
func decimalCast(from, to types.Type) kernel {
	_, s := from.AsDecimal()
	narrow := from.Phys() == types.PhysI64 && to.Phys() == types.PhysI64 && to.Scale >= s
	var factor, limit int64
	if narrow {
		factor = types.Pow10I64(to.Scale - s)
		limit = types.Pow10I64(to.Precision) / factor
	}
	if from.Phys() == types.PhysI128 && to.Phys() == types.PhysI128 && to.Scale == s {
		return decimalNarrow(types.Pow10(to.Precision))
	}
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if narrow {
				x := a[0].I64[a[0].Idx(int(i))]
				if out.I64[i] = x * factor; x >= limit || x <= -limit {
					n.setNull(int(i), rows)
				}
				continue
			}
			v, ok := types.Rescale(wide(a[0], int(i)), s, to.Scale, to.Precision)
			switch {
			case !ok:
				n.setNull(int(i), rows)
			case out.I128 != nil:
				out.I128[i] = v
			default:
				out.I64[i] = v.Int64()
			}
		}
	}
}

// decimalNarrow keeps numbers below limit, which is more than 2^63; others are NULL.
func decimalNarrow(limit types.Int128) kernel {
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		dst, src := out.I128, a[0].I128
		for _, i := range rowsOf(c, sel, rows) {
			v := src[a[0].Idx(int(i))]
			dst[i] = v
			if !v.Fits64() && (v.Cmp(limit) >= 0 || v.Cmp(limit.Neg()) <= 0) {
				n.setNull(int(i), rows)
			}
		}
	}
}

// mapKernel applies f to every row. The calls are per batch but f's, which the compiler cannot inline: about 1.5 ns.
func mapKernel[A, B any](src func(*batch.Vec) []A, dst func(*batch.Vec) []B, f func(A) B) kernel {
	return func(_ *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		x, y := src(a[0]), dst(out)
		if sel == nil {
			for i, v := range x[:rows] {
				y[i] = f(v)
			}
			return
		}
		for _, i := range sel {
			y[i] = f(x[i])
		}
	}
}

// textCast renders values into an arena.
func textCast(from, to types.Type, s Session) kernel {
	zone := s.zone()
	fits := to.Kind == types.Varchar && to.Precision == types.MaxLength
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		if n.arena == nil {
			n.arena = &arena{}
		}
		ar := n.arena
		ar.reset()
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			ar.buf = appendRow(ar.buf, a[0], a[0].Idx(int(i)), from, zone)
			if !fits {
				ar.buf = fitText(ar.buf, ar.start, to)
			}
			out.Str[i] = ar.take()
		}
	}
}

// appendRow is types.AppendText of row i, without the detour over Datum for the frequent types.
func appendRow(dst []byte, v *batch.Vec, i int, t types.Type, zone *time.Location) []byte {
	switch t.Kind {
	case types.TinyInt, types.SmallInt, types.Int, types.BigInt:
		return strconv.AppendInt(dst, v.I64[i], 10)
	case types.Boolean:
		return types.AppendBool(dst, v.Bool[i])
	case types.Double:
		return types.AppendFloat(dst, v.F64[i], 64)
	case types.Date:
		return types.AppendDate(dst, v.I64[i])
	case types.Decimal:
		if v.I128 != nil {
			return types.AppendDecimal(dst, v.I128[i], t.Scale)
		}
		return types.AppendDecimal64(dst, v.I64[i], t.Scale)
	case types.Timestamp:
		if v.I128 == nil {
			us := v.I64[i]
			sec := types.FloorDiv(us, 1e6)
			return types.AppendTimestamp(dst, sec, (us-sec*1e6)*1000, t.Precision)
		}
	}
	return types.AppendText(dst, v.Datum(i), t, zone)
}

// fitText cuts the string in buf[start:] to the code points of CHAR(n) or VARCHAR(n), and fills CHAR with spaces.
func fitText(buf []byte, start int, t types.Type) []byte {
	n, i := 0, start
	for ; i < len(buf) && n < t.Precision; n++ {
		_, size := utf8.DecodeRune(buf[i:])
		i += size
	}
	buf = buf[:i]
	if t.Kind == types.Char {
		for ; n < t.Precision; n++ {
			buf = append(buf, ' ')
		}
	}
	return buf
}

// valueCast converts value by value.
func valueCast(e *Cast, f castFn) kernel {
	from, to := e.X.Type(), e.T
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			d := a[0].Datum(int(i))
			r, ok := f(d)
			switch {
			case ok:
				n.store(i, rows, r)
			case e.Mode == CastExplicit:
				n.fail(int(i), rows, castError(d, from, to))
			default:
				n.setNull(int(i), rows)
			}
		}
	}
}

const maxShown = 64 // bytes of a bad value that an error quotes

func castError(d types.Datum, from, to types.Type) *diag.Error {
	text := diag.Shorten(string(types.AppendDisplay(nil, d, from, nil)), maxShown)
	return diag.New(diag.Data, diag.Pos{}, "cannot cast '%s' to %s", text, to.WithNull(true)).
		WithDetail("the value of type %s has no such form", from.WithNull(true)).
		WithHint("use TRY_CAST to get NULL instead, or filter the rows out")
}

// saturate is Java's cast of a double to long.
func saturate(f float64) int64 {
	switch {
	case f != f:
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	case f <= math.MinInt64:
		return math.MinInt64
	}
	return int64(f)
}

// floatToInt is Java's cast of a double to the given integer type: through int for the small ones.
func floatToInt(f float64, k types.Kind) int64 {
	v := saturate(f)
	if k != types.BigInt {
		v = k.Wrap(max(math.MinInt32, min(v, math.MaxInt32)))
	}
	return v
}
