package op

import (
	"strings"
	"unsafe"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// heldTexts is memory for the texts of rows that wait. It is used again when they have left, so that most texts are written where
// the processor's cache still has room, and the collector sees none of them. Those that leave with results are given memory of
// their own first (release); when they are many, all keep what they have, and the next rows get new memory.
type heldTexts struct {
	mem   []byte // of the texts that wait; those in memory that was too little for more keep it
	bytes int    // of texts that wait
	freed int    // of texts that left, copied
	given bool   // mem is not to be used again
	seen  bool   // a condition reads texts, and what it calls may keep them: mem is never used again
}

// take copies the texts of cols from row from on.
func (h *heldTexts) take(cols []*batch.ColBuilder, from int) {
	n := 0
	for _, c := range cols {
		for _, s := range c.Str[from:] {
			n += len(s)
		}
	}
	h.bytes += n
	if cap(h.mem)-len(h.mem) < n {
		h.mem, h.given = make([]byte, 0, max(n, 2*cap(h.mem))), false
	}
	for _, c := range cols {
		texts := c.Str[from:]
		for i, s := range texts {
			at := len(h.mem)
			h.mem = append(h.mem, s...)
			texts[i] = unsafe.String(unsafe.SliceData(h.mem[at:]), len(s))
		}
	}
}

// release gives texts that are in mem memory of their own, in the rows of b that count.
func (h *heldTexts) release(b *batch.Batch) {
	if h.seen || h.given || len(h.mem) == 0 {
		return
	}
	n := 0
	for _, v := range b.Cols {
		if v.Type.Phys() == types.PhysStr {
			n += h.move(b, v, nil)
		}
	}
	if n == 0 {
		return
	}
	if h.freed += n; 2*h.freed > h.bytes { // what is copied now and later would be most of it
		h.given = true
		return
	}
	var room strings.Builder
	room.Grow(n)
	for _, v := range b.Cols {
		if v.Type.Phys() == types.PhysStr {
			h.move(b, v, &room)
		}
	}
}

// move copies the texts of v that are in mem to room, which has it, and tells how many bytes they have. One that follows itself
// is copied once. Without room they stay.
func (h *heldTexts) move(b *batch.Batch, v *batch.Vec, room *strings.Builder) (n int) {
	first, size := uintptr(unsafe.Pointer(unsafe.SliceData(h.mem))), uintptr(len(h.mem))
	var last *byte
	length, to := 0, ""
	rows := b.Len()
	if v.Const {
		rows = min(rows, 1)
	}
	for i := range rows {
		r := v.Idx(b.Row(i))
		s := v.Str[r]
		p := unsafe.StringData(s)
		if len(s) == 0 || uintptr(unsafe.Pointer(p))-first >= size {
			continue
		}
		if p != last || len(s) != length {
			last, length = p, len(s)
			if n += len(s); room != nil {
				at := room.Len()
				room.WriteString(s)
				to = room.String()[at:]
			}
		}
		if room != nil {
			v.Str[r] = to
		}
	}
	return n
}

// forget says that no row waits any more.
func (h *heldTexts) forget() {
	if h.seen || h.given {
		h.mem, h.given = make([]byte, 0, len(h.mem)), false
	}
	h.mem, h.bytes, h.freed = h.mem[:0], 0, 0
}
