package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
)

// runReader reads a run and removes it from state on the way.
type runReader struct {
	s        *runSorter
	run      sortRun
	at       uint32 // the next chunk
	chunk    []byte
	rest     []byte
	sub, val []byte // the entry at hand
}

// next reads an entry; ok is false at the end.
func (r *runReader) next() (ok bool, err error) {
	if len(r.rest) == 0 {
		if r.at == r.run.chunks {
			return false, nil
		}
		if err := r.load(); err != nil {
			return false, err
		}
	}
	if r.sub, ok = r.cut(); ok {
		r.val, ok = r.cut()
	}
	if !ok {
		return false, errSortState
	}
	return true, nil
}

func (r *runReader) load() error {
	ref, err := r.s.find(r.run.id, r.at)
	if err != nil {
		return err
	}
	if ref == checkpoint.NoRow {
		return errSortState
	}
	r.chunk = append(r.chunk[:0], r.s.table.Value(ref)...)
	r.s.table.Delete(ref)
	r.rest = r.chunk
	r.at++
	return nil
}

func (r *runReader) cut() ([]byte, bool) {
	n, w := binary.Uvarint(r.rest)
	if w <= 0 || uint64(len(r.rest)-w) < n {
		return nil, false
	}
	b := r.rest[w : w+int(n)]
	r.rest = r.rest[w+int(n):]
	return b, true
}

// drop removes what has not been read.
func (r *runReader) drop() error {
	for ; r.at < r.run.chunks; r.at++ {
		ref, err := r.s.find(r.run.id, r.at)
		if err != nil {
			return err
		}
		if ref != checkpoint.NoRow {
			r.s.table.Delete(ref)
		}
	}
	return nil
}

// merge calls f for the entries of runs in order and removes the runs, also when f ends it with errEnough.
func (s *runSorter) merge(runs []sortRun, f entryFunc) error {
	var heap []*runReader
	for _, run := range runs {
		r := &runReader{s: s, run: run}
		ok, err := r.next()
		if err != nil {
			return err
		}
		if ok {
			heap = append(heap, r)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		siftRun(heap, i)
	}
	for len(heap) > 0 {
		r := heap[0]
		if err := f(r.sub, r.val); err == errEnough {
			for _, r := range heap {
				if err := r.drop(); err != nil {
					return err
				}
			}
			return nil
		} else if err != nil {
			return err
		}
		ok, err := r.next()
		if err != nil {
			return err
		}
		if !ok {
			heap[0] = heap[len(heap)-1]
			heap = heap[:len(heap)-1]
		}
		siftRun(heap, 0)
	}
	return nil
}

// siftRun moves reader i down to its place in the heap.
func siftRun(heap []*runReader, i int) {
	for {
		c := 2*i + 1
		if c >= len(heap) {
			return
		}
		if c+1 < len(heap) && bytes.Compare(heap[c+1].sub, heap[c].sub) < 0 {
			c++
		}
		if bytes.Compare(heap[i].sub, heap[c].sub) <= 0 {
			return
		}
		heap[i], heap[c] = heap[c], heap[i]
		i = c
	}
}

// rowCancel takes changes of rows, sorted, and leaves out an insertion and the retraction of the same row that followed
// it. A sub-key is the row, a byte that is retracted or inserted, and the number of arrival: of equal rows the retractions
// come first. Not all pairs are found: a row with very many changes goes through as it is, and a retraction can come
// before its insertion; survivors counts again.
type rowCancel struct {
	put       entryFunc
	row       []byte
	rets, ins []uint64
	through   bool
	sub       []byte
}

const (
	retracted byte = iota
	inserted
)

const (
	cancelSize = 1 + 8
	cancelMax  = 1 << 10 // changes of one row that are held
)

// cutChange splits a sub-key.
func cutChange(sub []byte) (row []byte, kind byte, seq uint64) {
	n := len(sub) - cancelSize
	return sub[:n], sub[n], binary.BigEndian.Uint64(sub[n+1:])
}

func (c *rowCancel) add(sub, _ []byte) error {
	row, kind, seq := cutChange(sub)
	if !bytes.Equal(row, c.row) {
		if err := c.end(); err != nil {
			return err
		}
		c.row = append(c.row[:0], row...)
	}
	if !c.through && len(c.rets)+len(c.ins) == cancelMax {
		if err := c.flush(); err != nil {
			return err
		}
		c.through = true
	}
	switch {
	case c.through:
		return c.put(sub, nil)
	case kind == retracted:
		c.rets = append(c.rets, seq)
	default:
		c.ins = append(c.ins, seq)
	}
	return nil
}

// end finishes the row at hand.
func (c *rowCancel) end() error {
	// The first retraction that follows an insertion takes it away.
	rets, ins := c.rets[:0], c.ins[:0]
	k := 0
	for _, seq := range c.ins {
		for k < len(c.rets) && c.rets[k] < seq {
			rets = append(rets, c.rets[k])
			k++
		}
		if k < len(c.rets) {
			k++
			continue
		}
		ins = append(ins, seq)
	}
	c.rets, c.ins = append(rets, c.rets[k:]...), ins
	err := c.flush()
	c.through = false
	return err
}

func (c *rowCancel) flush() error {
	for kind, seqs := range [][]uint64{retracted: c.rets, inserted: c.ins} {
		for _, seq := range seqs {
			c.sub = append(append(c.sub[:0], c.row...), byte(kind))
			c.sub = binary.BigEndian.AppendUint64(c.sub, seq)
			if err := c.put(c.sub, nil); err != nil {
				return err
			}
		}
	}
	c.rets, c.ins = c.rets[:0], c.ins[:0]
	return nil
}

// survivors calls f with the rows that no retraction takes away, and their numbers. Of equal rows the first ones go.
func (s *runSorter) survivors(f func(row []byte, seq uint64) error) error {
	var last []byte
	gone := 0
	return s.each(func(sub, _ []byte) error {
		row, kind, seq := cutChange(sub)
		if !bytes.Equal(row, last) {
			last, gone = append(last[:0], row...), 0
		}
		switch {
		case kind == retracted:
			gone++
		case gone > 0:
			gone--
		default:
			return f(row, seq)
		}
		return nil
	})
}
