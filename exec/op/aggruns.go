package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// plain reports that the rows of an append-only input change nothing but the fixed words of their groups.
func (c *aggCore) plain() bool {
	if c.retract || len(c.distinct) > 0 {
		return false
	}
	for k := range c.accs {
		if c.accs[k].slow {
			return false
		}
	}
	return true
}

// accumulateRuns is accumulate, of a plain core, for a batch of stretches of rows with equal keys: keys and refs are those of the
// stretches, so that a group is looked for and its row read and written once a stretch.
func (c *aggCore) accumulateRuns(b *batch.Batch, keys *checkpoint.Keys, refs []checkpoint.Ref, runs *keyRuns, columns *heldRows, t toucher) error {
	if err := c.createGroups(keys, refs); err != nil {
		return err
	}
	c.rows = resize(c.rows, len(refs))
	c.groups.MutableRows(refs, c.rows)
	t.beforeChanges(refs, c.rows)
	c.masks.begin(b)
	columns.n = 0
	n := b.Len()
	for i, row := range c.rows {
		from, to := runs.bounds(i, n)
		setWord(row, rowCount, word(row, rowCount)+int64(to-from))
	}
	for k := range c.accs {
		a := &c.accs[k]
		if a.shared {
			continue
		}
		mask := c.masks.of(a)
		switch {
		case a.acc == accCount:
			for i, row := range c.rows {
				from, to := runs.bounds(i, n)
				setWord(row, a.off, word(row, a.off)+countOf(mask, from, to))
			}
		case a.acc == accSumInt && mask == nil:
			xs := columns.ints(b, a.Arg)
			for i, row := range c.rows {
				from, to := runs.bounds(i, n)
				sum := int64(0)
				for _, x := range xs[from:to] {
					sum += x
				}
				setWord(row, a.off, word(row, a.off)+sum)
				setWord(row, a.off+8, word(row, a.off+8)+int64(to-from))
			}
		case a.extremeInts() && mask == nil:
			xs := columns.ints(b, a.Arg)
			for i, row := range c.rows {
				from, to := runs.bounds(i, n)
				a.offerInt(row, 0, extremeOf(xs[from:to], a.Kind == expr.AggMin))
			}
		default:
			v := b.Cols[a.Arg]
			for i, row := range c.rows {
				for p, to := runs.bounds(i, n); p < to; p++ {
					if mask == nil || mask[p] {
						a.add(row, v, v.Idx(b.Row(p)), 1)
					}
				}
			}
		}
	}
	return nil
}

// bounds are the places of the rows of stretch i in a batch of n rows.
func (k *keyRuns) bounds(i, n int) (from, to int) {
	if i+1 < len(k.starts) {
		n = int(k.starts[i+1])
	}
	return int(k.starts[i]), n
}

// countOf is how many of the rows mask has, nil = all.
func countOf(mask []bool, from, to int) int64 {
	if mask == nil {
		return int64(to - from)
	}
	n := int64(0)
	for _, on := range mask[from:to] {
		n += boolWord(on)
	}
	return n
}

// extremeOf is the least or the greatest of xs, which are some.
func extremeOf(xs []int64, least bool) int64 {
	best := xs[0]
	if least {
		for _, x := range xs[1:] {
			best = min(best, x)
		}
		return best
	}
	for _, x := range xs[1:] {
		best = max(best, x)
	}
	return best
}
