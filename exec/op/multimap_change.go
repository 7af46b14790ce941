package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
)

// Changes of a bucket. A change finds the way to the leaf (path), writes the new leaf with a pageWriter and stores it;
// what no longer fits goes up as another entry of the parent, what is left empty or small as one less.

// put sets the value of sub. sub and val must not be borrowed from m.
func (b bucket) put(sub, val []byte) error {
	if done, err := b.putSmall(sub, val); done || err != nil {
		return err
	}
	return b.putLarge(sub, val)
}

func (b bucket) putLarge(sub, val []byte) error {
	m := b.m
	if m.refs[b.i] == checkpoint.NoRow {
		ref, _, err := m.roots.Insert(m.keys, b.i, 0)
		if err != nil {
			return err
		}
		m.refs[b.i] = ref
	}
	found, err := b.locate(sub)
	if err != nil {
		return err
	}
	leaf := &m.path[len(m.path)-1]
	end := leaf.at
	if found {
		_, old, _ := leaf.page.entry(leaf.at)
		if m.ttl == 0 && bytes.Equal(old, val) {
			return nil
		}
		if len(old) == len(val) && leaf.page.stamped() == (m.ttl > 0) {
			b.replace(leaf, val)
			return nil
		}
		end++
	} else {
		m.head.count++
	}
	if done, err := b.insert(leaf, found, sub, val); done || err != nil {
		return err
	}
	m.w.reset(m.ttl > 0)
	m.copyLive(&m.w, leaf.page, 0, leaf.at)
	at := len(m.w.offs)
	m.w.add(sub, val, m.now)
	m.copyLive(&m.w, leaf.page, end, leaf.page.n())
	return b.store(len(m.path)-1, at)
}

// insert adds an entry at the end of the path where the page is, if there is room.
func (b bucket) insert(leaf *treeStep, found bool, sub, val []byte) (done bool, err error) {
	m, p := b.m, leaf.page
	stamped := m.ttl > 0
	if found || len(p) == 0 || p.stamped() != stamped {
		return false, nil
	}
	size := entrySize(sub, val, stamped)
	table, limit := m.nodes, nodeMax
	if len(m.path) == 1 {
		table, limit = m.roots, inlineMax
	}
	n := len(p) + size + 2
	if n > limit {
		return false, nil
	}
	head := len(table.Value(leaf.ref)) - len(p)
	if _, err := table.Extend(leaf.ref, size+2, head+n+n/2); err != nil {
		return false, err
	}
	insertEntry(table.Value(leaf.ref)[head:], size, leaf.at, sub, val, stamped, m.now)
	if len(m.path) > 1 {
		b.touch(len(m.path) - 2)
	}
	return true, nil
}

// cutLeaf removes entries of the leaf at the end of the path where the page is, if the tree keeps its shape.
func (b bucket) cutLeaf(from, to int) (done bool) {
	m := b.m
	leaf := &m.path[len(m.path)-1]
	p := leaf.page
	if p.wide() || to-from >= p.n() || p.stamped() != (m.ttl > 0) {
		return false
	}
	table := m.nodes
	if len(m.path) == 1 {
		table = m.roots
	} else if v := p.view(); len(p)-(v.offset(to)-v.offset(from))-2*(to-from) <= nodeMax/4 {
		return false
	}
	row := table.Mutable(leaf.ref)
	head := len(row) - len(p)
	rest := page(row[head:]).cutEntries(from, to)
	table.Set(leaf.ref, row[:head+len(rest)])
	if len(m.path) > 1 {
		b.touch(len(m.path) - 2)
	}
	return true
}

// replace overwrites the value at the end of the path by one of the same size.
func (b bucket) replace(leaf *treeStep, val []byte) {
	m := b.m
	p := leaf.page
	if len(m.path) == 1 {
		p = m.roots.Mutable(leaf.ref)[1:]
	} else {
		p = m.nodes.Mutable(leaf.ref)[1:]
		b.touch(len(m.path) - 2)
	}
	_, old, _ := p.entry(leaf.at)
	copy(old, val)
	if m.ttl > 0 {
		v := p.view()
		end := v.offset(leaf.at+1) - len(val)
		appendStamp(p[:end-stampSize], m.now)
	}
}

