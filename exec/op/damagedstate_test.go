package op

import (
	"context"
	"fmt"
	"hash/crc32"
	"math/rand"
	"runtime"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Goal: state that is damaged behind right checksums (by a fault of memory, or of a program that wrote it) fails the task that reads
// it, and nothing else. What an operator keeps in the manifest must be an error. Rows of tables are read without a look at every
// length, for speed: an index out of range is allowed there, which the task turns into an error; what is not is a fault that
// ends the process, such as running out of memory, or a loop without an end.
// Method: each operator takes some rows and a barrier; the fuzzer changes what that wrote; another one starts with it and goes on.

// damageCase is an operator with state and the rows it is given.
type damageCase struct {
	name  string
	ports int
	make  func() exec.Operator
	feed  []*batch.Batch
}

func damageCases(t testing.TB) (out []damageCase) {
	s := benchSchema()
	rows := keyedRows(s)
	for _, c := range operatorCases(t) {
		out = append(out, damageCase{c.name, c.ports, c.make, rows})
	}
	side := JoinInput{Schema: s, Keys: []int{0}}
	for _, name := range []string{"join-inserts", "left-join", "left-join-ttl", "left-join-updates", "semi-join"} {
		spec := JoinSpec{Kind: InnerJoin, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s)}
		joinBenches[name](&spec)
		out = append(out, damageCase{name, 2, NewJoin(spec), rows})
	}
	rank := RankSpec{Input: s, Partition: []int{0}, Order: []SortKey{{Col: 1}}, From: 1, To: 3, ToColumn: -1, EmitUpdateBefore: true, Output: s}
	retract, single := rank, rank
	retract.Strategy, single.To = RankRetract, 1
	over := OverSpec{Input: s, Partition: []int{0}, Order: SortKey{Col: 1}, By: OverByValue, Frame: expr.Frame{Lo: expr.UnboundedPreceding},
		Calls: []expr.OverCall{{Func: expr.OverLag, Offset: 1, Default: -1, Frame: running(false),
			Agg: expr.Agg{Arg: 1, ArgType: s.Columns[1].Type, Filter: -1, Type: s.Columns[1].Type, Text: "LAG"}}}, Output: concat(s, types.NewSchema(s.Columns[1]))}
	out = append(out,
		damageCase{"limit", 1, NewLimit(LimitSpec{Limit: 100}), rows},
		damageCase{"sort", 1, NewSort(SortSpec{Input: s, Keys: []SortKey{{Col: 1}}, Limit: -1}), rows},
		damageCase{"materialize", 1, NewMaterialize(MaterializeSpec{Input: s, Key: []int{0}, InputKey: []int{1}}), rows},
		damageCase{"materialize-rows", 1, NewMaterialize(MaterializeSpec{Input: s, Key: []int{0}}), rows},
		damageCase{"rank-retract", 1, NewRank(retract), rows},
		damageCase{"rank-one", 1, NewRank(single), rows},
		damageCase{"over-value", 1, NewOver(over), rows})
	return append(out, damageCase{"aggregates", 1, everyAggregate(t), textRows()})
}

// everyAggregate has the aggregates that keep lists and sets of values, of an input with retractions.
func everyAggregate(t testing.TB) func() exec.Operator {
	var aggs []expr.Agg
	for _, c := range aggCases(t) {
		aggs = append(aggs, c.agg)
	}
	for _, c := range orderCases(t) {
		aggs = append(aggs, c.agg)
	}
	out := types.NewSchema(types.Column{Name: "k", Type: types.StringType})
	for i := range aggs {
		aggs[i].Text = fmt.Sprintf("agg%d", i)
		out.Columns = append(out.Columns, types.Column{Name: aggs[i].Text, Type: aggs[i].Type})
	}
	return NewGroupAggregate(GroupAggSpec{Input: aggInput, Keys: []int{0}, Aggs: aggs, InputMode: types.Retract, EmitUpdateBefore: true, Output: out})
}

// keyedRows are two batches of rows of three keys, half a second apart.
func keyedRows(s *types.Schema) (out []*batch.Batch) {
	for i := range int64(2) {
		b := batch.NewBuilder(s)
		for j := range int64(6) {
			b.Cols[0].AppendI64(j % 3)
			b.Cols[1].AppendI64(j * 7 % 5)
			b.Cols[2].AppendI64((6*i + j) * 500_000)
			b.RowDone()
		}
		out = append(out, b.Finish())
	}
	return out
}

