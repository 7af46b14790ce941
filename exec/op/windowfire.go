package op

import (
	"bytes"
	"fmt"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
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
	if err := w.eachDue(before, func(end int64) error { return w.fire(end, out) }); err != nil {
		return err
	}
	if err := flush(w.out, out); err != nil {
		return err
	}
	w.next = exec.MaxWatermark
	for cell := range w.index.cells {
		w.schedule(cell)
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

// groupHash is the hash of the group key inside a key of a distinct set: cell, group key, value.
func (w *windowAggregate) groupHash(key []byte) uint64 {
	rest := key[8:]
	for _, c := range w.spec.Keys {
		rest = exec.SkipColumn(rest, w.spec.Input.Columns[c].Type)
	}
	return checkpoint.HashKey(key[8 : len(key)-len(rest)])
}

// due are the ends of the windows that fire after before and not after the watermark, ascending.
func (w *windowAggregate) due(before exec.Watermark) []int64 {
	var due []int64
	for cell := range w.index.cells {
		for end, last := w.windowsOf(cell); end <= last; end += w.clock.next() {
			fire := exec.Watermark(w.clock.fireTime(end))
			if fire > w.watermark {
				break
			}
			if fire > before {
				due = append(due, end)
			}
		}
	}
	slices.Sort(due)
	return slices.Compact(due)
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
	keys  checkpoint.Keys // as in windowAggregate.keys
	order []int32
	sort  checkpoint.Keys
}

func (p *keyPage) full() bool { return p.keys.Len() >= batch.Size }

// sorted is the page, by ascending key when it is of few: that gives small windows a stable order.
func (p *keyPage) sorted() *checkpoint.Keys {
	if p.keys.Len() > sortedRows {
		p.keys, p.sort = p.sort, p.keys
		p.keys.Reset()
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
	p.keys.Reset()
	return &p.sort
}

// eachPage calls f for the keys of a cell, a page at a time.
func (w *windowAggregate) eachPage(cell int64, f func() error) error {
	w.page.keys.Reset()
	err := w.index.visit(cell, 0, checkpoint.KeyGroups, func(g int, group []byte) error {
		addCellKey(&w.page.keys, cell, group, uint64(g)<<57)
		if w.page.full() {
			return f()
		}
		return nil
	})
	if err != nil || w.page.keys.Len() == 0 {
		return err
	}
	return f()
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
	start := w.clock.start(end)
	err := w.eachPage(cell, func() error {
		keys := w.page.sorted()
		if err := w.probe(keys); err != nil {
			return err
		}
		for i, r := range w.refs {
			if err := w.emit(start, end, keys.Key(i), keys.Hashes[i], w.core.groups.Value(r), out); err != nil {
				return err
			}
			if !drop {
				continue
			}
			if err := w.core.remove(r, keys.Key(i), keys.Hashes[i]); err != nil {
				return err
			}
		}
		return nil
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

// dropCell removes a cell.
func (w *windowAggregate) dropCell(cell int64) error {
	err := w.eachPage(cell, func() error {
		if err := w.probe(&w.page.keys); err != nil {
			return err
		}
		for i, r := range w.refs {
			if err := w.core.remove(r, w.page.keys.Key(i), w.page.keys.Hashes[i]); err != nil {
				return err
			}
		}
		w.page.keys.Reset()
		return nil
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
	w.merged.reset()
	for g := 0; g < checkpoint.KeyGroups; {
		to := w.mergedTogether(cells, g)
		// After a restore, a group may have fired this window already.
		if w.restored == nil || exec.Watermark(w.clock.fireTime(end)) > w.restored[g] {
			for _, cell := range cells {
				if err := w.mergeSlice(cell, g, to); err != nil {
					return err
				}
			}
		}
		if w.merged.len() >= batch.Size || to == checkpoint.KeyGroups {
			if err := w.emitMerged(end, out); err != nil {
				return err
			}
		}
		g = to
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

// mergeSlice adds the rows of a slice and the key groups from ≤ group < to to w.merged.
func (w *windowAggregate) mergeSlice(cell int64, from, to int) error {
	page := &w.page
	page.keys.Reset()
	add := func() error {
		if err := w.probe(&page.keys); err != nil {
			return err
		}
		for i, r := range w.refs {
			row, isNew := w.merged.row(page.keys.Key(i)[8:])
			if isNew {
				clearRow(row, w.core.fixed, 0)
			}
			w.core.merge(row, w.core.groups.Value(r))
		}
		page.keys.Reset()
		return nil
	}
	err := w.index.visit(cell, from, to, func(group int, key []byte) error {
		addCellKey(&page.keys, cell, key, uint64(group)<<57)
		if page.full() {
			return add()
		}
		return nil
	})
	if err != nil || page.keys.Len() == 0 {
		return err
	}
	return add()
}

func (w *windowAggregate) emitMerged(end int64, out exec.Emitter) error {
	start := w.clock.start(end)
	for _, i := range w.merged.sorted() {
		row := w.merged.at(i)
		if word(row, rowCount) <= 0 {
			continue
		}
		w.core.results(row, w.res)
		if err := w.result(start, end, w.merged.key(i), out); err != nil {
			return err
		}
	}
	w.merged.reset()
	return nil
}

// fireGrowing emits the CUMULATE window ending at end: the slice that ends there joins the first slice, which holds the
// earlier ones.
func (w *windowAggregate) fireGrowing(end int64, out exec.Emitter) error {
	first := w.clock.start(end) + w.clock.Slide
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
		for i, r := range w.refs {
			w.moved = append(w.moved, w.core.groups.Value(r)[:size]...)
			if err := w.core.remove(r, page.Key(i), page.Hashes[i]); err != nil {
				return err
			}
		}
		w.keys.Reset()
		for i := range page.Len() {
			addCellKey(&w.keys, to, page.Key(i)[8:], page.Hashes[i])
		}
		page.Reset()
		if err := w.core.groups.Probe(&w.keys, w.refs); err != nil {
			return err
		}
		if err := w.core.createGroups(&w.keys, w.refs); err != nil {
			return err
		}
		for i, r := range w.refs {
			w.core.merge(w.core.groups.Mutable(r), w.moved[i*size:(i+1)*size])
			if err := w.list(r, w.keys.Key(i), w.keys.Hashes[i]); err != nil {
				return err
			}
		}
		w.keys.Reset()
		return nil
	})
	if err != nil {
		return err
	}
	return w.index.drop(from)
}

// emit appends the output row of the group with this key, hash and row; groups emptied by retractions have none.
func (w *windowAggregate) emit(start, end int64, key []byte, hash uint64, row []byte, out exec.Emitter) error {
	if word(row, rowCount) <= 0 {
		return nil
	}
	if err := w.core.resultsFor(key, hash, row, w.res); err != nil {
		return err
	}
	return w.result(start, end, key[8:], out)
}

// result appends an output row with the aggregates in w.res.
func (w *windowAggregate) result(start, end int64, group []byte, out exec.Emitter) error {
	nk := len(w.spec.Keys)
	if _, err := exec.DecodeKey(group, w.keyCols); err != nil {
		return fmt.Errorf("window state: %w", err)
	}
	for i := range w.res {
		w.out.Cols[nk+i].AppendDatum(w.res[i])
	}
	ws, we, wt := w.clock.bounds(start, end)
	cols := w.out.Cols[nk+len(w.res):]
	if w.spec.Window.Kind != Attached {
		cols[0].AppendI64(ws)
	}
	cols[1].AppendI64(we)
	appendTime(cols[2], wt)
	w.out.RowDone()
	if w.out.Full() {
		return flush(w.out, out)
	}
	return nil
}
