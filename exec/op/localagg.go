package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// LocalAggSpec describes the local half of a two-phase aggregation over append-only rows, for functions that are
// Combinable.
type LocalAggSpec struct {
	Input   *types.Schema
	Keys    []int
	Aggs    []expr.Agg
	Window  *Window      // nil: GROUP BY without a window; neither Session nor Proctime
	Session expr.Session // zone of TIMESTAMP_LTZ windows
	Mini    MiniBatch    // without a window: when rows leave
	Output  *types.Schema
}

// PartialType is the type of the column that the local half of an aggregation appends to its input: the accumulators of
// the rows that were combined, NULL for a row that is passed on as it came.
var PartialType = types.BytesType

// Combinable reports that rows of a group can be accumulated apart and the accumulators added up, in any order: two
// phases need it.
func Combinable(aggs []expr.Agg) bool {
	accs, _, tails := layout(aggs)
	for k := range accs {
		a := &accs[k]
		if !a.mergeable() || a.Distinct && a.Kind != expr.AggMin && a.Kind != expr.AggMax {
			return false
		}
	}
	return tails == 0
}

// localRows and localBytes bound what the local half holds before it sends it on.
const (
	localRows  = 16 << 10
	localBytes = 4 << 20
)

// NewLocalAggregate is the local half of a two-phase aggregation (Flink's LocalWindowAggregate, LocalGroupAggregate):
// before the exchange it combines the rows of a group (with a window: of a group and slice) into one row. That row has
// the group's key, with a window a time of the slice, NULL in the other columns, and in the last the accumulators.
//
// It keeps nothing across a barrier, so it needs no state. Where rows hardly combine it passes them on as they are for a
// while: that costs next to nothing, and the other half takes both.
func NewLocalAggregate(spec LocalAggSpec) func() exec.Operator {
	return func() exec.Operator { return &localAggregate{spec: spec} }
}

type localAggregate struct {
	spec    LocalAggSpec
	subtask exec.Subtask
	core    aggCore // for its accumulators; it has no tables
	enc     *exec.KeyEncoder
	clock   windowClock

	keys  checkpoint.Keys
	key   []byte // end of the slice, then the group's key, attached also the window's start
	held  mergeTable
	at    []int32 // row of held, per row of the batch
	rows  [][]byte
	kept  []keptColumn
	first *batch.Builder // of the kept columns
	texts []byte         // of the kept columns with strings, row by row
	ends  []int32
	out   batch.Batch
	raw   batch.Batch
	part  *batch.Vec // accumulators, in out
	none  *batch.Vec // NULL, in place of part
	sel   []int32

	watermark exec.Watermark
	slice     localSlice
	next      exec.Watermark // when the first held slice may be part of a window that ends
	behind    bool           // rows of slices that event time has passed are held
	absorbed  int            // rows in held
	tried     int            // rows and
	left      int            // held rows since the last judgement
	skip      int            // rows to pass on before combining is tried again
	due       int64
}

// keptColumn is a column that a combined row takes from the first of its rows.
type keptColumn struct {
	col *batch.ColBuilder // of localAggregate.first
	in  int               // in the input
	str bool              // its text is in localAggregate.texts until rows leave
}

// localSlice is where event time stands for the slice of the last row.
type localSlice struct {
	known  bool
	end    int64
	fires  exec.Watermark // of the first window it is in
	behind bool
}

// Open implements exec.Operator.
func (l *localAggregate) Open(s exec.Subtask) error {
	l.subtask = s
	l.enc = exec.NewKeyEncoder(l.spec.Keys)
	l.core.accs, l.core.fixed, _ = layout(l.spec.Aggs)
	l.held.size = l.core.fixed
	l.watermark, l.next = exec.NoWatermark, exec.MaxWatermark
	keep := slices.Clone(l.spec.Keys)
	if w := l.spec.Window; w != nil {
		l.clock = newWindowClock(*w, l.spec.Input, l.spec.Session)
		if w.Kind == Attached {
			keep = append(keep, w.Start, w.End)
		} else {
			keep = append(keep, w.Time)
		}
	}
	slices.Sort(keep)
	for _, c := range l.spec.Input.Columns {
		l.out.Cols = append(l.out.Cols, batch.NewConst(c.Type, types.NullDatum))
	}
	first := &types.Schema{}
	for _, c := range slices.Compact(keep) {
		first.Columns = append(first.Columns, l.spec.Input.Columns[c])
		l.kept = append(l.kept, keptColumn{in: c, str: l.spec.Input.Columns[c].Type.Phys() == types.PhysStr})
	}
	l.first = batch.NewBuilder(first)
	for i := range l.kept {
		l.kept[i].col = l.first.Cols[i]
	}
	l.part, l.none = &batch.Vec{Type: PartialType}, batch.NewConst(PartialType, types.NullDatum)
	l.out.Cols = append(l.out.Cols, l.part)
	return nil
}

