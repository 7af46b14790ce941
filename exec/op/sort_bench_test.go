package op

import (
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/types"
)

// BenchmarkSort orders 131072 rows by an integer.
func BenchmarkSort(b *testing.B) {
	for _, c := range []struct {
		name string
		spec SortSpec
	}{{"all", SortSpec{Limit: -1}}, {"limit", SortSpec{Limit: 100}}, {"updates", SortSpec{Limit: -1, InputMode: types.Retract}}} {
		b.Run(c.name, func(b *testing.B) {
			s, bs := benchBatches(100_000)
			c.spec.Input, c.spec.Keys = s, []SortKey{{Col: 0}}
			b.ReportAllocs()
			rows := 0
			for range b.N {
				b.StopTimer()
				o, out := openOp(b, NewSort(c.spec), newSubtask(b, 256<<20)), &countRows{}
				b.StartTimer()
				for _, x := range bs {
					if err := o.Process(0, x, out); err != nil {
						b.Fatal(err)
					}
					rows += x.Len()
				}
				if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(rows), "ns/row")
		})
	}
}
