package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// overTime is the OVER window by rowtime, and by proctime with a bounded RANGE: rows wait in state until time has
// reached theirs, and leave in the order of time.
type overTime struct {
	spec    OverSpec
	core    overCore
	run     overRun
	frame   overFrame // bounded frames only
	bounded bool
	enc     *exec.KeyEncoder
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	waiting *multimap // partition → time and number → row
	timers  timers    // of waiting rows
	ends    timers    // when a partition with a bounded range can be forgotten
	due     checkpoint.Keys
	dueAt   []int64
	state   overState
	now     func() int64
	late    *exec.Counter
	sub     []byte
	row     []byte
	subs    []byte // of rows about to leave: 16 bytes each
	rows    []byte
	rowEnds []int
}

// Open implements exec.Operator.
func (o *overTime) Open(s exec.Subtask) error {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	o.late = s.Counter("late-dropped")
	o.now = s.Now
	o.bounded = !o.spec.Frame.Running()
	ttl := o.spec.TTL
	if o.bounded && !o.spec.Frame.Rows {
		ttl = 0 // a range has an end of its own
	}
	if err := o.core.open(s, &o.spec, o.bounded, ttl); err != nil {
		return err
	}
	o.run.open(o.spec.Input)
	var err error
	if o.waiting, err = openMultimap(s, "waiting", "over/1:"+rowFormat(o.spec.Input), 0); err != nil {
		return err
	}
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	if o.bounded {
		if err := o.openFrame(s, ttl); err != nil {
			return err
		}
	}
	return o.waiting.scan(func(key, sub, _ []byte) bool {
		o.timers.add(overSubTime(sub), key, checkpoint.HashKey(key))
		return true
	})
}

func (o *overTime) openFrame(s exec.Subtask, ttl int64) error {
	if err := o.frame.open(s, o.spec.Input, o.spec.Frame, ttl); err != nil {
		return err
	}
	if o.spec.Frame.Rows {
		return nil
	}
	return o.core.agg.groups.Scan(nil, func(key, row []byte) bool {
		o.ends.add(o.end(word(row, overTimeWord)), key, checkpoint.HashKey(key))
		return true
	})
}

// end is when a partition whose last row left at time at is forgotten: when half as much time again as the frame
// reaches back has passed, as in Flink.
func (o *overTime) end(at int64) int64 { return at - o.spec.Frame.Lo*3/2 + 1 }

// Process implements exec.Operator.
func (o *overTime) Process(_ int, b *batch.Batch, _ exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	o.enc.Encode(b, &o.keys)
	if err := o.waiting.probe(&o.keys); err != nil {
		return err
	}
	rowtime := o.spec.By == OverByRowtime
	if o.bounded && rowtime {
		o.refs = resize(o.refs, o.keys.Len())
		if err := o.core.agg.groups.Probe(&o.keys, o.refs); err != nil {
			return err
		}
	}
	now := int64(0)
	if !rowtime {
		now = max(o.now(), int64(o.state.watermark))
	}
	v := b.Cols[o.spec.Order.Col]
	for i := range o.keys.Ends {
		r, at := b.Row(i), now
		if rowtime {
			if v.IsNull(r) {
				return nullTime(r, o.spec.Input.Columns[o.spec.Order.Col].Name)
			}
			if at = millis(v, v.Idx(r)); o.isLate(i, at) {
				o.late.Add(1)
				continue
			}
		}
		o.state.seq++
		o.sub = overSub(o.sub[:0], at, o.state.seq)
		o.row = appendRow(o.row[:0], b, r)
		if err := o.waiting.at(i).put(o.sub, o.row); err != nil {
			return err
		}
		o.timers.add(at, o.keys.Key(i), o.keys.Hashes[i])
	}
	return o.waiting.done()
}

// isLate reports a row whose place has passed. Bounded frames take rows behind the watermark too, so long as no later
// row of their partition has left; a partition that none has left begins at the epoch.
func (o *overTime) isLate(i int, at int64) bool {
	if !o.bounded {
		return exec.Watermark(at) <= o.state.watermark
	}
	last := int64(0)
	if o.refs[i] != checkpoint.NoRow {
		last = word(o.core.agg.groups.Value(o.refs[i]), overTimeWord)
	}
	return at <= last
}

// OnWatermark implements exec.Operator.
func (o *overTime) OnWatermark(w exec.Watermark, out exec.Emitter) error {
	if o.spec.By == OverByProctime {
		if w != exec.MaxWatermark {
			return nil
		}
		return o.fire(int64(w), out) // the input has ended: nothing more will be of the last millisecond
	}
	if w <= o.state.watermark {
		return nil
	}
	o.state.watermark = w
	return o.fire(int64(w), out)
}

// NextTimer implements exec.ProcessingTimer: by proctime the rows of a millisecond leave when it is over.
func (o *overTime) NextTimer() (int64, bool) {
	if o.spec.By == OverByRowtime {
		return o.frame.idle.next()
	}
	at, ok := o.timers.next()
	end, some := o.ends.next()
	if !ok && !some {
		return 0, false
	}
	return min(at, end) + 1, true
}

