package op

import (
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: operators of event time allocate nothing for a row once they have their memory. Method: turns of some batches and a
// watermark; what is left over is for slices of time and for state that grows.
func TestTimedOperatorsAllocateNothing(t *testing.T) {
	s, _ := benchBatches(1)
	typ := s.Columns[1].Type
	frame := expr.Frame{Rows: true, Lo: -10}
	call := expr.OverCall{Func: expr.OverAgg, Default: -1, Frame: frame, Agg: expr.Agg{Kind: expr.AggSum, Arg: 1, Filter: -1, ArgType: typ, Type: typ, Text: "SUM(v)"}}
	for name, make := range map[string]func() exec.Operator{
		"match":     NewMatch(matchBench(t, s)),
		"time sort": NewTimeSort(TimeSortSpec{Input: s, Time: 2, Keys: []SortKey{{Col: 1}}}),
		"over": NewOver(OverSpec{Input: s, Partition: []int{0}, Order: SortKey{Col: 2}, By: OverByRowtime, Calls: []expr.OverCall{call}, Frame: frame,
			Output: concat(s, types.NewSchema(types.Column{Name: "s", Type: typ}))}),
		"interval join": NewIntervalJoin(IntervalJoinSpec{Left: s, Right: s, LeftKeys: []int{0}, RightKeys: []int{0}, Lower: -5000, Upper: 0, LeftTime: 2, RightTime: 2, Output: concat(s, s)}),
	} {
		t.Run(name, func(t *testing.T) {
			const turnBatches = 8
			_, bs := benchBatches(2000)
			e := &endless{bs: bs[:turnBatches]}
			o := openOp(t, make, newSubtask(t, 1<<28))
			out := &countRows{}
			turn := func() {
				var w exec.Watermark
				for range turnBatches {
					var b *batch.Batch
					b, w = e.next()
					if err := o.Process(0, b, out); err != nil {
						t.Fatal(err)
					}
				}
				if err := o.OnWatermark(w, out); err != nil {
					t.Fatal(err)
				}
			}
			for range 4 {
				turn()
			}
			if n := testing.AllocsPerRun(4, turn) / (turnBatches * batch.Size); n > 0.02 {
				t.Errorf("%.3f allocations a row", n)
			}
		})
	}
}
