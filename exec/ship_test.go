package exec

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

var wideSchema = types.NewSchema(
	types.Column{Name: "i", Type: types.BigIntType}, types.Column{Name: "f", Type: types.DoubleType},
	types.Column{Name: "b", Type: types.BoolType}, types.Column{Name: "s", Type: types.StringType},
	types.Column{Name: "d", Type: types.DecimalOf(38, 2)}, types.Column{Name: "c", Type: types.BigIntType})

// randomBatch has NULLs, kinds, a selection and a constant column, each now and then.
func randomBatch(r *rand.Rand, n int) *batch.Batch {
	b := batch.NewBuilder(wideSchema)
	kinds := r.IntN(3) == 0
	nulls := r.IntN(2) * 30
	for range n {
		for _, c := range b.Cols {
			if r.IntN(100) < nulls {
				c.AppendNull()
				continue
			}
			switch c.Type.Phys() {
			case types.PhysI64:
				c.AppendI64(int64(r.IntN(50)))
			case types.PhysF64:
				c.AppendF64(r.Float64())
			case types.PhysBool:
				c.AppendBool(r.IntN(2) == 0)
			case types.PhysStr:
				c.AppendStr(fmt.Sprint("s", r.IntN(1000)))
			case types.PhysI128:
				c.AppendI128(types.Int128{Hi: r.Int64(), Lo: r.Uint64()})
			}
		}
		if kinds {
			b.RowKindDone(types.RowKind(r.IntN(4)))
		} else {
			b.RowDone()
		}
	}
	out := b.Finish()
	switch r.IntN(4) {
	case 0:
		out.Cols[5] = batch.NewConst(types.BigIntType, types.IntDatum(7))
	case 1:
		out.Cols[5] = batch.NewConst(types.BigIntType, types.NullDatum)
	}
	if r.IntN(2) == 0 {
		out.Sel = []int32{}
		for i := range n {
			if r.IntN(3) > 0 {
				out.Sel = append(out.Sel, int32(i))
			}
		}
	}
	return out
}

func rowText(b *batch.Batch, r int) string {
	s := b.Kind(r).String()
	for _, v := range b.Cols {
		s += fmt.Sprintf(" %+v", v.Datum(r))
	}
	return s
}

// TestShipGathers: rows of random batches reach their targets unchanged, in order per target, hash targets own the key,
// and no batch is used after it was given back (returned batches are overwritten).
func TestShipGathers(t *testing.T) {
	for seed := range uint64(short.Or(24, 6)) {
		r := rand.New(rand.NewPCG(seed, 2))
		ship := Ship(r.IntN(3))
		n := 1
		if ship != Forward {
			n = 1 + r.IntN(5)
		}
		queue := newInbox(n)
		var to []*channel
		for i := range n {
			to = append(to, newChannel(queue, i, wideSchema, true))
		}
		keys := []int{[]int{0, 3, 4}[r.IntN(3)]}
		if r.IntN(3) == 0 {
			keys = []int{3, 0}
		}
		s := newShipper(ship, keys, to)
		enc := NewKeyEncoder(keys)
		sent, got := map[string]int{}, map[string]int{}
		drain := func() {
			for _, m := range queue.drain(nil) {
				for i := range m.rows.Len() {
					got[rowText(&m.rows.Batch, i)]++
					if ship == Hash {
						h := checkpoint.HashKey(enc.AppendKey(nil, &m.rows.Batch, i))
						if o := checkpoint.SubtaskOf(checkpoint.KeyGroup(h), n); o != m.input {
							t.Fatalf("seed %d: a row of subtask %d went to %d", seed, o, m.input)
						}
					}
				}
				if m.rows.N > batch.Size {
					t.Fatalf("seed %d: a batch of %d rows", seed, m.rows.N)
				}
				m.rows.release()
			}
		}
		for range 12 {
			b := randomBatch(r, 1+r.IntN(700))
			for i := range b.Len() {
				sent[rowText(b, b.Row(i))]++
			}
			if b.Len() > 0 {
				if err := s.Emit(b); err != nil {
					t.Fatal(err)
				}
			}
			if r.IntN(3) == 0 {
				s.flush()
			}
			drain()
		}
		s.flush()
		drain()
		if len(sent) != len(got) {
			t.Fatalf("seed %d: %d different rows, want %d", seed, len(got), len(sent))
		}
		for k, c := range sent {
			if got[k] != c {
				t.Fatalf("seed %d, %s: row %q came %d times, want %d", seed, ship, k, got[k], c)
			}
		}
	}
}

// TestShipAllocates: in steady state an exchange allocates nothing.
func TestShipAllocates(t *testing.T) {
	for _, ship := range []Ship{Forward, Hash, Rebalance} {
		run, _ := exchange(ship, 4)
		for range 20 {
			run()
		}
		if n := testing.AllocsPerRun(50, run); n > 0 {
			t.Errorf("%s: %v allocations per batch", ship, n)
		}
	}
}

// exchange is one producer whose targets give batches back at once.
func exchange(ship Ship, n int) (run func(), rows int) {
	if ship == Forward {
		n = 1
	}
	queue := newInbox(n)
	var spare []message
	var to []*channel
	for i := range n {
		to = append(to, newChannel(queue, i, wideSchema, false))
	}
	s := newShipper(ship, []int{0}, to)
	b := batch.NewBuilder(wideSchema)
	for i := range batch.Size {
		for _, c := range b.Cols {
			switch c.Type.Phys() {
			case types.PhysI64:
				c.AppendI64(int64(i * 31))
			case types.PhysF64:
				c.AppendF64(float64(i))
			case types.PhysBool:
				c.AppendBool(i%2 == 0)
			case types.PhysStr:
				c.AppendStr("some string")
			case types.PhysI128:
				c.AppendI128(types.I128(int64(i)))
			}
		}
		b.RowDone()
	}
	in := b.Finish()
	return func() {
		if err := s.Emit(in); err != nil {
			panic(err)
		}
		spare = queue.drain(spare)
		for _, m := range spare {
			m.rows.release()
		}
	}, in.N
}

// BenchmarkExchange is the cost of an exchange per row of six columns.
func BenchmarkExchange(b *testing.B) {
	for _, ship := range []Ship{Forward, Hash, Rebalance} {
		for _, n := range []int{2, 4, 16} {
			if ship == Forward && n > 2 {
				continue
			}
			b.Run(fmt.Sprintf("%s/%d", ship, n), func(b *testing.B) {
				run, rows := exchange(ship, n)
				b.ReportAllocs()
				for b.Loop() {
					run()
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			})
		}
	}
}
