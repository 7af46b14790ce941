package checkpoint

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/streamsql/streamsql/sql/diag"
)

// Rows that memory has no room for, while the index has. A chunk of rows that are in segments and that nobody used of late
// is written to the table's coldFile and its memory is given back; locations in it stay, so that the index does not change.
// What holds of a row in a cold chunk that the index names:
//
//   - it is not changed there and has no flags: a lookup copies it into memory (thaw), and the place is dead from then on;
//   - an index slot with the lower half of a key's hash may be that of another key: only reading it tells.
//
// A key that has no slot does not exist: new keys cost no look at the disk. When the index itself takes half of the memory,
// all rows go to Pebble (segments.go, toPebble), which needs none for rows on disk but a filter.

// coldOK tells whether rows may go to cold chunks.
func (t *table) coldOK() bool {
	b := t.b
	return b.db == nil && !b.limits.noCold && b.budget.index.Load() <= b.budget.limit/2 && t.a.numbers() < maxChunks/8*7
}

// chill moves the rows of chunk i that have to stay in memory out of it, writes it and gives up its memory.
func (t *table) chill(i int, stay func(*rowHead) bool) error {
	rows, oldest := 0, t.now
	t.eachRow(i, func(loc uint32, h *rowHead) {
		switch {
		case h.flags&rowDead != 0:
		case !t.evictable(h) || h.flags&rowDeleted != 0 || stay(h):
			t.relocate(i, loc, false)
		default:
			if t.ttl {
				oldest = min(oldest, *t.rowStamp(loc))
			}
			sealCold(t.a.bytesOf(loc))
			rows++
		}
	})
	c := &t.a.chunks[i]
	if rows == 0 {
		t.a.freeChunk(i)
		return nil
	}
	at, err := t.cold.put(c.mem[:c.used])
	if err != nil {
		return t.b.fail(t.b.ioError("cannot write rows to", err))
	}
	t.a.chill(i, at)
	t.a.chunks[i].oldest = oldest
	t.absent += int64(rows)
	return nil
}

// passing tells whether a row that goes from one chunk to another is one that a rebase under way has not seen and will not see
// there.
func (t *table) passing(from, to int) bool {
	r := &t.b.rebase
	return t.rebasing() && from >= r.chunk && to < r.chunk
}

// rebasing tells whether the table is the one that a rebase is at.
func (t *table) rebasing() bool {
	return t.b.rebase.running && t.b.rebase.table == int(t.id)-1
}

// moved is passing for a row of n bytes that has moved. One that moved the other way is met again.
func (t *table) moved(from, to, n int) bool {
	if r := &t.b.rebase; t.rebasing() && from < r.chunk && to >= r.chunk {
		r.again += int64(n)
	}
	return t.passing(from, to)
}

// coldRoom is room for a row from chunk i in the chunk that is to become cold.
func (t *table) coldRoom(i, size int) (uint32, bool) {
	if k := t.a.next; k >= 0 {
		c := &t.a.chunks[k]
		if c.used+size <= len(c.mem) && !t.passing(i, k) {
			return t.a.take(k, size), true
		}
		t.full = append(t.full, k)
	}
	least := 0
	if r := &t.b.rebase; t.rebasing() && i >= r.chunk {
		least = r.chunk
	}
	k, ok := t.a.addChunk(t.a.coldSize(size), least)
	if !ok && least > 0 {
		t.b.rebase = rebase{} // no number is left before it; the next barrier begins another
		k, ok = t.a.addChunk(t.a.coldSize(size), 0)
	}
	if !ok {
		return 0, false
	}
	t.a.next = k
	return t.a.take(k, size), true
}

// chillFull writes the chunks that coldRoom has filled.
func (t *table) chillFull() error {
	for len(t.full) > 0 {
		i := t.full[0]
		t.full = t.full[1:]
		if err := t.chill(i, func(h *rowHead) bool { return h.flags&rowRef != 0 }); err != nil {
			return err
		}
	}
	return nil
}

