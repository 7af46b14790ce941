package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
)

// How rows get into a waitLog.

// store writes the encoded rows to the chunks of their runs.
func (w *waitLog) store(until []int64, now int64) error {
	w.gather()
	w.keys.Reset()
	for i := range w.runs {
		r := &w.runs[i]
		r.s.touched[r.group] = 0
		c := w.tail(r, now)
		w.appendKey(&w.keys, c.slice, r.group, c.number)
	}
	w.refs = resize(w.refs, w.keys.Len())
	if err := w.table.Probe(&w.keys, w.refs); err != nil {
		return err
	}
	for i := range w.runs {
		r := &w.runs[i]
		rows := w.order[r.at : r.at+r.rows]
		for len(rows) > 0 {
			c := &r.s.groups[r.group][len(r.s.groups[r.group])-1]
			n, size := w.fitting(c, rows)
			if n == 0 {
				w.newChunk(r, now)
				continue
			}
			dst, err := w.extend(c, r.group, w.refs[i], size)
			if err != nil {
				return err
			}
			for _, k := range rows[:n] {
				dst = dst[copy(dst, w.enc.row(int(k))):]
				t := until[w.in.Sel[k]]
				c.first, c.last = min(c.first, t), max(c.last, t)
			}
			r.s.first = min(r.s.first, c.first)
			rows = rows[n:]
		}
	}
	return nil
}

// gather sorts the rows by their runs.
func (w *waitLog) gather() {
	for k, i := range w.run {
		r := &w.runs[i]
		r.rows++
		r.size += int32(w.enc.starts[k+1] - w.enc.starts[k])
	}
	at := int32(0)
	for i := range w.runs {
		w.runs[i].at = at
		at += w.runs[i].rows
		w.runs[i].rows = 0
	}
	w.order = resize(w.order, len(w.run))
	for k, i := range w.run {
		r := &w.runs[i]
		w.order[r.at+r.rows] = int32(k)
		r.rows++
	}
}

// tail is the chunk that a run goes on, or a new one.
func (w *waitLog) tail(r *waitRun, now int64) *waitChunk {
	if cs := r.s.groups[r.group]; len(cs) > 0 {
		if c := &cs[len(cs)-1]; c.slice == r.s.start && c.size+r.size <= waitChunkMax {
			return c
		}
	}
	return w.newChunk(r, now)
}

func (w *waitLog) newChunk(r *waitRun, now int64) *waitChunk {
	c := waitChunk{slice: r.s.start, first: maxTime, last: minTime, born: now}
	cs := r.s.groups[r.group]
	if n := len(cs); n > 0 {
		c.number = cs[n-1].number + 1
	}
	r.s.groups[r.group] = append(cs, c)
	return &r.s.groups[r.group][len(cs)]
}

// fitting is how many of rows, and bytes, c has room for. One always fits into an empty chunk.
func (w *waitLog) fitting(c *waitChunk, rows []int32) (n, size int) {
	for _, k := range rows {
		s := w.enc.starts[k+1] - w.enc.starts[k]
		if int(c.size)+size+s > waitChunkMax && int(c.size)+size > 0 {
			break
		}
		n, size = n+1, size+s
	}
	return n, size
}

// extend makes c larger. ref is its row, if it is that of the run's key.
func (w *waitLog) extend(c *waitChunk, group int, ref checkpoint.Ref, size int) ([]byte, error) {
	old := int(c.size)
	c.size += int32(size)
	if old > 0 {
		return w.table.Extend(ref, size, min(2*int(c.size), max(int(c.size), waitChunkMax)))
	}
	w.one.Reset()
	w.appendKey(&w.one, c.slice, group, c.number)
	ref, _, err := w.table.Insert(&w.one, 0, size)
	if err != nil {
		return nil, err
	}
	return w.table.Mutable(ref), nil
}

// appendKey adds the key of a chunk to keys.
func (w *waitLog) appendKey(keys *checkpoint.Keys, slice int64, group int, number uint32) {
	from := len(keys.Buf)
	keys.Buf = binary.BigEndian.AppendUint32(append(orderedTime(keys.Buf, slice), byte(group)), number)
	keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
	keys.Hashes = append(keys.Hashes, subHash(uint64(group)<<57, keys.Buf[from:]))
}

// save writes, at a barrier, up to which times rows of chunks have left that are still there.
func (w *waitLog) save() error {
	var partly [checkpoint.KeyGroups]bool
	for _, s := range w.slices {
		for g, cs := range s.groups {
			for i := range cs {
				partly[g] = partly[g] || cs[i].partly
			}
		}
	}
	for g, p := range partly {
		if !p {
			continue
		}
		w.one.Reset()
		w.one.Buf = append(w.one.Buf, byte(g))
		appendKey(&w.one, nil, subHash(uint64(g)<<57, w.one.Buf))
		w.refs = resize(w.refs, 1)
		if err := w.table.Probe(&w.one, w.refs); err != nil {
			return err
		}
		ref := w.refs[0]
		if ref == checkpoint.NoRow {
			var err error
			if ref, _, err = w.table.Insert(&w.one, 0, 8); err != nil {
				return err
			}
		}
		setWord(w.table.Mutable(ref), 0, w.left[g])
	}
	return nil
}
