package op

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// insertJoin is the regular join of inputs without updates and deletes whose state does not expire: no row is ever
// looked for but by its join key, so that a side is a log of encoded rows per key. A batch is joined and kept key by key: a
// key's state is looked for once, the rows it matches are decoded once, its matches leave together, and its own rows are
// added in one piece. For joins that are no inner ones see emitOwn and what follows it.
type insertJoin struct {
	exec.Stateless
	spec  JoinSpec
	sides [2]insertSide
	log   *joinLog

	filter  *expr.Filter
	tests   []bool // per column of the output: filter reads it
	encoded encodedRows
	out     *batch.Builder
	emit    exec.Emitter
	b       *batch.Batch
	port    int
	x, o    *insertSide
	order   []int32 // the batch's rows by key, physical, and
	ends    []int32 // where those of each key end

	rows     [][]byte // of the other side, borrowed from its state; where rows have a fixed size, several in each
	n        int      // rows of the other side
	rowBytes int
	spans    []matchSpan // per key of the batch: its rows among rows
	key      int         // being read
	visit    func(rows []byte) error
	pairX    []int32 // physical rows of b, and
	pairO    []int32 // what they match: rows of o.found

	texts *heldTexts // of a miniJoin: those of the batch

	had, met []bool // per key of the batch: there are rows of this side, of the other one; not of inner joins
}

type matchSpan struct{ from, to int32 }

// insertSide is one side of an insertJoin.
type insertSide struct {
	keys  *batchKeys
	cols  []int // key columns, which the state has as the key only
	codec *rowCodec
	found *batch.Builder // rows of this side that the batch at hand matches
	out   []*batch.ColBuilder
	from  []int // per column of this side, where it is among the key columns; -1 = it is none
	tests []bool
	outer bool // rows without a match leave with NULLs
}

// insertsOnly tells whether insertJoin can do the join.
func (s *JoinSpec) insertsOnly() bool {
	can := func(in *JoinInput) bool { return in.InsertOnly && in.Unique == nil && in.TTL == 0 }
	return (s.Kind == InnerJoin || s.Cond == nil) && can(&s.Left) && can(&s.Right)
}

// Open implements exec.Operator.
func (j *insertJoin) Open(s exec.Subtask) (err error) {
	j.out = batch.NewBuilder(j.spec.Output)
	j.tests = make([]bool, len(j.spec.Output.Columns))
	if j.spec.Cond != nil {
		if j.filter, err = expr.CompileFilter(j.spec.Cond, j.spec.Session); err != nil {
			return err
		}
		for _, c := range expr.ColumnsOf(j.spec.Cond) {
			j.tests[c] = true
		}
	}
	j.visit = j.gather
	left := len(j.spec.Left.Schema.Columns)
	j.sides[0].out, j.sides[1].out = j.out.Cols[:left], j.out.Cols[left:]
	j.sides[0].tests, j.sides[1].tests = j.tests[:left], j.tests[left:]
	j.sides[0].outer, j.sides[1].outer = j.spec.Kind.PadsLeft(), j.spec.Kind.PadsRight()
	format := "join/2"
	for i, in := range []*JoinInput{&j.spec.Left, &j.spec.Right} {
		j.sides[i].open(in, j.spec.NullSafe)
		format += fmt.Sprintf(";%v;%s", in.Keys, slottedFormat(in.Schema))
	}
	if j.spec.Kind.HalfJoin() {
		format += ";half"
		j.sides[1].bare(j.spec.Right.Schema)
	}
	j.log, err = openJoinLog(s, format)
	return err
}

func (x *insertSide) open(in *JoinInput, nullSafe []bool) {
	x.keys, x.cols = newBatchKeys(in.Keys, plainKeys(in.Keys, nullSafe)), in.Keys
	x.codec, x.found = newShortCodec(in.Schema, in.Keys), batch.NewBuilder(in.Schema)
	for i := range in.Schema.Columns {
		x.from = append(x.from, slices.Index(in.Keys, i))
	}
}

// testsText tells whether the condition reads a text.
func (j *insertJoin) testsText() bool {
	for i, c := range j.out.Cols {
		if j.tests[i] && c.Type.Phys() == types.PhysStr {
			return true
		}
	}
	return false
}

// bare makes the side's rows ones without columns.
func (x *insertSide) bare(s *types.Schema) {
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	x.codec = newShortCodec(s, all)
}

// Process implements exec.Operator.
func (j *insertJoin) Process(port int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	j.b, j.emit, j.port, j.x, j.o = b, out, port, &j.sides[port], &j.sides[1-port]
	j.x.keys.find(b)
	j.order, j.ends = j.x.keys.sorted()
	if err := j.log.probe(&j.x.keys.keys); err != nil {
		return err
	}
	if j.spec.Kind != InnerJoin {
		if err := j.findSides(); err != nil {
			return fmt.Errorf("join: %w", err)
		}
		if err := j.emitOwn(); err != nil {
			return err
		}
	}
	if err := j.join(); err != nil {
		return fmt.Errorf("join: %w", err)
	}
	return j.keep()
}

const maxMatchBytes = 8 << 20 // of encoded rows, after which matches are emitted

// join emits the matches of the batch with the rows of the other side.
func (j *insertJoin) join() error {
	j.spans = resize(j.spans, len(j.ends))
	clear(j.spans)
	for g := range j.spans {
		if !j.reads(g) {
			continue
		}
		j.key, j.spans[g].from = g, int32(j.n)
		if err := j.log.read(1-j.port, g, j.visit); err != nil {
			return err
		}
		j.spans[g].to = int32(j.n)
	}
	return j.flush()
}

