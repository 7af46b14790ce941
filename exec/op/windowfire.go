package op

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// advance moves event time to wm and fires the windows that this ends, by their end.
func (w *windowAggregate) advance(wm exec.Watermark, out exec.Emitter) error {
	if wm <= w.watermark {
		return nil
	}
	before := w.watermark
	w.watermark, w.slot.known = wm, false
	if wm < w.next {
		return nil
	}
	if err := w.index.flush(); err != nil {
		return err
	}
	w.order = w.index.times(w.order[:0])
	if w.cache != nil {
		w.order = w.cache.times(w.order)
	}
	if err := w.eachDue(before, func(end int64) error { return w.fire(end, out) }); err != nil {
		return err
	}
	if err := flush(w.out, out); err != nil {
		return err
	}
	w.next = exec.MaxWatermark
	w.scheduleAll()
	if w.cache != nil {
		return w.cache.account()
	}
	return nil
}

// eachDue calls f with the ends of the windows that fire after before and not after the watermark, ascending. w.order are
// the cells there are at first. Between two windows it notices that the job has stopped: a row can be in very many.
func (w *windowAggregate) eachDue(before exec.Watermark, f func(end int64) error) error {
	end, step := int64(math.MinInt64), w.clock.next()
	for _, cell := range w.order {
		from, last := w.windowsOf(cell)
		if from <= end { // all ends are multiples of the step from one another
			from = end + step
		}
		for e := w.clock.skip(from, before, step); e <= last; e += step {
			fire := exec.Watermark(w.clock.fireTime(e))
			if fire > w.watermark {
				break
			}
			if fire <= before {
				continue
			}
			if err := w.ctx.Err(); err != nil {
				return err
			}
			if err := f(e); err != nil {
				return err
			}
			end = e
		}
	}
	return nil
}

// fire emits a window and forgets the cells that no later window needs.
func (w *windowAggregate) fire(end int64, out exec.Emitter) error {
	switch w.share {
	case shareSlices:
		return w.fireSlices(end, out)
	case shareGrowing:
		return w.fireGrowing(end, out)
	}
	return w.emitCell(end, end, true, out)
}

// keyPage collects keys of a cell until they are worth a probe.
type keyPage struct {
	cell     int64
	whenFull func() error    // called with a full page, which it empties
	keys     checkpoint.Keys // as in windowAggregate.keys
	hashes   []uint64        // of the groups alone
	order    []int32
	sort     checkpoint.Keys
}

func (p *keyPage) reset() {
	p.keys.Reset()
	p.hashes = p.hashes[:0]
}

func (p *keyPage) full() bool { return p.keys.Len() >= batch.Size }

// sorted is the page, by ascending key when it is of few: that gives small windows a stable order.
func (p *keyPage) sorted() *checkpoint.Keys {
	if p.keys.Len() > sortedRows {
		p.keys, p.sort = p.sort, p.keys
		p.reset()
		return &p.sort
	}
	p.order = p.order[:0]
	for i := range p.keys.Len() {
		p.order = append(p.order, int32(i))
	}
	slices.SortFunc(p.order, func(a, b int32) int { return bytes.Compare(p.keys.Key(int(a)), p.keys.Key(int(b))) })
	p.sort.Reset()
	for _, i := range p.order {
		p.sort.Buf = append(p.sort.Buf, p.keys.Key(int(i))...)
		p.sort.Ends = append(p.sort.Ends, int32(len(p.sort.Buf)))
		p.sort.Hashes = append(p.sort.Hashes, p.keys.Hashes[i])
	}
	p.reset()
	return &p.sort
}

// eachPage calls f for the groups of a cell, a page at a time.
func (w *windowAggregate) eachPage(cell int64, f func() error) error {
	return w.eachPageOf(cell, 0, checkpoint.KeyGroups, f)
}

// eachPageOf is eachPage for the key groups from ≤ g < to.
func (w *windowAggregate) eachPageOf(cell int64, from, to int, f func() error) error {
	w.page.reset()
	w.page.cell, w.page.whenFull = cell, f
	if err := w.index.visit(cell, from, to, w.collect); err != nil || w.page.keys.Len() == 0 {
		return err
	}
	return f()
}

// collectKey adds a key of the index to the page.
func (w *windowAggregate) collectKey(group int, key []byte) error {
	hash := subHash(uint64(group)<<57, key)
	w.page.hashes = append(w.page.hashes, hash)
	addGroupKey(&w.page.keys, w.page.cell, key, hash)
	if w.page.full() {
		return w.page.whenFull()
	}
	return nil
}

// probe looks up a page; all its keys have state.
func (w *windowAggregate) probe(keys *checkpoint.Keys) error {
	w.refs = resize(w.refs, keys.Len())
	if err := w.core.groups.Probe(keys, w.refs); err != nil {
		return err
	}
	if slices.Contains(w.refs, checkpoint.NoRow) {
		return fmt.Errorf("window state lost a group before its window fired")
	}
	return nil
}

