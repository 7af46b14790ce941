package op

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// GroupAggSpec describes a GROUP BY, a global aggregate (no keys) or SELECT DISTINCT (no aggregates).
type GroupAggSpec struct {
	Input            *types.Schema
	Keys             []int // key columns of the input
	Place            []int // those of Keys, in this order, that rows are exchanged and state lies by; nil = Keys
	Aggs             []expr.Agg
	InputMode        types.ChangelogMode
	EmitUpdateBefore bool          // downstream needs -U
	TTL              int64         // ms, 0 = none
	Output           *types.Schema // key columns, then aggregates
	Mini             MiniBatch
	// Partial tells that a local aggregate has appended a column of accumulators to the input (PartialType).
	Partial bool
}

// MiniBatch delays results until so many rows have come, so many milliseconds have passed since the first of them, a
// watermark or a barrier comes, or the input ends. Size 0: results leave with every batch.
type MiniBatch struct {
	Size    int
	Latency int64
}

// NewGroupAggregate is the keyed, updating aggregation of Flink's GroupAggregate. Results are emitted once per key and
// input batch, as Flink does with mini-batch: the net change of the batch. Rows must be exchanged by the keys, or by Place.
func NewGroupAggregate(spec GroupAggSpec) func() exec.Operator {
	return func() exec.Operator { return &groupAggregate{spec: spec} }
}

type groupAggregate struct {
	spec     GroupAggSpec
	subtask  exec.Subtask
	core     aggCore
	enc      *exec.KeyEncoder
	place    *exec.KeyEncoder // nil: state lies by the keys
	placed   checkpoint.Keys
	keys     checkpoint.Keys
	runs     keyRuns
	held     heldRows    // for its columns
	firsts   batch.Batch // of stretches
	refs     []checkpoint.Ref
	touched  []touch
	old      []byte      // previous row images, for -U and for finding unchanged results
	oldLists []listValue // previous values of the aggregates that are not in the rows
	newLists []listValue
	failed   error // of a callback
	rows     [][]byte
	changes  []aggChange
	images   [][]byte // of changes
	out      *batch.Builder
	partial  partialRows
	keyList  [][]byte // of changes, to decode
	columns  keyColumns

	// With mini-batch: the keys of the touched groups, the rows since the last results and when they are due.
	pending  checkpoint.Keys
	part     checkpoint.Keys
	buffered int
	due      int64
}

// touch is a group changed since the last results.
type touch struct {
	ref     checkpoint.Ref
	index   int  // its key, in the keys of the batch or, with mini-batch, in pending
	old     int  // start of the previous image in groupAggregate.old
	oldLen  int  //
	lists   int  // start of the previous values in groupAggregate.oldLists
	existed bool // the group had rows before
}

// listValue is the value of an aggregate that is not in the row; ok is false for NULL.
type listValue struct {
	s  string
	ok bool
}

// Open implements exec.Operator.
func (g *groupAggregate) Open(s exec.Subtask) error {
	g.subtask = s
	g.enc = exec.NewKeyEncoder(g.spec.Keys)
	g.runs.cols = g.spec.Keys
	g.out = batch.NewBuilder(g.spec.Output)
	layout := ""
	if g.spec.Place != nil {
		g.place = exec.NewKeyEncoder(g.spec.Place)
		layout = placedFormat
		for _, c := range g.spec.Place {
			layout += " " + strconv.Itoa(slices.Index(g.spec.Keys, c))
		}
	}
	return g.core.open(s, coreSpec{
		aggs: g.spec.Aggs, retract: g.spec.InputMode != types.AppendOnly, bits: true, ttl: g.spec.TTL, state: "groups", keys: layout,
	})
}

// Process implements exec.Operator.
func (g *groupAggregate) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	if !g.spec.Partial {
		return g.process(b, false, out)
	}
	return g.partial.split(b, func(b *batch.Batch, combined bool) error { return g.process(b, combined, out) })
}

// process takes rows of the input, or with combined accumulators.
func (g *groupAggregate) process(b *batch.Batch, combined bool, out exec.Emitter) error {
	n := b.Len()
	stretches := !combined && g.core.plain() && len(g.spec.Keys) > 0 && g.runs.find(b, nil)
	all := b
	if stretches {
		g.firsts = batch.Batch{N: b.N, Sel: g.runs.rows, Cols: b.Cols}
		b = &g.firsts
	}
	g.encode(b)
	g.refs = resize(g.refs, g.keys.Len())
	if err := g.core.groups.Probe(&g.keys, g.refs); err != nil {
		return err
	}
	var err error
	switch {
	case combined:
		err = g.core.combine(b, &g.keys, g.refs, g)
	case stretches:
		err = g.core.accumulateRuns(all, &g.keys, g.refs, &g.runs, &g.held, g)
	default:
		err = g.core.accumulate(b, &g.keys, g.refs, g)
	}
	if err == nil {
		err = g.failed
	}
	if err != nil {
		return err
	}
	if g.spec.Mini.Size == 0 {
		defer g.forget()
		return g.emit(g.touched, &g.keys, b, out)
	}
	if err := g.core.doneLists(); err != nil {
		return err
	}
	if g.buffered == 0 {
		g.due = g.subtask.Now() + g.spec.Mini.Latency
	}
	if g.buffered += n; g.buffered >= g.spec.Mini.Size {
		return g.emitPending(out)
	}
	return nil
}

