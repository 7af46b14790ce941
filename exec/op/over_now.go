package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// overNow is the OVER window by proctime whose rows leave as they come: with UNBOUNDED PRECEDING, and with a frame of
// rows.
type overNow struct {
	spec  OverSpec
	core  overCore
	run   overRun
	frame overFrame // bounded frames only
	enc   *exec.KeyEncoder
	keys  checkpoint.Keys
	state overState
	in    batch.Batch
	sub   []byte
	row   []byte
}

// Open implements exec.Operator.
func (o *overNow) Open(s exec.Subtask) error {
	o.enc = exec.NewKeyEncoder(o.spec.Partition)
	if err := o.state.restore(s.Restored()); err != nil {
		return err
	}
	bounded := !o.spec.Frame.Running()
	if err := o.core.open(s, &o.spec, bounded, o.spec.TTL); err != nil || !bounded {
		return err
	}
	o.run.open(o.spec.Input)
	return o.frame.open(s, o.spec.Input, o.spec.Frame, o.spec.TTL)
}

// Process implements exec.Operator.
func (o *overNow) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	o.enc.Encode(b, &o.keys)
	if o.frame.rows != nil {
		return o.slide(b, out)
	}
	if err := o.core.begin(b, &o.keys); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		r := b.Row(i)
		if err := o.core.step(b, i, r, 1); err != nil {
			return err
		}
		if err := o.core.results(i); err != nil {
			return err
		}
		if err := o.core.append(b, r, types.Insert); err != nil {
			return err
		}
		if err := o.core.flushFull(out); err != nil {
			return err
		}
	}
	if err := o.core.end(); err != nil {
		return err
	}
	return flush(o.core.out, out)
}

func (o *overNow) slide(b *batch.Batch, out exec.Emitter) error {
	if err := o.frame.begin(&o.core, &o.keys); err != nil {
		return err
	}
	for i := range o.keys.Ends {
		r, f := b.Row(i), o.frame.rows.at(i)
		key, hash := o.keys.Key(i), o.keys.Hashes[i]
		if _, err := o.frame.slide(&o.run, f, key, hash, 0); err != nil { // a row leaves at most
			return err
		}
		o.state.seq++
		o.sub = overSub(o.sub[:0], 0, o.state.seq)
		o.row = appendRow(o.row[:0], b, r)
		if err := f.put(o.sub, o.row); err != nil {
			return err
		}
		o.run.copied(b, r, key, hash, overStep{sign: 1, leave: 1})
	}
	if err := o.frame.rows.done(); err != nil {
		return err
	}
	return o.run.run(&o.core, out)
}

// OnWatermark implements exec.Operator; nothing depends on event time.
func (o *overNow) OnWatermark(exec.Watermark, exec.Emitter) error { return nil }

// NextTimer implements exec.ProcessingTimer.
func (o *overNow) NextTimer() (int64, bool) { return o.frame.idle.next() }

// OnTimer implements exec.ProcessingTimer.
func (o *overNow) OnTimer(now int64, _ exec.Emitter) error { return o.frame.idle.expire(now) }

// OnBarrier implements exec.Operator.
func (o *overNow) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return o.state.save(), nil
}

// Close implements exec.Operator.
func (o *overNow) Close() error { return nil }
