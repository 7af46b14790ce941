package op

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

type countRows struct{ rows int }

func (d *countRows) Emit(b *batch.Batch) error {
	d.rows += b.Len()
	return nil
}

// benchBatches are full batches of (k BIGINT, v BIGINT, ts TIMESTAMP(3)) with keys below n, a millisecond apart.
func benchBatches(n int) (*types.Schema, []*batch.Batch) {
	s := benchSchema()
	rnd := rand.New(rand.NewSource(1))
	var bs []*batch.Batch
	for i := range 64 {
		bl := batch.NewBuilder(s)
		for j := range batch.Size {
			bl.Cols[0].AppendI64(int64(rnd.Intn(n)))
			bl.Cols[1].AppendI64(int64(rnd.Intn(1000)))
			bl.Cols[2].AppendI64(int64(i*batch.Size+j) * 1000)
			bl.RowDone()
		}
		bs = append(bs, bl.Finish())
	}
	return s, bs
}

// benchSchema are the columns of benchBatches.
func benchSchema() *types.Schema {
	return &types.Schema{Columns: []types.Column{
		{Name: "k", Type: types.Type{Kind: types.BigInt, Nullable: true}},
		{Name: "v", Type: types.Type{Kind: types.BigInt, Nullable: true}},
		{Name: "ts", Type: types.Type{Kind: types.Timestamp, Precision: 3, Nullable: true}},
	}}
}

func benchAggs(t types.Type) []expr.Agg {
	return []expr.Agg{
		{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: t, Text: "COUNT(*)"},
		{Kind: expr.AggSum, Arg: 1, Filter: -1, ArgType: t, Type: t, Text: "SUM(v)"},
		{Kind: expr.AggMax, Arg: 1, Filter: -1, ArgType: t, Type: t, Text: "MAX(v)"},
	}
}

func process(b *testing.B, o exec.Operator, bs []*batch.Batch) {
	out := &countRows{}
	for _, x := range bs { // groups exist: the steady state is measured
		if err := o.Process(0, x, out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if err := o.Process(0, bs[i%len(bs)], out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch.Size), "ns/row")
}

// BenchmarkWindowAggregate is COUNT, SUM and MAX by an integer or text key in one-minute windows, up to the watermark.
func BenchmarkWindowAggregate(b *testing.B) {
	for _, n := range []int{1000, 100_000, -1000, -100_000} {
		b.Run(strings.Replace(fmt.Sprint(n), "-", "text/", 1), func(b *testing.B) {
			s, bs := benchBatches(max(n, -n))
			t := s.Columns[1].Type
			if n < 0 {
				s, bs = types.NewSchema(types.Column{Name: "k", Type: types.StringType}, s.Columns[1], s.Columns[2]), textKeys(bs)
			}
			out := &types.Schema{Columns: []types.Column{s.Columns[0], {Name: "n", Type: t}, {Name: "s", Type: t}, {Name: "m", Type: t},
				s.Columns[2], s.Columns[2], s.Columns[2]}}
			o := openOp(b, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Window: Window{Time: 2, Size: 60_000}, Output: out}), newSubtask(b, 256<<20))
			process(b, o, bs)
		})
	}
}

// BenchmarkWindowsDue fires a thousand windows of ten keys at once, as at the end of a bounded input.
func BenchmarkWindowsDue(b *testing.B) {
	s, bs := benchBatches(10)
	t := s.Columns[1].Type
	out := &types.Schema{Columns: []types.Column{s.Columns[0], {Name: "n", Type: t}, {Name: "s", Type: t}, {Name: "m", Type: t},
		s.Columns[2], s.Columns[2], s.Columns[2]}}
	for range b.N {
		o := openOp(b, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Window: Window{Time: 2, Size: 131}, Output: out}), newSubtask(b, 256<<20))
		d := &countRows{}
		for _, x := range bs {
			if err := o.Process(0, x, d); err != nil {
				b.Fatal(err)
			}
		}
		if err := o.OnWatermark(exec.MaxWatermark, d); err != nil {
			b.Fatal(err)
		}
		if d.rows < 10_000-100 || d.rows > 10_100 {
			b.Fatalf("%d results", d.rows)
		}
	}
}

// A local aggregate finds its row for each input row; most rows are of few groups, as Nexmark's bids are.
func BenchmarkLocalCount(b *testing.B) {
	for _, groups := range []int64{100, 1000, 10_000} {
		b.Run(fmt.Sprint(groups), func(b *testing.B) {
			s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, timedSchema.Columns[1])
			var in []*batch.Batch
			rnd := rand.New(rand.NewSource(1))
			for i := range 64 {
				x := batch.NewBuilder(s)
				for range batch.Size {
					k := rnd.Int63n(groups)
					if rnd.Intn(2) > 0 {
						k = rnd.Int63n(1 + groups/100)
					}
					x.Cols[0].AppendI64(k)
					x.Cols[1].AppendI64(int64(i) * 10_000)
					x.RowDone()
				}
				in = append(in, x.Finish())
			}
			aggs := []expr.Agg{{Kind: expr.AggCountStar, Arg: -1, Filter: -1, Type: types.BigIntType}}
			o := openOp(b, NewLocalAggregate(LocalAggSpec{Input: s, Keys: []int{0}, Aggs: aggs, Window: &Window{Time: 1, Size: 10_000}, Output: partialSchema(s)}), newSubtask(b, 1<<20))
			out := &countRows{}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if err := o.Process(0, in[i%64], out); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/batch.Size, "ns/row")
		})
	}
}
