package op

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
)

// multimap is keyed state with many entries per key: for each key an ordered map from sub-key bytes, compared bytewise,
// to value bytes. It is a B+ tree per key. A small one is a page in its key's row of one table (roots); one beyond
// inlineMax keeps its leaves, of nodeMax at most, as rows of a second table (nodes), so that a change rewrites a few KiB
// however many entries the key has. Rows of nodes live in their key's key group.
//
// A multimap is used like a table: probe once for a batch, change buckets, done. With a TTL every entry expires by itself,
// ttl ms after it was last put, as in a Flink MapState.
type multimap struct {
	roots, nodes checkpoint.Table
	ttl          int64
	s            exec.Subtask
	now          int64

	keys  *checkpoint.Keys
	refs  []checkpoint.Ref
	same  []int32 // of each key the one that stands for it: keys that probe did not find share the first's ref
	slots []int32 // hash table of the keys that were not found, index+1
	gone  []checkpoint.Ref

	head   treeHead // of the tree being changed
	path   []treeStep
	w      pageWriter
	merged pageWriter
	buf    []byte
	id     []byte
	one    checkpoint.Keys
	noRefs []checkpoint.Ref
}

const (
	multimapFormat = "multimap/1;"
	inlineMax      = 1 << 10 // bytes of a page in its key's row
	nodeMax        = 4 << 10 // bytes of a page in a row of nodes; a single entry may be larger
	headSize       = 9
	nodeIDSize     = 4
)

// treeHead begins the row of a key: one byte level, and with level > 0 the number of entries and the next node id, four
// bytes each (with a TTL the number means nothing). The page follows. A row of nodes is one byte level and the page; the entries of inner pages (level > 0)
// lead from the lowest sub-key of a child to its id.
type treeHead struct {
	level       int
	count, next uint32
}

// treeStep is one page on the way from the root to a leaf.
type treeStep struct {
	ref  checkpoint.Ref
	page page
	at   int // entry in page: the child the way goes on to, in the leaf the place of the sub-key
}

// openMultimap opens the state named name. format names the layout of sub-keys and values. ttl is in ms, 0 = none.
func openMultimap(s exec.Subtask, name, format string, ttl int64) (*multimap, error) {
	m := &multimap{ttl: ttl, s: s, keys: &checkpoint.Keys{}}
	var err error
	m.roots, err = s.Table(checkpoint.TableOptions{Name: name, Format: multimapFormat + format, TTL: ttl})
	if err != nil {
		return nil, err
	}
	m.nodes, err = s.Table(checkpoint.TableOptions{Name: name + ".nodes", Format: multimapFormat + format, TTL: ttl})
	return m, err
}

// probe brings the roots of keys into memory, one table probe for the batch. keys must stay unchanged until the next
// probe. The upkeep of the state happens here: everything borrowed before is invalid.
func (m *multimap) probe(keys *checkpoint.Keys) error {
	m.keys, m.now, m.gone = keys, m.s.Now(), m.gone[:0]
	n := keys.Len()
	m.refs, m.same = resize(m.refs, n), resize(m.same, n)
	if err := m.roots.Probe(keys, m.refs); err != nil {
		return err
	}
	if err := m.nodes.Probe(&m.noKeys().one, m.noRefs); err != nil {
		return err
	}
	missing := false
	for i, r := range m.refs {
		m.same[i] = int32(i)
		missing = missing || r == checkpoint.NoRow
	}
	if missing {
		m.joinMissing()
	}
	return nil
}

func (m *multimap) noKeys() *multimap {
	m.one.Reset()
	return m
}

// joinMissing finds the equal ones among the keys that have no row.
func (m *multimap) joinMissing() {
	size := 16
	for size < 2*len(m.refs) {
		size *= 2
	}
	m.slots = resize(m.slots, size)
	clear(m.slots)
	for i, r := range m.refs {
		if r != checkpoint.NoRow {
			continue
		}
		h := m.keys.Hashes[i]
		for p := int(h) & (size - 1); ; p = (p + 1) & (size - 1) {
			j := m.slots[p] - 1
			if j < 0 {
				m.slots[p] = int32(i) + 1
				break
			}
			if m.keys.Hashes[j] == h && string(m.keys.Key(int(j))) == string(m.keys.Key(i)) {
				m.same[i] = j
				break
			}
		}
	}
}

