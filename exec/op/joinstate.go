package op

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// joinLayout is how the rows of one join key are told apart in state.
type joinLayout uint8

const (
	oneRow        joinLayout = iota // the side is unique on the join key: one entry, without a sub-key
	rowsByKey                       // sub-key: the side's unique columns
	rowsByContent                   // sub-key: the row itself; the value counts how often it is there
)

// joinSide is the state of one side: join key to its rows. The value of an entry is the match count (4 bytes, little
// endian, only for sides that keep counts), then the row, or for rowsByContent the number of equal rows as uvarint.
type joinSide struct {
	schema  *types.Schema
	enc     *exec.KeyEncoder
	strict  []int // key columns in which NULL matches nothing
	layout  joinLayout
	unique  *exec.KeyEncoder
	state   *multimap
	ttl     int64
	outer   bool // rows without a match are given too
	counts  bool // entries know how many rows of the other side they match
	outCols []*batch.ColBuilder
	val     []byte
}

// joinEntry is a row of a side in state.
type joinEntry struct {
	count  uint32 // matches, where kept
	copies int    // equal rows
	row    []byte // borrowed
}

var errJoinState = errors.New("join state is damaged")

func (s *joinSide) open(st exec.Subtask, name string, in JoinInput, nullSafe []bool) (err error) {
	s.schema, s.enc, s.ttl = in.Schema, exec.NewKeyEncoder(in.Keys), in.TTL
	for i, k := range in.Keys {
		if !nullSafe[i] {
			s.strict = append(s.strict, k)
		}
	}
	switch {
	case in.Unique == nil:
		s.layout = rowsByContent
	case containsAll(in.Keys, in.Unique):
		s.layout = oneRow
	default:
		s.layout, s.unique = rowsByKey, exec.NewKeyEncoder(in.Unique)
	}
	format := fmt.Sprintf("join/1;%d;%t;%v;%s", s.layout, s.counts, in.Unique, rowFormat(in.Schema))
	s.state, err = openMultimap(st, name, format, in.TTL)
	return err
}

func containsAll(set, of []int) bool {
	for _, x := range of {
		found := false
		for _, y := range set {
			found = found || x == y
		}
		if !found {
			return false
		}
	}
	return true
}

// nullKey reports that physical row r has a NULL in a key that NULL does not match.
func (s *joinSide) nullKey(b *batch.Batch, r int) bool {
	for _, k := range s.strict {
		if b.Cols[k].IsNull(r) {
			return true
		}
	}
	return false
}

// appendSub appends the sub-key of a row; image is its encoding.
func (s *joinSide) appendSub(dst []byte, b *batch.Batch, r int, image []byte) []byte {
	switch s.layout {
	case oneRow:
		return dst
	case rowsByKey:
		return s.unique.AppendKey(dst, b, r)
	}
	return append(dst, image...)
}

// decode splits an entry.
func (s *joinSide) decode(sub, val []byte) (e joinEntry, err error) {
	if s.counts {
		if len(val) < 4 {
			return e, errJoinState
		}
		e.count, val = binary.LittleEndian.Uint32(val), val[4:]
	}
	e.copies, e.row = 1, val
	if s.layout == rowsByContent {
		n, w := binary.Uvarint(val)
		if w <= 0 || n > math.MaxInt {
			return e, errJoinState
		}
		e.copies, e.row = int(n), sub
	}
	return e, nil
}

// put stores the current row of the batch with its matches.
func (s *joinSide) put(b bucket, c *currentRow) error {
	s.val = s.val[:0]
	if s.counts {
		s.val = binary.LittleEndian.AppendUint32(s.val, c.matches)
	}
	if s.layout != rowsByContent {
		s.val = append(s.val, c.image...)
		return b.put(c.sub, s.val)
	}
	head := len(s.val)
	s.val = append(s.val, 1) // copy
	old, added, err := b.add(c.sub, s.val)
	if added || err != nil {
		return err
	}
	e, err := s.decode(c.sub, old)
	if err != nil {
		return err
	}
	s.val = binary.AppendUvarint(s.val[:head], uint64(1+e.copies))
	return b.put(c.sub, s.val)
}

// remove takes one copy of the current row out of the state and reports whether there was one.
func (s *joinSide) remove(b bucket, c *currentRow) (bool, error) {
	if s.layout != rowsByContent {
		return b.remove(c.sub)
	}
	old, ok, err := b.get(c.sub)
	if err != nil || !ok {
		return false, err
	}
	e, err := s.decode(c.sub, old)
	if err != nil {
		return false, err
	}
	if e.copies <= 1 {
		return b.remove(c.sub)
	}
	s.val = s.val[:0]
	if s.counts {
		s.val = binary.LittleEndian.AppendUint32(s.val, e.count)
	}
	s.val = binary.AppendUvarint(s.val, uint64(e.copies-1))
	return true, b.put(c.sub, s.val)
}

// maxCountUpdates bounds the changes of match counts that are held back while a bucket is visited.
const maxCountUpdates = batch.Size

// countUpdates are new match counts of entries of one bucket, applied when its visit is over.
type countUpdates struct {
	buf  []byte
	ends []int // of sub, of value, of sub, …
}

// add notes that the entry has another count.
func (u *countUpdates) add(sub, val []byte, count uint32) {
	u.buf = append(u.buf, sub...)
	u.ends = append(u.ends, len(u.buf))
	u.buf = binary.LittleEndian.AppendUint32(u.buf, count)
	u.buf = append(u.buf, val[4:]...)
	u.ends = append(u.ends, len(u.buf))
}

func (u *countUpdates) full() bool { return len(u.ends) >= 2*maxCountUpdates }

// apply writes the changes to b.
func (u *countUpdates) apply(b bucket) error {
	start := 0
	for i := 0; i < len(u.ends); i += 2 {
		sub, val := u.buf[start:u.ends[i]], u.buf[u.ends[i]:u.ends[i+1]]
		if err := b.put(sub, val); err != nil {
			return err
		}
		start = u.ends[i+1]
	}
	u.buf, u.ends = u.buf[:0], u.ends[:0]
	return nil
}
