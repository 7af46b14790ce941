package op

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// windowLog is state that is read by time and no other way: entries are added to a time, read all together when it has
// come, and forgotten with it. Entries of a time and key group lie back to back in chunks, rows of a table by key group,
// time and number; what an entry looks like is its user's business. In memory is how many chunks there are.
//
// Entries are added for a batch and written by commit, so that the table is probed once for each time and key group that
// the batch has, and not for each row.
type windowLog struct {
	table checkpoint.Table
	cells map[int64]*logCell

	// Pending additions: entries, and those of the same time and key group as a list.
	entries [][]byte
	next    []int32
	parts   []logPart
	slots   []int32 // hash table: part + 1
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	one     checkpoint.Keys
	ref     [1]checkpoint.Ref
}

// logCell is the number of chunks of each key group at a time.
type logCell [checkpoint.KeyGroups]uint32

// logPart are the pending entries of a time and key group.
type logPart struct {
	at          int64
	group       int
	first, last int32
	size        int
}

const (
	windowLogFormat = "windowlog/1;"
	logChunkMin     = 1 << 10
	logChunkMax     = 16 << 10
)

// chunkBytes is from which size on chunk n is full. The first are small, because a window may have few rows in each key
// group and a barrier writes the last chunk again.
func chunkBytes(n uint32) int { return min(logChunkMin<<min(n, 8), logChunkMax) }

var errWindowLog = errors.New("window state: a chunk is missing or damaged")

// openWindowLog opens the state named name; format names the layout of entries.
func openWindowLog(s exec.Subtask, name, format string) (*windowLog, error) {
	t, err := s.Table(checkpoint.TableOptions{Name: name, Format: windowLogFormat + format})
	if err != nil {
		return nil, err
	}
	l := &windowLog{table: t, cells: map[int64]*logCell{}, slots: make([]int32, 256)}
	damaged := false
	err = t.Visit(func(key, _ []byte) bool {
		if damaged = len(key) != chunkKeySize || key[0] >= checkpoint.KeyGroups; damaged {
			return false
		}
		c := l.cell(windowEnd(key[1:]))
		c[key[0]] = max(c[key[0]], binary.BigEndian.Uint32(key[9:])+1)
		return true
	})
	if err == nil && damaged {
		err = errWindowLog
	}
	return l, err
}

func (l *windowLog) cell(at int64) *logCell {
	c := l.cells[at]
	if c == nil {
		c = &logCell{}
		l.cells[at] = c
	}
	return c
}

func partSlot(at int64, group int) int { return int((uint64(at)*0x9e3779b97f4a7c15)>>40) ^ group*31 }

// add adds an entry at time at for a key with that hash. It is borrowed until commit.
func (l *windowLog) add(at int64, hash uint64, entry []byte) {
	g, i := checkpoint.KeyGroup(hash), int32(len(l.entries))
	l.entries = append(l.entries, entry) // apart, so that only what grows is written
	l.next = append(l.next, -1)
	mask := len(l.slots) - 1
	for s := partSlot(at, g) & mask; ; s = (s + 1) & mask {
		k := l.slots[s]
		if k == 0 {
			l.parts = append(l.parts, logPart{at, g, i, i, len(entry)})
			if l.slots[s] = int32(len(l.parts)); 2*len(l.parts) > len(l.slots) {
				l.grow()
			}
			return
		}
		if p := &l.parts[k-1]; p.at == at && p.group == g {
			l.next[p.last], p.last = i, i
			p.size += len(entry)
			return
		}
	}
}

func (l *windowLog) grow() {
	l.slots = make([]int32, 2*len(l.slots))
	mask := len(l.slots) - 1
	for k := range l.parts {
		s := partSlot(l.parts[k].at, l.parts[k].group) & mask
		for l.slots[s] != 0 {
			s = (s + 1) & mask
		}
		l.slots[s] = int32(k + 1)
	}
}

// commit writes what add collected.
func (l *windowLog) commit() error {
	if len(l.parts) == 0 {
		return nil
	}
	l.keys.Reset()
	for i := range l.parts {
		p := &l.parts[i]
		appendChunkKey(&l.keys, p.at, p.group, max(l.cell(p.at)[p.group], 1)-1)
	}
	l.refs = resize(l.refs, len(l.parts))
	if err := l.table.Probe(&l.keys, l.refs); err != nil {
		return err
	}
	for i := range l.parts {
		p := &l.parts[i]
		dst, err := l.room(p, l.refs[i])
		if err != nil {
			return err
		}
		for k := p.first; k >= 0; k = l.next[k] {
			dst = dst[copy(dst, l.entries[k]):]
		}
	}
	clear(l.slots)
	clear(l.entries)
	l.keys.Reset()
	l.parts, l.entries, l.next = l.parts[:0], l.entries[:0], l.next[:0]
	return nil
}

