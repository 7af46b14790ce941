package checkpoint

import "slices"

// Making room in memory. Rows that may leave it do so in one of two ways: while the index of all rows is in memory, they go to
// cold chunks (table_cold.go) and stay in the index; afterwards Pebble has them, and they leave the index, too. Everything here
// runs between batches (in Probe before it looks anything up, or in a single-key call while no Ref is out), because it moves rows.

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

// compact rewrites the chunks that are mostly dead rows.
func (t *table) compact() {
	freed := false
	for i := range t.a.chunks {
		c := &t.a.chunks[i]
		if c.mem == nil || i == t.a.cur || i == t.a.next || c.live*2 > len(c.mem) {
			continue
		}
		t.rewrite(i, func(*rowHead) bool { return true })
		freed = true
	}
	if freed {
		t.pruneLists()
	}
}

// rewrite empties chunk i and frees it: rows leave memory, or are gathered to leave it, unless stay says otherwise or they may
// not; those move to other chunks.
func (t *table) rewrite(i int, stay func(*rowHead) bool) {
	t.eachRow(i, func(loc uint32, h *rowHead) {
		switch {
		case h.flags&rowDead != 0:
		case stay(h) || !t.evictable(h):
			t.relocate(i, loc, false)
		case t.b.db == nil:
			t.relocate(i, loc, h.flags&rowDeleted == 0)
		default:
			t.evictRow(loc)
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

// evictable tells whether the disk has this version of the row, or will have nothing of it.
func (t *table) evictable(h *rowHead) bool {
	return h.flags&rowDirty == 0 && !t.b.sealing(uint16(h.flags>>rowSeqShift))
}

// evictRow takes a row that Pebble has, or nothing of, out of memory.
func (t *table) evictRow(loc uint32) {
	h := t.a.head(loc)
	if h.flags&rowDeleted == 0 {
		t.filter.add(h.hash)
		t.absent++
	}
	t.x.remove(h.hash, loc)
	t.bury(loc)
}

// shrink frees this table's share of what is over the budget and a little more: cold rows first, changed rows by writing
// them early.
func (t *table) shrink() error {
	inMemory := t.b.db == nil
	if t.share() == 0 && (!inMemory || t.absent == 0 || t.coldOK()) {
		return nil
	}
	if inMemory {
		// Not for the copies of a seal: rows go to disk for good.
		if err := t.b.endSeal(); err != nil {
			return err
		}
		if t.share() == 0 && t.coldOK() {
			return nil
		}
		if !t.coldOK() {
			if err := t.b.leaveMemory(); err != nil {
				return err
			}
		}
	}
	target := t.a.bytes - t.share()
	if t.dirtyBytes*2 < t.a.live {
		if err := t.evict(target, false); err != nil {
			return err
		}
	}
	if t.a.bytes > target {
		// What is left is changed, being sealed or recently used.
		if err := t.writeChanges(); err != nil {
			return err
		}
		need := t.share() // a seal that was written has given its copies back, which may have been all that was over
		if need == 0 {
			return nil
		}
		target = t.a.bytes - need
		for _, force := range [2]bool{false, true} {
			if err := t.evict(target, force); err != nil {
				return err
			}
		}
	}
	t.x.shrink()
	t.noteSpilled()
	return nil
}

// writeChanges writes what is sealed and the changed rows early, so that they may leave memory. Where memory is used up for good,
// by the index or by operators, every batch would write a file of a few rows: they stay until they are worth one.
func (t *table) writeChanges() error {
	if err := t.b.endSeal(); err != nil {
		return err
	}
	if t.dirtyBytes >= t.b.budget.earlyBytes() {
		if err := t.b.writeEarly(t); err != nil {
			return err
		}
	}
	t.dropTombs()
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

// evict goes round the chunks once (the clock hand) until the arena is down to target. A chunk is emptied when enough
// of it can go; else its rows lose their reference bits and stay for another round. force ignores the bits.
func (t *table) evict(target int64, force bool) error {
	stay := func(h *rowHead) bool { return !force && h.flags&rowRef != 0 }
	n := len(t.a.chunks)
	emptied := false
	for step := 0; step < n && t.a.bytes > target; step++ {
		if t.hand++; t.hand >= n {
			t.hand = 0
		}
		i := t.hand
		c := &t.a.chunks[i]
		if c.mem == nil || i == t.a.next || slices.Contains(t.full, i) || i == t.a.cur && !force {
			continue
		}
		cold := t.coldBytes(i, force)
		if (len(c.mem)-c.live+cold)*4 < len(c.mem) {
			continue
		}
		emptied = true
		if t.a.cur == i {
			t.a.cur = -1
		}
		var err error
		if t.b.db == nil && len(c.mem) >= t.a.coldSize(0) && cold*4 >= len(c.mem)*3 {
			err = t.chill(i, stay) // most of it can go: as it is
		} else {
			t.rewrite(i, stay)
			err = t.chillFull()
		}
		if err != nil {
			return err
		}
	}
	if emptied {
		t.pruneLists()
	}
	return nil
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

// relocate moves the row at loc of chunk i to another chunk of memory, or to the one that is to become cold.
func (t *table) relocate(i int, loc uint32, cold bool) {
	h := t.a.head(loc)
	size := int(h.units) << unitShift
	to, ok := uint32(0), false
	if cold {
		to, ok = t.coldRoom(i, size)
	} else {
		to, ok = t.a.alloc(size)
	}
	if !ok {
		panic("checkpoint: no room to move a row") // alloc succeeded for more rows before
	}
	copy(t.a.span(to, size), t.a.bytesOf(loc))
	t.x.move(h.hash, loc, to)
	th := t.a.head(to)
	th.flags &^= rowRef
	switch {
	case th.flags&rowDirty != 0:
		t.dirty = append(t.dirty, to)
	case th.flags&rowDeleted != 0:
		t.tombs = append(t.tombs, to)
	case t.moved(i, int(to>>chunkShift), size):
		t.remark(to)
	}
	t.a.kill(loc)
	h.flags |= rowDead
}
