package op

import (
	"encoding/binary"

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
	Aggs             []expr.Agg
	InputMode        types.ChangelogMode
	EmitUpdateBefore bool          // downstream needs -U
	TTL              int64         // ms, 0 = none
	Output           *types.Schema // key columns, then aggregates
}

// NewGroupAggregate is the keyed, updating aggregation of Flink's GroupAggregate. Results are emitted once per key and
// input batch, as Flink does with mini-batch: the net change of the batch. Rows must be exchanged by the keys.
func NewGroupAggregate(spec GroupAggSpec) func() exec.Operator {
	return func() exec.Operator { return &groupAggregate{spec: spec} }
}

type groupAggregate struct {
	spec    GroupAggSpec
	core    aggCore
	enc     *exec.KeyEncoder
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	touched []touch
	old     []byte // previous row images, for -U and for finding unchanged results
	out     *batch.Builder
	oldRes  []types.Datum
	newRes  []types.Datum
}

// touch is a group changed by the current batch.
type touch struct {
	ref     checkpoint.Ref
	index   int // position among the batch's rows that count, of the first row of the group
	old     int // start of the previous image in groupAggregate.old
	oldLen  int
	existed bool // the group had rows before the batch
}

// Open implements exec.Operator.
func (g *groupAggregate) Open(s exec.Subtask) error {
	g.enc = exec.NewKeyEncoder(g.spec.Keys)
	g.out = batch.NewBuilder(g.spec.Output)
	g.oldRes = make([]types.Datum, len(g.spec.Aggs))
	g.newRes = make([]types.Datum, len(g.spec.Aggs))
	return g.core.open(s, coreSpec{
		aggs: g.spec.Aggs, retract: g.spec.InputMode != types.AppendOnly, ttl: g.spec.TTL, state: "groups",
	})
}

// Process implements exec.Operator.
func (g *groupAggregate) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	g.enc.Encode(b, &g.keys)
	g.refs = resize(g.refs, g.keys.Len())
	if err := g.core.groups.Probe(&g.keys, g.refs); err != nil {
		return err
	}
	g.touched, g.old = g.touched[:0], g.old[:0]
	if err := g.core.accumulate(b, &g.keys, g.refs, g); err != nil {
		return err
	}
	return g.emit(b, out)
}

// beforeChange implements toucher: it keeps the image of a row before its first change in the batch.
func (g *groupAggregate) beforeChange(i int, r checkpoint.Ref, row []byte) {
	if binary.LittleEndian.Uint32(row[rowTouch:]) != 0 {
		return
	}
	g.touched = append(g.touched, touch{ref: r, index: i, old: len(g.old), oldLen: len(row), existed: word(row, rowCount) > 0})
	g.old = append(g.old, row...)
	binary.LittleEndian.PutUint32(row[rowTouch:], uint32(len(g.touched)))
}

// beforeChanges implements toucher.
func (g *groupAggregate) beforeChanges(refs []checkpoint.Ref, rows [][]byte) {
	for i, row := range rows {
		g.beforeChange(i, refs[i], row)
	}
}

func (g *groupAggregate) emit(b *batch.Batch, out exec.Emitter) error {
	for _, t := range g.touched {
		row := g.core.groups.Mutable(t.ref)
		binary.LittleEndian.PutUint32(row[rowTouch:], 0)
		r := b.Row(t.index)
		exists := word(row, rowCount) > 0
		switch old := g.old[t.old : t.old+t.oldLen]; {
		case !t.existed && exists:
			g.core.results(row, g.newRes)
			g.append(b, r, types.Insert, g.newRes)
		case t.existed && !exists:
			g.core.results(old, g.oldRes)
			g.append(b, r, types.Delete, g.oldRes)
		case exists:
			g.core.results(old, g.oldRes)
			g.core.results(row, g.newRes)
			// Flink emits unchanged results only when state can expire, to keep the consumers' state alive.
			if g.spec.TTL == 0 && sameResults(g.oldRes, g.newRes) {
				break
			}
			if g.spec.EmitUpdateBefore {
				g.append(b, r, types.UpdateBefore, g.oldRes)
			}
			g.append(b, r, types.UpdateAfter, g.newRes)
		}
		if !exists {
			if err := g.core.remove(t.ref, g.keys.Key(t.index), g.keys.Hashes[t.index]); err != nil {
				return err
			}
		}
		// An update's two rows stay in one batch.
		if g.out.Len() >= batch.Size-1 {
			if err := flush(g.out, out); err != nil {
				return err
			}
		}
	}
	return flush(g.out, out)
}

func (g *groupAggregate) append(b *batch.Batch, r int, k types.RowKind, res []types.Datum) {
	for i, c := range g.spec.Keys {
		g.out.Cols[i].AppendFrom(b.Cols[c], r)
	}
	for i := range res {
		g.out.Cols[len(g.spec.Keys)+i].AppendDatum(res[i])
	}
	g.out.RowKindDone(k)
}

// OnWatermark implements exec.Operator; nothing depends on event time.
func (g *groupAggregate) OnWatermark(exec.Watermark, exec.Emitter) error { return nil }

// OnBarrier implements exec.Operator; all state is in tables.
func (g *groupAggregate) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) { return nil, nil }

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

func sameResults(a, b []types.Datum) bool {
	for i := range a {
		x, y := &a[i], &b[i]
		if x.IsNull != y.IsNull || x.I64 != y.I64 || x.Hi != y.Hi || x.Bool != y.Bool || x.Str != y.Str ||
			x.F64 != y.F64 && (x.F64 == x.F64 || y.F64 == y.F64) {
			return false
		}
	}
	return true
}

func resize[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}
