package op

import (
	"encoding/binary"

	"github.com/streamsql/streamsql/checkpoint"
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
)

// LimitSpec describes LIMIT and OFFSET without an order.
type LimitSpec struct{ Limit, Offset int64 }

// NewLimit passes Limit rows of an append-only input on, after Offset ones, in the order they arrive. It runs as one
// subtask. How many rows it has seen is its state.
func NewLimit(spec LimitSpec) func() exec.Operator {
	return func() exec.Operator { return &limit{spec: spec} }
}

type limit struct {
	exec.Stateless
	spec LimitSpec
	seen int64
	sel  []int32
	out  batch.Batch
}

// Open implements exec.Operator.
func (l *limit) Open(s exec.Subtask) error {
	for _, st := range s.Restored() {
		n, w := binary.Uvarint(st)
		if w <= 0 {
			return diag.New(diag.Internal, diag.Pos{}, "the state of LIMIT in the checkpoint is damaged")
		}
		l.seen += int64(n)
	}
	return nil
}

// Process implements exec.Operator.
func (l *limit) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	from, n := l.seen, int64(b.Len())
	l.seen += n
	lo, hi := max(0, l.spec.Offset-from), min(n, l.spec.Offset+l.spec.Limit-from)
	switch {
	case lo >= hi:
		return nil
	case lo == 0 && hi == n:
		return out.Emit(b)
	}
	l.sel = l.sel[:0]
	for i := lo; i < hi; i++ {
		l.sel = append(l.sel, int32(b.Row(int(i))))
	}
	l.out = *b
	l.out.Sel = l.sel
	return out.Emit(&l.out)
}

// OnBarrier implements exec.Operator.
func (l *limit) OnBarrier(checkpoint.Barrier, exec.Emitter) ([]byte, error) {
	return binary.AppendUvarint(nil, uint64(l.seen)), nil
}
