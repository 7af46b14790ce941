package op

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Keys of words are equal exactly when the encoded keys of the same columns are, for every type, NULL, and more columns than a
// byte of bits tells NULL of.
func TestKeyWords(t *testing.T) {
	for variant := range 4 {
		copies, celled := 1+variant&1, variant < 2
		s := &types.Schema{}
		var cols []int
		for i := range copies {
			for k, typ := range []types.Type{types.BigIntType, types.StringType, types.DoubleType, types.BoolType, types.DecimalOf(30, 2)} {
				cols = append(cols, len(s.Columns))
				s.Columns = append(s.Columns, types.Column{Name: fmt.Sprint(i, k), Type: typ})
			}
		}
		rnd := rand.New(rand.NewPCG(1, uint64(variant)))
		words := newKeyWords(s, cols, celled)
		table := wordTable{stride: words.stride, size: 16, runs: variant == 0, work: &wordWork{}}
		enc := exec.NewKeyEncoder(cols)
		var keys checkpoint.Keys
		rows := map[string]int32{}
		for turn := range 20 {
			b := batch.NewBuilder(s)
			for range 200 {
				for _, c := range b.Cols {
					if rnd.IntN(4) == 0 {
						c.AppendNull()
						continue
					}
					switch x := rnd.Int64N(2); c.Type.Phys() {
					case types.PhysI64:
						c.AppendI64(x)
					case types.PhysStr:
						c.AppendStr(strings.Repeat("x", int(x)))
					case types.PhysF64:
						c.AppendF64(math.Copysign(0, float64(x)-1))
					case types.PhysBool:
						c.AppendBool(x > 0)
					case types.PhysI128:
						c.AppendI128(types.Int128{Hi: x})
					}
				}
				b.RowDone()
			}
			in := *b.Finish()
			var cells []int64
			if celled {
				cells = make([]int64, in.N)
			}
			if turn%2 > 0 {
				in.Sel = []int32{3, 5, 7, 150}
				cells = cells[:min(4, len(cells))]
			}
			for i := range cells {
				cells[i] = rnd.Int64N(2) - 1
			}
			at := make([]int32, in.Len())
			table.find(words.encode(&in, cells), at, nil)
			enc.Encode(&in, &keys)
			for i := range at {
				key := fmt.Sprint(keys.Key(i))
				if celled {
					key = fmt.Sprint(cells[i], key)
				}
				if k, ok := rows[key]; ok && k != at[i] || !ok && int(at[i]) != len(rows) {
					t.Fatalf("row %d is %d, was %d (%t)", i, at[i], k, ok)
				}
				rows[key] = at[i]
			}
		}
		if table.n != len(rows) {
			t.Errorf("%d keys, want %d", table.n, len(rows))
		}
	}
}

// A local aggregate in the steady state allocates nothing for a row, whatever the key.
func TestLocalAggregateAllocations(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "day", Type: types.StringType}, timedSchema.Columns[1])
	b := batch.NewBuilder(s)
	for i := range int64(batch.Size) {
		b.Cols[0].AppendI64(i % 300)
		b.Cols[1].AppendStr(fmt.Sprint("day ", i%7))
		b.Cols[2].AppendI64(i)
		b.RowDone()
	}
	in, out := b.Finish(), &countRows{}
	aggs := benchAggs(types.BigIntType)
	aggs[1].Arg, aggs[2].Arg = 0, 0
	o := openOp(t, NewLocalAggregate(LocalAggSpec{Input: s, Keys: []int{0, 1}, Aggs: aggs, Window: &Window{Time: 2, Size: 10_000}, Output: partialSchema(s)}), newSubtask(t, 1<<20))
	allocatesNothing(t, o, in, out)
}

// Window aggregates in the steady state allocate nothing for a row.
func TestWindowAggregateAllocations(t *testing.T) {
	numbers, _ := benchBatches(benchWindowKeys)
	texts := types.NewSchema(types.Column{Name: "k", Type: types.StringType}, numbers.Columns[1], numbers.Columns[2])
	windowAllocations(t, numbers)
	windowAllocations(t, texts)
}

// textKeys are bs with the key as a text.
func textKeys(bs []*batch.Batch) (out []*batch.Batch) {
	for _, b := range bs {
		k := &batch.Vec{Type: types.StringType}
		for _, x := range b.Cols[0].I64 {
			k.Str = append(k.Str, fmt.Sprint("key ", x))
		}
		c := *b
		c.Cols = append([]*batch.Vec{k}, b.Cols[1:]...)
		out = append(out, &c)
	}
	return out
}

func windowAllocations(t *testing.T, s *types.Schema) {
	t.Helper()
	ts := s.Columns[2].Type
	output := concat(types.NewSchema(s.Columns[0], s.Columns[1], s.Columns[1], s.Columns[1]), types.NewSchema(types.Column{Name: "ws", Type: ts}, types.Column{Name: "we", Type: ts}, types.Column{Name: "wt", Type: ts}))
	for _, w := range []Window{{Time: 2, Size: 10_000}, {Kind: Hop, Time: 2, Size: 10_000, Slide: 2000}, {Kind: Cumulate, Time: 2, Size: 10_000, Slide: 2000}, {Kind: Session, Time: 2, Size: 10_000}} {
		o := openOp(t, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(s.Columns[1].Type), Window: w, Output: output}), newSubtask(t, 1<<30))
		_, bs := benchBatches(benchWindowKeys)
		if s.Columns[0].Type.Phys() == types.PhysStr {
			if w.Kind == Session {
				continue // whose keys are encoded
			}
			bs = textKeys(bs)
		}
		in, out := &endless{bs: bs}, &countRows{}
		turn := func() {
			for range benchTurn {
				b, wm := in.next()
				if err := o.Process(0, b, out); err != nil {
					t.Fatal(err)
				}
				if err := o.OnWatermark(wm, out); err != nil {
					t.Fatal(err)
				}
			}
		}
		for range 2 {
			turn()
		}
		if n := testing.AllocsPerRun(2, turn) / (benchTurn * batch.Size); n > 0.01 {
			t.Errorf("kind %d, keys %s: %.3f allocations a row", w.Kind, s.Columns[0].Type, n)
		}
	}
}

// allocatesNothing asserts that an operator in the steady state allocates nothing for a row of in, with a barrier behind every 20
// batches.
func allocatesNothing(t *testing.T, o exec.Operator, in *batch.Batch, out exec.Emitter) {
	t.Helper()
	turn := func() {
		for range 20 {
			if err := o.Process(0, in, out); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := o.OnBarrier(checkpoint.Barrier{}, out); err != nil {
			t.Fatal(err)
		}
	}
	turn()
	if n := testing.AllocsPerRun(5, turn) / (20 * batch.Size); n > 0.01 {
		t.Errorf("%.3f allocations a row", n)
	}
}
