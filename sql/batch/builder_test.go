package batch

import (
	"testing"

	"github.com/streamsql/streamsql/sql/types"
)

// Values that are appended in blocks and made NULL later are those of AppendI64 and AppendNull one by one, also in memory
// that was used before.
func TestBlocks(t *testing.T) {
	s := &types.Schema{Columns: []types.Column{{Name: "n", Type: types.BigIntType}, {Name: "s", Type: types.StringType}}}
	b := NewBuilder(s)
	for _, blocks := range [][]int{{3, 0, 200}, {64, 64}, {1, 63, 1, 5}, {130}} {
		for nullFrom := 0; nullFrom < 130; nullFrom += 13 {
			for _, nulls := range []int{0, 1, 50, 64, 70} {
				b.Reset()
				checkBlocks(t, b, blocks, nullFrom, nulls)
			}
		}
	}
}

func checkBlocks(t *testing.T, b *Builder, blocks []int, nullFrom, nulls int) {
	t.Helper()
	total := 0
	n, s := b.Cols[0], b.Cols[1]
	for _, k := range blocks {
		for i, to := range [2]int{k, k} {
			from := total
			if i == 0 {
				dst := n.I64[n.AppendN(to):]
				for j := range dst {
					dst[j] = int64(from + j)
				}
			} else {
				dst := s.Str[s.AppendN(to):]
				for j := range dst {
					dst[j] = "x"
				}
			}
		}
		end := min(nullFrom+nulls, total+k)
		for _, c := range b.Cols {
			c.NullifyRange(max(nullFrom, total), end)
		}
		total += k
		b.RowsDone(k)
	}
	n.AppendI64(int64(total))
	s.AppendStr("x")
	b.RowDone()
	got := b.Finish()
	if got.N != total+1 {
		t.Fatalf("%d rows, want %d", got.N, total+1)
	}
	for r := range got.N {
		null := r >= nullFrom && r < nullFrom+nulls && r < total
		if got.Cols[0].IsNull(r) != null || got.Cols[1].IsNull(r) != null || got.Cols[0].I64[r] != int64(r) || got.Cols[1].Str[r] != "x" {
			t.Fatalf("blocks %v, NULL from %d for %d: row %d: %v %d", blocks, nullFrom, nulls, r, got.Cols[0].IsNull(r), got.Cols[0].I64[r])
		}
	}
}

// HasNull is IsNull of one of the rows.
func TestHasNull(t *testing.T) {
	for _, n := range []int{0, 1, 63, 64, 65, 130} {
		for null := range 140 {
			v := NewVec(types.BigIntType, 140)
			v.SetNull(null, 140)
			if got := v.HasNull(n, nil); got != (null < n) {
				t.Fatalf("%d rows, row %d is NULL: %v", n, null, got)
			}
			rows := []int32{3, 64, 139}
			if got := v.HasNull(140, rows); got != (null == 3 || null == 64 || null == 139) {
				t.Fatalf("row %d is NULL, rows %v: %v", null, rows, got)
			}
		}
	}
	if NewVec(types.BigIntType, 1).HasNull(1, nil) || NewConst(types.BigIntType, types.IntDatum(1)).HasNull(9, nil) ||
		!NewConst(types.BigIntType, types.NullDatum).HasNull(9, []int32{8}) {
		t.Fatal("columns without a bitmap or of one value")
	}
}

// A column that is the same for all rows, and one of which a mask says which values are NULL, in memory that was used before.
func TestConstAndMask(t *testing.T) {
	b := NewBuilder(&types.Schema{Columns: []types.Column{{Name: "c", Type: types.BigIntType}, {Name: "m", Type: types.StringType}}})
	c, m := b.Cols[0], b.Cols[1]
	for turn, n := range []int{5, 64, 65, 1, 200} {
		b.Reset()
		if turn%2 == 0 {
			c.AppendConst(n)
			c.I64[0] = int64(turn)
			if turn == 4 {
				c.Nullify(0)
			}
		} else {
			for i := range n {
				c.AppendI64(int64(i))
			}
		}
		mask := make([]uint64, (n+63)>>6)
		for i := range m.Str[m.AppendN(n):] {
			m.Str[i] = "x"
			if i%3 > 0 {
				mask[i>>6] |= 1 << (i & 63)
			}
		}
		m.KeepOnly(mask)
		b.RowsDone(n)
		got := b.Finish()
		for r := range got.N {
			if want := int64(turn); turn%2 == 0 && turn < 4 && (got.Cols[0].IsNull(r) || got.Cols[0].I64[got.Cols[0].Idx(r)] != want) || turn == 4 && !got.Cols[0].IsNull(r) {
				t.Fatalf("turn %d: row %d of a constant column is %v", turn, r, got.Cols[0].Datum(r))
			}
			if turn%2 == 1 && (got.Cols[0].Const || got.Cols[0].IsNull(r) || got.Cols[0].I64[r] != int64(r)) {
				t.Fatalf("turn %d: row %d after a constant column is %v", turn, r, got.Cols[0].Datum(r))
			}
			if got.Cols[1].IsNull(r) != (r%3 == 0) {
				t.Fatalf("turn %d: row %d, masked, is %v", turn, r, got.Cols[1].Datum(r))
			}
		}
		for range 70 { // values behind a mask are not NULL
			m.AppendStr("y")
		}
		for r := n; r < n+70; r++ {
			m.Valid = m.valid
			if m.IsNull(r) {
				t.Fatalf("turn %d: value %d, behind %d with a mask, is NULL", turn, r, n)
			}
		}
	}
}
