package op

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// DedupSpec describes a deduplication: of every Key the first or the last row in the order of a time attribute, of an
// append-only input.
type DedupSpec struct {
	Input            *types.Schema
	Key              []int
	Time             int  // rowtime column; -1: processing time, the order of arrival
	Last             bool // the last row; else the first
	EmitUpdateBefore bool
	// EachChange asks for a change for every row that becomes the last, as Flink sends them without mini-batches; a temporal
	// join reads them as versions. Else those of a key in a batch are one.
	EachChange bool
	TTL        int64 // ms, 0 = none
}

// NewDedup is Flink's Deduplicate. Rows must be exchanged by Key.
//
// By processing time the first row leaves at once and the rest is dropped; the last row is an update of the one before,
// and a row equal to it is silent unless state can expire. By event time the last row so far leaves at once and later
// ones, or as late ones, update it; the first row leaves, as +I, when the watermark has reached its time: then no earlier
// one can come. Rows that come later than that are dropped and counted.
func NewDedup(spec DedupSpec) func() exec.Operator {
	return func() exec.Operator {
		switch {
		case spec.Last:
			return &dedupLast{spec: spec}
		case spec.Time < 0:
			return &firstRank{rankCore: rankCore{spec: RankSpec{Input: spec.Input, Partition: spec.Key, From: 1, To: 1, ToColumn: -1,
				TTL: spec.TTL, Output: spec.Input}}}
		}
		return &dedupFirst{spec: spec}
	}
}

// dedupFirst keeps the earliest row of every key until the watermark has reached it, then only that it has left.
type dedupFirst struct {
	spec      DedupSpec
	waiting   checkpoint.Table // key → eight bytes of time, row; it has no TTL, as in Flink
	left      checkpoint.Table // keys whose row has left
	enc       *exec.KeyEncoder
	keys      checkpoint.Keys
	refs      []checkpoint.Ref
	leftRefs  []checkpoint.Ref
	gone      []checkpoint.Ref // waiting rows that have left
	timers    timers
	due       checkpoint.Keys
	dueAt     []int64
	row       []byte
	late      *exec.Counter
	watermark exec.Watermark
	out       *batch.Builder
}

// Open implements exec.Operator.
func (d *dedupFirst) Open(s exec.Subtask) (err error) {
	d.enc = exec.NewKeyEncoder(d.spec.Key)
	d.out = batch.NewBuilder(d.spec.Input)
	d.late = s.Counter("late-dropped")
	d.watermark = restoredWatermark(s.Restored())
	if d.waiting, err = s.Table(checkpoint.TableOptions{Name: "waiting", Format: "first-by-time/2:" + rowFormat(d.spec.Input)}); err != nil {
		return err
	}
	if d.left, err = s.Table(checkpoint.TableOptions{Name: "left", Format: "left/1", TTL: d.spec.TTL}); err != nil {
		return err
	}
	if err := d.timers.open(s, "timers"); err != nil {
		return err
	}
	var failed error
	err = d.waiting.Visit(func(key, v []byte) bool {
		failed = d.timers.addStored(word(v, 0), key)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

// Process implements exec.Operator.
func (d *dedupFirst) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	d.enc.Encode(b, &d.keys)
	d.refs = resize(d.refs, d.keys.Len())
	if err := d.waiting.Probe(&d.keys, d.refs); err != nil {
		return err
	}
	d.leftRefs = resize(d.leftRefs, d.keys.Len())
	if err := d.left.Probe(&d.keys, d.leftRefs); err != nil {
		return err
	}
	v := b.Cols[d.spec.Time]
	for i, ref := range d.refs {
		r := b.Row(i)
		if v.IsNull(r) {
			return nullTime(r, d.spec.Input.Columns[d.spec.Time].Name)
		}
		at := millis(v, v.Idx(r))
		if exec.Watermark(at) < d.watermark {
			d.late.Add(1)
			continue
		}
		if d.leftRefs[i] != checkpoint.NoRow {
			continue
		}
		created := false
		if ref == checkpoint.NoRow {
			var err error
			if ref, created, err = d.waiting.Insert(&d.keys, i, 0); err != nil {
				return err
			}
		}
		if !created && at >= word(d.waiting.Value(ref), 0) {
			continue
		}
		d.row = appendRow(binary.LittleEndian.AppendUint64(d.row[:0], uint64(at)), b, r)
		d.waiting.Set(ref, d.row)
		d.timers.add(at, d.keys.Key(i), d.keys.Hashes[i])
	}
	return d.timers.commit()
}

// OnWatermark implements exec.Operator: the rows whose time has come leave, the earliest first.
func (d *dedupFirst) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if w <= d.watermark {
		return nil
	}
	d.watermark = w
	for {
		d.due.Reset()
		var err error
		if d.dueAt, err = d.timers.take(int64(w), batch.Size, &d.due, d.dueAt[:0]); err != nil {
			return err
		}
		if d.due.Len() == 0 {
			return flush(d.out, out)
		}
		d.refs = resize(d.refs, d.due.Len())
		if err := d.waiting.Probe(&d.due, d.refs); err != nil {
			return err
		}
		d.leftRefs = resize(d.leftRefs, d.due.Len())
		if err := d.left.Probe(&d.due, d.leftRefs); err != nil {
			return err
		}
		for i, ref := range d.refs {
			if err := d.leave(i, ref, out); err != nil {
				return err
			}
		}
		for _, ref := range d.gone {
			d.waiting.Delete(ref)
		}
		d.gone = d.gone[:0]
	}
}

// leave emits the waiting row of due key i, unless an earlier one of the key has left.
func (d *dedupFirst) leave(i int, ref checkpoint.Ref, out exec.Emitter) error {
	if ref == checkpoint.NoRow {
		return nil
	}
	v := d.waiting.Value(ref)
	if word(v, 0) != d.dueAt[i] {
		return nil
	}
	if d.out.Full() {
		if err := flush(d.out, out); err != nil {
			return err
		}
	}
	if err := emitRow(d.out, v[8:], types.Insert); err != nil {
		return fmt.Errorf("deduplication state: %w", err)
	}
	setWord(d.waiting.Mutable(ref), 0, math.MinInt64) // it may be due more than once
	d.gone = append(d.gone, ref)
	_, _, err := d.left.Insert(&d.due, i, 0)
	return err
}

// OnBarrier implements exec.Operator: the watermark is state, so that a restore drops no row as late that was in time.
func (d *dedupFirst) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(d.watermark)), nil
}

// Close implements exec.Operator.
func (d *dedupFirst) Close() error { return nil }
