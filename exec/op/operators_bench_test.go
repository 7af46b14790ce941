package op

import (
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Benchmarks that every operator has one of: rows of (k BIGINT, v BIGINT, ts TIMESTAMP(3)), a hundred thousand keys (in windows
// a thousand), a millisecond apart. make bench prints them beside the limits. cpu-ns/row is the processor time of the process.

const (
	benchKeys       = 100_000
	benchWindowKeys = 1000 // of operators with windows: a key has more rows than one in a window
	// benchTurn is how many batches there are between two watermarks: one each 200 ms is one each 65,536 rows at 330,000 rows a second.
	benchTurn = 32
)

// meter measures the processor time of the process and what is allocated.
type meter struct {
	cpu    time.Duration
	allocs uint64
}

func allocations() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.Mallocs
}

func startMeter(b *testing.B) meter {
	b.ResetTimer()
	return meter{cpuTime(), allocations()}
}

// report says what each of rows rows took.
func (m meter) report(b *testing.B, rows int) {
	b.ReportMetric(float64((cpuTime()-m.cpu).Nanoseconds())/float64(rows), "cpu-ns/row")
	b.ReportMetric(float64(allocations()-m.allocs)/float64(rows), "allocs/row")
	b.ReportMetric(0, "ns/op")
}

// endless gives batches whose time goes on from one to the next: the steady state of an operator by event time.
type endless struct {
	bs []*batch.Batch
	n  int
}

// next is the next batch and the watermark behind it. Only the time column of a batch that comes again is changed.
func (e *endless) next() (*batch.Batch, exec.Watermark) {
	b := e.bs[e.n%len(e.bs)]
	if e.n >= len(e.bs) {
		ts := b.Cols[2].I64
		for i := range ts {
			ts[i] += int64(len(e.bs)*batch.Size) * 1000
		}
	}
	e.n++
	return b, exec.Watermark((e.n - 1) * batch.Size)
}

// turns gives an operator, all of whose ports get the same rows, so many batches and a watermark.
func turns(b testing.TB, o exec.Operator, ports, batches int, e *endless) func() {
	out := &countRows{}
	return func() {
		var w exec.Watermark
		for range batches {
			var x *batch.Batch
			x, w = e.next()
			for p := range ports {
				if err := o.Process(p, x, out); err != nil {
					b.Fatal(err)
				}
			}
		}
		if err := o.OnWatermark(w, out); err != nil {
			b.Fatal(err)
		}
	}
}

// run measures turns of an operator; figures are for a row of any port.
func run(b *testing.B, o exec.Operator, ports int, e *endless) {
	turn := turns(b, o, ports, benchTurn, e)
	for range 2 * len(e.bs) / benchTurn {
		turn()
	}
	m := startMeter(b)
	for range b.N {
		turn()
	}
	m.report(b, b.N*benchTurn*batch.Size*ports)
}

// repeat measures an operator in the steady state over the same batches again and again; each batch counts as rows rows.
func repeat(b *testing.B, o exec.Operator, bs []*batch.Batch, rows int) {
	out := &countRows{}
	for _, x := range bs {
		if err := o.Process(0, x, out); err != nil {
			b.Fatal(err)
		}
	}
	m := startMeter(b)
	for range b.N {
		for i := range benchTurn {
			if err := o.Process(0, bs[i%len(bs)], out); err != nil {
				b.Fatal(err)
			}
		}
	}
	m.report(b, b.N*benchTurn*rows)
}

func concat(ss ...*types.Schema) *types.Schema {
	out := &types.Schema{}
	for _, s := range ss {
		out.Columns = append(out.Columns, s.Columns...)
	}
	return out
}

// withWindow are the rows' columns and those of their one-second windows.
func withWindow(s *types.Schema) *types.Schema {
	ts := s.Columns[2].Type
	return concat(s, types.NewSchema(types.Column{Name: "window_start", Type: ts}, types.Column{Name: "window_end", Type: ts}, types.Column{Name: "window_time", Type: ts}))
}

// windowed puts a TUMBLE before an operator, as a plan does.
type windowed struct {
	exec.Operator
	tvf exec.Operator
}

type toPort struct {
	o    exec.Operator
	port int
	out  exec.Emitter
}

func (t *toPort) Emit(b *batch.Batch) error { return t.o.Process(t.port, b, t.out) }

func (w *windowed) Process(port int, b *batch.Batch, out exec.Emitter) error {
	return w.tvf.Process(0, b, &toPort{w.Operator, port, out})
}

// operatorCase is an operator whose ports all get the same rows.
type operatorCase struct {
	name  string
	ports int
	make  func() exec.Operator
}

// rows are what the operator is given.
func (c operatorCase) rows() *endless {
	keys := benchKeys
	if strings.HasPrefix(c.name, "window-") {
		keys = benchWindowKeys
	}
	_, bs := benchBatches(keys)
	return &endless{bs: bs}
}

func operatorCases(b testing.TB) []operatorCase {
	s := benchSchema()
	t, ts := s.Columns[1].Type, s.Columns[2].Type
	aggOut := func(cols ...types.Column) *types.Schema {
		return types.NewSchema(append([]types.Column{s.Columns[0], {Name: "n", Type: t}, {Name: "s", Type: t}, {Name: "m", Type: t}}, cols...)...)
	}
	wins := []types.Column{{Name: "ws", Type: ts}, {Name: "we", Type: ts}, {Name: "wt", Type: ts}}
	second, tumble := Window{Time: 2, Size: 1000}, Window{Time: 2, Size: 10_000}
	hop := Window{Kind: Hop, Time: 2, Size: 10_000, Slide: 2000}
	tumbled := func(f func() exec.Operator) func() exec.Operator {
		return func() exec.Operator {
			return &windowed{f(), openOp(b, NewWindowTVF(WindowTVFSpec{Input: s, Window: second, Output: withWindow(s)}), newSubtask(b, 1<<20))}
		}
	}
	over := func(by OverOrder, f expr.Frame) OverSpec {
		call := expr.OverCall{Func: expr.OverAgg, Default: -1, Frame: f, Agg: expr.Agg{Kind: expr.AggSum, Arg: 1, Filter: -1, ArgType: t, Type: t, Text: "SUM(v)"}}
		return OverSpec{Input: s, Partition: []int{0}, Order: SortKey{Col: 2}, By: by, Calls: []expr.OverCall{call}, Frame: f,
			Output: concat(s, types.NewSchema(types.Column{Name: "s", Type: t}))}
	}
	side := JoinInput{Schema: s, Keys: []int{0}, Unique: []int{0}}
	return []operatorCase{
		{"filter-project", 1, NewCalc(benchCalc(b, t))},
		{"union", 2, NewUnion()},
		{"grouping-sets", 1, NewExpand(ExpandSpec{Nulls: [][]int{{}, {0}}, IDs: []int64{0, 1}, Output: concat(s, types.NewSchema(types.Column{Name: "id", Type: types.BigIntType}))})},
		{"distinct", 1, NewGroupAggregate(GroupAggSpec{Input: s, Keys: []int{0}, Output: types.NewSchema(s.Columns[0])})},
		{"aggregate", 1, NewGroupAggregate(GroupAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Output: aggOut()})},
		{"window-tumble", 1, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Window: tumble, Output: aggOut(wins...)})},
		{"window-hop", 1, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Window: hop, Output: aggOut(wins...)})},
		{"window-session", 1, NewWindowAggregate(WindowAggSpec{Input: s, Keys: []int{0}, Aggs: benchAggs(t), Window: Window{Kind: Session, Time: 2, Size: 3000}, Output: aggOut(wins...)})},
		{"window-columns", 1, NewWindowTVF(WindowTVFSpec{Input: s, Window: second, Output: withWindow(s)})},
		{"window-top1", 1, tumbled(NewWindowRank(WindowRankSpec{Input: withWindow(s), WindowEnd: 4, Partition: []int{3, 4}, Order: []SortKey{{Col: 1, Desc: true}}, From: 1, To: 1, Output: withWindow(s)}))},
		{"window-join", 2, tumbled(NewWindowJoin(WindowJoinSpec{Inputs: [2]*types.Schema{withWindow(s), withWindow(s)}, Kind: InnerJoin, Keys: [2][]int{{0, 3, 4}, {0, 3, 4}},
			NullSafe: []bool{false, false, false}, End: [2]int{4, 4}, Output: concat(withWindow(s), withWindow(s))}))},
		{"interval-join", 2, NewIntervalJoin(IntervalJoinSpec{Left: s, Right: s, LeftKeys: []int{0}, RightKeys: []int{0}, Lower: -5000, Upper: 0, LeftTime: 2, RightTime: 2, Output: concat(s, s)})},
		{"temporal-join", 2, NewTemporalJoin(TemporalJoinSpec{Left: s, Right: s, LeftKeys: []int{0}, RightKeys: []int{0}, LeftTime: 2, RightTime: 2, Output: concat(s, s)})},
		{"over-running", 1, NewOver(over(OverByRowtime, expr.Frame{Lo: expr.UnboundedPreceding}))},
		{"over-rows", 1, NewOver(over(OverByRowtime, expr.Frame{Rows: true, Lo: -10}))},
		{"over-range", 1, NewOver(over(OverByRowtime, expr.Frame{Lo: -1_000_000}))},
		{"over-proctime", 1, NewOver(over(OverByProctime, expr.Frame{Rows: true, Lo: expr.UnboundedPreceding}))},
		{"time-sort", 1, NewTimeSort(TimeSortSpec{Input: s, Time: 2})},
		{"dedup-first", 1, NewDedup(DedupSpec{Input: s, Key: []int{0}, Time: 2})},
		{"dedup-last", 1, NewDedup(DedupSpec{Input: s, Key: []int{0}, Time: 2, Last: true, EmitUpdateBefore: true})},
		{"normalize", 1, NewNormalize(NormalizeSpec{Input: s, Key: []int{0}, EmitUpdateBefore: true})},
		{"match", 1, NewMatch(matchBench(b, s))},
		{"top10", 1, NewRank(RankSpec{Input: s, Strategy: RankAppend, Partition: []int{0}, Order: []SortKey{{Col: 1, Desc: true}}, From: 1, To: 10, ToColumn: -1, EmitUpdateBefore: true, Mini: MiniBatch{Size: 1}, Output: s})},
		{"join", 2, NewJoin(JoinSpec{Kind: InnerJoin, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s)})},
	}
}

