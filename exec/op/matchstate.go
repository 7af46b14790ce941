package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// headSub is the sub-key of a partition's runs; those of its rows, eight bytes of a number, sort before it.
var headSub = []byte{0xff}

// begin takes up the partition of bucket b.
func (m *matcher) begin(b bucket, key []byte, hash uint64) error {
	m.open, m.bucket, m.key, m.hash = true, b, key, hash
	head, ok, err := b.get(headSub)
	if err != nil {
		return err
	}
	m.places = m.places[:0]
	if m.fresh = !ok; m.fresh {
		m.arena = m.arena[:0]
		m.runs.next, m.base, m.stored = 0, 0, 0
		m.runs.complete = m.runs.complete[:0]
		m.runs.partial = append(m.runs.partial[:0], matchRun{state: m.auto.start, start: unstarted, counts: m.counted(nil, -1)})
		return nil
	}
	if err := m.load(&m.runs, head); err != nil {
		return err
	}
	m.stored = m.runs.next
	m.base = m.oldest()
	for range m.runs.next - m.base {
		m.places = append(m.places, -1)
	}
	return nil
}

// counted is a copy of counts with one row more of variable by; by -1 adds none.
func (m *matcher) counted(counts []int32, by int) []int32 {
	at := len(m.arena)
	if counts == nil {
		for range m.spec.Pattern {
			m.arena = append(m.arena, 0)
		}
	} else {
		m.arena = append(m.arena, counts...)
	}
	c := m.arena[at:len(m.arena):len(m.arena)]
	if by >= 0 {
		c[by]++
	}
	return c
}

// compact frees the memory of runs that are gone.
func (m *matcher) compact() {
	live := (len(m.runs.partial) + len(m.runs.complete)) * len(m.spec.Pattern)
	if len(m.arena) < 1<<10 || len(m.arena) < 4*live {
		return
	}
	m.arena, m.former = m.former[:0], m.arena
	for _, q := range []runQueue{m.runs.partial, m.runs.complete} {
		for i := range q {
			q[i].counts = m.counted(q[i].counts, -1)
		}
	}
}

// oldest is the number of the first row that a run holds.
func (m *matcher) oldest() int64 {
	n := m.runs.next
	if q := m.runs.partial; len(q) > 0 {
		n = min(n, q[0].start)
	}
	if q := m.runs.complete; len(q) > 0 {
		n = min(n, q[0].start)
	}
	return n
}

// placeRow notes where in work row number num is.
func (m *matcher) placeRow(num int64, r int) {
	if len(m.places) == 0 {
		m.base = num
	}
	m.places = append(m.places, int32(r))
}

// rowAt is the place in work of row number num of the partition.
func (m *matcher) rowAt(num int64) (int, error) {
	p := &m.places[num-m.base]
	if *p >= 0 {
		return int(*p), nil
	}
	m.sub = appendNumber(m.sub[:0], uint64(num))
	row, ok, err := m.bucket.get(m.sub)
	if err != nil {
		return 0, err
	}
	if !ok {
		return 0, errMatchState()
	}
	*p = int32(m.work.Len())
	if err := emitRow(m.work, row, types.Insert); err != nil {
		return 0, err
	}
	m.b = m.work.Finish()
	return int(*p), nil
}

// save writes the partition back.
func (m *matcher) save() error {
	m.open = false
	if cap(m.arena)+cap(m.former) > 1<<16 { // of many parts
		defer func() { m.arena, m.former, m.runs = nil, nil, matchRuns{} }()
	}
	from := m.oldest()
	if len(m.runs.partial) == 1 && len(m.runs.complete) == 0 {
		if m.fresh {
			return nil
		}
		return m.bucket.clear()
	}
	if !m.fresh && from > m.base {
		m.sub = appendNumber(m.sub[:0], uint64(from))
		if err := m.bucket.removeBelow(m.sub); err != nil {
			return err
		}
	}
	for num := max(from, m.stored); num < m.runs.next; num++ {
		m.sub = appendNumber(m.sub[:0], uint64(num))
		m.buf = appendRow(m.buf[:0], m.b, int(m.places[num-m.base]))
		if err := m.bucket.put(m.sub, m.buf); err != nil {
			return err
		}
	}
	m.buf = m.encode(m.buf[:0])
	return m.bucket.put(headSub, m.buf)
}

// encode appends the runs: the number of the next row, then both queues, each its length and its runs as state, start,
// time and rows per variable. What waits for its first row has start -1.
func (m *matcher) encode(dst []byte) []byte {
	dst = binary.AppendVarint(dst, m.runs.next)
	for _, q := range []runQueue{m.runs.partial, m.runs.complete} {
		dst = binary.AppendUvarint(dst, uint64(len(q)))
		for i := range q {
			r := &q[i]
			dst = binary.AppendUvarint(dst, uint64(r.state))
			if !r.started() {
				dst = binary.AppendVarint(dst, -1)
				continue
			}
			dst = binary.AppendVarint(dst, r.start)
			dst = binary.AppendVarint(dst, r.since)
			for _, c := range r.counts {
				dst = binary.AppendUvarint(dst, uint64(c))
			}
		}
	}
	return dst
}

// load decodes what encode wrote.
func (m *matcher) load(runs *matchRuns, src []byte) error {
	m.arena = m.arena[:0]
	d := matchDecoder{src: src}
	runs.next = d.int()
	for _, q := range []*runQueue{&runs.partial, &runs.complete} {
		*q = (*q)[:0]
		for n := d.uint(); n > 0 && !d.bad; n-- {
			r := matchRun{state: int(d.uint()), start: d.int(), counts: m.counted(nil, -1)}
			if r.start < 0 {
				r.start = unstarted
			} else {
				r.since = d.int()
				for v := range r.counts {
					r.counts[v] = int32(d.uint())
				}
			}
			if r.state >= len(m.auto.states) || r.started() && r.start+r.rows() > runs.next {
				d.bad = true
			}
			*q = append(*q, r)
		}
	}
	if d.bad || len(d.src) > 0 {
		return errMatchState()
	}
	return nil
}

// matchDecoder reads varints.
type matchDecoder struct {
	src []byte
	bad bool
}

func (d *matchDecoder) uint() uint64 {
	v, n := binary.Uvarint(d.src)
	return v * d.skip(n)
}

func (d *matchDecoder) int() int64 {
	v, n := binary.Varint(d.src)
	return v * int64(d.skip(n))
}

// skip passes n bytes and is 1, or 0 when there are none.
func (d *matchDecoder) skip(n int) uint64 {
	if n <= 0 {
		d.bad = true
		return 0
	}
	d.src = d.src[n:]
	return 1
}

func errMatchState() error {
	return diag.New(diag.Internal, diag.Pos{}, "the state of MATCH_RECOGNIZE in the checkpoint is damaged")
}
