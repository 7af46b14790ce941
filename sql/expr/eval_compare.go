package expr

import (
	"math"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// cmpOp is a comparison operator.
type cmpOp uint8

const (
	cmpEq cmpOp = iota
	cmpNe
	cmpLt
	cmpLe
	cmpGt
	cmpGe
)

var cmpOps = map[string]cmpOp{
	"=": cmpEq, "<>": cmpNe, "<": cmpLt, "<=": cmpLe, ">": cmpGt, ">=": cmpGe,
	"IS DISTINCT FROM": cmpNe, "IS NOT DISTINCT FROM": cmpEq,
}

// flip is the operator with its operands exchanged.
func (o cmpOp) flip() cmpOp { return [...]cmpOp{cmpEq, cmpNe, cmpGt, cmpGe, cmpLt, cmpLe}[o] }

func (c *compiler) comparison(n *node, e *Binary) error {
	l, r, scaled := alignDecimals(e.L, e.R)
	if !scaled {
		l, r = e.L, e.R
	} else {
		var err error
		if l, err = Fold(l, c.session); err != nil {
			return err
		}
		if r, err = Fold(r, c.session); err != nil {
			return err
		}
	}
	if err := c.kids(n, l, r); err != nil {
		return err
	}
	if e.total {
		for i, k := range n.kids {
			n.kids[i] = orderKey(k)
		}
	}
	k := compareKernel(cmpOps[e.Op], l.Type(), r.Type())
	if e.Op == "IS DISTINCT FROM" || e.Op == "IS NOT DISTINCT FROM" {
		n.run = distinctKernel(k, !hasMap(l.Type()), e.Op == "IS DISTINCT FROM")
	} else {
		// Encoded values of rows outside the selection may be stale and undecodable.
		n.run = strict(e.T, !hasMap(l.Type()), k)
	}
	return nil
}

// alignDecimals gives exact numbers of different scales one type, when one holds both.
func alignDecimals(l, r Expr) (_, _ Expr, ok bool) {
	lt, rt := l.Type(), r.Type()
	if lt.Kind != types.Decimal && rt.Kind != types.Decimal || !lt.IsNumeric() || lt.Phys() == types.PhysF64 {
		return l, r, false
	}
	lp, ls := lt.AsDecimal()
	rp, rs := rt.AsDecimal()
	if ls == rs && lt.Phys() == rt.Phys() {
		return l, r, false
	}
	s := max(ls, rs)
	p := max(lp-ls, rp-rs) + s
	if p > types.MaxDecimalPrecision {
		return l, r, false
	}
	return convert(l, types.DecimalOf(p, s)), convert(r, types.DecimalOf(p, s)), true
}

// orderKey maps doubles to integers in the order of java.lang.Double.compare.
func orderKey(k *node) *node {
	n := &node{expr: k.expr, kids: []*node{k}, lazy: k.lazy}
	n.out.Type = types.BigIntType
	n.run = strict(n.out.Type, true, func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			f := a[0].F64[a[0].Idx(int(i))]
			if f != f {
				f = math.NaN()
			}
			b := int64(math.Float64bits(f))
			out.I64[i] = b ^ int64(uint64(b>>63)>>1)
		}
	})
	return n
}

// compareKernel compares columns of types lt and rt, which are alike but for DECIMAL scales no common type can hold.
// ARRAY, MAP and ROW compare by their encoding: nested NULLs are equal, and so are NaNs; 0.0 and -0.0 differ.
func compareKernel(op cmpOp, lt, rt types.Type) kernel {
	var order []int8
	maps := hasMap(lt)
	return func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		l, r := a[0], a[1]
		switch {
		case maps:
			for _, i := range rowsOf(c, sel, rows) {
				if !out.IsNull(int(i)) {
					out.Bool[i] = (canonical(l.Str[l.Idx(int(i))], lt) == canonical(r.Str[r.Idx(int(i))], rt)) == (op == cmpEq)
				}
			}
		case l.Str != nil && r.Str != nil:
			compareVals(op, out.Bool, l.Str, r.Str, l.Const, r.Const, sel)
		case l.F64 != nil && r.F64 != nil:
			compareVals(op, out.Bool, l.F64, r.F64, l.Const, r.Const, sel)
		case l.I64 != nil && r.I64 != nil:
			compareVals(op, out.Bool, l.I64, r.I64, l.Const, r.Const, sel)
		default:
			order = order3(order, c, l, r, lt, rt, sel, rows)
			compareCK(op, out.Bool, order, 0, sel)
		}
	}
}

func compareVals[T ordered](op cmpOp, out []bool, l, r []T, lc, rc bool, sel []int32) {
	switch {
	case rc && !lc:
		compareCK(op, out, l, r[0], sel)
	case lc && !rc:
		compareCK(op.flip(), out, r, l[0], sel)
	default:
		compareCC(op, out, l, r, sel)
	}
}

