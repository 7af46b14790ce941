package expr

import (
	"math"
	"math/bits"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// kernel computes a strict operator: out has the arguments' validity already.
type kernel = func(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int)

func (c *compiler) binary(n *node, e *Binary) error {
	switch e.Op {
	case "AND", "OR":
		n.run = logicKernel(e.Op)
		return c.kids(n, c.cheapFirst([]Expr{e.L, e.R})...)
	case "||":
		n.run, n.lazy = strict(e.T, false, concatKernel), true
		return c.kids(n, e.L, e.R)
	case "+", "-", "*", "/", "%":
		k, dense := arithKernel(e)
		n.run, n.lazy = strict(e.T, dense, k), !dense
		return c.kids(n, e.L, e.R)
	}
	return c.comparison(n, e)
}

func (c *compiler) unary(n *node, e *Unary) error {
	k := negKernel(e.T)
	if e.Op == "NOT" {
		k = notKernel
	}
	n.run = strict(e.T, true, k)
	return c.kids(n, e.X)
}

func notKernel(_ *evalCtx, _ *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
	x := args[0].Bool
	if sel == nil {
		for i := range out.Bool[:rows] {
			out.Bool[i] = !x[i]
		}
		return
	}
	for _, r := range sel {
		out.Bool[r] = !x[r]
	}
}

func negKernel(t types.Type) kernel {
	switch t.Phys() {
	case types.PhysF64:
		return func(_ *evalCtx, _ *node, args []*batch.Vec, out *batch.Vec, sel []int32, _ int) {
			// -1*x keeps the sign of zero, 0-x would not.
			mulCK(out.F64, args[0].F64, -1, sel)
		}
	case types.PhysI128:
		return func(c *evalCtx, _ *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
			for _, r := range rowsOf(c, sel, rows) {
				out.I128[r] = args[0].I128[r].Neg()
			}
		}
	}
	return func(_ *evalCtx, _ *node, args []*batch.Vec, out *batch.Vec, sel []int32, _ int) {
		subKC(out.I64, 0, args[0].I64, sel)
		wrap(t, out.I64, sel)
	}
}

// rowsOf is the rows of a kernel call as a list.
func rowsOf(c *evalCtx, sel []int32, rows int) []int32 {
	if sel != nil {
		return sel
	}
	for i := len(c.ident); i < rows; i++ {
		c.ident = append(c.ident, int32(i))
	}
	return c.ident[:rows]
}

// wrap cuts integers to the width of t, as Java's casts do.
func wrap(t types.Type, v []int64, sel []int32) {
	switch {
	case t.Kind == types.BigInt || !t.IsInteger():
	case sel != nil:
		for _, r := range sel {
			v[r] = t.Kind.Wrap(v[r])
		}
	case t.Kind == types.Int:
		for i := range v {
			v[i] = int64(int32(v[i]))
		}
	case t.Kind == types.SmallInt:
		for i := range v {
			v[i] = int64(int16(v[i]))
		}
	default:
		for i := range v {
			v[i] = int64(int8(v[i]))
		}
	}
}

// arithKernel picks the kernel of + - * / %. dense kernels cannot fail.
func arithKernel(e *Binary) (k kernel, dense bool) {
	lt, rt := e.L.Type(), e.R.Type()
	switch {
	case isTemporal(lt):
		return temporalKernel(e), true
	case e.T.Phys() == types.PhysF64:
		return floatKernel(e), true
	case e.T.Kind == types.Decimal, lt.Kind == types.Decimal, rt.Kind == types.Decimal:
		return decimalKernel(e, lt, rt)
	case e.Op == "/" || e.Op == "%":
		d, isConst := e.R.(*Literal)
		return intDivKernel(e), isConst && !d.Value.IsNull && d.Value.I64 != 0
	}
	return intKernel(e.Op, e.T), true
}

// arith3 runs the col⊗col, col⊗const or const⊗col form. Two constants look like columns of one row.
func arith3[T number](op string, out []T, l, r []T, lc, rc bool, sel []int32) {
	both := lc && rc
	switch {
	case op == "+" && rc && !both:
		addCK(out, l, r[0], sel)
	case op == "+" && lc && !both:
		addCK(out, r, l[0], sel)
	case op == "+":
		addCC(out, l, r, sel)
	case op == "-" && rc && !both:
		subCK(out, l, r[0], sel)
	case op == "-" && lc && !both:
		subKC(out, l[0], r, sel)
	case op == "-":
		subCC(out, l, r, sel)
	case rc && !both:
		mulCK(out, l, r[0], sel)
	case lc && !both:
		mulCK(out, r, l[0], sel)
	default:
		mulCC(out, l, r, sel)
	}
}

func intKernel(op string, t types.Type) kernel {
	return func(_ *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, _ int) {
		arith3(op, out.I64, a[0].I64, a[1].I64, a[0].Const, a[1].Const, sel)
		wrap(t, out.I64, sel)
	}
}

func floatKernel(e *Binary) kernel {
	single := e.T.Kind == types.Float
	op := e.Op
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		l, r := a[0], a[1]
		both := l.Const && r.Const
		switch {
		case op == "%":
			for _, i := range rowsOf(c, sel, rows) {
				out.F64[i] = math.Mod(l.F64[l.Idx(int(i))], r.F64[r.Idx(int(i))])
			}
		case op != "/":
			arith3(op, out.F64, l.F64, r.F64, l.Const, r.Const, sel)
		case r.Const && !both:
			quoCK(out.F64, l.F64, r.F64[0], sel)
		case l.Const && !both:
			quoKC(out.F64, l.F64[0], r.F64, sel)
		default:
			quoCC(out.F64, l.F64, r.F64, sel)
		}
		if single {
			for _, i := range rowsOf(c, sel, rows) {
				out.F64[i] = float64(float32(out.F64[i]))
			}
		}
	}
}

