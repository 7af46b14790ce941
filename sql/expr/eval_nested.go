package expr

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// store makes d, NULL or not, the value of row i of n.out.
func (n *node) store(i int32, rows int, d types.Datum) {
	if d.IsNull {
		n.setNull(int(i), rows)
		return
	}
	n.out.Set(int(i), d)
}

func itemKernel(e *Item) kernel {
	t := e.X.Type()
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			src := a[0].Str[a[0].Idx(int(i))]
			var d types.Datum
			var ok bool
			if t.Kind == types.Map {
				d, ok = types.NestedFind(src, t, a[1].Datum(int(i)))
			} else if at := a[1].I64[a[1].Idx(int(i))]; at >= 1 && at <= int64(types.NestedLen(src)) {
				d, ok = types.NestedAt(src, t, int(at-1))
			}
			if !ok {
				d = types.NullDatum
			}
			n.store(i, rows, d)
		}
	}
}

func fieldKernel(e *FieldRef) kernel {
	t := e.X.Type()
	return func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			d, ok := types.NestedAt(a[0].Str[a[0].Idx(int(i))], t, e.Field)
			if !ok {
				d = types.NullDatum
			}
			n.store(i, rows, d)
		}
	}
}

// runConstruct builds ARRAY, MAP and ROW values. NULL operands are NULL entries.
func runConstruct(c *evalCtx, n *node, sel []int32) {
	if n.arena == nil {
		n.arena = &arena{}
	}
	ar := n.arena
	ar.reset()
	n.args = n.args[:0]
	for _, k := range n.kids {
		n.args = append(n.args, k.eval(c, sel))
	}
	out := n.begin(c.n)
	isMap := out.Type.Kind == types.Map
	for _, i := range c.rows(sel) {
		if isMap {
			ar.buf = appendMap(ar.buf, n.args, int(i))
		} else {
			ar.buf = types.AppendListLen(ar.buf, len(n.args))
			for _, v := range n.args {
				ar.buf = appendEntry(ar.buf, v, int(i))
			}
		}
		out.Str[i] = ar.take()
	}
	n.inherit(n.kids)
}

// appendEntry appends row i of v as an entry of a nested value.
func appendEntry(dst []byte, v *batch.Vec, i int) []byte {
	if v.IsNull(i) {
		return append(dst, 0)
	}
	if v.Type.IsNested() {
		return append(append(dst, 1), v.Str[v.Idx(i)]...)
	}
	return types.AppendValue(dst, v.Datum(i), v.Type)
}

// appendMap appends keys and values; an entry of an equal key later on replaces the value.
func appendMap(dst []byte, kvs []*batch.Vec, i int) []byte {
	var keep []int
	for k := 0; k < len(kvs); k += 2 {
		key := string(appendEntry(nil, kvs[k], i))
		replaced := false
		for j, old := range keep {
			if string(appendEntry(nil, kvs[old], i)) == key {
				keep[j] = k
				replaced = true
			}
		}
		if !replaced {
			keep = append(keep, k)
		}
	}
	dst = types.AppendListLen(dst, 2*len(keep))
	for _, k := range keep {
		dst = appendEntry(appendEntry(dst, kvs[k], i), kvs[k+1], i)
	}
	return dst
}
