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
	n := b.Len()
	keys.Hashes = slices.Grow(keys.Hashes[:0], n)[:n]
	keys.Ends = slices.Grow(keys.Ends[:0], n)[:n]
	if e.words(b) {
		e.encodeWords(b, keys)
		return
	}
	if len(e.cols) == 1 && b.Cols[e.cols[0]].Type.Phys() == types.PhysI64 {
		encodeNullable(b, b.Cols[e.cols[0]], keys)
		return
	}
	buf, start := keys.Buf[:0], 0
	var last []byte
	for i := range keys.Ends {
		buf = e.AppendKey(buf, b, b.Row(i))
		// Equal keys often come in runs, such as the days of a time.
		if key := buf[start:]; i > 0 && bytes.Equal(key, last) {
			keys.Hashes[i] = keys.Hashes[i-1]
		} else {
			keys.Hashes[i] = checkpoint.HashKey(key)
		}
		last, start = buf[start:], len(buf)
		keys.Ends[i] = int32(start)
	}
	keys.Buf = buf
}

// Hashes is the hash of the key of every row of b that counts, for a caller that needs no keys. It is in the memory of keys,
// whose other fields it leaves undefined.
func (e *KeyEncoder) Hashes(b *batch.Batch, keys *checkpoint.Keys) []uint64 {
	if len(e.cols) > 2 || !e.words(b) || !e.ints(b) {
		e.Encode(b, keys)
		return keys.Hashes
	}
	n := b.Len()
	keys.Hashes = slices.Grow(keys.Hashes[:0], n)[:n]
	hashes, v := keys.Hashes, b.Cols[e.cols[0]]
	switch {
	case len(e.cols) == 2:
		w := b.Cols[e.cols[1]]
		for i := range hashes {
			r := b.Row(i)
			hashes[i] = checkpoint.HashWords2(uint64(v.I64[r]), uint64(w.I64[r]))
		}
	case b.Sel == nil:
		for i, x := range v.I64[:n] {
			hashes[i] = checkpoint.HashWord(uint64(x))
		}
	default:
		for i, r := range b.Sel {
			hashes[i] = checkpoint.HashWord(uint64(v.I64[r]))
		}
	}
	return hashes
}

// ints reports that the key columns are integers or times, a value per row.
func (e *KeyEncoder) ints(b *batch.Batch) bool {
	for _, c := range e.cols {
		if v := b.Cols[c]; v.Const || v.Type.Phys() != types.PhysI64 {
			return false
		}
	}
	return true
}

// words reports that the key columns are integers, times or floats without NULL.
func (e *KeyEncoder) words(b *batch.Batch) bool {
	for _, c := range e.cols {
		v := b.Cols[c]
		if p := v.Type.Phys(); p != types.PhysI64 && p != types.PhysF64 || v.HasNull(b.N, b.Sel) {
			return false
		}
	}
	return len(e.cols) > 0
}

// encodeWords is Encode a column at a time.
func (e *KeyEncoder) encodeWords(b *batch.Batch, keys *checkpoint.Keys) {
	n, width := len(keys.Ends), wordField*len(e.cols)
	keys.Buf = slices.Grow(keys.Buf[:0], width*n)[:width*n]
	for k, c := range e.cols {
		if len(keys.Buf) > 0 {
			putWords(keys.Buf[wordField*k:], width, n, b, b.Cols[c])
		}
	}
	for i := range keys.Ends {
		keys.Ends[i] = int32((i + 1) * width)
	}
	hashWords(keys.Buf, width, keys.Hashes)
}

// encodeNullable is Encode for one integer column with NULLs.
func encodeNullable(b *batch.Batch, v *batch.Vec, keys *checkpoint.Keys) {
	n, end := len(keys.Ends), 0
	buf := slices.Grow(keys.Buf[:0], wordField*n)[:wordField*n]
	null := checkpoint.HashKey([]byte{0})
	for i := range keys.Ends {
		r := b.Row(i)
		if v.IsNull(r) {
			buf[end] = 0
			keys.Hashes[i] = null
			end++
		} else {
			x := uint64(v.I64[v.Idx(r)])
			buf[end] = 1
			binary.LittleEndian.PutUint64(buf[end+1:], x)
			keys.Hashes[i] = checkpoint.HashWord(x)
			end += wordField
		}
		keys.Ends[i] = int32(end)
	}
	keys.Buf = buf[:end]
}

const wordField = 9 // bytes of an encoded value of eight bytes that is not NULL

// putWords stores the n rows of v that count at every width-th byte of buf.
func putWords(buf []byte, width, n int, b *batch.Batch, v *batch.Vec) {
	put := func(at int, x uint64) {
		f := buf[at : at+wordField : at+wordField]
		f[0] = 1
		binary.LittleEndian.PutUint64(f[1:], x)
	}
	at := 0
	switch {
	case v.Type.Phys() == types.PhysF64:
		for i := range n {
			put(at, math.Float64bits(v.F64[v.Idx(b.Row(i))]))
			at += width
		}
	case v.Const:
		for range n {
			put(at, uint64(v.I64[0]))
			at += width
		}
	case b.Sel == nil:
		for _, x := range v.I64[:n] {
			put(at, uint64(x))
			at += width
		}
	default:
		for _, r := range b.Sel {
			put(at, uint64(v.I64[r]))
			at += width
		}
	}
}

// hashWords hashes keys of width bytes that are words without NULL.
func hashWords(buf []byte, width int, hashes []uint64) {
	at := 0
	switch width {
	case wordField:
		for i := range hashes {
			hashes[i] = checkpoint.HashWord(binary.LittleEndian.Uint64(buf[at+1:]))
			at += width
		}
	case 2 * wordField:
		for i := range hashes {
			key := buf[at : at+2*wordField]
			hashes[i] = checkpoint.HashWords2(binary.LittleEndian.Uint64(key[1:]), binary.LittleEndian.Uint64(key[10:]))
			at += width
		}
	case 3 * wordField:
		for i := range hashes {
			key := buf[at : at+3*wordField]
			hashes[i] = checkpoint.HashWords3(binary.LittleEndian.Uint64(key[1:]), binary.LittleEndian.Uint64(key[10:]),
				binary.LittleEndian.Uint64(key[19:]))
			at += width
		}
	default:
		for i := range hashes {
			hashes[i] = checkpoint.HashKey(buf[at : at+width])
			at += width
		}
	}
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
