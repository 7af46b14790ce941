package op

// Goal: rows of a mini-batch wait no longer than they may, and keep nothing of the source's memory alive. Method: the operator with
// a clock by hand. That what it emits is right is tested with insertJoin's: the same random inputs go through both.

import (
	"fmt"
	"testing"
	"unsafe"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

func miniJoinRows(from, n int) *batch.Batch {
	b := batch.NewBuilder(types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "s", Type: types.StringType}))
	for i := range n {
		b.Cols[0].AppendI64(int64(from + i))
		b.Cols[1].AppendStr("a text")
		b.RowDone()
	}
	return b.Finish()
}

func openMiniJoin(t *testing.T, kind JoinKind, mini MiniBatch) (*miniJoin, *testSubtask) {
	t.Helper()
	s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "s", Type: types.StringType})
	side := JoinInput{Schema: s, Keys: []int{0}, InsertOnly: true}
	spec := JoinSpec{Kind: kind, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s), Mini: mini}
	if kind.HalfJoin() {
		spec.Output = s
	}
	sub := newSubtask(t, 64<<20)
	return openOp(t, NewJoin(spec), sub).(*miniJoin), sub
}

// Rows leave when there are enough, in time, before a watermark and before a barrier.
func TestMiniJoinLeaves(t *testing.T) {
	for name, settle := range map[string]func(j *miniJoin, out exec.Emitter) error{
		"size":      func(j *miniJoin, out exec.Emitter) error { return j.Process(1, miniJoinRows(50, 8), out) },
		"time":      func(j *miniJoin, out exec.Emitter) error { return j.OnTimer(1500, out) },
		"watermark": func(j *miniJoin, out exec.Emitter) error { return j.OnWatermark(1, out) },
	} {
		j, sub := openMiniJoin(t, InnerJoin, MiniBatch{Size: 20, Latency: 500})
		sub.now = 1000
		if _, ok := j.NextTimer(); ok {
			t.Fatal("a timer without rows")
		}
		out := &countRows{}
		for port := range 2 {
			if err := j.Process(port, miniJoinRows(0, 6), out); err != nil {
				t.Fatal(err)
			}
		}
		if at, ok := j.NextTimer(); !ok || at != 1500 || out.rows != 0 {
			t.Fatalf("%d rows left, the others are due at %d, %t", out.rows, at, ok)
		}
		if err := settle(j, out); err != nil {
			t.Fatal(err)
		}
		if _, ok := j.NextTimer(); ok || out.rows != 6 {
			t.Errorf("%s: %d rows left, want 6; a timer: %t", name, out.rows, ok)
		}
	}
}

// However large a mini-batch may be, no more rows and texts wait than are good for the cache, and what leaves is in batches.
func TestMiniJoinBounds(t *testing.T) {
	for _, kind := range []JoinKind{LeftJoin, SemiJoin, AntiJoin} {
		j, _ := openMiniJoin(t, kind, MiniBatch{Size: 1 << 30, Latency: 1000})
		out := &sizedBatches{}
		for i := range 2 * miniRows / batch.Size {
			for port := range 2 {
				if err := j.Process(port, miniJoinRows(i*batch.Size, batch.Size), out); err != nil {
					t.Fatal(err)
				}
			}
			if n := j.rows(); n >= miniRows {
				t.Fatalf("%d rows wait", n)
			}
		}
		if out.most > batch.Size || out.rows == 0 && kind != AntiJoin {
			t.Errorf("%v: %d rows, at most %d in a batch", kind, out.rows, out.most)
		}
	}
}

type sizedBatches struct{ rows, most int }

func (s *sizedBatches) Emit(b *batch.Batch) error {
	s.rows, s.most = s.rows+b.Len(), max(s.most, b.Len())
	return nil
}

// Texts that wait are copies.
func TestHeldInputCopies(t *testing.T) {
	b := miniJoinRows(0, 3)
	b.Sel = []int32{0, 2}
	var h heldInput
	h.open(types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "s", Type: types.StringType}))
	for range 2 {
		h.add(b)
		h.add(b)
		held := h.rows.Finish()
		if held.N != 4 || h.texts.bytes != 4*len("a text") || held.Cols[0].I64[3] != 2 {
			t.Fatalf("%d rows with %d bytes of texts, the last of key %d", held.N, h.texts.bytes, held.Cols[0].I64[3])
		}
		for _, s := range held.Cols[1].Str {
			if s != "a text" || unsafe.StringData(s) == unsafe.StringData(b.Cols[1].Str[0]) {
				t.Fatalf("%q is not a copy", s)
			}
		}
		if h.forget(); h.rows.Len() != 0 || h.texts.bytes != 0 {
			t.Fatal("rows were not forgotten")
		}
	}
}

