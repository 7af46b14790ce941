package op

import (
	"math"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// versionCache remembers of keys which version is valid in a span of time, with its columns: rows that ask for few keys need
// neither state nor decoding. It holds one span of each key, the last that was asked for.
type versionCache struct {
	slots   []int32 // hash table: entry + 1
	entries []cachedVersion
	keys    []byte // of the entries, back to back
	rows    *batch.Builder
	texts   int // bytes of the rows, about
}

// cachedVersion is valid for times from on and before to, in ms.
type cachedVersion struct {
	hash        uint64
	from, to    int64
	key, keyEnd uint32
	row         int32 // in rows; noVersion
}

const (
	noVersion         = -1
	versionCacheRows  = 1 << 15
	versionCacheBytes = 4 << 20
)

func newVersionCache(s *types.Schema) *versionCache {
	return &versionCache{slots: make([]int32, 256), rows: batch.NewBuilder(s)}
}

// begin starts a batch: a full cache is emptied.
func (c *versionCache) begin() {
	if len(c.entries) >= versionCacheRows || c.rows.Len() >= versionCacheRows || len(c.keys)+c.texts >= versionCacheBytes {
		c.reset()
	}
}

func (c *versionCache) reset() {
	clear(c.slots)
	c.entries, c.keys, c.texts = c.entries[:0], c.keys[:0], 0
	c.rows.Reset()
}

// find is the entry of a key, nil if there is none.
func (c *versionCache) find(hash uint64, key []byte) *cachedVersion {
	mask := len(c.slots) - 1
	for p := int(hash) & mask; c.slots[p] != 0; p = (p + 1) & mask {
		e := &c.entries[c.slots[p]-1]
		if e.hash == hash && string(c.keys[e.key:e.keyEnd]) == string(key) {
			return e
		}
	}
	return nil
}

// at is the version of a key that is valid at time; ok is false when the cache does not know.
func (c *versionCache) at(hash uint64, key []byte, time int64) (row int32, ok bool) {
	e := c.find(hash, key)
	if e == nil || time < e.from || time >= e.to {
		return noVersion, false
	}
	return e.row, true
}

// put stores that a key has the version at row, which is added to rows before the next batch, from from on until to.
func (c *versionCache) put(hash uint64, key []byte, from, to int64, row int32) {
	if e := c.find(hash, key); e != nil {
		e.from, e.to, e.row = from, to, row
		return
	}
	start := uint32(len(c.keys))
	c.keys = append(c.keys, key...)
	c.entries = append(c.entries, cachedVersion{hash: hash, from: from, to: to, key: start, keyEnd: uint32(len(c.keys)), row: row})
	if 2*len(c.entries) > len(c.slots) {
		c.slots = make([]int32, 2*len(c.slots))
		for i := range c.entries {
			c.link(i)
		}
		return
	}
	c.link(len(c.entries) - 1)
}

func (c *versionCache) link(i int) {
	mask := len(c.slots) - 1
	p := int(c.entries[i].hash) & mask
	for c.slots[p] != 0 {
		p = (p + 1) & mask
	}
	c.slots[p] = int32(i) + 1
}

// forget is to be called for a key whose versions change.
func (c *versionCache) forget(hash uint64, key []byte) {
	if e := c.find(hash, key); e != nil {
		e.from, e.to = math.MaxInt64, math.MinInt64
	}
}

// scatter sets dst[rows[k]] to value from[k] of c, NULL for noVersion; n is the number of rows of dst, which is of c's type. valid
// is memory for dst's bitmap, and is returned.
func scatter(dst *batch.Vec, c *batch.ColBuilder, rows, from []int32, n int, missing bool, valid []uint64) []uint64 {
	dst.Resize(n)
	switch dst.Type.Phys() {
	case types.PhysI64:
		scatterValues(dst.I64, c.I64, rows, from)
	case types.PhysF64:
		scatterValues(dst.F64, c.F64, rows, from)
	case types.PhysBool:
		scatterValues(dst.Bool, c.Bool, rows, from)
	case types.PhysStr:
		scatterValues(dst.Str, c.Str, rows, from)
	case types.PhysI128:
		scatterValues(dst.I128, c.I128, rows, from)
	}
	if c.Valid == nil && !missing {
		return valid
	}
	valid = batch.AllValid(valid, n)
	for k, r := range rows {
		if v := from[k]; v < 0 || c.IsNull(int(v)) {
			valid[r>>6] &^= 1 << (r & 63)
		}
	}
	dst.Valid = valid
	return valid
}

func scatterValues[T any](dst, src []T, rows, from []int32) {
	for k, r := range rows {
		if v := from[k]; v >= 0 {
			dst[r] = src[v]
		}
	}
}
