package op

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// cellIndex lists the keys present at each of many times: the groups of a window's slices, the join keys of a window.
// A firing window finds its groups here instead of reading the whole state. Keys are only added, and forgotten with
// their time. They lie in chunks: rows of a table by key group, time and number, so that they move with their key group;
// the newest chunk is also in memory and written at barriers.
type cellIndex struct {
	table checkpoint.Table
	cells map[int64]*cell
	keys  checkpoint.Keys
	refs  [1]checkpoint.Ref
	buf   []byte
}

// cell is what is listed at one time.
type cell struct {
	parts [checkpoint.KeyGroups]*cellPart
}

// cellPart is the share of one key group.
type cellPart struct {
	chunk uint32 // number of the chunk in memory; those before it are in the table
	dirty bool   // the chunk in memory is not in the table as it is
	last  []byte // uvarint length and bytes, key after key
}

const (
	cellIndexFormat = "cellindex/1"
	cellChunk       = 1 << 10 // bytes of a chunk; small, because every open window holds one in memory per key group
)

func openCellIndex(s exec.Subtask, name string) (*cellIndex, error) {
	t, err := s.Table(checkpoint.TableOptions{Name: name, Format: cellIndexFormat})
	if err != nil {
		return nil, err
	}
	x := &cellIndex{table: t, cells: map[int64]*cell{}}
	err = t.Visit(func(key, _ []byte) bool {
		p := x.part(windowEnd(key[1:]), int(key[0]))
		p.chunk = max(p.chunk, binary.BigEndian.Uint32(key[9:])+1)
		return true
	})
	return x, err
}

func (x *cellIndex) part(at int64, group int) *cellPart {
	c := x.cells[at]
	if c == nil {
		c = &cell{}
		x.cells[at] = c
	}
	if c.parts[group] == nil {
		c.parts[group] = &cellPart{}
	}
	return c.parts[group]
}

// add lists key, whose hash is hash, at time at.
func (x *cellIndex) add(at int64, hash uint64, key []byte) error {
	g := checkpoint.KeyGroup(hash)
	p := x.part(at, g)
	p.last = append(binary.AppendUvarint(p.last, uint64(len(key))), key...)
	p.dirty = true
	if len(p.last) < cellChunk {
		return nil
	}
	if err := x.write(at, g, p); err != nil {
		return err
	}
	p.chunk, p.last = p.chunk+1, p.last[:0]
	return nil
}

// find probes for a chunk.
func (x *cellIndex) find(at int64, group int, chunk uint32) (checkpoint.Ref, error) {
	x.keys.Reset()
	b := append(x.keys.Buf, byte(group))
	b = append(b, windowKey(at)...)
	b = binary.BigEndian.AppendUint32(b, chunk)
	x.keys.Buf, x.keys.Ends = b, append(x.keys.Ends, int32(len(b)))
	x.keys.Hashes = append(x.keys.Hashes, subHash(uint64(group)<<57, b))
	err := x.table.Probe(&x.keys, x.refs[:])
	return x.refs[0], err
}

func (x *cellIndex) write(at int64, group int, p *cellPart) error {
	r, err := x.find(at, group, p.chunk)
	if err != nil {
		return err
	}
	if r == checkpoint.NoRow {
		if r, _, err = x.table.Insert(&x.keys, 0, 0); err != nil {
			return err
		}
	}
	x.table.Set(r, p.last)
	p.dirty = false
	return nil
}

// flush writes what is only in memory.
func (x *cellIndex) flush() error {
	for at, c := range x.cells {
		for g, p := range c.parts {
			if p != nil && p.dirty {
				if err := x.write(at, g, p); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

var errCellIndex = errors.New("window index: a chunk is missing or damaged")

// visit calls f for the keys of one key group listed at time at, in the order they were added, until it fails.
func (x *cellIndex) visit(at int64, group int, f func(key []byte) error) error {
	c := x.cells[at]
	if c == nil || c.parts[group] == nil {
		return nil
	}
	p := c.parts[group]
	for i := uint32(0); i < p.chunk; i++ {
		r, err := x.find(at, group, i)
		if err != nil {
			return err
		}
		if r == checkpoint.NoRow {
			return errCellIndex
		}
		x.buf = append(x.buf[:0], x.table.Value(r)...)
		if err := eachKey(x.buf, f); err != nil {
			return err
		}
	}
	return eachKey(p.last, f)
}

func eachKey(b []byte, f func(key []byte) error) error {
	for len(b) > 0 {
		n, w := binary.Uvarint(b)
		if w <= 0 || uint64(len(b)-w) < n {
			return errCellIndex
		}
		if err := f(b[w : w+int(n)]); err != nil {
			return err
		}
		b = b[w+int(n):]
	}
	return nil
}

// drop forgets a time.
func (x *cellIndex) drop(at int64) error {
	c := x.cells[at]
	if c == nil {
		return nil
	}
	for g, p := range c.parts {
		if p == nil {
			continue
		}
		for i := uint32(0); i <= p.chunk; i++ {
			r, err := x.find(at, g, i)
			if err != nil {
				return err
			}
			if r != checkpoint.NoRow {
				x.table.Delete(r)
			}
		}
	}
	delete(x.cells, at)
	return nil
}

// times are the times at which something is listed, ascending.
func (x *cellIndex) times() []int64 {
	out := make([]int64, 0, len(x.cells))
	for at := range x.cells {
		out = append(out, at)
	}
	slices.Sort(out)
	return out
}
