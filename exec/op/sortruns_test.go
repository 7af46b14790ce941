package op

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// sortModel is a sort in memory: of equal rows those that came first are retracted.
type sortModel struct {
	rows []modelRow
	gone map[modelRow]int
}

type modelRow struct {
	k int
	s string
}

func (m *sortModel) result(spec SortSpec) string {
	gone := map[modelRow]int{}
	for r, n := range m.gone {
		gone[r] = n
	}
	var left []modelRow
	for _, r := range m.rows {
		if gone[r] > 0 {
			gone[r]--
			continue
		}
		left = append(left, r)
	}
	slices.SortStableFunc(left, func(a, b modelRow) int { return cmp.Compare(a.k, b.k) })
	left = left[min(int(spec.Offset), len(left)):]
	if spec.Limit >= 0 {
		left = left[:min(int(spec.Limit), len(left))]
	}
	var out []string
	for _, r := range left {
		out = append(out, fmt.Sprintf("+I%d/%s", r.k, r.s))
	}
	return strings.Join(out, " ")
}

// Hundreds of runs, written at barriers with state on disk and merged in several levels, give the order of a sort in
// memory, also when the operator is opened anew in between.
func TestSortRuns(t *testing.T) {
	for seed, spec := range []SortSpec{
		{Limit: -1}, {Limit: 100, Offset: 7}, {Limit: 3}, {Limit: -1, InputMode: types.Retract}, {Limit: 50, Offset: 20, InputMode: types.Retract},
	} {
		spec.Input, spec.Keys = sortSchema, []SortKey{{Col: 0}}
		rnd := rand.New(rand.NewPCG(uint64(seed), 5))
		m := &sortModel{gone: map[modelRow]int{}}
		place := newStateHarness(t, 16<<10)
		o := openOp(t, NewSort(spec), place).(*sorter)
		for range 2*sortFanIn*sortFanIn + 17 {
			b := batch.NewBuilder(sortSchema)
			for range rnd.IntN(6) {
				r, kind := modelRow{rnd.IntN(400), fmt.Sprint(len(m.rows))}, types.Insert
				if spec.InputMode == types.Retract && rnd.IntN(2) == 0 && len(m.rows) > 0 {
					// A row is retracted once; what retracts it may come first.
					if old := m.rows[rnd.IntN(len(m.rows))]; m.gone[old] == 0 {
						r, kind = old, types.Delete
						m.gone[old]++
					}
				}
				if kind == types.Insert {
					m.rows = append(m.rows, r)
				}
				b.Cols[0].AppendI64(int64(r.k))
				b.Cols[1].AppendStr(r.s)
				b.RowKindDone(kind)
			}
			if err := o.Process(0, b.Finish(), nil); err != nil {
				t.Fatal(err)
			}
			st, err := o.OnBarrier(checkpoint.Barrier{}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if n := len(o.rows.runs); n > 3*sortFanIn {
				t.Fatalf("%d runs", n)
			}
			if rnd.IntN(50) == 0 {
				place.restored = [][]byte{st}
				place.seal()
				place.restart()
				o = openOp(t, NewSort(spec), place).(*sorter)
			}
		}
		out := &sortOut{}
		if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
			t.Fatal(err)
		}
		if got, want := out.take(), m.result(spec); got != want {
			t.Errorf("limit %d, %v:\n got %.300s\nwant %.300s", spec.Limit, spec.InputMode, got, want)
		}
		if n := o.rows.table.Len(); n != 0 {
			t.Errorf("limit %d, %v: %d chunks are left", spec.Limit, spec.InputMode, n)
		}
	}
}

// Memory outside the state is a buffer and a chunk per run, however many rows there are.
func TestSortMemory(t *testing.T) {
	for _, mode := range []types.ChangelogMode{types.AppendOnly, types.Retract} {
		place := newSubtask(t, 1<<20)
		o := openOp(t, NewSort(SortSpec{Input: sortSchema, InputMode: mode, Keys: []SortKey{{Col: 0}}, Limit: -1}), place).(*sorter)
		text := strings.Repeat("x", 500)
		const batches = 12
		for i := range batches {
			b := batch.NewBuilder(sortSchema)
			for j := range batch.Size {
				b.Cols[0].AppendI64(int64((i*batch.Size + j) * 7919 % (batches * batch.Size)))
				b.Cols[1].AppendStr(text)
				b.RowDone()
			}
			if err := o.Process(0, b.Finish(), nil); err != nil {
				t.Fatal(err)
			}
			if len(o.rows.buf) > sortBuffer+1024 || len(o.rows.entries) > 2*sortBuffer/500 {
				t.Fatalf("%d bytes and %d entries are in memory", len(o.rows.buf), len(o.rows.entries))
			}
		}
		out, last := &countRows{}, int64(-1)
		check := emitFunc(func(b *batch.Batch) error {
			for r := range b.N {
				if k := b.Cols[0].I64[r]; k != last+1 {
					t.Fatalf("%d follows %d", k, last)
				}
				last++
			}
			return out.Emit(b)
		})
		if err := o.OnWatermark(exec.MaxWatermark, check); err != nil {
			t.Fatal(err)
		}
		if out.rows != batches*batch.Size {
			t.Errorf("%d rows", out.rows)
		}
	}
}

type emitFunc func(b *batch.Batch) error

func (f emitFunc) Emit(b *batch.Batch) error { return f(b) }

// A row with more changes than are held goes through a merge as it is.
func TestRowCancel(t *testing.T) {
	for _, n := range []int{1, cancelMax/2 - 1, cancelMax / 2, cancelMax, 3 * cancelMax} {
		var got []string
		c := rowCancel{put: func(sub, _ []byte) error {
			row, kind, seq := cutChange(sub)
			got = append(got, fmt.Sprintf("%s%d.%08d", row, kind, seq))
			return nil
		}}
		feed := func(row string, kind byte, seq int) {
			sub := append([]byte(row), kind)
			if err := c.add(append(sub, 0, 0, 0, 0, byte(seq>>24), byte(seq>>16), byte(seq>>8), byte(seq)), nil); err != nil {
				t.Fatal(err)
			}
		}
		for i := range n { // a retraction after each insertion, and one before all
			feed("a", retracted, 10*i)
		}
		for i := range n {
			feed("a", inserted, 10*i+5)
		}
		feed("b", inserted, 1)
		if err := c.end(); err != nil {
			t.Fatal(err)
		}
		if !slices.IsSorted(got) {
			t.Fatalf("%d: out of order", n)
		}
		want := 3 // the first retraction, the last insertion, b
		if 2*n > cancelMax {
			want = 2*n + 1
		}
		if len(got) != want {
			t.Errorf("%d: %d changes are left, want %d", n, len(got), want)
		}
	}
}
