package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// pendingPairs are candidates of a join whose condition is tested for a batch of them at a time, before anything is
// emitted for them.
type pendingPairs struct {
	build  *batch.Builder // left, then right columns
	left   int            // left columns
	pairs  *batch.Batch   // build as tested
	rowOf  []int32        // per pair, the physical row of the batch
	copies []int32        // per pair, equal rows of the other side
	subs   []byte         // per pair, the other side's sub-key
	ends   []int32
	rows   []pendingRow
}

// pendingRow is a row of the batch with its candidates, which follow those of the row before.
type pendingRow struct {
	i    int // among the rows that count
	end  int // behind its last pair
	done bool
}

func (p *pendingPairs) open(left, right *types.Schema) {
	p.left = len(left.Columns)
	all := append(append([]types.Column(nil), left.Columns...), right.Columns...)
	p.build = batch.NewBuilder(&types.Schema{Columns: all})
}

// own are the columns of side port of the pairs being built.
func (p *pendingPairs) own(port int) []*batch.ColBuilder {
	if port == 0 {
		return p.build.Cols[:p.left]
	}
	return p.build.Cols[p.left:]
}

// other are the columns of the side that is not port, of the tested pairs.
func (p *pendingPairs) other(port int) []*batch.Vec {
	if port == 0 {
		return p.pairs.Cols[p.left:]
	}
	return p.pairs.Cols[:p.left]
}

// sub is the other side's sub-key of pair k.
func (p *pendingPairs) sub(k int) []byte {
	start := int32(0)
	if k > 0 {
		start = p.ends[k-1]
	}
	return p.subs[start:p.ends[k]]
}

func (p *pendingPairs) reset() {
	p.build.Reset()
	p.rowOf, p.copies, p.subs, p.ends, p.rows = p.rowOf[:0], p.copies[:0], p.subs[:0], p.ends[:0], p.rows[:0]
}

// processDeferred joins with a condition on which more than the matches depends.
func (j *join) processDeferred() error {
	p := &j.pending
	for i := range j.keys.Len() {
		for again := !j.x.nullKey(j.b, j.b.Row(i)); again; again = j.walk.stopped {
			if p.build.Full() {
				p.rows = append(p.rows, pendingRow{i: i, end: p.build.Len()})
				if err := j.resolve(); err != nil {
					return err
				}
			}
			j.walk.row = int32(j.b.Row(i))
			if err := j.ascend(i); err != nil {
				return err
			}
		}
		p.rows = append(p.rows, pendingRow{i: i, end: p.build.Len(), done: true})
		if len(p.rows) >= batch.Size {
			if err := j.resolve(); err != nil {
				return err
			}
		}
	}
	return j.resolve()
}

// gather is the visit of processDeferred: it keeps a candidate.
func (j *join) gather(sub, val []byte) bool {
	e, err := j.o.decode(sub, val)
	if err == nil {
		_, err = exec.DecodeKey(e.row, j.pending.own(1-j.port))
	}
	if err != nil {
		j.walk.err = err
		return false
	}
	p := &j.pending
	p.build.RowDone()
	p.rowOf = append(p.rowOf, j.walk.row)
	p.copies = append(p.copies, int32(e.copies))
	p.subs = append(p.subs, sub...)
	p.ends = append(p.ends, int32(len(p.subs)))
	if p.build.Full() {
		return j.stop(sub)
	}
	return true
}

// resolve tests the candidates and emits what follows from the result, row by row.
func (j *join) resolve() error {
	p := &j.pending
	for i, c := range p.own(j.port) {
		c.AppendRows(j.b.Cols[i], p.rowOf)
	}
	p.pairs = p.build.Finish()
	tested, err := j.filter.Apply(p.pairs)
	if err != nil {
		return err
	}
	next := 0 // of the pairs that passed
	for _, r := range p.rows {
		if j.row.i != r.i {
			if err := j.start(r.i); err != nil {
				return err
			}
		}
		for ; next < tested.Len() && tested.Row(next) < r.end; next++ {
			if err := j.matchPending(tested.Row(next)); err != nil {
				return err
			}
		}
		if r.done {
			if err := j.finish(); err != nil {
				return err
			}
		}
	}
	j.complete()
	p.reset()
	return nil
}

// matchPending is match for a tested candidate. Its count is read again: a row of the same batch may have changed it.
func (j *join) matchPending(k int) error {
	p := &j.pending
	e := joinEntry{copies: int(p.copies[k])}
	var b bucket
	var val []byte
	if j.o.counts {
		b = j.o.state.at(j.row.i)
		var ok bool
		var err error
		if val, ok, err = b.get(p.sub(k)); err != nil {
			return err
		} else if !ok {
			return errJoinState
		}
		if e, err = j.o.decode(p.sub(k), val); err != nil {
			return err
		}
	}
	count, err := j.match(e, int32(k))
	if err != nil {
		return err
	}
	if j.o.counts && count != e.count {
		j.updates.add(p.sub(k), val, count)
		err = j.updates.apply(b)
	}
	if err == nil && j.out.Full() {
		err = j.flush()
	}
	return err
}
