package checkpoint

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"unsafe"
)

// table is the Table of a Backend. Its resident rows are in an arena found through an index; the newest version of
// every other row is in the backend's Pebble. What holds between any two calls:
//
//   - a key is in the index at most once, and its row there, live or tombstone, is the newest version;
//   - a key that is not in the index and not in the filter does not exist; the filter is empty while db is nil;
//   - a row that is dirty or copied by a seal that is not in Pebble yet is in the index;
//   - n counts the live keys, absent those on disk only: in cold chunks (table_cold.go) while db is nil, else in Pebble.
type table struct {
	b    *Backend
	id   uint16
	op   OperatorID
	o    TableOptions
	name string // operator and table, for people

	a      arena
	x      index
	filter filter
	head   int // bytes before the key: rowHeadSize, and 8 for a stamp
	ttl    bool

	dirty      []uint32 // rows changed since the last seal; may name dead and moved ones
	dirtyBytes int64
	tombs      []uint32 // tombstones copied by a seal, to drop once it is in Pebble
	n          int64
	absent     int64 // live keys on disk only
	spilled    bool  // told that rows are on disk only

	now     int64
	refsOut bool // an operator holds Refs: rows may only be moved in Probe
	hand    int  // chunk that eviction looks at next
	sweep   sweepState
	err     error // sticky

	pre, cand []uint64
	miss      []int32
	ahead     int // bytes to read of a cold chunk at least, for the rows that are asked for next

	cold coldFile
	full []int // chunks in memory to be written to it
}

var _ Table = (*table)(nil)

func newTable(b *Backend, id uint16, op OperatorID, o TableOptions) *table {
	t := &table{b: b, id: id, op: op, o: o, name: string(op) + "." + o.Name, head: rowHeadSize, ttl: o.TTL > 0}
	if t.ttl {
		t.head += 8
	}
	t.a, t.x = newArena(b.budget), newIndex(b.budget)
	t.filter.budget = b.budget
	t.cold = coldFile{fs: b.fs, path: b.fs.PathJoin(b.dir, fmt.Sprintf("cold-%d", id))}
	return t
}

func (t *table) close() error {
	t.a.close()
	t.x.close()
	t.filter.reset()
	return t.cold.close()
}

// rowKey, rowStamp and rowValue are parts of the row at loc.
func (t *table) rowKey(loc uint32) []byte { return t.keyOf(t.a.head(loc)) }

func (t *table) keyOf(h *rowHead) []byte {
	if h.klen == 0 {
		return nil // its address may be the end of the chunk, which no pointer may hold
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(h), t.head)), int(h.klen))
}

func (t *table) rowStamp(loc uint32) *int64 {
	return (*int64)(unsafe.Add(unsafe.Pointer(t.a.head(loc)), rowHeadSize))
}

func (t *table) rowValue(loc uint32) []byte {
	h := t.a.head(loc)
	if h.vlen == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Add(unsafe.Pointer(h), t.head+align8(int(h.klen)))), int(h.vlen))
}

// expired tells whether the row's time has passed.
func (t *table) expired(loc uint32) bool { return t.ttl && *t.rowStamp(loc)+t.o.TTL <= t.now }

// visible tells whether the row at loc is one the operator may see.
func (t *table) visible(loc uint32) bool {
	return t.a.head(loc).flags&rowDeleted == 0 && !t.expired(loc)
}

// resolve follows a Ref to where Set put the row.
func (t *table) resolve(r Ref) uint32 {
	loc := uint32(r)
	for {
		h := t.a.head(loc)
		if h.flags&rowMoved == 0 {
			return loc
		}
		loc = uint32(h.hash)
	}
}

// keyIs tells whether key is that of the row at loc.
func (t *table) keyIs(loc uint32, key []byte) bool { return sameKey(t.rowKey(loc), key) }

func sameKey(row, key []byte) bool {
	if len(key) == wordField && len(row) == wordField {
		return binary.NativeEndian.Uint64(row) == binary.NativeEndian.Uint64(key) && row[8] == key[8]
	}
	return bytes.Equal(row, key)
}

// find is the row of key in memory, live or not. One in a cold chunk is not.
func (t *table) find(hash uint64, key []byte) (uint32, bool) {
	for p := hash & t.x.mask; ; p = (p + 1) & t.x.mask {
		s := t.x.slots[p]
		if s == 0 {
			return 0, false
		}
		if uint32(s>>32) == uint32(hash) {
			loc := uint32(s) - 1
			if t.a.base[loc>>chunkShift] != nil && t.a.head(loc).hash == hash && t.keyIs(loc, key) {
				return loc, true
			}
		}
	}
}

