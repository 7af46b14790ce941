package batch

import (
	"slices"

	"github.com/streamsql/streamsql/sql/types"
)

// Builder collects rows column by column and hands them out as a Batch. Decoders append to Cols directly:
// for each row every column gets exactly one append (a value, or AppendNull), then RowDone or RowKindDone.
// A Builder is used by one goroutine; its memory is reused after Reset.
type Builder struct {
	Cols  []*ColBuilder
	n     int
	kinds []types.RowKind
	batch Batch
}

// ColBuilder is a column being built. The typed append methods must match Type.Phys.
type ColBuilder struct {
	Vec
	valid []uint64
	spare []uint64 // memory of valid, to be used again
	n     int
}

// NewBuilder makes a builder for rows of schema s.
func NewBuilder(s *types.Schema) *Builder {
	b := &Builder{}
	for _, c := range s.Columns {
		b.Cols = append(b.Cols, &ColBuilder{Vec: Vec{Type: c.Type}})
	}
	return b
}

// Len is the number of finished rows.
func (b *Builder) Len() int { return b.n }

// Full reports whether the builder holds Size rows or more.
func (b *Builder) Full() bool { return b.n >= Size }

// RowDone finishes an insert row.
func (b *Builder) RowDone() {
	if b.kinds != nil {
		b.kinds = append(b.kinds, types.Insert)
	}
	b.n++
}

// RowKindDone finishes a row of kind k.
func (b *Builder) RowKindDone(k types.RowKind) {
	if b.kinds == nil {
		if k == types.Insert {
			b.n++
			return
		}
		b.kinds = make([]types.RowKind, b.n, Size)
	}
	b.kinds = append(b.kinds, k)
	b.n++
}

// Abandon drops the values of an unfinished row, after a decoding error half-way.
func (b *Builder) Abandon() { b.Truncate(b.n) }

// Truncate keeps the first n rows.
func (b *Builder) Truncate(n int) {
	b.n = n
	if b.kinds != nil {
		b.kinds = b.kinds[:n]
	}
	for _, c := range b.Cols {
		c.truncate(n)
	}
}

// Reset drops all rows. Batches from Finish become invalid, their strings stay good.
func (b *Builder) Reset() {
	b.Truncate(0)
	b.kinds = nil
}

// Finish returns the rows as a batch that is valid until Reset.
func (b *Builder) Finish() *Batch {
	b.batch.N = b.n
	b.batch.Sel = nil
	b.batch.Kinds = b.kinds
	if b.batch.Cols == nil {
		b.batch.Cols = make([]*Vec, len(b.Cols))
	}
	for i, c := range b.Cols {
		c.Valid = c.valid
		b.batch.Cols[i] = &c.Vec
	}
	return &b.batch
}

// Len is the number of values appended.
func (c *ColBuilder) Len() int { return c.n }

// AppendI64 appends a PhysI64 value.
func (c *ColBuilder) AppendI64(v int64) { c.I64 = append(c.I64, v); c.mark() }

// AppendF64 appends a PhysF64 value.
func (c *ColBuilder) AppendF64(v float64) { c.F64 = append(c.F64, v); c.mark() }

// AppendBool appends a PhysBool value.
func (c *ColBuilder) AppendBool(v bool) { c.Bool = append(c.Bool, v); c.mark() }

// AppendStr appends a PhysStr value: a string, bytes, or an encoded nested value. v must be immutable.
func (c *ColBuilder) AppendStr(v string) { c.Str = append(c.Str, v); c.mark() }

// AppendI128 appends a PhysI128 value.
func (c *ColBuilder) AppendI128(v types.Int128) { c.I128 = append(c.I128, v); c.mark() }

// AppendNull appends NULL.
func (c *ColBuilder) AppendNull() {
	if c.valid == nil {
		c.valid = AllValid(c.spare, max(c.n, 1))
	}
	switch c.Type.Phys() {
	case types.PhysI64:
		c.I64 = append(c.I64, 0)
	case types.PhysF64:
		c.F64 = append(c.F64, 0)
	case types.PhysBool:
		c.Bool = append(c.Bool, false)
	case types.PhysStr:
		c.Str = append(c.Str, "")
	case types.PhysI128:
		c.I128 = append(c.I128, types.Int128{})
	}
	c.mark()
	c.valid[(c.n-1)>>6] &^= 1 << ((c.n - 1) & 63)
}

