package op

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"unsafe"

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
	Window  *Window      // nil: GROUP BY without a window; not Session
	Session expr.Session // zone of TIMESTAMP_LTZ windows
	Mini    MiniBatch    // without a window: when rows leave
	Output  *types.Schema
}

// PartialType is the type of the column that the local half of an aggregation appends to its input: the accumulators of
// the rows that were combined, NULL for a row that is passed on as it came.
var PartialType = types.BytesType

// Combinable reports that rows of a group can be accumulated apart and the accumulators added up, in any order: two
// phases need it. distinct: so can the values of COUNT(DISTINCT), which GROUP BY without a window does.
func Combinable(aggs []expr.Agg, distinct bool) bool {
	accs, _, tails := layout(aggs)
	for k := range accs {
		a := &accs[k]
		if !a.mergeable() || a.countsDistinct() && !(distinct && a.Kind == expr.AggCount) {
			return false
		}
	}
	return tails == 0
}

// countsDistinct reports that DISTINCT makes a difference to the aggregate.
func (a *accumulator) countsDistinct() bool {
	return a.Distinct && a.Kind != expr.AggMin && a.Kind != expr.AggMax
}

// localRows, localValues and localBytes bound what the local half holds before it sends it on; localSample are the rows by which it can tell
// that it need not hold so many.
const (
	localRows   = 16 << 10
	localSample = 2 << 10
	localValues = 64 << 10
	localBytes  = 4 << 20
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
	keys    *keyWords
	timed   bool // rows have slices
	clock   windowClock

	held  wordTable
	cells []int64 // ends of the slices of the batch's rows
	at    []int32 // row of held, per row of the batch or per stretch of it
	runs  keyRuns
	fresh []int32 // the batch's rows that are the first of theirs
	rows  heldRows
	sets  []*localDistinct
	kept  []keptColumn
	first *batch.Builder // of the kept columns
	out   batch.Batch
	raw   batch.Batch
	part  *batch.Vec // accumulators, in out
	parts []byte     // what part will be, one after another, and
	ends  []int32    // where each ends
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
	latency   int64          // ms that rows are held at most, 0 = until a watermark or barrier
	due       int64
}

// keptColumn is a column that a combined row takes from the first of its rows.
type keptColumn struct {
	col   *batch.ColBuilder // of localAggregate.first
	in    int               // in the input
	str   bool              // its texts are here until rows leave: the batch's strings would keep its whole buffer alive
	texts []byte
	ends  []int32 // -1 = NULL
}

// proctimeLatency is how long rows of a processing-time window are held back, in ms: they count for the window that they
// reach the other half in.
const proctimeLatency = 10

// localSlice is where event time stands for the slice of the last row.
type localSlice struct {
	known bool
	end   int64
	fires exec.Watermark // of the first window it is in
}

// Open implements exec.Operator.
func (l *localAggregate) Open(s exec.Subtask) error {
	l.subtask = s
	l.core.accs, l.core.fixed, _ = layout(l.spec.Aggs)
	for k := range l.core.accs {
		if a := &l.core.accs[k]; a.countsDistinct() {
			l.core.joinDistinct(a, true)
		}
	}
	for _, d := range l.core.distinct {
		l.sets = append(l.sets, newLocalDistinct(d, l.spec.Input, &l.core.masks))
	}
	l.watermark, l.next = exec.NoWatermark, exec.MaxWatermark
	l.latency = l.spec.Mini.Latency
	keep, keys := slices.Clone(l.spec.Keys), slices.Clone(l.spec.Keys)
	switch w := l.spec.Window; {
	case w == nil:
	case w.Proctime:
		l.latency = proctimeLatency
	case w.Kind == Attached:
		keep, keys = append(keep, w.Start, w.End), append(keys, w.Start)
	default:
		keep = append(keep, w.Time)
	}
	if w := l.spec.Window; w != nil && !w.Proctime {
		l.timed, l.clock = true, newWindowClock(*w, l.spec.Input, l.spec.Session)
	}
	l.keys = newKeyWords(l.spec.Input, keys, l.timed)
	l.keys.nulls = &l.core.masks
	l.runs.cols = keys
	l.held = wordTable{stride: l.keys.stride, size: l.core.fixed}
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
	if l.absorbed == 0 && l.latency > 0 {
		l.due = l.subtask.Now() + l.latency
	}
	l.core.masks.begin(b)
	if err := l.findRows(b); err != nil {
		return err
	}
	for k := range l.core.accs {
		if a := &l.core.accs[k]; !a.shared && !a.countsDistinct() {
			l.rows.column(a, b, l.held.size, l.core.masks.of(a))
		}
	}
	for _, set := range l.sets {
		set.add(b, l.at, l.core.masks.bitsOf(set.set.members))
	}
	l.absorbed += n
	if mini := l.spec.Mini.Size; l.behind || l.hopeless() || mini > 0 && l.absorbed >= mini || l.held.n >= localRows || l.values() >= localValues || l.bytes() >= localBytes {
		return l.send(out)
	}
	return nil
}

