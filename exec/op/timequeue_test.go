package op

import (
	"math/rand"
	"slices"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// visitRows is an emitter that calls it for every row.
type visitRows func(b *batch.Batch, r int)

func (f visitRows) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		f(b, b.Row(i))
	}
	return nil
}

// Goal: rows leave in the order of time, sort keys and arrival, however many share a time. Method: batches of random rows,
// some times with more rows than a batch, against a stable sort; with a restart, and with state on disk.
func TestTimeSortAgainstSort(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "v", Type: types.BigIntType}, types.Column{Name: "n", Type: types.BigIntType},
		types.Column{Name: "ts", Type: types.TimestampOf(types.Timestamp, 3)})
	type row struct{ v, n, at int64 }
	for seed := range int64(6) {
		rnd := rand.New(rand.NewSource(seed))
		budget := int64(64 << 20)
		if seed%2 == 1 {
			budget = 1 << 14
		}
		st := newStateHarness(t, budget)
		spec := TimeSortSpec{Input: s, Time: 2, Keys: []SortKey{{Col: 0, Desc: true}}}
		if seed%3 == 2 {
			spec.Keys = nil
		}
		o := openOp(t, NewTimeSort(spec), st)
		var all, got []row
		out := visitRows(func(b *batch.Batch, r int) {
			got = append(got, row{b.Cols[0].I64[r], b.Cols[1].I64[r], b.Cols[2].I64[r] / 1000})
		})
		for round := range 8 {
			bl := batch.NewBuilder(s)
			for range batch.Size {
				at := int64(round*10 + rnd.Intn(10))
				if rnd.Intn(2) == 0 {
					at = 0 // rounds 0 to 2 have more of one time than a batch, and so on
				}
				r := row{int64(rnd.Intn(50)), int64(len(all)), max(at, int64(round/3*30))}
				all = append(all, r)
				bl.Cols[0].AppendI64(r.v)
				bl.Cols[1].AppendI64(r.n)
				bl.Cols[2].AppendI64(r.at * 1000)
				bl.RowDone()
			}
			if err := o.Process(0, bl.Finish(), out); err != nil {
				t.Fatal(err)
			}
			if round == 5 {
				if err := o.OnWatermark(55, out); err != nil {
					t.Fatal(err)
				}
				left, err := o.OnBarrier(checkpoint.Barrier{}, out)
				if err != nil {
					t.Fatal(err)
				}
				st.seal()
				st.restart()
				st.restored = [][]byte{left}
				o = openOp(t, NewTimeSort(spec), st)
			}
		}
		if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
			t.Fatal(err)
		}
		want := all
		slices.SortStableFunc(want, func(a, b row) int {
			if a.at != b.at || len(spec.Keys) == 0 {
				return compare(a.at, b.at)
			}
			return compare(b.v, a.v)
		})
		if !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d rows, want %d, or in another order", seed, len(got), len(want))
		}
	}
}
