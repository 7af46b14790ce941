package op

import (
	"encoding/binary"
	"math"
	"sort"
	"strings"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// extremeSet keeps, for a MIN or MAX over a retracting input, every value of a group with its count, so that the next
// extreme is known when the current one leaves. Its table has a row per group: entries sorted ascending, each
// uvarint length, order-preserving bytes, varint count. Counts may be negative while a retraction precedes its
// insertion, as in Flink; such values are never the extreme. An update costs O(distinct values of the group).
type extremeSet struct {
	table checkpoint.Table
	key   checkpoint.Keys
	refs  [1]checkpoint.Ref
	vals  []string
	ns    []int64
	buf   []byte
}

const extremesFormat = "extremes/1"

func openExtremes(s exec.Subtask, name string, ttl int64) (*extremeSet, error) {
	t, err := s.Table(checkpoint.TableOptions{Name: name, Format: extremesFormat, TTL: ttl})
	if err != nil {
		return nil, err
	}
	return &extremeSet{table: t}, nil
}

// update changes the count of value by sign in the group with the given key and hash, and returns the smallest and the
// largest value present.
func (e *extremeSet) update(key []byte, hash uint64, value string, sign int64) (min, max string, some bool, err error) {
	if err := e.find(key, hash); err != nil {
		return "", "", false, err
	}
	var blob []byte
	if e.refs[0] != checkpoint.NoRow {
		blob = e.table.Value(e.refs[0])
	}
	e.decode(blob)
	i := sort.SearchStrings(e.vals, value)
	if i < len(e.vals) && e.vals[i] == value {
		e.ns[i] += sign
		if e.ns[i] == 0 {
			e.vals = append(e.vals[:i], e.vals[i+1:]...)
			e.ns = append(e.ns[:i], e.ns[i+1:]...)
		}
	} else {
		e.vals = append(e.vals, "")
		copy(e.vals[i+1:], e.vals[i:])
		e.vals[i] = value
		e.ns = append(e.ns, 0)
		copy(e.ns[i+1:], e.ns[i:])
		e.ns[i] = sign
	}
	if len(e.vals) == 0 {
		e.table.Delete(e.refs[0])
		return "", "", false, nil
	}
	if e.refs[0] == checkpoint.NoRow {
		if e.refs[0], _, err = e.table.Insert(&e.key, 0, 0); err != nil {
			return "", "", false, err
		}
	}
	e.table.Set(e.refs[0], e.encode())
	for i, n := range e.ns {
		if n > 0 {
			if !some {
				min = e.vals[i]
			}
			max, some = e.vals[i], true
		}
	}
	return strings.Clone(min), strings.Clone(max), some, nil
}

// find probes for one group. The hash is the group's: it is not that of the key bytes in windows.
func (e *extremeSet) find(key []byte, hash uint64) error {
	e.key.Reset()
	e.key.Buf = append(e.key.Buf, key...)
	e.key.Ends = append(e.key.Ends, int32(len(key)))
	e.key.Hashes = append(e.key.Hashes, hash)
	return e.table.Probe(&e.key, e.refs[:])
}

// drop forgets a group.
func (e *extremeSet) drop(key []byte, hash uint64) error {
	if err := e.find(key, hash); err != nil {
		return err
	}
	if e.refs[0] != checkpoint.NoRow {
		e.table.Delete(e.refs[0])
	}
	return nil
}

func (e *extremeSet) decode(blob []byte) {
	e.vals, e.ns = e.vals[:0], e.ns[:0]
	s := string(blob)
	for len(s) > 0 {
		n, w := binary.Uvarint([]byte(s[:min(len(s), 10)]))
		s = s[w:]
		e.vals = append(e.vals, s[:n])
		s = s[n:]
		c, w := binary.Varint([]byte(s[:min(len(s), 10)]))
		e.ns = append(e.ns, c)
		s = s[w:]
	}
}

func (e *extremeSet) encode() []byte {
	e.buf = e.buf[:0]
	for i, v := range e.vals {
		e.buf = binary.AppendUvarint(e.buf, uint64(len(v)))
		e.buf = append(e.buf, v...)
		e.buf = binary.AppendVarint(e.buf, e.ns[i])
	}
	return e.buf
}

// orderedBytes appends the order-preserving encoding of the non-NULL value at index i of v.
func orderedBytes(dst []byte, v *batch.Vec, i int) []byte {
	switch v.Type.Phys() {
	case types.PhysI64:
		return binary.BigEndian.AppendUint64(dst, uint64(v.I64[i])^1<<63)
	case types.PhysF64:
		return orderedFloat(dst, v.F64[i])
	case types.PhysBool:
		return append(dst, byte(boolWord(v.Bool[i])))
	case types.PhysI128:
		dst = binary.BigEndian.AppendUint64(dst, uint64(v.I128[i].Hi)^1<<63)
		return binary.BigEndian.AppendUint64(dst, v.I128[i].Lo)
	}
	return append(dst, v.Str[i]...)
}

func orderedFloat(dst []byte, x float64) []byte {
	u := math.Float64bits(x)
	if u>>63 != 0 {
		u = ^u
	} else {
		u |= 1 << 63
	}
	return binary.BigEndian.AppendUint64(dst, u)
}

// fromOrdered is the inverse of orderedBytes for the fixed-size classes: the words of an extreme.
func fromOrdered(p types.Phys, s string) (lo, hi int64) {
	b := []byte(s)
	switch p {
	case types.PhysF64:
		u := binary.BigEndian.Uint64(b)
		if u>>63 != 0 {
			u &^= 1 << 63
		} else {
			u = ^u
		}
		return int64(u), 0
	case types.PhysBool:
		return int64(b[0]), 0
	case types.PhysI128:
		return int64(binary.BigEndian.Uint64(b[8:])), int64(binary.BigEndian.Uint64(b) ^ 1<<63)
	}
	return int64(binary.BigEndian.Uint64(b) ^ 1<<63), 0
}