// bytes is what the rows held take.
func (l *localAggregate) bytes() int {
	n := len(l.held.rows) + 8*len(l.held.words) + l.keys.bytes()
	for i := range l.kept {
		n += len(l.kept[i].texts)
	}
	for _, set := range l.sets {
		n += set.bytes()
	}
	return n
}

// values is how many values of DISTINCT aggregates are held.
func (l *localAggregate) values() (n int) {
	for _, set := range l.sets {
		n += set.held.n
	}
	return n
}

// findRows sets at to the held rows that the rows of b belong to.
func (l *localAggregate) findRows(b *batch.Batch) error {
	var cells []int64
	if l.timed {
		l.cells = resize(l.cells, b.Len())
		if err := l.clock.sliceEnds(b, l.spec.Input, l.cells); err != nil {
			return err
		}
		for _, end := range l.cells {
			if !l.slice.known || end != l.slice.end {
				l.place(end)
			}
		}
		cells = l.cells
	}
	l.locate(b, cells)
	for i := range l.kept {
		c, v := &l.kept[i], b.Cols[l.kept[i].in]
		if !c.str {
			c.col.AppendRows(v, l.fresh)
			continue
		}
		for _, r := range l.fresh {
			end := int32(-1)
			if !v.IsNull(int(r)) {
				c.texts = append(c.texts, v.Str[v.Idx(int(r))]...)
				end = int32(len(c.texts))
			}
			c.ends = append(c.ends, end)
		}
	}
	return nil
}

// locate finds the rows of held that those of b belong to, the places of the first rows of new ones, and counts.
func (l *localAggregate) locate(b *batch.Batch, cells []int64) {
	if !l.runs.find(b, cells) {
		l.at = resize(l.at, b.Len())
		l.fresh = l.held.find(l.keys.encode(b, cells), l.at, l.fresh[:0])
		for i, k := range l.fresh {
			l.fresh[i] = int32(b.Row(int(k)))
		}
		l.rows.place(&l.held, l.at)
		return
	}
	starts := l.runs.starts
	firsts := batch.Batch{N: b.N, Sel: l.runs.rows, Cols: b.Cols}
	for i := range cells[:min(len(cells), len(starts))] {
		cells[i] = cells[starts[i]]
	}
	if cells != nil {
		cells = cells[:len(starts)]
	}
	l.at = resize(l.at, len(starts))
	l.held.runs = false
	l.fresh = l.held.find(l.keys.encode(&firsts, cells), l.at, l.fresh[:0])
	for i, k := range l.fresh {
		l.fresh[i] = l.runs.rows[k]
	}
	l.rows.placeRuns(&l.held, l.at, starts, b.Len())
	if len(l.sets) > 0 {
		l.at = stretch(l.at, starts, b.Len())
	}
}

// stretch gives each row what its stretch has, in the memory of at.
func stretch(at, starts []int32, n int) []int32 {
	m := len(at)
	at = slices.Grow(at, n-m)[:n]
	for k := m - 1; k >= 0; k-- { // a stretch never begins before the place of its number
		x := at[k]
		for i := int(starts[k]); i < n; i++ {
			at[i] = x
		}
		n = int(starts[k])
	}
	return at
}

// place finds where event time stands for the slice ending at end, which rows are held of.
func (l *localAggregate) place(end int64) {
	s := &l.slice
	*s = localSlice{known: true, end: end, fires: exec.Watermark(l.clock.fireTime(l.clock.first(end)))}
	// Whether a row is late is decided behind the exchange: one that may be must not come there later than it would alone.
	l.behind = l.behind || s.fires <= l.watermark
	l.next = min(l.next, s.fires)
}

