package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
	"github.com/streamsql/streamsql/tests/short"
)

// Goal: in two phases an aggregation gives what it gives in one, row by row at every watermark, late rows included. Method:
// local halves with watermarks of their own before one global half, against the models of the one-phase tests.

// twoPhases is a global aggregate fed by local ones.
type twoPhases struct {
	t      *testing.T
	spec   LocalAggSpec
	locals []exec.Operator
	wms    []exec.Watermark
	global *timedOp
	rows   int // sent over the exchange
}

// Emit implements exec.Emitter: it is the exchange.
func (p *twoPhases) Emit(b *batch.Batch) error {
	p.rows += b.Len()
	return p.global.op.Process(0, b, &p.global.out)
}

func newTwoPhases(t *testing.T, spec LocalAggSpec, n int, global *timedOp) *twoPhases {
	p := &twoPhases{t: t, spec: spec, global: global}
	for range n {
		p.locals = append(p.locals, nil)
		p.wms = append(p.wms, exec.NoWatermark)
	}
	p.openLocals()
	return p
}

// openLocals starts the local halves anew, as a restore does: without any state but the watermark.
func (p *twoPhases) openLocals() {
	for i := range p.locals {
		p.locals[i] = openOp(p.t, NewLocalAggregate(p.spec), newSubtask(p.t, 1<<20))
		p.must(p.locals[i].OnWatermark(p.wms[i], p))
	}
}

func (p *twoPhases) must(err error) {
	p.t.Helper()
	if err != nil {
		p.t.Fatal(err)
	}
}

// restart takes a checkpoint and goes on from it.
func (p *twoPhases) restart() {
	for _, l := range p.locals {
		_, err := l.OnBarrier(checkpoint.Barrier{}, p)
		p.must(err)
	}
	restartKeeping(p.t, p.global)
	p.openLocals()
}

// restartKeeping is o.restart, with what leaves at the barrier.
func restartKeeping(t *testing.T, o *timedOp) {
	if _, err := o.op.OnBarrier(checkpoint.Barrier{}, &o.out); err != nil {
		t.Fatal(err)
	}
	rows := o.out.rows
	o.out.rows = nil
	o.restart()
	o.out.rows = rows
}

// watermark moves event time of local i, and of the global half to the lowest.
func (p *twoPhases) watermark(i int, w exec.Watermark) exec.Watermark {
	p.must(p.locals[i].OnWatermark(w, p))
	p.wms[i] = w
	low := slices.Min(p.wms)
	p.must(p.global.op.OnWatermark(low, &p.global.out))
	return low
}

func partialSchema(in *types.Schema) *types.Schema {
	return types.NewSchema(append(slices.Clone(in.Columns), types.Column{Name: "$partial", Type: PartialType})...)
}

func TestLocalWindowAggregateModel(t *testing.T) {
	for _, w := range []Window{
		{Kind: Tumble, Size: 50}, {Kind: Tumble, Size: 30, Offset: 7}, {Kind: Hop, Size: 60, Slide: 20},
		{Kind: Hop, Size: 50, Slide: 20, Offset: -3}, {Kind: Hop, Size: 20, Slide: 30},
		{Kind: Cumulate, Size: 60, Slide: 10}, {Kind: Cumulate, Size: 40, Slide: 40, Offset: 5},
	} {
		for seed := range uint64(short.Or(3, 1)) {
			t.Run(fmt.Sprintf("%d/%d/%d/%d", w.Kind, w.Size, w.Offset, seed), func(t *testing.T) { runLocalWindowModel(t, w, seed) })
		}
	}
}

func runLocalWindowModel(t *testing.T, w Window, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, uint64(w.Size)))
	w.Time = 1
	aggs := modelAggs(false)
	out := &types.Schema{Columns: []types.Column{timedSchema.Columns[0]}}
	for range aggs {
		out.Columns = append(out.Columns, timedSchema.Columns[2])
	}
	for range 3 {
		out.Columns = append(out.Columns, timedSchema.Columns[1])
	}
	spec := LocalAggSpec{Input: timedSchema, Keys: []int{0}, Aggs: aggs, Window: &w, Output: partialSchema(timedSchema)}
	global := newTimedOp(t, NewWindowAggregate(WindowAggSpec{Input: spec.Output, Keys: []int{0}, Aggs: aggs, Window: w, Output: out, Partial: true}), 1<<20)
	p := newTwoPhases(t, spec, 1+rnd.IntN(3), global)
	m := &windowModel{w: w, wm: -1 << 62}
	now := make([]int64, len(p.locals)) // event time of each local
	fed := 0
	for step := range 60 {
		i := rnd.IntN(len(p.locals))
		b := batch.NewBuilder(timedSchema)
		for range 1 + rnd.IntN(12) {
			k, ts, v := string(rune('a'+rnd.IntN(3))), now[i]-40+rnd.Int64N(80), rnd.Int64N(4)
			timedRow(t, b, fmt.Sprintf("%s@%d:%d", k, ts, v))
			m.add(k, ts, v)
			fed++
		}
		if rnd.IntN(5) == 0 { // rows passed on as they came
			p.locals[i].(*localAggregate).skip = 1
		}
		p.must(p.locals[i].Process(0, b.Finish(), p))
		switch rnd.IntN(6) {
		case 0:
			p.restart()
		case 1:
			p.must(p.locals[i].(exec.IdleHandler).OnIdle(p))
		}
		i = rnd.IntN(len(p.locals))
		now[i] += rnd.Int64N(25)
		wm := exec.Watermark(now[i] - 10)
		want := m.fire(int64(p.watermark(i, wm)))
		if step == 59 {
			for i := range p.locals {
				want = append(want, m.fire(int64(p.watermark(i, exec.MaxWatermark)))...)
			}
		}
		for i := range want {
			f := strings.Split(want[i], "|")
			f[5] = "*"
			want[i] = strings.Join(f, "|")
		}
		slices.Sort(want)
		if got := windowRows(&global.out, false); !slices.Equal(got, want) {
			t.Fatalf("step %d, watermark %d:\n got  %s\n want %s", step, wm, strings.Join(got, "  "), strings.Join(want, "  "))
		}
	}
	if n := global.sub.counters["late-dropped"].Load(); n != int64(m.late) {
		t.Errorf("%d rows counted as late, want %d", n, m.late)
	}
	if n := stateRows(t, global); n != 0 {
		t.Errorf("%d rows of state left", n)
	}
	if p.rows >= fed {
		t.Errorf("%d rows crossed the exchange, %d were read: nothing was combined", p.rows, fed)
	}
}

