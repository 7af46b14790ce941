package checkpoint

// sweepState is where the incremental sweep of expired rows is: a chunk and an offset in memory, a key on disk.
type sweepState struct {
	chunk, off int
	diskKey    []byte
	cold       int
	batches    int
}

const (
	sweepRows      = 128 // rows of memory looked at per batch
	sweepDiskEvery = 16  // batches between looks at the disk
	sweepDiskRows  = 1024
)

// sweepStep removes a few expired rows, so that rows nobody asks for again go too.
func (t *table) sweepStep() error {
	for range sweepRows {
		loc, ok := t.sweepNext()
		if !ok {
			break
		}
		h := t.a.head(loc)
		if h.flags&(rowDead|rowMoved|rowDeleted) == 0 && t.expired(loc) {
			t.remove(loc)
		}
	}
	t.sweep.batches++
	if t.absent > 0 && t.sweep.batches%sweepDiskEvery == 0 {
		if t.b.db == nil {
			return t.sweepCold()
		}
		return t.sweepDisk()
	}
	return nil
}

// sweepNext is the next row in arena order, false at the end of a round.
func (t *table) sweepNext() (uint32, bool) {
	s := &t.sweep
	for s.chunk < len(t.a.chunks) {
		c := &t.a.chunks[s.chunk]
		if s.off >= c.used || c.mem == nil {
			s.chunk, s.off = s.chunk+1, 0
			continue
		}
		loc := uint32(s.chunk)<<chunkShift | uint32(s.off>>unitShift)
		s.off += int(t.a.head(loc).units) << unitShift
		return loc, true
	}
	s.chunk, s.off = 0, 0
	return 0, false
}

// sweepDisk puts a tombstone into memory for expired rows that are on disk only; the next seal writes it.
func (t *table) sweepDisk() error {
	it, err := t.b.iter(t.id)
	if err != nil {
		return t.readError(err)
	}
	defer it.Close()
	s := &t.sweep
	ok := it.First()
	if len(s.diskKey) > 0 {
		ok = it.SeekGE(s.diskKey)
	}
	for range sweepDiskRows {
		if !ok {
			s.diskKey = s.diskKey[:0]
			return it.Error()
		}
		raw, err := it.ValueAndErr()
		if err != nil {
			return t.readError(err)
		}
		stamp, _, err := t.decodeDisk(raw)
		if err != nil {
			return err
		}
		if stamp+t.o.TTL <= t.now {
			hash, key := splitDiskKey(it.Key())
			if _, resident := t.find(hash, key); !resident {
				loc, err := t.residentRow(hash, key, stamp, nil)
				if err != nil {
					return err
				}
				t.absent--
				t.remove(loc)
			}
		}
		ok = it.Next()
	}
	if ok {
		s.diskKey = append(s.diskKey[:0], it.Key()...)
	} else {
		s.diskKey = s.diskKey[:0]
	}
	return it.Error()
}