// pass sends b on as it is.
func (l *localAggregate) pass(b *batch.Batch, out exec.Emitter) error {
	l.raw = batch.Batch{N: b.N, Sel: b.Sel, Cols: append(append(l.raw.Cols[:0], b.Cols...), l.none)}
	return out.Emit(&l.raw)
}

// send sends what is held.
func (l *localAggregate) send(out exec.Emitter) error {
	n := l.held.n
	if n == 0 {
		return nil
	}
	for i := range l.kept {
		if l.kept[i].str {
			l.kept[i].appendTexts()
		}
	}
	l.appendParts()
	l.first.RowsDone(n)
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
	l.judge((n+l.values())/(1+len(l.sets)), l.hopeless())
	l.forget()
	return nil
}

// appendParts fills the column of accumulators.
func (l *localAggregate) appendParts() {
	if len(l.sets) == 0 {
		for rows := string(l.held.rows); len(rows) > 0; rows = rows[l.held.size:] {
			l.part.Str = append(l.part.Str, rows[:l.held.size])
		}
		return
	}
	for _, set := range l.sets {
		set.sort(l.held.n)
	}
	l.parts, l.ends = l.parts[:0], l.ends[:0]
	for g := range l.held.n {
		l.parts = append(l.parts, l.held.at(int32(g))...)
		for _, set := range l.sets {
			l.parts = set.appendGroup(l.parts, g)
		}
		l.ends = append(l.ends, int32(len(l.parts)))
	}
	parts, from := string(l.parts), int32(0)
	for _, end := range l.ends {
		l.part.Str = append(l.part.Str, parts[from:end])
		from = end
	}
}

// appendTexts moves the texts to the column.
func (c *keptColumn) appendTexts() {
	texts, from := string(c.texts), int32(0)
	for _, end := range c.ends {
		if end < 0 {
			c.col.AppendNull()
			continue
		}
		c.col.AppendStr(texts[from:end])
		from = end
	}
	c.texts, c.ends = c.texts[:0], c.ends[:0]
}

// hopeless tells from the first rows that combining will not pay, so that not all of localRows need be tried: when so few of keys that
// come at random meet, there are too many of them for the others to meet much more often.
func (l *localAggregate) hopeless() bool {
	return l.tried == 0 && l.absorbed >= localSample && len(l.sets) == 0 && l.held.n >= l.absorbed-l.absorbed/16
}

// judge decides whether combining paid: n rows, or as many rows and values by set, are left of those absorbed. A row that nothing combines with costs more in
// two phases than in one.
func (l *localAggregate) judge(n int, hopeless bool) {
	l.tried, l.left = l.tried+l.absorbed, l.left+n
	if l.tried < localRows && !hopeless {
		return
	}
	if 2*l.left > l.tried {
		l.skip = 32 * l.tried
	}
	l.tried, l.left = 0, 0
}

func (l *localAggregate) forget() {
	l.held.reset()
	for _, set := range l.sets {
		set.forget()
	}
	l.first.Reset()
	clear(l.part.Str)
	l.part.Str = l.part.Str[:0]
	l.keys.forget()
	l.absorbed, l.behind, l.next = 0, false, exec.MaxWatermark
	l.slice.known = false
}

// OnWatermark implements exec.Operator: the rows of a window leave before the watermark that ends it.
func (l *localAggregate) OnWatermark(wm exec.Watermark, out exec.Emitter) error {
	l.watermark, l.slice.known = max(l.watermark, wm), false
	if l.timed && wm < l.next {
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
	if l.latency == 0 || l.absorbed == 0 {
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
	c.parts = c.parts[:0]
	for i, row := range c.rows {
		part := v.Str[v.Idx(b.Row(i))]
		if len(part) < c.fixed || len(c.distinct) == 0 && len(part) > c.fixed {
			return fmt.Errorf("a local aggregate sent %d bytes of accumulators instead of %d", len(part), c.fixed)
		}
		c.merge(row, unsafe.Slice(unsafe.StringData(part), c.fixed))
		if len(c.distinct) > 0 {
			c.parts = append(c.parts, part[c.fixed:])
		}
	}
	defer clear(c.parts) // they keep what all groups have sent
	return c.combineDistinct(c.parts, keys)
}

// partialCount is the number of rows that accumulators are of.
func partialCount(part string) int64 {
	var n [8]byte
	if len(part) >= rowFixed {
		copy(n[:], part[rowCount:])
	}
	return int64(binary.LittleEndian.Uint64(n[:]))
}
