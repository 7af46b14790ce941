package op

import (
	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// CorrelateSpec describes CROSS|LEFT JOIN LATERAL TABLE(f(Call.Args)).
type CorrelateSpec struct {
	Call    expr.BoundTable
	Left    bool // a row for which the function makes none stays, padded with NULLs
	Session expr.Session
	Output  *types.Schema // the input's columns, then those of Call
}

// NewCorrelate repeats each row for every row that a table function makes of it (Flink: Correlate). Row kinds pass
// through, so a function must make the same rows of the same row again.
func NewCorrelate(spec CorrelateSpec) func() exec.Operator {
	return func() exec.Operator { return &correlate{spec: spec} }
}

type correlate struct {
	exec.Stateless
	spec CorrelateSpec
	args *expr.Calc
	eval expr.TableEval
	made *batch.Builder // rows of the function for one input row
	out  *batch.Builder
}

// Open implements exec.Operator.
func (c *correlate) Open(exec.Subtask) (err error) {
	c.out = batch.NewBuilder(c.spec.Output)
	c.made = batch.NewBuilder(&types.Schema{Columns: c.spec.Call.Columns})
	c.eval = c.spec.Call.NewEval(c.spec.Session)
	c.args, err = expr.CompileCalc(nil, c.spec.Call.Args, c.spec.Session)
	return err
}

// OnWatermark implements exec.Operator.
func (c *correlate) OnWatermark(w exec.Watermark, _ exec.Emitter) error {
	c.args.SetWatermark(int64(w))
	return nil
}

// Process implements exec.Operator.
func (c *correlate) Process(_ int, b *batch.Batch, out exec.Emitter) error {
	args, err := c.args.Apply(b)
	if err != nil {
		return err
	}
	for i, n := 0, b.Len(); i < n; i++ {
		r := b.Row(i)
		c.made.Reset()
		if e := c.eval(args.Cols, r, c.made); e != nil {
			return &expr.RowError{Row: r, Expr: "LATERAL TABLE", Err: e}
		}
		if err := c.emit(b, r, c.made.Finish(), out); err != nil {
			return err
		}
	}
	return flush(c.out, out)
}

// emit appends input row r once for each row made.
func (c *correlate) emit(b *batch.Batch, r int, made *batch.Batch, out exec.Emitter) error {
	rows := made.N
	if rows == 0 && c.spec.Left {
		rows = 1
	}
	width := len(b.Cols)
	for k := range rows {
		for i, v := range b.Cols {
			c.out.Cols[i].AppendFrom(v, r)
		}
		for i, v := range made.Cols {
			if made.N == 0 {
				c.out.Cols[width+i].AppendNull()
			} else {
				c.out.Cols[width+i].AppendFrom(v, k)
			}
		}
		c.out.RowKindDone(b.Kind(r))
		if c.out.Full() {
			if err := flush(c.out, out); err != nil {
				return err
			}
		}
	}
	return nil
}
