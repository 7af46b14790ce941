package op

// Goal: a join of inputs that only insert keeps every row once and finds all of them, also from disk and after a restart.
// Method: random inserts against the nested loops of the other joins' tests; rows of all types through the codec.

import (
	"fmt"
	"math/rand"
	"reflect"
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

func insertJoinSpec(kind JoinKind) JoinSpec {
	spec := joinTestSpec(kind)
	spec.Left.InsertOnly, spec.Right.InsertOnly = true, true
	return spec
}

func TestInsertJoinRandom(t *testing.T) {
	for seed := range int64(short.Or(120, 30)) {
		rnd := rand.New(rand.NewSource(seed))
		m := &joinModel{kind: JoinKind(seed % 6), cond: seed%6 == int64(InnerJoin) && rnd.Intn(2) == 0, nullSafe: rnd.Intn(3) == 0, cross: rnd.Intn(8) == 0}
		spec := insertJoinSpec(m.kind)
		spec.NullSafe[0] = m.nullSafe
		if m.cond {
			spec.Cond = residual(t)
		}
		if m.cross {
			spec.Left.Keys, spec.Right.Keys, spec.NullSafe = nil, nil, nil
		}
		budget := int64(64 << 20)
		if seed%4 == 0 {
			budget = 1 << 14 // on disk
		}
		if seed%5 < 2 {
			spec.Mini = MiniBatch{Size: 1 + rnd.Intn(300), Latency: 1000}
		}
		s := newStateHarness(t, budget)
		o := openOp(t, NewJoin(spec), s)
		if _, mini := o.(*miniJoin); mini != (spec.Mini.Size > 0) {
			t.Fatalf("%T with %+v", o, spec.Mini)
		} else if _, ok := o.(*insertJoin); !ok && !mini {
			t.Fatalf("%T for inputs that only insert", o)
		}
		keys, text := 2+rnd.Intn(30), strings.Repeat("x", rnd.Intn(200))
		got := map[string]int{}
		for round := range 20 {
			if round == 10 {
				foldRows(t, got, atBarrier(t, o))
				s.seal()
				s.restart()
				o = openOp(t, NewJoin(spec), s)
			}
			port := rnd.Intn(2)
			var rows []string
			for range 1 + rnd.Intn(60) {
				r := joinTestRow{rnd.Intn(keys) - 1, rnd.Intn(6), string(rune('a'+rnd.Intn(3))) + text}
				m.sides[port] = append(m.sides[port], r)
				rows = append(rows, "+I "+r.String())
			}
			out := &rowCollector{}
			if err := o.Process(port, joinBatch([]*types.Schema{spec.Left.Schema, spec.Right.Schema}[port], rows...), out); err != nil {
				t.Fatal(err)
			}
			foldRows(t, got, out)
		}
		foldRows(t, got, atBarrier(t, o))
		if want := m.result(); !reflect.DeepEqual(got, want) {
			t.Fatalf("seed %d, condition %t, null safe %t, cross %t:\n got %v\nwant %v", seed, m.cond, m.nullSafe, m.cross, sorted(got), sorted(want))
		}
	}
}

// atBarrier are the rows that o emits before a barrier.
func atBarrier(t *testing.T, o exec.Operator) *rowCollector {
	t.Helper()
	out := &rowCollector{}
	if _, err := o.OnBarrier(checkpoint.Barrier{ID: 1}, out); err != nil {
		t.Fatal(err)
	}
	return out
}

// foldRows is fold for rows that write NULL as joinTestRow does.
func foldRows(t *testing.T, table map[string]int, out *rowCollector) {
	t.Helper()
	log := out.take()
	for i := range log {
		log[i] = strings.ReplaceAll(log[i], "NULL", "-")
	}
	fold(t, table, log)
}

// A key with more matches than a batch has rows leaves in parts.
func TestInsertJoinManyMatches(t *testing.T) {
	const n = 2*batch.Size + 7
	for kind, want := range map[JoinKind]int{InnerJoin: 2 * n, LeftJoin: n + n + 2*n, SemiJoin: n, AntiJoin: n + n, RightJoin: 2*n + 1} {
		spec := insertJoinSpec(kind)
		o := openOp(t, NewJoin(spec), newSubtask(t, 64<<20))
		var left []string
		for i := range n {
			left = append(left, fmt.Sprintf("+I 1 %d a%d", i%10, i))
		}
		out := &countRows{}
		for port, rows := range [][]string{left, {"+I 1 1 x", "+I 2 1 y", "+I 1 2 z"}} {
			if err := o.Process(port, joinBatch([]*types.Schema{spec.Left.Schema, spec.Right.Schema}[port], rows...), out); err != nil {
				t.Fatal(err)
			}
		}
		if out.rows != want {
			t.Errorf("%v: %d rows, want %d", kind, out.rows, want)
		}
	}
}

// Other joins keep to the state that can take rows back.
func TestInsertJoinOnlyWhereItCan(t *testing.T) {
	for name, alter := range map[string]func(*JoinSpec){
		"updates":                func(s *JoinSpec) { s.Right.InsertOnly = false },
		"TTL":                    func(s *JoinSpec) { s.Left.TTL = 1000 },
		"key":                    func(s *JoinSpec) { s.Left.Unique = []int{0} },
		"outer with a condition": func(s *JoinSpec) { s.Kind, s.Cond = LeftJoin, residual(t) },
	} {
		spec := insertJoinSpec(InnerJoin)
		alter(&spec)
		if _, ok := NewJoin(spec)().(*join); !ok {
			t.Errorf("%s: not the general join", name)
		}
	}
}

func codecTestSchema() *types.Schema {
	s := types.NewSchema(types.Column{Name: "s", Type: types.StringType}, types.Column{Name: "i", Type: types.BigIntType},
		types.Column{Name: "d", Type: types.DoubleType}, types.Column{Name: "b", Type: types.Of(types.Boolean)},
		types.Column{Name: "n", Type: types.Type{Kind: types.Decimal, Precision: 38, Scale: 2}})
	for i := range 5 { // more than eight columns
		s.Columns = append(s.Columns, types.Column{Name: fmt.Sprint("t", i), Type: types.StringType})
	}
	for i := range s.Columns {
		s.Columns[i].Type.Nullable = true
	}
	return s
}

func codecBatch(rnd *rand.Rand, s *types.Schema, n, nulls int) *batch.Batch {
	b := batch.NewBuilder(s)
	for range n {
		for _, c := range b.Cols {
			if nulls > 0 && rnd.Intn(nulls) == 0 {
				c.AppendNull()
				continue
			}
			switch c.Type.Phys() {
			case types.PhysI64:
				c.AppendI64(rnd.Int63() - rnd.Int63())
			case types.PhysF64:
				c.AppendF64(rnd.NormFloat64())
			case types.PhysBool:
				c.AppendBool(rnd.Intn(2) == 0)
			case types.PhysI128:
				c.AppendI128(types.Int128{Lo: rnd.Uint64(), Hi: int64(rnd.Intn(9)) - 4})
			case types.PhysStr:
				c.AppendStr(strings.Repeat("é", rnd.Intn(20)))
			}
		}
		b.RowDone()
	}
	return b.Finish()
}

func TestRowCodec(t *testing.T) {
	s := codecTestSchema()
	for seed := range int64(40) {
		rnd := rand.New(rand.NewSource(seed))
		b := codecBatch(rnd, s, 1+rnd.Intn(150), rnd.Intn(4))
		if rnd.Intn(2) == 0 { // a constant column, and not all rows
			b.Cols[1] = batch.NewConst(b.Cols[1].Type, types.Datum{I64: 7, IsNull: rnd.Intn(2) == 0})
			b.Sel = []int32{}
			for r := range b.N {
				if rnd.Intn(2) == 0 {
					b.Sel = append(b.Sel, int32(r))
				}
			}
		}
		c, out := newRowCodec(s), batch.NewBuilder(s)
		var e encodedRows
		var want, got rowCollector
		for range 2 { // memory is used again, rows are added behind others
			c.encode(b, &e)
			var rows [][]byte
			for i := range b.Len() {
				rows = append(rows, e.row(i))
			}
			if err := c.decode(rows, out.Cols); err != nil {
				t.Fatal(err)
			}
			out.RowsDone(len(rows))
			_ = want.Emit(b)
		}
		_ = got.Emit(out.Finish())
		if !reflect.DeepEqual(got.rows, want.rows) {
			t.Fatalf("seed %d:\n got %v\nwant %v", seed, got.rows, want.rows)
		}
	}
}

// Damaged rows are refused, whatever they hold.
func FuzzRowCodecDecode(f *testing.F) {
	s := codecTestSchema()
	c := newRowCodec(s)
	var e encodedRows
	c.encode(codecBatch(rand.New(rand.NewSource(1)), s, 3, 3), &e)
	for i := range 3 {
		f.Add(e.row(i))
	}
	f.Fuzz(func(t *testing.T, row []byte) {
		out := batch.NewBuilder(s)
		if c.decode([][]byte{row}, out.Cols) == nil {
			out.RowsDone(1)
			_ = (&rowCollector{}).Emit(out.Finish())
		}
	})
}

// Matches cost a few allocations a batch, rows none.
func TestInsertJoinAllocations(t *testing.T) {
	spec := insertJoinSpec(InnerJoin)
	var err error
	if spec.Cond, err = expr.NewBinary("<=", &expr.Column{Index: 1, T: types.BigIntType}, &expr.Column{Index: 4, T: types.BigIntType}); err != nil {
		t.Fatal(err)
	}
	o := openOp(t, NewJoin(spec), newSubtask(t, 1<<30))
	var left, right []string
	for i := range 1000 {
		left, right = append(left, fmt.Sprintf("+I %d 1 a%d", i, i)), append(right, fmt.Sprintf("+I %d 2 b%d", i, i))
	}
	l, r := joinBatch(spec.Left.Schema, left...), joinBatch(spec.Right.Schema, right...)
	out := &countRows{}
	if err := o.Process(0, l, out); err != nil {
		t.Fatal(err)
	}
	for range 4 { // buffers grow
		if err := o.Process(1, r, out); err != nil {
			t.Fatal(err)
		}
	}
	n := testing.AllocsPerRun(20, func() {
		if err := o.Process(1, r, out); err != nil {
			t.Fatal(err)
		}
	})
	if n > 20 {
		t.Errorf("%v allocations for 1000 rows with 1000 matches", n)
	}
}

// BenchmarkInsertJoin adds rows of some 130 bytes to the right side; each finds one row of 100,000 on the left. The state
// begins anew after a million rows.
func BenchmarkInsertJoin(b *testing.B) {
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType},
		types.Column{Name: "a", Type: types.StringType}, types.Column{Name: "b", Type: types.StringType})
	const keys = 100_000
	rnd := rand.New(rand.NewSource(1))
	text := strings.Repeat("some text ", 20)
	fill := func(key func(i int) int64, n int) *batch.Batch {
		out := batch.NewBuilder(s)
		for i := range n {
			out.Cols[0].AppendI64(key(i))
			out.Cols[1].AppendI64(int64(i))
			out.Cols[2].AppendStr(text[:rnd.Intn(60)])
			out.Cols[3].AppendStr(text[:40+rnd.Intn(60)])
			out.RowDone()
		}
		return out.Finish()
	}
	left := fill(func(i int) int64 { return int64(i) }, keys)
	var right []*batch.Batch
	for range 512 {
		right = append(right, fill(func(int) int64 { return rnd.Int63n(keys) }, batch.Size))
	}
	side := JoinInput{Schema: s, Keys: []int{0}, InsertOnly: true}
	make := NewJoin(JoinSpec{Kind: InnerJoin, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s)})
	out := &countRows{}
	b.ReportAllocs()
	var o exec.Operator
	for i := range b.N {
		if i%len(right) == 0 {
			b.StopTimer()
			o = openOp(b, make, newSubtask(b, 1<<30))
			if err := o.Process(0, left, out); err != nil {
				b.Fatal(err)
			}
			b.StartTimer()
		}
		if err := o.Process(1, right[i%len(right)], out); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch.Size), "ns/row")
}

