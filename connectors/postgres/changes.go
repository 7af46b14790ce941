package postgres

import (
	"slices"
	"strings"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// changes keeps the last change of each key of a table, as lines in COPY text format.
type changes struct {
	schema  *types.Schema
	keys    []int // positions of the key columns
	byKey   map[string]int
	last    []change
	arena   []byte // the lines; those of changes that were replaced are garbage
	live    int    // bytes in arena that are not
	taken   int    // changes added, replaced ones included
	scratch []byte
}

// change is a row, or the key of a deletion.
type change struct {
	key      string
	remove   bool
	from, to int // the line in arena
}

func newChanges(schema *types.Schema, key []string) changes {
	c := changes{schema: schema, byKey: map[string]int{}}
	for _, k := range key {
		c.keys = append(c.keys, slices.Index(schema.Names(), k))
	}
	return c
}

// add takes row r of b. -U is a deletion of its key, as Flink's connector treats it: where the query's key is the
// table's, none arrives.
func (c *changes) add(b *batch.Batch, r int) (err error) {
	if c.scratch, err = c.appendKey(c.scratch[:0], b, r); err != nil {
		return err
	}
	from := len(c.arena)
	remove := b.Kind(r).IsRetract()
	if remove {
		c.arena = append(append(c.arena, c.scratch...), '\n')
	} else if c.arena, err = appendCopyRow(c.arena, b, r, c.schema); err != nil {
		c.arena = c.arena[:from]
		return err
	}
	to := len(c.arena)
	c.live += to - from
	c.taken++
	if i, known := c.byKey[string(c.scratch)]; known {
		old := &c.last[i]
		c.live -= old.to - old.from
		old.remove, old.from, old.to = remove, from, to
		c.compact()
		return nil
	}
	key := string(c.scratch)
	c.byKey[key] = len(c.last)
	c.last = append(c.last, change{key, remove, from, to})
	return nil
}

func (c *changes) appendKey(dst []byte, b *batch.Batch, r int) ([]byte, error) {
	for i, k := range c.keys {
		if i > 0 {
			dst = append(dst, '\t')
		}
		var err error
		if dst, err = appendCopyValue(dst, b.Cols[k], r); err != nil {
			return dst, valueError(r, c.schema.Columns[k].Name, err)
		}
	}
	return dst, nil
}

// compactAbove is the size of an arena that is worth compacting.
const compactAbove = 1 << 20

// compact drops garbage when it is more than half, so that each byte is copied once at most for one that was added.
func (c *changes) compact() {
	if len(c.arena) < compactAbove || c.live > len(c.arena)/2 {
		return
	}
	out := make([]byte, 0, len(c.arena))
	for i := range c.last {
		x := &c.last[i]
		from := len(out)
		out = append(out, c.arena[x.from:x.to]...)
		x.from, x.to = from, len(out)
	}
	c.arena = out
}

// len is how many keys have changed.
func (c *changes) len() int { return len(c.last) }

// lines are the deleted keys and then the upserted rows, each in the order of their keys: every writer takes its locks in the same
// order. The deletions are the first deletes lines, of bytes bytes. It allocates.
func (c *changes) lines() (data []byte, deletes, bytes int) {
	slices.SortFunc(c.last, func(a, b change) int { return strings.Compare(a.key, b.key) })
	data = make([]byte, 0, c.live)
	for _, x := range c.last {
		if x.remove {
			data = append(data, c.arena[x.from:x.to]...)
			deletes++
		}
	}
	bytes = len(data)
	for _, x := range c.last {
		if !x.remove {
			data = append(data, c.arena[x.from:x.to]...)
		}
	}
	return data, deletes, bytes
}

func (c *changes) clear() {
	clear(c.byKey)
	clear(c.last) // the keys
	c.last, c.arena, c.live, c.taken = c.last[:0], c.arena[:0], 0, 0
}