// Process implements exec.Operator.
func (l *localAggregate) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	n := b.Len()
	if n == 0 {
		return nil
	}
	if l.skip > 0 {
		l.skip -= n
		return l.pass(b, out)
	}
	if l.absorbed == 0 {
		l.due = l.subtask.Now() + l.spec.Mini.Latency
	}
	l.enc.Encode(b, &l.keys)
	l.at = resize(l.at, n)
	for i := range l.at {
		if err := l.find(b, i); err != nil {
			return err
		}
	}
	l.rows = resize(l.rows, n)
	for i, k := range l.at {
		row := l.held.at(k)
		setWord(row, rowCount, word(row, rowCount)+1)
		l.rows[i] = row
	}
	for k := range l.core.accs {
		if err := l.core.column(&l.core.accs[k], b, l.rows); err != nil {
			return err
		}
	}
	l.absorbed += n
	switch mini := l.spec.Mini.Size; {
	case l.behind, mini > 0 && l.absorbed >= mini, l.held.len() >= localRows, len(l.held.rows)+len(l.held.keys)+len(l.texts) >= localBytes:
		return l.send(out)
	}
	return nil
}

// find sets at[i] to the held row that row i of b belongs to.
func (l *localAggregate) find(b *batch.Batch, i int) error {
	r, hash := b.Row(i), l.keys.Hashes[i]
	l.key = l.key[:0]
	if l.spec.Window != nil {
		if err := l.place(b, r); err != nil {
			return err
		}
		l.key = binary.LittleEndian.AppendUint64(l.key, uint64(l.slice.end))
		hash ^= uint64(l.slice.end) * 0x9e3779b97f4a7c15
	}
	l.key = append(l.key, l.keys.Key(i)...)
	if l.spec.Window != nil && l.spec.Window.Kind == Attached {
		l.key = exec.AppendColumn(l.key, b.Cols[l.spec.Window.Start], r)
	}
	k, isNew := l.held.find(hash, l.key)
	l.at[i] = k
	if !isNew {
		return nil
	}
	for _, c := range l.kept {
		v := b.Cols[c.in]
		if !c.str {
			c.col.AppendFrom(v, r)
			continue
		}
		// The batch's strings would keep its whole buffer alive.
		end := int32(-1)
		if !v.IsNull(r) {
			l.texts = append(l.texts, v.Str[v.Idx(r)]...)
			end = int32(len(l.texts))
		}
		l.ends = append(l.ends, end)
	}
	return nil
}

// place finds the slice of physical row r of b.
func (l *localAggregate) place(b *batch.Batch, r int) error {
	w := l.spec.Window
	c := w.Time
	if w.Kind == Attached {
		c = w.End
	}
	v := b.Cols[c]
	if v.IsNull(r) {
		return nullTime(r, l.spec.Input.Columns[c].Name)
	}
	end := millis(v, v.Idx(r))
	if w.Kind != Attached {
		end = l.clock.sliceEnd(l.clock.wall(end))
	}
	s := &l.slice
	if !s.known || end != s.end {
		*s = localSlice{known: true, end: end, fires: exec.Watermark(l.clock.fireTime(l.clock.first(end)))}
		s.behind = s.fires <= l.watermark
	}
	// Whether a row is late is decided behind the exchange: one that may be must not come there later than it would alone.
	l.behind = l.behind || s.behind
	l.next = min(l.next, s.fires)
	return nil
}

// pass sends b on as it is.
func (l *localAggregate) pass(b *batch.Batch, out exec.Emitter) error {
	l.raw = batch.Batch{N: b.N, Sel: b.Sel, Cols: append(append(l.raw.Cols[:0], b.Cols...), l.none)}
	return out.Emit(&l.raw)
}

// send sends what is held.
func (l *localAggregate) send(out exec.Emitter) error {
	n := l.held.len()
	if n == 0 {
		return nil
	}
	texts, from, at := string(l.texts), int32(0), 0
	rows := string(l.held.rows)
	for i := range n {
		for _, c := range l.kept {
			if !c.str {
				continue
			}
			end := l.ends[at]
			if at++; end < 0 {
				c.col.AppendNull()
				continue
			}
			c.col.AppendStr(texts[from:end])
			from = end
		}
		l.part.Str = append(l.part.Str, rows[i*l.held.size:(i+1)*l.held.size])
		l.first.RowDone()
	}
	for k, v := range l.first.Finish().Cols {
		l.out.Cols[l.kept[k].in] = v
	}
	l.out.N = n
	for lo := 0; lo < n; lo += batch.Size {
		l.sel = l.sel[:0]
		for i := lo; i < min(n, lo+batch.Size); i++ {
			l.sel = append(l.sel, int32(i))
		}
		l.out.Sel = l.sel
		if err := out.Emit(&l.out); err != nil {
			return err
		}
	}
	l.judge(n)
	l.forget()
	return nil
}