const maxMatches = 2 * batch.Size // rows of the other side, after which matches are emitted

// gather is what join does with rows of the other side.
func (j *insertJoin) gather(rows []byte) error {
	c := j.o.codec
	if c.fixed() && len(rows)%c.head != 0 {
		return errJoinState
	}
	for len(rows) > 0 {
		n, size := 1, c.head
		if c.fixed() {
			n = min(len(rows)/c.head, maxMatches-j.n)
			size = n * c.head
		} else {
			var err error
			if size, err = c.size(rows); err != nil {
				return err
			}
		}
		j.rows, j.n, j.rowBytes, rows = append(j.rows, rows[:size]), j.n+n, j.rowBytes+size, rows[size:]
		if j.n >= maxMatches || j.rowBytes >= maxMatchBytes {
			j.spans[j.key].to = int32(j.n)
			if err := j.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush emits the pairs of the batch's rows and those gathered, which it forgets.
func (j *insertJoin) flush() error {
	if j.n == 0 {
		return nil
	}
	if j.o.codec.fixed() {
		j.o.codec.decodeFixed(j.rows, j.n, j.o.found.Cols)
	} else if err := j.o.codec.decode(j.rows, j.o.found.Cols); err != nil {
		return err
	}
	j.o.found.Finish()
	if err := j.emitOthers(); err != nil {
		return err
	}
	from := int32(0)
	for g, end := range j.ends {
		matches := j.spans[g]
		if matches.from == matches.to || j.spec.Kind.HalfJoin() {
			from = end
			continue
		}
		rows := j.order[from:end]
		if matches.to == matches.from+1 {
			j.pairX, j.pairO = append(j.pairX, rows...), appendCopies(j.pairO, matches.from, len(rows))
			rows = nil
		}
		for _, r := range rows {
			for o := matches.from; o < matches.to; o++ {
				j.pairX, j.pairO = append(j.pairX, r), append(j.pairO, o)
			}
			if len(j.pairX) >= batch.Size {
				if err := j.emitPairs(false); err != nil {
					return err
				}
			}
		}
		if len(j.pairX) >= batch.Size {
			if err := j.emitPairs(false); err != nil {
				return err
			}
		}
		from = end
	}
	err := j.emitPairs(true)
	for _, c := range j.o.found.Cols {
		c.Clear()
	}
	j.rows, j.n, j.rowBytes = j.rows[:0], 0, 0
	clear(j.spans)
	return err
}

// appendCopies appends n times x.
func appendCopies(s []int32, x int32, n int) []int32 {
	at := len(s)
	s = slices.Grow(s, n)[:at+n]
	for i := range s[at:] {
		s[at+i] = x
	}
	return s
}

// emitPairs emits the pairs that fulfil the condition: all, or as many as fill batches.
func (j *insertJoin) emitPairs(all bool) error {
	x, o := j.pairX, j.pairO
	for len(x) >= batch.Size || all && len(x) > 0 {
		n := min(len(x), batch.Size)
		if err := j.emitSome(x[:n], o[:n]); err != nil {
			return err
		}
		x, o = x[n:], o[n:]
	}
	j.pairX, j.pairO = append(j.pairX[:0], x...), append(j.pairO[:0], o...)
	return nil
}

// emitSome is emitPairs for so many as a batch has rows. The columns that the condition does not read are made for the pairs
// that fulfil it, if those are few.
func (j *insertJoin) emitSome(x, o []int32) error {
	defer j.out.Reset()
	if j.filter == nil {
		j.columns(x, o, false)
		j.out.RowsDone(len(x))
		return j.send(j.out.Finish())
	}
	j.columns(x, o, true)
	j.out.RowsDone(len(x))
	b, err := j.filter.Apply(j.out.Finish())
	if err != nil || b.Len() == 0 {
		return err
	}
	if 2*b.Len() > len(x) {
		j.columns(x, o, false)
		sel := b.Sel
		b = j.out.Finish()
		b.Sel = sel
		return j.send(b)
	}
	for i, r := range b.Sel { // ascending
		x[i], o[i] = x[r], o[r]
	}
	x, o = x[:b.Len()], o[:b.Len()]
	j.out.Reset()
	j.columns(x, o, true)
	j.columns(x, o, false)
	j.out.RowsDone(len(x))
	return j.send(j.out.Finish())
}

// send emits b. Texts of rows that waited get memory that is not used again.
func (j *insertJoin) send(b *batch.Batch) error {
	if j.texts != nil {
		j.texts.release(b)
	}
	return j.emit.Emit(b)
}

// columns makes the columns of pairs that the condition reads, or the others.
func (j *insertJoin) columns(x, o []int32, tests bool) {
	for i, c := range j.x.out {
		if j.x.tests[i] == tests {
			c.Gather(j.b.Cols[i], x)
		}
	}
	for i, c := range j.o.out {
		switch k := j.o.from[i]; {
		case j.o.tests[i] != tests:
		case k >= 0:
			c.Gather(j.b.Cols[j.x.cols[k]], x) // keys are equal
		default:
			c.Gather(&j.o.found.Cols[i].Vec, o)
		}
	}
}

// keep puts the batch's rows into state, as far as they can match anything.
func (j *insertJoin) keep() error {
	b := *j.b
	b.Sel = j.order
	j.x.codec.encode(&b, &j.encoded)
	from := 0
	for g, end := range j.ends {
		n := j.keeps(g, int(end)-from)
		if err := j.log.add(j.port, g, j.encoded.buf, j.encoded.starts[from:from+n+1]); err != nil {
			return err
		}
		from = int(end)
	}
	return nil
}
