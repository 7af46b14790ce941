package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// rowLog is keyed state to which rows are only added: for each key the rows in the order they came, found by reading all
// of them. The newest rows of a key are in its row of one table (roots), behind the number of segments; when they are too
// many they become a segment, a row of a second table (segments) that never changes again. So adding a row costs one copy
// of it, and a checkpoint writes each row about once. A segment lies in its key's key group.
//
// A rowLog is used like a table: probe once for a batch, then add and read.
type rowLog struct {
	roots, segments checkpoint.Table
	keys            *checkpoint.Keys
	refs            []checkpoint.Ref
	one             checkpoint.Keys
	head            [rowLogHead]byte
}

const (
	rowLogFormat = "rowlog/1;"
	rowLogHead   = 4 // bytes: number of segments
	segmentMin   = 1 << 10
	segmentMax   = 4 << 10
)

// segmentBytes is how large the next segment is to be of a key that has n.
func segmentBytes(n uint32) int { return min(segmentMin<<min(n/4, 8), segmentMax) }

// openRowLog opens the state named name. Rows tell how long they are; format names their layout.
func openRowLog(s exec.Subtask, name, format string) (*rowLog, error) {
	l := &rowLog{}
	var err error
	if l.roots, err = s.Table(checkpoint.TableOptions{Name: name, Format: rowLogFormat + format}); err != nil {
		return nil, err
	}
	l.segments, err = s.Table(checkpoint.TableOptions{Name: name + ".segments", Format: rowLogFormat + format, WriteOnce: true})
	return l, err
}

// probe brings the newest rows of keys into memory, one table probe for the batch. keys must stay unchanged until the
// next probe. Everything borrowed before is invalid.
func (l *rowLog) probe(keys *checkpoint.Keys) error {
	l.keys, l.refs = keys, resize(l.refs, keys.Len())
	if err := l.roots.Probe(keys, l.refs); err != nil {
		return err
	}
	l.one.Reset()
	return l.segments.Probe(&l.one, nil)
}

// add adds rows to key i of the last probe: those that buf has between the places given.
func (l *rowLog) add(i int, buf []byte, at []int) error {
	for len(at) > 1 {
		n, err := l.addSome(i, buf, at)
		if err != nil {
			return err
		}
		at = at[n:]
	}
	return nil
}

// addSome adds rows up to the end of a segment and returns how many.
func (l *rowLog) addSome(i int, buf []byte, at []int) (int, error) {
	if l.refs[i] == checkpoint.NoRow {
		ref, created, err := l.roots.Insert(l.keys, i, rowLogHead)
		if err != nil {
			return 0, err
		}
		l.refs[i] = ref
		if created {
			n := fitting(at, segmentMin-rowLogHead)
			rows := buf[at[0]:at[n]]
			end, err := l.roots.Extend(ref, len(rows), 0)
			copy(end, rows)
			return n, err
		}
	}
	ref := l.refs[i]
	root := l.roots.Value(ref)
	if len(root) < rowLogHead {
		return 0, errJoinState
	}
	segments := binary.LittleEndian.Uint32(root)
	limit := segmentBytes(segments)
	if len(root)+at[1]-at[0] > limit && len(root) > rowLogHead {
		if err := l.seal(i, segments, root[rowLogHead:]); err != nil {
			return 0, err
		}
		binary.LittleEndian.PutUint32(l.head[:], segments+1)
		l.roots.Set(ref, l.head[:])
		root = l.head[:]
	}
	n := fitting(at, limit-len(root))
	rows := buf[at[0]:at[n]]
	size := len(root) + len(rows)
	end, err := l.roots.Extend(ref, len(rows), min(3*size, max(size, limit)))
	copy(end, rows)
	return n, err
}

// fitting is how many rows of those between the places given room has, one at least.
func fitting(at []int, room int) int {
	n := len(at) - 1
	for n > 1 && at[n]-at[0] > room {
		n--
	}
	return n
}

// seal makes segment n of key i.
func (l *rowLog) seal(i int, n uint32, rows []byte) error {
	l.one.Reset()
	l.one.Buf = binary.BigEndian.AppendUint32(append(l.one.Buf, l.keys.Key(i)...), n)
	l.one.Ends = append(l.one.Ends, int32(len(l.one.Buf)))
	l.one.Hashes = append(l.one.Hashes, subHash(l.keys.Hashes[i], l.one.Buf))
	ref, _, err := l.segments.Insert(&l.one, 0, len(rows))
	if err != nil {
		return err
	}
	copy(l.segments.Mutable(ref), rows)
	return nil
}

// read calls f with the rows of key i of the last probe, some at a time. What f gets is valid until the next change of l.
func (l *rowLog) read(i int, f func(rows []byte) error) error {
	if l.refs[i] == checkpoint.NoRow {
		return nil
	}
	root := l.roots.Value(l.refs[i])
	if len(root) < rowLogHead {
		return errJoinState
	}
	for n := range binary.LittleEndian.Uint32(root) {
		l.one.Buf = binary.BigEndian.AppendUint32(append(l.one.Buf[:0], l.keys.Key(i)...), n)
		ref, err := l.segments.Find(subHash(l.keys.Hashes[i], l.one.Buf), l.one.Buf)
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
	return f(root[rowLogHead:])
}
