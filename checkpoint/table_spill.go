package checkpoint

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/cockroachdb/pebble/v2"
	"github.com/streamsql/streamsql/sql/diag"
)

// Rows that are on disk only: reading them from Pebble, or from cold chunks (table_cold.go), and visits of all rows.

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

// onDiskToo is find for a row that may be on disk only, which comes into memory.
func (t *table) onDiskToo(hash uint64, key []byte) (uint32, bool, error) {
	loc, ok := t.find(hash, key)
	switch {
	case ok || t.absent == 0:
		return loc, ok, nil
	case t.b.db == nil:
		return t.thaw(hash, key)
	case !t.filter.has(hash):
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
