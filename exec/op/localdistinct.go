package op

import (
	"encoding/binary"
	"errors"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// localDistinct holds what a local aggregate has seen of the argument of DISTINCT aggregates: per group and value one bit for
// each of them. Every value leaves once, behind the accumulators of its group:
//
//	u32  number of values
//	...  each the u64 bits of the aggregates, the u32 size of the value and that as in a state key
type localDistinct struct {
	set   *distinctSet // its members; it has no table
	keys  *keyWords
	held  wordTable
	bits  []uint64 // per row of held
	cells []int64  // of the batch, the groups
	at    []int32
	fresh []int32
	part  batch.Batch
	sel   []int32
	rows  []uint64 // the bits of part, where it is not the batch
	// Of the rows that leave, by group:
	ends  []int32 // where the group's entries end in order
	order []int32
}

func newLocalDistinct(d *distinctSet, s *types.Schema, nulls *rowMasks) *localDistinct {
	l := &localDistinct{set: d, keys: newKeyWords(s, []int{d.arg}, true)}
	l.keys.nulls = nulls
	l.held.stride = l.keys.stride
	return l
}

// add takes the rows of b. groups are the rows' groups.
func (l *localDistinct) add(b *batch.Batch, groups []int32, wants *rowBits) {
	rows := wants.rows
	if l.cells = l.cells[:0]; !wants.some {
		for _, g := range groups {
			l.cells = append(l.cells, int64(g))
		}
	} else {
		l.sel, l.rows = l.sel[:0], l.rows[:0]
		for i, w := range wants.rows {
			if w != 0 {
				l.sel, l.rows, l.cells = append(l.sel, int32(b.Row(i))), append(l.rows, w), append(l.cells, int64(groups[i]))
			}
		}
		if len(l.sel) == 0 {
			return
		}
		l.part = *b
		l.part.Sel = l.sel
		b, rows = &l.part, l.rows
	}
	l.at = resize(l.at, b.Len())
	l.fresh = l.held.find(l.keys.encode(b, l.cells), l.at, l.fresh[:0])
	for len(l.bits) < l.held.n {
		l.bits = append(l.bits, 0)
	}
	bits := l.bits
	for i, k := range l.at {
		bits[k] |= rows[i]
	}
}

// bytes is what the values held take.
func (l *localDistinct) bytes() int { return 8*(len(l.held.words)+len(l.bits)) + l.keys.bytes() }

// sort brings the values of each of n groups together.
func (l *localDistinct) sort(n int) {
	l.ends = resize(l.ends, n)
	clear(l.ends)
	s := l.held.stride
	for k := range l.held.n {
		l.ends[l.held.words[k*s]>>8]++
	}
	sum := int32(0)
	for g, c := range l.ends { // where each begins, for now
		l.ends[g] = sum
		sum += c
	}
	l.order = resize(l.order, l.held.n)
	for k := range l.held.n {
		e := &l.ends[l.held.words[k*s]>>8]
		l.order[*e] = int32(k)
		*e++
	}
}

// appendGroup appends the values of group g.
func (l *localDistinct) appendGroup(dst []byte, g int) []byte {
	from := int32(0)
	if g > 0 {
		from = l.ends[g-1]
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(l.ends[g]-from))
	for _, k := range l.order[from:l.ends[g]] {
		dst = binary.LittleEndian.AppendUint64(dst, l.bits[k])
		at := len(dst)
		dst = l.appendValue(append(dst, 0, 0, 0, 0), l.held.words[int(k)*l.held.stride+1:])
		binary.LittleEndian.PutUint32(dst[at:], uint32(len(dst)-at-4))
	}
	return dst
}

// appendValue appends the encoding that exec.AppendColumn gives a value that is not NULL.
func (l *localDistinct) appendValue(dst []byte, words []uint64) []byte {
	dst = append(dst, 1)
	switch l.set.typ.Phys() {
	case types.PhysBool:
		return append(dst, byte(words[0]))
	case types.PhysI128:
		return binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(dst, words[0]), words[1])
	case types.PhysStr:
		text := l.keys.ids[0].text(words[0])
		if !l.set.typ.IsNested() {
			dst = binary.AppendUvarint(dst, uint64(len(text)))
		}
		return append(dst, text...)
	}
	return binary.LittleEndian.AppendUint64(dst, words[0])
}

func (l *localDistinct) forget() {
	l.held.reset()
	l.bits = l.bits[:0]
	l.keys.forget()
}

var errPartial = errors.New("the values that a local aggregate sent are damaged")

// combineDistinct gives the distinct sets the values that local aggregates have sent behind their accumulators. parts and
// groups are those of the rows c.rows.
func (c *aggCore) combineDistinct(parts []string, groups *checkpoint.Keys) error {
	for _, d := range c.distinct {
		if err := d.combine(parts, groups, c.rows); err != nil {
			return err
		}
	}
	return nil
}

// combine takes the set's values off the parts.
func (d *distinctSet) combine(parts []string, groups *checkpoint.Keys, rows [][]byte) error {
	d.keys.Reset()
	d.sent.rows, d.owners = d.sent.rows[:0], d.owners[:0]
	for i, part := range parts {
		n, rest, ok := leadingUint(part, 4)
		for ; ok && n > 0; n-- {
			var want uint64
			if want, rest, ok = leadingUint(rest, 8); !ok {
				break
			}
			var size uint64
			if size, rest, ok = leadingUint(rest, 4); !ok || uint64(len(rest)) < size {
				ok = false
				break
			}
			start := len(d.keys.Buf)
			d.keys.Buf = append(append(d.keys.Buf, groups.Key(i)...), rest[:size]...)
			d.keys.Ends = append(d.keys.Ends, int32(len(d.keys.Buf)))
			d.keys.Hashes = append(d.keys.Hashes, subHash(groups.Hashes[i], d.keys.Buf[start:]))
			d.sent.rows, d.owners = append(d.sent.rows, want), append(d.owners, rows[i])
			rest = rest[size:]
			if d.keys.Len() >= batch.Size {
				if err := d.flush(); err != nil {
					return err
				}
			}
		}
		if !ok {
			return errPartial
		}
		parts[i] = rest
	}
	return d.flush()
}

// flush counts the values collected.
func (d *distinctSet) flush() error {
	d.refs = resize(d.refs, d.keys.Len())
	if err := d.table.Probe(&d.keys, d.refs); err != nil {
		return err
	}
	if err := d.addBits(&d.sent); err != nil {
		return err
	}
	d.countBits(d.owners)
	d.keys.Reset()
	d.sent.rows, d.owners = d.sent.rows[:0], d.owners[:0]
	return nil
}

// leadingUint is the little-endian number of size bytes that s begins with.
func leadingUint(s string, size int) (n uint64, rest string, ok bool) {
	if len(s) < size {
		return 0, "", false
	}
	for i := range size {
		n |= uint64(s[i]) << (8 * i)
	}
	return n, s[size:], true
}