// touch keeps the rows of the path up to depth alive and writes the head.
func (b bucket) touch(depth int) {
	m := b.m
	if m.ttl > 0 {
		for d := depth; d > 0; d-- {
			m.nodes.Mutable(m.path[d].ref)
		}
	}
	if m.head.level > 0 {
		row := m.roots.Value(m.refs[b.i])
		if h, _ := parseRoot(row); h != m.head || m.ttl > 0 {
			m.head.put(m.roots.Mutable(m.refs[b.i]))
		}
	}
}

func (h treeHead) put(row []byte) {
	binary.LittleEndian.PutUint32(row[1:], h.count)
	binary.LittleEndian.PutUint32(row[5:], h.next)
}

// copyLive adds entries of a leaf to w, without those that have expired.
func (m *multimap) copyLive(w *pageWriter, p page, from, to int) {
	if m.ttl == 0 && !p.stamped() {
		w.addRange(p, from, to)
		return
	}
	v := p.view()
	for i := from; i < to; i++ {
		sub, val, stamp := v.entry(i)
		if !m.live(p, stamp) {
			continue
		}
		if !p.stamped() {
			stamp = m.now // from a time without a TTL
		}
		w.add(sub, val, stamp)
	}
}

// locate fills path with the way to the leaf for sub, and tells whether sub is there. Children that have expired are
// removed on the way.
func (b bucket) locate(sub []byte) (found bool, err error) {
	m := b.m
again:
	var p page
	m.head, p = parseRoot(b.row())
	m.path = append(m.path[:0], treeStep{ref: m.refs[b.i], page: p})
	for level := m.head.level; level > 0; level-- {
		s := &m.path[len(m.path)-1]
		s.at = s.page.child(sub)
		ref, c, err := b.child(s.page, s.at)
		if err != nil {
			return false, err
		}
		if ref == checkpoint.NoRow {
			if err := b.cut(len(m.path) - 1); err != nil {
				return false, err
			}
			goto again
		}
		m.path = append(m.path, treeStep{ref: ref, page: c})
	}
	leaf := &m.path[len(m.path)-1]
	leaf.at, found = leaf.page.find(sub)
	return found, nil
}

// appendRoot appends the head and the page in w to dst.
func (m *multimap) appendRoot(dst []byte) []byte {
	if len(m.w.offs) == 0 {
		m.head = treeHead{}
		return dst
	}
	dst = append(dst, byte(m.head.level))
	if m.head.level > 0 {
		dst = binary.LittleEndian.AppendUint32(dst, m.head.count)
		dst = binary.LittleEndian.AppendUint32(dst, m.head.next)
	}
	return m.w.appendTo(dst)
}

// store writes the page in w, whose entry changed is new, in place of that at depth of the path.
func (b bucket) store(depth, changed int) error {
	m := b.m
	n := len(m.w.offs)
	if depth == 0 {
		if m.w.size() > inlineMax && n > 1 {
			if err := b.pushDown(changed); err != nil {
				return err
			}
		}
		m.buf = m.appendRoot(m.buf[:0])
		m.roots.Set(m.refs[b.i], m.buf)
		return nil
	}
	level := m.head.level - depth
	at := n
	if m.w.size() > nodeMax && n > 1 {
		at = m.w.middle(changed)
	}
	m.setNode(m.path[depth].ref, level, 0, at)
	if at == n {
		b.touch(depth - 1)
		return nil
	}
	id, err := b.newNode(level, at, n)
	if err != nil {
		return err
	}
	sep := m.splitKey(level, at)
	parent := &m.path[depth-1]
	m.w.reset(false)
	m.w.addRange(parent.page, 0, parent.at+1)
	m.w.add(sep, binary.LittleEndian.AppendUint32(nil, id), 0)
	m.w.addRange(parent.page, parent.at+1, parent.page.n())
	return b.store(depth-1, parent.at+1)
}

// splitKey is the sub-key that leads to the entries of w from at on.
func (m *multimap) splitKey(level, at int) []byte {
	if level > 0 {
		return bytes.Clone(m.w.sub(at))
	}
	return bytes.Clone(separator(m.w.sub(at-1), m.w.sub(at)))
}

