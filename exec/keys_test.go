package exec

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// The keys of a batch are those of its rows one by one, whatever way the columns are encoded.
func TestKeyEncoder(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "a", Type: types.BigIntType}, types.Column{Name: "b", Type: types.BigIntType},
		types.Column{Name: "c", Type: types.StringType}, types.Column{Name: "d", Type: types.BigIntType},
		types.Column{Name: "e", Type: types.DoubleType})
	rnd := rand.New(rand.NewPCG(3, 4))
	for turn := range 50 {
		b := batch.NewBuilder(s)
		for range 100 {
			b.Cols[0].AppendI64(rnd.Int64N(2))
			b.Cols[1].AppendI64(rnd.Int64N(2) - 1)
			b.Cols[2].AppendStr([]string{"", "x"}[rnd.IntN(2)])
			if turn%2 == 0 && rnd.IntN(3) == 0 {
				b.Cols[3].AppendNull()
			} else {
				b.Cols[3].AppendI64(rnd.Int64N(2))
			}
			b.Cols[4].AppendF64(rnd.NormFloat64())
			b.RowDone()
		}
		in := *b.Finish()
		if turn%3 == 1 {
			in.Sel = []int32{0, 7, 8, 99}
		}
		if turn%5 == 1 {
			in.Cols = slices.Clone(in.Cols)
			in.Cols[1] = batch.NewConst(types.BigIntType, types.IntDatum(5))
		}
		for _, cols := range [][]int{{}, {0}, {1}, {0, 1}, {1, 0, 3}, {0, 2}, {3}, {2}, {4}, {0, 1, 4}, {0, 1, 4, 0}} {
			e := NewKeyEncoder(cols)
			var keys checkpoint.Keys
			e.Encode(&in, &keys)
			var spare checkpoint.Keys
			if !slices.Equal(e.Hashes(&in, &spare), keys.Hashes) {
				t.Fatalf("columns %v: hashes alone differ from those of the keys", cols)
			}
			if keys.Len() != in.Len() {
				t.Fatalf("%d keys of %d rows", keys.Len(), in.Len())
			}
			for i := range in.Len() {
				want := e.AppendKey(nil, &in, in.Row(i))
				if string(keys.Key(i)) != string(want) || keys.Hashes[i] != checkpoint.HashKey(want) {
					t.Fatalf("columns %v, row %d: %x with hash %x, want %x", cols, i, keys.Key(i), keys.Hashes[i], want)
				}
			}
		}
	}
}