// order3 compares the storage classes that have no kernel of their own, row by row, into -1, 0 and 1.
func order3(dst []int8, c *evalCtx, l, r *batch.Vec, lt, rt types.Type, sel []int32, rows int) []int8 {
	if cap(dst) < rows {
		dst = make([]int8, max(rows, batch.Size))
	}
	dst = dst[:rows]
	_, ls := lt.AsDecimal()
	_, rs := rt.AsDecimal()
	decimals := lt.IsNumeric() && (ls != rs || lt.Phys() != rt.Phys())
	for _, i := range rowsOf(c, sel, rows) {
		li, ri := l.Idx(int(i)), r.Idx(int(i))
		switch {
		case decimals:
			dst[i] = int8(types.DecimalCmp(wide(l, li), ls, wide(r, ri), rs))
		case l.I128 != nil:
			dst[i] = int8(l.I128[li].Cmp(r.I128[ri]))
		default:
			dst[i] = b2i(l.Bool[li]) - b2i(r.Bool[ri])
		}
	}
	return dst
}

func b2i(b bool) int8 {
	if b {
		return 1
	}
	return 0
}

// hasMap reports a type with a MAP or MULTISET in it, whose equal values may have unequal bytes.
func hasMap(t types.Type) bool {
	switch t.Kind {
	case types.Map, types.Multiset:
		return true
	case types.Array:
		return hasMap(*t.Elem)
	case types.Row:
		for _, f := range t.Fields {
			if hasMap(f.Type) {
				return true
			}
		}
	}
	return false
}

// canonical is the encoding of a nested value with the entries of its maps in order.
func canonical(src string, t types.Type) string {
	d, err := types.DecodeNested(src, t)
	if err != nil {
		panic(err) // written by this process
	}
	sortMaps(d, t)
	return string(types.AppendNested(nil, d, t))
}

func sortMaps(d types.Datum, t types.Type) {
	for i, x := range d.List {
		if et := t.Entry(i); !x.IsNull && hasMap(et) {
			sortMaps(x, et)
		}
	}
	if t.Kind != types.Map && t.Kind != types.Multiset {
		return
	}
	type entry struct {
		key  string
		k, v types.Datum
	}
	entries := make([]entry, 0, len(d.List)/2)
	for i := 0; i+1 < len(d.List); i += 2 {
		entries = append(entries, entry{string(types.AppendValue(nil, d.List[i], t.Entry(0))), d.List[i], d.List[i+1]})
	}
	slices.SortFunc(entries, func(a, b entry) int { return strings.Compare(a.key, b.key) })
	for i, e := range entries {
		d.List[2*i], d.List[2*i+1] = e.k, e.v
	}
}

// distinctKernel is IS [NOT] DISTINCT FROM on top of <> or =.
func distinctKernel(k kernel, dense, distinct bool) func(*evalCtx, *node, []int32) {
	inner := strict(types.BoolType, dense, k)
	return func(c *evalCtx, n *node, sel []int32) {
		inner(c, n, sel)
		l, r := n.kids[0].vec, n.kids[1].vec
		n.out.Valid = nil
		rows := c.rows(sel)
		if n.out.Const {
			rows = rowsOf(c, nil, 1)
		}
		if l.Valid == nil && r.Valid == nil {
			return
		}
		for _, i := range rows {
			if ln, rn := l.IsNull(int(i)), r.IsNull(int(i)); ln || rn {
				n.out.Bool[i] = (ln != rn) == distinct
			}
		}
	}
}

// picker selects the rows where a comparison is TRUE straight from the operands, when neither has NULLs.
func picker(e *Binary, n *node) func(*node, []*batch.Vec, []int32, []int32) (int, bool) {
	op, ok := cmpOps[e.Op]
	if !ok || !(e.Op[0] == '=' || e.Op[0] == '<' || e.Op[0] == '>') || len(n.kids) != 2 {
		return nil
	}
	if hasMap(e.L.Type()) {
		return nil
	}
	return func(_ *node, a []*batch.Vec, dst, sel []int32) (int, bool) {
		l, r := a[0], a[1]
		if l.Valid != nil || r.Valid != nil || l.Const && r.Const {
			return 0, false
		}
		switch {
		case l.I64 != nil && r.I64 != nil:
			return pickVals(op, dst, l.I64, r.I64, l.Const, r.Const, sel), true
		case l.Str != nil && r.Str != nil:
			return pickVals(op, dst, l.Str, r.Str, l.Const, r.Const, sel), true
		case l.F64 != nil && r.F64 != nil:
			return pickVals(op, dst, l.F64, r.F64, l.Const, r.Const, sel), true
		}
		return 0, false
	}
}

func pickVals[T ordered](op cmpOp, dst []int32, l, r []T, lc, rc bool, sel []int32) int {
	switch {
	case rc:
		return selectCK(op, dst, l, r[0], sel)
	case lc:
		return selectCK(op.flip(), dst, r, l[0], sel)
	}
	return selectCC(op, dst, l, r, sel)
}
