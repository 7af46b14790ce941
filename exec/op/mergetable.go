package op

import (
	"bytes"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
)

// mergeTable adds up fixed-size rows by key while a window fires. It is emptied often and keeps its memory.
type mergeTable struct {
	size   int // bytes of a row
	keys   []byte
	ends   []int32
	hashes []uint64
	rows   []byte
	slots  []int32 // 1 + index, 0 = free; a power of two many
	order  []int32
}

func (m *mergeTable) len() int { return len(m.ends) }

func (m *mergeTable) reset() {
	m.keys, m.ends, m.hashes, m.rows = m.keys[:0], m.ends[:0], m.hashes[:0], m.rows[:0]
	clear(m.slots)
}

func (m *mergeTable) key(i int32) []byte {
	start := int32(0)
	if i > 0 {
		start = m.ends[i-1]
	}
	return m.keys[start:m.ends[i]]
}

func (m *mergeTable) at(i int32) []byte { return m.rows[int(i)*m.size : (int(i)+1)*m.size] }

// row finds or creates the row of key, valid until the next call. A new one is zero.
func (m *mergeTable) row(key []byte) (row []byte, isNew bool) {
	i, isNew := m.find(checkpoint.HashKey(key), key)
	return m.at(i), isNew
}

// find finds or creates the row of key, whose hash is given, and returns its index. A new one is zero.
func (m *mergeTable) find(hash uint64, key []byte) (i int32, isNew bool) {
	if 2*m.len() >= len(m.slots) {
		m.grow()
	}
	mask := len(m.slots) - 1
	s := int(hash) & mask
	for ; m.slots[s] != 0; s = (s + 1) & mask {
		if k := m.slots[s] - 1; m.hashes[k] == hash && bytes.Equal(m.key(k), key) {
			return k, false
		}
	}
	m.keys = append(m.keys, key...)
	m.ends = append(m.ends, int32(len(m.keys)))
	m.hashes = append(m.hashes, hash)
	n := len(m.rows)
	m.rows = slices.Grow(m.rows, m.size)[:n+m.size]
	clear(m.rows[n:])
	m.slots[s] = int32(m.len())
	return int32(m.len() - 1), true
}

func (m *mergeTable) grow() {
	m.slots = make([]int32, max(64, 2*len(m.slots)))
	mask := len(m.slots) - 1
	for k, hash := range m.hashes {
		i := int(hash) & mask
		for m.slots[i] != 0 {
			i = (i + 1) & mask
		}
		m.slots[i] = int32(k + 1)
	}
}

// sortedRows is up to how many rows a table gives them by ascending key, which gives small windows a stable order.
const sortedRows = 512

// sorted are the rows, by ascending key when there are few.
func (m *mergeTable) sorted() []int32 {
	m.order = m.order[:0]
	for i := range m.ends {
		m.order = append(m.order, int32(i))
	}
	if len(m.order) <= sortedRows {
		slices.SortFunc(m.order, func(a, b int32) int { return bytes.Compare(m.key(a), m.key(b)) })
	}
	return m.order
}
