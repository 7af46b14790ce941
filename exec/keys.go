package exec

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// KeyEncoder turns key columns into state keys: the value encoding of sql/types (NULL byte, then the value), column
// after column. Equal keys have equal bytes, NULL equals NULL, and the bytes can be decoded again. Exchanges and
// operators use the same encoding, so a row reaches the subtask that owns its key group.
type KeyEncoder struct {
	cols []int
}

// NewKeyEncoder encodes the given columns, in order.
func NewKeyEncoder(cols []int) *KeyEncoder { return &KeyEncoder{cols: cols} }

// Encode fills keys with the key of every row of b that counts, and its hash.
func (e *KeyEncoder) Encode(b *batch.Batch, keys *checkpoint.Keys) {
	keys.Reset()
	n := b.Len()
	if len(e.cols) == 1 && b.Cols[e.cols[0]].Type.Phys() == types.PhysI64 && !b.Cols[e.cols[0]].Const {
		e.encodeI64(b, b.Cols[e.cols[0]], keys)
		return
	}
	if len(e.cols) > 0 && e.allInts(b) {
		e.encodeInts(b, keys)
		return
	}
	for i := 0; i < n; i++ {
		start := len(keys.Buf)
		keys.Buf = e.AppendKey(keys.Buf, b, b.Row(i))
		keys.Ends = append(keys.Ends, int32(len(keys.Buf)))
		keys.Hashes = append(keys.Hashes, checkpoint.HashKey(keys.Buf[start:]))
	}
}

// encodeI64 is Encode for one integer column, the most frequent key.
func (e *KeyEncoder) encodeI64(b *batch.Batch, v *batch.Vec, keys *checkpoint.Keys) {
	n := b.Len()
	buf := slices.Grow(keys.Buf, 9*n)[:9*n]
	ends, hashes := slices.Grow(keys.Ends, n)[:n], slices.Grow(keys.Hashes, n)[:n]
	end := 0
	for i := range ends {
		r := b.Row(i)
		key := buf[end : end+9]
		if v.IsNull(r) {
			key = key[:1]
			key[0] = 0
		} else {
			key[0] = 1
			binary.LittleEndian.PutUint64(key[1:], uint64(v.I64[r]))
		}
		end += len(key)
		ends[i], hashes[i] = int32(end), checkpoint.HashKey(key)
	}
	keys.Buf, keys.Ends, keys.Hashes = buf[:end], ends, hashes
}

// allInts reports that the key columns are integers without NULL.
func (e *KeyEncoder) allInts(b *batch.Batch) bool {
	for _, c := range e.cols {
		if v := b.Cols[c]; v.Valid != nil || v.Type.Phys() != types.PhysI64 {
			return false
		}
	}
	return true
}

// encodeInts is Encode for integers, such as the start and end of a window, a column at a time. Keys often come in runs, whose hash
// is computed once.
func (e *KeyEncoder) encodeInts(b *batch.Batch, keys *checkpoint.Keys) {
	n, width := b.Len(), 9*len(e.cols)
	buf := slices.Grow(keys.Buf, width*n)[:width*n]
	ends, hashes := slices.Grow(keys.Ends, n)[:n], slices.Grow(keys.Hashes, n)[:n]
	for k, c := range e.cols {
		v := b.Cols[c]
		at := 9 * k
		for i := range n {
			field := buf[at : at+9]
			field[0] = 1
			binary.LittleEndian.PutUint64(field[1:], uint64(v.I64[v.Idx(b.Row(i))]))
			at += width
		}
	}
	var last []byte
	for i := range ends {
		key := buf[i*width : (i+1)*width]
		if i > 0 && bytes.Equal(key, last) {
			hashes[i] = hashes[i-1]
		} else {
			hashes[i] = checkpoint.HashKey(key)
		}
		ends[i], last = int32((i+1)*width), key
	}
	keys.Buf, keys.Ends, keys.Hashes = buf, ends, hashes
}

