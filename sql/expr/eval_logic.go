package expr

import (
	"slices"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Three-valued logic, CASE and COALESCE: the operators that do not need all of their operands.

const (
	false3 = iota
	true3
	unknown3
)

// truth reads row r of a BOOLEAN column.
func truth(v *batch.Vec, r int32) uint8 {
	i := int32(v.Idx(int(r)))
	if v.Valid != nil && v.Valid[i>>6]&(1<<(i&63)) == 0 {
		return unknown3
	}
	if v.Bool[i] {
		return true3
	}
	return false3
}

// logicKernel is AND and OR. The right operand is evaluated only where the left one does not decide, when it is lazy.
func logicKernel(op string) func(*evalCtx, *node, []int32) {
	decided := uint8(false3)
	if op == "OR" {
		decided = true3
	}
	var mem []int32
	return func(c *evalCtx, n *node, sel []int32) {
		l, r := n.kids[0], n.kids[1]
		lv := l.eval(c, sel)
		rsel := sel
		if r.lazy {
			mem = undecided(mem[:0], lv, c.rows(sel), decided)
			rsel = mem
		}
		rv := r.eval(c, rsel)
		out := n.begin(c.n)
		if !lv.Const && !rv.Const && noNull(lv, sel, c.n) && noNull(rv, rsel, c.n) {
			logicFast(out.Bool, lv.Bool, rv.Bool, sel, decided == false3)
		} else {
			logicNulls(c, n, lv, rv, sel, decided)
		}
		n.inherit(n.kids[:1])
		if len(r.errs) > 0 {
			if !r.lazy {
				mem = undecided(mem[:0], lv, c.rows(sel), decided)
			}
			n.inheritRows(r, mem)
		}
	}
}

func undecided(dst []int32, v *batch.Vec, rows []int32, decided uint8) []int32 {
	if v.Const {
		for _, r := range rows {
			if truth(v, r) != decided {
				dst = append(dst, r)
			}
		}
		return dst
	}
	// Without branches: each row is put down, and stays if it is not decided.
	n := len(dst)
	dst = slices.Grow(dst, len(rows))[:n+len(rows)]
	val := decided == true3
	for _, r := range rows {
		dst[n] = r
		n += int(b2i(v.Bool[r] != val || v.Valid != nil && v.Valid[r>>6]&(1<<(r&63)) == 0))
	}
	return dst[:n]
}

// noNull reports that v, which is not Const, is not NULL in the rows of sel; nil = all n. Behind a filter a column that has NULL often
// has none in the rows that are left.
func noNull(v *batch.Vec, sel []int32, n int) bool {
	if v.Valid == nil {
		return true
	}
	if sel != nil {
		all := uint64(1)
		for _, r := range sel {
			all &= v.Valid[r>>6] >> (r & 63)
		}
		return all&1 != 0
	}
	all := ^uint64(0)
	for _, w := range v.Valid[:n>>6] {
		all &= w
	}
	if last := uint64(1)<<(n&63) - 1; last != 0 {
		all &= v.Valid[n>>6] | ^last
	}
	return all == ^uint64(0)
}

// logicFast is AND or OR without NULL, and without branches: operands are hard to predict.
func logicFast(out, l, r []bool, sel []int32, and bool) {
	switch {
	case sel == nil && and:
		l, r = l[:len(out)], r[:len(out)]
		for i := range out {
			out[i] = b2i(l[i])&b2i(r[i]) != 0
		}
	case sel == nil:
		l, r = l[:len(out)], r[:len(out)]
		for i := range out {
			out[i] = b2i(l[i])|b2i(r[i]) != 0
		}
	case and:
		for _, i := range sel {
			out[i] = b2i(l[i])&b2i(r[i]) != 0
		}
	default:
		for _, i := range sel {
			out[i] = b2i(l[i])|b2i(r[i]) != 0
		}
	}
}

func logicNulls(c *evalCtx, n *node, lv, rv *batch.Vec, sel []int32, decided uint8) {
	for _, i := range c.rows(sel) {
		a := truth(lv, i)
		if a != decided {
			// The right side decides, or leaves it at UNKNOWN, or agrees with the left.
			if b := truth(rv, i); b == decided || a != unknown3 {
				a = b
			}
		}
		if a == unknown3 {
			n.setNull(int(i), c.n)
		}
		n.out.Bool[i] = a == true3
	}
}

// isKernel is IS [NOT] NULL, TRUE, FALSE.
func isKernel(e *Is) func(*evalCtx, *node, []int32) {
	return func(c *evalCtx, n *node, sel []int32) {
		v := n.kids[0].eval(c, sel)
		out := n.begin(c.n)
		for _, r := range c.rows(sel) {
			var is bool
			switch e.What {
			case "NULL":
				is = v.IsNull(int(r))
			case "TRUE":
				is = truth(v, r) == true3
			default:
				is = truth(v, r) == false3
			}
			out.Bool[r] = is != e.Not
		}
		n.inherit(n.kids)
	}
}

// runCase evaluates CASE: each result only for the rows its condition takes. While conditions are the same for all rows there
// are no lists of rows, and a result that all rows take is passed on as it is.
func runCase(c *evalCtx, n *node, sel []int32) {
	first, last := 0, len(n.kids)-1
	var cond *batch.Vec
	for ; first < last; first += 2 {
		if cond = n.kids[first].eval(c, sel); !cond.Const {
			break
		}
		n.inheritRows(n.kids[first], c.rows(sel))
		if truth(cond, 0) == true3 {
			first, last = first+1, first+1
		}
	}
	if k := n.kids[last]; first >= last && !(k.shared && k.lazy) { // such a one may yet be computed anew, for other rows
		n.vec = k.eval(c, sel)
		n.inheritRows(k, c.rows(sel))
		return
	}
	out := n.begin(c.n)
	st := n.branches(c, sel)
	for i := first; i < last && len(st.rest) > 0; i += 2 {
		if i > first {
			cond = n.kids[i].eval(c, st.rest)
		}
		n.inheritRows(n.kids[i], st.rest)
		st.split(cond)
		n.take(c, n.kids[i+1], out, st.taken)
	}
	n.take(c, n.kids[last], out, st.rest)
}

// runCoalesce evaluates each argument for the rows where the ones before are NULL.
func runCoalesce(c *evalCtx, n *node, sel []int32) {
	out := n.begin(c.n)
	st := n.branches(c, sel)
	for i, k := range n.kids {
		if len(st.rest) == 0 {
			return
		}
		if i == len(n.kids)-1 {
			n.take(c, k, out, st.rest)
			return
		}
		v := k.eval(c, st.rest)
		n.inheritRows(k, st.rest)
		st.taken = st.taken[:0]
		j := 0
		for _, r := range st.rest {
			if v.IsNull(int(r)) {
				st.rest[j] = r
				j++
			} else {
				st.taken = append(st.taken, r)
			}
		}
		n.copyRows(v, st.taken, c.n)
		st.rest = st.rest[:j]
	}
}

// branchState is the row lists of a CASE or COALESCE.
type branchState struct{ rest, taken []int32 }

// split moves the rows of rest where cond is TRUE to taken.
func (st *branchState) split(cond *batch.Vec) {
	st.taken = append(st.taken[:0], st.rest...)
	t, j := 0, 0
	if cond.Valid != nil || cond.Const {
		for _, r := range st.rest {
			if truth(cond, r) == true3 {
				st.taken[t] = r
				t++
			} else {
				st.rest[j] = r
				j++
			}
		}
	} else {
		// Without branches: both lists get the row, one of them keeps it.
		for _, r := range st.rest {
			st.taken[t], st.rest[j] = r, r
			k := int(b2i(cond.Bool[r]))
			t += k
			j += 1 - k
		}
	}
	st.rest, st.taken = st.rest[:j], st.taken[:t]
}

func (n *node) branches(c *evalCtx, sel []int32) *branchState {
	if n.branch == nil {
		n.branch = &branchState{}
	}
	n.branch.rest = append(n.branch.rest[:0], c.rows(sel)...)
	return n.branch
}

// take evaluates k for the given rows and makes its values the results there.
func (n *node) take(c *evalCtx, k *node, out *batch.Vec, rows []int32) {
	if len(rows) == 0 {
		return
	}
	v := k.eval(c, rows)
	n.inheritRows(k, rows)
	n.copyRows(v, rows, c.n)
}

// copyRows copies rows of v into n.out, which has total rows.
func (n *node) copyRows(v *batch.Vec, rows []int32, total int) {
	if v.Valid != nil || n.out.Valid != nil {
		for _, r := range rows {
			if v.IsNull(int(r)) {
				n.setNull(int(r), total)
			}
		}
	}
	copyPhys(&n.out, v, rows)
}

// copyPhys copies the values of rows from v to out.
func copyPhys(out, v *batch.Vec, rows []int32) {
	switch out.Type.Phys() {
	case types.PhysI64:
		copyVals(out.I64, v.I64, v.Const, rows)
	case types.PhysF64:
		copyVals(out.F64, v.F64, v.Const, rows)
	case types.PhysBool:
		copyVals(out.Bool, v.Bool, v.Const, rows)
	case types.PhysStr:
		copyVals(out.Str, v.Str, v.Const, rows)
	case types.PhysI128:
		copyVals(out.I128, v.I128, v.Const, rows)
	}
}

func copyVals[T any](dst, src []T, isConst bool, rows []int32) {
	if isConst {
		k := src[0]
		for _, r := range rows {
			dst[r] = k
		}
		return
	}
	for _, r := range rows {
		dst[r] = src[r]
	}
}