// divByZero is the run-time error of integer and DECIMAL division.
func divByZero() *diag.Error {
	return diag.New(diag.Data, diag.Pos{}, "division by zero").
		WithHint("guard the divisor with NULLIF(divisor, 0), or exclude the rows in WHERE")
}

// intDivKernel is / and % of integers and of intervals' integers.
func intDivKernel(e *Binary) kernel {
	t, mod := e.T, e.Op == "%"
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		l, r := a[0], a[1]
		if r.Const && !l.Const && r.I64[0] != 0 {
			divConst(out.I64, l.I64, r.I64[0], rowsOf(c, sel, rows), mod)
			wrap(t, out.I64, sel)
			return
		}
		for _, i := range rowsOf(c, sel, rows) {
			d := r.I64[r.Idx(int(i))]
			if d == 0 {
				if !out.IsNull(int(i)) {
					n.fail(int(i), rows, divByZero())
				}
				continue
			}
			if x := l.I64[l.Idx(int(i))]; mod {
				out.I64[i] = t.Kind.Wrap(x % d)
			} else {
				out.I64[i] = t.Kind.Wrap(x / d)
			}
		}
	}
}

// divConst divides by a constant other than 0. Numbers of 32 bits are divided by multiplication with the reciprocal
// (Lemire, Kaser, Kurz: Faster remainder by direct computation), which is several times faster than the instruction.
func divConst(out, l []int64, d int64, rows []int32, mod bool) {
	switch {
	case d <= 1 || d > math.MaxUint32:
		divConstSlow(out, l, d, rows, mod)
	case mod:
		m := math.MaxUint64/uint64(d) + 1
		for _, i := range rows {
			x := l[i]
			if uint64(x) > math.MaxUint32 {
				out[i] = x % d
				continue
			}
			r, _ := bits.Mul64(m*uint64(x), uint64(d))
			out[i] = int64(r)
		}
	default:
		m := math.MaxUint64/uint64(d) + 1
		for _, i := range rows {
			x := l[i]
			if uint64(x) > math.MaxUint32 {
				out[i] = x / d
				continue
			}
			q, _ := bits.Mul64(m, uint64(x))
			out[i] = int64(q)
		}
	}
}

