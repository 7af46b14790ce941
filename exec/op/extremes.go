package op

import (
	"encoding/binary"
	"errors"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// extremeSet keeps, for a MIN or MAX over a retracting input, every value of a group with its count, so that the next
// extreme is known when the current one leaves. Counts may be negative while a retraction precedes its insertion, as in
// Flink; such values are never the extreme.
type extremeSet struct {
	values     *multimap // group → order-preserving bytes of the value → count, eight bytes
	key        checkpoint.Keys
	sub, count []byte
}

const extremesFormat = "extremes/2"

func openExtremes(s exec.Subtask, name string, ttl int64) (*extremeSet, error) {
	m, err := openMultimap(s, name, extremesFormat, ttl)
	return &extremeSet{values: m, count: make([]byte, 8)}, err
}

// update changes the count of value by sign in the group with the given key and hash, and returns the smallest and the
// largest value present.
func (e *extremeSet) update(key []byte, hash uint64, value string, sign int64) (min, max string, some bool, err error) {
	b, err := e.find(key, hash)
	if err != nil {
		return "", "", false, err
	}
	e.sub = append(e.sub[:0], value...)
	old, ok, err := b.get(e.sub)
	if err != nil {
		return "", "", false, err
	}
	n := sign
	if ok {
		n += word(old, 0)
	}
	if n == 0 {
		_, err = b.remove(e.sub)
	} else {
		setWord(e.count, 0, n)
		err = b.put(e.sub, e.count)
	}
	if err == nil {
		min, max, some, err = e.ends(b)
	}
	return min, max, some, errors.Join(err, e.values.done())
}

func (e *extremeSet) ends(b bucket) (min, max string, some bool, err error) {
	err = b.ascend(nil, func(sub, n []byte) bool {
		if word(n, 0) > 0 {
			min, some = string(sub), true
		}
		return !some
	})
	if err != nil || !some {
		return "", "", false, err
	}
	err = b.descend(nil, func(sub, n []byte) bool {
		if word(n, 0) > 0 {
			max = string(sub)
			return false
		}
		return true
	})
	return min, max, some, err
}

// find probes for one group. The hash is the group's: it is not that of the key bytes in windows.
func (e *extremeSet) find(key []byte, hash uint64) (bucket, error) {
	e.key.Reset()
	e.key.Buf = append(e.key.Buf, key...)
	e.key.Ends = append(e.key.Ends, int32(len(key)))
	e.key.Hashes = append(e.key.Hashes, hash)
	err := e.values.probe(&e.key)
	return e.values.at(0), err
}

// drop forgets a group.
func (e *extremeSet) drop(key []byte, hash uint64) error {
	b, err := e.find(key, hash)
	if err != nil {
		return err
	}
	if err := b.clear(); err != nil {
		return err
	}
	return e.values.done()
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