// thaw brings the row of key into memory if it is in a cold chunk; it is not in memory.
func (t *table) thaw(hash uint64, key []byte) (uint32, bool, error) {
	for p := hash & t.x.mask; ; p = (p + 1) & t.x.mask {
		s := t.x.slots[p]
		if s == 0 {
			return 0, false, nil
		}
		loc := uint32(s) - 1
		if uint32(s>>32) != uint32(hash) || t.a.base[loc>>chunkShift] != nil {
			continue
		}
		row, err := t.coldRow(loc)
		if err != nil {
			return 0, false, err
		}
		if h := (*rowHead)(unsafe.Pointer(unsafe.SliceData(row))); h.hash != hash || !sameKey(t.keyOf(h), key) {
			continue
		}
		to, ok := t.a.alloc(len(row))
		if !ok {
			return 0, false, t.tooLarge()
		}
		copy(t.a.span(to, len(row)), row)
		t.a.head(to).flags = rowDisk | rowRef | uint32(t.b.oldSeq())<<rowSeqShift
		t.x.slots[p] = slotOf(hash, to)
		i := int(loc >> chunkShift)
		if t.moved(i, int(to>>chunkShift), len(row)) {
			t.remark(to)
		}
		t.coldDead(i, len(row))
		return to, true, nil
	}
}

// coldDead takes a row of n bytes out of cold chunk i, and the chunk when it was the last.
func (t *table) coldDead(i, n int) {
	t.absent--
	if t.a.coldDead(i, n) {
		c := &t.a.chunks[i]
		t.cold.drop(c.at, c.used)
		t.a.dropCold(i)
	}
}

// coldView is a table with the rows of a chunk.
func (t *table) coldView(mem []byte) table {
	return table{id: t.id, o: t.o, head: t.head, ttl: t.ttl, now: t.now, a: arena{base: []unsafe.Pointer{unsafe.Pointer(unsafe.SliceData(mem))}}}
}

// takeChunkBuf is room for n words of a cold chunk.
func (b *Backend) takeChunkBuf(n int) []uint64 {
	buf := b.chunk
	b.chunk = nil
	if len(buf) < n {
		b.budget.add(8 * int64(n-len(buf)))
		buf = make([]uint64, n)
	}
	return buf
}

// giveChunkBuf gives it back.
func (b *Backend) giveChunkBuf(buf []uint64) {
	b.budget.add(-8 * int64(len(b.chunk))) // of a visit in a visit
	b.chunk = buf
}

// coldRow reads the row at loc, which is in a cold chunk. It is valid until the next call.
func (t *table) coldRow(loc uint32) ([]byte, error) {
	c := &t.a.chunks[loc>>chunkShift]
	off := int(loc&chunkMask) << unitShift
	row, err := t.cold.held(c.at+int64(off)), error(nil)
	if len(row) < rowHeadSize {
		if row, err = t.cold.read(c.at+int64(off), min(max(coldRead, t.ahead), c.used-off)); err != nil {
			return nil, t.readError(err)
		}
	}
	n := int((*rowHead)(unsafe.Pointer(unsafe.SliceData(row))).units) << unitShift
	if n < t.head || n > c.used-off {
		return nil, t.coldDamage(c.at + int64(off))
	}
	if n > len(row) {
		if row, err = t.cold.read(c.at+int64(off), n); err != nil {
			return nil, t.readError(err)
		}
	}
	if row = row[:n]; !openCold(row) {
		return nil, t.coldDamage(c.at + int64(off))
	}
	return row, nil
}

// coldDamage is the error of a row in the file whose size cannot be or whose checksum is wrong.
func (t *table) coldDamage(at int64) error {
	return t.readError(fmt.Errorf("%w: the row at %d of %q", errDamaged, at, t.cold.path))
}

