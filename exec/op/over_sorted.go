package op

import (
	"bytes"
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// overSorted is the OVER window ordered by a column that is no time: a row can come anywhere in its partition, and be
// taken back, which changes the results of the rows behind it. A new row leaves with its own kind, one taken back
// leaves as -D; then each row behind it leaves as -U and +U, up to the first whose accumulators stay what they were.
// With RANGE so do the other rows of the same value, before a new one.
//
// State is every row with the accumulators up to and including it, so that a change costs the rows behind it. Only
// accumulators that are bytes of their row can be kept so: none with tables of their own.
type overSorted struct {
	spec  OverSpec
	core  overCore
	enc   *exec.KeyEncoder
	order *sortKeyEncoder
	keys  checkpoint.Keys
	state overState
	rows  *multimap // partition → order column and number → row, accumulators
	idle  retention
	ref   checkpoint.Ref // accumulators at work: a row that exists for a batch only
	empty []byte
	n     int // the key at hand

	sub, row, val []byte
	agg, fn       []byte // the accumulators reached
	work          *batch.Builder
	entries       overEntries
}

// overEntries are copies of rows in state.
type overEntries struct {
	buf  []byte
	list []overEntry
}

type overEntry struct{ sub, row, agg, fn []byte }

// Open implements exec.Operator.
func (o *overSorted) Open(s exec.Subtask) error {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	o.order = newSortKeyEncoder([]SortKey{o.spec.Order}, o.spec.Input)
	o.work = batch.NewBuilder(o.spec.Input)
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	if err := o.core.open(s, &o.spec, false, 0); err != nil {
		return err
	}
	if o.core.hasAggs {
		o.empty = make([]byte, newRow(o.core.agg.fixed, o.core.agg.tails))
		clearRow(o.empty, o.core.agg.fixed, o.core.agg.tails)
	}
	var err error
	format := rowFormat(o.spec.Input) + ";over/1"
	for _, c := range o.spec.Calls {
		format += ";" + c.Agg.Text
	}
	if o.rows, err = openMultimap(s, "rows", format, 0); err != nil {
		return err
	}
	return o.idle.open(s, o.rows, o.spec.TTL)
}

// Process implements exec.Operator.
func (o *overSorted) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	o.enc.Encode(b, &o.keys)
	if err := o.rows.probe(&o.keys); err != nil {
		return err
	}
	if err := o.idle.touch(&o.keys, func(int) error { return nil }); err != nil {
		return err
	}
	if err := o.openRegister(); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		o.n = i
		r := b.Row(i)
		o.row = appendRow(o.row[:0], b, r)
		o.sub = o.order.appendTo(o.sub[:0], b, r)
		var err error
		if k := b.Kind(r); k.IsRetract() {
			err = o.retract(out)
		} else {
			err = o.insert(k, out)
		}
		if err != nil {
			return err
		}
	}
	if o.core.hasAggs {
		o.core.agg.groups.Delete(o.ref)
	}
	if err := o.rows.done(); err != nil {
		return err
	}
	return flush(o.core.out, out)
}

func (o *overSorted) openRegister() error {
	if !o.core.hasAggs {
		return nil
	}
	g := o.core.agg.groups
	o.core.refs = resize(o.core.refs, o.keys.Len())
	if err := g.Probe(&o.keys, o.core.refs); err != nil {
		return err
	}
	var err error
	o.ref, _, err = g.Insert(&o.keys, 0, len(o.empty))
	return err
}

// insert takes the row at hand, whose order column is o.sub.
func (o *overSorted) insert(k types.RowKind, out exec.Emitter) error {
	o.state.seq++
	o.sub = binary.BigEndian.AppendUint64(o.sub, o.state.seq)
	w := o.rows.at(o.n)
	from := o.sub
	if !o.spec.Frame.Rows {
		from = o.sub[:len(o.sub)-8]
	}
	if err := o.before(w, from); err != nil {
		return err
	}
	o.val = appendBytes(o.val[:0], o.row)
	if err := w.put(o.sub, o.val); err != nil { // without accumulators: a new row
		return err
	}
	return o.replay(w, from, k, out)
}

