package op

import (
	"bytes"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// A partition with more rows than are held is read by cursors, which all only go forward: one is at the row at hand, one
// behind its peers, one for every LAG and LEAD, and two at the ends of every frame. Each holds a batch of rows.

// overCursor is a place in the partition in o.one.
type overCursor struct {
	o     *overFinal
	num   int64 // of the row
	pos   int   // its place in b
	b     *batch.Batch
	build *batch.Builder
	from  []byte // the next batch begins here
	sorts []byte
	ends  []int
}

func (o *overFinal) cursor() *overCursor {
	return &overCursor{o: o, build: batch.NewBuilder(o.spec.Input)}
}

// ok brings the row in, and tells whether there is one.
func (c *overCursor) ok() (bool, error) {
	if c.b != nil && (c.pos < c.b.N || c.b.N < batch.Size) {
		return c.pos < c.b.N, nil
	}
	if err := c.o.rows.probe(&c.o.one); err != nil {
		return false, err
	}
	c.build.Reset()
	c.sorts, c.ends, c.pos = c.sorts[:0], c.ends[:0], 0
	var failed error
	err := c.o.rows.at(0).ascend(c.from, func(sub, row []byte) bool {
		if c.build.Full() {
			return false
		}
		c.sorts = append(c.sorts, sub[:len(sub)-8]...)
		c.ends = append(c.ends, len(c.sorts))
		failed = emitRow(c.build, row, types.Insert)
		c.o.sub = append(append(c.o.sub[:0], sub...), 0)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if c.b = c.build.Finish(); c.b.N > 0 {
		c.from = append(c.from[:0], c.o.sub...)
	}
	return c.b.N > 0, err
}

func (c *overCursor) step() { c.num++; c.pos++ }

// sortKey is that of the row.
func (c *overCursor) sortKey() []byte {
	start := 0
	if c.pos > 0 {
		start = c.ends[c.pos-1]
	}
	return c.sorts[start:c.ends[c.pos]]
}

// overPlace is what frames and numbers need to know of the row at hand.
type overPlace struct {
	row         *overCursor
	n           int64 // rows of the partition
	first, end  int64 // of its peers
	dense       int64
	sort        []byte // of its peers
	behind      *overCursor
	leads       []*overCursor // per call, LAG and LEAD
	frames      []*overFrames
	key         []byte
	hash        uint64
	order       SortKey
	orderIsNull bool
	orderValue  int64
}

// overFrames is an overSlide with the ends of its frame.
type overFrames struct {
	*overSlide
	lo, hi *overCursor
	plan   *batch.Builder
	signs  []int8
	emits  []int // per step, results to append after it
	lead   int   // before the first one
	fresh  bool
	refs   []checkpoint.Ref
}

// leaveLarge is leave for a partition of n rows that are not in memory together.
func (o *overFinal) leaveLarge(i, n int, out exec.Emitter) error {
	o.one.Reset()
	appendKey(&o.one, o.keys.Key(i), o.keys.Hashes[i])
	if err := o.rows.done(); err != nil {
		return err
	}
	p := &overPlace{row: o.cursor(), behind: o.cursor(), n: int64(n), key: o.one.Key(0), hash: o.one.Hashes[0]}
	if len(o.order) > 0 {
		p.order = o.order[0]
	}
	for k := range o.spec.Calls {
		p.leads = append(p.leads, nil)
		if f := o.spec.Calls[k].Func; f == expr.OverLag || f == expr.OverLead {
			p.leads[k] = o.cursor()
		}
	}
	for _, a := range o.aggs {
		p.frames = append(p.frames, &overFrames{overSlide: a, lo: o.cursor(), hi: o.cursor(), plan: batch.NewBuilder(o.spec.Input), fresh: true})
	}
	o.calls.Reset()
	for {
		ok, err := p.row.ok()
		if err != nil {
			return err
		}
		if !ok {
			break
		}
		if err := o.place(p); err != nil {
			return err
		}
		last := p.row.pos == p.row.b.N-1
		p.row.step()
		if !last {
			continue
		}
		for _, f := range p.frames {
			if err := f.run(p); err != nil {
				return err
			}
		}
		if err := o.emit(p.row.b, out); err != nil {
			return err
		}
		o.calls.Reset()
	}
	for _, f := range p.frames {
		if err := f.finish(p); err != nil {
			return err
		}
	}
	return o.forgetLarge()
}

// forgetLarge removes the partition in o.one, and looks up the others again.
func (o *overFinal) forgetLarge() error {
	for more := true; more; {
		if err := o.rows.probe(&o.one); err != nil {
			return err
		}
		n := 0
		more = false
		err := o.rows.at(0).ascend(nil, func(sub, _ []byte) bool {
			if more = n == batch.Size; more {
				return false
			}
			n++
			o.sub = append(append(o.sub[:0], sub...), 0)
			return true
		})
		if err == nil && n > 0 {
			err = o.rows.at(0).removeBelow(o.sub)
		}
		if err == nil {
			err = o.rows.done()
		}
		if err != nil {
			return err
		}
	}
	return o.rows.probe(&o.keys)
}

// place computes the calls for the row at hand.
func (o *overFinal) place(p *overPlace) error {
	if i := p.row.num; i == 0 || i == p.end {
		p.first, p.sort = i, append(p.sort[:0], p.row.sortKey()...)
		p.dense++
		for {
			ok, err := p.behind.ok()
			if err != nil {
				return err
			}
			if !ok || !bytes.Equal(p.behind.sortKey(), p.sort) {
				break
			}
			p.behind.step()
		}
		p.end = p.behind.num
	}
	p.orderIsNull, p.orderValue = true, 0
	if len(o.order) > 0 {
		p.orderIsNull, p.orderValue = o.orderAt(p.row)
	}
	for k := range o.spec.Calls {
		if err := o.numberAt(p, k); err != nil {
			return err
		}
	}
	for _, f := range p.frames {
		if err := f.slide(o, p); err != nil {
			return err
		}
	}
	return nil
}

// numberAt appends call k for the row at hand, if it is no aggregate.
func (o *overFinal) numberAt(p *overPlace, k int) error {
	c, col, i := &o.spec.Calls[k], o.calls.Cols[k], p.row.num
	switch c.Func {
	case expr.OverRowNumber:
		col.AppendI64(i + 1)
	case expr.OverRank:
		col.AppendI64(p.first + 1)
	case expr.OverDenseRank:
		col.AppendI64(p.dense)
	case expr.OverPercentRank:
		col.AppendF64(float64(p.first) / float64(max(p.n-1, 1)))
	case expr.OverCumeDist:
		col.AppendF64(float64(p.end) / float64(p.n))
	case expr.OverNtile:
		col.AppendI64(ntile(i, p.n, c.Offset))
	case expr.OverLag:
		return p.shifted(c, p.leads[k], i-c.Offset, col)
	case expr.OverLead:
		return p.shifted(c, p.leads[k], i+c.Offset, col)
	}
	return nil
}

// shifted is as the function of that name, with row j under cursor at.
func (p *overPlace) shifted(c *expr.OverCall, at *overCursor, j int64, col *batch.ColBuilder) error {
	for j >= 0 && j < p.n {
		if ok, err := at.ok(); err != nil || !ok {
			return err
		}
		if at.num == j {
			col.AppendFrom(at.b.Cols[c.Agg.Arg], at.pos)
			return nil
		}
		at.step()
	}
	if c.Default >= 0 {
		col.AppendFrom(p.row.b.Cols[c.Default], p.row.pos)
	} else {
		col.AppendNull()
	}
	return nil
}

// orderAt is the value a RANGE frame measures, growing in the direction of the order.
func (o *overFinal) orderAt(c *overCursor) (null bool, x int64) {
	k := o.order[0]
	v := c.b.Cols[k.Col]
	if v.Type.Phys() != types.PhysI64 && !v.Type.IsTimestamp() || v.IsNull(c.pos) {
		return true, 0
	}
	return false, orderMillis(v, c.pos, k.Desc)
}

// before tells whether the row under cursor c is before the low end of the frame, or with end before its high end.
func (f *overFrames) before(o *overFinal, p *overPlace, c *overCursor, end bool) bool {
	d := f.frame.Lo
	if end {
		d = f.frame.Hi
	}
	switch {
	case d == expr.UnboundedPreceding:
		return false
	case d == expr.UnboundedFollowing:
		return true
	case f.frame.Rows && end:
		return c.num < p.row.num+d+1
	case f.frame.Rows:
		return c.num < p.row.num+d
	case end && (d == 0 || p.orderIsNull):
		return c.num < p.end
	case d == 0 || p.orderIsNull:
		return c.num < p.first
	}
	null, x := o.orderAt(c)
	if null {
		return c.num <= p.row.num
	}
	limit := frameEnd(p.orderValue, d)
	return x < limit || end && x == limit
}

// slide plans the steps to the frame of the row at hand, and a result.
func (f *overFrames) slide(o *overFinal, p *overPlace) error {
	for _, end := range []bool{true, false} {
		c := f.lo
		if end {
			c = f.hi
		}
		for end || c.num < f.hi.num {
			ok, err := c.ok()
			if err != nil {
				return err
			}
			if !ok || !f.before(o, p, c, end) {
				break
			}
			sign := int8(-1)
			if end {
				sign = 1
			}
			if err := f.planned(p, c, sign); err != nil {
				return err
			}
		}
	}
	if n := len(f.emits); n > 0 {
		f.emits[n-1]++
	} else {
		f.lead++
	}
	return nil
}

// planned plans a step with the row under c, and passes it.
func (f *overFrames) planned(p *overPlace, c *overCursor, sign int8) error {
	if f.plan.Full() {
		if err := f.run(p); err != nil {
			return err
		}
	}
	copyRow(f.plan, c.b, c.pos, types.Insert)
	f.signs, f.emits = append(f.signs, sign), append(f.emits, 0)
	c.step()
	return nil
}

// run does what is planned.
func (f *overFrames) run(p *overPlace) error {
	b := f.plan.Finish()
	f.keys.Reset()
	for range max(b.N, 1) {
		appendKey(&f.keys, p.key, p.hash)
	}
	if b.N > 0 {
		if err := f.core.probeSets(b, &f.keys); err != nil {
			return err
		}
	} else if err := f.core.probeLists(&f.keys); err != nil {
		return err
	}
	f.refs = resize(f.refs, f.keys.Len())
	if err := f.core.groups.Probe(&f.keys, f.refs); err != nil {
		return err
	}
	ref, _, err := f.core.groups.Insert(&f.keys, 0, newRow(f.core.fixed, f.core.tails))
	if err != nil {
		return err
	}
	if f.fresh {
		clearRow(f.core.groups.Mutable(ref), f.core.fixed, f.core.tails)
		f.fresh = false
	}
	if err := f.results(ref, f.lead); err != nil {
		return err
	}
	for k, sign := range f.signs {
		if sign == forgetRow {
			err = f.forget(b, k)
		} else {
			err = f.step(b, ref, k, int64(sign))
		}
		if err == nil {
			err = f.results(ref, f.emits[k])
		}
		if err != nil {
			return err
		}
	}
	for _, d := range f.core.distinct {
		d.sweep()
	}
	f.plan.Reset()
	f.signs, f.emits, f.lead = f.signs[:0], f.emits[:0], 0
	return f.core.doneLists()
}

// forgetRow is the sign of a row that leaves the sets of DISTINCT aggregates only.
const forgetRow = 0

// results appends the results n times.
func (f *overFrames) results(ref checkpoint.Ref, n int) error {
	if n == 0 {
		return nil
	}
	if err := f.core.resultsAt(f.core.groups.Value(ref), 0, f.res); err != nil {
		return err
	}
	for range n {
		for k, c := range f.cols {
			c.AppendDatum(f.res[k])
		}
	}
	return nil
}

// finish forgets the partition.
func (f *overFrames) finish(p *overPlace) error {
	for len(f.core.distinct) > 0 && f.lo.num < f.hi.num {
		if ok, err := f.lo.ok(); err != nil || !ok {
			return err
		}
		if err := f.planned(p, f.lo, forgetRow); err != nil {
			return err
		}
	}
	if err := f.run(p); err != nil {
		return err
	}
	ref, _, err := f.core.groups.Insert(&f.keys, 0, newRow(f.core.fixed, f.core.tails))
	if err != nil {
		return err
	}
	return f.core.remove(ref, p.key, p.hash)
}