// eachCold calls f for the rows of cold chunk i that the index names: view has them at at. f may take them out of the index.
func (t *table) eachCold(i int, f func(view *table, at, loc uint32) error) error {
	c := &t.a.chunks[i]
	used, start := c.used, c.at // f may end the chunk
	buf := t.b.takeChunkBuf((used + 7) / 8)
	defer t.b.giveChunkBuf(buf)
	own, err := t.cold.readTo(buf, start, used)
	if err != nil {
		return t.readError(err)
	}
	view := t.coldView(own)
	for off := 0; off < used; {
		at := uint32(off >> unitShift)
		h := view.a.head(at)
		n := int(h.units) << unitShift
		if n < t.head || n > used-off {
			return t.coldDamage(start + int64(off))
		}
		off += n
		loc := uint32(i)<<chunkShift | at
		if !t.x.has(h.hash, loc) {
			continue
		}
		if !openCold(view.a.bytesOf(at)) {
			return t.coldDamage(start + int64(off-n))
		}
		if err := f(&view, at, loc); err != nil {
			return err
		}
	}
	return nil
}

// loadCold is load with cold chunks: in the order of the file.
func (t *table) loadCold(keys *Keys, refs []Ref) error {
	pre := t.pre
	slices.SortFunc(t.miss, func(i, j int32) int { return cmp.Compare(uint32(pre[i]), uint32(pre[j])) })
	run := 0 // misses before it are read, or are about to be
	for n, i := range t.miss {
		if t.ahead = 0; n >= run {
			run, t.ahead = t.coldRun(n)
		}
		hash, key := keys.Hashes[i], keys.Key(int(i))
		loc, ok, err := t.onDiskToo(hash, key)
		if err != nil {
			return err
		}
		if ok && t.visible(loc) {
			refs[i] = Ref(loc)
		}
	}
	return nil
}

// coldRun is the end of the misses from n on whose rows are near each other, and the bytes to read for them.
func (t *table) coldRun(n int) (end, bytes int) {
	at := func(n int) (chunk, off int) {
		loc := uint32(t.pre[t.miss[n]]) - 1
		return int(loc >> chunkShift), int(loc&chunkMask) << unitShift
	}
	chunk, first := at(n)
	last := first
	for end = n + 1; end < len(t.miss); end++ {
		c, off := at(end)
		if c != chunk || off-last > coldGap || off-first > coldRun {
			break
		}
		last = off
	}
	return end, last - first + coldRead
}

// compactCold gathers the rows of the next cold chunk that is mostly dead when cold chunks are.
func (t *table) compactCold() error {
	if t.a.coldUsed <= 2*t.a.coldLive+4*int64(t.a.max) || t.b.rebase.running {
		return nil
	}
	i, ok := t.a.nextThin()
	if !ok {
		return nil
	}
	err := t.eachCold(i, func(view *table, at, loc uint32) error {
		row := view.a.bytesOf(at)
		to, ok := t.coldRoom(i, len(row))
		if !ok {
			return t.tooLarge()
		}
		copy(t.a.span(to, len(row)), row)
		h := t.a.head(to)
		h.flags = rowDisk | uint32(t.b.oldSeq())<<rowSeqShift
		t.x.move(h.hash, loc, to)
		t.coldDead(i, len(row))
		return nil
	})
	if err != nil {
		return err
	}
	if err := t.chillFull(); err != nil {
		return err
	}
	t.pruneLists()
	return nil
}

// recordCold adds the rows of cold chunk i to a set that is written as a segment, and returns their bytes.
func (t *table) recordCold(i int, set *sealSet) (n int64, err error) {
	st := sealTable{t: t, records: &segmentBuf{budget: t.b.budget}}
	err = t.eachCold(i, func(view *table, at, _ uint32) error {
		st.records.add(view, at, false)
		n += int64(view.a.head(at).units) << unitShift
		return nil
	})
	set.tables = append(set.tables, st)
	return n, err
}

// rewriteCold writes the rows of all cold chunks to segments. cutMu is held.
func (t *table) rewriteCold() error {
	for i := range t.a.chunks {
		if !t.a.chunks[i].cold {
			continue
		}
		t.b.sets++
		set := &sealSet{num: t.b.sets, early: true, catalog: t.b.encodeCatalog()}
		_, err := t.recordCold(i, set)
		if err == nil {
			if err = t.b.writeSegment(set); err != nil {
				err = t.b.ioError("cannot write rows to", err)
			}
		}
		set.close()
		if err != nil {
			return err
		}
	}
	return nil
}