// The keys of a batch are those of its rows, whether they are one integer or not, with NULL as a key or as none.
func TestBatchKeys(t *testing.T) {
	s := types.NewSchema(types.Column{Name: "i", Type: types.BigIntType}, types.Column{Name: "s", Type: types.StringType})
	for seed := range int64(60) {
		rnd := rand.New(rand.NewSource(seed))
		cols := [][]int{{0}, {1}, {0, 1}, {}}[seed%4]
		strict := cols
		if seed%3 == 0 {
			strict = nil
		}
		k, enc := newBatchKeys(cols, strict), exec.NewKeyEncoder(cols)
		for range 3 { // memory is used again
			b := batch.NewBuilder(s)
			for range rnd.Intn(200) {
				for _, c := range b.Cols {
					switch x := rnd.Intn(9); {
					case x == 0:
						c.AppendNull()
					case c.Type.Phys() == types.PhysI64:
						c.AppendI64(int64(x) << 40)
					default:
						c.AppendStr(strings.Repeat("k", x))
					}
				}
				b.RowDone()
			}
			in := *b.Finish()
			if rnd.Intn(2) == 0 {
				in.Sel = []int32{}
				for r := range in.N {
					if rnd.Intn(3) > 0 {
						in.Sel = append(in.Sel, int32(r))
					}
				}
			}
			k.find(&in)
			order, ends := k.sorted()
			var want, got []string
			for i := range in.Len() {
				r := in.Row(i)
				if anyNull(&in, strict, r) {
					if k.of[i] >= 0 {
						t.Fatalf("seed %d: row %d with NULL has key %d", seed, r, k.of[i])
					}
					continue
				}
				key := enc.AppendKey(nil, &in, r)
				want = append(want, fmt.Sprintf("%x %d", key, r))
				if g := int(k.of[i]); string(k.keys.Key(g)) != string(key) || k.keys.Hashes[g] != checkpoint.HashKey(key) {
					t.Fatalf("seed %d: row %d has key %x, want %x", seed, r, k.keys.Key(g), key)
				}
			}
			from := int32(0)
			for g, end := range ends {
				for _, r := range order[from:end] {
					got = append(got, fmt.Sprintf("%x %d", k.keys.Key(g), r))
				}
				from = end
			}
			distinct := map[string]bool{}
			for g := range k.keys.Len() {
				distinct[string(k.keys.Key(g))] = true
			}
			slices.Sort(want)
			slices.Sort(got)
			if !slices.Equal(got, want) || len(distinct) != len(ends) {
				t.Fatalf("seed %d: %d keys, %d of them different\n got %v\nwant %v", seed, len(ends), len(distinct), got, want)
			}
		}
	}
}

