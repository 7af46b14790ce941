package op

import (
	"fmt"
	"unsafe"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// windowCache holds cells of a windowAggregate in tables of words: there a row is found without encoding a key, and a cell
// is read and forgotten as a whole. It has all groups of a cell it holds, and writes what changed to the state at barriers;
// cells that came and went in between are never written. When memory is used up it writes everything and forgets it: a cell
// of state that is not here is used where it is, or brought in when it is small.
type windowCache struct {
	w     *windowAggregate
	words *keyWords // of input
	again *keyWords // of keys
	sums  bool      // merging accumulators is adding up their words
	cells map[int64]*cachedCell
	last  *cachedCell // of those, the one used last
	free  []*cachedCell
	total int64 // bytes
	taken int64 // of them, those counted in the job's memory
	pause int   // batches until cells are made again
	texts int   // bytes of texts at which those of forgotten cells are to go

	work  wordWork
	held  heldRows
	parts []cellRows
	at    []int32
	fresh []int32
	order []int32
	keys  *batch.Builder // key columns
	enc   *exec.KeyEncoder
	sum   windowSum
}

// cachedCell is a cell: a row of accumulators per group. Its word at rowTouch is not 0 when the row has changed since it was
// written.
type cachedCell struct {
	wordTable
	end    int64
	stored int // the first so many rows are in the state
	dirty  bool
	summed bool  // its rows are in windowSum
	bytes  int64 // counted in total
}

// cellRows are the rows of a batch that belong to a slice.
type cellRows struct {
	end int64
	sel []int32
}

const (
	cacheGrain   = 64 << 10 // bytes by which memory is taken
	cachePause   = 256      // batches to go on without after memory was used up
	cacheLoad    = 1 << 20  // bytes of keys up to which a cell is brought in
	cacheParts   = 64       // slices of a batch that are told apart at a time
	cacheMaxFree = 16       // forgotten cells whose memory is kept
)

// newWindowCache is nil when the aggregate needs more of a group than words.
func newWindowCache(w *windowAggregate) *windowCache {
	if w.core.retract || !w.core.mergeable() || w.spec.Window.Kind == Attached || w.spec.Window.Kind != Tumble && w.share == shareNone {
		return nil
	}
	c := &windowCache{w: w, cells: map[int64]*cachedCell{}, sums: true}
	keys, places := &types.Schema{}, []int{}
	for i, k := range w.spec.Keys {
		keys.Columns, places = append(keys.Columns, w.spec.Input.Columns[k]), append(places, i)
	}
	for i := range w.core.accs {
		if a := w.core.accs[i].acc; a != accCount && a != accSumInt {
			c.sums = false
		}
	}
	c.words, c.keys, c.enc = newKeyWords(w.spec.Input, w.spec.Keys, true), batch.NewBuilder(keys), exec.NewKeyEncoder(places)
	c.again = newKeyWords(keys, places, true)
	c.again.ids = c.words.ids
	c.sum.wordTable = c.newTable()
	c.sum.keep, c.texts = c.sums && w.clock.Size >= 4*w.clock.slice, maxTextBytes
	return c
}

func (c *windowCache) newTable() wordTable {
	return wordTable{stride: c.words.stride, size: c.w.core.fixed, work: &c.work}
}

// process takes rows of the input, or with combined accumulators.
func (c *windowCache) process(b *batch.Batch, combined bool) error {
	w := c.w
	if err := w.findEnds(b); err != nil {
		return err
	}
	if c.pause > 0 {
		c.pause--
	}
	part := *b
	if end := w.ends[0]; allEqual(w.ends, end) {
		if err := c.rows(end, &part, combined); err != nil {
			return err
		}
		return c.account()
	}
	c.parts = c.parts[:0]
	var p *cellRows
	for i, end := range w.ends {
		if p == nil || p.end != end {
			if p = c.part(end); p == nil {
				if err := c.flushParts(part, combined); err != nil {
					return err
				}
				p = c.part(end)
			}
		}
		p.sel = append(p.sel, int32(b.Row(i)))
	}
	if err := c.flushParts(part, combined); err != nil {
		return err
	}
	return c.account()
}

func allEqual(a []int64, x int64) bool {
	for _, y := range a {
		if y != x {
			return false
		}
	}
	return true
}

// part is where rows of a slice are collected, nil when there are too many slices.
func (c *windowCache) part(end int64) *cellRows {
	for i := len(c.parts) - 1; i >= 0; i-- {
		if c.parts[i].end == end {
			return &c.parts[i]
		}
	}
	if n := len(c.parts); n < cap(c.parts) {
		c.parts = c.parts[:n+1]
	} else if n == cacheParts {
		return nil
	} else {
		c.parts = append(c.parts, cellRows{})
	}
	p := &c.parts[len(c.parts)-1]
	p.end, p.sel = end, p.sel[:0]
	return p
}

func (c *windowCache) flushParts(b batch.Batch, combined bool) error {
	for i := range c.parts {
		b.Sel = c.parts[i].sel
		if err := c.rows(c.parts[i].end, &b, combined); err != nil {
			return err
		}
	}
	c.parts = c.parts[:0]
	return nil
}

// rows accumulates rows of the slice ending at end.
func (c *windowCache) rows(end int64, b *batch.Batch, combined bool) error {
	w := c.w
	if !w.slot.known || end != w.slot.end {
		w.place(end, w.watermark)
	}
	switch {
	case w.slot.late:
		for i := range b.Len() {
			w.late.Add(w.rowsAt(b, b.Row(i), combined))
		}
		return nil
	case len(w.slot.cells) == 0: // between windows
		return nil
	}
	x, err := c.cell(w.slot.cells[0])
	if err != nil {
		return err
	}
	if x == nil {
		return w.processRows(b, combined)
	}
	c.at = resize(c.at, b.Len())
	c.fresh = x.find(c.words.encode(b, nil), c.at, c.fresh[:0])
	x.mark(c.at)
	if x.summed { // rows that are too late for some windows
		c.sum.void = true
	}
	if combined {
		err = c.combine(x, b)
	} else {
		c.accumulate(x, b)
	}
	c.count(x)
	return err
}

// accumulate adds the rows of b to the rows in at.
func (c *windowCache) accumulate(x *cachedCell, b *batch.Batch) {
	core := &c.w.core
	core.masks.begin(b)
	c.held.place(&x.wordTable, c.at)
	for k := range core.accs {
		if a := &core.accs[k]; !a.shared {
			c.held.column(a, b, x.size, core.masks.of(a))
		}
	}
}

// mark notes that rows change.
func (x *cachedCell) mark(at []int32) {
	x.dirty = true
	for _, k := range at {
		x.rows[int(k)*x.size+rowTouch] = 1
	}
}

// combine adds the accumulators in the last column of b to the rows in at.
func (c *windowCache) combine(x *cachedCell, b *batch.Batch) error {
	v, core := b.Cols[len(b.Cols)-1], &c.w.core
	for i, k := range c.at {
		part := v.Str[v.Idx(b.Row(i))]
		if len(part) != core.fixed {
			return fmt.Errorf("a local aggregate sent %d bytes of accumulators instead of %d", len(part), core.fixed)
		}
		c.merge(x.at(k), unsafe.Slice(unsafe.StringData(part), len(part)))
	}
	return nil
}

// merge adds row src to dst, whose count is 0 when it is new.
func (c *windowCache) merge(dst, src []byte) {
	switch {
	case c.sums:
		src = src[:len(dst)]
		for i := rowCount; i < len(dst); i += 8 {
			setWord(dst, i, word(dst, i)+word(src, i))
		}
	case word(dst, rowCount) == 0:
		copy(dst[rowCount:], src[rowCount:])
	default:
		c.w.core.merge(dst, src)
	}
}

// cell is the cell named end, nil when its rows are in the state only.
func (c *windowCache) cell(end int64) (*cachedCell, error) {
	if c.last != nil && c.last.end == end {
		return c.last, nil
	}
	x := c.cells[end]
	if x == nil {
		if c.pause > 0 {
			return nil, nil
		}
		stored := c.w.index.cells[end] != nil
		if stored && c.w.index.bytes(end) > cacheLoad {
			return nil, nil
		}
		x = c.add(end)
		if stored {
			if err := c.load(x); err != nil {
				return nil, err
			}
		}
	}
	c.last = x
	return x, nil
}

// add makes a cell without rows.
func (c *windowCache) add(end int64) *cachedCell {
	x := &cachedCell{wordTable: c.newTable()}
	if n := len(c.free); n > 0 {
		x, c.free = c.free[n-1], c.free[:n-1]
	}
	x.end, x.stored, x.dirty = end, 0, false
	c.cells[end] = x
	c.w.schedule(end)
	c.count(x)
	return x
}

// forget removes a cell from memory.
func (c *windowCache) forget(x *cachedCell) {
	c.subtract(x)
	delete(c.cells, x.end)
	c.total -= x.bytes
	x.bytes, c.last = 0, nil
	if c.words.bytes() > c.texts {
		c.keepTexts()
	}
	if len(c.free) < cacheMaxFree {
		x.reset()
		c.free = append(c.free, x)
		c.count(x)
	}
}

// keepTexts forgets all texts but those of cells that are here.
func (c *windowCache) keepTexts() {
	c.sum.start(c.cells)
	c.words.rename(func(rename func(*wordTable)) {
		for _, x := range c.cells {
			rename(&x.wordTable)
		}
	})
	c.texts = max(maxTextBytes, 2*c.words.bytes())
}

// drop removes a cell from memory and state.
func (c *windowCache) drop(x *cachedCell) error {
	stored, end := x.stored, x.end
	c.forget(x)
	if stored == 0 {
		return nil
	}
	return c.w.dropCell(end)
}

// count brings total up to date with x.
func (c *windowCache) count(x *cachedCell) {
	n := x.memory() + 256
	c.total += n - x.bytes
	x.bytes = n
}

// account counts what is held in the job's memory, and gives it up when that is used up.
func (c *windowCache) account() error {
	held := c.total + int64(c.words.bytes())
	n := held - c.taken
	if n > -cacheGrain && n < cacheGrain {
		return nil
	}
	full := c.w.core.groups.Reserve(n)
	c.taken = held
	if !full {
		return nil
	}
	c.pause = cachePause
	return c.evict()
}

// evict leaves all cells to the state.
func (c *windowCache) evict() error {
	for _, x := range c.cells {
		if err := c.flushCell(x); err != nil {
			return err
		}
	}
	c.release()
	return nil
}

// release forgets everything.
func (c *windowCache) release() {
	clear(c.cells)
	c.free, c.last, c.total = nil, nil, 0
	c.sum = windowSum{cachedCell: cachedCell{wordTable: c.newTable()}, keep: c.sum.keep}
	c.keepTexts()
	c.w.core.groups.Reserve(-c.taken)
	c.taken = 0
}

// evictCell leaves a cell to the state.
func (c *windowCache) evictCell(end int64) error {
	x := c.cells[end]
	if x == nil {
		return nil
	}
	if err := c.flushCell(x); err != nil {
		return err
	}
	c.forget(x)
	return nil
}

// flush writes all that has changed to the state.
func (c *windowCache) flush() error {
	for _, x := range c.cells {
		if err := c.flushCell(x); err != nil {
			return err
		}
	}
	return nil
}

func (c *windowCache) flushCell(x *cachedCell) error {
	if !x.dirty {
		return nil
	}
	c.order = c.order[:0]
	for k := range int32(x.n) {
		if row := x.at(k); row[rowTouch] != 0 {
			row[rowTouch] = 0
			if c.order = append(c.order, k); len(c.order) == batch.Size {
				if err := c.writeRows(x); err != nil {
					return err
				}
			}
		}
	}
	x.dirty, x.stored = false, x.n
	return c.writeRows(x)
}

// writeRows writes the rows in order to the state.
func (c *windowCache) writeRows(x *cachedCell) error {
	w := c.w
	c.encode(x)
	w.keys.Reset()
	for i := range c.order {
		addGroupKey(&w.keys, x.end, w.groupKeys.Key(i), w.groupKeys.Hashes[i])
	}
	w.refs = resize(w.refs, len(c.order))
	if err := w.core.groups.Probe(&w.keys, w.refs); err != nil {
		return err
	}
	w.findFresh()
	if err := w.core.createGroups(&w.keys, w.refs); err != nil {
		return err
	}
	w.core.rows = resize(w.core.rows, len(w.refs))
	w.core.groups.MutableRows(w.refs, w.core.rows)
	for i, k := range c.order {
		copy(w.core.rows[i][rowCount:], x.at(k)[rowCount:])
	}
	err := w.list(w.fresh)
	w.keys.Reset()
	c.order = c.order[:0]
	return err
}

// encode sets w.groupKeys to the keys of the rows in order.
func (c *windowCache) encode(x *cachedCell) {
	c.keys.Reset()
	c.words.decode(x.words, c.order, c.keys.Cols)
	c.keys.RowsDone(len(c.order))
	c.enc.Encode(c.keys.Finish(), &c.w.groupKeys)
}

// load brings the rows of a cell into memory.
func (c *windowCache) load(x *cachedCell) error {
	w := c.w
	err := w.eachPage(x.end, func() error {
		page := &w.page.keys
		if err := w.probe(page); err != nil {
			return err
		}
		w.keyRows = w.keyRows[:0]
		for i := range page.Len() {
			w.keyRows = append(w.keyRows, page.Key(i)[8:])
		}
		c.keys.Reset()
		if err := w.decoder.decode(w.keyRows, c.keys.Cols); err != nil {
			return err
		}
		c.keys.RowsDone(page.Len())
		at := make([]int32, page.Len())
		x.find(c.again.encode(c.keys.Finish(), nil), at, nil)
		for i, r := range w.refs {
			copy(x.at(at[i])[rowCount:], w.core.groups.Value(r)[rowCount:w.core.fixed])
		}
		w.page.reset()
		return nil
	})
	x.stored = x.n
	c.count(x)
	return err
}
