package op

import (
	"encoding/binary"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// sortPlace is the place of an operator without keyed state.
type sortPlace struct{ restored [][]byte }

func (sortPlace) ID() checkpoint.SubtaskID                                { return checkpoint.SubtaskID{Operator: "op"} }
func (sortPlace) Parallelism() int                                        { return 1 }
func (sortPlace) Table(checkpoint.TableOptions) (checkpoint.Table, error) { panic("no keyed state") }
func (a sortPlace) Restored() [][]byte                                    { return a.restored }
func (sortPlace) OwnsKeyGroup(int) bool                                   { return true }
func (sortPlace) Now() int64                                              { return 0 }
func (sortPlace) Counter(string) *exec.Counter                            { return &exec.Counter{} }
func (sortPlace) Log() *slog.Logger                                       { return slog.New(slog.DiscardHandler) }

// sortOut collects emitted rows as text.
type sortOut struct{ rows []string }

func (o *sortOut) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		r := b.Row(i)
		var cols []string
		for _, v := range b.Cols {
			if v.IsNull(r) {
				cols = append(cols, "-")
			} else if v.Type.Phys() == types.PhysStr {
				cols = append(cols, v.Str[v.Idx(r)])
			} else {
				cols = append(cols, fmt.Sprint(v.I64[v.Idx(r)]))
			}
		}
		o.rows = append(o.rows, b.Kind(r).String()+strings.Join(cols, "/"))
	}
	return nil
}

func (o *sortOut) take() string {
	s := strings.Join(o.rows, " ")
	o.rows = nil
	return s
}

var sortSchema = types.NewSchema(types.Column{Name: "k", Type: types.IntType}, types.Column{Name: "s", Type: types.StringType})

// sortRows builds a batch of rows written as kind k/s, "-" being NULL.
func sortRows(t *testing.T, rows string) *batch.Batch {
	t.Helper()
	b := batch.NewBuilder(sortSchema)
	for _, r := range strings.Fields(rows) {
		k, s, _ := strings.Cut(r[2:], "/")
		if k == "-" {
			b.Cols[0].AppendNull()
		} else {
			var n int64
			if _, err := fmt.Sscan(k, &n); err != nil {
				t.Fatal(err)
			}
			b.Cols[0].AppendI64(n)
		}
		if s == "-" {
			b.Cols[1].AppendNull()
		} else {
			b.Cols[1].AppendStr(s)
		}
		kind := map[string]types.RowKind{"+I": types.Insert, "-U": types.UpdateBefore, "+U": types.UpdateAfter, "-D": types.Delete}[r[:2]]
		b.RowKindDone(kind)
	}
	return b.Finish()
}

func runRows(t *testing.T, o exec.Operator, restored [][]byte, batches ...string) *sortOut {
	t.Helper()
	return runRowsAt(t, o, sortPlace{restored}, batches...)
}

