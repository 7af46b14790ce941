package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// OverOrder is what the rows of an OVER window are ordered by.
type OverOrder uint8

// The orders.
const (
	OverByRowtime  OverOrder = iota // event time: a row leaves when the watermark has reached it
	OverByProctime                  // the wall clock: rows come in order
	OverByValue                     // any other column: a row changes the results of those behind it
)

// OverSpec describes the calls of one OVER window: one partition, one ascending order and one frame that ends at the
// current row, as Flink has them in streaming. NewOverFinal computes the others.
type OverSpec struct {
	Input     *types.Schema
	Partition []int
	Order     SortKey
	By        OverOrder
	Calls     []expr.OverCall
	Frame     expr.Frame
	// EmitUpdateBefore: a change of a row's results is -U and +U, not +U only. Of OverByValue.
	EmitUpdateBefore bool
	TTL              int64         // ms, 0 = none
	Output           *types.Schema // the input's columns, then the calls
}

// NewOver is Flink's OVER aggregation. Rows must be exchanged by Partition.
//
// By rowtime, rows wait for the watermark and leave in order of time as +I; rows that come too late are dropped and
// counted: with UNBOUNDED PRECEDING those not after the watermark, with a bounded frame those not after the last row
// of the partition that has left. By proctime rows leave at once, but for bounded RANGE, where those of one
// millisecond leave together after it. By value see overSorted.
//
// State is what the frames reach: accumulators per partition, the rows of bounded frames, and rows that wait. TTL
// drops accumulators and frames of partitions unused for so long; bounded RANGE drops its own by time.
func NewOver(spec OverSpec) func() exec.Operator {
	return func() exec.Operator {
		switch {
		case spec.By == OverByValue:
			return &overSorted{spec: spec}
		case spec.By == OverByProctime && (spec.Frame.Running() || spec.Frame.Rows):
			return &overNow{spec: spec}
		}
		return &overTime{spec: spec}
	}
}

// overCore computes the calls: aggregates on an aggCore, whose groups are the partitions, and the functions that only
// windows have.
type overCore struct {
	agg     aggCore
	hasAggs bool
	fn      overFuncs
	place   []int // per call: its aggregate, or ^ its function
	input   int   // columns of the input
	out     *batch.Builder
	res     []types.Datum
	keys    *checkpoint.Keys // of the batch at hand
	refs    []checkpoint.Ref
}

// overTimeWord is the word of an accumulator row that OVER windows use: the time of the last row that left the
// partition. Group aggregates keep their touch word there.
const overTimeWord = rowTouch

func (c *overCore) open(s exec.Subtask, spec *OverSpec, retract bool, ttl int64) error {
	c.input = spec.Input.Len()
	c.out = batch.NewBuilder(spec.Output)
	c.fn.order = spec.Order.Col
	var aggs []expr.Agg
	for _, call := range spec.Calls {
		if call.Func == expr.OverAgg {
			c.place = append(c.place, len(aggs))
			aggs = append(aggs, call.Agg)
		} else {
			c.place = append(c.place, ^c.fn.add(call))
		}
	}
	c.res = make([]types.Datum, len(aggs))
	c.hasAggs = len(aggs) > 0
	if c.hasAggs {
		if err := c.agg.open(s, coreSpec{aggs: aggs, retract: retract, ttl: ttl, state: "partitions"}); err != nil {
			return err
		}
	}
	return c.fn.open(s, ttl)
}

// begin looks up the partitions of the rows of b, which has no selection: row i belongs to key i.
func (c *overCore) begin(b *batch.Batch, keys *checkpoint.Keys) error {
	c.keys = keys
	if c.hasAggs {
		if err := c.agg.probeSets(b, keys); err != nil {
			return err
		}
		c.refs = resize(c.refs, keys.Len())
		if err := c.agg.groups.Probe(keys, c.refs); err != nil {
			return err
		}
	}
	return c.fn.begin(keys)
}

// step takes row i of b, physical row r, into its partition's accumulators (sign 1) or out of them (-1).
func (c *overCore) step(b *batch.Batch, i, r int, sign int64) error {
	if c.hasAggs {
		ref, ok, err := c.agg.group(c.keys, c.refs, i, sign)
		if err != nil || !ok {
			return err
		}
		row := c.agg.groups.Mutable(ref)
		n := word(row, rowCount) + sign
		setWord(row, rowCount, n)
		if err := c.agg.accumulateRow(b, c.keys, ref, i, r, sign); err != nil {
			return err
		}
		if n == 0 {
			if err := c.agg.reset(ref, c.keys, i); err != nil {
				return err
			}
		}
	}
	return c.fn.step(b, i, r)
}