func divConstSlow(out, l []int64, d int64, rows []int32, mod bool) {
	if mod {
		for _, i := range rows {
			out[i] = l[i] % d
		}
		return
	}
	for _, i := range rows {
		out[i] = l[i] / d
	}
}

// decimalKernel is arithmetic with a DECIMAL operand.
func decimalKernel(e *Binary, lt, rt types.Type) (kernel, bool) {
	lp, ls := lt.AsDecimal()
	rp, rs := rt.AsDecimal()
	narrow := lt.Phys() == types.PhysI64 && rt.Phys() == types.PhysI64
	switch {
	case e.Op == "%" && ls == 0 && rs == 0:
		return decimalModInts(e.T), false
	case narrow && e.Op == "*" && e.T.Phys() == types.PhysI64:
		return intKernel("*", types.BigIntType), true
	case narrow && e.Op == "*" && lp+rp < types.MaxDecimalPrecision:
		return mulWideKernel, true
	case narrow && (e.Op == "+" || e.Op == "-") && e.T.Phys() == types.PhysI64:
		return scaledAddKernel(e.Op, types.Pow10I64(e.T.Scale-ls), types.Pow10I64(e.T.Scale-rs)), true
	}
	return decimalSlow(e, ls, rs), false
}

// mulWideKernel is the exact product of scaled int64 values.
func mulWideKernel(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
	l, r := a[0], a[1]
	if l.Const && !r.Const {
		l, r = r, l
	}
	dst, x := out.I128, l.I64
	if r.Const {
		k := r.I64[0]
		if sel == nil {
			x = x[:rows]
			dst = dst[:rows]
			for i := range dst {
				dst[i] = types.Mul64(x[i], k)
			}
			return
		}
		for _, i := range sel {
			dst[i] = types.Mul64(x[i], k)
		}
		return
	}
	for _, i := range rowsOf(c, sel, rows) {
		dst[i] = types.Mul64(x[i], r.I64[i])
	}
}

// scaledAddKernel is l*fl ± r*fr for operands of different scales.
func scaledAddKernel(op string, fl, fr int64) kernel {
	if fl == 1 && fr == 1 {
		return intKernel(op, types.BigIntType)
	}
	if op == "-" {
		fr = -fr
	}
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		l, r := a[0], a[1]
		for _, i := range rowsOf(c, sel, rows) {
			out.I64[i] = l.I64[l.Idx(int(i))]*fl + r.I64[r.Idx(int(i))]*fr
		}
	}
}

// wide reads row i of an integer or DECIMAL column.
func wide(v *batch.Vec, i int) types.Int128 {
	i = v.Idx(i)
	if v.I128 != nil {
		return v.I128[i]
	}
	return types.I128(v.I64[i])
}

// decimalModInts is % of two values of scale 0: computed on longs and given the divisor's type (Flink).
func decimalModInts(t types.Type) kernel {
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			d := wide(a[1], int(i))
			if d.Sign() == 0 {
				n.fail(int(i), rows, divByZero())
				continue
			}
			v, _ := types.DecimalMod(wide(a[0], int(i)), 0, d, 0, types.MaxDecimalPrecision, 0)
			if t.Phys() == types.PhysI128 {
				out.I128[i] = v
			} else {
				out.I64[i] = v.Int64()
			}
		}
	}
}

func decimalSlow(e *Binary, ls, rs int) kernel {
	op := map[string]func(types.Int128, int, types.Int128, int, int, int) (types.Int128, bool){
		"+": types.DecimalAdd, "-": types.DecimalSub, "*": types.DecimalMul, "/": types.DecimalDiv, "%": types.DecimalMod,
	}[e.Op]
	divides := e.Op == "/" || e.Op == "%"
	p, s := e.T.AsDecimal()
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			l, r := wide(a[0], int(i)), wide(a[1], int(i))
			if divides && r.Sign() == 0 {
				n.fail(int(i), rows, divByZero())
				continue
			}
			v, ok := op(l, ls, r, rs, p, s)
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
