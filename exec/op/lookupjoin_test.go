package op

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/connectors"
	"github.com/streamsql/streamsql/connectors/memory"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// lookupBench is a lookup join of timed rows with a table of timed rows on k.
type lookupBench struct {
	*timedOp
	table *memory.Rows
}

func lookupSpec(bus *memory.Bus, options ...string) LookupJoinSpec {
	t := &catalog.Table{Name: "dim", Options: catalog.NewOptions()}
	for _, c := range timedSchema.Columns {
		t.Columns = append(t.Columns, catalog.Column{Name: c.Name, Type: c.Type})
	}
	t.Options.Set("connector", "memory", diag.Pos{})
	for i := 0; i < len(options); i += 2 {
		t.Options.Set(options[i], options[i+1], diag.Pos{})
	}
	return LookupJoinSpec{Left: timedSchema, Connector: bus.Connector(),
		Lookup: connectors.LookupSpec{Table: t, Columns: []int{0, 1, 2}, Schema: timedSchema, Keys: []int{0}},
		Keys:   []expr.Expr{&expr.Column{Index: 0, Name: "k", T: types.StringType}}, Output: joined(timedSchema, timedSchema)}
}

func newLookupBench(t *testing.T, change func(*LookupJoinSpec), options ...string) *lookupBench {
	t.Helper()
	bus := memory.NewBus()
	spec := lookupSpec(bus, options...)
	if change != nil {
		change(&spec)
	}
	b := &lookupBench{timedOp: newTimedOp(t, NewLookupJoin(spec), 1<<20), table: bus.Rows("dim")}
	t.Cleanup(func() {
		if err := b.op.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// dim replaces the table's rows.
func (b *lookupBench) dim(rows ...string) {
	var all [][]types.Datum
	for _, r := range rows {
		builder := newTimedBatch(b.t)
		timedRow(b.t, builder, r)
		var row []types.Datum
		for _, v := range builder.Finish().Cols {
			row = append(row, v.Datum(0))
		}
		all = append(all, row)
	}
	b.table.Set(all...)
}

func (b *lookupBench) requests(want string) {
	b.t.Helper()
	n, keys := b.table.Requests()
	if got := fmt.Sprintf("%d for %d keys", n, keys); got != want {
		b.t.Fatalf("requests: %s, want %s", got, want)
	}
}

func outer(s *LookupJoinSpec) { s.Outer = true }

func less(t *testing.T) expr.Expr {
	e, err := expr.NewBinary("<", &expr.Column{Index: 2, Name: "v", T: types.BigIntType}, &expr.Column{Index: 5, Name: "v", T: types.BigIntType})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestLookupJoin(t *testing.T) {
	b := newLookupBench(t, nil)
	b.dim("a@1:10", "b@1:20", "b@2:21", "-@3:30")
	b.rows(0, "a@5:1, b@6:2, a@7:3, -@8:4, c@9:5", "+I a@5:1 a@1:10, +I a@7:3 a@1:10, +I b@6:2 b@1:20, +I b@6:2 b@2:21")
	b.requests("1 for 3 keys") // one round trip, no NULL
	b.dim("a@1:11")
	b.rows(0, "-U a@5:1, +U a@5:2, -D b@6:2", "-U a@5:1 a@1:11, +U a@5:2 a@1:11")
}

func TestLookupJoinOuter(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { s.Outer, s.Cond = true, less(t) })
	b.dim("a@1:10", "a@2:20", "b@1:5")
	b.rows(0, "a@5:1, b@6:7, c@7:1, -@8:1, a@9:15", "+I a@5:1 a@1:10, +I a@5:1 a@2:20, +I a@9:15 a@2:20, +I b@6:7 -@-:-, +I c@7:1 -@-:-, +I -@8:1 -@-:-")
	b = newLookupBench(t, func(s *LookupJoinSpec) {
		s.Outer = true
		var err error
		s.Ask, err = expr.NewBinary("=", &expr.Column{Index: 0, Name: "k", T: types.StringType}, &expr.Literal{Value: types.StrDatum("a"), T: types.StringType})
		if err != nil {
			t.Fatal(err)
		}
	})
	b.dim("a@1:10", "b@1:5")
	b.rows(0, "a@5:1, b@6:7", "+I a@5:1 a@1:10, +I b@6:7 -@-:-")
	b.requests("1 for 1 keys")
}

func async(capacity int, unordered bool) func(*LookupJoinSpec) {
	return func(s *LookupJoinSpec) {
		s.Outer, s.Async = true, LookupAsync{Capacity: capacity, Unordered: unordered}
	}
}

// TestLookupJoinAsync: rows leave in order, or as answers come; a watermark and a barrier wait for the rows before them.
func TestLookupJoinAsync(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		b := newLookupBench(t, async(10, unordered))
		b.dim("a@1:10", "b@1:20")
		release := b.table.Hold()
		b.rows(0, "a@1:1", "")
		b.until(1)
		releaseSecond := b.table.Hold() // the first request keeps waiting for release
		b.rows(0, "b@2:2", "")
		// The second answer comes first: it leaves before the first only when the order does not matter.
		second := b.op.(*lookupJoin).queue[1]
		releaseSecond()
		<-second.done
		if err := b.op.(exec.Waker).OnWake(&b.out); err != nil {
			t.Fatal(err)
		}
		if unordered {
			b.expect("wake", "+I b@2:2 b@1:20")
		} else {
			b.expect("wake", "")
		}
		go release()
		if unordered {
			b.mark(5, "+I a@1:1 a@1:10")
		} else {
			b.mark(5, "+I a@1:1 a@1:10, +I b@2:2 b@1:20")
		}
		release = b.table.Hold()
		b.rows(0, "a@3:3, c@3:4", "")
		go release()
		if _, err := b.op.OnBarrier(barrier(1), &b.out); err != nil {
			t.Fatal(err)
		}
		b.expect("barrier", "+I a@3:3 a@1:10, +I c@3:4 -@-:-")
	}
}

// until waits until the table was asked n times.
func (b *lookupBench) until(n int) {
	b.t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); ; {
		if got, _ := b.table.Requests(); got >= n {
			return
		}
		if time.Now().After(deadline) {
			b.t.Fatal("the request does not come")
		}
		time.Sleep(time.Millisecond)
	}
}

// TestLookupJoinCapacity: with as many requests on the way as allowed, the next batch waits.
func TestLookupJoinCapacity(t *testing.T) {
	for _, unordered := range []bool{false, true} {
		b := newLookupBench(t, async(2, unordered))
		b.dim("a@1:10")
		for i := range 50 {
			in := newTimedBatch(t)
			timedRow(t, in, fmt.Sprintf("a@%d:1", i))
			if err := b.op.Process(0, in.Finish(), &b.out); err != nil {
				t.Fatal(err)
			}
			if n := len(b.op.(*lookupJoin).queue); n > 2 {
				t.Fatalf("%d requests on the way", n)
			}
		}
		if err := b.op.OnWatermark(exec.MaxWatermark, &b.out); err != nil {
			t.Fatal(err)
		}
		got := b.out.rows
		if len(got) != 50 || !unordered && (got[0] != "+I a@0:1 a@1:10" || !slices.IsSortedFunc(got, byTime)) {
			t.Fatal(got)
		}
		b.out.rows = nil
	}
}

func byTime(a, b string) int {
	var x, y int
	fmt.Sscanf(a, "+I a@%d", &x)
	fmt.Sscanf(b, "+I a@%d", &y)
	return x - y
}

func TestLookupJoinFailure(t *testing.T) {
	for _, capacity := range []int{0, 3} {
		b := newLookupBench(t, async(capacity, false), "lookup.max-retries", "1")
		b.dim("a@1:10")
		b.table.Fail(errors.New("gone"))
		process := func() error {
			in := newTimedBatch(t)
			timedRow(t, in, "a@5:1")
			err := b.op.Process(0, in.Finish(), &b.out)
			if err == nil {
				err = b.op.OnWatermark(1, &b.out)
			}
			return err
		}
		if err := process(); err != nil { // repeated once
			t.Fatal(err)
		}
		b.expect("row", "+I a@5:1 a@1:10")
		b.table.Fail(errors.New("gone"), errors.New("still gone"))
		if err := process(); err == nil || err.Error() != "still gone" {
			t.Fatal(err)
		}
	}
}

// TestLookupJoinTimeout: an answer that does not come fails the job and says what to do.
func TestLookupJoinTimeout(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) { s.Async = LookupAsync{Capacity: 1, Timeout: time.Millisecond} })
	defer b.table.Hold()()
	in := newTimedBatch(t)
	timedRow(t, in, "a@1:1")
	// The batch itself tells when the time is over before it is through; else the watermark, which waits for the answer.
	err := b.op.Process(0, in.Finish(), &b.out)
	if err == nil {
		err = b.op.OnWatermark(1, &b.out)
	}
	b.expect("row", "")
	var de *diag.Error
	if !errors.As(err, &de) || !strings.Contains(de.Message, "a lookup in table dim took longer than 1ms") || !strings.Contains(de.Hint, "LOOKUP('table'='dim'") {
		t.Fatal(err)
	}
}

