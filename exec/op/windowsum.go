package op

import (
	"bytes"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// windowSum adds up the slices of a window. Where windows have many slices and what is added can be taken off again, it
// stays from one window to the next: slices that come are added, those that go are taken off.
type windowSum struct {
	cachedCell
	keep   bool
	void   bool // it is not what the cells that are marked as summed add up to
	slices int  // of those cells
	zeros  int  // about how many rows have no part in it any more
}

// start makes the sum one of no cells.
func (s *windowSum) start(cells map[int64]*cachedCell) {
	s.reset()
	for _, x := range cells {
		x.summed = false
	}
	s.void, s.slices, s.zeros = false, 0, 0
}

// fireSlices emits the window ending at end as the sum of its slices, all of which are here.
func (c *windowCache) fireSlices(end int64, cells []int64, out exec.Emitter) error {
	s := &c.sum
	if !s.keep || s.void || s.slices == 0 || s.zeros > s.n/2 {
		s.start(c.cells)
	}
	for _, cell := range cells {
		if x := c.cells[cell]; !x.summed {
			c.addUp(&s.cachedCell, x)
			if s.keep {
				x.summed = true
				s.slices++
			}
		}
	}
	c.count(&s.cachedCell)
	return c.emit(&s.cachedCell, end, out)
}

// subtract takes a cell off the sum.
func (c *windowCache) subtract(x *cachedCell) {
	sum := &c.sum
	if !x.summed {
		return
	}
	x.summed = false
	if sum.slices--; sum.void || sum.slices == 0 {
		return
	}
	s := x.stride
	for lo := 0; lo < x.n; lo += batch.Size {
		n := min(x.n-lo, batch.Size)
		c.at = resize(c.at, n)
		sum.find(x.words[lo*s:(lo+n)*s], c.at, nil)
		for i, k := range c.at {
			dst, src := sum.at(k), x.at(int32(lo+i))
			for i := rowCount; i < len(dst); i += 8 {
				setWord(dst, i, word(dst, i)-word(src, i))
			}
			if word(dst, rowCount) == 0 {
				sum.zeros++
			}
		}
	}
}

// addUp adds the rows of src to those of dst.
func (c *windowCache) addUp(dst, src *cachedCell) {
	s, sum := src.stride, dst == &c.sum.cachedCell
	for lo := 0; lo < src.n; lo += batch.Size {
		n := min(src.n-lo, batch.Size)
		c.at = resize(c.at, n)
		c.fresh = dst.find(src.words[lo*s:(lo+n)*s], c.at, c.fresh[:0])
		for i, k := range c.at {
			c.merge(dst.at(k), src.at(int32(lo+i)))
		}
		if !sum {
			dst.mark(c.at)
		}
	}
}

// sorted sets order to the rows of x, by ascending key when there are few: that gives small windows a stable order.
func (c *windowCache) sorted(x *cachedCell) {
	c.order = c.order[:0]
	for k := range int32(x.n) {
		if word(x.rows, int(k)*x.size+rowCount) > 0 { // 0: taken off a sum
			c.order = append(c.order, k)
		}
	}
	if len(c.order) > sortedRows {
		return
	}
	c.encode(x)
	keys := &c.w.groupKeys
	c.fresh = appendRange(c.fresh[:0], 0, len(c.order))
	slices.SortFunc(c.fresh, func(a, b int32) int { return bytes.Compare(keys.Key(int(a)), keys.Key(int(b))) })
	for i, k := range c.fresh {
		c.fresh[i] = c.order[k]
	}
	c.order, c.fresh = c.fresh, c.order
}

// emit emits x as the window ending at end.
func (c *windowCache) emit(x *cachedCell, end int64, out exec.Emitter) error {
	w := c.w
	c.sorted(x)
	start, keys := w.clock.start(end), len(w.spec.Keys)
	for rest := c.order; len(rest) > 0; {
		some := rest[:min(len(rest), batch.Size-w.out.Len())]
		rest = rest[len(some):]
		c.words.decode(x.words, some, w.out.Cols[:keys])
		for i := range w.core.accs {
			w.core.appendResultsAt(&w.core.accs[i], w.out.Cols[keys+i], x.rows, some)
		}
		w.appendBounds(start, end, len(some))
		w.out.RowsDone(len(some))
		if w.out.Full() {
			if err := flush(w.out, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// holds reports that all cells are here. If only some are they are left to the state, where the others are.
func (c *windowCache) holds(cells []int64) (bool, error) {
	missing := 0
	for _, cell := range cells {
		if c.cells[cell] == nil {
			missing++
		}
	}
	if missing == 0 || missing == len(cells) {
		return missing == 0, nil
	}
	for _, cell := range cells {
		if err := c.evictCell(cell); err != nil {
			return false, err
		}
	}
	return false, nil
}

// grow adds the cell from to the cell to, if both can be here. Otherwise it leaves both to the state.
func (c *windowCache) grow(from, to int64) error {
	src, dst := c.cells[from], c.cells[to]
	switch {
	case src == nil && c.w.index.cells[from] == nil:
		return nil
	case src == nil:
		return c.evictCell(to)
	case dst == nil && c.w.index.cells[to] != nil:
		return c.evictCell(from)
	case dst == nil:
		dst = c.add(to)
	}
	c.addUp(dst, src)
	c.count(dst)
	return c.drop(src)
}

// times adds the cells that are here to dst, which is ascending and stays so.
func (c *windowCache) times(dst []int64) []int64 {
	for end := range c.cells {
		dst = append(dst, end)
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}

// appendResultsAt appends the aggregate's value in rows that lie back to back, those in at.
func (c *aggCore) appendResultsAt(a *accumulator, col *batch.ColBuilder, rows []byte, at []int32) {
	if a.acc == accCount {
		first := col.AppendN(len(at))
		for i, k := range at {
			col.I64[first+i] = word(rows, int(k)*c.fixed+a.off)
		}
		return
	}
	c.rows = resize(c.rows, len(at))
	for i, k := range at {
		c.rows[i] = rows[int(k)*c.fixed : (int(k)+1)*c.fixed]
	}
	a.appendResults(col, c.rows, c.fixed)
}
