package op

import (
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// JoinInput describes one side of a regular join.
type JoinInput struct {
	Schema *types.Schema
	Keys   []int // equi-join columns; the types of both sides agree one by one
	// Unique is a set of columns in which the rows of this side differ (an upsert key), nil when none is known. A row
	// replaces the one with the same values there, also without a -U before.
	Unique []int
	TTL    int64 // ms, 0 = none
	// InsertOnly promises that the side has no updates and deletes.
	InsertOnly bool
}

// JoinSpec describes a regular join: both sides are kept in state.
type JoinSpec struct {
	Kind        JoinKind
	Left, Right JoinInput
	NullSafe    []bool    // per key: NULL equals NULL (IS NOT DISTINCT FROM)
	Cond        expr.Expr // further condition over the left, then the right columns; nil = none
	Session     expr.Session
	Output      *types.Schema // left, then right columns; left columns for semi and anti joins
	// Mini lets rows of inputs without updates and deletes wait for more.
	Mini MiniBatch
}

// NewJoin is Flink's regular join (StreamingJoinOperator, StreamingSemiAntiJoinOperator): every change of a side is
// joined with the rows the other side has now. Rows of both inputs must be exchanged by the keys; without keys there is
// one subtask. Port 0 is the left side.
func NewJoin(spec JoinSpec) func() exec.Operator {
	if spec.insertsOnly() {
		if spec.Mini.Size > 0 {
			return func() exec.Operator { return &miniJoin{insertJoin: insertJoin{spec: spec}} }
		}
		return func() exec.Operator { return &insertJoin{spec: spec} }
	}
	return func() exec.Operator { return &join{spec: spec} }
}

type join struct {
	exec.Stateless
	spec   JoinSpec
	sides  [2]joinSide
	filter *expr.Filter
	// deferred: whether a candidate matches is known only after the filter ran over a batch of them, and what is
	// emitted depends on it. Inner joins need no such care: the filter runs over the rows they emit.
	deferred bool

	// The batch being processed.
	port int
	b    *batch.Batch
	keys checkpoint.Keys
	x, o *joinSide
	emit exec.Emitter
	row  currentRow

	out     *batch.Builder
	outX    []int32 // per row of out, the physical row of b that its x columns come from, -1 = NULLs; filled in by complete
	outO    []int32 // deferred: the same for the other side's columns, rows of cand
	visit   func(sub, val []byte) bool
	walk    walk
	updates countUpdates
	pending pendingPairs
}

// currentRow is the row of the batch being joined.
type currentRow struct {
	i       int // among the rows that count; -1 = none
	r       int // physical
	kind    types.RowKind
	retract bool
	noKey   bool   // a NULL in a key that NULL does not match
	counted bool   // the row is new in, or leaves, the match counts of the other side
	matches uint32 // rows of the other side matched
	image   []byte
	sub     []byte
}

// walk is where the visit of the current bucket stands.
type walk struct {
	row     int32  // physical, of the batch
	from    []byte // go on at this entry
	stopped bool   // before the end of the bucket: what was gathered has to leave first
	err     error
}

// Open implements exec.Operator.
func (j *join) Open(s exec.Subtask) (err error) {
	j.out = batch.NewBuilder(j.spec.Output)
	if j.spec.Cond != nil {
		if j.filter, err = expr.CompileFilter(j.spec.Cond, j.spec.Session); err != nil {
			return err
		}
		j.deferred = j.spec.Kind != InnerJoin
	}
	if j.deferred {
		j.pending.open(j.spec.Left.Schema, j.spec.Right.Schema)
	}
	k := j.spec.Kind
	left, right := &j.sides[0], &j.sides[1]
	left.outer, left.counts = k.PadsLeft(), k.PadsLeft() || k.HalfJoin()
	right.outer, right.counts = k.PadsRight(), k.PadsRight()
	if !k.HalfJoin() {
		left.outCols = j.out.Cols[:len(j.spec.Left.Schema.Columns)]
		right.outCols = j.out.Cols[len(j.spec.Left.Schema.Columns):]
	} else {
		left.outCols = j.out.Cols
	}
	if err := left.open(s, "left", j.spec.Left, j.spec.NullSafe); err != nil {
		return err
	}
	if err := right.open(s, "right", j.spec.Right, j.spec.NullSafe); err != nil {
		return err
	}
	j.visit = j.candidate
	if j.deferred {
		j.visit = j.gather
	}
	return nil
}

// Process implements exec.Operator.
func (j *join) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	j.port, j.b, j.emit = port, b, out
	j.x, j.o = &j.sides[port], &j.sides[1-port]
	j.x.enc.Encode(b, &j.keys)
	if err := j.x.state.probe(&j.keys); err != nil {
		return err
	}
	if err := j.o.state.probe(&j.keys); err != nil {
		return err
	}
	j.row.i = -1
	var err error
	if j.deferred {
		err = j.processDeferred()
	} else {
		err = j.processDirect()
	}
	if err == nil {
		err = j.flush()
	}
	if err != nil {
		return fmt.Errorf("join: %w", err)
	}
	if err := j.x.state.done(); err != nil {
		return err
	}
	return j.o.state.done()
}