// pushDown moves the page in w from the root to one node or two, and leaves in w the page that leads to them.
func (b bucket) pushDown(changed int) error {
	m := b.m
	if m.head.level == 0 {
		m.head.count = uint32(len(m.w.offs))
	}
	n := len(m.w.offs)
	at := n
	if m.w.size() > nodeMax {
		at = m.w.middle(changed)
	}
	left, err := b.newNode(m.head.level, 0, at)
	if err != nil {
		return err
	}
	var right uint32
	var sep []byte
	if at < n {
		if right, err = b.newNode(m.head.level, at, n); err != nil {
			return err
		}
		sep = m.splitKey(m.head.level, at)
	}
	m.w.reset(false)
	m.w.add(nil, binary.LittleEndian.AppendUint32(nil, left), 0)
	if at < n {
		m.w.add(sep, binary.LittleEndian.AppendUint32(nil, right), 0)
	}
	m.head.level++
	return nil
}

// setNode makes the entries from ≤ i < to of w the page of a node.
func (m *multimap) setNode(ref checkpoint.Ref, level, from, to int) {
	m.buf = append(m.buf[:0], byte(level))
	m.buf = m.w.appendPart(m.buf, from, to)
	m.nodes.Set(ref, m.buf)
}

// newNode is setNode for a node that it creates.
func (b bucket) newNode(level, from, to int) (id uint32, err error) {
	m := b.m
	for {
		id = m.head.next
		m.head.next++
		key, hash := b.nodeKey(id)
		// Insert finds only what is in memory; ids come round after four thousand million nodes.
		if ref, err := m.nodes.Find(hash, key); err != nil {
			return 0, err
		} else if ref != checkpoint.NoRow {
			continue
		}
		m.one.Reset()
		m.one.Buf = append(m.one.Buf, key...)
		m.one.Ends = append(m.one.Ends, int32(len(key)))
		m.one.Hashes = append(m.one.Hashes, hash)
		ref, _, err := m.nodes.Insert(&m.one, 0, 0)
		if err != nil {
			return 0, err
		}
		m.setNode(ref, level, from, to)
		return id, nil
	}
}

// remove removes sub and tells whether it was there.
func (b bucket) remove(sub []byte) (existed bool, err error) {
	m := b.m
	if m.refs[b.i] == checkpoint.NoRow {
		return false, nil
	}
	if existed, done := b.removeSmall(sub); done {
		return existed, nil
	}
	found, err := b.locate(sub)
	if !found || err != nil {
		return false, err
	}
	leaf := &m.path[len(m.path)-1]
	_, _, stamp := leaf.page.entry(leaf.at)
	existed = m.live(leaf.page, stamp)
	m.head.count--
	if b.cutLeaf(leaf.at, leaf.at+1) {
		return existed, nil
	}
	m.w.reset(m.ttl > 0)
	m.copyLive(&m.w, leaf.page, 0, leaf.at)
	m.copyLive(&m.w, leaf.page, leaf.at+1, leaf.page.n())
	return existed, b.shrunk(len(m.path) - 1)
}

// removeBelow removes all entries below sub-key to, whole leaves at a time.
func (b bucket) removeBelow(to []byte) error {
	m := b.m
	for len(b.row()) > 0 {
		if _, err := b.locate(nil); err != nil {
			return err
		}
		depth := len(m.path) - 1
		leaf := m.path[depth].page
		i, _ := leaf.find(to)
		n := leaf.n()
		if i == 0 {
			return nil
		}
		m.head.count -= uint32(i)
		if i < n && b.cutLeaf(0, i) {
			return nil
		}
		m.w.reset(m.ttl > 0)
		m.copyLive(&m.w, leaf, i, n)
		if err := b.shrunk(depth); err != nil || i < n {
			return err
		}
	}
	return nil
}

// cut removes the entry on the path from the page at depth.
func (b bucket) cut(depth int) error {
	m := b.m
	s := &m.path[depth]
	m.w.reset(false)
	m.w.addRange(s.page, 0, s.at)
	m.w.addRange(s.page, s.at+1, s.page.n())
	return b.shrunk(depth)
}

