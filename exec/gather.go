package exec

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// pooled is a batch that an exchange owns. It keeps the validity bitmaps of its columns while they are not in use.
type pooled struct {
	batch.Batch
	home  *channel // nil: restored from a checkpoint
	extra bool     // of the overdraft
	valid [][]uint64
	kinds []types.RowKind
}

func newPooled(s *types.Schema, home *channel) *pooled {
	p := &pooled{home: home, valid: make([][]uint64, s.Len())}
	for _, c := range s.Columns {
		p.Cols = append(p.Cols, &batch.Vec{Type: c.Type})
	}
	return p
}

// reset drops the rows.
func (p *pooled) reset() {
	p.N, p.Sel, p.Kinds = 0, nil, nil
	for _, v := range p.Cols {
		v.Valid = nil
	}
}

// poison overwrites every value, so that whoever kept a reference fails loudly.
func (p *pooled) poison() {
	for _, v := range p.Cols {
		for i := range v.I64 {
			v.I64[i] = -0x5ee5ee5ee5
		}
		for i := range v.Str {
			v.Str[i] = "\xffpoison"
		}
		for i := range v.F64 {
			v.F64[i] = -5e55
		}
	}
	for i := range p.kinds {
		p.kinds[i] = 0xee
	}
}

// add appends the given physical rows of b.
func (p *pooled) add(b *batch.Batch, rows []int32) {
	n := p.N
	total := n + len(rows)
	for i, v := range p.Cols {
		p.addColumn(i, v, b.Cols[i], rows, n, total)
	}
	if b.Kinds != nil || p.Kinds != nil {
		if p.Kinds == nil {
			p.kinds = resize(p.kinds, n, total)
			clear(p.kinds[:n])
		}
		p.kinds = resize(p.kinds, total, total)
		for i, r := range rows {
			p.kinds[n+i] = b.Kind(int(r))
		}
		p.Kinds = p.kinds
	}
	p.N = total
}

func (p *pooled) addColumn(i int, dst, src *batch.Vec, rows []int32, n, total int) {
	switch dst.Type.Phys() {
	case types.PhysI64:
		dst.I64 = gather(dst.I64, src.I64, rows, n, total, src.Const)
	case types.PhysF64:
		dst.F64 = gather(dst.F64, src.F64, rows, n, total, src.Const)
	case types.PhysBool:
		dst.Bool = gather(dst.Bool, src.Bool, rows, n, total, src.Const)
	case types.PhysStr:
		dst.Str = gather(dst.Str, src.Str, rows, n, total, src.Const)
	case types.PhysI128:
		dst.I128 = gather(dst.I128, src.I128, rows, n, total, src.Const)
	}
	nulls := src.HasNull(0, rows)
	if !nulls && dst.Valid == nil {
		return
	}
	words := (total + 63) >> 6
	have := 0 // words of the bitmap that hold rows already
	if dst.Valid == nil {
		p.valid[i] = resize(p.valid[i], 0, words)
	} else {
		have = len(dst.Valid)
		p.valid[i] = resize(p.valid[i], have, words)
	}
	for w := have; w < words; w++ {
		p.valid[i][w] = ^uint64(0)
	}
	dst.Valid = p.valid[i]
	if !nulls {
		return
	}
	for k, r := range rows {
		if src.IsNull(int(r)) {
			at := n + k
			dst.Valid[at>>6] &^= 1 << (at & 63)
		}
	}
}

// gather appends src's rows to the n values of dst.
func gather[T any](dst, src []T, rows []int32, n, total int, isConst bool) []T {
	dst = resize(dst, n, total)
	out := dst[n:total]
	if isConst {
		for i := range out {
			out[i] = src[0]
		}
		return dst
	}
	if len(rows) == 0 {
		return dst
	}
	out = out[:len(rows)]
	for i, r := range rows {
		out[i] = src[r]
	}
	return dst
}

// resize gives s total elements, keeping the first n. Growth goes straight to a full batch: exchanges are long-lived.
func resize[T any](s []T, n, total int) []T {
	if cap(s) >= total {
		return s[:total]
	}
	c := total
	if total > 64 {
		c = max(total, min(2*total, batch.Size))
	}
	t := make([]T, total, c)
	copy(t, s[:min(n, len(s))])
	return t
}
