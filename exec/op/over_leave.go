package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// How the rows of an overTime leave: a batch of timers, of rows or of planned steps at a time.

// fire lets the rows up to time upTo leave.
func (o *overTime) fire(upTo int64, out exec.Emitter) error {
	for {
		o.due.Reset()
		var err error
		if o.dueAt, err = o.timers.take(upTo, batch.Size, &o.due, o.dueAt[:0]); err != nil {
			return err
		}
		if len(o.dueAt) == 0 {
			break
		}
		if err := o.begin(); err != nil {
			return err
		}
		for i, at := range o.dueAt {
			if err := o.plan(i, at, out); err != nil {
				return err
			}
		}
		if err := o.finish(out); err != nil {
			return err
		}
	}
	if !o.bounded || o.spec.Frame.Rows {
		return nil
	}
	return o.forget(upTo, out)
}

// begin probes for the partitions that are due.
func (o *overTime) begin() error {
	if err := o.waiting.probe(&o.due); err != nil || !o.bounded {
		return err
	}
	return o.frame.begin(&o.core, &o.due)
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

// pause runs what is planned if it is much. Buckets are then new ones.
func (o *overTime) pause(out exec.Emitter) error {
	if !o.run.full() {
		return nil
	}
	return o.restart(out)
}

func (o *overTime) restart(out exec.Emitter) error {
	if err := o.finish(out); err != nil {
		return err
	}
	return o.begin()
}

// plan plans the steps of the rows of due partition i that have time at.
func (o *overTime) plan(i int, at int64, out exec.Emitter) error {
	for {
		o.sub = overSub(o.sub[:0], at, 0)
		n, more, err := o.collect(o.waiting.at(i), at)
		if err != nil || n == 0 {
			return err
		}
		if more && !o.spec.Frame.Rows {
			return o.planPeers(i, at, out)
		}
		if err := o.planRows(i, at, n, out); err != nil || !more {
			return err
		}
	}
}

// planRows plans the steps of the rows collected. Without a frame of rows they are all of their time.
func (o *overTime) planRows(i int, at int64, n int, out exec.Emitter) error {
	key, hash := o.due.Key(i), o.due.Hashes[i]
	for k := range n {
		sub, row := o.collected(k)
		if o.bounded && (k == 0 || o.spec.Frame.Rows) {
			if err := o.slide(i, at, out); err != nil {
				return err
			}
		}
		if _, err := o.waiting.at(i).remove(sub); err != nil {
			return err
		}
		if o.bounded {
			if err := o.frame.rows.at(i).put(sub, row); err != nil {
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
	return o.pause(out)
}

// planPeers lets more rows of one time leave than are held: all enter, some at a time, then they leave with the results
// of all.
func (o *overTime) planPeers(i int, at int64, out exec.Emitter) error {
	if o.bounded {
		if err := o.slide(i, at, out); err != nil {
			return err
		}
	}
	key, hash := o.due.Key(i), o.due.Hashes[i]
	for _, sign := range []int8{1, 0} {
		o.sub = overSub(o.sub[:0], at, 0)
		for more := true; more; {
			if err := o.restart(out); err != nil {
				return err
			}
			w := o.waiting.at(i)
			var n int
			var err error
			if n, more, err = o.collect(w, at); err != nil {
				return err
			}
			for k := range n {
				sub, row := o.collected(k)
				s := overStep{sign: sign, at: at}
				if sign == 0 && k == n-1 {
					s.leave = int32(n)
				}
				if err := o.run.stored(row, key, hash, s); err != nil {
					return err
				}
				if sign == 1 && o.bounded {
					if err := o.frame.rows.at(i).put(sub, row); err != nil {
						return err
					}
				}
				o.sub = append(append(o.sub[:0], sub...), 0)
			}
			if sign == 0 {
				if err := w.removeBelow(o.sub); err != nil {
					return err
				}
			}
		}
	}
	return o.restart(out)
}

// slide takes the rows that are too old for a row at time at out of the frame of due partition i.
func (o *overTime) slide(i int, at int64, out exec.Emitter) error {
	if err := o.enter(i, at); err != nil {
		return err
	}
	for {
		more, err := o.frame.slide(&o.run, o.frame.rows.at(i), o.due.Key(i), o.due.Hashes[i], at)
		if err != nil || !more {
			return err
		}
		if err := o.pause(out); err != nil {
			return err
		}
	}
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

// collect copies rows of time at and their sub-keys from o.sub on, a batch at most. more says that there are others.
func (o *overTime) collect(w bucket, at int64) (n int, more bool, err error) {
	o.subs, o.rows, o.rowEnds = o.subs[:0], o.rows[:0], o.rowEnds[:0]
	err = w.ascend(o.sub, func(sub, row []byte) bool {
		if overSubTime(sub) != at {
			return false
		}
		if more = len(o.rowEnds) == overCollect; more {
			return false
		}
		o.subs = append(o.subs, sub...)
		o.rows = append(o.rows, row...)
		o.rowEnds = append(o.rowEnds, len(o.rows))
		return true
	})
	return len(o.rowEnds), more, err
}

// overCollect is how many rows of one time are held.
const overCollect = batch.Size

// collected is row k of those collected.
func (o *overTime) collected(k int) (sub, row []byte) {
	start := 0
	if k > 0 {
		start = o.rowEnds[k-1]
	}
	return o.subs[16*k : 16*k+16], o.rows[start:o.rowEnds[k]]
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