// coldToPebble writes the rows of all cold chunks to Pebble, which has none of this table. cutMu is held. Each file of Pebble spans all
// hashes, so that it gets as few as an eighth of the memory allows.
func (t *table) coldToPebble() error {
	st := sealTable{t: t, a: newArena(t.b.budget)}
	defer func() { st.close() }()
	write := func() error {
		if len(st.ents) == 0 {
			return nil
		}
		if err := t.b.writeSet(&sealSet{tables: []sealTable{st}, catalog: t.b.encodeCatalog()}); err != nil {
			return t.b.ioError("cannot write rows to", err)
		}
		st.close()
		st.a, st.ents = newArena(t.b.budget), st.ents[:0]
		return nil
	}
	for i := range t.a.chunks {
		if !t.a.chunks[i].cold {
			continue
		}
		err := t.eachCold(i, func(view *table, at, loc uint32) error {
			row, hash := view.a.bytesOf(at), view.a.head(at).hash
			to, ok := st.a.alloc(len(row))
			if !ok {
				return t.tooLarge()
			}
			copy(st.a.span(to, len(row)), row)
			st.ents = append(st.ents, sealEnt{hash, to, false})
			t.x.remove(hash, loc)
			t.filter.add(hash)
			return nil
		})
		if err != nil {
			return err
		}
		t.a.coldDead(i, t.a.chunks[i].live)
		t.a.dropCold(i)
		if st.a.bytes >= t.b.budget.limit/8 {
			if err := write(); err != nil {
				return err
			}
		}
	}
	if err := write(); err != nil {
		return err
	}
	t.a.next, t.full = -1, nil // ordinary chunks from now on
	t.pruneLists()
	return t.cold.remove()
}

var errStop = errors.New("stop")

// visitCold calls f for the rows in cold chunks until it returns false.
func (t *table) visitCold(f func(key, value []byte) bool) error {
	for i := range t.a.chunks {
		if !t.a.chunks[i].cold {
			continue
		}
		err := t.eachCold(i, func(view *table, at, _ uint32) error {
			if !view.expired(at) && !f(view.rowKey(at), view.rowValue(at)) {
				return errStop
			}
			return nil
		})
		if errors.Is(err, errStop) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// sweepCold removes the expired rows of the next cold chunk that may have any.
func (t *table) sweepCold() error {
	s := &t.sweep
	due := false
	for range len(t.a.chunks) {
		if s.cold++; s.cold >= len(t.a.chunks) {
			s.cold = 0
		}
		c := &t.a.chunks[s.cold]
		if due = c.cold && c.oldest+t.o.TTL <= t.now; due {
			break
		}
	}
	if !due {
		return nil // reading a chunk in vain costs more than many batches
	}
	i, oldest := s.cold, t.now
	err := t.eachCold(i, func(view *table, at, loc uint32) error {
		if !view.expired(at) {
			oldest = min(oldest, *view.rowStamp(at))
			return nil
		}
		h := view.a.head(at)
		to, err := t.newRow(h.hash, view.rowKey(at), 0, 0, rowDisk|uint32(t.b.oldSeq())<<rowSeqShift)
		if err != nil {
			return err
		}
		t.x.move(h.hash, loc, to)
		t.coldDead(i, int(h.units)<<unitShift)
		t.remove(to)
		return nil
	})
	if t.a.chunks[i].cold {
		t.a.chunks[i].oldest = oldest
	}
	return err
}

func (t *table) tooLarge() error {
	t.err = errorf(diag.External, "state table %s is too large: its rows in memory exceed %d GiB", t.name, maxChunks*hugePage>>30).
		WithHint("raise the parallelism, or give the engine less memory for state (--memory)")
	return t.err
}