func BenchmarkOperators(b *testing.B) {
	for _, c := range operatorCases(b) {
		b.Run(c.name, func(b *testing.B) { run(b, openOp(b, c.make, newSubtask(b, 1<<30)), c.ports, c.rows()) })
	}
	for name, make := range repeatedCases {
		b.Run(name, func(b *testing.B) {
			o, bs, rows := make(b)
			defer o.Close()
			repeat(b, o, bs, rows)
		})
	}
	for _, name := range slices.Sorted(maps.Keys(joinBenches)) {
		b.Run(name, func(b *testing.B) { benchJoin(b, joinBenches[name]) })
	}
	b.Run("sort", func(b *testing.B) { benchSort(b) })
}

// repeatedCases are operators that get the same batches again and again, and how many rows a batch counts as.
var repeatedCases = map[string]func(testing.TB) (exec.Operator, []*batch.Batch, int){
	"lookup-join": benchLookup, "unnest": benchUnnest, "materialize": benchMaterialize,
}

// joinBenches are regular joins of inputs that have a row or two of a key.
var joinBenches = map[string]func(*JoinSpec){
	"join-inserts": func(s *JoinSpec) { s.Left.InsertOnly, s.Right.InsertOnly = true, true },
	"left-join": func(s *JoinSpec) {
		s.Kind, s.Left.InsertOnly, s.Right.InsertOnly = LeftJoin, true, true
	},
	"left-join-ttl": func(s *JoinSpec) {
		s.Kind, s.Left.InsertOnly, s.Right.InsertOnly = LeftJoin, true, true
		s.Left.TTL, s.Right.TTL = 3_600_000, 3_600_000
	},
	"left-join-updates": func(s *JoinSpec) { s.Kind, s.Left.Unique, s.Right.Unique = LeftJoin, []int{2}, []int{0} },
	"semi-join": func(s *JoinSpec) {
		s.Kind, s.Left.InsertOnly, s.Right.InsertOnly, s.Output = SemiJoin, true, true, s.Left.Schema
	},
	"anti-join": func(s *JoinSpec) {
		s.Kind, s.Left.InsertOnly, s.Right.InsertOnly, s.Output = AntiJoin, true, true, s.Left.Schema
	},
}