// Probe looks the batch up in three passes, so that the cache misses of many keys overlap: slots, heads, comparison.
func (t *table) Probe(keys *Keys, refs []Ref) error {
	if err := t.begin(); err != nil {
		return err
	}
	t.refsOut = true
	n := keys.Len()
	if len(t.pre) < n {
		t.pre, t.cand = make([]uint64, n), make([]uint64, n)
	}
	pre, cand, hashes := t.pre[:n], t.cand[:n], keys.Hashes[:n]
	t.x.match(hashes, pre)
	for i, s := range pre {
		if s == 0 {
			continue
		}
		if loc := uint32(s) - 1; t.a.base[loc>>chunkShift] != nil {
			cand[i] = t.a.head(loc).hash
		} else {
			cand[i] = ^hashes[i]
		}
	}
	t.miss = t.miss[:0]
	spilled := t.absent > 0
	start := int32(0)
	for i, h := range hashes {
		key := keys.Buf[start:keys.Ends[i]]
		start = keys.Ends[i]
		refs[i] = NoRow
		loc, ok := uint32(pre[i])-1, pre[i] != 0
		if ok && (cand[i] != h || !t.keyIs(loc, key)) {
			loc, ok = t.find(h, key) // another key with the lower half of this hash is in the way
		}
		if ok {
			if t.visible(loc) {
				refs[i] = Ref(loc)
				if hd := t.a.head(loc); hd.flags&rowRef == 0 {
					hd.flags |= rowRef
				}
			}
			continue
		}
		if spilled && (t.b.db == nil && pre[i] != 0 || t.filter.has(h)) {
			t.miss = append(t.miss, int32(i))
		}
	}
	if len(t.miss) > 0 {
		return t.load(keys, refs)
	}
	return nil
}

// newRow makes a row in the arena, with flags as given; its value is to be written.
func (t *table) newRow(hash uint64, key []byte, size, room int, flags uint32) (uint32, error) {
	n := t.head + align8(len(key)) + align8(max(size, room))
	loc, ok := t.a.alloc(n)
	if !ok {
		return 0, t.tooLarge()
	}
	h := t.a.head(loc)
	*h = rowHead{hash: hash, klen: uint32(len(key)), vlen: uint32(size), units: uint32(n >> unitShift), flags: flags}
	if t.ttl {
		*t.rowStamp(loc) = t.now
	}
	copy(t.rowKey(loc), key)
	return loc, nil
}

// mark makes the row dirty.
func (t *table) mark(loc uint32) {
	h := t.a.head(loc)
	if h.flags&rowDirty == 0 {
		h.flags |= rowDirty
		t.dirty = append(t.dirty, loc)
		t.dirtyBytes += int64(h.units) << unitShift
	}
	if t.ttl {
		*t.rowStamp(loc) = t.now
	}
}

// Insert adds the row of key i, or returns the one that is there.
func (t *table) Insert(keys *Keys, i, size int) (Ref, bool, error) {
	if t.err != nil {
		return NoRow, false, t.err
	}
	loc, created, err := t.insert(keys.Hashes[i], keys.Key(i), size)
	if err != nil {
		return NoRow, false, err
	}
	return Ref(loc), created, nil
}

func (t *table) insert(hash uint64, key []byte, size int) (uint32, bool, error) {
	old, ok := t.find(hash, key)
	if ok && t.visible(old) {
		return old, false, nil
	}
	var keep uint32
	if ok {
		keep = t.a.head(old).flags & rowDisk
	}
	loc, err := t.newRow(hash, key, size, 0, keep|rowRef)
	if err != nil {
		return 0, false, err
	}
	clear(t.rowValue(loc))
	if !ok || t.a.head(old).flags&rowDeleted != 0 {
		t.n++ // an expired row was still counted
	}
	if ok {
		t.x.move(hash, old, loc)
		t.bury(old)
	} else {
		t.x.add(hash, loc)
	}
	t.mark(loc)
	return loc, true, nil
}

// bury ends a row that is no longer in the index.
func (t *table) bury(loc uint32) {
	h := t.a.head(loc)
	if h.flags&rowDirty != 0 {
		t.dirtyBytes -= int64(h.units) << unitShift
	}
	t.a.kill(loc)
	h.flags = h.flags&^rowDirty | rowDead
}

// Value is the row's value.
func (t *table) Value(r Ref) []byte { return t.rowValue(t.resolve(r)) }

// Mutable is the row's value to change.
func (t *table) Mutable(r Ref) []byte {
	loc := t.resolve(r)
	t.mark(loc)
	return t.rowValue(loc)
}

// MutableRows is Mutable for a batch.
func (t *table) MutableRows(refs []Ref, rows [][]byte) {
	for i, r := range refs {
		loc := t.resolve(r)
		t.mark(loc)
		rows[i] = t.rowValue(loc)
	}
}

// Set replaces the value. A value that does not fit is put elsewhere, with room to grow; the old place forwards.
func (t *table) Set(r Ref, value []byte) { t.set(t.resolve(r), value) }

func (t *table) set(loc uint32, value []byte) {
	h := t.a.head(loc)
	if len(value) <= t.room(h) || t.growLast(loc, len(value)) {
		h.vlen = uint32(len(value))
		copy(t.rowValue(loc), value)
		t.mark(loc)
		return
	}
	to, err := t.successor(loc, len(value), len(value)+len(value)/4)
	if err != nil {
		return // sticky: the next call reports it
	}
	copy(t.rowValue(to), value)
	t.forward(loc, to)
}

