package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// match emits what a match of the current row x with the entry o means, and returns o's match count after it. The table
// is Flink's: an outer side turns its updates into deletes and inserts, because a row of it may have to appear or
// disappear with NULLs. p is o's row among the deferred candidates; -1 takes it from the entry.
func (j *join) match(o joinEntry, p int32) (count uint32, err error) {
	c := &j.row
	c.matches += uint32(o.copies)
	if j.spec.Kind.HalfJoin() {
		return j.matchHalf(o, p)
	}
	counted := j.o.counts && c.counted
	kind := c.kind
	switch {
	case c.retract && j.x.outer:
		kind = types.Delete
	case !c.retract && (j.x.outer || j.o.outer):
		kind = types.Insert
	}
	for range o.copies {
		if counted && !c.retract && o.count == 0 {
			if err := j.append(types.Delete, -1, p, o.row); err != nil {
				return 0, err
			}
		}
		if err := j.append(kind, int32(c.r), p, o.row); err != nil {
			return 0, err
		}
		if counted && c.retract && o.count == 1 {
			if err := j.append(types.Insert, -1, p, o.row); err != nil {
				return 0, err
			}
		}
	}
	return j.recount(o.count), nil
}

// matchHalf is match for semi and anti joins: a right row makes left rows appear and disappear.
func (j *join) matchHalf(o joinEntry, p int32) (count uint32, err error) {
	c := &j.row
	if j.port == 0 || !c.counted {
		return o.count, nil
	}
	if !c.retract && o.count == 0 || c.retract && o.count == 1 {
		kind := c.kind
		if j.spec.Kind == AntiJoin {
			kind = types.Delete
			if c.retract {
				kind = types.Insert
			}
		}
		for range o.copies {
			if err := j.append(kind, -1, p, o.row); err != nil {
				return 0, err
			}
		}
	}
	return j.recount(o.count), nil
}

// recount is a match count after the current row.
func (j *join) recount(n uint32) uint32 {
	switch {
	case !j.o.counts || !j.row.counted:
		return n
	case !j.row.retract:
		return n + 1
	case n > 0:
		return n - 1
	}
	return 0
}

// append adds a row to the output: the columns of physical row x of the batch (-1 = NULLs) and those of the other
// side's row: from its encoding, or row p of the deferred candidates. The columns taken from batches are filled in by
// complete.
func (j *join) append(kind types.RowKind, x, p int32, row []byte) error {
	if j.deferred {
		j.outO = append(j.outO, p)
	} else if _, err := exec.DecodeKey(row, j.o.outCols); err != nil {
		return err
	}
	j.outX = append(j.outX, x)
	j.out.RowKindDone(kind)
	return nil
}

// appendAlone adds the current row with NULLs for the other side.
func (j *join) appendAlone(kind types.RowKind) {
	if j.deferred {
		j.outO = append(j.outO, -1)
	} else {
		for _, c := range j.o.outCols {
			c.AppendNull()
		}
	}
	j.outX = append(j.outX, int32(j.row.r))
	j.out.RowKindDone(kind)
}

// complete fills in the columns of the output that come from batches.
func (j *join) complete() {
	for i, c := range j.x.outCols {
		c.AppendRows(j.b.Cols[i], j.outX)
	}
	j.outX = j.outX[:0]
	if j.deferred {
		for i, c := range j.o.outCols {
			c.AppendRows(j.pending.other(j.port)[i], j.outO)
		}
		j.outO = j.outO[:0]
	}
}

// flush sends the output on.
func (j *join) flush() error {
	j.complete()
	if j.out.Len() == 0 {
		return nil
	}
	filter := j.filter
	if j.deferred {
		filter = nil // what waits in pending has been tested
	}
	return emitMatches(j.out, filter, j.emit)
}

// emitMatches sends the rows built that fulfil filter, nil = all, and empties out.
func emitMatches(out *batch.Builder, filter *expr.Filter, emit exec.Emitter) error {
	b := out.Finish()
	if filter != nil {
		var err error
		if b, err = filter.Apply(b); err != nil {
			return err
		}
	}
	if b.Len() > 0 {
		if err := emit.Emit(b); err != nil {
			return err
		}
	}
	out.Reset()
	return nil
}
