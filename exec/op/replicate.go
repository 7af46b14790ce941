package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// NewReplicate gives each row of in, without its last column, as often as that BIGINT column says (Flink's replicate
// rows, behind INTERSECT ALL and EXCEPT ALL). Kinds stay: an update takes all old copies back and gives all new ones.
func NewReplicate(in *types.Schema) func() exec.Operator {
	return func() exec.Operator {
		w := len(in.Columns) - 1
		return &replicate{width: w, out: batch.NewBuilder(&types.Schema{Columns: in.Columns[:w]})}
	}
}

type replicate struct {
	exec.Stateless
	width int
	sel   []int32 // a row of the batch per row of out
	out   *batch.Builder
}

// Open implements exec.Operator.
func (p *replicate) Open(exec.Subtask) error { return nil }

// Process implements exec.Operator.
func (p *replicate) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	times := b.Cols[p.width]
	for i := range b.Len() {
		r := b.Row(i)
		if times.IsNull(r) {
			continue
		}
		for n := times.I64[times.Idx(r)]; n > 0; n-- {
			p.sel = append(p.sel, int32(r))
			p.out.RowKindDone(b.Kind(r))
			if p.out.Full() {
				if err := p.emit(b, out); err != nil {
					return err
				}
			}
		}
	}
	return p.emit(b, out)
}

// emit gives the rows in sel.
func (p *replicate) emit(b *batch.Batch, out exec.Emitter) error {
	for i, c := range p.out.Cols {
		c.AppendRows(b.Cols[i], p.sel)
	}
	p.sel = p.sel[:0]
	return flush(p.out, out)
}
