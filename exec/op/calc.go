package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
)

// CalcSpec describes a filter and a projection in one step.
type CalcSpec struct {
	// Filter keeps the rows for which it is TRUE; nil keeps all. Over the input.
	Filter expr.Expr
	// Project are the output columns, over the input; nil passes the input's columns on.
	Project []expr.Expr
	Session expr.Session
}

// NewCalc filters, then projects. Row kinds pass through: an updating stream's -U and +U are filtered each on its own
// values, as Flink's Calc does. A row's error counts only if the filter keeps the row.
func NewCalc(spec CalcSpec) func() exec.Operator {
	return func() exec.Operator { return &calc{spec: spec} }
}

type calc struct {
	exec.Stateless
	spec CalcSpec
	calc *expr.Calc
}

// Open implements exec.Operator.
func (c *calc) Open(exec.Subtask) (err error) {
	c.calc, err = expr.CompileCalc(c.spec.Filter, c.spec.Project, c.spec.Session)
	return err
}

// OnWatermark implements exec.Operator.
func (c *calc) OnWatermark(w exec.Watermark, _ exec.Emitter) error {
	c.calc.SetWatermark(int64(w))
	return nil
}

// Process implements exec.Operator.
func (c *calc) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	b, err := c.calc.Apply(b)
	if err != nil || b.Len() == 0 {
		return err
	}
	return out.Emit(b)
}