// emitCell emits what a cell holds as the window ending at end, and removes it with drop.
func (w *windowAggregate) emitCell(cell, end int64, drop bool, out exec.Emitter) error {
	if w.cache != nil {
		if x := w.cache.cells[cell]; x != nil {
			if err := w.cache.emit(x, end, out); err != nil || !drop {
				return err
			}
			return w.cache.drop(x)
		}
	}
	start := w.clock.start(end)
	err := w.eachPage(cell, func() error {
		keys := w.page.sorted()
		if err := w.probe(keys); err != nil {
			return err
		}
		if err := w.emitGroups(start, end, keys, out); err != nil || !drop {
			return err
		}
		return w.removeGroups(keys)
	})
	if err != nil || !drop {
		return err
	}
	for _, d := range w.core.distinct {
		if err := d.dropWindow(cell); err != nil {
			return err
		}
	}
	return w.index.drop(cell)
}

// removeGroups removes groups, whose rows are in refs.
func (w *windowAggregate) removeGroups(keys *checkpoint.Keys) error {
	for i, r := range w.refs {
		if !w.core.alone() {
			if err := w.core.remove(r, keys.Key(i), keys.Hashes[i]); err != nil {
				return err
			}
			continue
		}
		w.core.groups.Delete(r)
	}
	return nil
}

// dropCell removes a cell.
func (w *windowAggregate) dropCell(cell int64) error {
	if w.cache != nil {
		if x := w.cache.cells[cell]; x != nil {
			return w.cache.drop(x)
		}
	}
	err := w.eachPage(cell, func() error {
		if err := w.probe(&w.page.keys); err != nil {
			return err
		}
		err := w.removeGroups(&w.page.keys)
		w.page.reset()
		return err
	})
	if err != nil {
		return err
	}
	return w.index.drop(cell)
}

// fireSlices emits the window ending at end as the sum of its slices.
func (w *windowAggregate) fireSlices(end int64, out exec.Emitter) error {
	from, _ := slices.BinarySearch(w.order, w.clock.start(end)+1)
	to, _ := slices.BinarySearch(w.order, end+1)
	cells := w.order[from:to]
	if err := w.fireSum(end, cells, out); err != nil {
		return err
	}
	for len(cells) > 0 && w.clock.last(cells[0]) <= end {
		if err := w.dropCell(cells[0]); err != nil {
			return err
		}
		cells = cells[1:]
	}
	w.order = w.order[to-len(cells):]
	return nil
}

// fireSum emits the window ending at end as the sum of cells.
func (w *windowAggregate) fireSum(end int64, cells []int64, out exec.Emitter) error {
	if w.cache != nil {
		if all, err := w.cache.holds(cells); err != nil {
			return err
		} else if all {
			return w.cache.fireSlices(end, cells, out)
		}
	}
	w.merged.reset()
	for g := 0; g < checkpoint.KeyGroups; {
		to := w.mergedTogether(cells, g)
		if err := w.mergeGroups(end, cells, g, to, out); err != nil {
			return err
		}
		g = to
	}
	return nil
}

// mergeBytes bounds how many bytes of keys are merged together, of more than one key group.
const mergeBytes = 256 << 10

// mergedTogether is behind the key groups, from group on, that are merged together.
func (w *windowAggregate) mergedTogether(cells []int64, group int) int {
	for size := 0; group < checkpoint.KeyGroups; group++ {
		if size > 0 && w.restored != nil {
			break
		}
		part := 0
		for _, cell := range cells {
			part += w.index.size(cell, group)
		}
		if size > 0 && size+part > mergeBytes {
			break
		}
		size += max(part, 1)
	}
	return group
}

// mergeGroups emits the key groups from ≤ g < to of the window ending at end.
func (w *windowAggregate) mergeGroups(end int64, cells []int64, from, to int, out exec.Emitter) error {
	// After a restore, a group may have fired this window already.
	if w.restored != nil && exec.Watermark(w.clock.fireTime(end)) <= w.restored[from] {
		return nil
	}
	for _, cell := range cells {
		if err := w.eachPageOf(cell, from, to, w.merge); err != nil {
			return err
		}
	}
	return w.emitMerged(end, out)
}

// mergePage adds the rows of the page to w.merged.
func (w *windowAggregate) mergePage() error {
	page := &w.page
	if err := w.probe(&page.keys); err != nil {
		return err
	}
	for i, r := range w.refs {
		k, isNew := w.merged.find(page.hashes[i], page.keys.Key(i)[8:])
		src := w.core.groups.Value(r)
		if row := w.merged.at(k); isNew {
			copy(row[rowCount:], src[rowCount:w.core.fixed])
		} else {
			w.core.merge(row, src)
		}
	}
	page.reset()
	return nil
}

// emitMerged emits w.merged as the window ending at end.
func (w *windowAggregate) emitMerged(end int64, out exec.Emitter) error {
	w.keyRows, w.images = w.keyRows[:0], w.images[:0]
	for _, i := range w.merged.sorted() {
		if row := w.merged.at(i); word(row, rowCount) > 0 {
			w.keyRows, w.images = append(w.keyRows, w.merged.key(i)), append(w.images, row)
		}
	}
	if err := w.write(w.clock.start(end), end, out); err != nil {
		return err
	}
	w.merged.reset()
	return nil
}

