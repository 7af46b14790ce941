package op

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// A window that closes takes its DISTINCT values out of state, and reads those of no other window.
func TestWindowDistinctDrops(t *testing.T) {
	s, _ := benchBatches(1)
	big := s.Columns[1].Type
	out := &types.Schema{Columns: []types.Column{s.Columns[0], {Name: "n", Type: big}, s.Columns[2], s.Columns[2], s.Columns[2]}}
	spec := WindowAggSpec{Input: s, Keys: []int{0}, Window: Window{Time: 2, Size: 1000}, Output: out,
		Aggs: []expr.Agg{{Kind: expr.AggCount, Arg: 1, Filter: -1, Distinct: true, ArgType: big, Type: big, Text: "COUNT(DISTINCT v)"}}}
	const windows, keys, values = 20, 30, 7
	place := newStateHarness(t, 32<<10)
	o := openOp(t, NewWindowAggregate(spec), place).(*windowAggregate)
	for v := range 2 * values { // every value twice
		b := batch.NewBuilder(s)
		for w := range windows {
			for k := range keys {
				b.Cols[0].AppendI64(int64(k))
				b.Cols[1].AppendI64(int64(v % values))
				b.Cols[2].AppendI64(int64(w) * 1_000_000)
				b.RowDone()
			}
		}
		if err := o.Process(0, b.Finish(), nil); err != nil {
			t.Fatal(err)
		}
	}
	for w := range windows {
		if w == windows/2 {
			state, err := o.OnBarrier(barrier(place.id+1), nil)
			if err != nil {
				t.Fatal(err)
			}
			place.seal()
			place.restart()
			place.restored = [][]byte{state}
			o = openOp(t, NewWindowAggregate(spec), place).(*windowAggregate)
		}
		rows := &rowCollector{}
		if err := o.OnWatermark(exec.Watermark((w+1)*1000-1), rows); err != nil {
			t.Fatal(err)
		}
		if len(rows.rows) != keys {
			t.Fatalf("%d rows of window %d", len(rows.rows), w)
		}
		for _, r := range rows.rows {
			if n := strings.Split(r, "|")[2]; n != strconv.Itoa(values) {
				t.Fatalf("window %d: %s", w, r)
			}
		}
		d := o.core.distinct[0]
		if n, want := d.table.Len(), int64((windows-1-w)*keys*values); n != want {
			t.Fatalf("%d values after window %d, want %d", n, w, want)
		}
		if n := len(d.index.cells); n != windows-1-w {
			t.Fatalf("%d windows are listed after window %d", n, w)
		}
	}
	if n := o.core.distinct[0].index.table.Len(); n != 0 {
		t.Errorf("%d chunks are left", n)
	}
}

// A row is in as many cells as in windows where values are DISTINCT: a job that has stopped does not wait for all of them.
func TestWindowStopsWithinRow(t *testing.T) {
	s, _ := benchBatches(1)
	big := s.Columns[1].Type
	out := &types.Schema{Columns: []types.Column{s.Columns[0], {Name: "n", Type: big}, s.Columns[2], s.Columns[2], s.Columns[2]}}
	spec := WindowAggSpec{Input: s, Keys: []int{0}, Window: Window{Kind: Hop, Time: 2, Size: 4 * batch.Size, Slide: 1}, Output: out,
		Aggs: []expr.Agg{{Kind: expr.AggCount, Arg: 1, Filter: -1, Distinct: true, ArgType: big, Type: big, Text: "COUNT(DISTINCT v)"}}}
	o := openOp(t, NewWindowAggregate(spec), newStateHarness(t, 1<<20)).(*windowAggregate)
	ctx, cancel := context.WithCancel(t.Context())
	o.ctx = ctx
	row := func() *batch.Batch {
		b := batch.NewBuilder(s)
		b.Cols[0].AppendI64(1)
		b.Cols[1].AppendI64(1)
		b.Cols[2].AppendI64(0)
		b.RowDone()
		return b.Finish()
	}
	if err := o.Process(0, row(), nil); err != nil {
		t.Fatal(err)
	}
	if n := len(o.index.cells); n != 4*batch.Size {
		t.Fatalf("a row is in %d cells", n)
	}
	cancel()
	if err := o.Process(0, row(), nil); !errors.Is(err, context.Canceled) {
		t.Errorf("a row after the stop: %v", err)
	}
}