// room is how large the value of a row can be where it is.
func (t *table) room(h *rowHead) int {
	return int(h.units)<<unitShift - t.head - align8(int(h.klen))
}

// growLast makes room for a value of n bytes where the row is, if it is the newest.
func (t *table) growLast(loc uint32, n int) bool {
	h := t.a.head(loc)
	old := int64(h.units)
	if !t.a.growLast(loc, t.head+align8(int(h.klen))+align8(n)) {
		return false
	}
	if h.flags&rowDirty != 0 {
		t.dirtyBytes += (int64(h.units) - old) << unitShift
	}
	return true
}

// successor is a row with the key and the flags of that at loc, for a value of size bytes and room to grow.
func (t *table) successor(loc uint32, size, room int) (uint32, error) {
	h := t.a.head(loc)
	return t.newRow(h.hash, t.rowKey(loc), size, room, h.flags&(rowDisk|rowRef)|h.flags>>rowSeqShift<<rowSeqShift)
}

// forward puts the successor at to in the place of the row at loc.
func (t *table) forward(loc, to uint32) {
	h := t.a.head(loc)
	t.x.move(h.hash, loc, to)
	t.bury(loc)
	h.flags |= rowMoved
	h.hash = uint64(to)
	t.mark(to)
}

// Extend appends to the value in place while there is room.
func (t *table) Extend(r Ref, n, room int) ([]byte, error) {
	loc := t.resolve(r)
	h := t.a.head(loc)
	old := int(h.vlen)
	if old+n > t.room(h) && !t.growLast(loc, max(old+n, room)) {
		to, err := t.successor(loc, old+n, room)
		if err != nil {
			return nil, err
		}
		copy(t.rowValue(to), t.rowValue(loc))
		t.forward(loc, to)
		return t.rowValue(to)[old:], nil
	}
	h.vlen = uint32(old + n)
	t.mark(loc)
	return t.rowValue(loc)[old:], nil
}

// Delete removes the row.
func (t *table) Delete(r Ref) { t.remove(t.resolve(r)) }

func (t *table) remove(loc uint32) {
	h := t.a.head(loc)
	if h.flags&(rowDeleted|rowDead) != 0 {
		return
	}
	t.n--
	if h.flags&rowDisk == 0 {
		t.x.remove(h.hash, loc)
		t.bury(loc)
		return
	}
	h.flags |= rowDeleted
	t.mark(loc)
}

// lookup brings the row of a single key into memory and finds it.
func (t *table) lookup(hash uint64, key []byte) (uint32, bool, error) {
	if t.refsOut {
		if t.ttl { // the clock costs more than the lookup
			t.now = t.b.now()
		}
	} else if err := t.begin(); err != nil {
		return 0, false, err
	}
	if t.err != nil {
		return 0, false, t.err
	}
	loc, ok, err := t.onDiskToo(hash, key)
	if err != nil {
		return 0, false, err
	}
	if ok {
		t.a.head(loc).flags |= rowRef
	}
	return loc, ok && t.visible(loc), nil
}

// Find is a lookup during a batch.
func (t *table) Find(hash uint64, key []byte) (Ref, error) {
	loc, ok, err := t.lookup(hash, key)
	if err != nil || !ok {
		return NoRow, err
	}
	t.refsOut = true
	return Ref(loc), nil
}

// Get is a copy of the value of key.
func (t *table) Get(key []byte) ([]byte, bool, error) {
	loc, ok, err := t.lookup(HashKey(key), key)
	if !ok {
		return nil, false, err
	}
	return bytes.Clone(t.rowValue(loc)), true, nil
}

// Put sets the value of key.
func (t *table) Put(key, value []byte) error {
	hash := HashKey(key)
	loc, ok, err := t.lookup(hash, key)
	if err != nil {
		return err
	}
	if !ok {
		if loc, _, err = t.insert(hash, key, len(value)); err != nil {
			return err
		}
	}
	t.set(loc, value)
	return t.err
}

// Remove deletes key.
func (t *table) Remove(key []byte) error {
	loc, ok, err := t.lookup(HashKey(key), key)
	if ok {
		t.remove(loc)
	}
	return err
}

// Len is the number of rows, including expired ones that no sweep has met yet.
func (t *table) Len() int64 { return t.n }

// Reserve implements Table.
func (t *table) Reserve(n int64) bool {
	t.b.budget.add(n)
	return t.b.budget.over() > 0
}

// diskKey is the key of a row in Pebble: table id, hash, key, so that key groups are ranges and a sorted batch of
// probes walks forward.
func diskKey(dst []byte, id uint16, hash uint64, key []byte) []byte {
	dst = binary.BigEndian.AppendUint16(dst, id)
	dst = binary.BigEndian.AppendUint64(dst, hash)
	return append(dst, key...)
}

const diskPrefix = 10 // bytes before the key