// results computes the calls for the partition of row i.
func (c *overCore) results(i int) error {
	if c.hasAggs {
		if err := c.agg.resultsAt(c.agg.groups.Value(c.refs[i]), i, c.res); err != nil {
			return err
		}
	}
	return c.fn.results(i)
}

// resultsOf computes the calls for accumulators of the past.
func (c *overCore) resultsOf(agg, fn []byte) error {
	if c.hasAggs {
		c.agg.results(agg, c.res)
	}
	return c.fn.resultsOf(fn)
}

// append appends physical row r of b with the results computed last.
func (c *overCore) append(b *batch.Batch, r int, k types.RowKind) error {
	for i, v := range b.Cols {
		c.out.Cols[i].AppendFrom(v, r)
	}
	if err := c.appendResults(); err != nil {
		return err
	}
	c.out.RowKindDone(k)
	return nil
}

// flushFull sends what has been appended when it is a batch. An update needs two rows in one.
func (c *overCore) flushFull(out exec.Emitter) error {
	if c.out.Len() < batch.Size-1 {
		return nil
	}
	return flush(c.out, out)
}

func (c *overCore) appendResults() error {
	for k, p := range c.place {
		col := c.out.Cols[c.input+k]
		if p >= 0 {
			col.AppendDatum(c.res[p])
			continue
		}
		if err := c.fn.append(^p, col); err != nil {
			c.out.Abandon()
			return err
		}
	}
	return nil
}

// setTime notes the time of the last row that left the partition of row i.
func (c *overCore) setTime(i int, at int64) {
	if c.hasAggs {
		setWord(c.agg.groups.Mutable(c.refs[i]), overTimeWord, at)
	}
}

// end finishes a batch.
func (c *overCore) end() error {
	for _, d := range c.agg.distinct {
		d.sweep()
	}
	// Not only before the next probe: there may be a barrier in between, which moves rows.
	return c.agg.doneLists()
}

// drop forgets the partition of row i, whose rows are all taken out. It is key i of the last probe of the value lists.
func (c *overCore) drop(i int) error {
	if !c.hasAggs || c.refs[i] == checkpoint.NoRow {
		return nil
	}
	ref := c.refs[i]
	for k := range c.refs { // equal keys share a row, and it is gone for all of them
		if c.refs[k] == ref {
			c.refs[k] = checkpoint.NoRow
		}
	}
	if err := c.agg.removeAt(c.keys, i); err != nil {
		return err
	}
	c.agg.groups.Delete(ref)
	return nil
}

// overSub is the sub-key of a row: its time, so that rows are in its order, and a number that tells rows of one time
// apart, in order of arrival.
func overSub(dst []byte, at int64, seq uint64) []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(dst, uint64(at)^1<<63), seq)
}

func overSubTime(sub []byte) int64 { return int64(binary.BigEndian.Uint64(sub) ^ 1<<63) }

// overState is the small state of a subtask: its watermark, and the number of the last row. After a restore the numbers
// go on above those of all old subtasks.
type overState struct {
	watermark exec.Watermark
	seq       uint64
}

func (o *overState) restore(states [][]byte) error {
	o.watermark = exec.NoWatermark
	for i, s := range states {
		if len(s) != 16 {
			return diag.New(diag.Internal, diag.Pos{}, "the state of OVER in the checkpoint is damaged")
		}
		w := exec.Watermark(binary.BigEndian.Uint64(s))
		if i == 0 || w < o.watermark {
			o.watermark = w
		}
		o.seq = max(o.seq, binary.BigEndian.Uint64(s[8:]))
	}
	return nil
}

func (o *overState) save() []byte {
	return binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, uint64(o.watermark)), o.seq)
}

// nullTime is the error of a row without a value in its rowtime column.
func nullTime(row int, name string) error {
	return &expr.RowError{Row: row, Expr: name, Err: diag.New(diag.Data, diag.Pos{}, "the rowtime column %q is NULL", name).
		WithHint("filter such rows first, in a subquery with WHERE %s IS NOT NULL", name)}
}