// processDirect joins row by row: every candidate matches, or the condition is tested on what is emitted.
func (j *join) processDirect() error {
	for i := range j.keys.Len() {
		if err := j.start(i); err != nil {
			return err
		}
		for again := !j.row.noKey; again; again = j.walk.stopped {
			if err := j.ascend(i); err != nil {
				return err
			}
			if err := j.updates.apply(j.o.state.at(i)); err != nil {
				return err
			}
			if j.out.Full() {
				if err := j.flush(); err != nil {
					return err
				}
			}
		}
		if err := j.finish(); err != nil {
			return err
		}
	}
	return nil
}

// ascend visits the other side's rows with the key of row i, from where the last visit stopped.
func (j *join) ascend(i int) error {
	var from []byte
	if j.walk.stopped {
		from = j.walk.from
	}
	j.walk.stopped = false
	if err := j.o.state.at(i).ascend(from, j.visit); err != nil {
		return err
	}
	return j.walk.err
}

// stop ends the visit after the entry sub.
func (j *join) stop(sub []byte) bool {
	j.walk.from = append(append(j.walk.from[:0], sub...), 0)
	j.walk.stopped = true
	return false
}

// candidate is the visit of processDirect: an entry of the other side that matches the current row.
func (j *join) candidate(sub, val []byte) bool {
	e, err := j.o.decode(sub, val)
	if err != nil {
		j.walk.err = err
		return false
	}
	count, err := j.match(e, -1)
	if err != nil {
		j.walk.err = err
		return false
	}
	if count != e.count {
		j.updates.add(sub, val, count)
	}
	if j.out.Full() || j.updates.full() {
		return j.stop(sub)
	}
	return true
}

// start begins row i: a retraction leaves the state at once, an insertion when its matches are known.
func (j *join) start(i int) error {
	c := &j.row
	c.i, c.r = i, j.b.Row(i)
	c.kind = j.b.Kind(c.r)
	c.retract, c.matches, c.counted = c.kind.IsRetract(), 0, true
	c.noKey = j.x.nullKey(j.b, c.r)
	if c.noKey {
		return nil // it never matches and is given once only: no state needed
	}
	c.image = appendRow(c.image[:0], j.b, c.r)
	c.sub = j.x.appendSub(c.sub[:0], j.b, c.r, c.image)
	existed, err := true, error(nil)
	switch {
	case c.retract:
		existed, err = j.x.remove(j.x.state.at(i), c)
		// What expired has been counted, what never came has not.
		c.counted = existed || j.x.ttl > 0
	case j.o.counts && j.x.layout != rowsByContent:
		_, existed, err = j.x.state.at(i).get(c.sub)
		c.counted = !existed
	}
	return err
}

// finish ends the current row: it is put in state with its matches, and given alone when it must be.
func (j *join) finish() error {
	c := &j.row
	if !c.retract && !c.noKey {
		if err := j.x.put(j.x.state.at(c.i), c); err != nil {
			return err
		}
	}
	switch {
	case j.spec.Kind.HalfJoin():
		if j.port == 0 && (c.matches > 0) == (j.spec.Kind == SemiJoin) {
			j.appendAlone(c.kind)
		}
	case j.x.outer && c.matches == 0:
		k := types.Insert
		if c.retract {
			k = types.Delete
		}
		j.appendAlone(k)
	}
	if j.out.Full() {
		return j.flush()
	}
	return nil
}
