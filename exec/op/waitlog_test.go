package op

import (
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

// waitModel is what a waitLog is to hold: rows "key|n", of each key in the order in which they are to leave.
type waitModel struct {
	t      *testing.T
	byTime bool
	rows   []waitModelRow
	left   int64
}

type waitModelRow struct {
	key         string
	time, until int64
	n           int
	kind        types.RowKind
}

// take removes the rows that leave, by key.
func (m *waitModel) take(upTo int64) map[string][]waitModelRow {
	out := map[string][]waitModelRow{}
	m.rows = slices.DeleteFunc(m.rows, func(r waitModelRow) bool {
		if r.until > upTo {
			return false
		}
		out[r.key] = append(out[r.key], r)
		return true
	})
	for _, rs := range out {
		if m.byTime {
			slices.SortStableFunc(rs, func(a, b waitModelRow) int { return compare(a.time, b.time) })
		}
	}
	m.left = max(m.left, upTo)
	return out
}

// TestWaitLog compares a waitLog with a model: rows late and early, few and many, with time that goes on in steps of any
// size, through restarts and with state on disk.
func TestWaitLog(t *testing.T) {
	for seed := range uint64(8) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			w := newWaitTest(t, r, seed%2 == 0)
			for range 40 {
				w.add(1 + r.IntN([]int{3, 300, 3000}[r.IntN(3)]))
				if r.IntN(3) > 0 {
					w.leave(w.m.left + 1 + r.Int64N(w.spread))
				}
				if r.IntN(8) == 0 {
					w.restart()
				}
			}
			w.leave(maxTime)
			if n := w.log.table.Len(); n > checkpoint.KeyGroups || len(w.log.slices) > 0 || len(w.m.rows) > 0 {
				t.Fatalf("%d chunks and %d slices are left", n, len(w.log.slices))
			}
		})
	}
}

type waitTest struct {
	t      *testing.T
	r      *rand.Rand
	s      *stateHarness
	log    *waitLog
	m      *waitModel
	spread int64
	keys   int
	n      int
	in     *batch.Builder
	enc    *exec.KeyEncoder
}

func newWaitTest(t *testing.T, r *rand.Rand, byTime bool) *waitTest {
	w := &waitTest{t: t, r: r, s: newStateHarness(t, 256<<10), m: &waitModel{t: t, byTime: byTime, left: 1000},
		spread: []int64{2, 20, 5000, 10_000_000}[r.IntN(4)], keys: []int{1, 50, 5000}[r.IntN(3)], in: newTimedBatch(t), enc: exec.NewKeyEncoder([]int{0})}
	w.open()
	w.leave(1000)
	return w
}

func (w *waitTest) open() {
	var err error
	if w.log, err = openWaitLog(w.s, "rows", timedSchema, w.m.byTime); err != nil {
		w.t.Fatal(err)
	}
	w.log.pass, w.log.peers = 32<<10, w.m.byTime
}

func (w *waitTest) restart() {
	if err := w.log.save(); err != nil {
		w.t.Fatal(err)
	}
	w.s.seal()
	w.s.restart()
	w.open()
}