// OnTimer implements exec.ProcessingTimer.
func (o *overTime) OnTimer(now int64, out exec.Emitter) error {
	if o.spec.By == OverByRowtime {
		return o.frame.idle.expire(now)
	}
	o.state.watermark = max(o.state.watermark, exec.Watermark(now))
	return o.fire(now-1, out)
}

// fire lets the rows up to time upTo leave.
func (o *overTime) fire(upTo int64, out exec.Emitter) error {
	for {
		o.due.Reset()
		if o.dueAt = o.timers.take(upTo, batch.Size, &o.due, o.dueAt[:0]); len(o.dueAt) == 0 {
			break
		}
		if err := o.waiting.probe(&o.due); err != nil {
			return err
		}
		if o.bounded {
			if err := o.frame.begin(&o.core, &o.due); err != nil {
				return err
			}
		}
		for i, at := range o.dueAt {
			if err := o.plan(i, at); err != nil {
				return err
			}
		}
		if err := o.finish(out); err != nil {
			return err
		}
	}
	return o.forget(upTo, out)
}

// finish runs what is planned.
func (o *overTime) finish(out exec.Emitter) error {
	if err := o.waiting.done(); err != nil {
		return err
	}
	if o.bounded {
		if err := o.frame.rows.done(); err != nil {
			return err
		}
	}
	return o.run.run(&o.core, out)
}

// plan plans the steps of the rows of due partition i that have time at.
func (o *overTime) plan(i int, at int64) error {
	key, hash := o.due.Key(i), o.due.Hashes[i]
	w := o.waiting.at(i)
	n, err := o.collect(w, at)
	if err != nil || n == 0 {
		return err
	}
	if o.bounded {
		if err := o.enter(i, at); err != nil {
			return err
		}
	}
	start := 0
	for k := range n {
		sub, row := o.subs[16*k:16*k+16], o.rows[start:o.rowEnds[k]]
		start = o.rowEnds[k]
		if _, err := w.remove(sub); err != nil {
			return err
		}
		if o.bounded {
			f := o.frame.rows.at(i)
			if k == 0 || o.spec.Frame.Rows {
				if err := o.frame.slide(&o.run, f, key, hash, at); err != nil {
					return err
				}
			}
			if err := f.put(sub, row); err != nil {
				return err
			}
		}
		s := overStep{sign: 1, at: at}
		switch {
		case o.spec.Frame.Rows:
			s.leave = 1
		case k == n-1:
			s.leave = int32(n)
		}
		if err := o.run.stored(row, key, hash, s); err != nil {
			return err
		}
	}
	return nil
}

// enter gives due partition i an end, if it is new and has a bounded range.
func (o *overTime) enter(i int, at int64) error {
	if o.spec.Frame.Rows {
		return nil
	}
	held, err := o.frame.rows.at(i).len()
	if held == 0 {
		o.ends.add(o.end(at), o.due.Key(i), o.due.Hashes[i])
	}
	return err
}

// collect copies the rows of time at and their sub-keys.
func (o *overTime) collect(w bucket, at int64) (int, error) {
	o.subs, o.rows, o.rowEnds = o.subs[:0], o.rows[:0], o.rowEnds[:0]
	o.sub = overSub(o.sub[:0], at, 0)
	err := w.ascend(o.sub, func(sub, row []byte) bool {
		if overSubTime(sub) != at {
			return false
		}
		o.subs = append(o.subs, sub...)
		o.rows = append(o.rows, row...)
		o.rowEnds = append(o.rowEnds, len(o.rows))
		return true
	})
	return len(o.rowEnds), err
}

// forget drops partitions of a bounded range that no row can reach any more.
func (o *overTime) forget(upTo int64, out exec.Emitter) error {
	for {
		o.due.Reset()
		if o.dueAt = o.ends.take(upTo, batch.Size, &o.due, o.dueAt[:0]); len(o.dueAt) == 0 {
			return nil
		}
		o.refs = resize(o.refs, o.due.Len())
		if err := o.core.agg.groups.Probe(&o.due, o.refs); err != nil {
			return err
		}
		if err := o.frame.rows.probe(&o.due); err != nil {
			return err
		}
		for i, ref := range o.refs {
			if ref == checkpoint.NoRow {
				continue
			}
			if end := o.end(word(o.core.agg.groups.Value(ref), overTimeWord)); end > o.dueAt[i] {
				o.ends.add(end, o.due.Key(i), o.due.Hashes[i])
				continue
			}
			if err := o.frame.clear(&o.run, o.frame.rows.at(i), o.due.Key(i), o.due.Hashes[i]); err != nil {
				return err
			}
		}
		if err := o.finish(out); err != nil {
			return err
		}
	}
}

// OnBarrier implements exec.Operator.
func (o *overTime) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), nil
}

// Close implements exec.Operator.
func (o *overTime) Close() error { return nil }
