package op

import (
	"bytes"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// rankWork are the rows of a mini-batch as far as they may be among the best of their partitions: columns, and per
// partition the places of the best rows in them. It is no state: what it has is settled before a barrier.
type rankWork struct {
	most   int // rows of a partition
	names  checkpoint.Keys
	slots  []int32 // hash table of the partitions, place + 1
	lists  []workList
	places []int32 // of all lists
	rows   *batch.Builder
	sorts  []byte  // sort keys of rows
	ends   []int32 // of each, where it ends in sorts
	sel    []int32

	buffered int // rows that came
	texts    int // bytes of the texts of rows
	due      int64
}

// workList is a partition: n places from at on, with room for size.
type workList struct{ at, n, size int32 }

func (w *rankWork) open(in *types.Schema, most int) {
	w.most, w.rows = most, batch.NewBuilder(in)
	w.slots = make([]int32, 1024)
}

func (w *rankWork) reset() {
	clear(w.slots)
	w.names.Reset()
	w.rows.Reset()
	w.lists, w.places, w.sorts, w.ends = w.lists[:0], w.places[:0], w.sorts[:0], w.ends[:0]
	w.buffered, w.texts = 0, 0
}

// sort is the sort key of a row.
func (w *rankWork) sort(row int32) []byte {
	if row == 0 {
		return w.sorts[:w.ends[0]]
	}
	return w.sorts[w.ends[row-1]:w.ends[row]]
}

// best are the best rows of partition g, in order.
func (w *rankWork) best(g int) []int32 {
	l := &w.lists[g]
	return w.places[l.at : l.at+l.n]
}

// add takes the rows of b whose partitions are keys.
func (w *rankWork) add(b *batch.Batch, keys *checkpoint.Keys, order *sortKeyEncoder) {
	w.sel = w.sel[:0]
	for i := range keys.Ends {
		r, start := b.Row(i), len(w.sorts)
		w.sorts = order.appendTo(w.sorts, b, r)
		g := w.find(keys, i)
		if !w.offer(&w.lists[g], w.sorts[start:]) {
			w.sorts = w.sorts[:start]
			continue
		}
		w.ends = append(w.ends, int32(len(w.sorts)))
		w.sel = append(w.sel, int32(r))
	}
	w.buffered += len(keys.Ends)
	for k, v := range b.Cols {
		w.rows.Cols[k].AppendRows(v, w.sel)
		if v.Type.Phys() == types.PhysStr {
			for _, r := range w.sel {
				w.texts += len(v.Str[v.Idx(int(r))])
			}
		}
	}
	w.rows.RowsDone(len(w.sel))
}

// find is the list of key i, a new one where there is none.
func (w *rankWork) find(keys *checkpoint.Keys, i int) int32 {
	if 2*len(w.lists) >= len(w.slots) {
		w.grow()
	}
	h, mask := keys.Hashes[i], len(w.slots)-1
	for p := int(h) & mask; ; p = (p + 1) & mask {
		g := w.slots[p] - 1
		if g < 0 {
			appendKey(&w.names, keys.Key(i), h)
			w.lists = append(w.lists, workList{})
			w.slots[p] = int32(len(w.lists))
			return int32(len(w.lists)) - 1
		}
		if w.names.Hashes[g] == h && string(w.names.Key(int(g))) == string(keys.Key(i)) {
			return g
		}
	}
}

func (w *rankWork) grow() {
	w.slots = make([]int32, 2*len(w.slots))
	mask := len(w.slots) - 1
	for g, h := range w.names.Hashes {
		p := int(h) & mask
		for w.slots[p] != 0 {
			p = (p + 1) & mask
		}
		w.slots[p] = int32(g) + 1
	}
}

// offer puts the next row, which has that sort key, into l if it is good enough: behind those that are as good.
func (w *rankWork) offer(l *workList, key []byte) bool {
	n := int(l.n)
	places := w.places[l.at : l.at+l.n]
	if n == w.most && bytes.Compare(key, w.sort(places[n-1])) >= 0 {
		return false
	}
	at := min(n, w.most-1)
	for at > 0 && bytes.Compare(key, w.sort(places[at-1])) < 0 {
		at--
	}
	if n < w.most {
		if l.n == l.size {
			w.widen(l)
		}
		l.n++
		n++
	}
	places = w.places[l.at : l.at+l.n]
	copy(places[at+1:], places[at:n-1])
	places[at] = int32(len(w.ends))
	return true
}

// widen gives l more room.
func (w *rankWork) widen(l *workList) {
	size := min(max(2*int(l.size), 4), w.most)
	at := len(w.places)
	w.places = slices.Grow(w.places, size)[:at+size]
	copy(w.places[at:], w.places[l.at:l.at+l.n])
	l.at, l.size = int32(at), int32(size)
}

// rankChanges collects rows for the output: new ones of a rankWork, and old ones from state, which are decoded a batch at
// a time and are borrowed until flush.
type rankChanges struct {
	codec *rowCodec
	out   *batch.Builder
	place bool         // behind the columns of a row comes its place
	rows  *batch.Batch // new rows
	next  exec.Emitter

	stored [][]byte
	olds   *batch.Builder
	from   []int32 // of each change a row of rows, or ^ one of stored
	kinds  []types.RowKind
	places []int64
}

func newRankChanges(codec *rowCodec, spec *RankSpec, out *batch.Builder) rankChanges {
	return rankChanges{codec: codec, out: out, place: spec.Number, olds: batch.NewBuilder(spec.Input)}
}

func (c *rankChanges) begin(rows *batch.Batch, next exec.Emitter) { c.rows, c.next = rows, next }

// send adds the change of an entry.
func (c *rankChanges) send(e *listEntry, k types.RowKind, place int64) error {
	err := c.room(1)
	c.add(e, k, place)
	return err
}

// add is send when there is room.
func (c *rankChanges) add(e *listEntry, k types.RowKind, place int64) {
	if e.was >= 0 {
		c.stored = append(c.stored, e.row)
		c.from = append(c.from, ^int32(len(c.stored)-1))
	} else {
		c.from = append(c.from, e.fresh)
	}
	c.kinds = append(c.kinds, k)
	if c.place {
		c.places = append(c.places, place)
	}
}

// room makes room for n rows that are to be in one batch.
func (c *rankChanges) room(n int) error {
	if len(c.from)+n <= batch.Size {
		return nil
	}
	return c.flush()
}

// flush emits the changes.
func (c *rankChanges) flush() error {
	if len(c.from) == 0 {
		return nil
	}
	c.olds.Reset()
	if err := c.codec.decode(c.stored, c.olds.Cols); err != nil {
		c.olds.Abandon()
		return err
	}
	c.olds.RowsDone(len(c.stored))
	old := c.olds.Finish()
	for k := range c.rows.Cols {
		c.out.Cols[k].AppendEither(c.rows.Cols[k], old.Cols[k], c.from)
	}
	if c.place {
		col := c.out.Cols[len(c.rows.Cols)]
		at := col.AppendN(len(c.places))
		copy(col.I64[at:], c.places)
	}
	for _, k := range c.kinds {
		c.out.RowKindDone(k)
	}
	clear(c.stored)
	c.stored, c.from, c.kinds, c.places = c.stored[:0], c.from[:0], c.kinds[:0], c.places[:0]
	return flush(c.out, c.next)
}