// shrunk writes the page in w, which has become smaller, in place of that at depth of the path.
func (b bucket) shrunk(depth int) error {
	m := b.m
	if depth == 0 {
		if m.head.level > 0 && len(m.w.offs) == 1 {
			if err := b.pullUp(); err != nil {
				return err
			}
		}
		m.buf = m.appendRoot(m.buf[:0])
		m.roots.Set(m.refs[b.i], m.buf)
		if len(m.buf) == 0 {
			m.gone = append(m.gone, m.refs[b.i])
		}
		return nil
	}
	level, parent := m.head.level-depth, &m.path[depth-1]
	if len(m.w.offs) == 0 {
		m.nodes.Delete(m.path[depth].ref)
		return b.cut(depth - 1)
	}
	m.setNode(m.path[depth].ref, level, 0, len(m.w.offs))
	if m.w.size() > nodeMax/4 {
		b.touch(depth - 1)
		return nil
	}
	if parent.page.n() > 1 {
		if done, err := b.merge(depth, level); done || err != nil {
			return err
		}
	} else if depth == 1 && m.w.size() <= inlineMax/2 { // the root's only child
		m.w.reset(false)
		m.w.addRange(parent.page, 0, 1)
		return b.shrunk(0)
	}
	b.touch(depth - 1)
	return nil
}

// pullUp puts the page of the root's only child, which w leads to, in the root if it is small.
func (b bucket) pullUp() error {
	m := b.m
	only := page(m.w.appendTo(nil))
	ref, p, err := b.child(only, 0)
	if err != nil || ref == checkpoint.NoRow || len(p) > inlineMax/2 {
		return err
	}
	m.w.reset(p.stamped())
	m.w.addRange(p, 0, p.n())
	m.nodes.Delete(ref)
	m.head.level--
	return nil
}

// merge joins the small page at depth, which is in w and stored, with a neighbour if both fit well in one.
func (b bucket) merge(depth, level int) (bool, error) {
	m := b.m
	parent := &m.path[depth-1]
	left := parent.at
	if left == parent.page.n()-1 {
		left--
	}
	lref, lp, err := b.child(parent.page, left)
	if err != nil || lref == checkpoint.NoRow {
		return false, err
	}
	rref, rp, err := b.child(parent.page, left+1)
	if err != nil || rref == checkpoint.NoRow || len(lp)+len(rp) > nodeMax*3/4 {
		return false, err
	}
	if level > 0 {
		m.w.reset(false)
		m.w.addRange(lp, 0, lp.n())
		// The right page's first child also holds what is below its own sub-key, down to the parent's.
		_, id, _ := rp.entry(0)
		sub, _, _ := parent.page.entry(left + 1)
		m.w.add(sub, id, 0)
		m.w.addRange(rp, 1, rp.n())
	} else {
		m.w.reset(m.ttl > 0)
		m.copyLive(&m.w, lp, 0, lp.n())
		m.copyLive(&m.w, rp, 0, rp.n())
	}
	m.setNode(lref, level, 0, len(m.w.offs))
	m.nodes.Delete(rref)
	parent.at = left + 1
	return true, b.cut(depth - 1)
}

// clear removes all entries.
func (b bucket) clear() error {
	m := b.m
	row := b.row()
	if len(row) == 0 {
		return nil
	}
	h, p := parseRoot(row)
	if err := b.drop(h.level, p); err != nil {
		return err
	}
	m.roots.Set(m.refs[b.i], nil)
	m.gone = append(m.gone, m.refs[b.i])
	return nil
}

// drop deletes the nodes below an inner page.
func (b bucket) drop(level int, p page) error {
	if level == 0 {
		return nil
	}
	for i, n := 0, p.n(); i < n; i++ {
		ref, c, err := b.child(p, i)
		if err != nil {
			return err
		}
		if ref == checkpoint.NoRow {
			continue
		}
		if err := b.drop(level-1, c); err != nil {
			return err
		}
		b.m.nodes.Delete(ref)
	}
	return nil
}
