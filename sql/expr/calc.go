package expr

import (
	"math"

	"github.com/streamsql/streamsql/sql/batch"
)

// Calc is a Filter and a Program over the rows it keeps. What both compute is computed once.
type Calc struct {
	filter *Filter  // nil keeps all rows
	prog   *Program // nil passes the columns on
	ctx    *evalCtx
	out    batch.Batch
}

// CompileCalc builds a Calc of a BOOLEAN expression, nil for none, and expressions, nil for the input's columns.
func CompileCalc(filter Expr, project []Expr, s Session) (*Calc, error) {
	c := newCompiler(s)
	c.ctx.clock.marked, c.ctx.clock.mark = true, math.MinInt64
	x := &Calc{ctx: c.ctx}
	var err error
	if filter != nil {
		if x.filter, err = compileFilter(filter, c); err != nil {
			return nil, err
		}
	}
	if project != nil {
		x.prog, err = compileFolded(project, c)
	}
	return x, err
}

// SetWatermark tells what CURRENT_WATERMARK is from now on, in ms.
func (x *Calc) SetWatermark(ms int64) { x.ctx.clock.mark = ms }

// Apply filters and projects b. Row kinds pass through. The result is valid until the next Apply and may share b's
// columns. An error of an expression counts only for rows that are kept. The error is a *RowError.
func (x *Calc) Apply(b *batch.Batch) (*batch.Batch, error) {
	x.ctx.begin(b)
	if x.filter != nil {
		var err error
		if b, err = x.filter.apply(b); err != nil || b.Len() == 0 {
			return b, err
		}
	}
	if x.prog == nil {
		return b, nil
	}
	cols, err := x.prog.eval(b)
	if err != nil {
		return nil, err
	}
	x.out = batch.Batch{N: b.N, Sel: b.Sel, Kinds: b.Kinds, Cols: cols}
	return &x.out, nil
}
