package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// largeLists are the lists of a materialiser that are too long for one row of state, as ordered maps: a change costs the
// same however many rows a primary key has. Entries of a key:
//
//	'r', number of arrival → length (uvarint) and bytes of the identity, then the row
//	'i', hash of the identity (of the row without one), number of arrival → nothing
//
// The key's row in the other table is then largeList and the number of the next arrival. Rows of a list stay here until it
// is empty. With a TTL each expires by itself.
type largeLists struct {
	m        *multimap
	probed   bool // for the keys of the batch
	sub, val []byte
	found    []byte // sub-key, under 'r', of the row sought
	head     [len(largeList) + seqSize]byte
}

const (
	// largeList begins the value of a key whose list is large. It is a length that no entry has.
	largeList = "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	// A list of more rows and bytes is large.
	smallRows, smallBytes = 8, 4 << 10
)

// outgrown tells whether a list should be large.
func outgrown(list []byte) bool {
	if len(list) <= smallBytes {
		return false
	}
	n := 0
	for p := 0; p < len(list) && n <= smallRows; n++ {
		_, _, p = entry(list, p)
	}
	return n > smallRows
}

func isLarge(list []byte) bool {
	return len(list) >= len(largeList) && string(list[:len(largeList)]) == largeList
}

func (l *largeLists) open(s exec.Subtask, format string, ttl int64) (err error) {
	l.m, err = openMultimap(s, "large", format, ttl)
	return err
}

// at is the list of key i. The state is probed when the first key of a batch needs it.
func (l *largeLists) at(keys *checkpoint.Keys, i int) (bucket, error) {
	if !l.probed {
		if err := l.m.probe(keys); err != nil {
			return bucket{}, err
		}
		l.probed = true
	}
	return l.m.at(i), nil
}

// done ends a batch.
func (l *largeLists) done() error {
	if !l.probed {
		return nil
	}
	l.probed = false
	return l.m.done()
}

// next is the value of a key whose next arrival has number n.
func (l *largeLists) next(n uint64) []byte {
	copy(l.head[:], largeList)
	binary.BigEndian.PutUint64(l.head[len(largeList):], n)
	return l.head[:]
}

// take moves a list here and returns the key's new value.
func (l *largeLists) take(b bucket, list []byte) ([]byte, error) {
	n := uint64(0)
	for p := 0; p < len(list); n++ {
		var id, row []byte
		id, row, p = entry(list, p)
		if err := l.add(b, n, id, row); err != nil {
			return nil, err
		}
	}
	return l.next(n), nil
}

func (l *largeLists) add(b bucket, n uint64, id, row []byte) error {
	l.sub = binary.BigEndian.AppendUint64(l.index(id, row), n)
	if err := b.put(l.sub, nil); err != nil {
		return err
	}
	l.sub = binary.BigEndian.AppendUint64(append(l.sub[:0], 'r'), n)
	return b.put(l.sub, l.entry(id, row))
}

func (l *largeLists) entry(id, row []byte) []byte {
	l.val = binary.AppendUvarint(l.val[:0], uint64(len(id)))
	l.val = append(append(l.val, id...), row...)
	return l.val
}

// index is where the arrivals of rows of an identity are, in sub.
func (l *largeLists) index(id, row []byte) []byte {
	h := checkpoint.HashKey(row)
	if len(id) > 0 {
		h = checkpoint.HashKey(id)
	}
	l.sub = binary.BigEndian.AppendUint64(append(l.sub[:0], 'i'), h)
	return l.sub
}

// find looks for the first row of the identity, or without one equal to row: found is its sub-key then.
func (l *largeLists) find(b bucket, id, row []byte) (ok bool, err error) {
	prefix := l.index(id, row)
	var failed error
	err = b.ascend(prefix, func(sub, _ []byte) bool {
		if !bytes.HasPrefix(sub, prefix) {
			return false
		}
		l.found = append(append(l.found[:0], 'r'), sub[len(prefix):]...)
		var val []byte
		if val, ok, failed = b.get(l.found); ok {
			n, w := binary.Uvarint(val)
			val = val[w:]
			ok = len(id) > 0 && bytes.Equal(val[:n], id) || len(id) == 0 && bytes.Equal(val[n:], row)
		}
		return !ok && failed == nil
	})
	if err == nil {
		err = failed
	}
	return ok, err
}

// last is the sub-key and the row of the last arrival, borrowed; nothing when the list is empty.
func (l *largeLists) last(b bucket) (sub, row []byte, err error) {
	err = b.descend(nil, func(s, val []byte) bool {
		if s[0] == 'r' {
			n, w := binary.Uvarint(val)
			sub, row = s, val[w+int(n):]
		}
		return false
	})
	return sub, row, err
}

// changeLarge is change for key i, whose list is large. value is that of its row.
func (m *materialize) changeLarge(b *batch.Batch, i, r int, value []byte) error {
	l := &m.large
	list, err := l.at(&m.keys, i)
	if err != nil {
		return err
	}
	found, err := l.find(list, m.id, m.row)
	if err != nil {
		return err
	}
	last, _, err := l.last(list)
	if err != nil {
		return err
	}
	n := binary.BigEndian.Uint64(value[len(largeList):])
	if !b.Kind(r).IsRetract() {
		kind := types.UpdateAfter
		if last == nil {
			kind = types.Insert
		}
		copyRow(m.out, b, r, kind)
		if found && m.same != nil { // replace in place
			if err = list.put(append(l.index(m.id, m.row), l.found[1:]...), nil); err == nil { // both live as long
				err = list.put(l.found, l.entry(m.id, m.row))
			}
		} else {
			err = l.add(list, n, m.id, m.row)
			n++
		}
		m.table.Set(m.refs[i], l.next(n))
		return err
	}
	if !found {
		m.missing.Add(1)
		return nil
	}
	wasLast := bytes.Equal(last, l.found)
	if _, err := list.remove(append(l.index(m.id, m.row), l.found[1:]...)); err != nil {
		return err
	}
	if _, err := list.remove(l.found); err != nil {
		return err
	}
	m.table.Set(m.refs[i], l.next(n))
	last, row, err := l.last(list)
	switch {
	case err != nil:
		return err
	case last == nil:
		copyRow(m.out, b, r, types.Delete)
		m.table.Set(m.refs[i], nil)
		m.gone = append(m.gone, m.refs[i])
	case wasLast:
		return emitRow(m.out, row, types.UpdateAfter)
	}
	return nil
}