func textRows() (out []*batch.Batch) {
	r := rand.New(rand.NewSource(1))
	for range 2 {
		b := codecBatch(r, aggInput, 6, 4)
		b.Cols[0] = batch.NewConst(types.StringType, types.StrDatum("a"))
		out = append(out, b)
	}
	return out
}

// step gives the operator a batch at every port and a watermark behind the first rows of it.
func (c *damageCase) step(o exec.Operator, b *batch.Batch, w exec.Watermark) error {
	out := &countRows{}
	for p := range c.ports {
		if err := o.Process(p, b, out); err != nil {
			return err
		}
	}
	return o.OnWatermark(w, out)
}

// written is what the operator writes at a barrier behind the first batch: its segment and its small state.
func (c *damageCase) written(t testing.TB) (segment, small []byte) {
	t.Helper()
	s := newStateHarness(t, 1<<24)
	o := openOp(t, c.make, s)
	defer o.Close()
	if err := c.step(o, c.feed[0], 500); err != nil {
		t.Fatalf("%s: %v", c.name, err)
	}
	small, err := o.OnBarrier(checkpoint.Barrier{ID: 1}, &countRows{})
	if err != nil {
		t.Fatal(err)
	}
	if s.seal(); len(s.files) > 0 {
		segment = fileBytes(t, s.owner.FS(), s.owner.FS().PathJoin(s.owner.Dir(), s.files[0].Path))
	}
	return segment, small
}

func fileBytes(t testing.TB, fs vfs.FS, path string) []byte {
	t.Helper()
	f, err := fs.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, st.Size())
	if _, err := f.ReadAt(b, 0); err != nil {
		t.Fatal(err)
	}
	return b
}

// again starts the operator with a state and goes on. inOpen tells whether a panic came before the first row.
func (c *damageCase) again(t testing.TB, segment, small []byte) (panicked any, inOpen bool) {
	s := newStateHarness(t, 1<<24)
	if len(segment) > 0 {
		fs, path := s.owner.FS(), "chk-1/op-0/000001-000001.seg"
		at := fs.PathJoin(s.owner.Dir(), path)
		if err := fs.MkdirAll(fs.PathDir(at), 0o755); err != nil {
			t.Fatal(err)
		}
		f, err := fs.Create(at, vfs.WriteCategoryUnspecified)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(segment); err != nil {
			t.Fatal(err)
		}
		if err := f.Close(); err != nil {
			t.Fatal(err)
		}
		file := checkpoint.StateFile{Path: path, Size: int64(len(segment)), CRC32C: crc32.Checksum(segment, crc32.MakeTable(crc32.Castagnoli))}
		if s.back.Restore(context.Background(), []checkpoint.StateFile{file}) != nil {
			return nil, false
		}
	}
	s.restored = [][]byte{small}
	o := c.make()
	defer o.Close()
	defer func() { panicked = recover() }()
	inOpen = true
	if o.Open(s) != nil {
		return nil, inOpen
	}
	inOpen = false
	if c.step(o, c.feed[1], 4_000) != nil {
		return nil, false
	}
	if c.step(o, c.feed[1], exec.MaxWatermark) != nil {
		return nil, false
	}
	_, _ = o.OnBarrier(checkpoint.Barrier{ID: 2}, &countRows{})
	return nil, false
}

// FuzzSmallState: what an operator keeps in the manifest, damaged, is an error when it opens, or something it can go on from.
func FuzzSmallState(f *testing.F) {
	for i, c := range damageCases(f) {
		_, small := c.written(f)
		f.Add(uint8(i), small)
		f.Add(uint8(i), small[:len(small)/2])
	}
	f.Fuzz(func(t *testing.T, which uint8, small []byte) {
		cases := damageCases(t)
		c := &cases[int(which)%len(cases)]
		if p, _ := c.again(t, nil, small); p != nil {
			t.Fatalf("%s: %v", c.name, p)
		}
	})
}

// FuzzOperatorState: rows of tables, damaged, fail the task.
func FuzzOperatorState(f *testing.F) {
	for i, c := range damageCases(f) {
		if segment, small := c.written(f); len(segment) > 0 {
			if p, _ := c.again(f, segment, small); p != nil {
				f.Fatalf("%s does not go on from its own state: %v", c.name, p)
			}
			f.Add(uint8(i), segment, small)
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, segment, small []byte) {
		cases := damageCases(t)
		c := &cases[int(which)%len(cases)]
		p, _ := c.again(t, segment, small)
		if _, ok := p.(runtime.Error); p != nil && !ok {
			t.Fatalf("%s: %v", c.name, p)
		}
	})
}