// benchJoin joins 131,072 rows of each side, a batch of one and one of the other in turn.
func benchJoin(b *testing.B, alter func(*JoinSpec)) {
	s, bs := benchBatches(benchKeys)
	side := JoinInput{Schema: s, Keys: []int{0}}
	spec := JoinSpec{Kind: InnerJoin, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s)}
	alter(&spec)
	m := startMeter(b)
	for range b.N {
		o := openOp(b, NewJoin(spec), newSubtask(b, 1<<30))
		out := &countRows{}
		for i := range bs {
			for port, x := range []*batch.Batch{bs[i], bs[len(bs)-1-i]} {
				if err := o.Process(port, x, out); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	m.report(b, b.N*2*batch.Size*len(bs))
}

// benchCalc keeps half of the rows and computes two columns.
func benchCalc(b testing.TB, t types.Type) CalcSpec {
	col := func(i int) expr.Expr { return &expr.Column{Index: i, T: t} }
	make := func(op string, l, r expr.Expr) expr.Expr {
		x, err := expr.NewBinary(op, l, r)
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	n, err := expr.NewIntLiteral("500")
	if err != nil {
		b.Fatal(err)
	}
	return CalcSpec{Filter: make("<", col(1), n), Project: []expr.Expr{make("+", col(0), col(1)), col(1)}}
}

// matchBench finds a row that is followed by one with a greater value and that by one with a smaller.
func matchBench(b testing.TB, s *types.Schema) MatchSpec {
	t := s.Columns[1].Type
	value := func(v int) MatchRef { return MatchRef{Var: v, Col: 1, Type: t} }
	compare := func(op string, l, r int) expr.Expr {
		x, err := expr.NewBinary(op, &expr.Column{Index: l, T: t}, &expr.Column{Index: r, T: t})
		if err != nil {
			b.Fatal(err)
		}
		return x
	}
	spec := MatchSpec{Input: s, Partition: []int{0}, Time: 2, Skip: SkipPastLastRow, Refs: []MatchRef{value(0), value(1), value(2)},
		Pattern: []MatchVariable{{Name: "A", Min: 1, Max: 1}, {Name: "B", Min: 1, Max: 1, Cond: compare(">", 1, 0)}, {Name: "C", Min: 1, Max: 1, Cond: compare("<", 2, 1)}}, Output: &types.Schema{}}
	for i := range spec.Refs {
		spec.Output.Columns = append(spec.Output.Columns, types.Column{Name: string(rune('a' + i)), Type: t})
		spec.Results = append(spec.Results, &expr.Column{Index: i, T: t})
	}
	return spec
}

// benchLookup looks a thousand keys up in a cache that has them.
func benchLookup(b testing.TB) (exec.Operator, []*batch.Batch, int) {
	bus := memory.NewBus()
	spec := lookupSpec(bus, "lookup.cache", "PARTIAL", "lookup.partial-cache.max-rows", "100000")
	var rows [][]types.Datum
	in := batch.NewBuilder(timedSchema)
	key := func(i int) string {
		return "key-" + string(rune('a'+i%26)) + string(rune('a'+i/26%26)) + string(rune('a'+i/676))
	}
	for i := range 1000 {
		rows = append(rows, []types.Datum{types.StrDatum(key(i)), types.IntDatum(int64(i) * 1000), types.IntDatum(int64(i))})
	}
	for i := range batch.Size {
		in.Cols[0].AppendStr(key(i * 7 % 1000))
		in.Cols[1].AppendI64(int64(i) * 1000)
		in.Cols[2].AppendI64(int64(i))
		in.RowDone()
	}
	bus.Rows("dim").Set(rows...)
	o := openOp(b, NewLookupJoin(spec), newSubtask(b, 1<<20))
	return o, []*batch.Batch{in.Finish()}, batch.Size
}

// benchUnnest repeats rows for each of the three entries of an array; figures are for a row that comes out.
func benchUnnest(b testing.TB) (exec.Operator, []*batch.Batch, int) {
	array := types.ArrayOf(types.BigIntType)
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "a", Type: array})
	in := batch.NewBuilder(s)
	for i := range int64(batch.Size) {
		in.Cols[0].AppendI64(i)
		in.Cols[1].AppendDatum(types.Datum{List: []types.Datum{types.IntDatum(i), types.IntDatum(i + 1), types.IntDatum(i + 2)}})
		in.RowDone()
	}
	o := openOp(b, NewUnnest(UnnestSpec{Arg: &expr.Column{Index: 1, T: array}, Output: types.NewSchema(append(slices.Clone(s.Columns), types.Column{Name: "e", Type: types.BigIntType})...)}), newSubtask(b, 1<<20))
	return o, []*batch.Batch{in.Finish()}, 3 * batch.Size
}

// benchSort sorts 131,072 rows at the end of their input.
func benchSort(b *testing.B) {
	s, bs := benchBatches(benchKeys)
	m := startMeter(b)
	for range b.N {
		o := openOp(b, NewSort(SortSpec{Input: s, Keys: []SortKey{{Col: 0}, {Col: 1, Desc: true}}, Limit: -1}), newSubtask(b, 1<<20))
		out := &countRows{}
		for _, x := range bs {
			if err := o.Process(0, x, out); err != nil {
				b.Fatal(err)
			}
		}
		if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
			b.Fatal(err)
		}
		if out.rows != len(bs)*batch.Size {
			b.Fatalf("%d rows", out.rows)
		}
	}
	m.report(b, b.N*batch.Size*len(bs))
}

