package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// windowHashJoin joins the rows of one window, a block of right rows at a time: those and a batch of the
// left side are in memory as columns, and of the left rows that have met nothing yet a bit each.
type windowHashJoin struct {
	spec   *WindowJoinSpec
	sides  *[2]windowJoinSide
	filter *expr.Filter // nil = all rows with equal keys match
	cols   [2]*batch.Builder
	rows   [][]byte
	maxRow int // bytes of a block of right rows; smaller in tests

	at       [2]*batch.Batch // the rows at hand: a batch or all of the left side, the block of the right one
	none     batch.Batch     // no rows
	words    [2]*keyWords    // of the keys but window_end, in which rows of a window agree
	keys     wordTable       // of the block
	found    []int32
	head     []int32  // of each key the first right row, +1
	chain    []int32  // of each right row the next one with its key, +1
	hit      []bool   // of each right row whether it has matched
	leftHit  []uint64 // of the window's left rows whether they have matched, a bit each
	leftSeen int      // left rows before the batch

	pairL, pairR []int32
	early        []int // columns of out that the condition reads, in front those of the left side
	alone        []int32
	out, padded  *batch.Builder
}

const (
	blockBytes  = 4 << 20                      // of right rows, as they are in state, are in memory at a time
	blockChunks = blockBytes / logChunkMax / 2 // key groups with so many right chunks are joined together
)

func (j *windowHashJoin) open(spec *WindowJoinSpec, sides *[2]windowJoinSide) (err error) {
	j.spec, j.sides, j.maxRow = spec, sides, blockBytes
	both := &types.Schema{}
	for i, in := range spec.Inputs {
		j.cols[i] = batch.NewBuilder(in)
		both.Columns = append(both.Columns, in.Columns...)
	}
	j.out, j.padded = batch.NewBuilder(both), batch.NewBuilder(spec.Output)
	if spec.Cond != nil {
		j.early = expr.ColumnsOf(spec.Cond)
		j.filter, err = expr.CompileFilter(spec.Cond, spec.Session)
	}
	var cols [2][]int
	for k := range spec.Keys[0] {
		if spec.Keys[0][k] == spec.End[0] && spec.Keys[1][k] == spec.End[1] {
			continue
		}
		for i := range cols {
			cols[i] = append(cols[i], spec.Keys[i][k])
		}
	}
	for i := range cols {
		j.words[i] = newKeyWords(spec.Inputs[i], cols[i], true)
	}
	j.words[1].ids = j.words[0].ids
	j.keys = wordTable{stride: j.words[0].stride, work: &wordWork{}}
	return err
}

// pads reports that rows of a side are given without a match.
func (j *windowHashJoin) pads(side int) bool {
	if side == 0 {
		return j.spec.Kind.PadsLeft() || j.spec.Kind == AntiJoin
	}
	return j.spec.Kind.PadsRight()
}

// marksLeft reports that it matters which left rows have matched.
func (j *windowHashJoin) marksLeft() bool { return j.pads(0) || j.spec.Kind == SemiJoin }

// window joins the rows of a window and forgets them. Key groups that have few rows are joined together.
func (j *windowHashJoin) window(end int64, out exec.Emitter) error {
	right := j.sides[1].log
	for g := 0; g < checkpoint.KeyGroups; {
		to, n := g+1, right.chunks(end, g)
		for ; to < checkpoint.KeyGroups && n+right.chunks(end, to) <= blockChunks; to++ {
			n += right.chunks(end, to)
		}
		if err := j.groups(logRange{end, g, to}, out); err != nil {
			return err
		}
		g = to
	}
	for i := range j.sides {
		delete(j.sides[i].log.cells, end)
	}
	return nil
}