// at is the bucket of key i of the last probe, valid until the next probe. Equal keys share one.
func (m *multimap) at(i int) bucket { return bucket{m: m, i: int(m.same[i])} }

// done ends a batch: buckets left empty are removed from the table.
func (m *multimap) done() error {
	for _, r := range m.gone {
		if len(m.roots.Value(r)) == 0 {
			m.roots.Delete(r)
		}
	}
	m.gone = m.gone[:0]
	return nil
}

// scan visits every (key, sub-key, value) of the subtask, in any order, until f returns false. The slices are valid for
// the call; f must not change m.
func (m *multimap) scan(f func(key, sub, val []byte) bool) error {
	m.now = m.s.Now()
	more := true
	visit := func(key []byte, p page) bool {
		v := p.view()
		for i := 0; i < v.count && more; i++ {
			if sub, val, stamp := v.entry(i); m.live(p, stamp) {
				more = f(key, sub, val)
			}
		}
		return more
	}
	err := m.roots.Visit(func(key, row []byte) bool {
		if len(row) == 0 || row[0] > 0 {
			return true
		}
		return visit(key, row[1:])
	})
	if err != nil || !more {
		return err
	}
	return m.nodes.Visit(func(key, row []byte) bool {
		if row[0] > 0 {
			return true
		}
		return visit(key[:len(key)-nodeIDSize], row[1:])
	})
}

// live tells whether an entry of p with that stamp has not expired.
func (m *multimap) live(p page, stamp int64) bool {
	return m.ttl == 0 || !p.stamped() || stamp+m.ttl > m.now
}

// bucket is the ordered map of one key.
type bucket struct {
	m *multimap
	i int
}

func (b bucket) row() []byte {
	if r := b.m.refs[b.i]; r != checkpoint.NoRow {
		return b.m.roots.Value(r)
	}
	return nil
}

// parseRoot is the head and the page of a key's row.
func parseRoot(row []byte) (h treeHead, p page) {
	switch {
	case len(row) == 0:
		return h, nil
	case row[0] == 0:
		return h, row[1:]
	}
	h.level = int(row[0])
	h.count, h.next = binary.LittleEndian.Uint32(row[1:]), binary.LittleEndian.Uint32(row[5:])
	return h, row[headSize:]
}

// nodeKey is the key of node id and its hash, valid until the next call.
func (b bucket) nodeKey(id uint32) (key []byte, hash uint64) {
	m := b.m
	m.id = append(m.id[:0], m.keys.Key(b.i)...)
	m.id = binary.BigEndian.AppendUint32(m.id, id)
	return m.id, subHash(m.keys.Hashes[b.i], m.id)
}

func childID(val []byte) uint32 { return binary.LittleEndian.Uint32(val) }

// child is the page of the child that entry i of an inner page leads to. With a TTL it may have expired: then ref is
// NoRow and the page is empty.
func (b bucket) child(p page, i int) (checkpoint.Ref, page, error) {
	_, val, _ := p.entry(i)
	id := childID(val)
	key, hash := b.nodeKey(id)
	ref, err := b.m.nodes.Find(hash, key)
	if err != nil {
		return ref, nil, err
	}
	if ref == checkpoint.NoRow {
		if b.m.ttl == 0 {
			return ref, nil, fmt.Errorf("state is damaged: node %d of a key is missing", id)
		}
		return ref, nil, nil
	}
	return ref, b.m.nodes.Value(ref)[1:], nil
}

// len is the number of entries. With a TTL it counts them.
func (b bucket) len() (int, error) {
	h, p := parseRoot(b.row())
	if b.m.ttl == 0 {
		if h.level == 0 {
			return p.n(), nil
		}
		return int(h.count), nil
	}
	n := 0
	_, err := b.up(h.level, p, nil, func(_, _ []byte) bool { n++; return true })
	return n, err
}