// room is memory for the entries of p, whose last chunk is last.
func (l *windowLog) room(p *logPart, last checkpoint.Ref) ([]byte, error) {
	n := &l.cells[p.at][p.group]
	if *n > 0 {
		if last == checkpoint.NoRow {
			return nil, errWindowLog
		}
		limit, size := chunkBytes(*n-1), len(l.table.Value(last))
		if size < limit {
			return l.table.Extend(last, p.size, max(size+p.size, min(limit, 2*(size+p.size))))
		}
	}
	l.one.Reset()
	appendChunkKey(&l.one, p.at, p.group, *n)
	ref, _, err := l.table.Insert(&l.one, 0, p.size)
	if err != nil {
		return nil, err
	}
	*n++
	return l.table.Mutable(ref), nil
}

// chunkKeySize is the length of a chunk's key: key group, time, number.
const chunkKeySize = 1 + 8 + 4

func appendChunkKey(k *checkpoint.Keys, at int64, group int, chunk uint32) {
	start := len(k.Buf)
	k.Buf = append(k.Buf, byte(group))
	k.Buf = binary.BigEndian.AppendUint64(k.Buf, uint64(at)^1<<63)
	k.Buf = binary.BigEndian.AppendUint32(k.Buf, chunk)
	k.Ends = append(k.Ends, int32(len(k.Buf)))
	k.Hashes = append(k.Hashes, subHash(uint64(group)<<57, k.Buf[start:]))
}

// chunks is how many chunks there are of a key group at time at.
func (l *windowLog) chunks(at int64, group int) uint32 {
	if c := l.cells[at]; c != nil {
		return c[group]
	}
	return 0
}

// chunk are the entries of a chunk, valid until the next use of l.
func (l *windowLog) chunk(at int64, group int, n uint32) ([]byte, error) {
	l.one.Reset()
	appendChunkKey(&l.one, at, group, n)
	if err := l.table.Probe(&l.one, l.ref[:]); err != nil {
		return nil, err
	}
	if l.ref[0] == checkpoint.NoRow {
		return nil, errWindowLog
	}
	return l.table.Value(l.ref[0]), nil
}

// remove forgets the chunk that chunk has returned last.
func (l *windowLog) remove() { l.table.Delete(l.ref[0]) }

// logRange are key groups at a time.
type logRange struct {
	at       int64
	from, to int
}

// empty tells whether there is nothing in the range.
func (l *windowLog) empty(in logRange) bool {
	s := l.scan(in)
	return s.done()
}

// scan reads a range from its beginning.
func (l *windowLog) scan(in logRange) logScan {
	s := logScan{log: l, logRange: in}
	s.settle()
	return s
}

// logScan is a place in a range.
type logScan struct {
	log *windowLog
	logRange
	chunk uint32
}

// settle moves on to a key group that has another chunk.
func (s *logScan) settle() {
	for s.from < s.to && s.chunk >= s.log.chunks(s.at, s.from) {
		s.from, s.chunk = s.from+1, 0
	}
}

func (s *logScan) done() bool { return s.from >= s.to }

// next is the next chunk, valid until the next use of the log. Until then remove takes it out of the log; a range is taken out
// from its beginning to its end, or not at all, and the time has to be forgotten then.
func (s *logScan) next() ([]byte, error) {
	b, err := s.log.chunk(s.at, s.from, s.chunk)
	s.chunk++
	s.settle()
	return b, err
}

// times are the times at which there is something, ascending.
func (l *windowLog) times(dst []int64) []int64 {
	for at := range l.cells {
		dst = append(dst, at)
	}
	slices.Sort(dst)
	return dst
}

// windowKey is the first eight bytes of the keys of a window or slice, windowEnd undoes it. Their order is that of time.
func windowKey(end int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(end)^1<<63) }

func windowEnd(key []byte) int64 { return int64(binary.BigEndian.Uint64(key) ^ 1<<63) }
