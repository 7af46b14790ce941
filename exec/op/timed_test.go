package op

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// The rows of the tests of joins by time: k STRING, ts TIMESTAMP(3), v BIGINT, written "[kind] k@ts:v" with ts in ms and
// "-" for NULL. A joined row is the left one, a space, the right one.
var timedSchema = types.NewSchema(types.Column{Name: "k", Type: types.StringType},
	types.Column{Name: "ts", Type: types.TimestampMs}, types.Column{Name: "v", Type: types.BigIntType})

func newTimedBatch(testing.TB) *batch.Builder { return batch.NewBuilder(timedSchema) }

func joined(a, b *types.Schema) *types.Schema {
	return types.NewSchema(append(slices.Clone(a.Columns), b.Columns...)...)
}

func timedRow(t testing.TB, b *batch.Builder, text string) {
	t.Helper()
	kind := types.Insert
	if k, rest, ok := strings.Cut(text, " "); ok {
		text = rest
		kind = map[string]types.RowKind{"+I": types.Insert, "-U": types.UpdateBefore, "+U": types.UpdateAfter, "-D": types.Delete}[k]
	}
	k, rest, ok := strings.Cut(text, "@")
	ts, v, ok2 := strings.Cut(rest, ":")
	if !ok || !ok2 {
		t.Fatalf("row %q is not k@ts:v", text)
	}
	if k == "-" {
		b.Cols[0].AppendNull()
	} else {
		b.Cols[0].AppendStr(k)
	}
	for i, s := range []string{ts, v} {
		n, err := strconv.ParseInt(s, 10, 64)
		switch {
		case s == "-":
			b.Cols[1+i].AppendNull()
		case err != nil:
			t.Fatal(err)
		case i == 0:
			b.Cols[1].AppendI64(n * 1000)
		default:
			b.Cols[2].AppendI64(n)
		}
	}
	b.RowKindDone(kind)
}

// timedCollector keeps rows as text.
type timedCollector struct{ rows []string }

func (c *timedCollector) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		r := b.Row(i)
		s := b.Kind(r).String()
		for j, v := range b.Cols {
			text := "-"
			switch {
			case v.IsNull(r):
			case v.Type.Phys() == types.PhysStr:
				text = v.Str[v.Idx(r)]
			case v.Type.Kind == types.Timestamp:
				text = strconv.FormatInt(v.I64[v.Idx(r)]/1000, 10)
			default:
				text = strconv.FormatInt(v.I64[v.Idx(r)], 10)
			}
			s += string(" @:"[j%3]) + text
		}
		c.rows = append(c.rows, s)
	}
	return nil
}

// timedOp drives an operator by lines of text.
type timedOp struct {
	t    testing.TB
	make func() exec.Operator
	sub  *testSubtask
	op   exec.Operator
	out  timedCollector

	owner       *checkpoint.Owner
	budget      int64
	checkpoints checkpoint.ID
}

func newTimedOp(t testing.TB, f func() exec.Operator, budget int64) *timedOp {
	t.Helper()
	o := &timedOp{t: t, make: f, owner: checkpoint.OwnMemory(), budget: budget}
	t.Cleanup(func() { o.sub.backend.Close(); o.owner.Close() })
	o.sub = &testSubtask{backend: o.backend(nil), counters: map[string]*exec.Counter{}}
	o.op = openOp(t, f, o.sub)
	return o
}

func (o *timedOp) backend(files []checkpoint.StateFile) *checkpoint.Backend {
	o.t.Helper()
	b, err := checkpoint.OpenBackend(o.owner, "op-0", checkpoint.BackendOptions{Budget: checkpoint.NewMemoryBudget(o.budget)})
	if err != nil {
		o.t.Fatal(err)
	}
	if files != nil {
		if err := b.Restore(o.t.Context(), files); err != nil {
			o.t.Fatal(err)
		}
	}
	return b
}

// rows puts a batch into port and checks what leaves: want is the rows in order, separated by ", ".
func (o *timedOp) rows(port int, in, want string) {
	o.t.Helper()
	b := batch.NewBuilder(timedSchema)
	for _, r := range strings.Split(in, ", ") {
		timedRow(o.t, b, r)
	}
	if err := o.op.Process(port, b.Finish(), &o.out); err != nil {
		o.t.Fatal(err)
	}
	o.expect(fmt.Sprintf("port %d: %s", port, in), want)
}

// mark moves event time.
func (o *timedOp) mark(w exec.Watermark, want string) {
	o.t.Helper()
	if err := o.op.OnWatermark(w, &o.out); err != nil {
		o.t.Fatal(err)
	}
	o.expect(fmt.Sprintf("watermark %d", w), want)
}

// expect compares what left: the order within a key counts, that of keys does not.
func (o *timedOp) expect(what, want string) {
	o.t.Helper()
	byKey := func(a, b string) int { return strings.Compare(rowKey(a), rowKey(b)) }
	got := o.out.rows
	o.out.rows = nil
	slices.SortStableFunc(got, byKey)
	var wants []string
	if want != "" {
		wants = strings.Split(want, ", ")
	}
	slices.SortStableFunc(wants, byKey)
	if !slices.Equal(got, wants) {
		o.t.Fatalf("%s\n got  %s\n want %s", what, strings.Join(got, ", "), strings.Join(wants, ", "))
	}
}

// rowKey is the key of a joined row as text.
func rowKey(s string) string {
	f := strings.Fields(s)
	if strings.HasPrefix(f[1], "-@-:-") {
		return f[2][:1]
	}
	return f[1][:1]
}

func barrier(id checkpoint.ID) checkpoint.Barrier { return checkpoint.Barrier{ID: id} }

// restart checkpoints the operator and goes on with a new one, in another process as it were.
func (o *timedOp) restart() {
	o.t.Helper()
	o.checkpoints++
	state, err := o.op.OnBarrier(checkpoint.Barrier{ID: o.checkpoints}, &o.out)
	if err != nil {
		o.t.Fatal(err)
	}
	o.expect("barrier", "")
	seal, err := o.sub.backend.Seal(o.checkpoints)
	if err != nil {
		o.t.Fatal(err)
	}
	files, err := seal(o.t.Context())
	if err != nil {
		o.t.Fatal(err)
	}
	if err := o.sub.backend.Close(); err != nil {
		o.t.Fatal(err)
	}
	next := &testSubtask{backend: o.backend(files), now: o.sub.now, counters: o.sub.counters, restored: [][]byte{state}}
	o.sub, o.op = next, openOp(o.t, o.make, next)
}