// BenchmarkInsertJoinHot joins rows of integers as Nexmark's q4 does: some 15 right rows for each left row, half of them for one
// in a hundred, with a condition on times. A row is one of either side.
func BenchmarkInsertJoinHot(b *testing.B) {
	const events = 1 << 20
	column := func(name string) types.Column { return types.Column{Name: name, Type: types.BigIntType} }
	l := types.NewSchema(column("id"), column("time"), column("expires"), column("category"))
	r := types.NewSchema(column("auction"), column("price"), column("time"))
	var err error
	spec := JoinSpec{Kind: InnerJoin, NullSafe: []bool{false}, Output: concat(l, r), Left: JoinInput{Schema: l, Keys: []int{0}, InsertOnly: true},
		Right: JoinInput{Schema: r, Keys: []int{0}, InsertOnly: true}}
	if spec.Cond, err = expr.NewBinary("<=", &expr.Column{Index: 6, T: types.BigIntType}, &expr.Column{Index: 2, T: types.BigIntType}); err != nil {
		b.Fatal(err)
	}
	type input struct {
		port int
		b    *batch.Batch
	}
	var inputs []input
	rnd := rand.New(rand.NewSource(1))
	left, right := batch.NewBuilder(l), batch.NewBuilder(r)
	for i := range int64(events) {
		last := i / 16
		if i%16 == 0 {
			for k, x := range []int64{last, i, i + rnd.Int63n(3000), last % 5} {
				left.Cols[k].AppendI64(x)
			}
			left.RowDone()
		} else {
			auction := last / 100 * 100
			if rnd.Intn(2) == 0 {
				auction = max(0, last-100+rnd.Int63n(110))
			}
			for k, x := range []int64{auction, rnd.Int63n(1e7), i} {
				right.Cols[k].AppendI64(x)
			}
			right.RowDone()
		}
		if left.Len() == 300 {
			inputs, left = append(inputs, input{0, left.Finish()}), batch.NewBuilder(l)
		}
		if right.Len() == 1600 {
			inputs, right = append(inputs, input{1, right.Finish()}), batch.NewBuilder(r)
		}
	}
	b.ReportAllocs()
	for range b.N {
		o, out := openOp(b, NewJoin(spec), newSubtask(b, 1<<30)), &countRows{}
		for _, in := range inputs {
			if err := o.Process(in.port, in.b, out); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*events), "ns/row")
}
