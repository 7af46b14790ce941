package exec

import (
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
)

// FuzzDecodeKey: a damaged key is an error, whatever it holds; what is left behind its columns is a part of it.
func FuzzDecodeKey(f *testing.F) {
	s := wideSchema
	cols := make([]int, len(s.Columns))
	for i := range cols {
		cols[i] = i
	}
	for seed := range uint64(3) {
		b := randomBatch(rand.New(rand.NewPCG(seed, 1)), 4)
		f.Add(NewKeyEncoder(cols).AppendKey(nil, b, b.Row(0)))
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, key []byte) {
		out := batch.NewBuilder(s)
		rest, err := DecodeKey(key, out.Cols)
		if err == nil && len(rest) > len(key) {
			t.Fatalf("%d bytes are left of %d", len(rest), len(key))
		}
	})
}
