package expr

import (
	"encoding/binary"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// maxBlended bounds the operands of a CASE that is blended: with many, lists of rows get short quickly.
const maxBlended = 9

// blendable reports that blendCase is made for the compiled CASE n.
func blendable(n *node) bool {
	for _, k := range n.kids {
		if k.lazy {
			return false
		}
	}
	return len(n.kids) <= maxBlended && n.out.Type.Phys() == types.PhysI64
}

// runBlend is runCase by blendCase where it can.
func runBlend(c *evalCtx, n *node, sel []int32) {
	if !blendCase(c, n, sel) {
		runCase(c, n, sel)
	}
}

// blendCase evaluates a CASE whose operands cost next to nothing and cannot fail: all of them for all rows, and the results are laid
// over one another, the first condition's last. It does without lists of rows and without branches on the conditions. It reports false,
// with nothing done that matters, when it is not made for the columns that came.
func blendCase(c *evalCtx, n *node, sel []int32) bool {
	if sel != nil && len(sel)*2 < c.n {
		return false
	}
	n.args = n.args[:0]
	for i, end := 0, len(n.kids)-1; i <= end; i++ {
		v := n.kids[i].eval(c, sel)
		if i%2 == 0 && i < end {
			switch {
			case v.Const && truth(v, 0) == true3:
				end = i + 1
				continue
			case v.Const: // its result is not taken
				i++
				continue
			case v.Valid != nil:
				return false
			}
		}
		n.args = append(n.args, v)
	}
	last := len(n.args) - 1
	if last == 0 {
		n.vec = n.args[0]
		return true
	}
	out := n.begin(c.n)
	fillFrom(out.I64, n.args[last])
	for i := last - 2; i >= 0; i -= 2 {
		blend(out.I64, n.args[i+1], n.args[i].Bool)
	}
	blendValid(n, c.n)
	return true
}

func fillFrom(dst []int64, v *batch.Vec) {
	if !v.Const {
		copy(dst, v.I64)
		return
	}
	k := v.I64[0]
	for i := range dst {
		dst[i] = k
	}
}

// blend puts the values of v where cond is true.
func blend(dst []int64, v *batch.Vec, cond []bool) {
	cond = cond[:len(dst)]
	if v.Const {
		k := v.I64[0]
		for i, x := range dst {
			if cond[i] {
				x = k
			}
			dst[i] = x
		}
		return
	}
	src := v.I64[:len(dst)]
	for i, x := range dst {
		y := src[i]
		if cond[i] {
			x = y
		}
		dst[i] = x
	}
}

// blendValid makes the validity of n.out from that of the results.
func blendValid(n *node, rows int) {
	last := len(n.args) - 1
	nulls := n.args[last].Valid != nil
	for i := 1; i < last; i += 2 {
		nulls = nulls || n.args[i].Valid != nil
	}
	if !nulls {
		return
	}
	n.valid = batch.AllValid(n.valid, rows)
	missing := uint64(0)
	for w := range n.valid {
		valid := validWord(n.args[last], w)
		for i := last - 2; i >= 0; i -= 2 {
			mask := packBools(n.args[i].Bool[w*64 : min(w*64+64, rows)])
			valid = valid&^mask | validWord(n.args[i+1], w)&mask
		}
		n.valid[w] = valid
		missing |= ^valid & (^uint64(0) >> max(0, w*64+64-rows))
	}
	if missing != 0 {
		n.out.Valid = n.valid
	}
}

// validWord is word w of the validity of v.
func validWord(v *batch.Vec, w int) uint64 {
	switch {
	case v.Valid == nil || v.Const && v.Valid[0]&1 != 0:
		return ^uint64(0)
	case v.Const:
		return 0
	}
	return v.Valid[w]
}

// packBools is up to 64 booleans as bits, the first the lowest. A boolean is a byte, 0 or 1; the product moves eight to their bits.
func packBools(v []bool) uint64 {
	var out uint64
	i := 0
	for ; i+8 <= len(v); i += 8 {
		x := binary.LittleEndian.Uint64(unsafe.Slice((*byte)(unsafe.Pointer(&v[i])), 8))
		out |= x * 0x0102040810204080 >> 56 << i
	}
	for ; i < len(v); i++ {
		out |= uint64(b2i(v[i])) << i
	}
	return out
}
