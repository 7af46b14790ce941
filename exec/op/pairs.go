package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// pairs builds the joined rows of an operator: the columns of the left input, then those of the right. Candidates are
// collected and tested with the residual condition a batch at a time.
type pairs struct {
	left    int // columns of the left input
	rows    *batch.Builder
	padded  *batch.Builder
	filter  *expr.Filter // nil = every candidate is a match
	origins []int32      // per candidate, what the operator wants to know of a match
}

func newPairs(left int, output *types.Schema, cond expr.Expr, s expr.Session) (*pairs, error) {
	p := &pairs{left: left, rows: batch.NewBuilder(output), padded: batch.NewBuilder(output)}
	if cond == nil {
		return p, nil
	}
	var err error
	p.filter, err = expr.CompileFilter(cond, s)
	return p, err
}

// side are the columns of port's input in b.
func (p *pairs) side(b *batch.Builder, port int) []*batch.ColBuilder {
	if port == 0 {
		return b.Cols[:p.left]
	}
	return b.Cols[p.left:]
}

// candidate adds the pair of physical row r of b, which came in at port, and a row of the other side held in state.
func (p *pairs) candidate(port int, b *batch.Batch, r int, other []byte, k types.RowKind, origin int32) error {
	for i, c := range p.side(p.rows, port) {
		c.AppendFrom(b.Cols[i], r)
	}
	if _, err := exec.DecodeKey(other, p.side(p.rows, 1-port)); err != nil {
		p.rows.Abandon()
		return err
	}
	p.rows.RowKindDone(k)
	p.origins = append(p.origins, origin)
	return nil
}

// flush tests the candidates, calls matched with the origin of each match, and emits the matches.
func (p *pairs) flush(out exec.Emitter, matched func(origin int32) error) error {
	if p.rows.Len() == 0 {
		return nil
	}
	b := p.rows.Finish()
	if p.filter != nil {
		var err error
		if b, err = p.filter.Apply(b); err != nil {
			return err
		}
	}
	for i, n := 0, b.Len(); i < n; i++ {
		if err := matched(p.origins[b.Row(i)]); err != nil {
			return err
		}
	}
	if err := out.Emit(b); err != nil {
		return err
	}
	p.rows.Reset()
	p.origins = p.origins[:0]
	return nil
}

// pad emits physical row r of b, which came in at port, with NULL for the other side.
func (p *pairs) pad(port int, b *batch.Batch, r int, k types.RowKind, out exec.Emitter) error {
	for i, c := range p.side(p.padded, port) {
		c.AppendFrom(b.Cols[i], r)
	}
	return p.nulls(1-port, k, out)
}

// padStored is pad for a row held in state.
func (p *pairs) padStored(port int, row []byte, k types.RowKind, out exec.Emitter) error {
	if _, err := exec.DecodeKey(row, p.side(p.padded, port)); err != nil {
		p.padded.Abandon()
		return err
	}
	return p.nulls(1-port, k, out)
}

func (p *pairs) nulls(port int, k types.RowKind, out exec.Emitter) error {
	for _, c := range p.side(p.padded, port) {
		c.AppendNull()
	}
	p.padded.RowKindDone(k)
	if p.padded.Full() {
		return p.flushPadded(out)
	}
	return nil
}

// flushPadded emits what pad collected.
func (p *pairs) flushPadded(out exec.Emitter) error { return flush(p.padded, out) }

// anyNull tells whether one of the columns is NULL in physical row r.
func anyNull(b *batch.Batch, cols []int, r int) bool {
	for _, c := range cols {
		if b.Cols[c].IsNull(r) {
			return true
		}
	}
	return false
}

// plainKeys are the key columns that NULL does not match: those compared with = rather than IS NOT DISTINCT FROM.
func plainKeys(keys []int, nullSafe []bool) []int {
	var out []int
	for i, k := range keys {
		if i >= len(nullSafe) || !nullSafe[i] {
			out = append(out, k)
		}
	}
	return out
}

// rowtimeOf is the event time, in ms, of physical row r, in column col of rows of schema s.
func rowtimeOf(b *batch.Batch, s *types.Schema, col, r int) (int64, error) {
	v := b.Cols[col]
	if !v.IsNull(r) {
		return millis(v, v.Idx(r)), nil
	}
	return 0, nullTime(r, s.Columns[col].Name)
}
