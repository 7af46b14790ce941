package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
)

// NewUnion is UNION ALL: the rows of every input port, in the order they come. The columns of all inputs have the same
// types. The gate in front of it makes the minimum of the inputs' watermarks.
func NewUnion() func() exec.Operator { return func() exec.Operator { return &union{} } }

type union struct{ exec.Stateless }

// Open implements exec.Operator.
func (u *union) Open(exec.Subtask) error { return nil }

// Process implements exec.Operator.
func (u *union) Process(_ int, b *batch.Batch, out exec.Emitter) error { return out.Emit(b) }
