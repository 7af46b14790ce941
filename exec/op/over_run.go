package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// overRun is a list of steps for overCore: rows of several partitions that enter or leave their frames, in order. An
// operator first plans the steps of many rows, with the rows in state at hand, then runs them with one probe.
type overRun struct {
	rows  *batch.Builder
	keys  checkpoint.Keys
	steps []overStep
}

// overStep says what to do with a row.
type overStep struct {
	sign int8 // 0: the row has entered before
	drop bool // the partition is empty after this step and is forgotten
	// leave is how many of the rows up to this one leave now, with equal results; they entered one after another.
	leave int32
	at    int64 // overTimeWord of the partition after the step, when leave > 0
}

func (p *overRun) open(in *types.Schema) { p.rows = batch.NewBuilder(in) }

// overPlan is how many steps are planned before they run.
const overPlan = 4 * batch.Size

func (p *overRun) full() bool { return len(p.steps) >= overPlan }

// stored plans a step with a row from state.
func (p *overRun) stored(row, key []byte, hash uint64, s overStep) error {
	if _, err := exec.DecodeKey(row, p.rows.Cols); err != nil {
		p.rows.Abandon()
		return err
	}
	p.rows.RowDone()
	p.add(key, hash, s)
	return nil
}

// copied plans a step with physical row r of b.
func (p *overRun) copied(b *batch.Batch, r int, key []byte, hash uint64, s overStep) {
	for i, v := range b.Cols {
		p.rows.Cols[i].AppendFrom(v, r)
	}
	p.rows.RowDone()
	p.add(key, hash, s)
}

func (p *overRun) add(key []byte, hash uint64, s overStep) {
	appendKey(&p.keys, key, hash)
	p.steps = append(p.steps, s)
}

// run does the steps on c and forgets them.
func (p *overRun) run(c *overCore, out exec.Emitter) error {
	if len(p.steps) == 0 {
		return nil
	}
	b := p.rows.Finish()
	if err := c.begin(b, &p.keys); err != nil {
		return err
	}
	for i, s := range p.steps {
		if s.sign != 0 {
			if err := c.step(b, i, i, int64(s.sign)); err != nil {
				return err
			}
		}
		switch {
		case s.drop:
			if err := c.drop(i); err != nil {
				return err
			}
		case s.leave > 0:
			if err := c.results(i); err != nil {
				return err
			}
			for r := i - int(s.leave) + 1; r <= i; r++ {
				if err := c.append(b, r, types.Insert); err != nil {
					return err
				}
				if err := c.flushFull(out); err != nil {
					return err
				}
			}
			c.setTime(i, s.at)
		}
	}
	if err := c.end(); err != nil {
		return err
	}
	p.rows.Reset()
	p.keys.Reset()
	p.steps = p.steps[:0]
	return flush(c.out, out)
}

// overFrame keeps the rows of bounded frames: per partition those the accumulators hold, by time and arrival.
type overFrame struct {
	rows  *multimap
	idle  retention
	frame expr.Frame
	sub   []byte
}

func (f *overFrame) open(s exec.Subtask, in *types.Schema, frame expr.Frame, ttl int64) (err error) {
	f.frame = frame
	if f.rows, err = openMultimap(s, "frame", "over/1:"+rowFormat(in), 0); err != nil {
		return err
	}
	return f.idle.open(s, f.rows, ttl)
}

// slide plans the steps that take rows out of the frame of bucket w before one enters at time at: the oldest one of a
// full frame of rows, all that are too old for a range. more says that the plan is full and there are others.
func (f *overFrame) slide(p *overRun, w bucket, key []byte, hash uint64, at int64) (more bool, err error) {
	for {
		sub, row, ok, err := w.first()
		if err != nil || !ok {
			return false, err
		}
		if f.frame.Rows {
			n, err := w.len()
			if err != nil || int64(n) <= -f.frame.Lo {
				return false, err
			}
		} else if overSubTime(sub) >= at+f.frame.Lo {
			return false, nil
		}
		if p.full() {
			return true, nil
		}
		if err := f.leave(p, w, sub, row, key, hash, overStep{sign: -1}); err != nil {
			return false, err
		}
	}
}

// leave plans a step that takes the row at sub out.
func (f *overFrame) leave(p *overRun, w bucket, sub, row, key []byte, hash uint64, s overStep) error {
	if err := p.stored(row, key, hash, s); err != nil {
		return err
	}
	f.sub = append(f.sub[:0], sub...)
	_, err := w.remove(f.sub)
	return err
}

// clear plans the steps that empty the frame and forget the partition; more as in slide.
func (f *overFrame) clear(p *overRun, w bucket, key []byte, hash uint64) (more bool, err error) {
	for {
		sub, row, ok, err := w.first()
		if err != nil || !ok {
			return false, err
		}
		if p.full() {
			return true, nil
		}
		n, err := w.len()
		if err != nil {
			return false, err
		}
		if err := f.leave(p, w, sub, row, key, hash, overStep{sign: -1, drop: n == 1}); err != nil {
			return false, err
		}
	}
}

// begin probes for the frames of keys. What is left of a partition whose time was over is dropped.
func (f *overFrame) begin(c *overCore, keys *checkpoint.Keys) error {
	if err := f.rows.probe(keys); err != nil || f.idle.ttl == 0 {
		return err
	}
	c.keys, c.refs = keys, resize(c.refs, keys.Len())
	if err := c.agg.groups.Probe(keys, c.refs); err != nil {
		return err
	}
	if err := c.agg.probeLists(keys); err != nil {
		return err
	}
	return f.idle.touch(keys, c.drop)
}