// groups joins the rows of some key groups.
func (j *windowHashJoin) groups(in logRange, out exec.Emitter) error {
	if j.sides[0].log.empty(in) && j.sides[1].log.empty(in) {
		return nil
	}
	clear(j.leftHit)
	left, right := j.sides[0].log.scan(in), j.sides[1].log.scan(in)
	for more := true; more; {
		if err := j.load(&right); err != nil {
			return err
		}
		more = !right.done()
		j.leftSeen = 0
		for left = j.sides[0].log.scan(in); !left.done(); {
			if err := j.probe(&left, !more, out); err != nil {
				return err
			}
		}
		if j.pads(1) {
			if err := j.padRight(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// decode appends the rows of a chunk to a side's columns.
func (j *windowHashJoin) decode(side int, chunk []byte) error {
	j.rows = j.rows[:0]
	for len(chunk) > 0 {
		if len(chunk) < rowLength {
			return errWindowLog
		}
		n := int(binary.LittleEndian.Uint32(chunk))
		if n < rowLength || n > len(chunk) {
			return errWindowLog
		}
		j.rows = append(j.rows, chunk[:n])
		chunk = chunk[n:]
	}
	b := j.cols[side]
	if err := j.sides[side].codec.decode(j.rows, b.Cols); err != nil {
		return err
	}
	b.RowsDone(len(j.rows))
	return nil
}

// load brings right rows into memory, to the end of a block, and takes them out of the state.
func (j *windowHashJoin) load(right *logScan) error {
	x := &j.sides[1]
	j.cols[1].Reset()
	for size := 0; !right.done() && size < j.maxRow; {
		chunk, err := right.next()
		if err != nil {
			return err
		}
		size += len(chunk)
		if err := j.decode(1, chunk); err != nil {
			return err
		}
		x.log.remove()
	}
	j.at[1] = j.cols[1].Finish()
	j.build()
	return nil
}

// build makes the block, at[1], ready to be found by its keys.
func (j *windowHashJoin) build() {
	b, plain := j.at[1], j.sides[1].plain
	j.keys.reset()
	j.keys.expect(b.N)
	j.words[0].forget()
	j.found, j.chain, j.hit = resize(j.found, b.N), resize(j.chain, b.N), resize(j.hit, b.N)
	clear(j.hit)
	j.keys.find(j.words[1].encode(b, nil), j.found, nil)
	j.head = resize(j.head, j.keys.n)
	clear(j.head)
	for i := b.N - 1; i >= 0; i-- { // so that a chain is in the order of arrival
		if len(plain) > 0 && anyNull(b, plain, i) {
			continue
		}
		h := &j.head[j.found[i]]
		j.chain[i], *h = *h, int32(i+1)
	}
}

// probe joins some left rows with the block; with last there is no other block, and they are taken out of the state.
func (j *windowHashJoin) probe(left *logScan, last bool, out exec.Emitter) (err error) {
	x := &j.sides[0]
	for j.cols[0].Reset(); !left.done() && !j.cols[0].Full(); {
		chunk, err := left.next()
		if err != nil {
			return err
		}
		if err := j.decode(0, chunk); err != nil {
			return err
		}
		if last {
			x.log.remove()
		}
	}
	j.at[0] = j.cols[0].Finish()
	err = j.meet(last, out)
	j.leftSeen += j.at[0].N
	return err
}

// meet joins the left rows at hand with the block; with last there is no other block.
func (j *windowHashJoin) meet(last bool, out exec.Emitter) error {
	b, plain := j.at[0], j.sides[0].plain
	if words := (j.leftSeen + b.N + 63) / 64; j.marksLeft() && words > len(j.leftHit) {
		j.leftHit = append(j.leftHit, make([]uint64, words-len(j.leftHit))...)
	}
	j.found = resize(j.found, b.N)
	j.keys.lookup(j.words[0].encode(b, nil), j.found)
	for i, k := range j.found {
		if k < 0 || len(plain) > 0 && anyNull(b, plain, i) {
			continue
		}
		for p := j.head[k]; p > 0; p = j.chain[p-1] {
			j.pairL, j.pairR = append(j.pairL, int32(i)), append(j.pairR, p-1)
			if len(j.pairL) >= batch.Size {
				if err := j.match(out); err != nil {
					return err
				}
			}
		}
	}
	if err := j.match(out); err != nil {
		return err
	}
	if last && j.marksLeft() {
		return j.finishLeft(b.N, out)
	}
	return nil
}

// match emits the pairs that fulfil the condition and notes their rows.
func (j *windowHashJoin) match(out exec.Emitter) error {
	if j.filter != nil && len(j.pairL) > 0 {
		if err := j.narrow(); err != nil {
			return err
		}
	}
	if len(j.pairL) == 0 {
		return nil
	}
	if !j.spec.Kind.HalfJoin() {
		for i := range j.out.Cols {
			j.gather(i)
		}
		j.out.RowsDone(len(j.pairL))
		if err := out.Emit(j.out.Finish()); err != nil {
			return err
		}
		j.out.Reset()
	}
	j.note()
	j.pairL, j.pairR = j.pairL[:0], j.pairR[:0]
	return nil
}

// narrow keeps the pairs that fulfil the condition. Only the columns that it reads are made.
func (j *windowHashJoin) narrow() error {
	for _, i := range j.early {
		j.gather(i)
	}
	j.out.RowsDone(len(j.pairL))
	b, err := j.filter.Apply(j.out.Finish())
	if err != nil {
		return err
	}
	if b.Sel != nil {
		for i, p := range b.Sel {
			j.pairL[i], j.pairR[i] = j.pairL[p], j.pairR[p]
		}
		j.pairL, j.pairR = j.pairL[:len(b.Sel)], j.pairR[:len(b.Sel)]
	}
	j.out.Reset()
	return nil
}

// gather appends the pairs' values of a column of out.
func (j *windowHashJoin) gather(i int) {
	if w := len(j.cols[0].Cols); i < w {
		j.out.Cols[i].AppendRows(j.at[0].Cols[i], j.pairL)
	} else {
		j.out.Cols[i].AppendRows(j.at[1].Cols[i-w], j.pairR)
	}
}

// note notes that the rows of the pairs have matched.
func (j *windowHashJoin) note() {
	if j.marksLeft() {
		for _, l := range j.pairL {
			l := j.leftSeen + int(l)
			j.leftHit[l>>6] |= 1 << (l & 63)
		}
	}
	if j.pads(1) {
		for _, r := range j.pairR {
			j.hit[r] = true
		}
	}
}

// finishLeft gives the left rows at hand, n, that leave because they have matched or have not.
func (j *windowHashJoin) finishLeft(n int, out exec.Emitter) error {
	j.alone = j.alone[:0]
	for i := range n {
		l := j.leftSeen + i
		if hit := j.leftHit[l>>6]&(1<<(l&63)) != 0; hit == (j.spec.Kind == SemiJoin) {
			j.alone = append(j.alone, int32(i))
		}
	}
	return j.give(0, out)
}

// padRight gives the right rows of the block that have not matched.
func (j *windowHashJoin) padRight(out exec.Emitter) error {
	j.alone = j.alone[:0]
	for i, hit := range j.hit {
		if !hit {
			j.alone = append(j.alone, int32(i))
		}
	}
	return j.give(1, out)
}

// give gives the rows in alone of a side, with NULL for the other one.
func (j *windowHashJoin) give(side int, out exec.Emitter) error {
	w := len(j.cols[0].Cols)
	for rest := j.alone; len(rest) > 0; {
		some := rest[:min(len(rest), batch.Size)]
		rest = rest[len(some):]
		for i, c := range j.padded.Cols {
			from, at := 0, i
			if i >= w {
				from, at = 1, i-w
			}
			if from == side {
				c.AppendRows(j.at[side].Cols[at], some)
				continue
			}
			for range some {
				c.AppendNull()
			}
		}
		j.padded.RowsDone(len(some))
		if j.padded.Full() {
			if err := j.flush(out); err != nil {
				return err
			}
		}
	}
	return nil
}

// flush emits what give collected.
func (j *windowHashJoin) flush(out exec.Emitter) error { return flush(j.padded, out) }
