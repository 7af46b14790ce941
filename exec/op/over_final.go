package op

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"
	"strconv"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// NewOverFinal computes OVER windows of any order and with any frames at the end of a bounded input, which may have
// taken rows back: every row that is left leaves once. Of spec only Input, Partition, Calls and Output count. Rows wait
// in state; those of one partition are in memory while they leave, unless they are many (overLarge).
func NewOverFinal(spec OverSpec, order []SortKey) func() exec.Operator {
	return func() exec.Operator { return &overFinal{spec: spec, order: order} }
}

type overFinal struct {
	atEnd
	spec  OverSpec
	order []SortKey
	enc   *exec.KeyEncoder
	sort  *sortKeyEncoder
	keys  checkpoint.Keys
	rows  *multimap // partition → sort key and number → row
	state overState
	aggs  []*overSlide
	out   *batch.Builder
	work  *batch.Builder
	sub   []byte
	row   []byte
	found []byte
	sorts []byte // sort keys of the partition at hand
	ends  []int
	peers []int          // per row the first of its peers, then where they end
	calls *batch.Builder // a column per call
	names *runSorter     // the keys of the partitions, at the end
	large int            // rows of a partition that are read in parts
	one   checkpoint.Keys
}

// overFinalRows is how many rows of a partition are in memory.
const overFinalRows = 16 * batch.Size

// Open implements exec.Operator.
func (o *overFinal) Open(s exec.Subtask) error {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	o.sort = newSortKeyEncoder(o.order, o.spec.Input)
	o.out, o.work = batch.NewBuilder(o.spec.Output), batch.NewBuilder(o.spec.Input)
	var err error
	if o.rows, err = openMultimap(s, "rows", "over-final/1:"+rowFormat(o.spec.Input), 0); err != nil {
		return err
	}
	if o.names, err = openRunSorter(s, "partitions", "keys"); err != nil {
		return err
	}
	o.large = overFinalRows
	o.calls = batch.NewBuilder(&types.Schema{Columns: o.spec.Output.Columns[o.spec.Input.Len():]})
	for k, c := range o.spec.Calls {
		if c.Func != expr.OverAgg {
			continue
		}
		i := slices.IndexFunc(o.aggs, func(a *overSlide) bool { return a.frame == c.Frame })
		if i < 0 {
			i = len(o.aggs)
			o.aggs = append(o.aggs, &overSlide{frame: c.Frame})
		}
		o.aggs[i].aggs = append(o.aggs[i].aggs, c.Agg)
		o.aggs[i].cols = append(o.aggs[i].cols, o.calls.Cols[k])
	}
	for i, a := range o.aggs {
		if err := a.open(s, i); err != nil {
			return err
		}
	}
	return o.state.restore(s.Restored())
}

// Process implements exec.Operator.
func (o *overFinal) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	o.enc.Encode(b, &o.keys)
	if err := o.rows.probe(&o.keys); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		r, w := b.Row(i), o.rows.at(i)
		o.sub = o.sort.appendTo(o.sub[:0], b, r)
		o.row = appendRow(o.row[:0], b, r)
		if b.Kind(r).IsRetract() {
			if err := o.retract(w); err != nil {
				return err
			}
			continue
		}
		o.state.seq++
		o.sub = binary.BigEndian.AppendUint64(o.sub, o.state.seq)
		if err := w.put(o.sub, o.row); err != nil {
			return err
		}
	}
	return o.rows.done()
}

// retract removes the first row equal to the one at hand.
func (o *overFinal) retract(w bucket) error {
	n, found := len(o.sub), false
	err := w.ascend(o.sub, func(sub, row []byte) bool {
		if len(sub) != n+8 || !bytes.Equal(sub[:n], o.sub) {
			return false
		}
		if found = bytes.Equal(row, o.row); found {
			o.found = append(o.found[:0], sub...)
		}
		return !found
	})
	if err != nil || !found {
		return err
	}
	_, err = w.remove(o.found)
	return err
}