// TestLookupJoinRetry: keys without a row are asked for again, and only those.
func TestLookupJoinRetry(t *testing.T) {
	b := newLookupBench(t, func(s *LookupJoinSpec) {
		s.Outer, s.Retry = true, LookupRetry{MaxAttempts: 2, Delay: time.Microsecond}
	})
	b.dim("a@1:10")
	b.rows(0, "a@5:1, b@5:2, c@5:3", "+I a@5:1 a@1:10, +I b@5:2 -@-:-, +I c@5:3 -@-:-")
	b.requests("3 for 7 keys")
}

func TestLookupJoinCache(t *testing.T) {
	b := newLookupBench(t, outer, "lookup.cache", "PARTIAL", "lookup.partial-cache.max-rows", "3",
		"lookup.partial-cache.expire-after-write", "10 s", "lookup.partial-cache.expire-after-access", "4 s")
	b.dim("a@1:10", "b@1:20", "b@2:21", "d@1:30")
	b.rows(0, "a@1:1, c@1:1", "+I a@1:1 a@1:10, +I c@1:1 -@-:-")
	b.requests("1 for 2 keys")
	b.dim("a@1:11", "b@1:20", "b@2:21", "c@1:12", "d@1:30")
	b.rows(0, "a@1:2, c@1:2", "+I a@1:2 a@1:10, +I c@1:2 -@-:-") // both as cached
	b.requests("1 for 2 keys")
	b.rows(0, "b@1:3", "+I b@1:3 b@1:20, +I b@1:3 b@2:21") // two rows: the one used least recently goes
	b.rows(0, "a@1:4, c@1:4", "+I a@1:4 a@1:11, +I c@1:4 -@-:-")
	b.requests("3 for 4 keys")
	b.sub.now = 3000
	b.rows(0, "c@1:5", "+I c@1:5 -@-:-")
	b.sub.now = 6999
	b.rows(0, "c@1:6, a@1:6", "+I c@1:6 -@-:-, +I a@1:6 a@1:11") // a was not asked for during 4 s
	b.requests("4 for 5 keys")
	b.sub.now = 10000
	b.rows(0, "c@1:7", "+I c@1:7 c@1:12") // read 10 s ago
	b.requests("5 for 6 keys")
}

