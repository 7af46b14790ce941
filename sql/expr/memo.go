package expr

import "github.com/streamsql/streamsql/sql/batch"

// memo is for which rows a lazy node with several parents has been computed. Each parent has it computed for the rows it
// needs that are still missing.
type memo struct {
	done    []uint64  // bitmap of rows
	all     batch.Vec // the rows of several runs
	valid   []uint64  // memory of all.Valid
	joined  bool      // all holds the result
	any     bool      // there was a row to compute
	first   []int32
	missing []int32
	errs    []rowErr
}

// evalMissing makes n's result good for the rows of sel, too. No caller may hold a result that was made for fewer rows of
// the batch than it needs now: operators evaluate operands one by one for their own rows or some of them.
func (n *node) evalMissing(c *evalCtx, sel []int32) *batch.Vec {
	if n.memo == nil {
		n.memo = &memo{}
	}
	m := n.memo
	if n.seq != c.seq {
		n.seq = c.seq
		m.joined, m.any = false, false
		m.done = append(m.done[:0], make([]uint64, (c.n+63)>>6)...)
		n.errs = n.errs[:0]
		n.run(c, n, sel)
		m.mark(c.rows(sel))
		return n.vec
	}
	m.missing = m.missing[:0]
	for _, r := range c.rows(sel) {
		if m.done[r>>6]&(1<<(r&63)) == 0 {
			m.missing = append(m.missing, r)
		}
	}
	// A constant is good for all rows, unless it failed, which shows once it was made for one.
	if len(m.missing) == 0 || n.vec.Const && len(n.errs) == 0 && m.any {
		return n.vec
	}
	if !m.joined {
		m.begin(n, c)
	}
	m.errs = append(m.errs[:0], n.errs...)
	n.errs = n.errs[:0]
	n.run(c, n, m.missing)
	n.errs = append(n.errs, m.errs...)
	m.add(n.vec, m.missing, c.n)
	m.mark(m.missing)
	n.vec = &m.all
	return n.vec
}

func (m *memo) mark(rows []int32) {
	m.any = m.any || len(rows) > 0
	for _, r := range rows {
		m.done[r>>6] |= 1 << (r & 63)
	}
}

// begin takes over the result of the first run.
func (m *memo) begin(n *node, c *evalCtx) {
	m.all.Type = n.out.Type
	m.all.Resize(c.n)
	m.joined = true
	m.first = m.first[:0]
	for _, r := range c.rows(nil) {
		if m.done[r>>6]&(1<<(r&63)) != 0 {
			m.first = append(m.first, r)
		}
	}
	m.add(n.vec, m.first, c.n)
}

// add copies rows of v.
func (m *memo) add(v *batch.Vec, rows []int32, total int) {
	if v.Valid != nil {
		for _, r := range rows {
			if !v.IsNull(int(r)) {
				continue
			}
			if m.all.Valid == nil {
				m.valid = batch.AllValid(m.valid, total)
				m.all.Valid = m.valid
			}
			m.all.Valid[r>>6] &^= 1 << (r & 63)
		}
	}
	copyPhys(&m.all, v, rows)
}
