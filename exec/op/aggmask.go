package op

import (
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
)

// rowMasks tells which rows of a batch are inputs of aggregates: FILTER is TRUE and the argument not NULL. Each pair of a
// filter and an argument is looked at once a batch, whatever the number of aggregates with it, and columns without NULL
// among the rows as one. Its memory is reused.
type rowMasks struct {
	b     *batch.Batch
	masks []rowMask
	n     int // masks of the batch at hand
	nulls []nullable
	sets  []rowBits
	bits  int // sets of the batch at hand
}

// rowMask is what is known of a filter and an argument; -1 = none.
type rowMask struct {
	filter, arg int
	rows        []bool // by place in the batch
}

// nullable is a validity bitmap looked at, and whether a row that counts is NULL by it.
type nullable struct {
	valid *uint64
	some  bool
}

// rowBits are rows' masks of several aggregates, in one word a row: bit s of aggregate s.
type rowBits struct {
	of   []int32 // mask of each; -1 = every row
	rows []uint64
	some bool // some rows' words are 0
}

// begin makes b the batch at hand. Its columns may not change while it is.
func (m *rowMasks) begin(b *batch.Batch) { m.b, m.n, m.nulls, m.bits = b, 0, m.nulls[:0], 0 }

// of is the mask of a's inputs by the rows of the batch; nil = all of them.
func (m *rowMasks) of(a *accumulator) []bool {
	if i := m.find(a); i >= 0 {
		return m.masks[i].rows
	}
	return nil
}

// find is the index of a's mask, -1 when every row is an input.
func (m *rowMasks) find(a *accumulator) int32 {
	arg := -1
	if a.Arg >= 0 && !a.nulls && m.hasNull(m.b.Cols[a.Arg]) {
		arg = a.Arg
	}
	if a.Filter < 0 && arg < 0 {
		return -1
	}
	for i := range m.masks[:m.n] {
		if m.masks[i].filter == a.Filter && m.masks[i].arg == arg {
			return int32(i)
		}
	}
	if m.n == len(m.masks) {
		m.masks = append(m.masks, rowMask{})
	}
	x := &m.masks[m.n]
	m.n++
	x.filter, x.arg, x.rows = a.Filter, arg, resize(x.rows, m.b.Len())
	m.fill(x)
	return int32(m.n - 1)
}

// hasNull reports that v is NULL in a row that counts. The columns of a nested one share its bitmap, which is read once.
func (m *rowMasks) hasNull(v *batch.Vec) bool {
	if v.Valid == nil {
		return false
	}
	if v.Const || len(v.Valid) == 0 {
		return v.Const && v.IsNull(0)
	}
	p := unsafe.SliceData(v.Valid)
	for i := range m.nulls {
		if m.nulls[i].valid == p {
			return m.nulls[i].some
		}
	}
	some := false
	if n := m.b.N; m.b.Sel == nil {
		for _, w := range v.Valid[:n>>6] {
			some = some || w != ^uint64(0)
		}
		if last := uint64(1)<<(n&63) - 1; last != 0 {
			some = some || v.Valid[n>>6]&last != last
		}
	} else {
		all := uint64(1)
		for _, r := range m.b.Sel {
			all &= v.Valid[r>>6] >> (r & 63)
		}
		some = all&1 == 0
	}
	m.nulls = append(m.nulls, nullable{p, some})
	return some
}

func (m *rowMasks) fill(x *rowMask) {
	switch f := m.filterOf(x); {
	case f == nil:
		for i := range x.rows {
			x.rows[i] = true
		}
	case f.Const:
		on := !f.IsNull(0) && f.Bool[0]
		for i := range x.rows {
			x.rows[i] = on
		}
	default:
		if m.b.Sel == nil {
			copy(x.rows, f.Bool)
		} else {
			for i, r := range m.b.Sel[:len(x.rows)] {
				x.rows[i] = f.Bool[r]
			}
		}
		if m.hasNull(f) {
			m.exclude(x, f)
		}
	}
	if x.arg >= 0 {
		m.exclude(x, m.b.Cols[x.arg])
	}
}

func (m *rowMasks) filterOf(x *rowMask) *batch.Vec {
	if x.filter < 0 {
		return nil
	}
	return m.b.Cols[x.filter]
}

// exclude takes out the rows where v is NULL.
func (m *rowMasks) exclude(x *rowMask, v *batch.Vec) {
	for i := range x.rows {
		x.rows[i] = x.rows[i] && !v.IsNull(m.b.Row(i))
	}
}

// bitsOf are the masks of aggregates in one word a row. Sets of aggregates with the same masks share them.
func (m *rowMasks) bitsOf(as []*accumulator) *rowBits {
	if m.bits == len(m.sets) {
		m.sets = append(m.sets, rowBits{})
	}
	x := &m.sets[m.bits]
	x.of = x.of[:0]
	for _, a := range as {
		x.of = append(x.of, m.find(a))
	}
	for i := range m.sets[:m.bits] {
		if equalMasks(m.sets[i].of, x.of) {
			return &m.sets[i]
		}
	}
	m.bits++
	m.word(x)
	return x
}

func equalMasks(a, b []int32) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// word sets x.rows from the masks x.of.
func (m *rowMasks) word(x *rowBits) {
	var every uint64
	for s, i := range x.of {
		if i < 0 {
			every |= 1 << s
		}
	}
	x.rows = resize(x.rows, m.b.Len())
	for i := range x.rows {
		x.rows[i] = every
	}
	for s, i := range x.of {
		if i < 0 {
			continue
		}
		rows := x.rows
		for k, on := range m.masks[i].rows[:len(rows)] {
			rows[k] |= uint64(boolWord(on)) << (s & 63)
		}
	}
	if x.some = false; every != 0 {
		return
	}
	for _, w := range x.rows {
		if w == 0 {
			x.some = true
			return
		}
	}
}
