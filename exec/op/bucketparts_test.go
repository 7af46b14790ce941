package op

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// Rows of a key and window that are larger than the budget: window_end, k, v and a text that takes room.
var largeInput = types.NewSchema(types.Column{Name: "window_end", Type: types.TimestampMs}, types.Column{Name: "k", Type: types.BigIntType},
	types.Column{Name: "v", Type: types.BigIntType}, types.Column{Name: "text", Type: types.StringType})

// largeRows gives o n rows of key k in the window that ends at 1000, with v = 0, step, 2·step…
func largeRows(t *testing.T, o exec.Operator, port int, k int64, n, step int) {
	t.Helper()
	b := batch.NewBuilder(largeInput)
	for i := range n {
		b.Cols[0].AppendI64(1000_000)
		b.Cols[1].AppendI64(k)
		b.Cols[2].AppendI64(int64(i * step))
		b.Cols[3].AppendStr(strings.Repeat("x", 600))
		b.RowDone()
		if b.Len() == 100 || i == n-1 {
			if err := o.Process(port, b.Finish(), nil); err != nil {
				t.Fatal(err)
			}
			b.Reset()
		}
	}
}

// valueCollector keeps some BIGINT columns of what is emitted.
type valueCollector struct {
	s    *testSubtask
	cols []int
	rows []string
}

func (c *valueCollector) Emit(b *batch.Batch) error {
	c.s.Now() // looks at the memory
	vals := make([]any, len(c.cols))
	for i := range b.Len() {
		r := b.Row(i)
		for j, col := range c.cols {
			vals[j] = nil
			if v := b.Cols[col]; !v.IsNull(r) {
				vals[j] = v.I64[v.Idx(r)]
			}
		}
		c.rows = append(c.rows, fmt.Sprint(vals...))
	}
	return nil
}

// A session that does not fit in memory leaves whole and in order.
func TestSessionRowsLarge(t *testing.T) {
	const budget, n = 256 << 10, 4000
	s := newSubtask(t, budget)
	o := openOp(t, NewWindowTVF(WindowTVFSpec{Input: largeInput, Window: Window{Kind: Session, Time: 0, Size: 1000}, Keys: []int{1}, Output: withWindow(largeInput)}), s)
	var want []string
	for _, k := range []int64{1, 2} {
		largeRows(t, o, 0, k, n, 1)
		for v := range n {
			want = append(want, fmt.Sprint(k, v))
		}
	}
	s.peak = 0
	c := &valueCollector{s: s, cols: []int{1, 2}}
	advanceOver(t, o, c, int64(exec.MaxWatermark))
	if !slices.Equal(c.rows, want) {
		t.Errorf("%d rows, want %d in order", len(c.rows), len(want))
	}
	if s.peak > 4*budget {
		t.Errorf("%d bytes of state were in memory, the budget is %d", s.peak, budget)
	}
}
