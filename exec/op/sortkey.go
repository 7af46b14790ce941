package op

import (
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// sortKeyEncoder turns the values of ORDER BY columns into bytes whose order, compared bytewise, is that of the rows. No
// key begins another, so that a sub-key can go on behind it.
type sortKeyEncoder struct {
	keys []sortColumn
}

type sortColumn struct {
	SortKey
	phys types.Phys
}

// newSortKeyEncoder encodes the columns of keys, which are columns of s, in that order.
func newSortKeyEncoder(keys []SortKey, s *types.Schema) *sortKeyEncoder {
	e := &sortKeyEncoder{}
	for _, k := range keys {
		e.keys = append(e.keys, sortColumn{k, s.Columns[k.Col].Type.Phys()})
	}
	return e
}

// Every value follows a byte that says where NULL goes: it is between the NULLs of NULLS FIRST and those of NULLS LAST.
const (
	nullFirst byte = iota
	sortValue
	nullLast
)

// appendTo appends the sort key of physical row r of b to dst.
func (e *sortKeyEncoder) appendTo(dst []byte, b *batch.Batch, r int) []byte {
	for i := range e.keys {
		k := &e.keys[i]
		v := b.Cols[k.Col]
		if v.IsNull(r) {
			if k.NullsFirst {
				dst = append(dst, nullFirst)
			} else {
				dst = append(dst, nullLast)
			}
			continue
		}
		dst = append(dst, sortValue)
		start := len(dst)
		switch k.phys {
		case types.PhysStr:
			dst = appendSortString(dst, v.Str[v.Idx(r)])
		case types.PhysF64:
			dst = orderedFloat(dst, sortFloat(v.F64[v.Idx(r)]))
		default:
			dst = orderedBytes(dst, v, v.Idx(r))
		}
		if k.Desc {
			for j := start; j < len(dst); j++ {
				dst[j] = ^dst[j]
			}
		}
	}
	return dst
}

// appendSortString appends the bytes of s, with 0 as 0 255, and ends them with 0 0: a string sorts before what it
// begins.
func appendSortString(dst []byte, s string) []byte {
	for i := 0; i < len(s); i++ {
		if dst = append(dst, s[i]); s[i] == 0 {
			dst = append(dst, 255)
		}
	}
	return append(dst, 0, 0)
}

// sortFloat makes equal numbers the same bits; NaN sorts after all numbers.
func sortFloat(x float64) float64 {
	if x != x {
		return math.NaN()
	}
	return x + 0 // -0 becomes 0
}
