package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// NewDropUpdateBefore leaves -U rows out, for a consumer that addresses rows by key and wants +U alone (Flink:
// DropUpdateBefore).
func NewDropUpdateBefore() func() exec.Operator {
	return func() exec.Operator { return &dropUpdateBefore{} }
}

type dropUpdateBefore struct {
	exec.Stateless
	sel []int32
	out batch.Batch
}

// Open implements exec.Operator.
func (d *dropUpdateBefore) Open(exec.Subtask) error { return nil }

// Process implements exec.Operator.
func (d *dropUpdateBefore) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Kinds == nil {
		return out.Emit(b)
	}
	d.sel = d.sel[:0]
	for i, n := 0, b.Len(); i < n; i++ {
		if r := b.Row(i); b.Kinds[r] != types.UpdateBefore {
			d.sel = append(d.sel, int32(r))
		}
	}
	if len(d.sel) == 0 {
		return nil
	}
	d.out = *b
	d.out.Sel = d.sel
	return out.Emit(&d.out)
}
