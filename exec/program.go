package exec

import (
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// evaluator computes the columns of a projection.
type evaluator interface {
	Eval(b *batch.Batch) ([]*batch.Vec, error)
}

// compile makes the evaluator of exprs: by pointer when they only pick columns, else a Program.
func compile(exprs []expr.Expr, s expr.Session) (evaluator, error) {
	picks := make([]int, 0, len(exprs))
	for _, e := range exprs {
		if c, ok := e.(*expr.Column); ok {
			picks = append(picks, c.Index)
		}
	}
	if len(picks) == len(exprs) {
		return &picker{cols: picks, out: make([]*batch.Vec, len(picks))}, nil
	}
	return expr.Compile(exprs, s)
}

// picker selects columns.
type picker struct {
	cols []int
	out  []*batch.Vec
}

// Eval implements evaluator.
func (p *picker) Eval(b *batch.Batch) ([]*batch.Vec, error) {
	for i, c := range p.cols {
		p.out[i] = b.Cols[c]
	}
	return p.out, nil
}
