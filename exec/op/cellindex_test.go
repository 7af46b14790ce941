package op

import (
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// Very many windows that are open together keep the list of their groups in state: memory has a bounded number of keys,
// and every window still finds all of its groups when it fires.
func TestManyOpenWindows(t *testing.T) {
	const slices, keys = 600, 20
	s, _ := benchBatches(1)
	big, ts := s.Columns[1].Type, s.Columns[2].Type
	out := types.NewSchema(s.Columns[0], types.Column{Name: "n", Type: big}, types.Column{Name: "s", Type: big}, types.Column{Name: "m", Type: big},
		types.Column{Name: "ws", Type: ts}, types.Column{Name: "we", Type: ts}, types.Column{Name: "wt", Type: ts})
	cases := []struct {
		window Window
		rows   int // of the result
	}{
		{Window{Time: 2, Size: 1000}, slices * keys},
		{Window{Kind: Hop, Time: 2, Size: 3000, Slide: 1000}, (slices + 2) * keys},
		{Window{Kind: Cumulate, Time: 2, Size: 3000, Slide: 1000}, slices * keys},
	}
	for _, c := range cases[:short.Or(3, 1)] {
		o := openOp(t, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(big), Window: c.window, Output: out}), newSubtask(t, 256<<10)).(*windowAggregate)
		b := batch.NewBuilder(s)
		for i := range slices * keys {
			b.Cols[0].AppendI64(int64(i / slices))
			b.Cols[1].AppendI64(1)
			b.Cols[2].AppendI64(int64(i%slices) * 1_000_000)
			b.RowDone()
			if b.Full() || i == slices*keys-1 {
				processOver(t, o, nil, b.Finish())
				b.Reset()
			}
		}
		if len(o.index.entries) > cellPending || o.index.table.Len() < slices {
			t.Errorf("%v: the index has %d keys in memory and %d chunks in state", c.window, len(o.index.entries), o.index.table.Len())
		}
		got := &countRows{}
		advanceOver(t, o, got, int64(exec.MaxWatermark))
		if got.rows != c.rows {
			t.Errorf("%v: %d rows, want %d", c.window, got.rows, c.rows)
		}
		for _, table := range []checkpoint.Table{o.index.table, o.core.groups} {
			if n := table.Len(); n != 0 {
				t.Errorf("%v: %d rows of state are left", c.window, n)
			}
		}
	}
}
