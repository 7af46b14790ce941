package op

import (
	"bytes"
	"fmt"
	"math"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// dedupLast keeps the last row of every key. A batch reads and writes the row of a key once.
type dedupLast struct {
	exec.Stateless
	spec    DedupSpec
	rows    checkpoint.Table
	enc     *exec.KeyEncoder
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	codec   *rowCodec
	changes rowChanges

	all    []int32 // places of all rows of a batch
	groups rowGroups
	times  []int64
	before []int32 // per row that leaves, the row of the batch it replaces or firstOfKey; else staysOut
	last   []int32 // rows to be stored
	encAt  []int32 // per row, where it is in coded
	coded  encodedRows
	sel    []int32
	kinds  []types.RowKind
	out    batch.Batch
}

const (
	firstOfKey int32 = -1 // it replaces what is in state
	staysOut   int32 = -2
)

// Open implements exec.Operator.
func (d *dedupLast) Open(s exec.Subtask) (err error) {
	d.enc, d.codec = exec.NewKeyEncoder(d.spec.Key), newRowCodec(d.spec.Input)
	d.changes = rowChanges{codec: d.codec, out: batch.NewBuilder(d.spec.Input)}
	d.rows, err = s.Table(checkpoint.TableOptions{Name: "rows", Format: "last/2:" + slottedFormat(d.spec.Input), TTL: d.spec.TTL})
	return err
}

// Process implements exec.Operator.
func (d *dedupLast) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	n := b.Len()
	if n == 0 {
		return nil
	}
	d.enc.Encode(b, &d.keys)
	d.refs = resize(d.refs, n)
	if err := d.rows.Probe(&d.keys, d.refs); err != nil {
		return err
	}
	for len(d.all) < n {
		d.all = append(d.all, int32(len(d.all)))
	}
	d.groups.find(&d.keys, d.all[:n])
	d.before, d.encAt, d.last = resize(d.before, n), resize(d.encAt, n), d.last[:0]
	var err error
	if d.spec.Time >= 0 {
		if d.times, err = rowtimes(d.times, b, d.spec.Input, d.spec.Time); err == nil {
			err = d.latest(b)
		}
	} else {
		d.newest(b)
	}
	if err == nil {
		err = d.emit(b, out)
	}
	if err == nil {
		err = d.store()
	}
	if err != nil {
		return fmt.Errorf("deduplication: %w", err)
	}
	return nil
}

// stored is the row in state of the key of row i, nil if there is none.
func (d *dedupLast) stored(i int32) []byte {
	if ref := d.refs[i]; ref != checkpoint.NoRow {
		return d.rows.Value(ref)
	}
	return nil
}

// latest finds the rows that leave by event time: those not earlier than the one before.
func (d *dedupLast) latest(b *batch.Batch) error {
	for _, g := range d.groups.rows {
		last, at := firstOfKey, int64(math.MinInt64)
		if row := d.stored(g.first); row != nil {
			var err error
			if at, err = d.codec.millis(row, d.spec.Time, d.spec.Input.Columns[d.spec.Time].Type); err != nil {
				return err
			}
		}
		for i := g.first; i >= 0; i = d.groups.next[i] {
			d.before[i] = staysOut
			if d.times[i] < at {
				continue
			}
			d.before[i], at = last, d.times[i]
			last = i
		}
		d.end(last)
	}
	d.encode(b)
	return nil
}

// end notes the last row of a key.
func (d *dedupLast) end(last int32) {
	if last < 0 {
		return
	}
	d.last = append(d.last, last)
	if d.spec.EachChange {
		return
	}
	for i := d.before[last]; i >= 0; {
		next := d.before[i]
		d.before[i] = staysOut
		i = next
	}
	d.before[last] = firstOfKey
}

// encode encodes the rows that are to be stored or, with their predecessors, to leave.
func (d *dedupLast) encode(b *batch.Batch) {
	some := *b
	d.sel = d.sel[:0]
	for i, before := range d.before {
		if before != staysOut {
			d.encAt[i] = int32(len(d.sel))
			d.sel = append(d.sel, int32(b.Row(i)))
		}
	}
	some.Sel = d.sel
	d.codec.encode(&some, &d.coded)
}

// newest finds the rows that leave in the order of arrival: those that differ from the one before, or all where state
// can expire.
func (d *dedupLast) newest(b *batch.Batch) {
	for i := range d.before {
		d.before[i] = firstOfKey
	}
	if !d.spec.EachChange {
		for _, g := range d.groups.rows {
			for i := g.first; i >= 0; i = d.groups.next[i] {
				d.before[i] = staysOut
			}
			d.before[g.last] = firstOfKey
		}
	}
	d.encode(b)
	for _, g := range d.groups.rows {
		last, row := firstOfKey, d.stored(g.first)
		for i := g.first; i >= 0; i = d.groups.next[i] {
			if d.before[i] == staysOut {
				continue
			}
			coded := d.coded.row(int(d.encAt[i]))
			if d.spec.TTL == 0 && bytes.Equal(row, coded) {
				d.before[i] = staysOut
				continue
			}
			d.before[i], row = last, coded
			last = i
		}
		d.end(last)
	}
}

// emit emits the changes in the order of the rows that make them.
func (d *dedupLast) emit(b *batch.Batch, out exec.Emitter) error {
	if !d.spec.EmitUpdateBefore {
		return d.pass(b, out)
	}
	for i, before := range d.before {
		if before == staysOut {
			continue
		}
		if err := d.changes.room(2, out); err != nil { // the two stay in one batch
			return err
		}
		old, kind := d.stored(int32(i)), types.UpdateAfter
		if before >= 0 {
			old = d.coded.row(int(d.encAt[before]))
		}
		if old == nil {
			kind = types.Insert
		} else {
			d.changes.add(old, types.UpdateBefore)
		}
		d.changes.add(d.coded.row(int(d.encAt[i])), kind)
	}
	return d.changes.flush(out)
}

// pass emits rows of b as they are.
func (d *dedupLast) pass(b *batch.Batch, out exec.Emitter) error {
	d.kinds, d.sel = resize(d.kinds, b.N), d.sel[:0]
	updates := false
	for i, before := range d.before {
		if before == staysOut {
			continue
		}
		r := b.Row(i)
		d.kinds[r] = types.Insert
		if before >= 0 || d.refs[i] != checkpoint.NoRow {
			d.kinds[r], updates = types.UpdateAfter, true
		}
		d.sel = append(d.sel, int32(r))
	}
	if len(d.sel) == 0 {
		return nil
	}
	d.out = batch.Batch{N: b.N, Sel: d.sel, Cols: b.Cols}
	if updates {
		d.out.Kinds = d.kinds
	}
	return out.Emit(&d.out)
}

// store writes the last rows of the keys.
func (d *dedupLast) store() error {
	for _, i := range d.last {
		row := d.coded.row(int(d.encAt[i]))
		if ref := d.refs[i]; ref != checkpoint.NoRow {
			d.rows.Set(ref, row)
			continue
		}
		ref, _, err := d.rows.Insert(&d.keys, int(i), len(row))
		if err != nil {
			return err
		}
		copy(d.rows.Mutable(ref), row)
	}
	return nil
}
