package op

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rankBatches are batches of rankInput with n partitions. With replace every row but the first of an id is a -U of the
// last one and a +U of the next.
func rankBatches(n int, replace bool) []*batch.Batch {
	r := rand.New(rand.NewPCG(1, 2))
	var bs []*batch.Batch
	last := map[int]int64{}
	for range 64 {
		bl := batch.NewBuilder(rankInput)
		add := func(id int, v int64, k types.RowKind) {
			bl.Cols[0].AppendStr(fmt.Sprint("k", id%n))
			bl.Cols[1].AppendI64(v)
			bl.Cols[2].AppendI64(int64(id))
			bl.Cols[3].AppendI64(0)
			bl.RowKindDone(k)
		}
		for bl.Len() < batch.Size {
			id, v := r.IntN(max(20*n, 20_000)), r.Int64N(1<<30)
			if old, ok := last[id]; ok && replace {
				add(id, old, types.UpdateBefore)
				add(id, v, types.UpdateAfter)
			} else {
				add(id, v, types.Insert)
			}
			last[id] = v
		}
		bs = append(bs, bl.Finish())
	}
	return bs
}

// BenchmarkRank is a Top-N by an integer column.
func BenchmarkRank(b *testing.B) {
	for _, c := range []struct {
		name     string
		strategy RankStrategy
		n        int // partitions
		to       int64
		number   bool
	}{
		{"append/top1", RankAppend, 10_000, 1, false}, {"append/top10", RankAppend, 1000, 10, false}, {"append/top10/place", RankAppend, 1000, 10, true},
		{"append/top10000", RankAppend, 1, 10_000, false},
		{"retract/top10", RankRetract, 1000, 10, false}, {"retract/top10/place", RankRetract, 1000, 10, true}, {"retract/top1000", RankRetract, 1, 1000, false},
	} {
		b.Run(c.name, func(b *testing.B) {
			bs := rankBatches(c.n, c.strategy == RankRetract)
			spec := rankSpec(c.strategy, 1, c.to, c.number)
			o := openOp(b, NewRank(spec), newSubtask(b, 256<<20))
			out := &countRows{}
			b.ReportAllocs()
			for i := range b.N {
				if i%len(bs) == 0 && c.strategy == RankRetract { // the changes fit a fresh state only
					b.StopTimer()
					o = openOp(b, NewRank(spec), newSubtask(b, 256<<20))
					b.StartTimer()
				}
				if err := o.Process(0, bs[i%len(bs)], out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch.Size), "ns/row")
		})
	}
}

// BenchmarkDedup keeps the first or the last row of a hundred thousand keys.
func BenchmarkDedup(b *testing.B) {
	for _, c := range []struct {
		name string
		spec DedupSpec
	}{
		{"first/proctime", DedupSpec{Time: -1}}, {"last/proctime", DedupSpec{Time: -1, Last: true, EmitUpdateBefore: true}},
		{"first/rowtime", DedupSpec{Time: 2}}, {"last/rowtime", DedupSpec{Time: 2, Last: true, EmitUpdateBefore: true}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, bs := benchBatches(100_000)
			c.spec.Input, c.spec.Key = s, []int{0}
			process(b, openOp(b, NewDedup(c.spec), newSubtask(b, 256<<20)), bs)
		})
	}
}

// BenchmarkTimeSort sorts rows that come in order of event time, with a watermark a batch behind.
func BenchmarkTimeSort(b *testing.B) {
	s, bs := benchBatches(100_000)
	o := openOp(b, NewTimeSort(TimeSortSpec{Input: s, Time: 2}), newSubtask(b, 256<<20))
	out := &countRows{}
	b.ReportAllocs()
	for i := range b.N {
		if i%len(bs) == 0 {
			b.StopTimer()
			o = openOp(b, NewTimeSort(TimeSortSpec{Input: s, Time: 2}), newSubtask(b, 256<<20))
			b.StartTimer()
		}
		if err := o.Process(0, bs[i%len(bs)], out); err != nil {
			b.Fatal(err)
		}
		if err := o.OnWatermark(exec.Watermark(i%len(bs)*batch.Size*1000), out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch.Size), "ns/row")
}