// fireGrowing emits the CUMULATE window ending at end: the slice that ends there joins the first slice, which holds the
// earlier ones.
func (w *windowAggregate) fireGrowing(end int64, out exec.Emitter) error {
	first := w.clock.start(end) + w.clock.Slide
	if w.cache != nil && end != first {
		if err := w.cache.grow(end, first); err != nil {
			return err
		}
	}
	if end != first && w.index.cells[end] != nil {
		if err := w.move(end, first); err != nil {
			return err
		}
	}
	return w.emitCell(first, end, end == w.clock.last(end), out)
}

// move adds the cell from to the cell to.
func (w *windowAggregate) move(from, to int64) error {
	size := w.core.fixed
	err := w.eachPage(from, func() error {
		page := &w.page.keys
		if err := w.probe(page); err != nil {
			return err
		}
		w.moved = w.moved[:0]
		for _, r := range w.refs {
			w.moved = append(w.moved, w.core.groups.Value(r)[:size]...)
		}
		if err := w.removeGroups(page); err != nil {
			return err
		}
		w.keys.Reset()
		w.fresh = w.fresh[:0]
		for i := range page.Len() {
			addGroupKey(&w.keys, to, page.Key(i)[8:], w.page.hashes[i])
			w.fresh = append(w.fresh, int32(i))
		}
		w.page.reset()
		if err := w.core.groups.Probe(&w.keys, w.refs); err != nil {
			return err
		}
		if err := w.core.createGroups(&w.keys, w.refs); err != nil {
			return err
		}
		for i, r := range w.refs {
			w.core.merge(w.core.groups.Mutable(r), w.moved[i*size:(i+1)*size])
		}
		err := w.list(w.fresh)
		w.keys.Reset()
		return err
	})
	if err != nil {
		return err
	}
	return w.index.drop(from)
}

// emitGroups emits groups, whose rows are in refs, as the window from start to end; those emptied by retractions have no result.
func (w *windowAggregate) emitGroups(start, end int64, keys *checkpoint.Keys, out exec.Emitter) error {
	w.keyRows, w.images = w.keyRows[:0], w.images[:0]
	for i, r := range w.refs {
		row := w.core.groups.Value(r)
		if word(row, rowCount) <= 0 {
			continue
		}
		if len(w.core.lists) == 0 {
			w.keyRows, w.images = append(w.keyRows, keys.Key(i)[8:]), append(w.images, row)
			continue
		}
		if err := w.core.resultsFor(keys.Key(i), keys.Hashes[i], row, w.res); err != nil {
			return err
		}
		if err := w.result(start, end, keys.Key(i)[8:], out); err != nil {
			return err
		}
	}
	return w.write(start, end, out)
}

// write appends the output rows of the groups in keyRows and images, column by column.
func (w *windowAggregate) write(start, end int64, out exec.Emitter) error {
	for at := 0; at < len(w.images); {
		n := min(len(w.images)-at, batch.Size-w.out.Len())
		keys, images := w.keyRows[at:at+n], w.images[at:at+n]
		at += n
		if err := w.decoder.decode(keys, w.keyCols); err != nil {
			return err
		}
		for i := range w.core.accs {
			w.core.accs[i].appendResults(w.out.Cols[len(w.spec.Keys)+i], images, w.core.fixed)
		}
		w.appendBounds(start, end, n)
		w.out.RowsDone(n)
		if !w.out.Full() {
			continue
		}
		if err := flush(w.out, out); err != nil {
			return err
		}
	}
	return nil
}

// appendBounds appends n times the columns of the window.
func (w *windowAggregate) appendBounds(start, end int64, n int) {
	var at [3]int64
	at[0], at[1], at[2] = w.clock.bounds(start, end)
	for k, c := range w.out.Cols[len(w.spec.Keys)+len(w.res):] {
		if k == 0 && w.spec.Window.Kind == Attached {
			continue // decoded from the key
		}
		if c.Type.Phys() == types.PhysI128 { // a window_time of batch mode
			for range n {
				appendTime(c, at[k])
			}
			continue
		}
		first := c.AppendN(n)
		for i := range n {
			c.I64[first+i] = at[k]
		}
	}
}

// result appends an output row with the aggregates in w.res.
func (w *windowAggregate) result(start, end int64, group []byte, out exec.Emitter) error {
	if _, err := exec.DecodeKey(group, w.keyCols); err != nil {
		return fmt.Errorf("window state: %w", err)
	}
	for i := range w.res {
		w.out.Cols[len(w.spec.Keys)+i].AppendDatum(w.res[i])
	}
	w.appendBounds(start, end, 1)
	w.out.RowDone()
	if w.out.Full() {
		return flush(w.out, out)
	}
	return nil
}