// judge decides whether combining paid: n rows are left of those absorbed. A row that nothing combines with costs more in
// two phases than in one.
func (l *localAggregate) judge(n int) {
	l.tried, l.left = l.tried+l.absorbed, l.left+n
	if l.tried < localRows {
		return
	}
	if 2*l.left > l.tried {
		l.skip = 32 * l.tried
	}
	l.tried, l.left = 0, 0
}

func (l *localAggregate) forget() {
	l.held.reset()
	l.first.Reset()
	clear(l.part.Str)
	l.part.Str = l.part.Str[:0]
	l.texts, l.ends, l.absorbed, l.behind, l.next = l.texts[:0], l.ends[:0], 0, false, exec.MaxWatermark
}

// OnWatermark implements exec.Operator: the rows of a window leave before the watermark that ends it.
func (l *localAggregate) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	l.watermark, l.slice.known = max(l.watermark, wm), false
	if l.spec.Window != nil && wm < l.next {
		return nil
	}
	return l.send(out)
}

// OnBarrier implements exec.Operator.
func (l *localAggregate) OnBarrier(_ checkpoint.Barrier, out exec.Emitter) ([]byte, error) {
	return nil, l.send(out)
}

// OnIdle implements exec.IdleHandler: while the subtask is idle, event time goes on without it.
func (l *localAggregate) OnIdle(out exec.Emitter) error { return l.send(out) }

// NextTimer implements exec.ProcessingTimer.
func (l *localAggregate) NextTimer() (int64, bool) {
	if l.spec.Mini.Size == 0 || l.absorbed == 0 {
		return math.MaxInt64, false
	}
	return l.due, true
}

// OnTimer implements exec.ProcessingTimer.
func (l *localAggregate) OnTimer(_ int64, out exec.Emitter) error { return l.send(out) }

// Close implements exec.Operator.
func (l *localAggregate) Close() error { return nil }

// partialRows tells the rows of a batch that a local aggregate has combined from those it has passed on.
type partialRows struct {
	raw, combined []int32
}

// split gives f the rows passed on, then those combined; their accumulators are in the last column.
func (p *partialRows) split(b *batch.Batch, f func(b *batch.Batch, combined bool) error) error {
	v := b.Cols[len(b.Cols)-1]
	if v.Valid == nil {
		return f(b, true)
	}
	p.raw, p.combined = p.raw[:0], p.combined[:0]
	for i, n := 0, b.Len(); i < n; i++ {
		if r := b.Row(i); v.IsNull(r) {
			p.raw = append(p.raw, int32(r))
		} else {
			p.combined = append(p.combined, int32(r))
		}
	}
	if len(p.combined) == 0 {
		return f(b, false)
	}
	part := *b
	if part.Sel = p.raw; len(p.raw) > 0 {
		if err := f(&part, false); err != nil {
			return err
		}
	}
	part.Sel = p.combined
	return f(&part, true)
}

// combine adds the accumulators in the last column of b to the groups. refs come from a Probe of keys and are completed.
func (c *aggCore) combine(b *batch.Batch, keys *checkpoint.Keys, refs []checkpoint.Ref, t toucher) error {
	if err := c.createGroups(keys, refs); err != nil {
		return err
	}
	c.rows = resize(c.rows, len(refs))
	c.groups.MutableRows(refs, c.rows)
	if t != nil {
		t.beforeChanges(refs, c.rows)
	}
	v := b.Cols[len(b.Cols)-1]
	for i, row := range c.rows {
		part := v.Str[v.Idx(b.Row(i))]
		if len(part) != c.fixed {
			return fmt.Errorf("a local aggregate sent %d bytes of accumulators instead of %d", len(part), c.fixed)
		}
		c.scratch = append(c.scratch[:0], part...)
		c.merge(row, c.scratch)
	}
	return nil
}

// partialCount is the number of rows that accumulators are of.
func partialCount(part string) int64 {
	var n [8]byte
	if len(part) >= rowFixed {
		copy(n[:], part[rowCount:])
	}
	return int64(binary.LittleEndian.Uint64(n[:]))
}
