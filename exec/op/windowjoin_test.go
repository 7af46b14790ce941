package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// joinRow is a row of (k BIGINT, v BIGINT, window_end TIMESTAMP(3)); k < 0 is NULL.
type joinRow struct{ k, v, end int64 }

var windowedRow = types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "v", Type: types.BigIntType},
	types.Column{Name: "window_end", Type: types.Type{Kind: types.Timestamp, Precision: 3, Nullable: true}})

func (r joinRow) text() string {
	if r.k < 0 {
		return fmt.Sprintf("NULL|%d", r.v)
	}
	return fmt.Sprintf("%d|%d", r.k, r.v)
}

func joinRows(rows []joinRow) *batch.Batch {
	b := batch.NewBuilder(windowedRow)
	for _, r := range rows {
		if r.k < 0 {
			b.Cols[0].AppendNull()
		} else {
			b.Cols[0].AppendI64(r.k)
		}
		b.Cols[1].AppendI64(r.v)
		b.Cols[2].AppendI64(r.end * 1000)
		b.RowDone()
	}
	return b.Finish()
}

func windowJoinTestSpec(t testing.TB, kind JoinKind, cond bool) WindowJoinSpec {
	spec := WindowJoinSpec{Inputs: [2]*types.Schema{windowedRow, windowedRow}, Kind: kind, Keys: [2][]int{{0, 2}, {0, 2}},
		NullSafe: []bool{false, false}, End: [2]int{2, 2}, Output: concat(windowedRow, windowedRow)}
	if kind.HalfJoin() {
		spec.Output = windowedRow
	}
	if cond {
		x, err := expr.NewBinary("<", &expr.Column{Index: 1, T: types.BigIntType}, &expr.Column{Index: 4, T: types.BigIntType})
		if err != nil {
			t.Fatal(err)
		}
		spec.Cond = x
	}
	return spec
}

// modelWindowJoin is a nested loop over the rows of the windows up to end.
func modelWindowJoin(spec *WindowJoinSpec, rows [2][]joinRow, upTo int64) (out []string) {
	hit := [2][]bool{make([]bool, len(rows[0])), make([]bool, len(rows[1]))}
	for i, l := range rows[0] {
		for k, r := range rows[1] {
			if l.k < 0 || l.k != r.k || l.end != r.end || l.end > upTo || spec.Cond != nil && l.v >= r.v {
				continue
			}
			hit[0][i], hit[1][k] = true, true
			if !spec.Kind.HalfJoin() {
				out = append(out, l.text()+"|"+r.text())
			}
		}
	}
	for i, l := range rows[0] {
		switch {
		case l.end > upTo:
		case spec.Kind.HalfJoin() && hit[0][i] == (spec.Kind == SemiJoin):
			out = append(out, l.text())
		case spec.Kind.PadsLeft() && !hit[0][i]:
			out = append(out, l.text()+"|-")
		}
	}
	for k, r := range rows[1] {
		if spec.Kind.PadsRight() && !hit[1][k] && r.end <= upTo {
			out = append(out, "-|"+r.text())
		}
	}
	slices.Sort(out)
	return out
}

// joinTexts writes rows as the model does.
type joinTexts struct {
	half bool
	rows []string
}

func (c *joinTexts) Emit(b *batch.Batch) error {
	side := func(r, at int) string {
		if b.Cols[at+2].IsNull(r) {
			return "-"
		}
		x := joinRow{k: -1, v: b.Cols[at+1].I64[r]}
		if !b.Cols[at].IsNull(r) {
			x.k = b.Cols[at].I64[r]
		}
		return x.text()
	}
	for i := range b.Len() {
		if r := b.Row(i); c.half {
			c.rows = append(c.rows, side(r, 0))
		} else {
			c.rows = append(c.rows, side(r, 0)+"|"+side(r, 3))
		}
	}
	return nil
}

