package op

// Goal: rows without texts, which have one size and are read and written many at a time, are joined and encoded as any others. Method: random
// inserts of many keys, one of them with very many rows, against a naive join by key; rows of all types without texts through the codec.

import (
	"fmt"
	"math/rand"
	"reflect"
	"testing"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

func TestInsertJoinNumbers(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType}, types.Column{Name: "w", Type: types.BigIntType})
	for seed := range int64(short.Or(8, 4)) {
		rnd := rand.New(rand.NewSource(seed))
		side := JoinInput{Schema: s, Keys: []int{0}, InsertOnly: true}
		spec := JoinSpec{Kind: InnerJoin, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s)}
		budget := int64(64 << 20)
		if seed%3 == 0 {
			budget = 1 << 16 // on disk
		}
		if seed%2 == 1 {
			spec.Mini = MiniBatch{Size: []int{700, 3000, 1 << 20, 1 << 20}[seed/2]}
		}
		h := newStateHarness(t, budget)
		o := openOp(t, NewJoin(spec), h)
		keys := int64(2 * joinLogSample) // so many that roots get room ahead
		var model [2]map[int64][]string
		model[0], model[1] = map[int64][]string{}, map[int64][]string{}
		got, want := map[string]int{}, map[string]int{}
		for round := range 16 {
			if round == 9 {
				fold(t, got, atBarrier(t, o).take())
				h.seal()
				h.restart()
				o = openOp(t, NewJoin(spec), h)
			}
			port, b := rnd.Intn(2), batch.NewBuilder(s)
			hot := rnd.Intn(3) == 0
			for range 1 + rnd.Intn(batch.Size) {
				k, v := rnd.Int63n(keys), rnd.Int63n(1000)
				if hot && port == 1 && rnd.Intn(2) == 0 {
					k = 7 // so many that they do not fit among those gathered at once
				}
				b.Cols[0].AppendI64(k)
				b.Cols[1].AppendI64(v)
				text := fmt.Sprintf("%d|%d|NULL", k, v)
				if rnd.Intn(4) == 0 {
					b.Cols[2].AppendNull()
				} else {
					b.Cols[2].AppendI64(-v)
					text = fmt.Sprintf("%d|%d|%d", k, v, -v)
				}
				b.RowDone()
				for _, other := range model[1-port][k] {
					if port == 0 {
						want[text+"|"+other]++
					} else {
						want[other+"|"+text]++
					}
				}
				model[port][k] = append(model[port][k], text)
			}
			out := &rowCollector{}
			if err := o.Process(port, b.Finish(), out); err != nil {
				t.Fatal(err)
			}
			fold(t, got, out.take())
		}
		fold(t, got, atBarrier(t, o).take())
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d: %d different pairs, want %d", seed, len(got), len(want))
		}
		if len(want) < 1000 {
			t.Fatalf("seed %d: %d pairs show nothing", seed, len(want))
		}
	}
}

func TestRowCodecFixed(t *testing.T) {
	all := types.NewSchema()
	for _, c := range codecTestSchema().Columns {
		if c.Type.Phys() != types.PhysStr {
			all.Columns = append(all.Columns, c)
		}
	}
	wide := types.NewSchema(all.Columns...)
	for range 3 { // more than eight columns
		wide.Columns = append(wide.Columns, all.Columns...)
	}
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		s := all
		if seed%2 == 1 {
			s = wide
		}
		b := codecBatch(rnd, s, 1+rnd.Intn(150), rnd.Intn(4))
		if rnd.Intn(2) == 0 { // a constant column, and not all rows
			b.Cols[0] = batch.NewConst(b.Cols[0].Type, types.Datum{I64: 7, IsNull: rnd.Intn(2) == 0})
			b.Sel = []int32{0}
			for r := 1; r < b.N; r++ {
				if rnd.Intn(2) == 0 {
					b.Sel = append(b.Sel, int32(r))
				}
			}
		}
		c, out := newShortCodec(s, nil), batch.NewBuilder(s)
		if !c.fixed() {
			t.Fatal("rows without texts have a length")
		}
		var e encodedRows
		var want, got rowCollector
		for range 2 { // memory is used again, rows are added behind others
			c.encode(b, &e)
			var chunks [][]byte
			for rest := e.buf; len(rest) > 0; {
				n := c.head * min(1+rnd.Intn(20), len(rest)/c.head)
				chunks, rest = append(chunks, rest[:n]), rest[n:]
			}
			c.decodeFixed(chunks, b.Len(), out.Cols)
			out.RowsDone(b.Len())
			_ = want.Emit(b)
		}
		_ = got.Emit(out.Finish())
		if !reflect.DeepEqual(got.rows, want.rows) {
			t.Fatalf("seed %d:\n got %v\nwant %v", seed, got.rows, want.rows)
		}
	}
}