// retract takes the first row equal to the one at hand back; an unknown one is ignored.
func (o *overSorted) retract(out exec.Emitter) error {
	w := o.rows.at(o.n)
	prefix := len(o.sub)
	found := false
	var failed error
	e := &o.entries
	e.reset()
	err := w.ascend(o.sub, func(sub, val []byte) bool {
		if len(sub) != prefix+8 || !bytes.Equal(sub[:prefix], o.sub) {
			return false
		}
		row, _, err := cutBytes(val)
		if failed = err; err != nil {
			return false
		}
		if found = bytes.Equal(row, o.row); found {
			failed = e.add(sub, val)
		}
		return !found
	})
	if err == nil {
		err = failed
	}
	if err != nil || !found {
		return err
	}
	old := e.list[0]
	if err := o.show(old, old.agg, old.fn, types.Delete); err != nil {
		return err
	}
	if err := o.core.flushFull(out); err != nil {
		return err
	}
	if _, err := w.remove(old.sub); err != nil {
		return err
	}
	from := append([]byte(nil), old.sub...)
	if !o.spec.Frame.Rows {
		from = from[:prefix]
	}
	if err := o.before(w, from); err != nil {
		return err
	}
	return o.replay(w, from, types.UpdateAfter, out)
}

// before sets the accumulators to those of the last row before sub-key from.
func (o *overSorted) before(w bucket, from []byte) error {
	o.agg, o.fn = append(o.agg[:0], o.empty...), o.fn[:0]
	var failed error
	err := w.descend(from, func(_, val []byte) bool {
		var e overEntry
		if e, failed = splitOverEntry(val); failed == nil {
			o.agg, o.fn = append(o.agg[:0], e.agg...), append(o.fn[:0], e.fn...)
		}
		return false
	})
	if err == nil {
		err = failed
	}
	return err
}

// show appends a row in state with the results of accumulators.
func (o *overSorted) show(e overEntry, agg, fn []byte, k types.RowKind) error {
	if err := o.core.resultsOf(agg, fn); err != nil {
		return err
	}
	if _, err := exec.DecodeKey(e.row, o.core.out.Cols[:o.core.input]); err != nil {
		o.core.out.Abandon()
		return err
	}
	if err := o.core.appendResults(); err != nil {
		return err
	}
	o.core.out.RowKindDone(k)
	return nil
}

// replayChunk bounds the rows read ahead by replay: the change of a row may end early.
const replayChunk = 64

// replay computes the accumulators of the rows from sub-key from on, given those before it, and shows what changes.
// kind is that of the new row among them.
func (o *overSorted) replay(w bucket, from []byte, kind types.RowKind, out exec.Emitter) error {
	for limit := replayChunk; ; limit = batch.Size {
		if err := o.collect(w, from, limit); err != nil {
			return err
		}
		list := o.entries.list
		if len(list) == 0 {
			return nil
		}
		b, err := o.decode(list)
		if err != nil {
			return err
		}
		for lo := 0; lo < len(list); {
			hi := lo + 1
			for !o.spec.Frame.Rows && hi < len(list) && samePeers(list[lo].sub, list[hi].sub) {
				hi++
			}
			same, err := o.accumulate(b, list, lo, hi)
			if err != nil || same {
				return err
			}
			if err := o.change(w, list[lo:hi], kind, out); err != nil {
				return err
			}
			lo = hi
		}
		from = append(append([]byte(nil), list[len(list)-1].sub...), 0)
	}
}

// samePeers reports sub-keys of equal order columns.
func samePeers(a, b []byte) bool { return bytes.Equal(a[:len(a)-8], b[:len(b)-8]) }

