package op

import (
	"encoding/binary"
	"fmt"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// insertJoin is the regular inner join of inputs without updates and deletes whose state does not expire: no row is ever
// looked for but by its join key, so that a side is a log of encoded rows per key, and the batch's matches are decoded a
// column at a time.
type insertJoin struct {
	exec.Stateless
	spec   JoinSpec
	sides  [2]insertSide
	filter *expr.Filter

	keys checkpoint.Keys
	rows encodedRows
	out  *batch.Builder
	emit exec.Emitter
	b    *batch.Batch
	x, o *insertSide

	row       int32 // of b, physical, whose matches are being read
	matchX    []int32
	matchO    [][]byte // borrowed from o's state
	matchSize int
	visit     func(rows []byte) error
}

// insertSide is one side of an insertJoin.
type insertSide struct {
	enc    *exec.KeyEncoder
	strict []int // key columns in which NULL matches nothing
	codec  *rowCodec
	log    *rowLog
	out    []*batch.ColBuilder
}

// insertsOnly tells whether insertJoin can do the join.
func (s *JoinSpec) insertsOnly() bool {
	can := func(in *JoinInput) bool { return in.InsertOnly && in.Unique == nil && in.TTL == 0 }
	return s.Kind == InnerJoin && can(&s.Left) && can(&s.Right)
}

// Open implements exec.Operator.
func (j *insertJoin) Open(s exec.Subtask) (err error) {
	j.out = batch.NewBuilder(j.spec.Output)
	if j.spec.Cond != nil {
		if j.filter, err = expr.CompileFilter(j.spec.Cond, j.spec.Session); err != nil {
			return err
		}
	}
	j.visit = j.gather
	left := len(j.spec.Left.Schema.Columns)
	j.sides[0].out, j.sides[1].out = j.out.Cols[:left], j.out.Cols[left:]
	for i, in := range []*JoinInput{&j.spec.Left, &j.spec.Right} {
		side := &j.sides[i]
		side.enc, side.codec = exec.NewKeyEncoder(in.Keys), newRowCodec(in.Schema)
		side.strict = plainKeys(in.Keys, j.spec.NullSafe)
		if side.log, err = openRowLog(s, [...]string{"left", "right"}[i], "join/1;"+slottedFormat(in.Schema)); err != nil {
			return err
		}
	}
	return nil
}

// Process implements exec.Operator.
func (j *insertJoin) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	j.b, j.emit, j.x, j.o = b, out, &j.sides[port], &j.sides[1-port]
	j.x.enc.Encode(b, &j.keys)
	if err := j.join(); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return j.keep()
}

// join emits the matches of the batch with the rows of the other side.
func (j *insertJoin) join() error {
	if err := j.o.log.probe(&j.keys); err != nil {
		return err
	}
	for i, ref := range j.o.log.refs {
		if ref == checkpoint.NoRow {
			continue
		}
		r := j.b.Row(i)
		if anyNull(j.b, j.x.strict, r) {
			continue
		}
		j.row = int32(r)
		if err := j.o.log.read(i, j.visit); err != nil {
			return err
		}
	}
	return j.flush()
}

const maxMatchBytes = 8 << 20 // of encoded rows, after which matches are emitted

// gather is what join does with rows of the other side.
func (j *insertJoin) gather(rows []byte) error {
	for len(rows) > 0 {
		if len(rows) < rowLength {
			return errJoinState
		}
		n := int(binary.LittleEndian.Uint32(rows))
		if n < rowLength || n > len(rows) {
			return errJoinState
		}
		j.matchX, j.matchO = append(j.matchX, j.row), append(j.matchO, rows[:n])
		j.matchSize += n
		rows = rows[n:]
		if len(j.matchO) >= batch.Size || j.matchSize >= maxMatchBytes {
			if err := j.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush emits the matches gathered, as far as they fulfil the condition.
func (j *insertJoin) flush() error {
	if len(j.matchO) == 0 {
		return nil
	}
	for i, c := range j.x.out {
		c.AppendRows(j.b.Cols[i], j.matchX)
	}
	if err := j.o.codec.decode(j.matchO, j.o.out); err != nil {
		return err
	}
	j.out.RowsDone(len(j.matchO))
	j.matchX, j.matchO, j.matchSize = j.matchX[:0], j.matchO[:0], 0
	return emitMatches(j.out, j.filter, j.emit)
}

// keep puts the batch's rows into state, as far as they can match anything.
func (j *insertJoin) keep() error {
	log := j.x.log
	if err := log.probe(&j.keys); err != nil {
		return err
	}
	j.x.codec.encode(j.b, &j.rows)
	for i := range j.keys.Len() {
		if anyNull(j.b, j.x.strict, j.b.Row(i)) {
			continue
		}
		if err := log.add(i, j.rows.row(i)); err != nil {
			return err
		}
	}
	return nil
}