func runRowsAt(t *testing.T, o exec.Operator, place exec.Subtask, batches ...string) *sortOut {
	t.Helper()
	if err := o.Open(place); err != nil {
		t.Fatal(err)
	}
	out := &sortOut{}
	for _, b := range batches {
		if err := o.Process(0, sortRows(t, b), out); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

// ORDER BY emits at the end of the input only; NULLs and ties are where they belong.
func TestSortOrders(t *testing.T) {
	rows := "+I2/b +I-/x +I1/a +I2/a +I1/-"
	for _, c := range []struct {
		keys          []SortKey
		limit, offset int64
		want          string
	}{
		{nil, -1, 0, "+I2/b +I-/x +I1/a +I2/a +I1/-"},
		{[]SortKey{{Col: 0}}, -1, 0, "+I1/a +I1/- +I2/b +I2/a +I-/x"},
		{[]SortKey{{Col: 0, NullsFirst: true}}, -1, 0, "+I-/x +I1/a +I1/- +I2/b +I2/a"},
		{[]SortKey{{Col: 0, Desc: true}, {Col: 1, NullsFirst: true}}, -1, 0, "+I2/a +I2/b +I1/- +I1/a +I-/x"},
		{[]SortKey{{Col: 0}}, 2, 1, "+I1/- +I2/b"},
		{[]SortKey{{Col: 0}}, 0, 0, ""},
		{[]SortKey{{Col: 0}}, 5, 9, ""},
	} {
		o := NewSort(SortSpec{Input: sortSchema, Keys: c.keys, Limit: c.limit, Offset: c.offset})()
		out := runRowsAt(t, o, newSubtask(t, 32<<10), rows)
		if err := o.OnWatermark(1000, out); err != nil || out.rows != nil {
			t.Fatalf("rows before the end: %v %v", out.rows, err)
		}
		if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
			t.Fatal(err)
		}
		if got := out.take(); got != c.want {
			t.Errorf("%+v limit %d offset %d\n got %s\nwant %s", c.keys, c.limit, c.offset, got, c.want)
		}
	}
}

// Updates and deletions cancel the rows they retract, whatever order they come in; what is left is emitted as inserts.
func TestSortRetracts(t *testing.T) {
	o := NewSort(SortSpec{Input: sortSchema, InputMode: types.Retract, Keys: []SortKey{{Col: 0}}, Limit: -1})()
	out := runRowsAt(t, o, newSubtask(t, 32<<10), "+I1/a +I1/a -U1/a +U5/a", "-D3/c +I3/c +I4/d")
	if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.take(), "+I1/a +I4/d +I5/a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The state of a barrier resumes the sort: rows, retractions that came first, and that the rows were emitted already.
func TestSortState(t *testing.T) {
	spec := SortSpec{Input: sortSchema, InputMode: types.Retract, Keys: []SortKey{{Col: 0}}, Limit: -1}
	o, place := NewSort(spec)(), newStateHarness(t, 32<<10)
	runRowsAt(t, o, place, "+I2/b -D7/z +I1/-")
	st, err := o.OnBarrier(checkpoint.Barrier{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, place.restored = NewSort(spec)(), [][]byte{st}
	place.seal()
	place.restart()
	out := runRowsAt(t, o, place, "+I7/z +I3/c")
	if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.take(), "+I1/- +I2/b +I3/c"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if st, err = o.OnBarrier(checkpoint.Barrier{}, nil); err != nil {
		t.Fatal(err)
	}
	o, place.restored = NewSort(spec)(), [][]byte{st}
	place.seal()
	place.restart()
	out = runRowsAt(t, o, place)
	if err := o.OnWatermark(exec.MaxWatermark, out); err != nil || out.rows != nil {
		t.Errorf("emitted rows came again: %v %v", out.rows, err)
	}
	for _, damaged := range [][]byte{{200}, append(make([]byte, sortHead), 200), append(make([]byte, sortHead), 1, 1, 1), {2, 9}} {
		place := newSubtask(t, 32<<10)
		place.restored = [][]byte{damaged}
		if err := NewSort(spec)().Open(place); err == nil {
			t.Errorf("damaged state %v was accepted", damaged)
		}
	}
}

// The state of a time when rows were no keyed state is read.
func TestSortOldState(t *testing.T) {
	var st []byte
	b := sortRows(t, "+I2/b +I1/- -D7/z +I1/a")
	for r := range b.N {
		row := appendRow(nil, b, r)
		n := uint64(len(row)) << 1
		if b.Kind(r).IsRetract() {
			n++
		}
		st = append(binary.AppendUvarint(st, n), row...)
	}
	place := newSubtask(t, 32<<10)
	place.restored = [][]byte{st}
	o := NewSort(SortSpec{Input: sortSchema, InputMode: types.Retract, Keys: []SortKey{{Col: 0}}, Limit: -1})()
	out := runRowsAt(t, o, place, "+I7/z +I1/b")
	if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.take(), "+I1/- +I1/a +I1/b +I2/b"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// A limit keeps memory bounded: rows that cannot be in the result are forgotten.
func TestSortForgets(t *testing.T) {
	o := NewSort(SortSpec{Input: sortSchema, Keys: []SortKey{{Col: 0, Desc: true}}, Limit: 2})().(*sorter)
	if err := o.Open(newSubtask(t, 32<<10)); err != nil {
		t.Fatal(err)
	}
	var rows []string
	for i := range 3 * batch.Size {
		rows = append(rows, fmt.Sprintf("+I%d/x", (i*7919)%100003))
		if len(rows) == 512 {
			if err := o.Process(0, sortRows(t, strings.Join(rows, " ")), nil); err != nil {
				t.Fatal(err)
			}
			rows = nil
			if n := len(o.rows.entries); n > batch.Size {
				t.Fatalf("%d rows are held", n)
			}
		}
	}
	out := &sortOut{}
	if err := o.OnWatermark(exec.MaxWatermark, out); err != nil {
		t.Fatal(err)
	}
	best, second := int64(0), int64(0)
	for i := range 3 * batch.Size {
		if v := int64((i * 7919) % 100003); v > best {
			best, second = v, best
		} else if v > second {
			second = v
		}
	}
	if got, want := out.take(), fmt.Sprintf("+I%d/x +I%d/x", best, second); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// LIMIT counts across batches and restores.
func TestLimit(t *testing.T) {
	spec := LimitSpec{Limit: 3, Offset: 2}
	o := NewLimit(spec)()
	out := runRows(t, o, nil, "+I1/a", "+I2/a +I3/a")
	st, err := o.OnBarrier(checkpoint.Barrier{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o = NewLimit(spec)()
	rest := runRows(t, o, [][]byte{st}, "+I4/a +I5/a +I6/a", "+I7/a")
	if got, want := out.take()+" | "+rest.take(), "+I3/a | +I4/a +I5/a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// Only -U rows are left out.
func TestDropUpdateBefore(t *testing.T) {
	out := runRows(t, NewDropUpdateBefore()(), nil, "+I1/a -U1/a +U2/a -D2/a", "-U3/a", "+I4/a")
	if got, want := out.take(), "+I1/a +U2/a -D2/a +I4/a"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
