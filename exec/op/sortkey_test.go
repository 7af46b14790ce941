package op

import (
	"bytes"
	"cmp"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// TestSortKeyOrder: for random rows of every class of type the bytes compare as the values do, whatever the direction and
// the place of NULL, and one key never begins another.
func TestSortKeyOrder(t *testing.T) {
	s := &types.Schema{Columns: []types.Column{
		{Name: "i", Type: types.Type{Kind: types.BigInt, Nullable: true}},
		{Name: "f", Type: types.Type{Kind: types.Double, Nullable: true}},
		{Name: "s", Type: types.Type{Kind: types.Varchar, Nullable: true}},
		{Name: "b", Type: types.Type{Kind: types.Boolean, Nullable: true}},
		{Name: "d", Type: types.Type{Kind: types.Decimal, Precision: 30, Scale: 2, Nullable: true}},
	}}
	r := rand.New(rand.NewPCG(1, 2))
	floats := []float64{0, math.Copysign(0, -1), 1, -1, math.Inf(1), math.Inf(-1), 1e-300, -1e300, math.NaN(), -math.NaN()}
	strs := []string{"", "a", "ab", "b", "a\x00", "a\x00b", "a\xff", "\x00", "\x00\x00", "\xff\xff", "ä"}
	const n = 400
	bl := batch.NewBuilder(s)
	for range n {
		for c := range s.Columns {
			if r.IntN(8) == 0 {
				bl.Cols[c].AppendNull()
				continue
			}
			switch c {
			case 0:
				bl.Cols[c].AppendI64([]int64{0, 1, -1, math.MaxInt64, math.MinInt64, 7}[r.IntN(6)])
			case 1:
				bl.Cols[c].AppendF64(floats[r.IntN(len(floats))])
			case 2:
				bl.Cols[c].AppendStr(strs[r.IntN(len(strs))])
			case 3:
				bl.Cols[c].AppendBool(r.IntN(2) == 0)
			case 4:
				bl.Cols[c].AppendI128(types.Int128{Lo: r.Uint64N(3), Hi: r.Int64N(3) - 1})
			}
		}
		bl.RowDone()
	}
	b := bl.Finish()
	for range 60 {
		var keys []SortKey
		for range 1 + r.IntN(3) {
			keys = append(keys, SortKey{Col: r.IntN(len(s.Columns)), Desc: r.IntN(2) == 0, NullsFirst: r.IntN(2) == 0})
		}
		e := newSortKeyEncoder(keys, s)
		for range 3000 {
			x, y := r.IntN(n), r.IntN(n)
			kx, ky := e.appendTo(nil, b, x), e.appendTo([]byte("p"), b, y)[1:]
			want := 0
			for _, k := range keys {
				if want = compareRows(k, b.Cols[k.Col], x, y); want != 0 {
					break
				}
			}
			if got := bytes.Compare(kx, ky); got != want {
				t.Fatalf("%+v: rows %d and %d: %x, %x compare %d, want %d", keys, x, y, kx, ky, got, want)
			}
			if want != 0 && (bytes.HasPrefix(kx, ky) || bytes.HasPrefix(ky, kx)) {
				t.Fatalf("%+v: one of %x and %x begins the other", keys, kx, ky)
			}
		}
	}
}

// compareRows is SortKey.compare with NaN after all numbers.
func compareRows(k SortKey, v *batch.Vec, x, y int) int {
	if v.Type.Phys() != types.PhysF64 || v.IsNull(x) || v.IsNull(y) {
		return k.compare(v, x, y)
	}
	a, b := v.F64[x], v.F64[y]
	c := cmp.Compare(a, b)
	if a != a || b != b {
		c = cmp.Compare(boolWord(a != a), boolWord(b != b))
	}
	if k.Desc {
		return -c
	}
	return c
}

// compare orders rows a and b of v by one key.
func (k SortKey) compare(v *batch.Vec, a, b int) int {
	an, bn := v.IsNull(a), v.IsNull(b)
	if an || bn {
		if an == bn {
			return 0
		}
		if an == k.NullsFirst {
			return -1
		}
		return 1
	}
	c := compareValues(v, v.Idx(a), v.Idx(b))
	if k.Desc {
		return -c
	}
	return c
}

func compareValues(v *batch.Vec, a, b int) int {
	switch v.Type.Phys() {
	case types.PhysF64:
		return cmp.Compare(v.F64[a], v.F64[b])
	case types.PhysBool:
		return cmp.Compare(boolByte(v.Bool[a]), boolByte(v.Bool[b]))
	case types.PhysStr:
		return strings.Compare(v.Str[a], v.Str[b])
	case types.PhysI128:
		return v.I128[a].Cmp(v.I128[b])
	}
	return cmp.Compare(v.I64[a], v.I64[b])
}
