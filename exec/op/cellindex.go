package op

import (
	"encoding/binary"
	"errors"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// cellIndex lists the keys present at each of many times: the groups of a window's slices, the join keys of a window.
// A firing window finds its groups here instead of reading the whole state. Keys are only added, and forgotten with
// their time. They lie in a windowLog; the newest some are in memory and written when they are many and at barriers.
type cellIndex struct {
	windowLog
	pending []byte // keys in entries
	buf     []byte // what visit has read
	read    []cellChunk
}

// cellChunk is a chunk that visit has read.
type cellChunk struct{ group, end int }

const (
	cellIndexFormat = "cellindex/2"
	cellPending     = 2 * batch.Size // keys in memory
	cellVisit       = 64             // chunks read together
)

func openCellIndex(s exec.Subtask, name string) (*cellIndex, error) {
	l, err := openWindowLog(s, name, cellIndexFormat)
	if err != nil {
		return nil, err
	}
	return &cellIndex{windowLog: *l}, nil
}

// add lists key, whose hash is hash, at time at. An entry is a uvarint length and the bytes.
func (x *cellIndex) add(at int64, hash uint64, key []byte) error {
	x.cell(at)
	start := len(x.pending)
	x.pending = append(binary.AppendUvarint(x.pending, uint64(len(key))), key...)
	x.windowLog.add(at, hash, x.pending[start:])
	if len(x.entries) < cellPending {
		return nil
	}
	return x.flush()
}

// flush writes what is only in memory.
func (x *cellIndex) flush() error {
	err := x.commit()
	x.pending = x.pending[:0]
	return err
}

var errCellIndex = errors.New("window index: a chunk is missing or damaged")

// visit calls f for the keys of the key groups from ≤ group < to listed at time at, by group in the order they were added,
// until it fails.
func (x *cellIndex) visit(at int64, from, to int, f func(group int, key []byte) error) error {
	if err := x.flush(); err != nil {
		return err
	}
	x.keys.Reset()
	for g := from; g < to; g++ {
		for n := range x.chunks(at, g) {
			appendChunkKey(&x.keys, at, g, n)
			if x.keys.Len() == cellVisit {
				if err := x.visitChunks(f); err != nil {
					return err
				}
			}
		}
	}
	return x.visitChunks(f)
}

// visitChunks calls f for what is listed in the chunks in keys. What f adds may change the table: it is given copies.
func (x *cellIndex) visitChunks(f func(group int, key []byte) error) error {
	x.refs = resize(x.refs, x.keys.Len())
	if err := x.table.Probe(&x.keys, x.refs); err != nil {
		return err
	}
	x.buf, x.read = x.buf[:0], x.read[:0]
	for i, r := range x.refs {
		if r == checkpoint.NoRow {
			return errCellIndex
		}
		x.buf = append(x.buf, x.table.Value(r)...)
		x.read = append(x.read, cellChunk{group: int(x.keys.Key(i)[0]), end: len(x.buf)})
	}
	x.keys.Reset()
	start := 0
	for _, c := range x.read {
		if err := eachKey(x.buf[start:c.end], func(key []byte) error { return f(c.group, key) }); err != nil {
			return err
		}
		start = c.end
	}
	return nil
}

// size is about how many bytes are listed for a key group at time at.
func (x *cellIndex) size(at int64, group int) int {
	n := x.chunks(at, group)
	size := 0
	for i := range min(n, 8) {
		size += chunkBytes(i)
	}
	return size + int(n-min(n, 8))*logChunkMax
}

// bytes is about how many bytes are listed at time at.
func (x *cellIndex) bytes(at int64) (n int) {
	for g := range checkpoint.KeyGroups {
		n += x.size(at, g)
	}
	return n
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
	if x.cells[at] == nil {
		return nil
	}
	if err := x.flush(); err != nil {
		return err
	}
	x.keys.Reset()
	for g, n := range x.cells[at] {
		for i := range n {
			appendChunkKey(&x.keys, at, g, i)
			if x.keys.Len() == batch.Size {
				if err := x.dropChunks(); err != nil {
					return err
				}
			}
		}
	}
	delete(x.cells, at)
	return x.dropChunks()
}

// dropChunks removes the chunks in keys.
func (x *cellIndex) dropChunks() error {
	x.refs = resize(x.refs, x.keys.Len())
	if err := x.table.Probe(&x.keys, x.refs); err != nil {
		return err
	}
	for _, r := range x.refs {
		if r != checkpoint.NoRow {
			x.table.Delete(r)
		}
	}
	x.keys.Reset()
	return nil
}