// get is the value of sub, borrowed until the next change of m or the next probe.
func (b bucket) get(sub []byte) (val []byte, ok bool, err error) {
	h, p := parseRoot(b.row())
	for level := h.level; level > 0 && p.n() > 0; level-- {
		if _, p, err = b.child(p, p.child(sub)); err != nil {
			return nil, false, err
		}
	}
	i, ok := p.find(sub)
	if !ok {
		return nil, false, nil
	}
	_, val, stamp := p.entry(i)
	if !b.m.live(p, stamp) {
		return nil, false, nil
	}
	return val, true, nil
}

// ascend visits the entries from sub-key from on (nil = all), upwards, until f returns false. f must not change m; the
// slices are valid for the call and, with first and last, until the next change.
func (b bucket) ascend(from []byte, f func(sub, val []byte) bool) error {
	h, p := parseRoot(b.row())
	_, err := b.up(h.level, p, from, f)
	return err
}

func (b bucket) up(level int, p page, from []byte, f func(sub, val []byte) bool) (more bool, err error) {
	i, n := 0, p.n()
	if level > 0 {
		if len(from) > 0 {
			i = p.child(from)
		}
		for ; i < n; i++ {
			_, c, err := b.child(p, i)
			if err != nil {
				return false, err
			}
			if more, err := b.up(level-1, c, from, f); err != nil || !more {
				return false, err
			}
			from = nil
		}
		return true, nil
	}
	if len(from) > 0 {
		i, _ = p.find(from)
	}
	v := p.view()
	for ; i < n; i++ {
		if sub, val, stamp := v.entry(i); (b.m.ttl == 0 || b.m.live(p, stamp)) && !f(sub, val) {
			return false, nil
		}
	}
	return true, nil
}

// descend visits the entries below sub-key from (nil = all), downwards. As ascend otherwise.
func (b bucket) descend(from []byte, f func(sub, val []byte) bool) error {
	h, p := parseRoot(b.row())
	_, err := b.down(h.level, p, from, f)
	return err
}

func (b bucket) down(level int, p page, from []byte, f func(sub, val []byte) bool) (more bool, err error) {
	i := p.n() - 1
	if level > 0 {
		if from != nil && i >= 0 {
			i = p.child(from)
		}
		for ; i >= 0; i-- {
			_, c, err := b.child(p, i)
			if err != nil {
				return false, err
			}
			if more, err := b.down(level-1, c, from, f); err != nil || !more {
				return false, err
			}
			from = nil
		}
		return true, nil
	}
	if from != nil {
		i, _ = p.find(from)
		i--
	}
	v := p.view()
	for ; i >= 0; i-- {
		if sub, val, stamp := v.entry(i); (b.m.ttl == 0 || b.m.live(p, stamp)) && !f(sub, val) {
			return false, nil
		}
	}
	return true, nil
}

// first is the entry with the smallest sub-key, borrowed until the next change.
func (b bucket) first() (sub, val []byte, ok bool, err error) {
	err = b.ascend(nil, func(s, v []byte) bool {
		sub, val, ok = s, v, true
		return false
	})
	return sub, val, ok, err
}

// below is the entry with the largest sub-key below from, borrowed until the next change.
func (b bucket) below(from []byte) (sub, val []byte, ok bool, err error) {
	h, p := parseRoot(b.row())
	if h.level == 0 && b.m.ttl == 0 {
		i, _ := p.find(from)
		if i == 0 {
			return nil, nil, false, nil
		}
		sub, val, _ = p.entry(i - 1)
		return sub, val, true, nil
	}
	err = b.descend(from, func(s, v []byte) bool {
		sub, val, ok = s, v, true
		return false
	})
	return sub, val, ok, err
}

// around is below, and the sub-key of the entry that follows, nil if there is none. ok tells only of the first.
func (b bucket) around(from []byte) (sub, val, next []byte, ok bool, err error) {
	if sub, val, ok, err = b.below(from); err != nil {
		return nil, nil, nil, false, err
	}
	err = b.ascend(from, func(s, _ []byte) bool {
		next = s
		return false
	})
	return sub, val, next, ok, err
}

// last is the entry with the largest sub-key, borrowed until the next change.
func (b bucket) last() (sub, val []byte, ok bool, err error) {
	err = b.descend(nil, func(s, v []byte) bool {
		sub, val, ok = s, v, true
		return false
	})
	return sub, val, ok, err
}
