package op

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// heldRows accumulates a batch into rows that lie one after another in memory, as those of a wordTable do: a column at a
// time, without a slice per row. Numbers of columns are brought together once for all aggregates over them.
type heldRows struct {
	rows []byte
	base []int // per row of the batch, where the row it belongs to begins
	long bool  // the batch is stretches of many rows that belong to one row: runs has where they begin
	runs []int32
	vals []intColumn
	n    int // columns of the batch at hand
}

// intColumn are the numbers of a column by place in the batch; those of NULL are arbitrary.
type intColumn struct {
	col  int
	ints []int64
	mem  []int64
}

const longRun = 16 // rows of a stretch, on average, that is worth a sum of its own

// place tells which rows of the table the rows of a batch belong to, and counts them there.
func (h *heldRows) place(t *wordTable, at []int32) {
	h.rows, h.base, h.n = t.rows, resize(h.base, len(at)), 0
	changes, last := 0, int32(-1)
	for i, k := range at {
		h.base[i] = int(k) * t.size
		if k != last {
			changes++
		}
		last = k
	}
	h.long = changes*longRun <= len(at)
	if t.runs = h.long; !h.long {
		for _, o := range h.base {
			setWord(h.rows, o+rowCount, word(h.rows, o+rowCount)+1)
		}
		return
	}
	h.findRuns(at)
	h.countRuns()
}

// placeRuns is place for n rows in stretches that begin at starts; at is by stretch.
func (h *heldRows) placeRuns(t *wordTable, at, starts []int32, n int) {
	h.rows, h.base, h.n = t.rows, resize(h.base, n), 0
	h.long, h.runs = true, append(h.runs[:0], starts...)
	for k, from := range starts {
		to, o := n, int(at[k])*t.size
		if k+1 < len(starts) {
			to = int(starts[k+1])
		}
		for i := int(from); i < to; i++ {
			h.base[i] = o
		}
	}
	h.countRuns()
}

// countRuns counts the rows of stretches.
func (h *heldRows) countRuns() {
	h.eachRun(func(o, from, to int) { setWord(h.rows, o+rowCount, word(h.rows, o+rowCount)+int64(to-from)) })
}

func (h *heldRows) findRuns(at []int32) {
	h.runs = h.runs[:0]
	for i := range at {
		if i == 0 || at[i] != at[i-1] {
			h.runs = append(h.runs, int32(i))
		}
	}
}

// eachRun calls f for each run: where its row begins and which rows of the batch it has.
func (h *heldRows) eachRun(f func(o, from, to int)) {
	for k, from := range h.runs {
		to := len(h.base)
		if k+1 < len(h.runs) {
			to = int(h.runs[k+1])
		}
		f(h.base[from], int(from), to)
	}
}

// column accumulates one aggregate over the rows that mask has, nil = all.
func (h *heldRows) column(a *accumulator, b *batch.Batch, size int, mask []bool) {
	switch {
	case a.acc == accCount && mask == nil:
		for _, o := range h.base {
			setWord(h.rows, o+a.off, word(h.rows, o+a.off)+1)
		}
	case a.acc == accCount:
		h.count(a.off, mask)
	case a.acc == accSumInt:
		h.sum(a.off, h.ints(b, a.Arg), mask)
	case a.extremeInts():
		h.extreme(a, h.ints(b, a.Arg), mask)
	default:
		v := b.Cols[a.Arg]
		for i, o := range h.base {
			if mask == nil || mask[i] {
				a.add(h.rows[o:o+size], v, v.Idx(b.Row(i)), 1)
			}
		}
	}
}

// count counts without a branch: which rows a FILTER takes is hard to predict.
func (h *heldRows) count(off int, mask []bool) {
	if h.long {
		h.eachRun(func(o, from, to int) {
			n := int64(0)
			for _, on := range mask[from:to] {
				n += boolWord(on)
			}
			setWord(h.rows, o+off, word(h.rows, o+off)+n)
		})
		return
	}
	rows := h.rows
	for i, o := range h.base[:len(mask)] {
		setWord(rows, o+off, word(rows, o+off)+boolWord(mask[i]))
	}
}

func (h *heldRows) sum(off int, xs []int64, mask []bool) {
	if h.long && mask == nil {
		h.eachRun(func(o, from, to int) {
			n := int64(0)
			for _, x := range xs[from:to] {
				n += x
			}
			setWord(h.rows, o+off, word(h.rows, o+off)+n)
			setWord(h.rows, o+off+8, word(h.rows, o+off+8)+int64(to-from))
		})
		return
	}
	rows, base := h.rows, h.base[:len(xs)]
	if mask == nil {
		for i, x := range xs {
			o := base[i] + off
			setWord(rows, o, word(rows, o)+x)
			setWord(rows, o+8, word(rows, o+8)+1)
		}
		return
	}
	for i, x := range xs {
		o, on := base[i]+off, boolWord(mask[i])
		setWord(rows, o, word(rows, o)+x&-on)
		setWord(rows, o+8, word(rows, o+8)+on)
	}
}

func (h *heldRows) extreme(a *accumulator, xs []int64, mask []bool) {
	rows, base, off := h.rows, h.base[:len(xs)], a.off
	if mask != nil {
		for i, x := range xs {
			if mask[i] {
				a.offerInt(rows, base[i], x)
			}
		}
		return
	}
	least := a.Kind == expr.AggMin
	if h.long {
		h.extremeRuns(off, least, xs)
		return
	}
	for i, x := range xs {
		o := base[i] + off
		cur := word(rows, o)
		if less := x < cur; less == least && x != cur || word(rows, o+8) == 0 {
			setWord(rows, o, x)
			setWord(rows, o+8, 1)
		}
	}
}

// extremeRuns is extreme for stretches.
func (h *heldRows) extremeRuns(off int, least bool, xs []int64) {
	h.eachRun(func(o, from, to int) {
		best := extremeOf(xs[from:to], least)
		o += off
		if cur := word(h.rows, o); best != cur && best < cur == least || word(h.rows, o+8) == 0 {
			setWord(h.rows, o, best)
			setWord(h.rows, o+8, 1)
		}
	})
}

// ints are the numbers of column c of b.
func (h *heldRows) ints(b *batch.Batch, c int) []int64 {
	for i := range h.vals[:h.n] {
		if h.vals[i].col == c {
			return h.vals[i].ints
		}
	}
	if h.n == len(h.vals) {
		h.vals = append(h.vals, intColumn{})
	}
	x, v := &h.vals[h.n], b.Cols[c]
	h.n++
	if x.col = c; b.Sel == nil && !v.Const {
		x.ints = v.I64[:b.N]
		return x.ints
	}
	x.mem = resize(x.mem, b.Len())
	if x.ints = x.mem; v.Const {
		for i := range x.ints {
			x.ints[i] = v.I64[0]
		}
		return x.ints
	}
	for i, r := range b.Sel[:len(x.ints)] {
		x.ints[i] = v.I64[r]
	}
	return x.ints
}