// AppendDatum appends d, NULL or not, encoding nested values. For slow paths.
func (c *ColBuilder) AppendDatum(d types.Datum) {
	if d.IsNull {
		c.AppendNull()
		return
	}
	switch c.Type.Phys() {
	case types.PhysI64:
		c.AppendI64(d.I64)
	case types.PhysF64:
		c.AppendF64(d.F64)
	case types.PhysBool:
		c.AppendBool(d.Bool)
	case types.PhysI128:
		c.AppendI128(d.I128())
	case types.PhysStr:
		if c.Type.IsNested() {
			c.AppendStr(string(types.AppendNested(nil, d, c.Type)))
		} else {
			c.AppendStr(d.Str)
		}
	}
}

// AppendFrom appends physical row r of v, a column of the same type.
func (c *ColBuilder) AppendFrom(v *Vec, r int) {
	if v.IsNull(r) {
		c.AppendNull()
		return
	}
	r = v.Idx(r)
	switch c.Type.Phys() {
	case types.PhysI64:
		c.AppendI64(v.I64[r])
	case types.PhysF64:
		c.AppendF64(v.F64[r])
	case types.PhysBool:
		c.AppendBool(v.Bool[r])
	case types.PhysStr:
		c.AppendStr(v.Str[r])
	case types.PhysI128:
		c.AppendI128(v.I128[r])
	}
}

// AppendRows appends physical rows of v, a column of the same type, in the order given; -1 appends NULL.
func (c *ColBuilder) AppendRows(v *Vec, rows []int32) {
	if !slices.Contains(rows, -1) {
		c.Gather(v, rows)
		return
	}
	for _, r := range rows {
		if r < 0 {
			c.AppendNull()
		} else {
			c.AppendFrom(v, int(r))
		}
	}
}

// Gather is AppendRows where no row is -1.
func (c *ColBuilder) Gather(v *Vec, rows []int32) {
	if v.Const {
		for _, r := range rows {
			c.AppendFrom(v, int(r))
		}
		return
	}
	first := c.AppendN(len(rows))
	switch c.Type.Phys() {
	case types.PhysI64:
		gather(c.I64[first:], v.I64, rows)
	case types.PhysF64:
		gather(c.F64[first:], v.F64, rows)
	case types.PhysBool:
		gather(c.Bool[first:], v.Bool, rows)
	case types.PhysStr:
		gather(c.Str[first:], v.Str, rows)
	case types.PhysI128:
		gather(c.I128[first:], v.I128, rows)
	}
	if v.Valid == nil {
		return
	}
	for i, r := range rows {
		if v.Valid[r>>6]>>(r&63)&1 == 0 {
			c.Nullify(first + i)
		}
	}
}

func gather[T any](dst, src []T, rows []int32) {
	dst = dst[:len(rows)]
	for i, r := range rows {
		dst[i] = src[r]
	}
}

// Pop drops the last value appended. A decoder uses it when a message names a column twice and the last one counts.
func (c *ColBuilder) Pop() { c.truncate(c.n - 1) }

func (c *ColBuilder) mark() {
	if c.valid != nil {
		if w := c.n >> 6; w == len(c.valid) {
			c.valid = append(c.valid, ^uint64(0))
		} else if c.n&63 == 0 {
			c.valid[w] = ^uint64(0)
		}
	}
	c.n++
}

func (c *ColBuilder) truncate(n int) {
	if c.n <= n {
		return
	}
	c.n = n
	if c.Const {
		if n > 0 {
			return
		}
		c.Const = false
	}
	if n == 0 {
		if c.valid != nil {
			c.spare, c.valid = c.valid, nil
		}
	} else if c.valid != nil {
		// Later appends set only fresh words, so the tail of the last kept word must read "valid" again.
		c.valid = c.valid[:(n+63)>>6]
		if r := n & 63; r != 0 {
			c.valid[n>>6] |= ^uint64(0) << r
		}
	}
	switch c.Type.Phys() {
	case types.PhysI64:
		c.I64 = c.I64[:n]
	case types.PhysF64:
		c.F64 = c.F64[:n]
	case types.PhysBool:
		c.Bool = c.Bool[:n]
	case types.PhysStr:
		c.Str = c.Str[:n]
	case types.PhysI128:
		c.I128 = c.I128[:n]
	}
}
