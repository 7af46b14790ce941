package expr

import (
	"slices"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// arena holds the bytes of the strings one kernel builds for one batch. Its memory is given away with the strings, so
// that they stay good after the batch; the next batch gets new memory of about the size the last one needed.
type arena struct {
	buf   []byte
	start int
	used  int
}

// reset starts a batch.
func (a *arena) reset() {
	if a.used += len(a.buf); a.used > 0 {
		a.buf = make([]byte, 0, a.used+a.used/8)
	}
	a.start, a.used = 0, 0
}

// room makes space for n bytes without moving what is written.
func (a *arena) room(n int) {
	if cap(a.buf)-len(a.buf) < n {
		a.used += len(a.buf)
		a.buf = make([]byte, 0, max(4096, n, cap(a.buf)))
		a.start = 0
	}
}

// take ends a string: the bytes appended to buf since the last take.
func (a *arena) take() string {
	b := a.buf[a.start:]
	a.start = len(a.buf)
	return unsafe.String(unsafe.SliceData(b), len(b))
}

// concatKernel is ||.
func concatKernel(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
	if n.arena == nil {
		n.arena = &arena{}
	}
	ar := n.arena
	ar.reset()
	for _, i := range rowsOf(c, sel, rows) {
		if out.IsNull(int(i)) {
			continue
		}
		l, r := args[0].Str[args[0].Idx(int(i))], args[1].Str[args[1].Idx(int(i))]
		switch {
		case l == "":
			out.Str[i] = r
		case r == "":
			out.Str[i] = l
		default:
			ar.room(len(l) + len(r))
			ar.buf = append(append(ar.buf, l...), r...)
			out.Str[i] = ar.take()
		}
	}
}

// inKernel is [NOT] IN over constants.
func inKernel(e *In) kernel {
	set := newConstSet(e)
	return func(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		v := args[0]
		if v.I64 != nil && !v.Const && !set.null && set.few != nil {
			set.hasInts(out.Bool, v.I64, rowsOf(c, sel, rows), !e.Not)
			return
		}
		if v.Str != nil && !v.Const && !set.null && set.fewStr != nil {
			set.hasStrs(out.Bool, v.Str, rowsOf(c, sel, rows), !e.Not)
			return
		}
		for _, i := range rowsOf(c, sel, rows) {
			found := set.has(v, v.Idx(int(i)))
			out.Bool[i] = found != e.Not
			if !found && set.null {
				n.setNull(int(i), rows)
			}
		}
	}
}

// constSet is a set of non-NULL constants of one storage class.
type constSet struct {
	null   bool
	few    []int64
	fewStr []string
	i64    map[int64]struct{}
	str    map[string]struct{}
	i128   map[types.Int128]struct{}
	bool   [2]bool
}

func newConstSet(e *In) *constSet {
	s := &constSet{i64: map[int64]struct{}{}, str: map[string]struct{}{}, i128: map[types.Int128]struct{}{}}
	for _, l := range e.List {
		if l.Value.IsNull {
			s.null = true
			continue
		}
		switch l.T.Phys() {
		case types.PhysI64:
			s.i64[l.Value.I64] = struct{}{}
		case types.PhysStr:
			s.str[l.Value.Str] = struct{}{}
		case types.PhysI128:
			s.i128[l.Value.I128()] = struct{}{}
		case types.PhysBool:
			s.bool[b2i(l.Value.Bool)] = true
		}
	}
	if len(s.i64) <= 8 {
		for v := range s.i64 {
			s.few = append(s.few, v)
		}
	}
	if len(s.str) <= 8 {
		for v := range s.str {
			s.fewStr = append(s.fewStr, v)
		}
	}
	return s
}

// hasInts is has for columns of integers and short lists.
func (s *constSet) hasInts(out []bool, v []int64, rows []int32, found bool) {
	for _, i := range rows {
		x, ok := v[i], !found
		for _, k := range s.few {
			if x == k {
				ok = found
			}
		}
		out[i] = ok
	}
}

// hasStrs is has for columns of strings and short lists: most differ in length, which is compared first.
func (s *constSet) hasStrs(out []bool, v []string, rows []int32, found bool) {
	for _, i := range rows {
		out[i] = slices.Contains(s.fewStr, v[i]) == found
	}
}

func (s *constSet) has(v *batch.Vec, i int) bool {
	ok := false
	switch {
	case v.I64 != nil && s.few != nil:
		for _, x := range s.few {
			if x == v.I64[i] {
				return true
			}
		}
	case v.I64 != nil:
		_, ok = s.i64[v.I64[i]]
	case v.Str != nil:
		_, ok = s.str[v.Str[i]]
	case v.I128 != nil:
		_, ok = s.i128[v.I128[i]]
	case v.Bool != nil:
		ok = s.bool[b2i(v.Bool[i])]
	}
	return ok
}

// like is LIKE and SIMILAR TO. A pattern that is not a constant is compiled per distinct value.
func (c *compiler) like(n *node, e *Like) error {
	n.lazy = true
	if p, esc, ok := e.constantPattern(); ok {
		m, err := newMatcher(p, esc, e.Similar)
		if err != nil {
			return err
		}
		n.run = strict(e.Type(), true, func(c *evalCtx, _ *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
			for _, i := range rowsOf(c, sel, rows) {
				out.Bool[i] = m.match(a[0].Str[a[0].Idx(int(i))]) != e.Not
			}
		})
		return c.kids(n, e.X)
	}
	cache := &matcherCache{similar: e.Similar}
	n.run = strict(e.Type(), false, func(c *evalCtx, n *node, a []*batch.Vec, out *batch.Vec, sel []int32, rows int) {
		for _, i := range rowsOf(c, sel, rows) {
			if out.IsNull(int(i)) {
				continue
			}
			esc := ""
			if len(a) > 2 {
				esc = a[2].Str[a[2].Idx(int(i))]
			}
			m, err := cache.get(a[1].Str[a[1].Idx(int(i))], esc)
			if err != nil {
				n.fail(int(i), rows, err)
				continue
			}
			out.Bool[i] = m.match(a[0].Str[a[0].Idx(int(i))]) != e.Not
		}
	})
	return c.kids(n, e.Children()...)
}
