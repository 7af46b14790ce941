package checkpoint

// segmentBuf holds the records of a table between a barrier and their writing, in blocks with room for their heads. It is
// outside the Go heap where it is large, and counts in the budget.
type segmentBuf struct {
	budget *MemoryBudget
	blocks []bufBlock
	bytes  int64
}

type bufBlock struct {
	mem  []byte
	raw  []byte // mapping to release; nil: mem is on the Go heap
	rows uint32
}

const firstBlock = 16 << 10

// add appends the row at loc of t.
func (s *segmentBuf) add(t *table, loc uint32, deleted bool) {
	n := t.recordSize(loc, deleted)
	i := len(s.blocks) - 1
	if i < 0 || len(s.blocks[i].mem)+n > cap(s.blocks[i].mem) {
		s.grow(n)
		i++
	}
	b := &s.blocks[i]
	b.mem = t.appendRecord(b.mem, loc, deleted)
	b.rows++
}

// grow adds a block with room for a record of n bytes.
func (s *segmentBuf) grow(n int) {
	size := max(n+segmentHead, min(max(firstBlock, int(s.bytes)), hugePage))
	var b bufBlock
	if size == hugePage {
		b.mem, b.raw = offHeapChunk()
	}
	if b.mem == nil {
		b.mem = make([]byte, 0, size)
	}
	b.mem = b.mem[:segmentHead]
	s.blocks = append(s.blocks, b)
	s.bytes += int64(cap(b.mem))
	s.budget.add(int64(cap(b.mem)))
}

// writeTo writes the blocks as those of table id.
func (s *segmentBuf) writeTo(w *segmentWriter, id uint16) error {
	for _, b := range s.blocks {
		if err := w.block(id, b.rows, b.mem); err != nil {
			return err
		}
	}
	return nil
}

func (s *segmentBuf) close() {
	for _, b := range s.blocks {
		if b.raw != nil {
			freeOffHeap(b.raw)
		}
	}
	s.budget.add(-s.bytes)
	s.blocks, s.bytes = nil, 0
}
