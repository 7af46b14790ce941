package op

import (
	"bytes"
	"encoding/binary"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// runSorter is an external merge sort in state: entries of a sub-key, which is unique, and a value. They gather in a
// buffer of bounded size; a full one, and what there is at a barrier, becomes a sorted run in a table, written once.
// Some runs of one size become one of the next, so that few are open when all are merged.
//
// With updates the sub-keys are rows, each followed by cancelSize bytes; see rowCancel.
type runSorter struct {
	table   checkpoint.Table
	limit   int64 // the lowest entries that count, -1 = all
	updates bool

	buf     []byte
	entries []sortEntry
	spare   []byte
	bound   []byte // entries from here on do not count; nil = all may

	runs []sortRun // in order of age; levels fall
	next uint32    // id of the next run

	keys checkpoint.Keys
	refs [1]checkpoint.Ref
}

// sortEntry is where an entry lies in the buffer: its sub-key from ≤ i < mid, its value mid ≤ i < to.
type sortEntry struct{ from, mid, to int }

// sortRun is a run in state: chunks many rows of the table, numbered from 0.
type sortRun struct {
	id, chunks uint32
	level      uint8
}

const (
	sortBuffer = 1 << 20 // bytes gathered before they are written; a barrier writes less
	sortChunk  = 8 << 10 // bytes of a row of the table, unless one entry is larger
	sortFanIn  = 32      // runs of one level that become one of the next
	sortFormat = "runs/1:"
)

// errEnough ends a merge early.
var errEnough = errors.New("enough rows")

// errSortState reports state that is not what this code wrote.
var errSortState = errors.New("the state of ORDER BY in the checkpoint is damaged")

func openRunSorter(s exec.Subtask, name, format string) (*runSorter, error) {
	t, err := s.Table(checkpoint.TableOptions{Name: name, Format: sortFormat + format})
	return &runSorter{table: t, limit: -1}, err
}

// added takes up the entry that was appended to buf at from, its value at mid.
func (s *runSorter) added(from, mid int) error {
	if s.limit == 0 || s.bound != nil && bytes.Compare(s.buf[from:mid], s.bound) >= 0 {
		s.buf = s.buf[:from]
		return nil
	}
	s.entries = append(s.entries, sortEntry{from, mid, len(s.buf)})
	if s.limit > 0 && int64(len(s.entries)) >= 2*s.limit+1024 {
		s.trim()
	}
	if len(s.buf) < sortBuffer {
		return nil
	}
	return s.flush()
}

func (s *runSorter) sort() {
	slices.SortFunc(s.entries, func(a, b sortEntry) int { return bytes.Compare(s.buf[a.from:a.mid], s.buf[b.from:b.mid]) })
}

// trim keeps of the buffer only what counts.
func (s *runSorter) trim() {
	s.sort()
	s.entries = s.entries[:s.limit]
	kept := s.spare[:0]
	for i, e := range s.entries {
		at := len(kept)
		kept = append(kept, s.buf[e.from:e.to]...)
		s.entries[i] = sortEntry{at, at + e.mid - e.from, len(kept)}
	}
	s.buf, s.spare = kept, s.buf
	last := s.entries[s.limit-1]
	s.lower(s.buf[last.from:last.mid])
}

// lower notes that sub is the last entry that can count.
func (s *runSorter) lower(sub []byte) {
	if s.bound == nil || bytes.Compare(sub, s.bound) < 0 {
		s.bound = append(s.bound[:0], sub...)
	}
}

// flush writes the buffer as a run.
func (s *runSorter) flush() error {
	if len(s.entries) == 0 {
		return nil
	}
	s.sort()
	err := s.write(0, func(put entryFunc) error {
		for _, e := range s.entries {
			if err := put(s.buf[e.from:e.mid], s.buf[e.mid:e.to]); err != nil {
				return err
			}
		}
		return nil
	})
	s.buf, s.entries = s.buf[:0], s.entries[:0]
	if err != nil {
		return err
	}
	for {
		n := len(s.runs)
		from := n
		for from > 0 && s.runs[from-1].level == s.runs[n-1].level {
			from--
		}
		if n-from < sortFanIn {
			return nil
		}
		old := slices.Clone(s.runs[from:])
		s.runs = s.runs[:from]
		if err := s.write(old[0].level+1, func(put entryFunc) error { return s.merge(old, put) }); err != nil {
			return err
		}
	}
}

// each takes all entries out, in order, until f returns errEnough.
func (s *runSorter) each(f entryFunc) error {
	if len(s.runs) == 0 {
		s.sort()
		for _, e := range s.entries {
			if err := f(s.buf[e.from:e.mid], s.buf[e.mid:e.to]); err != nil {
				s.forget()
				return enough(err)
			}
		}
		s.forget()
		return nil
	}
	if err := s.flush(); err != nil {
		return err
	}
	err := s.merge(s.runs, f)
	s.forget()
	return err
}

func enough(err error) error {
	if err == errEnough {
		return nil
	}
	return err
}

// forget is the sorter without entries.
func (s *runSorter) forget() {
	s.buf, s.entries, s.runs, s.bound = s.buf[:0], s.entries[:0], nil, nil
}

// save appends the list of runs; the buffer has been flushed.
func (s *runSorter) save(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(s.next))
	for _, r := range s.runs {
		dst = binary.AppendUvarint(dst, uint64(r.id))
		dst = binary.AppendUvarint(dst, uint64(r.chunks))
		dst = append(dst, r.level)
	}
	return dst
}