func TestLookupJoinCacheMissing(t *testing.T) {
	b := newLookupBench(t, nil, "lookup.cache", "PARTIAL", "lookup.partial-cache.max-rows", "3", "lookup.partial-cache.cache-missing-key", "false")
	b.rows(0, "a@1:1", "")
	b.dim("a@1:10")
	b.rows(0, "a@1:1", "+I a@1:1 a@1:10")
	b.dim()
	b.rows(0, "a@1:1", "+I a@1:1 a@1:10")
	b.requests("2 for 2 keys")
}

// TestLookupJoinAllocations: rows whose keys are cached take no memory of their own: a batch takes some for its texts and, beside
// the stream, for its request.
func TestLookupJoinAllocations(t *testing.T) {
	for _, capacity := range []int{0, 4} {
		b := newLookupBench(t, async(capacity, false), "lookup.cache", "PARTIAL", "lookup.partial-cache.max-rows", "10000")
		var dim []string
		for i := range 700 {
			dim = append(dim, fmt.Sprintf("key %d@1:%d", i, i))
		}
		b.dim(dim...)
		rows := newTimedBatch(t)
		for i := range batch.Size {
			timedRow(t, rows, fmt.Sprintf("+I key %d@1:%d", i%800, i))
		}
		left, out := rows.Finish(), &countRows{}
		turn := func() {
			if err := b.op.Process(0, left, out); err != nil {
				t.Fatal(err)
			}
			if err := b.op.OnWatermark(1, out); err != nil {
				t.Fatal(err)
			}
		}
		turn()
		if n := testing.AllocsPerRun(10, turn) / batch.Size; n > 0.02 {
			t.Errorf("capacity %d: %v allocations a row", capacity, n)
		}
		if out.rows == 0 || out.rows%batch.Size != 0 {
			t.Errorf("capacity %d: %d rows", capacity, out.rows)
		}
	}
}
