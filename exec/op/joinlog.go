package op

import (
	"encoding/binary"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// joinLog is the state of a join to whose sides rows are only added: for each join key the rows of both sides in the order
// they came, a side's found by reading all of them. The newest rows of a key are in its row of one table (roots); when a
// side has too many there, they become a segment, a row of a second table (segments) that never changes again. So one probe
// finds a key's rows of both sides, adding a row costs one copy of it, and a checkpoint writes each row about once. A
// segment lies in its key's key group.
//
// A root is the number of segments of the left side, that of the right side, how many bytes of left rows it has (four bytes
// each, little endian), then left rows, then right rows.
//
// A joinLog is used like a table: probe once for a batch, then read and add.
type joinLog struct {
	roots, segments checkpoint.Table
	keys            *checkpoint.Keys
	refs            []checkpoint.Ref
	one             checkpoint.Keys
	root            []byte
	made, bytes     int64 // roots made since the log was opened, and what was put into them
}

const (
	joinLogFormat = "joinlog/1;"
	joinLogHead   = 12
	segmentMin    = 1 << 10
	segmentMax    = 4 << 10
	segmentRun    = 32 << 10 // of rows that come in one batch
)

const (
	joinLogSample = 1 << 10 // roots after which their average counts
	joinLogForget = 1 << 16 // roots after which older ones count half
	joinLogAhead  = 4       // times what a new root takes, it gets at most
)

// segmentBytes is how large the next segment is to be of a key that has n.
func segmentBytes(n uint32) int { return min(segmentMin<<min(n/4, 8), segmentMax) }

// openJoinLog opens the state. Rows tell how long they are; format names their layout.
func openJoinLog(s exec.Subtask, format string) (*joinLog, error) {
	l := &joinLog{}
	var err error
	if l.roots, err = s.Table(checkpoint.TableOptions{Name: "rows", Format: joinLogFormat + format}); err != nil {
		return nil, err
	}
	l.segments, err = s.Table(checkpoint.TableOptions{Name: "segments", Format: joinLogFormat + format, WriteOnce: true})
	return l, err
}

// probe brings the newest rows of keys into memory, one table probe for the batch. keys must stay unchanged until the
// next probe. Everything borrowed before is invalid.
func (l *joinLog) probe(keys *checkpoint.Keys) error {
	l.keys, l.refs = keys, resize(l.refs, keys.Len())
	if err := l.roots.Probe(keys, l.refs); err != nil {
		return err
	}
	l.one.Reset()
	return l.segments.Probe(&l.one, nil)
}

// rootOf splits a root for a side: its number of segments, and where its rows begin and end.
func rootOf(root []byte, side int) (segments uint32, from, to int, err error) {
	if len(root) < joinLogHead {
		return 0, 0, 0, errJoinState
	}
	middle := joinLogHead + int(binary.LittleEndian.Uint32(root[8:]))
	if middle > len(root) {
		return 0, 0, 0, errJoinState
	}
	if side == 0 {
		return binary.LittleEndian.Uint32(root), joinLogHead, middle, nil
	}
	return binary.LittleEndian.Uint32(root[4:]), middle, len(root), nil
}

// add adds rows of a side, 0 = left, to key i of the last probe: those that buf has between the places given.
func (l *joinLog) add(side, i int, buf []byte, at []int) error {
	for len(at) > 1 {
		var n int
		var err error
		if l.refs[i] == checkpoint.NoRow {
			n, err = l.addFirst(side, i, buf, at)
		} else {
			n, err = l.addSome(side, i, buf, at)
		}
		if err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}

// room is what memory a new root of n bytes gets: a quarter more than roots take on average, if that is more. Where keys get
// their rows by and by, most then stay where they are; where most stay with the first ones, little is wasted.
func (l *joinLog) room(n int) int {
	if l.made < joinLogSample {
		return n
	}
	average := int(l.bytes / l.made)
	return max(n, min(average+average/4, joinLogAhead*n))
}

// addFirst is addSome for a key without rows. Many rows are left to addSome.
func (l *joinLog) addFirst(side, i int, buf []byte, at []int) (int, error) {
	n := 0
	if at[len(at)-1]-at[0] < segmentMin { // addSome puts more than that elsewhere
		n = len(at) - 1
	}
	rows := buf[at[0]:at[n]]
	ref, _, err := l.roots.Insert(l.keys, i, joinLogHead)
	if err != nil {
		return 0, err
	}
	l.refs[i] = ref
	size := joinLogHead + len(rows)
	end, err := l.roots.Extend(ref, len(rows), l.room(size)) // where the row is, as the newest one
	if err != nil {
		return 0, err
	}
	if l.made, l.bytes = l.made+1, l.bytes+int64(size); l.made == joinLogForget {
		l.made, l.bytes = l.made/2, l.bytes/2
	}
	if copy(end, rows); side == 0 {
		binary.LittleEndian.PutUint32(l.roots.Mutable(ref)[8:], uint32(len(rows)))
	}
	return n, nil
}

// addSome adds rows up to the end of a segment and returns how many.
func (l *joinLog) addSome(side, i int, buf []byte, at []int) (int, error) {
	ref := l.refs[i]
	root := l.roots.Value(ref)
	segments, from, to, err := rootOf(root, side)
	if err != nil {
		return 0, err
	}
	limit := segmentBytes(segments)
	many := at[len(at)-1]-at[0] >= limit
	if to > from && (many || to-from+at[1]-at[0] > limit) {
		if err := l.seal(side, i, segments, root[from:to]); err != nil {
			return 0, err
		}
		segments++
		l.root = append(append(l.root[:0], root[:from]...), root[to:]...)
		binary.LittleEndian.PutUint32(l.root[4*side:], segments)
		if side == 0 {
			binary.LittleEndian.PutUint32(l.root[8:], 0)
		}
		l.roots.Set(ref, l.root)
		l.bytes -= int64(to - from)
		root, to = l.root, from
	}
	if many { // they need not go through the root
		n := fitting(at, segmentRun)
		binary.LittleEndian.PutUint32(l.roots.Mutable(ref)[4*side:], segments+1)
		return n, l.seal(side, i, segments, buf[at[0]:at[n]])
	}
	n := fitting(at, limit-(to-from))
	rows := buf[at[0]:at[n]]
	size := len(root) + len(rows)
	// Little room: most keys that outgrow their first memory have nearly all their rows by then, and what a key does not use
	// costs more than to move it, since memory that was not in use before has to be cleared.
	end, err := l.roots.Extend(ref, len(rows), min(size+size/4, max(size, size-(to-from)+limit)))
	if err != nil {
		return 0, err
	}
	l.bytes += int64(len(rows))
	if side == 1 {
		copy(end, rows)
		return n, nil
	}
	root = l.roots.Mutable(ref)
	copy(root[to+len(rows):], root[to:]) // the right side makes room
	copy(root[to:], rows)
	binary.LittleEndian.PutUint32(root[8:], uint32(to+len(rows)-joinLogHead))
	return n, nil
}

// fitting is how many rows of those between the places given room has, one at least.
func fitting(at []int, room int) int {
	n, _ := slices.BinarySearch(at, at[0]+room+1)
	return max(n-1, 1)
}

// segment makes the key of segment n of a side and key i.
func (l *joinLog) segment(side, i int, n uint32) {
	l.one.Reset()
	l.one.Buf = binary.BigEndian.AppendUint32(append(append(l.one.Buf, l.keys.Key(i)...), byte(side)), n)
	l.one.Ends = append(l.one.Ends, int32(len(l.one.Buf)))
	l.one.Hashes = append(l.one.Hashes, subHash(l.keys.Hashes[i], l.one.Buf))
}

// seal makes segment n of a side and key i.
func (l *joinLog) seal(side, i int, n uint32, rows []byte) error {
	l.segment(side, i, n)
	ref, _, err := l.segments.Insert(&l.one, 0, len(rows))
	if err != nil {
		return err
	}
	copy(l.segments.Mutable(ref), rows)
	return nil
}

// read calls f with the rows of a side of key i of the last probe, some at a time. What f gets is valid until the next
// change of l.
func (l *joinLog) read(side, i int, f func(rows []byte) error) error {
	if l.refs[i] == checkpoint.NoRow {
		return nil
	}
	root := l.roots.Value(l.refs[i])
	segments, from, to, err := rootOf(root, side)
	if err != nil {
		return err
	}
	for n := range segments {
		l.segment(side, i, n)
		ref, err := l.segments.Find(l.one.Hashes[0], l.one.Buf)
		if err != nil {
			return err
		}
		if ref == checkpoint.NoRow {
			return errJoinState
		}
		if err := f(l.segments.Value(ref)); err != nil {
			return err
		}
	}
	return f(root[from:to])
}