// add adds rows, some of them behind the time that has passed: they wait for the next one.
func (w *waitTest) add(n int) {
	for ; n > 0; n -= batch.Size {
		w.in.Reset()
		var places []int32
		for i := range min(n, batch.Size) {
			w.n++
			row := waitModelRow{key: fmt.Sprint("k", w.r.IntN(w.keys)), time: w.m.left - w.spread/10 + w.r.Int64N(w.spread), n: w.n, kind: types.RowKind(w.r.IntN(4))}
			row.until = max(row.time, w.m.left+1)
			w.in.Cols[0].AppendStr(row.key)
			w.in.Cols[1].AppendI64(row.time * 1000)
			if w.n%7 == 0 {
				w.in.Cols[2].AppendNull()
			} else {
				w.in.Cols[2].AppendI64(int64(w.n))
			}
			w.in.RowKindDone(row.kind)
			if w.r.IntN(10) > 0 {
				places = append(places, int32(i))
				w.m.rows = append(w.m.rows, row)
			}
		}
		b := w.in.Finish()
		var keys checkpoint.Keys
		w.enc.Encode(b, &keys)
		times, err := rowtimes(nil, b, timedSchema, 1)
		if err == nil {
			err = w.log.add(b, places, keys.Hashes, times, 0)
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *waitTest) leave(upTo int64) {
	w.t.Helper()
	if first, ok := w.log.next(); ok != (len(w.m.rows) > 0) && ok || slices.ContainsFunc(w.m.rows, func(r waitModelRow) bool { return r.until < first }) {
		w.t.Fatalf("the first time is %d, %v", first, ok)
	}
	want := w.m.take(upTo)
	var c rowCollector
	got := map[string][]string{}
	entered, batches := map[string]int{}, map[string]int{} // of each row; of each key and time the batch
	n := 0
	err := w.log.leave(upTo, func(b *batch.Batch, times []int64) error {
		if err := c.Emit(b); err != nil {
			return err
		}
		n++
		for i, row := range c.take() {
			f := strings.Split(row, "|")
			peers := fmt.Sprint(f[1], " ", times[i])
			switch w.log.phase {
			case waitEnter:
				entered[row]++
				continue
			case waitResults:
				entered[row]--
			case waitWhole:
				if at := batches[peers]; w.log.peers && at != 0 && at != n {
					w.t.Fatalf("rows of %s come in two batches", peers)
				}
				batches[peers] = n
			}
			got[f[1]] = append(got[f[1]], fmt.Sprint(f[0], " ", times[i], " ", f[3]))
		}
		return nil
	})
	for row, n := range entered {
		if n != 0 {
			w.t.Fatalf("%s enters and leaves %d times", row, n)
		}
	}
	if err != nil {
		w.t.Fatal(err)
	}
	if len(got) != len(want) {
		w.t.Fatalf("up to %d rows of %d keys leave, want %d", upTo, len(got), len(want))
	}
	for key, rows := range want {
		var texts []string
		for _, r := range rows {
			n := fmt.Sprint(r.n)
			if r.n%7 == 0 {
				n = "NULL"
			}
			texts = append(texts, fmt.Sprint(r.kind, " ", r.time, " ", n))
		}
		if !slices.Equal(got[key], texts) {
			w.t.Fatalf("up to %d of key %s:\n%q leave, want\n%q", upTo, key, got[key], texts)
		}
	}
}

// TestWaitLogAllocations: rows that come and leave allocate nothing in the steady state but the texts of a batch.
func TestWaitLogAllocations(t *testing.T) {
	s, bs := benchBatches(1000)
	log, err := openWaitLog(newSubtask(t, 1<<30), "rows", s, true)
	if err != nil {
		t.Fatal(err)
	}
	var keys checkpoint.Keys
	var times []int64
	var places []int32
	for i := range batch.Size {
		places = append(places, int32(i))
	}
	e, enc, n := &endless{bs: bs}, exec.NewKeyEncoder([]int{0}), 0
	visit := func(b *batch.Batch, _ []int64) error { n += b.Len(); return nil }
	turn := func() {
		for range benchTurn {
			b, w := e.next()
			enc.Encode(b, &keys)
			if times, err = rowtimes(times, b, s, 2); err == nil {
				err = log.add(b, places, keys.Hashes, times, 0)
			}
			if err == nil {
				err = log.leave(int64(w)-10_000, visit)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	for range 4 * len(bs) / benchTurn {
		turn()
	}
	if a := testing.AllocsPerRun(5, turn) / (benchTurn * batch.Size); a > 0.05 || n == 0 {
		t.Errorf("%.3f allocations per row, %d rows", a, n)
	}
}
