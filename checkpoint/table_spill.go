package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/streamsql/streamsql/sql/diag"
)

// Moving rows between memory and Pebble; table_cold.go does it for cold chunks. Everything here runs between batches (in Probe before it looks anything up,
// or in a single-key call while no Ref is out), because it moves rows.

// begin is the upkeep before a batch.
func (t *table) begin() error {
	if t.err == nil {
		t.err = t.b.failed()
	}
	if t.b.ended {
		return errorf(diag.Internal, "state table %s is used after the last barrier", t.name)
	}
	if t.err != nil {
		return t.err
	}
	t.now = t.b.now()
	if len(t.tombs) > 0 && !t.b.pendingSeal() {
		t.dropTombs()
	}
	if t.ttl {
		if err := t.sweepStep(); err != nil {
			t.err = err
			return err
		}
	}
	if t.filter.keys > 4096 && int64(t.filter.keys) > 4*t.absent {
		if err := t.rebuildFilter(); err != nil {
			t.err = err
			return err
		}
	}
	return t.makeRoom()
}

// makeRoom frees memory that is over the budget or taken by dead rows.
func (t *table) makeRoom() error {
	if t.a.coldUsed > 0 {
		t.err = t.compactCold()
	}
	switch {
	case t.err != nil:
	case t.b.budget.over() > 0:
		t.err = t.shrink()
	case t.a.sparse():
		t.compact()
	}
	return t.err
}

// rebuildFilter drops keys that are no longer on disk only, or no longer at all, from the filter.
func (t *table) rebuildFilter() error {
	t.filter.reset()
	if t.absent == 0 {
		return nil
	}
	it, err := t.b.iter(t.id)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		hash, key := splitDiskKey(it.Key())
		if _, resident := t.find(hash, key); !resident {
			t.filter.add(hash)
		}
	}
	if err := it.Error(); err != nil {
		return t.readError(err)
	}
	return nil
}

// dropTombs forgets deletions that Pebble knows.
func (t *table) dropTombs() {
	for _, loc := range t.tombs {
		h := t.a.head(loc)
		if h.flags&(rowDead|rowMoved|rowDirty) == 0 && h.flags&rowDeleted != 0 {
			t.x.remove(h.hash, loc)
			t.bury(loc)
		}
	}
	t.tombs = t.tombs[:0]
	t.x.shrink()
}

// compact rewrites the chunks that are mostly dead rows.
func (t *table) compact() {
	freed := false
	for i := range t.a.chunks {
		c := &t.a.chunks[i]
		if c.mem == nil || i == t.a.cur || i == t.a.next || c.live*2 > len(c.mem) {
			continue
		}
		t.rewrite(i, func(*rowHead) bool { return false })
		freed = true
	}
	if freed {
		t.pruneLists()
	}
}

// rewrite empties chunk i: rows that evict says may leave memory do, others move to other chunks. The chunk is freed.
func (t *table) rewrite(i int, evict func(*rowHead) bool) {
	if t.a.cur == i {
		t.a.cur = -1
	}
	t.eachRow(i, func(loc uint32, h *rowHead) {
		if h.flags&rowDead == 0 && !(evict(h) && t.evictRow(loc)) {
			t.relocate(i, loc, false)
		}
	})
	t.a.freeChunk(i)
}

// pruneLists drops locations in chunks that were freed; the rows that moved have been appended under their new ones.
func (t *table) pruneLists() {
	gone := func(loc uint32) bool { return t.a.base[loc>>chunkShift] == nil }
	t.dirty = slices.DeleteFunc(t.dirty, gone)
	t.tombs = slices.DeleteFunc(t.tombs, gone)
	if i := t.sweep.chunk; i < len(t.a.base) && t.a.base[i] == nil {
		t.sweep.off = 0
	}
	t.a.reuse()
}

// evictable tells whether Pebble has this version of the row, or will have nothing of it.
func (t *table) evictable(h *rowHead) bool {
	return h.flags&rowDirty == 0 && !t.b.sealing(uint16(h.flags>>rowSeqShift))
}

// evictRow takes the row out of memory if it may.
func (t *table) evictRow(loc uint32) bool {
	h := t.a.head(loc)
	if !t.evictable(h) {
		return false
	}
	if h.flags&rowDeleted == 0 {
		t.filter.add(h.hash)
		t.absent++
	}
	t.x.remove(h.hash, loc)
	t.bury(loc)
	return true
}