// placedFormat follows aggFormat where state lies by some of the keys; behind it are their places among them.
const placedFormat = ";by"

// encode encodes the keys of b. A group lies in the key group of the columns of Place.
func (g *groupAggregate) encode(b *batch.Batch) {
	g.enc.Encode(b, &g.keys)
	if g.place == nil {
		return
	}
	hashes := g.keys.Hashes
	for i, h := range g.place.Hashes(b, &g.placed)[:len(hashes)] {
		hashes[i] = inGroupOf(h, hashes[i])
	}
}

func (g *groupAggregate) forget() {
	g.touched, g.old, g.buffered = g.touched[:0], g.old[:0], 0
	clear(g.oldLists)
	g.oldLists = g.oldLists[:0]
	g.pending.Reset()
}

// beforeChange implements toucher: it keeps the image of a row before its first change since the last results.
func (g *groupAggregate) beforeChange(i int, r checkpoint.Ref, row []byte) {
	if binary.LittleEndian.Uint32(row[rowTouch:]) != 0 {
		return
	}
	t := touch{ref: r, index: i, old: len(g.old), lists: len(g.oldLists), existed: word(row, rowCount) > 0}
	if t.existed {
		if len(g.core.listAccs) > 0 {
			g.keepLists(i)
		}
		t.oldLen, g.old = len(row), append(g.old, row...)
	}
	if g.spec.Mini.Size > 0 {
		t.index = g.pending.Len()
		g.pending.Buf = append(g.pending.Buf, g.keys.Key(i)...)
		g.pending.Ends = append(g.pending.Ends, int32(len(g.pending.Buf)))
		g.pending.Hashes = append(g.pending.Hashes, g.keys.Hashes[i])
	}
	g.touched = append(g.touched, t)
	binary.LittleEndian.PutUint32(row[rowTouch:], uint32(len(g.touched)))
}

// beforeChanges implements toucher.
func (g *groupAggregate) beforeChanges(refs []checkpoint.Ref, rows [][]byte) {
	for i, row := range rows {
		g.beforeChange(i, refs[i], row)
	}
}

// keepLists keeps the values of the group of key i that are not in its row.
func (g *groupAggregate) keepLists(i int) {
	var err error
	if g.oldLists, err = g.core.listValues(g.oldLists, i); err != nil && g.failed == nil {
		g.failed = err
	}
}

// emitPending emits the changes of a mini-batch.
func (g *groupAggregate) emitPending(out exec.Emitter) error {
	if g.buffered == 0 {
		return nil
	}
	for from := 0; from < len(g.touched); from += batch.Size {
		ts := g.touched[from:min(from+batch.Size, len(g.touched))]
		g.part.Reset()
		for i := range ts {
			k := ts[i].index
			g.part.Buf = append(g.part.Buf, g.pending.Key(k)...)
			g.part.Ends = append(g.part.Ends, int32(len(g.part.Buf)))
			g.part.Hashes = append(g.part.Hashes, g.pending.Hashes[k])
		}
		g.refs = resize(g.refs, g.part.Len())
		if err := g.core.groups.Probe(&g.part, g.refs); err != nil {
			return err
		}
		if err := g.core.probeLists(&g.part); err != nil {
			return err
		}
		live := ts[:0]
		for i, t := range ts {
			// A row that expired meanwhile is no group any more; one that came back has a touch of its own.
			if r := g.refs[i]; r != checkpoint.NoRow && binary.LittleEndian.Uint32(g.core.groups.Value(r)) == uint32(from+i+1) {
				t.ref, t.index = r, i
				live = append(live, t)
			}
		}
		if err := g.emit(live, &g.part, nil, out); err != nil {
			return err
		}
	}
	g.forget()
	return nil
}

// OnWatermark implements exec.Operator. Results do not depend on event time, but none stays behind a watermark.
func (g *groupAggregate) OnWatermark(_ exec.Watermark, out exec.Emitter) error {
	return g.emitPending(out)
}

// OnBarrier implements exec.Operator; all state is in tables.
func (g *groupAggregate) OnBarrier(_ checkpoint.Barrier, out exec.Emitter) ([]byte, error) {
	return nil, g.emitPending(out)
}

// NextTimer implements exec.ProcessingTimer.
func (g *groupAggregate) NextTimer() (int64, bool) { return g.due, g.buffered > 0 }

// OnTimer implements exec.ProcessingTimer.
func (g *groupAggregate) OnTimer(_ int64, out exec.Emitter) error { return g.emitPending(out) }

// Close implements exec.Operator.
func (g *groupAggregate) Close() error { return nil }

func flush(b *batch.Builder, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	err := out.Emit(b.Finish())
	b.Reset()
	return err
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