// OnWatermark implements exec.Operator: the end of event time is the end of the input.
func (o *overFinal) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w != exec.MaxWatermark {
		return nil
	}
	if err := o.partitions(); err != nil {
		return err
	}
	o.keys.Reset()
	err := o.names.each(func(sub, _ []byte) error {
		key := sub[:len(sub)-8]
		if appendKey(&o.keys, key, checkpoint.HashKey(key)); o.keys.Len() < batch.Size {
			return nil
		}
		return o.leaveAll(out)
	})
	if err == nil {
		err = o.leaveAll(out)
	}
	if err != nil {
		return err
	}
	return flush(o.out, out)
}

// partitions sorts the keys in state.
func (o *overFinal) partitions() error {
	n, q := uint64(0), o.names
	var failed error
	err := o.rows.roots.Visit(func(key, row []byte) bool {
		if len(row) == 0 {
			return true
		}
		from := len(q.buf)
		n++
		q.buf = binary.BigEndian.AppendUint64(append(q.buf, key...), n)
		failed = q.added(from, len(q.buf))
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// leaveAll lets the partitions collected leave.
func (o *overFinal) leaveAll(out exec.Emitter) error {
	if err := o.rows.probe(&o.keys); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		n, err := o.rows.at(i).len()
		if err != nil {
			return err
		}
		if n <= o.large {
			err = o.leave(i, out)
		} else {
			err = o.leaveLarge(i, n, out)
		}
		if err != nil {
			return err
		}
	}
	o.keys.Reset()
	return o.rows.done()
}

// leave computes and emits partition i, and forgets it.
func (o *overFinal) leave(i int, out exec.Emitter) error {
	w := o.rows.at(i)
	b, err := o.load(w)
	if err != nil {
		return err
	}
	if err := w.clear(); err != nil {
		return err
	}
	o.calls.Reset()
	for k := range o.spec.Calls {
		o.number(b, &o.spec.Calls[k], o.calls.Cols[k])
	}
	for _, a := range o.aggs {
		if err := a.run(b, o.bounds(b, a.frame), o.keys.Key(i), o.keys.Hashes[i]); err != nil {
			return err
		}
	}
	return o.emit(b, out)
}

// emit emits the rows of b with the calls computed for them.
func (o *overFinal) emit(b *batch.Batch, out exec.Emitter) error {
	for range b.N {
		o.calls.RowDone()
	}
	width, calls := len(b.Cols), o.calls.Finish().Cols
	for r := range b.N {
		for c, v := range b.Cols {
			o.out.Cols[c].AppendFrom(v, r)
		}
		for k, c := range calls {
			o.out.Cols[width+k].AppendFrom(c, r)
		}
		o.out.RowDone()
		if o.out.Full() {
			if err := flush(o.out, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// load reads the rows of a partition in order, and finds their peers.
func (o *overFinal) load(w bucket) (*batch.Batch, error) {
	o.work.Reset()
	o.sorts, o.ends = o.sorts[:0], o.ends[:0]
	var failed error
	err := w.ascend(nil, func(sub, row []byte) bool {
		o.sorts = append(o.sorts, sub[:len(sub)-8]...)
		o.ends = append(o.ends, len(o.sorts))
		_, failed = exec.DecodeKey(row, o.work.Cols)
		o.work.RowDone()
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return nil, err
	}
	n := len(o.ends)
	o.peers = resize(o.peers, 2*n)
	for i := 0; i < n; {
		j := i + 1
		for j < n && bytes.Equal(o.sortKey(i), o.sortKey(j)) {
			j++
		}
		for k := i; k < j; k++ {
			o.peers[2*k], o.peers[2*k+1] = i, j
		}
		i = j
	}
	return o.work.Finish(), nil
}

func (o *overFinal) sortKey(i int) []byte {
	if i == 0 {
		return o.sorts[:o.ends[0]]
	}
	return o.sorts[o.ends[i-1]:o.ends[i]]
}

// number computes a call that is no aggregate.
func (o *overFinal) number(b *batch.Batch, c *expr.OverCall, col *batch.ColBuilder) {
	dense := int64(0)
	n := int64(b.N)
	for i := range b.N {
		first := o.peers[2*i]
		if first == i {
			dense++
		}
		switch c.Func {
		case expr.OverRowNumber:
			col.AppendI64(int64(i) + 1)
		case expr.OverRank:
			col.AppendI64(int64(first) + 1)
		case expr.OverDenseRank:
			col.AppendI64(dense)
		case expr.OverPercentRank:
			col.AppendF64(float64(first) / float64(max(n-1, 1)))
		case expr.OverCumeDist:
			col.AppendF64(float64(o.peers[2*i+1]) / float64(n))
		case expr.OverNtile:
			col.AppendI64(ntile(int64(i), n, c.Offset))
		case expr.OverLag:
			shifted(b, c, i, int64(i)-c.Offset, col)
		case expr.OverLead:
			shifted(b, c, i, int64(i)+c.Offset, col)
		}
	}
}

// ntile is the bucket, from 1, of row i of n in k buckets whose sizes differ by one at most, larger ones first.
func ntile(i, n, k int64) int64 {
	size, larger := n/k, n%k
	if i < larger*(size+1) {
		return i/(size+1) + 1
	}
	return larger + (i-larger*(size+1))/size + 1
}

// shifted appends the argument at row j, or the default of row i where there is no row j.
func shifted(b *batch.Batch, c *expr.OverCall, i int, j int64, col *batch.ColBuilder) {
	switch {
	case j >= 0 && j < int64(b.N):
		col.AppendFrom(b.Cols[c.Agg.Arg], int(j))
	case c.Default >= 0:
		col.AppendFrom(b.Cols[c.Default], i)
	default:
		col.AppendNull()
	}
}

// bounds gives the frame of row i as rows lo to hi, hi not included. Both ends only go forward with i.
func (o *overFinal) bounds(b *batch.Batch, f expr.Frame) func(i int) (lo, hi int) {
	n := b.N
	rows := func(i int, d int64) int { return int(min(max(int64(i)+d, 0), int64(n))) }
	low := func(i int) int { return rows(i, f.Lo) }
	high := func(i int) int { return rows(i, f.Hi+1) }
	if !f.Rows {
		low = o.reach(b, f.Lo, false)
		high = o.reach(b, f.Hi, true)
	}
	if f.Lo == expr.UnboundedPreceding {
		low = func(int) int { return 0 }
	}
	if f.Hi == expr.UnboundedFollowing {
		high = func(int) int { return n }
	}
	return func(i int) (int, int) { return low(i), high(i) }
}

// reach is one end of a RANGE frame: the first row at distance d or more from row i in the direction of the order, or
// with end the first behind that distance. Rows without a value only reach each other.
func (o *overFinal) reach(b *batch.Batch, d int64, end bool) func(i int) int {
	if d == 0 || d == expr.UnboundedPreceding || d == expr.UnboundedFollowing {
		side := 0
		if end {
			side = 1
		}
		return func(i int) int { return o.peers[2*i+side] }
	}
	k := o.order[0]
	v := b.Cols[k.Col]
	at := func(i int) int64 { return orderMillis(v, i, k.Desc) }
	j := 0
	return func(i int) int {
		if v.IsNull(i) {
			if end {
				return o.peers[2*i+1]
			}
			return o.peers[2*i]
		}
		limit := frameEnd(at(i), d)
		for ; j < b.N; j++ {
			if v.IsNull(j) {
				if j > i {
					break // NULLS LAST
				}
				continue
			}
			if x := at(j); x > limit || x == limit && !end {
				break
			}
		}
		return j
	}
}

// frameEnd is the value at distance d of x, or the nearest number there is: no value lies beyond it.
func frameEnd(x, d int64) int64 {
	switch y := x + d; {
	case d < 0 && y > x:
		return math.MinInt64
	case d > 0 && y < x:
		return math.MaxInt64
	default:
		return y
	}
}

// orderMillis is the value at row i of an order column as a RANGE frame measures it: distances count, not values.
func orderMillis(v *batch.Vec, i int, desc bool) int64 {
	var x int64
	switch {
	case v.Type.IsTimestamp():
		x = millis(v, v.Idx(i))
	case v.Type.Kind == types.Date:
		x = v.I64[v.Idx(i)] * 86_400_000
	default:
		x = v.I64[v.Idx(i)]
	}
	if desc {
		return ^x // -x-1: every number has one, the lowest too
	}
	return x
}

// OnBarrier implements exec.Operator.
func (o *overFinal) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), nil
}

// Close implements exec.Operator.
func (o *overFinal) Close() error { return nil }

// overSlide computes the aggregates of one frame over the rows of a partition: rows enter at its end and leave at its
// beginning.
type overSlide struct {
	frame expr.Frame
	aggs  []expr.Agg
	cols  []*batch.ColBuilder // of the results
	core  aggCore
	keys  checkpoint.Keys
	res   []types.Datum
}

func (a *overSlide) open(s exec.Subtask, i int) error {
	a.res = make([]types.Datum, len(a.aggs))
	return a.core.open(s, coreSpec{aggs: a.aggs, retract: a.frame.Lo != expr.UnboundedPreceding, state: "slide." + strconv.Itoa(i)})
}

// run computes the results for every row of b, one partition with the given key.
func (a *overSlide) run(b *batch.Batch, bounds func(i int) (lo, hi int), key []byte, hash uint64) error {
	a.keys.Reset()
	for range b.N {
		appendKey(&a.keys, key, hash)
	}
	if err := a.core.probeSets(b, &a.keys); err != nil {
		return err
	}
	refs := make([]checkpoint.Ref, b.N)
	if err := a.core.groups.Probe(&a.keys, refs); err != nil {
		return err
	}
	ref, _, err := a.core.groups.Insert(&a.keys, 0, newRow(a.core.fixed, a.core.tails))
	if err != nil {
		return err
	}
	clearRow(a.core.groups.Mutable(ref), a.core.fixed, a.core.tails)
	lo, hi := 0, 0
	for i := range b.N {
		from, to := bounds(i)
		for ; hi < to; hi++ {
			if err := a.step(b, ref, hi, 1); err != nil {
				return err
			}
		}
		for ; lo < min(from, hi); lo++ {
			if err := a.step(b, ref, lo, -1); err != nil {
				return err
			}
		}
		if err := a.core.resultsAt(a.core.groups.Value(ref), 0, a.res); err != nil {
			return err
		}
		for k, c := range a.cols {
			c.AppendDatum(a.res[k])
		}
	}
	for ; lo < hi; lo++ {
		if err := a.forget(b, lo); err != nil {
			return err
		}
	}
	for _, d := range a.core.distinct {
		d.sweep()
	}
	return a.core.remove(ref, key, hash)
}

func (a *overSlide) step(b *batch.Batch, ref checkpoint.Ref, r int, sign int64) error {
	row := a.core.groups.Mutable(ref)
	n := word(row, rowCount) + sign
	setWord(row, rowCount, n)
	if err := a.core.accumulateRow(b, &a.keys, ref, r, r, sign); err != nil {
		return err
	}
	if n == 0 {
		return a.core.reset(ref, &a.keys, r)
	}
	return nil
}

// forget takes row r out of the sets of DISTINCT aggregates.
func (a *overSlide) forget(b *batch.Batch, r int) error {
	for k := range a.core.accs {
		if c := &a.core.accs[k]; c.distinct >= 0 && c.wants(b, r) {
			if _, err := a.core.distinct[c.distinct].count(c.slot, r, -1); err != nil {
				return err
			}
		}
	}
	return nil
}