// benchMaterialize replaces the row of a primary key: a -U of the row before and a +U.
func benchMaterialize(b testing.TB) (exec.Operator, []*batch.Batch, int) {
	s, _ := benchBatches(1)
	o := openOp(b, NewMaterialize(MaterializeSpec{Input: s, Key: []int{0}, InputKey: []int{1}}), newSubtask(b, 1<<30))
	in := make([]*batch.Batch, 2)
	for turn := range in { // row 2k+turn of key k goes, the other one comes
		bl := batch.NewBuilder(s)
		for k := range int64(batch.Size / 2) {
			for i, kind := range []types.RowKind{types.UpdateAfter, types.UpdateBefore} {
				bl.Cols[0].AppendI64(k)
				bl.Cols[1].AppendI64(2*k + int64(turn^i))
				bl.Cols[2].AppendI64(0)
				bl.RowKindDone(kind)
			}
		}
		in[turn] = bl.Finish()
	}
	first := batch.NewBuilder(s)
	for k := range int64(batch.Size / 2) {
		first.Cols[0].AppendI64(k)
		first.Cols[1].AppendI64(2*k + 1)
		first.Cols[2].AppendI64(0)
		first.RowDone()
	}
	if err := o.Process(0, first.Finish(), &countRows{}); err != nil {
		b.Fatal(err)
	}
	return o, in, batch.Size
}
