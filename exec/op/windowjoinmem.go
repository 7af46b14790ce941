package op

import (
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// joinedRows are the rows of a window of one side in memory, as columns. They are in the log instead from the next barrier on,
// or when memory is used up; a window that came and went in between is never written.
type joinedRows struct {
	parts []*batch.Builder // of batch.Size rows each, but the last
	texts textRoom
	size  int   // of the texts
	bytes int64 // counted for the side
}

const maxFreeParts = 64 // parts of windows that are over whose memory is kept

// add adds physical rows of b to the window ending at end.
func (x *windowJoinSide) add(end int64, b *batch.Batch, rows []int32) {
	m := x.mem[end]
	if m == nil {
		m = &joinedRows{}
		x.mem[end] = m
		x.grow(m, 1024)
	}
	for len(rows) > 0 {
		if n := len(m.parts); n == 0 || m.parts[n-1].Full() {
			m.parts = append(m.parts, x.part(m))
		}
		part := m.parts[len(m.parts)-1]
		some := rows[:min(len(rows), batch.Size-part.Len())]
		rows = rows[len(some):]
		before := columnBytes(part)
		for i, c := range part.Cols {
			c.AppendRows(b.Cols[i], some)
			if c.Type.Phys() != types.PhysStr {
				continue
			}
			for k, text := range c.Str[len(c.Str)-len(some):] { // the batch's would keep its whole buffer alive
				c.Str[len(c.Str)-len(some)+k] = m.texts.keep(text)
				x.grow(m, len(text))
			}
		}
		part.RowsDone(len(some))
		x.grow(m, columnBytes(part)-before)
	}
}

// part is an empty part for m.
func (x *windowJoinSide) part(m *joinedRows) *batch.Builder {
	n := len(x.free)
	if n == 0 {
		return batch.NewBuilder(x.input)
	}
	p := x.free[n-1]
	x.free = x.free[:n-1]
	m.bytes += int64(columnBytes(p))
	return p
}

// grow counts n more bytes for m.
func (x *windowJoinSide) grow(m *joinedRows, n int) {
	m.bytes += int64(n)
	x.bytes += int64(n)
}

// columnBytes is the memory of a part's columns, without their texts.
func columnBytes(p *batch.Builder) (n int) {
	for _, c := range p.Cols {
		n += 8*(cap(c.I64)+cap(c.F64)) + 16*(cap(c.Str)+cap(c.I128)) + cap(c.Bool)
	}
	return n
}

// forget forgets the rows that are in memory of the window ending at end.
func (x *windowJoinSide) forget(end int64) {
	m := x.mem[end]
	if m == nil {
		return
	}
	delete(x.mem, end)
	x.bytes -= m.bytes
	for _, p := range m.parts {
		if len(x.free) == maxFreeParts {
			break
		}
		for _, c := range p.Cols {
			clear(c.Str)
		}
		p.Reset()
		x.free = append(x.free, p)
		x.bytes += int64(columnBytes(p))
	}
}

// spill writes the rows that are in memory of the window ending at end to the log.
func (w *windowJoin) spill(x *windowJoinSide, end int64) error {
	m := x.mem[end]
	if m == nil {
		return nil
	}
	for _, p := range m.parts {
		b := p.Finish()
		x.enc.Encode(b, &w.keys)
		x.codec.encode(b, &w.encoded)
		for i := range b.N {
			x.log.add(end, w.keys.Hashes[i], w.encoded.row(i))
		}
		if err := x.log.commit(); err != nil {
			return err
		}
	}
	x.forget(end)
	return nil
}

func appendRange(dst []int32, lo, hi int) []int32 {
	for i := lo; i < hi; i++ {
		dst = append(dst, int32(i))
	}
	return dst
}

// spillAll writes all rows that are in memory to the logs.
func (w *windowJoin) spillAll() error {
	for i := range w.sides {
		x := &w.sides[i]
		for end := range x.mem {
			if err := w.spill(x, end); err != nil {
				return err
			}
		}
		x.free, x.bytes = nil, 0
	}
	return w.account()
}

// account counts what is in memory in the job's, and gives it up when that is used up.
func (w *windowJoin) account() error {
	held := w.sides[0].bytes + w.sides[1].bytes
	n := held - w.taken
	if held > 0 && n > -cacheGrain && n < cacheGrain {
		return nil
	}
	w.taken = held
	if full := w.sides[0].log.table.Reserve(n); full && held > 0 {
		return w.spillAll()
	}
	return nil
}

// fire joins the rows of a window and forgets them.
func (w *windowJoin) fire(end int64, out exec.Emitter) error {
	stored := false
	for i := range w.sides {
		stored = stored || w.sides[i].log.cells[end] != nil
	}
	if !stored {
		if err := w.join.memory(end, out); err != nil {
			return err
		}
		for i := range w.sides {
			w.sides[i].forget(end)
		}
		return nil
	}
	for i := range w.sides {
		if err := w.spill(&w.sides[i], end); err != nil {
			return err
		}
	}
	return w.join.window(end, out)
}

// memory joins the rows of a window that are in memory.
func (j *windowHashJoin) memory(end int64, out exec.Emitter) error {
	var parts [2][]*batch.Builder
	for i := range j.sides {
		if m := j.sides[i].mem[end]; m != nil {
			parts[i] = m.parts
		}
	}
	switch j.at[1] = &j.none; len(parts[1]) {
	case 0:
	case 1:
		j.at[1] = parts[1][0].Finish()
	default:
		j.gatherParts(parts[1])
	}
	clear(j.leftHit)
	j.build()
	j.leftSeen = 0
	for _, p := range parts[0] {
		j.at[0] = p.Finish()
		if err := j.meet(true, out); err != nil {
			return err
		}
		j.leftSeen += j.at[0].N
	}
	if !j.pads(1) {
		return nil
	}
	return j.padRight(out)
}

// gatherParts makes parts the block.
func (j *windowHashJoin) gatherParts(parts []*batch.Builder) {
	block := j.cols[1]
	block.Reset()
	for _, p := range parts {
		b := p.Finish()
		j.alone = appendRange(j.alone[:0], 0, b.N)
		for i, c := range block.Cols {
			c.AppendRows(b.Cols[i], j.alone)
		}
		block.RowsDone(b.N)
	}
	j.at[1] = block.Finish()
}

// times are the ends of the windows that there are rows of, ascending.
func (w *windowJoin) times(dst []int64) []int64 {
	for i := range w.sides {
		dst = w.sides[i].log.times(dst)
		for end := range w.sides[i].mem {
			dst = append(dst, end)
		}
	}
	slices.Sort(dst)
	return slices.Compact(dst)
}