// AppendKey appends the key of physical row r to dst.
func (e *KeyEncoder) AppendKey(dst []byte, b *batch.Batch, r int) []byte {
	for _, c := range e.cols {
		dst = AppendColumn(dst, b.Cols[c], r)
	}
	return dst
}

// AppendColumn appends the encoding of one value: physical row r of v.
func AppendColumn(dst []byte, v *batch.Vec, r int) []byte {
	if v.IsNull(r) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	r = v.Idx(r)
	switch v.Type.Phys() {
	case types.PhysI64:
		return binary.LittleEndian.AppendUint64(dst, uint64(v.I64[r]))
	case types.PhysF64:
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(v.F64[r]))
	case types.PhysBool:
		if v.Bool[r] {
			return append(dst, 1)
		}
		return append(dst, 0)
	case types.PhysI128:
		dst = binary.LittleEndian.AppendUint64(dst, v.I128[r].Lo)
		return binary.LittleEndian.AppendUint64(dst, uint64(v.I128[r].Hi))
	}
	if v.Type.IsNested() {
		// A nested value in a column is already encoded and self-delimiting.
		return append(dst, v.Str[r]...)
	}
	dst = binary.AppendUvarint(dst, uint64(len(v.Str[r])))
	return append(dst, v.Str[r]...)
}

// DecodeKey appends the columns of an encoded key to cols, one value each, and returns the rest of key. Strings are
// copied out of key. An error means damaged state.
func DecodeKey(key []byte, cols []*batch.ColBuilder) (rest []byte, err error) {
	for i, c := range cols {
		if key, err = decodeColumn(key, c); err != nil {
			return nil, fmt.Errorf("key column %d: %w", i, err)
		}
	}
	return key, nil
}

var errKey = fmt.Errorf("encoded key is damaged")

func decodeColumn(key []byte, c *batch.ColBuilder) ([]byte, error) {
	if len(key) == 0 {
		return nil, errKey
	}
	if key[0] == 0 {
		c.AppendNull()
		return key[1:], nil
	}
	key = key[1:]
	switch p := c.Type.Phys(); {
	case c.Type.IsNested():
		d, rest, err := types.DecodeValue("\x01"+string(key), c.Type)
		if err != nil {
			return nil, err
		}
		c.AppendDatum(d)
		return key[len(key)-len(rest):], nil
	case p == types.PhysStr:
		n, w := binary.Uvarint(key)
		if w <= 0 || uint64(len(key)-w) < n {
			return nil, errKey
		}
		c.AppendStr(string(key[w : w+int(n)]))
		return key[w+int(n):], nil
	case p == types.PhysBool:
		if len(key) < 1 {
			return nil, errKey
		}
		c.AppendBool(key[0] != 0)
		return key[1:], nil
	case len(key) < 8 || p == types.PhysI128 && len(key) < 16:
		return nil, errKey
	case p == types.PhysF64:
		c.AppendF64(math.Float64frombits(binary.LittleEndian.Uint64(key)))
		return key[8:], nil
	case p == types.PhysI128:
		c.AppendI128(types.Int128{Lo: binary.LittleEndian.Uint64(key), Hi: int64(binary.LittleEndian.Uint64(key[8:]))})
		return key[16:], nil
	}
	c.AppendI64(int64(binary.LittleEndian.Uint64(key)))
	return key[8:], nil
}

// SkipColumn is key without its first value, one of type t. Damaged keys give an empty rest.
func SkipColumn(key []byte, t types.Type) []byte {
	if len(key) == 0 || key[0] == 0 {
		return key[min(len(key), 1):]
	}
	n := 9
	switch p := t.Phys(); {
	case t.IsNested():
		_, rest, err := types.DecodeValue(string(key), t)
		if err != nil {
			return nil
		}
		return key[len(key)-len(rest):]
	case p == types.PhysStr:
		l, w := binary.Uvarint(key[1:])
		n = 1 + w + int(l)
	case p == types.PhysBool:
		n = 2
	case p == types.PhysI128:
		n = 17
	}
	if n > len(key) {
		return nil
	}
	return key[n:]
}
