package batch

import (
	"slices"

	"github.com/streamsql/streamsql/sql/types"
)

// AppendN appends n values, none NULL, and returns the index of the first. They are arbitrary: the caller stores each of
// them in the slice of the column's physical type.
func (c *ColBuilder) AppendN(n int) int {
	at := c.n
	switch c.Type.Phys() {
	case types.PhysI64:
		c.I64 = slices.Grow(c.I64, n)[:at+n]
	case types.PhysF64:
		c.F64 = slices.Grow(c.F64, n)[:at+n]
	case types.PhysBool:
		c.Bool = slices.Grow(c.Bool, n)[:at+n]
	case types.PhysStr:
		c.Str = slices.Grow(c.Str, n)[:at+n]
	case types.PhysI128:
		c.I128 = slices.Grow(c.I128, n)[:at+n]
	}
	c.n += n
	for c.valid != nil && len(c.valid) < (c.n+63)>>6 {
		c.valid = append(c.valid, ^uint64(0))
	}
	return at
}

// Clear drops all values of a column that is filled without a Builder's rows being counted.
func (c *ColBuilder) Clear() { c.truncate(0) }

// AppendEither appends rows of v or of other, columns of the same type, in the order given: a physical row of v, or ^ one of
// other.
func (c *ColBuilder) AppendEither(v, other *Vec, rows []int32) {
	if v.Const || other.Const || v.Valid != nil || other.Valid != nil || c.valid != nil {
		for _, r := range rows {
			if r >= 0 {
				c.AppendFrom(v, int(r))
			} else {
				c.AppendFrom(other, int(^r))
			}
		}
		return
	}
	switch c.Type.Phys() {
	case types.PhysI64:
		c.I64 = gatherEither(c.I64, v.I64, other.I64, rows)
	case types.PhysF64:
		c.F64 = gatherEither(c.F64, v.F64, other.F64, rows)
	case types.PhysBool:
		c.Bool = gatherEither(c.Bool, v.Bool, other.Bool, rows)
	case types.PhysStr:
		c.Str = gatherEither(c.Str, v.Str, other.Str, rows)
	case types.PhysI128:
		c.I128 = gatherEither(c.I128, v.I128, other.I128, rows)
	}
	c.n += len(rows)
}

func gatherEither[T any](dst, v, other []T, rows []int32) []T {
	dst = slices.Grow(dst, len(rows))
	for _, r := range rows {
		if r >= 0 {
			dst = append(dst, v[r])
		} else {
			dst = append(dst, other[^r])
		}
	}
	return dst
}

// Nullify makes value r NULL. What is stored there has to stay safe to read.
func (c *ColBuilder) Nullify(r int) {
	if c.valid == nil {
		c.valid = AllValid(c.spare, c.n)
	}
	c.valid[r>>6] &^= 1 << (r & 63)
}

// NullifyRange makes the values from place from to before place to NULL; what is stored there has to
// stay safe to read.
func (c *ColBuilder) NullifyRange(from, to int) {
	if from >= to {
		return
	}
	if c.valid == nil {
		c.valid = AllValid(c.spare, c.n)
	}
	first, last := from>>6, (to-1)>>6
	head, tail := ^uint64(0)<<(from&63), ^uint64(0)>>(63-(to-1)&63)
	if first == last {
		c.valid[first] &^= head & tail
		return
	}
	c.valid[first] &^= head
	clear(c.valid[first+1 : last])
	c.valid[last] &^= tail
}

// RowsDone finishes n insert rows, after every column got their values.
func (b *Builder) RowsDone(n int) {
	if b.kinds != nil {
		for range n {
			b.kinds = append(b.kinds, types.Insert)
		}
	}
	b.n += n
}

// AppendConst appends n rows to a column that has none and makes it Const: the caller stores the value of all rows at index 0, or
// makes it NULL with Nullify. No more values follow before the column is emptied.
func (c *ColBuilder) AppendConst(n int) {
	c.AppendN(1)
	c.Const, c.n = true, n
}

// KeepOnly makes the values NULL whose bit in valid, which has one for every value, is not set. What is stored there has to stay
// safe to read.
func (c *ColBuilder) KeepOnly(valid []uint64) {
	words := (c.n + 63) >> 6
	if c.valid == nil {
		c.valid = AllValid(c.spare, c.n)
	}
	for i, w := range valid[:words] {
		c.valid[i] &= w
	}
	if r := c.n & 63; r != 0 { // places of later values read "valid"
		c.valid[words-1] |= ^uint64(0) << r
	}
}
