package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
)

// What most changes are: of a bucket that is one page in its key's row, or that begins. They need no path and copy no page.

// putSmall is put where that is so; done tells.
func (b bucket) putSmall(sub, val []byte) (done bool, err error) {
	p, done, err := b.smallPage(sub, val)
	if done || err != nil || p == nil {
		return done, err
	}
	at, found := p.find(sub)
	return b.putAt(p, at, found, sub, val)
}

// smallPage is the page of a small bucket, nil if it is none. For the first entry of a bucket it makes the page with it; done
// tells.
func (b bucket) smallPage(sub, val []byte) (p page, done bool, err error) {
	m := b.m
	stamped := m.ttl > 0
	if m.refs[b.i] == checkpoint.NoRow {
		size := entrySize(sub, val, stamped)
		if size+4 >= 1<<16 {
			return nil, false, nil
		}
		ref, created, err := m.roots.Insert(m.keys, b.i, 1+size+4)
		if err != nil {
			return nil, false, err
		}
		m.refs[b.i] = ref
		if created {
			row := m.roots.Mutable(ref)
			row[0] = 0
			binary.LittleEndian.PutUint16(row[1:], 0) // an empty page
			insertEntry(row[1:], size, 0, sub, val, stamped, m.now)
			return nil, true, nil
		}
	}
	row := m.roots.Value(m.refs[b.i])
	if len(row) < 2 || row[0] != 0 {
		return nil, false, nil
	}
	if p = row[1:]; p.wide() || p.stamped() != stamped {
		return nil, false, nil
	}
	return p, false, nil
}

// putAt puts an entry at its place in the page of a small bucket, if there is room.
func (b bucket) putAt(p page, at int, found bool, sub, val []byte) (done bool, err error) {
	m := b.m
	ref, stamped := m.refs[b.i], m.ttl > 0
	if found {
		v := p.view()
		_, old, _ := v.entry(at)
		if len(old) != len(val) {
			return false, nil
		}
		if !stamped && bytes.Equal(old, val) {
			return true, nil
		}
		p = m.roots.Mutable(ref)[1:]
		end := v.offset(at + 1)
		copy(p[end-len(val):end], val)
		if stamped {
			appendStamp(p[:end-len(val)-stampSize], m.now)
		}
		return true, nil
	}
	size := entrySize(sub, val, stamped)
	n := len(p) + size + 2
	if n > inlineMax {
		return false, nil
	}
	if _, err := m.roots.Extend(ref, size+2, 1+n+n/2); err != nil {
		return false, err
	}
	insertEntry(m.roots.Value(ref)[1:], size, at, sub, val, stamped, m.now)
	return true, nil
}

// add puts an entry if there is none of that sub-key; else old is its value, borrowed until the next change.
func (b bucket) add(sub, val []byte) (old []byte, added bool, err error) {
	p, done, err := b.smallPage(sub, val)
	if done || err != nil {
		return nil, done, err
	}
	if p != nil {
		at, found := p.find(sub)
		if found {
			v := p.view()
			if _, old, stamp := v.entry(at); b.m.live(p, stamp) {
				return old, false, nil
			}
		}
		if done, err := b.putAt(p, at, found, sub, val); done || err != nil {
			return nil, done, err
		}
		return nil, true, b.putLarge(sub, val)
	}
	old, found, err := b.get(sub)
	if found || err != nil {
		return old, false, err
	}
	return nil, true, b.putLarge(sub, val)
}

// removeSmall is remove of an entry of a small bucket; done tells.
func (b bucket) removeSmall(sub []byte) (existed, done bool) {
	m := b.m
	ref := m.refs[b.i]
	row := m.roots.Value(ref)
	if len(row) < 2 || row[0] != 0 {
		return false, false
	}
	p := page(row[1:])
	if p.wide() || p.stamped() != (m.ttl > 0) {
		return false, false
	}
	at, found := p.find(sub)
	if !found {
		return false, true
	}
	v := p.view()
	_, _, stamp := v.entry(at)
	existed = m.live(p, stamp)
	if v.count == 1 {
		m.roots.Set(ref, nil)
		m.gone = append(m.gone, ref)
		return existed, true
	}
	row = m.roots.Mutable(ref)
	m.roots.Set(ref, row[:1+len(page(row[1:]).cutEntries(at, at+1))])
	return existed, true
}
