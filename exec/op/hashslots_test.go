package op

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: a table of words finds what a map does, as it grows into new memory, is emptied, has fewer slots for it and grows into
// memory that it has. Method: random keys, few and many in turn, found a batch at a time and looked up again.
func TestWordTableGrows(t *testing.T) {
	for stride := 1; stride <= 3; stride++ {
		rnd := rand.New(rand.NewPCG(7, uint64(stride)))
		table := wordTable{stride: stride, size: 16}
		at := make([]int32, 300)
		for turn, keys := range []int{20_000, 10, 3000, 1, 40_000, 500, 30_000} {
			table.reset()
			if turn%2 > 0 {
				table.expect(keys)
			}
			rows := map[[3]uint64]int32{}
			for range keys/100 + 1 {
				var words []uint64
				var batchKeys [][3]uint64
				for range at {
					k := [3]uint64{rnd.Uint64N(uint64(keys))}
					for i := 1; i < stride; i++ {
						k[i] = rnd.Uint64N(2)
					}
					batchKeys, words = append(batchKeys, k), append(words, k[:stride]...)
				}
				for _, i := range table.find(words, at, nil) {
					if _, ok := rows[batchKeys[i]]; ok {
						t.Fatalf("turn %d: key %v is new twice", turn, batchKeys[i])
					}
					rows[batchKeys[i]] = at[i]
				}
				again := make([]int32, len(at))
				table.lookup(words, again)
				for i, k := range batchKeys {
					if want, ok := rows[k]; !ok || at[i] != want || again[i] != want {
						t.Fatalf("turn %d: key %v is row %d, looked up %d, want %d (%t)", turn, k, at[i], again[i], want, ok)
					}
				}
			}
			if table.n != len(rows) {
				t.Fatalf("turn %d: %d rows, want %d", turn, table.n, len(rows))
			}
		}
	}
}

// Texts keep their number while they are known, those that a table has keep their text under a new one, and the others are
// forgotten.
func TestTextNumbers(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "a", Type: types.StringType}, types.Column{Name: "b", Type: types.StringType})
	keys := newKeyWords(s, []int{0, 1}, true)
	table := wordTable{stride: keys.stride, size: 16}
	rnd := rand.New(rand.NewPCG(1, 2))
	read := func() (out []string) {
		b := batch.NewBuilder(s)
		keys.decode(table.words, appendRange(nil, 0, table.n), b.Cols)
		b.RowsDone(table.n)
		rows := b.Finish()
		for i := range table.n {
			text := rows.Cols[0].Str[i] + "|" + rows.Cols[1].Str[i]
			if rows.Cols[0].IsNull(i) {
				text = "NULL" + text
			}
			out = append(out, text)
		}
		return out
	}
	for turn := range 4 {
		var want []string
		known := map[string]bool{}
		table.reset()
		for range 20 {
			b := batch.NewBuilder(s)
			for range 100 {
				x, y := fmt.Sprint("text ", turn, rnd.IntN(1500)), fmt.Sprint(rnd.IntN(3))[:rnd.IntN(2)]
				text := x + "|" + y
				if rnd.IntN(50) == 0 {
					b.Cols[0].AppendNull()
					text = "NULL|" + y
				} else {
					b.Cols[0].AppendStr(x)
				}
				b.Cols[1].AppendStr(y)
				b.RowDone()
				if !known[text] {
					known[text], want = true, append(want, text)
				}
			}
			in := b.Finish()
			at := make([]int32, in.N)
			table.find(keys.encode(in, make([]int64, in.N)), at, nil)
			if rnd.IntN(5) == 0 {
				keys.rename(func(rename func(*wordTable)) { rename(&table) })
			}
		}
		if got := read(); fmt.Sprint(got) != fmt.Sprint(want) {
			t.Fatalf("turn %d: %d rows\n got  %.300s\n want %.300s", turn, len(got), fmt.Sprint(got), fmt.Sprint(want))
		}
		keys.rename(func(rename func(*wordTable)) { rename(&table) })
		if got := read(); fmt.Sprint(got) != fmt.Sprint(want) || len(keys.ids[0].ends) > len(want)+1 {
			t.Fatalf("turn %d: %d texts are kept of %d rows", turn, len(keys.ids[0].ends)-1, len(want))
		}
	}
	table.reset()
	keys.rename(func(rename func(*wordTable)) { rename(&table) })
	if n := keys.bytes(); n != 0 {
		t.Errorf("%d bytes of texts are kept for no row", n)
	}
}