// Goal: every kind of window join gives what a nested loop gives, also when the right side of a window is many blocks and
// the state is on disk, or rows are in memory, or both after a barrier. Few keys make the rows of one many.
func TestWindowJoinKinds(t *testing.T) {
	for kind := InnerJoin; kind <= AntiJoin; kind++ {
		for seed := range uint64(8) {
			rnd := rand.New(rand.NewPCG(seed, 9))
			spec := windowJoinTestSpec(t, kind, seed%2 == 1)
			budget := int64(64 << 10)
			if seed >= 4 {
				budget = 1 << 30
			}
			o := openOp(t, NewWindowJoin(spec), newSubtask(t, budget))
			if seed%3 > 0 {
				o.(*windowJoin).join.maxRow = 1 // a block is a chunk
			}
			var rows [2][]joinRow
			for range 12 {
				for port := range rows {
					var some []joinRow
					for range rnd.IntN(100) {
						some = append(some, joinRow{rnd.Int64N(40) - 1, rnd.Int64N(100), 10 * (1 + rnd.Int64N(3))})
					}
					rows[port] = append(rows[port], some...)
					if err := o.Process(port, joinRows(some), nil); err != nil {
						t.Fatal(err)
					}
				}
				if seed >= 6 && rnd.IntN(8) == 0 {
					if _, err := o.OnBarrier(checkpoint.Barrier{}, nil); err != nil {
						t.Fatal(err)
					}
				}
			}
			got := &joinTexts{half: kind.HalfJoin()}
			for _, wm := range []int64{8, 9, 28, 100} {
				if err := o.OnWatermark(exec.Watermark(wm), got); err != nil {
					t.Fatal(err)
				}
				slices.Sort(got.rows)
				if want := modelWindowJoin(&spec, rows, wm+1); !slices.Equal(got.rows, want) {
					t.Fatalf("%s, seed %d, watermark %d: %d rows, want %d", kind, seed, wm, len(got.rows), len(want))
				}
			}
			for _, x := range o.(*windowJoin).sides {
				if n := x.log.table.Len(); n != 0 || len(x.log.cells) != 0 || len(x.mem) != 0 {
					t.Errorf("%s: %d chunks of %d windows are left", kind, n, len(x.log.cells))
				}
			}
		}
	}
}

// A window join in the steady state allocates nothing for a row.
func TestWindowJoinAllocations(t *testing.T) {
	spec := windowJoinTestSpec(t, InnerJoin, true)
	o := openOp(t, NewWindowJoin(spec), newSubtask(t, 1<<30))
	var rows []joinRow
	for i := range int64(batch.Size) {
		rows = append(rows, joinRow{i, i, 0})
	}
	b, out, end := joinRows(rows), &countRows{}, int64(0)
	window := func() {
		end += 1000
		for i := range b.Cols[2].I64 {
			b.Cols[2].I64[i] = end * 1000
		}
		for port := range 2 {
			for range 4 {
				if err := o.Process(port, b, out); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := o.OnWatermark(exec.Watermark(end), out); err != nil {
			t.Fatal(err)
		}
	}
	window()
	if n := testing.AllocsPerRun(5, window) / (8 * batch.Size); n > 0.01 {
		t.Errorf("%.3f allocations a row", n)
	}
}

// A checkpointed window log that lost a chunk is an error, not a wrong result.
func TestWindowLogDamaged(t *testing.T) {
	l, err := openWindowLog(newSubtask(t, 1<<20), "log", "test")
	if err != nil {
		t.Fatal(err)
	}
	l.add(5, 0, []byte("entry"))
	if err := l.commit(); err != nil {
		t.Fatal(err)
	}
	if got, err := l.chunk(5, checkpoint.KeyGroup(0), 0); err != nil || string(got) != "entry" {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := l.chunk(5, 0, 1); err != errWindowLog {
		t.Errorf("a missing chunk: %v", err)
	}
	l.table.Delete(l.refOf(t, 5))
	l.add(5, 0, []byte("more"))
	if err := l.commit(); err != errWindowLog {
		t.Errorf("adding behind a missing chunk: %v", err)
	}
}

func (l *windowLog) refOf(t *testing.T, at int64) checkpoint.Ref {
	t.Helper()
	if _, err := l.chunk(at, 0, 0); err != nil {
		t.Fatal(err)
	}
	return l.ref[0]
}