// TestLocalGroupAggregate: the folded changelog of two phases is that of one, whatever is combined.
func TestLocalGroupAggregate(t *testing.T) {
	for seed := range uint64(8) {
		rnd := rand.New(rand.NewPCG(seed, 3))
		aggs := append(modelAggs(false), expr.Agg{Kind: expr.AggCount, Arg: 2, ArgType: types.BigIntType, Filter: -1, Type: types.BigIntType, Text: "COUNT(v)"})
		out := &types.Schema{Columns: []types.Column{timedSchema.Columns[0]}}
		for range aggs {
			out.Columns = append(out.Columns, timedSchema.Columns[2])
		}
		mini := MiniBatch{Size: 1 + rnd.IntN(30), Latency: 10}
		spec := LocalAggSpec{Input: timedSchema, Keys: []int{0}, Aggs: aggs, Mini: mini, Output: partialSchema(timedSchema)}
		agg := GroupAggSpec{Input: spec.Output, Keys: []int{0}, Aggs: aggs, EmitUpdateBefore: true, Output: out, Mini: mini, Partial: true}
		global := newTimedOp(t, NewGroupAggregate(agg), 1<<20)
		p := newTwoPhases(t, spec, 2, global)
		agg.Input, agg.Partial = timedSchema, false
		one := newTimedOp(t, NewGroupAggregate(agg), 1<<20)
		for step := range 40 {
			b := batch.NewBuilder(timedSchema)
			for range 1 + rnd.IntN(12) {
				v := fmt.Sprint(rnd.IntN(9))
				if rnd.IntN(4) == 0 {
					v = "-"
				}
				timedRow(t, b, fmt.Sprintf("%c@1:%s", 'a'+rnd.IntN(4), v))
			}
			i := rnd.IntN(2)
			if rnd.IntN(6) == 0 {
				p.locals[i].(*localAggregate).skip = 1
			}
			p.must(p.locals[i].Process(0, b.Finish(), p))
			p.must(one.op.Process(0, b.Finish(), &one.out))
			if step%10 == 9 {
				p.restart()
				restartKeeping(t, one)
			}
		}
		got, want := map[string]int{}, map[string]int{}
		fold(t, got, kinds(global.out.rows))
		fold(t, want, kinds(one.out.rows))
		if !slices.Equal(sorted(got), sorted(want)) {
			t.Fatalf("seed %d:\n got  %v\n want %v", seed, sorted(got), sorted(want))
		}
	}
}

// kinds puts "|" behind the kinds of collected rows, as fold reads them.
func kinds(rows []string) []string {
	out := slices.Clone(rows)
	for i, r := range out {
		out[i] = strings.Replace(r, " ", "|", 1)
	}
	return out
}

// TestLocalBypass: keys that hardly repeat are passed on, and combining is tried again later.
func TestLocalBypass(t *testing.T) {
	aggs := modelAggs(false)
	w := Window{Kind: Tumble, Size: 1 << 40, Time: 1}
	l := openOp(t, NewLocalAggregate(LocalAggSpec{Input: timedSchema, Keys: []int{0}, Aggs: aggs, Window: &w, Output: partialSchema(timedSchema)}),
		newSubtask(t, 1<<20)).(*localAggregate)
	out := &countRows{}
	feed := func(rows int, key func(i int) string) (sent int) {
		before := out.rows
		for at := 0; at < rows; at += batch.Size {
			b := batch.NewBuilder(timedSchema)
			for i := range batch.Size {
				b.Cols[0].AppendStr(key(at + i))
				b.Cols[1].AppendI64(1000)
				b.Cols[2].AppendI64(int64(i))
				b.RowDone()
			}
			if err := l.Process(0, b.Finish(), out); err != nil {
				t.Fatal(err)
			}
		}
		return out.rows - before
	}
	feed(localRows, func(i int) string { return fmt.Sprint("unique", i) })
	if l.skip == 0 || l.held.n != 0 {
		t.Fatalf("combining goes on without result: %d rows to pass on, %d held", l.skip, l.held.n)
	}
	skipped := l.skip
	if n := feed(skipped, func(int) string { return "same" }); n != skipped {
		t.Errorf("%d rows of %d were passed on", n, skipped)
	}
	if n := feed(4*localRows, func(int) string { return "same" }); n != 0 || l.held.n != 1 {
		t.Errorf("%d rows were sent, %d are held; one would do", n, l.held.n)
	}
}

func BenchmarkLocalAggregate(b *testing.B) {
	for _, n := range []int{10, 1000, 1_000_000} {
		b.Run(fmt.Sprint("keys=", n), func(b *testing.B) {
			s, bs := benchBatches(n)
			w := Window{Time: 2, Size: 60_000}
			process(b, openOp(b, NewLocalAggregate(LocalAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(s.Columns[1].Type), Window: &w,
				Output: partialSchema(s)}), newSubtask(b, 1<<20)), bs)
		})
	}
}
