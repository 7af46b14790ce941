package op

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// temporalModel is a temporal join by the definition: a list of what was said of each key.
type temporalModel struct {
	outer     bool
	versions  map[string][]modelVersion
	waiting   []modelLeft
	watermark int
}

type modelVersion struct {
	at   int
	gone bool
	text string
}

type modelLeft struct {
	key, text string
	at        int
}

// take takes the waiting rows out whose time is not after to, joined.
func (m *temporalModel) take(to int) string {
	var out []string
	m.waiting = slices.DeleteFunc(m.waiting, func(r modelLeft) bool {
		if r.at > to {
			return false
		}
		best := modelVersion{at: -1, gone: true}
		for _, v := range m.versions[r.key] {
			if v.at <= r.at && v.at >= best.at {
				best = v
			}
		}
		if !best.gone {
			out = append(out, "+I "+r.text+" "+best.text)
		} else if m.outer {
			out = append(out, "+I "+r.text+" -@-:-")
		}
		return true
	})
	return strings.Join(out, ", ")
}

// TestTemporalJoinModel compares random streams, with restarts and a table that ends at some time, with the model.
func TestTemporalJoinModel(t *testing.T) {
	for seed := range uint64(60) {
		r := rand.New(rand.NewPCG(seed, 7))
		m := &temporalModel{outer: r.IntN(2) == 0, versions: map[string][]modelVersion{}}
		o := newTimedOp(t, NewTemporalJoin(temporal(m.outer)), 1<<20)
		ended, v := false, 0
		row := func(kinds ...string) (key string, at int, kind, text string) {
			key, at, kind = string(rune('a'+r.IntN(5))), max(1, m.watermark-3+r.IntN(20)), kinds[r.IntN(len(kinds))]
			v++
			return key, at, kind, fmt.Sprintf("%s@%d:%d", key, at, v)
		}
		for range 40 {
			var rows []string
			switch op := r.IntN(8); {
			case op < 3:
				for range 1 + r.IntN(6) {
					key, at, _, text := row("+I")
					if rows = append(rows, text); at > m.watermark {
						m.waiting = append(m.waiting, modelLeft{key, text, at})
					}
				}
				want := ""
				if ended {
					want = m.take(1 << 30)
				}
				o.rows(0, strings.Join(rows, ", "), want)
			case op < 5 && !ended:
				for range 1 + r.IntN(3) {
					key, at, kind, text := row("+I", "+U", "-D")
					rows = append(rows, kind+" "+text)
					m.versions[key] = append(m.versions[key], modelVersion{at, kind == "-D", text})
				}
				o.rows(1, strings.Join(rows, ", "), "")
			case op == 5:
				m.watermark += r.IntN(12)
				o.mark(exec.Watermark(m.watermark), m.take(m.watermark))
			case op == 6:
				o.restart()
				if ended { // said again, as by the runtime
					o.end(1, "")
				}
			case op == 7 && !ended && r.IntN(3) == 0:
				ended = true
				o.end(1, m.take(1<<30))
			}
		}
		o.mark(exec.MaxWatermark, m.take(1<<30))
	}
}

// end ends event time on a port.
func (o *timedOp) end(port int, want string) {
	o.t.Helper()
	if err := o.op.(exec.PortEnder).OnPortEnd(port, &o.out); err != nil {
		o.t.Fatal(err)
	}
	o.expect(fmt.Sprintf("the end of port %d", port), want)
}

// TestVersionCache: what was put is found until its key is forgotten, or the cache is full and begins a batch.
func TestVersionCache(t *testing.T) {
	c := newVersionCache(timedSchema)
	const n = versionCacheRows
	hash := func(i int) uint64 { return uint64(i/2) * 0x9e3779b97f4a7c15 } // of two keys each
	key := func(i int) []byte { return fmt.Appendf(nil, "key %d", i) }
	for i := range n {
		c.put(hash(i), key(i), int64(i), int64(i)+10, int32(i))
	}
	for i := range n {
		if row, ok := c.at(hash(i), key(i), int64(i)+9); !ok || row != int32(i) {
			t.Fatalf("key %d has row %d, %v", i, row, ok)
		}
		if i%500 != 0 {
			continue
		}
		if _, ok := c.at(hash(i), key(i), int64(i)+10); ok {
			t.Fatalf("key %d is valid after its time", i)
		}
		c.forget(hash(i), key(i))
		if _, ok := c.at(hash(i), key(i), int64(i)); ok {
			t.Fatalf("key %d is not forgotten", i)
		}
	}
	c.begin()
	if _, ok := c.at(hash(1), key(1), 1); ok {
		t.Error("the cache is full and stays so")
	}
}

// TestTemporalJoinAllocations: rows whose table has ended take no memory of their own.
func TestTemporalJoinAllocations(t *testing.T) {
	s := newSubtask(t, 1<<30)
	o := openOp(t, NewTemporalJoin(temporal(true)), s).(*temporalJoin)
	rows := func(keys int) *batch.Batch {
		b := newTimedBatch(t)
		for i := range batch.Size {
			b.Cols[0].AppendStr(fmt.Sprint(i % keys))
			b.Cols[1].AppendI64(int64(1+i) * 1000)
			b.Cols[2].AppendI64(int64(i))
			b.RowKindDone(types.Insert)
		}
		return b.Finish()
	}
	out := &countRows{}
	if err := o.Process(1, rows(700), out); err != nil {
		t.Fatal(err)
	}
	if err := o.OnPortEnd(1, out); err != nil {
		t.Fatal(err)
	}
	left := rows(800)
	for i := range left.Cols[1].I64 {
		left.Cols[1].I64[i] = 1e9
	}
	if n := testing.AllocsPerRun(10, func() {
		if err := o.Process(0, left, out); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("%v allocations a batch", n)
	}
	if out.rows == 0 {
		t.Error("no rows")
	}
}
