package batch

import "github.com/streamsql/streamsql/sql/types"

// Size is the number of rows an operator aims at per batch. Sources cut batches earlier when data is slow.
const Size = 2048

// Batch is up to a few thousand rows as columns. A filter narrows Sel instead of copying rows.
type Batch struct {
	N     int             // physical rows in every column
	Sel   []int32         // rows that count, ascending; nil = all N
	Kinds []types.RowKind // kind per physical row; nil = all +I
	Cols  []*Vec
}

// Len is the number of rows that count.
func (b *Batch) Len() int {
	if b.Sel != nil {
		return len(b.Sel)
	}
	return b.N
}

// Row maps the i-th row that counts to its physical row.
func (b *Batch) Row(i int) int {
	if b.Sel != nil {
		return int(b.Sel[i])
	}
	return i
}

// Kind is the kind of physical row r.
func (b *Batch) Kind(r int) types.RowKind {
	if b.Kinds == nil {
		return types.Insert
	}
	return b.Kinds[r]
}

// Vec is a column: one of the slices is used, by Type.Phys. A Const column has one stored value (index 0) that holds
// for every row. Valid is a bitmap with a set bit per non-NULL row, nil when there is no NULL; the stored value of a
// NULL row is arbitrary but safe to read.
type Vec struct {
	Type  types.Type
	Const bool
	Valid []uint64
	I64   []int64
	F64   []float64
	Bool  []bool
	Str   []string
	I128  []types.Int128
}

// NewVec is a column of type t with n zero rows, all valid.
func NewVec(t types.Type, n int) *Vec {
	v := &Vec{Type: t}
	v.Resize(n)
	return v
}

// Resize gives the column n rows, reusing its memory; kept rows keep their values, Valid is dropped.
func (v *Vec) Resize(n int) {
	v.Valid = nil
	v.Const = false
	switch v.Type.Phys() {
	case types.PhysI64:
		v.I64 = grow(v.I64, n)
	case types.PhysF64:
		v.F64 = grow(v.F64, n)
	case types.PhysBool:
		v.Bool = grow(v.Bool, n)
	case types.PhysStr:
		v.Str = grow(v.Str, n)
	case types.PhysI128:
		v.I128 = grow(v.I128, n)
	}
}

func grow[T any](s []T, n int) []T {
	if cap(s) >= n {
		return s[:n]
	}
	t := make([]T, n, max(n, 2*cap(s)))
	copy(t, s)
	return t
}

// NewConst is a Const column holding d.
func NewConst(t types.Type, d types.Datum) *Vec {
	v := NewVec(t, 1)
	v.Const = true
	if d.IsNull {
		v.Valid = []uint64{0}
	} else {
		v.Set(0, d)
	}
	return v
}

// Idx maps a physical row to an index into the value slices: 0 for Const columns.
func (v *Vec) Idx(r int) int {
	if v.Const {
		return 0
	}
	return r
}

// IsNull reports whether physical row r is NULL.
func (v *Vec) IsNull(r int) bool {
	if v.Valid == nil {
		return false
	}
	r = v.Idx(r)
	return v.Valid[r>>6]&(1<<(r&63)) == 0
}

// HasNull reports whether one of rows, or of the first n rows if rows is nil, is NULL, or a Const column's value is: a column
// often has a bitmap only because of rows that a filter dropped.
func (v *Vec) HasNull(n int, rows []int32) bool {
	switch {
	case v.Valid == nil:
		return false
	case v.Const:
		return v.Valid[0]&1 == 0
	case rows == nil:
		return missingBit(v.Valid, n)
	}
	all := uint64(1)
	for _, r := range rows {
		all &= v.Valid[r>>6] >> (r & 63)
	}
	return all == 0
}

// missingBit reports whether one of the first n bits is clear.
func missingBit(bitmap []uint64, n int) bool {
	for _, w := range bitmap[:n>>6] {
		if w != ^uint64(0) {
			return true
		}
	}
	r := n & 63
	return r != 0 && ^bitmap[n>>6]<<(64-r) != 0
}

// SetNull makes row r NULL. n is the number of rows of the column, needed to create the bitmap.
func (v *Vec) SetNull(r, n int) {
	if v.Valid == nil {
		v.Valid = AllValid(nil, n)
	}
	v.Valid[r>>6] &^= 1 << (r & 63)
}

// Set stores the non-NULL datum d in row r. For nested types it encodes d.List.
func (v *Vec) Set(r int, d types.Datum) {
	switch v.Type.Phys() {
	case types.PhysI64:
		v.I64[r] = d.I64
	case types.PhysF64:
		v.F64[r] = d.F64
	case types.PhysBool:
		v.Bool[r] = d.Bool
	case types.PhysI128:
		v.I128[r] = d.I128()
	case types.PhysStr:
		if v.Type.IsNested() {
			v.Str[r] = string(types.AppendNested(nil, d, v.Type))
		} else {
			v.Str[r] = d.Str
		}
	}
}

// Datum is the value of physical row r; it decodes nested values. For results and slow paths, not for kernels.
// Nested bytes were written by this process, so damage is a bug and panics.
func (v *Vec) Datum(r int) types.Datum {
	if v.IsNull(r) {
		return types.NullDatum
	}
	r = v.Idx(r)
	switch v.Type.Phys() {
	case types.PhysI64:
		return types.Datum{I64: v.I64[r]}
	case types.PhysF64:
		return types.Datum{F64: v.F64[r]}
	case types.PhysBool:
		return types.Datum{Bool: v.Bool[r]}
	case types.PhysI128:
		return types.I128Datum(v.I128[r])
	}
	if v.Type.IsNested() {
		d, err := types.DecodeNested(v.Str[r], v.Type)
		if err != nil {
			panic(err)
		}
		return d
	}
	return types.Datum{Str: v.Str[r]}
}

// AllValid is a bitmap of n set bits in dst's memory.
func AllValid(dst []uint64, n int) []uint64 {
	dst = grow(dst[:0], (n+63)>>6)
	for i := range dst {
		dst[i] = ^uint64(0)
	}
	return dst
}