// shrink frees this table's share of what is over the budget and a little more: cold rows first, changed rows by writing
// them early.
func (t *table) shrink() error {
	need := t.share()
	if need == 0 && (t.absent == 0 || t.b.db != nil || t.coldOK()) {
		return nil
	}
	if t.b.db == nil {
		// Going to disk is for good: not for the copies of a seal.
		if err := t.b.endSeal(); err != nil {
			return err
		}
		if need = t.share(); need == 0 && t.coldOK() {
			return nil
		}
		if t.coldOK() {
			return t.shrinkCold(need)
		}
	}
	target := t.a.bytes - need
	if t.b.db != nil && t.dirtyBytes*2 < t.a.live {
		t.evict(target, false)
	}
	if t.a.bytes <= target {
		t.noteSpilled()
		return nil
	}
	// What is left is changed, being sealed or recently used.
	if t.b.db == nil || t.dirtyBytes > 0 || t.b.pendingSeal() {
		if err := t.b.spill(t); err != nil {
			return err
		}
		t.dropTombs()
		// Writing a seal gives its copies back, which may have been all that was over.
		if need = t.share(); need == 0 {
			return nil
		}
		target = t.a.bytes - need
	}
	t.evict(target, false)
	if t.a.bytes > target {
		t.evict(target, true)
	}
	t.x.shrink()
	t.noteSpilled()
	return nil
}

// noteSpilled tells once that the table outgrew memory: from now on reads of cold rows cost a look at the disk.
func (t *table) noteSpilled() {
	if t.spilled || t.absent == 0 {
		return
	}
	t.spilled = true
	t.b.noteSpilled()
	t.b.log.Info("state: memory is full, cold rows go to disk", "table", t.name, "rows", t.n, "on disk only", t.absent,
		"state.memory", t.b.budget.limit)
}

// share is what this table should free: its part of the overrun, by size, down to a floor.
func (t *table) share() int64 {
	over := t.b.budget.over()
	floor := int64(2 * firstChunk)
	if over == 0 || t.a.bytes <= floor {
		return 0
	}
	part := float64(t.a.bytes) / float64(max(t.b.budget.Used(), 1))
	return min(int64(float64(over+t.b.budget.limit/16)*min(part, 1)), t.a.bytes-floor)
}

// evict goes round the chunks once (the clock hand) until the arena is down to target. A chunk is rewritten when enough
// of it can go; else its rows lose their reference bits and stay for another round. force ignores the bits.
func (t *table) evict(target int64, force bool) {
	n := len(t.a.chunks)
	rewritten := false
	for step := 0; step < n && t.a.bytes > target; step++ {
		t.hand++
		if t.hand >= n {
			t.hand = 0
		}
		c := &t.a.chunks[t.hand]
		if c.mem == nil || t.hand == t.a.cur && !force {
			continue
		}
		gain := len(c.mem) - c.live + t.coldBytes(t.hand, force)
		if gain*4 < len(c.mem) {
			continue
		}
		t.rewrite(t.hand, func(h *rowHead) bool { return force || h.flags&rowRef == 0 })
		rewritten = true
	}
	if rewritten {
		t.pruneLists()
	}
}

// coldBytes is how much of chunk i can be evicted; the reference bits of the other rows are cleared.
func (t *table) coldBytes(i int, force bool) int {
	c := &t.a.chunks[i]
	cold := 0
	for off := 0; off < c.used; {
		h := t.a.head(uint32(i)<<chunkShift | uint32(off>>unitShift))
		size := int(h.units) << unitShift
		off += size
		if h.flags&rowDead != 0 || !t.evictable(h) {
			continue
		}
		if force || h.flags&rowRef == 0 {
			cold += size
		}
	}
	if !force && cold*4 < len(c.mem) {
		for off := 0; off < c.used; {
			h := t.a.head(uint32(i)<<chunkShift | uint32(off>>unitShift))
			off += int(h.units) << unitShift
			h.flags &^= rowRef
		}
	}
	return cold
}

// load reads the missed keys of a batch from Pebble in key order with one iterator.
func (t *table) load(keys *Keys, refs []Ref) error {
	if t.b.db == nil {
		return t.loadCold(keys, refs)
	}
	slices.SortFunc(t.miss, func(i, j int32) int {
		return cmp.Or(cmp.Compare(keys.Hashes[i], keys.Hashes[j]), bytes.Compare(keys.Key(int(i)), keys.Key(int(j))))
	})
	it, err := t.b.iter(t.id)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	buf := t.b.keyBuf
	for _, i := range t.miss {
		hash, key := keys.Hashes[i], keys.Key(int(i))
		loc, ok := t.find(hash, key) // an equal key of this batch may have brought it
		if !ok {
			buf = diskKey(buf[:0], t.id, hash, key)
			if loc, ok, err = t.fetch(it, buf, hash, key); err != nil {
				return err
			}
		}
		if ok && t.visible(loc) {
			refs[i] = Ref(loc)
		}
	}
	t.b.keyBuf = buf
	return nil
}

// loadOne brings the row of a key that is not in memory there.
func (t *table) loadOne(hash uint64, key []byte) (uint32, bool, error) {
	if t.b.db == nil {
		return t.thaw(hash, key)
	}
	if !t.filter.has(hash) {
		return 0, false, nil
	}
	it, err := t.b.iter(t.id)
	if err != nil {
		return 0, false, t.readError(err)
	}
	defer it.Close()
	t.b.keyBuf = diskKey(t.b.keyBuf[:0], t.id, hash, key)
	return t.fetch(it, t.b.keyBuf, hash, key)
}

