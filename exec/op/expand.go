package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/types"
)

// ExpandSpec describes the copies of every row that GROUPING SETS, ROLLUP and CUBE group: one per grouping set.
type ExpandSpec struct {
	Nulls  [][]int       // per copy: the columns that are NULL in it
	IDs    []int64       // per copy: its id
	Output *types.Schema // the input's columns, then the id
}

// NewExpand emits each input batch once per grouping set, with the columns that are not grouped there as NULL and the
// set's id appended. Kinds are kept. Columns are shared, not copied.
func NewExpand(spec ExpandSpec) func() exec.Operator {
	return func() exec.Operator { return &expand{spec: spec} }
}

type expand struct {
	exec.Stateless
	spec  ExpandSpec
	ids   []*batch.Vec
	nulls []*batch.Vec // by column, nil where no copy needs it
	out   batch.Batch
}

// Open implements exec.Operator.
func (e *expand) Open(exec.Subtask) error {
	n := len(e.spec.Output.Columns) - 1
	e.nulls = make([]*batch.Vec, n)
	for i, cols := range e.spec.Nulls {
		e.ids = append(e.ids, batch.NewConst(e.spec.Output.Columns[n].Type, types.IntDatum(e.spec.IDs[i])))
		for _, c := range cols {
			if e.nulls[c] == nil {
				e.nulls[c] = batch.NewConst(e.spec.Output.Columns[c].Type, types.NullDatum)
			}
		}
	}
	return nil
}

// Process implements exec.Operator.
func (e *expand) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	if b.Len() == 0 {
		return nil
	}
	for i, cols := range e.spec.Nulls {
		e.out = batch.Batch{N: b.N, Sel: b.Sel, Kinds: b.Kinds, Cols: append(e.out.Cols[:0], b.Cols...)}
		for _, c := range cols {
			e.out.Cols[c] = e.nulls[c]
		}
		e.out.Cols = append(e.out.Cols, e.ids[i])
		if err := out.Emit(&e.out); err != nil {
			return err
		}
	}
	return nil
}