// Texts that left are good when the memory of those that waited is used again: when few leave, when most do, and when a condition
// has read them.
func TestMiniJoinTexts(t *testing.T) {
	for name, c := range map[string]struct {
		kind        JoinKind
		every, want int
		port        int // whose rows come second and find matches
		cond        bool
		reused      bool
	}{
		"few":       {kind: InnerJoin, every: 10, want: 10, reused: true},
		"most":      {kind: InnerJoin, every: 1, want: 100, port: 1},
		"unmatched": {kind: LeftJoin, every: 10, want: 100},
		"semi":      {kind: SemiJoin, every: 10, want: 10, reused: true},
		"condition": {kind: InnerJoin, every: 10, want: 10, cond: true},
	} {
		s := types.NewSchema(types.Column{Name: "k", Type: types.BigIntType}, types.Column{Name: "s", Type: types.StringType})
		side := JoinInput{Schema: s, Keys: []int{0}, InsertOnly: true}
		spec := JoinSpec{Kind: c.kind, Left: side, Right: side, NullSafe: []bool{false}, Output: concat(s, s), Mini: MiniBatch{Size: 1000, Latency: 1000}}
		if c.kind.HalfJoin() {
			spec.Output = s
		}
		if c.cond {
			text := &expr.Column{Index: 1, Name: "s", T: types.StringType}
			is, err := expr.NewBinary("<>", text, &expr.Literal{T: types.StringType, Value: types.Datum{Str: "-"}})
			if err != nil {
				t.Fatal(err)
			}
			spec.Cond = is
		}
		j := openOp(t, NewJoin(spec), newSubtask(t, 64<<20)).(*miniJoin)
		input := func(round, n, step int, side string) *batch.Batch {
			b := batch.NewBuilder(s)
			for i := 0; i < n; i += step {
				b.Cols[0].AppendI64(int64(1000*round + i))
				b.Cols[1].AppendStr(fmt.Sprint(side, " ", round, " ", i))
				b.RowDone()
			}
			return b.Finish()
		}
		kept := &keptTexts{}
		var mem *byte
		for round := range 4 {
			for _, in := range []struct {
				port int
				b    *batch.Batch
			}{{1, input(round, 100, c.every, "right")}, {0, input(round, 100, 1, "left")}} {
				if err := j.Process(in.port, in.b, kept); err != nil {
					t.Fatal(err)
				}
			}
			was := unsafe.SliceData(j.held[c.port].texts.mem)
			if reused := was == mem; round > 0 && reused != c.reused {
				t.Errorf("%s: the memory was used again: %t", name, reused)
			}
			mem = was
			if err := j.OnWatermark(1, kept); err != nil {
				t.Fatal(err)
			}
		}
		if len(kept.keys) != 4*c.want {
			t.Fatalf("%s: %d rows, want %d", name, len(kept.keys), 4*c.want)
		}
		for i, k := range kept.keys {
			want := []string{fmt.Sprint("left ", k/1000, " ", k%1000), fmt.Sprint("right ", k/1000, " ", k%1000)}
			for side, got := range kept.texts[i] {
				if got != want[side] && (got != "" || side == 0) {
					t.Fatalf("%s: key %d has the text %q, want %q", name, k, got, want[side])
				}
			}
		}
	}
}

// keptTexts keeps the texts of what is emitted as they are.
type keptTexts struct {
	keys  []int64
	texts [][]string
}

func (k *keptTexts) Emit(b *batch.Batch) error {
	for i := range b.Len() {
		r := b.Row(i)
		k.keys = append(k.keys, b.Cols[0].I64[r])
		var row []string
		for c := 1; c < len(b.Cols); c += 2 {
			s := b.Cols[c].Str[r]
			if b.Cols[c].IsNull(r) {
				s = ""
			}
			row = append(row, s)
		}
		k.texts = append(k.texts, row)
	}
	return nil
}