// fetch puts the row under disk key dk, if any, into memory. An expired one comes as a tombstone.
func (t *table) fetch(it *pebble.Iterator, dk []byte, hash uint64, key []byte) (uint32, bool, error) {
	// A prefix is a whole key here: files whose Bloom filter lacks it are not read.
	if !it.SeekPrefixGE(dk) || !bytes.Equal(it.Key(), dk) {
		if err := it.Error(); err != nil {
			return 0, false, t.readError(err)
		}
		return 0, false, nil
	}
	v, err := it.ValueAndErr()
	if err != nil {
		return 0, false, t.readError(err)
	}
	stamp, v, err := t.decodeDisk(v)
	if err != nil {
		return 0, false, err
	}
	loc, err := t.residentRow(hash, key, stamp, v)
	if err != nil {
		return 0, false, err
	}
	t.absent--
	if t.expired(loc) {
		t.remove(loc)
	}
	return loc, true, nil
}

// residentRow adds a clean row that Pebble has.
func (t *table) residentRow(hash uint64, key []byte, stamp int64, v []byte) (uint32, error) {
	loc, err := t.newRow(hash, key, len(v), 0, rowDisk|rowRef|uint32(t.b.oldSeq())<<rowSeqShift)
	if err != nil {
		return 0, err
	}
	if t.ttl {
		*t.rowStamp(loc) = stamp
	}
	copy(t.rowValue(loc), v)
	t.x.add(hash, loc)
	return loc, nil
}

// encodeDisk is the value stored in Pebble: the stamp, in tables with TTL, and the value.
func encodeDisk(dst []byte, ttl bool, stamp int64, v []byte) []byte {
	if ttl {
		dst = binary.BigEndian.AppendUint64(dst, uint64(stamp))
	}
	return append(dst, v...)
}

func (t *table) decodeDisk(v []byte) (stamp int64, value []byte, err error) {
	if !t.ttl {
		return 0, v, nil
	}
	if len(v) < 8 {
		return 0, nil, errorf(diag.Data, "state table %s: a row on disk has %d bytes, less than its stamp", t.name, len(v))
	}
	return int64(binary.BigEndian.Uint64(v)), v[8:], nil
}

func (t *table) readError(err error) error {
	return errorf(diag.External, "state table %s cannot be read from disk", t.name).Wrap(err)
}

// Scan visits memory and disk in key order. On disk rows are in hash order, so that this collects what matches and sorts
// it: O(rows of the table) with disk, for restores and rare visits.
func (t *table) Scan(prefix []byte, f func(key, value []byte) bool) error {
	if t.err != nil {
		return t.err
	}
	t.now = t.b.now()
	type hit struct{ key, value []byte }
	var hits []hit
	for _, s := range t.x.slots {
		if s == 0 {
			continue
		}
		if loc := uint32(s) - 1; t.a.base[loc>>chunkShift] != nil && t.visible(loc) && bytes.HasPrefix(t.rowKey(loc), prefix) {
			hits = append(hits, hit{t.rowKey(loc), t.rowValue(loc)})
		}
	}
	err := t.visitDisk(func(key, value []byte) bool {
		if bytes.HasPrefix(key, prefix) {
			hits = append(hits, hit{bytes.Clone(key), bytes.Clone(value)})
		}
		return true
	})
	if err != nil {
		return err
	}
	slices.SortFunc(hits, func(x, y hit) int { return bytes.Compare(x.key, y.key) })
	for _, h := range hits {
		if !f(h.key, h.value) {
			break
		}
	}
	return nil
}

// Visit visits memory, then disk.
func (t *table) Visit(f func(key, value []byte) bool) error {
	if t.err != nil {
		return t.err
	}
	t.now = t.b.now()
	for _, s := range t.x.slots {
		if s == 0 {
			continue
		}
		if loc := uint32(s) - 1; t.a.base[loc>>chunkShift] != nil && t.visible(loc) && !f(t.rowKey(loc), t.rowValue(loc)) {
			return nil
		}
	}
	return t.visitDisk(f)
}

// visitDisk calls f for the rows that are on disk only, by hash, until it returns false.
func (t *table) visitDisk(f func(key, value []byte) bool) error {
	if t.absent == 0 {
		return nil
	}
	if t.b.db == nil {
		return t.visitCold(f)
	}
	it, err := t.b.iter(t.id)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	for ok := it.First(); ok; ok = it.Next() {
		hash, key := splitDiskKey(it.Key())
		if _, resident := t.find(hash, key); resident {
			continue
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return t.readError(err)
		}
		stamp, v, err := t.decodeDisk(raw)
		if err != nil {
			return err
		}
		if t.ttl && stamp+t.o.TTL <= t.now {
			continue
		}
		if !f(key, v) {
			return nil
		}
	}
	if err := it.Error(); err != nil {
		return t.readError(err)
	}
	return nil
}

func splitDiskKey(dk []byte) (hash uint64, key []byte) {
	return binary.BigEndian.Uint64(dk[2:]), dk[diskPrefix:]
}
