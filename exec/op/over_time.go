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
	run     overRun   // bounded frames only
	frame   overFrame // bounded frames only
	bounded bool
	enc     *exec.KeyEncoder
	keys    checkpoint.Keys
	refs    []checkpoint.Ref
	waiting *waitLog
	ends    timers // when a partition with a bounded range can be forgotten
	due     checkpoint.Keys
	dueAt   []int64
	state   overState
	now     func() int64
	late    *exec.Counter
	times   []int64
	places  []int32
	sub     []byte
	row     []byte
	peers   []int32 // places of rows of one time
	groups  rowGroups
	res     batch.Batch
	out     exec.Emitter
	visit   waitVisitor
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
	var err error
	if o.waiting, err = openWaitLog(s, "waiting", o.spec.Input, true); err != nil {
		return err
	}
	o.waiting.peers = !o.spec.Frame.Rows
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	if o.visit = o.leaveRunning; !o.bounded {
		return nil
	}
	o.visit = o.leaveBounded
	o.run.open(o.spec.Input)
	return o.openFrame(s, ttl)
}

func (o *overTime) openFrame(s exec.Subtask, ttl int64) error {
	if err := o.frame.open(s, o.spec.Input, o.spec.Frame, ttl); err != nil {
		return err
	}
	if o.spec.Frame.Rows {
		return nil
	}
	if err := o.ends.open(s, "ends"); err != nil {
		return err
	}
	var failed error
	err := o.core.agg.groups.Visit(func(key, row []byte) bool {
		failed = o.ends.addStored(o.end(word(row, overTimeWord)), key)
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return err
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
	rowtime := o.spec.By == OverByRowtime
	var err error
	if !rowtime {
		o.times = resize(o.times, o.keys.Len())
		now := max(o.now(), int64(o.state.watermark))
		for i := range o.times {
			o.times[i] = now
		}
	} else if o.times, err = rowtimes(o.times, b, o.spec.Input, o.spec.Order.Col); err != nil {
		return err
	}
	if o.bounded && rowtime {
		o.refs = resize(o.refs, o.keys.Len())
		if err := o.core.agg.groups.Probe(&o.keys, o.refs); err != nil {
			return err
		}
	}
	o.places = o.places[:0]
	for i, at := range o.times {
		if rowtime && o.isLate(i, at) {
			o.late.Add(1)
			continue
		}
		o.places = append(o.places, int32(i))
	}
	return o.waiting.add(b, o.places, o.keys.Hashes, o.times, o.now())
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
	at, ok := o.waiting.next()
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

// OnBarrier implements exec.Operator.
func (o *overTime) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), o.waiting.save()
}

// Close implements exec.Operator.
func (o *overTime) Close() error { return nil }