// collect copies up to limit rows from sub-key from on, and the rest of the last one's peers.
func (o *overSorted) collect(w bucket, from []byte, limit int) error {
	e := &o.entries
	e.reset()
	var failed error
	err := w.ascend(from, func(sub, val []byte) bool {
		if n := len(e.list); n >= limit && (o.spec.Frame.Rows || !samePeers(e.list[n-1].sub, sub)) {
			return false
		}
		failed = e.add(sub, val)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
}

func (o *overSorted) decode(list []overEntry) (*batch.Batch, error) {
	o.work.Reset()
	for _, e := range list {
		if _, err := exec.DecodeKey(e.row, o.work.Cols); err != nil {
			return nil, err
		}
		o.work.RowDone()
	}
	return o.work.Finish(), nil
}

// accumulate adds the rows lo to hi of the list, and reports whether they all had the accumulators that come out.
func (o *overSorted) accumulate(b *batch.Batch, list []overEntry, lo, hi int) (same bool, err error) {
	if o.core.hasAggs {
		o.core.agg.groups.Set(o.ref, o.agg)
		if o.core.agg.countsRows() { // otherwise accumulators are the same though rows came before them
			row := o.core.agg.groups.Mutable(o.ref)
			setWord(row, rowCount, word(row, rowCount)+int64(hi-lo))
		}
		for r := lo; r < hi; r++ {
			if err := o.core.agg.accumulateRow(b, &o.keys, o.ref, o.n, r, 1); err != nil {
				return false, err
			}
		}
		o.agg = append(o.agg[:0], o.core.agg.groups.Value(o.ref)...)
	}
	for r := lo; r < hi && len(o.core.fn.calls) > 0; r++ {
		next, err := o.core.fn.fold(o.fn, b, r)
		if err != nil {
			return false, err
		}
		o.fn = append(o.fn[:0], next...)
	}
	for _, e := range list[lo:hi] {
		if e.isNew() || !bytes.Equal(e.agg, o.agg) || !bytes.Equal(e.fn, o.fn) {
			return false, nil
		}
	}
	return true, nil
}

// change gives rows the accumulators reached: the new one, and those that had others, in their order.
func (o *overSorted) change(w bucket, list []overEntry, kind types.RowKind, out exec.Emitter) error {
	for _, e := range list {
		after := types.UpdateAfter
		switch {
		case e.isNew():
			after = kind
		case bytes.Equal(e.agg, o.agg) && bytes.Equal(e.fn, o.fn):
			continue
		}
		if err := o.core.flushFull(out); err != nil {
			return err
		}
		if o.spec.EmitUpdateBefore && !e.isNew() {
			if err := o.show(e, e.agg, e.fn, types.UpdateBefore); err != nil {
				return err
			}
		}
		if err := o.show(e, o.agg, o.fn, after); err != nil {
			return err
		}
		if err := o.keep(w, e); err != nil {
			return err
		}
	}
	return o.core.flushFull(out)
}

func (o *overSorted) keep(w bucket, e overEntry) error {
	o.val = appendBytes(o.val[:0], e.row)
	o.val = appendBytes(o.val, o.agg)
	o.val = append(o.val, o.fn...)
	return w.put(e.sub, o.val)
}

// OnWatermark implements exec.Operator; nothing depends on event time.
func (o *overSorted) OnWatermark(exec.Watermark, exec.Emitter) error { return nil }

// NextTimer implements exec.ProcessingTimer.
func (o *overSorted) NextTimer() (int64, bool) { return o.idle.next() }

// OnTimer implements exec.ProcessingTimer.
func (o *overSorted) OnTimer(now int64, _ exec.Emitter) error { return o.idle.expire(now) }

// OnBarrier implements exec.Operator.
func (o *overSorted) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), nil
}

// Close implements exec.Operator.
func (o *overSorted) Close() error { return nil }

func (e *overEntries) reset() { e.buf, e.list = e.buf[:0], e.list[:0] }

// add copies an entry. Growing buf leaves earlier copies where they are.
func (e *overEntries) add(sub, val []byte) error {
	if cap(e.buf)-len(e.buf) < len(sub)+len(val) {
		e.buf = make([]byte, 0, max(2*cap(e.buf), 4096, len(sub)+len(val)))
	}
	start := len(e.buf)
	e.buf = append(append(e.buf, sub...), val...)
	x, err := splitOverEntry(e.buf[start+len(sub) : len(e.buf) : len(e.buf)])
	x.sub = e.buf[start : start+len(sub) : start+len(sub)]
	e.list = append(e.list, x)
	return err
}

// isNew reports a row put a moment ago, which has no accumulators yet.
func (e overEntry) isNew() bool { return e.agg == nil && e.fn == nil }

func splitOverEntry(val []byte) (e overEntry, err error) {
	var rest []byte
	if e.row, rest, err = cutBytes(val); err != nil || len(rest) == 0 {
		return e, err
	}
	e.agg, e.fn, err = cutBytes(rest)
	return e, err
}
