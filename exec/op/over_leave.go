package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// How the rows of an overTime leave: a batch of rows that waited, or of planned steps, at a time.

// fire lets the rows up to time upTo leave.
func (o *overTime) fire(upTo int64, out exec.Emitter) error {
	o.out = out
	if err := o.waiting.leave(upTo, o.visit); err != nil {
		return err
	}
	if !o.bounded || o.spec.Frame.Rows {
		return nil
	}
	if err := o.ends.commit(); err != nil {
		return err
	}
	return o.forget(upTo, out)
}

// leaveRunning lets rows leave whose frame is all before them.
func (o *overTime) leaveRunning(b *batch.Batch, times []int64) error {
	c := &o.core
	o.enc.Encode(b, &o.keys)
	if err := c.begin(b, &o.keys); err != nil {
		return err
	}
	for i, n := 0, b.N; i < n; {
		j := i + 1
		if !o.spec.Frame.Rows {
			for j < n && times[j] == times[i] {
				j++
			}
		}
		for k := i; k < j && o.waiting.phase != waitResults; k++ {
			if err := c.step(b, k, k, 1); err != nil {
				return err
			}
		}
		for k := i; k < j && o.waiting.phase != waitEnter; k++ {
			if err := c.results(k); err != nil {
				return err
			}
			if err := c.appendResults(); err != nil {
				return err
			}
		}
		i = j
	}
	if err := c.end(); err != nil || o.waiting.phase == waitEnter {
		return err
	}
	o.res.N = b.N
	o.res.Cols = append(append(o.res.Cols[:0], b.Cols...), c.out.Finish().Cols[c.input:]...)
	err := o.out.Emit(&o.res)
	c.out.Reset()
	return err
}

// leaveBounded lets rows leave with bounded frames.
func (o *overTime) leaveBounded(b *batch.Batch, times []int64) error {
	o.enc.Encode(b, &o.keys)
	if err := o.frame.begin(&o.core, &o.keys); err != nil {
		return err
	}
	for i, n := 0, b.N; i < n; {
		j := i + 1
		if !o.spec.Frame.Rows {
			for j < n && times[j] == times[i] {
				j++
			}
		}
		if err := o.planPeers(b, i, j, times[i]); err != nil {
			return err
		}
		i = j
	}
	return o.finish(o.out)
}

// planPeers plans the steps of rows i to before j, of time at; with a frame of rows it is one.
func (o *overTime) planPeers(b *batch.Batch, i, j int, at int64) error {
	if o.waiting.phase == waitResults {
		for ; i < j; i++ {
			o.run.copied(b, i, o.keys.Key(i), o.keys.Hashes[i], overStep{leave: 1, at: at})
		}
		return o.pause()
	}
	if j == i+1 {
		return o.planGroup(b, rowGroup{int32(i), int32(i)}, at)
	}
	o.peers = o.peers[:0]
	for ; i < j; i++ {
		o.peers = append(o.peers, int32(i))
	}
	o.groups.find(&o.keys, o.peers)
	for _, g := range o.groups.rows {
		if err := o.planGroup(b, g, at); err != nil {
			return err
		}
	}
	return nil
}

// planGroup plans the steps of rows of one partition and of time at: the frame moves on, they enter it, and leave with
// the results of all.
func (o *overTime) planGroup(b *batch.Batch, g rowGroup, at int64) error {
	key, hash := o.keys.Key(int(g.first)), o.keys.Hashes[g.first]
	if err := o.slide(int(g.first), at); err != nil {
		return err
	}
	n := int32(0)
	for i := g.first; i >= 0; {
		o.state.seq++
		o.sub = overSub(o.sub[:0], at, o.state.seq)
		o.row = appendRow(o.row[:0], b, int(i))
		if err := o.frame.rows.at(int(g.first)).put(o.sub, o.row); err != nil {
			return err
		}
		n++
		s := overStep{sign: 1, at: at}
		next := int32(-1)
		if i != g.last {
			next = o.groups.next[i]
		} else if o.waiting.phase == waitWhole {
			s.leave = n
		}
		o.run.copied(b, int(i), key, hash, s)
		i = next
	}
	return o.pause()
}

// finish runs what is planned.
func (o *overTime) finish(out exec.Emitter) error {
	if err := o.frame.rows.done(); err != nil {
		return err
	}
	return o.run.run(&o.core, out)
}

// pause runs what is planned if it is much. Buckets are then new ones.
func (o *overTime) pause() error {
	if !o.run.full() {
		return nil
	}
	if err := o.finish(o.out); err != nil {
		return err
	}
	return o.frame.begin(&o.core, &o.keys)
}

// slide takes the rows that are too old for a row at time at out of the frame of the partition of row i.
func (o *overTime) slide(i int, at int64) error {
	if !o.spec.Frame.Rows { // a new partition gets an end
		held, err := o.frame.rows.at(i).len()
		if err != nil {
			return err
		}
		if held == 0 {
			o.ends.add(o.end(at), o.keys.Key(i), o.keys.Hashes[i])
		}
	}
	for {
		more, err := o.frame.slide(&o.run, o.frame.rows.at(i), o.keys.Key(i), o.keys.Hashes[i], at)
		if err != nil || !more {
			return err
		}
		if err := o.pause(); err != nil {
			return err
		}
	}
}

// forget drops partitions of a bounded range that no row can reach any more.
func (o *overTime) forget(upTo int64, out exec.Emitter) error {
	for {
		o.due.Reset()
		var err error
		if o.dueAt, err = o.ends.take(upTo, batch.Size, &o.due, o.dueAt[:0]); err != nil || len(o.dueAt) == 0 {
			return err
		}
		if err := o.beginEnds(); err != nil {
			return err
		}
		for i := range o.dueAt {
			if err := o.forgetKey(i, out); err != nil {
				return err
			}
		}
		if err := o.finish(out); err != nil {
			return err
		}
	}
}

// beginEnds probes for the partitions that may end.
func (o *overTime) beginEnds() error {
	o.refs = resize(o.refs, o.due.Len())
	if err := o.core.agg.groups.Probe(&o.due, o.refs); err != nil {
		return err
	}
	return o.frame.rows.probe(&o.due)
}

// forgetKey drops due partition i if its time has come.
func (o *overTime) forgetKey(i int, out exec.Emitter) error {
	key, hash := o.due.Key(i), o.due.Hashes[i]
	if o.refs[i] == checkpoint.NoRow {
		return nil
	}
	if end := o.end(word(o.core.agg.groups.Value(o.refs[i]), overTimeWord)); end > o.dueAt[i] {
		o.ends.add(end, key, hash)
		return nil
	}
	for {
		more, err := o.frame.clear(&o.run, o.frame.rows.at(i), key, hash)
		if err != nil || !more {
			return err
		}
		if err := o.finish(out); err != nil {
			return err
		}
		if err := o.beginEnds(); err != nil {
			return err
		}
	}
}
