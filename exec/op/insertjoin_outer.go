package op

import (
	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// What an insertJoin does that is not an inner one. It has no condition beside the keys, so that a row has a match as soon as
// its key has rows on the other side, for ever: no row needs a count of its matches. The first row of a key on one side
// takes back what the other side gave alone.
//
// A semi or anti join needs of the right side only that a key is there, which is one row without columns, and of the left
// side the rows that came before it.

// findSides notes of which of the batch's keys there are rows on this side and on the other one.
func (j *insertJoin) findSides() (err error) {
	n := len(j.ends)
	j.had, j.met = resize(j.had, n), resize(j.met, n)
	for g := range n {
		if j.had[g], err = j.log.has(j.port, g); err != nil {
			return err
		}
		if j.met[g], err = j.log.has(1-j.port, g); err != nil {
			return err
		}
	}
	return nil
}

// has tells whether a side of key i of the last probe has rows.
func (l *joinLog) has(side, i int) (bool, error) {
	if l.refs[i] == checkpoint.NoRow {
		return false, nil
	}
	segments, from, to, err := rootOf(l.roots.Value(l.refs[i]), side)
	return segments > 0 || to > from, err
}

// emitOwn emits the batch's rows that leave alone: without a match, or in a semi join with one.
func (j *insertJoin) emitOwn() error {
	kind := j.spec.Kind
	if kind.HalfJoin() && j.port == 1 || !kind.HalfJoin() && !j.x.outer {
		return nil
	}
	j.pairX = j.pairX[:0]
	for i, g := range j.x.keys.of {
		if met := g >= 0 && j.met[g]; met == (kind == SemiJoin) {
			j.pairX = append(j.pairX, int32(j.b.Row(i)))
		}
	}
	rows := j.pairX
	j.pairX = j.pairX[:0]
	for len(rows) > 0 {
		n := min(len(rows), batch.Size)
		if err := j.emitUnmatched(rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	return nil
}

// emitUnmatched emits rows of the batch, some physical ones, with NULLs for the other side if that has columns in the output.
func (j *insertJoin) emitUnmatched(rows []int32) error {
	if j.spec.Kind.HalfJoin() {
		return j.send(&batch.Batch{N: j.b.N, Sel: rows, Cols: j.b.Cols})
	}
	defer j.out.Reset()
	for i, c := range j.x.out {
		c.AppendRows(j.b.Cols[i], rows)
	}
	appendNulls(j.o.out, len(rows))
	j.out.RowsDone(len(rows))
	return j.send(j.out.Finish())
}

func appendNulls(cols []*batch.ColBuilder, n int) {
	for _, c := range cols {
		at := c.AppendN(n)
		c.NullifyRange(at, at+n)
	}
}

// reads tells whether the other side's rows of key g are wanted.
func (j *insertJoin) reads(g int) bool {
	return !j.spec.Kind.HalfJoin() || j.port == 1 && !j.had[g]
}

// emitOthers emits, of the rows gathered, what the other side's rows meant alone: taken back, or in a semi join given.
func (j *insertJoin) emitOthers() error {
	if !j.o.outer && !j.spec.Kind.HalfJoin() {
		return nil
	}
	kind := types.Delete
	if j.spec.Kind == SemiJoin {
		kind = types.Insert
	}
	from := int32(0)
	for g, end := range j.ends {
		first := j.order[from] // has the key's columns
		from = end
		for o := j.spans[g].from; o < j.spans[g].to && !j.had[g]; o++ {
			j.pairX, j.pairO = append(j.pairX, first), append(j.pairO, o)
			if len(j.pairX) == batch.Size {
				if err := j.emitAlone(kind); err != nil {
					return err
				}
			}
		}
	}
	return j.emitAlone(kind)
}

// emitAlone emits rows of the other side without one of this side. The pairs' batch rows only tell their keys.
func (j *insertJoin) emitAlone(kind types.RowKind) error {
	n := len(j.pairO)
	if n == 0 {
		return nil
	}
	defer j.out.Reset()
	j.others(j.pairX, j.pairO)
	appendNulls(j.x.out, n)
	for range n {
		j.out.RowKindDone(kind)
	}
	j.pairX, j.pairO = j.pairX[:0], j.pairO[:0]
	return j.send(j.out.Finish())
}

// others makes the columns of the other side's rows o, whose keys are those of the batch's rows x.
func (j *insertJoin) others(x, o []int32) {
	for i, c := range j.o.out {
		if k := j.o.from[i]; k >= 0 {
			c.AppendRows(j.b.Cols[j.x.cols[k]], x)
		} else {
			c.AppendRows(&j.o.found.Cols[i].Vec, o)
		}
	}
}

// keeps is how many of the batch's n rows of key g go into state.
func (j *insertJoin) keeps(g, n int) int {
	switch {
	case !j.spec.Kind.HalfJoin():
		return n
	case j.port == 0 && j.met[g] || j.port == 1 && j.had[g]:
		return 0
	case j.port == 1:
		return 1
	}
	return n
}