// restore reads what save wrote.
func (s *runSorter) restore(st []byte) error {
	bad := false
	number := func() uint32 {
		v, n := binary.Uvarint(st)
		if n <= 0 || v > 1<<32-1 {
			bad = true
			return 0
		}
		st = st[n:]
		return uint32(v)
	}
	s.next = number()
	for len(st) > 0 && !bad {
		r := sortRun{id: number(), chunks: number()}
		if bad = bad || len(st) == 0; bad {
			break
		}
		r.level, st = st[0], st[1:]
		s.runs = append(s.runs, r)
	}
	if bad {
		return errSortState
	}
	return nil
}

// find probes for a chunk. The upkeep of the state happens here.
func (s *runSorter) find(run, chunk uint32) (checkpoint.Ref, error) {
	s.keys.Reset()
	b := binary.BigEndian.AppendUint32(s.keys.Buf, run)
	b = binary.BigEndian.AppendUint32(b, chunk)
	s.keys.Buf, s.keys.Ends = b, append(s.keys.Ends, int32(len(b)))
	s.keys.Hashes = append(s.keys.Hashes, checkpoint.HashKey(b))
	err := s.table.Probe(&s.keys, s.refs[:])
	return s.refs[0], err
}

type entryFunc func(sub, val []byte) error

// write makes a run of the entries that fill gives in order.
func (s *runSorter) write(level uint8, fill func(put entryFunc) error) error {
	w := runWriter{s: s, run: sortRun{id: s.next, level: level}}
	s.next++
	put := w.put
	var c rowCancel
	if s.updates {
		c.put = w.put
		put = c.add
	}
	err := enough(fill(put))
	if err == nil && s.updates {
		err = c.end()
	}
	if err == nil {
		err = w.store()
	}
	if err == nil && w.run.chunks > 0 {
		s.runs = append(s.runs, w.run)
	}
	return err
}

// runWriter writes a run.
type runWriter struct {
	s     *runSorter
	run   sortRun
	chunk []byte
	n     int64
}

func (w *runWriter) put(sub, val []byte) error {
	w.chunk = binary.AppendUvarint(w.chunk, uint64(len(sub)))
	w.chunk = append(w.chunk, sub...)
	w.chunk = binary.AppendUvarint(w.chunk, uint64(len(val)))
	w.chunk = append(w.chunk, val...)
	if w.n++; w.n == w.s.limit {
		w.s.lower(sub)
		return errEnough
	}
	if len(w.chunk) < sortChunk {
		return nil
	}
	return w.store()
}

func (w *runWriter) store() error {
	if len(w.chunk) == 0 {
		return nil
	}
	ref, err := w.s.find(w.run.id, w.run.chunks)
	if err != nil {
		return err
	}
	if ref == checkpoint.NoRow {
		if ref, _, err = w.s.table.Insert(&w.s.keys, 0, 0); err != nil {
			return err
		}
	}
	w.s.table.Set(ref, w.chunk)
	w.run.chunks++
	w.chunk = w.chunk[:0]
	return nil
}
