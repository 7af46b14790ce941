package expr

import (
	"slices"
	"time"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

//go:generate go run gen/main.go

// A Program is a DAG of nodes, one per distinct sub-expression. A node computes a whole column for a selection of rows:
// AND, OR, CASE and COALESCE evaluate their later operands for fewer rows when that can pay. A node with several parents
// is computed once: for all rows of the Eval, or, when it is costly, for the rows that one of the parents needs.
//
// An error belongs to a row. The row's value becomes NULL, so that kernels above pass over it, and the error travels up
// beside the column until an operator that does not need the row drops it or the root reports it.

// Program evaluates expressions over batches. It owns the result vectors: they are valid until the next Eval.
type Program struct {
	roots []*node
	exprs []Expr // what the roots compute
	out   []*batch.Vec
	ctx   *evalCtx
}

// Compile builds a Program that evaluates es. Constants are folded first.
func Compile(es []Expr, s Session) (*Program, error) {
	return compileFolded(es, newCompiler(s))
}

func compileFolded(es []Expr, c *compiler) (*Program, error) {
	folded := make([]Expr, len(es))
	for i, e := range es {
		f, err := Fold(e, c.session)
		if err != nil {
			return nil, err
		}
		folded[i] = f
	}
	return compile(folded, c)
}

func compile(es []Expr, c *compiler) (*Program, error) {
	p := &Program{exprs: es, out: make([]*batch.Vec, len(es)), ctx: c.ctx}
	for _, e := range es {
		n, err := c.node(e)
		if err != nil {
			return nil, err
		}
		p.roots = append(p.roots, n)
	}
	return p, nil
}

// Eval computes the expressions for the selected rows of b; rows outside b.Sel have arbitrary values. The vectors are
// read-only, one per expression; an expression that is a column is the batch's own vector, a constant is a Const vector. The error is a *RowError, of
// the first row that has one.
func (p *Program) Eval(b *batch.Batch) ([]*batch.Vec, error) {
	p.ctx.begin(b)
	return p.eval(b)
}

// eval is Eval in an evaluation that has begun, for b or part of its rows.
func (p *Program) eval(b *batch.Batch) ([]*batch.Vec, error) {
	p.ctx.b = b
	for i, n := range p.roots {
		p.out[i] = n.eval(p.ctx, b.Sel)
		if err := n.firstError(b.Sel, p.exprs[i]); err != nil {
			return nil, err
		}
	}
	return p.out, nil
}

// clock is the time source of the now-functions of one Program.
type clock struct {
	fixed, now time.Time
	marked     bool  // a Calc, which knows the watermark
	mark       int64 // ms, math.MinInt64 before the first one
}

// Instant is the time CURRENT_TIMESTAMP shows for the batch being evaluated: Now when it is set, else the moment of the
// first call for the batch. Valid in the Eval of a function made with this Session.
func (s Session) Instant() time.Time {
	if s.clock == nil {
		if s.Now.IsZero() {
			return time.Now()
		}
		return s.Now
	}
	if s.clock.now.IsZero() {
		s.clock.now = time.Now()
	}
	return s.clock.now
}

// evalCtx is the state of one Eval.
type evalCtx struct {
	b     *batch.Batch
	n     int
	seq   uint64
	ident []int32 // 0, 1, 2, …
	clock clock
}

func (c *evalCtx) begin(b *batch.Batch) {
	c.b, c.n = b, b.N
	c.seq++
	c.clock.now = c.clock.fixed
	for i := len(c.ident); i < c.n; i++ {
		c.ident = append(c.ident, int32(i))
	}
}

// rows is sel as an explicit list.
func (c *evalCtx) rows(sel []int32) []int32 {
	if sel == nil {
		return c.ident[:c.n]
	}
	return sel
}

// rowErr is an error of one row.
type rowErr struct {
	row  int32
	err  *diag.Error
	expr Expr
}

// node computes one expression.
type node struct {
	expr   Expr
	kids   []*node
	run    func(c *evalCtx, n *node, sel []int32)
	lazy   bool // costly or fallible: worth evaluating for fewer rows
	shared bool // several parents
	seq    uint64

	memo   *memo        // of lazy nodes with several parents
	vec    *batch.Vec   // result of the last run
	out    batch.Vec    // own memory for results
	valid  []uint64     // own memory for out.Valid
	branch *branchState // of CASE and COALESCE
	arena  *arena       // of kernels that build strings
	args   []*batch.Vec
	errs   []rowErr
}

func (n *node) eval(c *evalCtx, sel []int32) *batch.Vec {
	switch {
	case n.shared && n.lazy:
		return n.evalMissing(c, sel)
	case n.shared:
		if n.seq == c.seq {
			return n.vec
		}
		n.seq = c.seq
		sel = c.b.Sel
	}
	n.errs = n.errs[:0]
	n.run(c, n, sel)
	return n.vec
}

// firstError is the error of the first of the given rows that has one. A shared node may have errors of other rows, and
// stand for an equal expression elsewhere: the error's place is in what is evaluated, within; nil = where the node is from.
func (n *node) firstError(sel []int32, within Expr) error {
	var first *rowErr
	for i := range n.errs {
		e := &n.errs[i]
		if (first == nil || e.row < first.row) && selected(sel, e.row) {
			first = e
		}
	}
	if first == nil {
		return nil
	}
	err := first.err
	at := first.expr
	if within != nil {
		found := false
		Walk(within, func(x Expr) bool {
			if found = found || x == first.expr; !found && at == first.expr && Equal(x, first.expr) {
				at = x
			}
			return !found
		})
		if found {
			at = first.expr
		}
	}
	if pos := placeOf(at); pos != nil && pos.Known() && !err.Pos.Known() {
		placed := *err // which may be one for all rows
		placed.Pos, err = *pos, &placed
	}
	return &RowError{Row: int(first.row), Expr: first.expr.String(), Err: err}
}

// selected reports whether row is in sel (ascending; nil = all).
func selected(sel []int32, row int32) bool {
	if sel == nil {
		return true
	}
	_, ok := slices.BinarySearch(sel, row)
	return ok
}

// begin readies n.out for rows results and makes it n's result.
func (n *node) begin(rows int) *batch.Vec {
	n.out.Resize(rows)
	n.vec = &n.out
	return &n.out
}

// setNull makes row r of n.out NULL; rows is the column's length.
func (n *node) setNull(r, rows int) {
	if n.out.Valid == nil {
		n.valid = batch.AllValid(n.valid, rows)
		n.out.Valid = n.valid
	}
	n.out.Valid[r>>6] &^= 1 << (r & 63)
}

// fail records an error of row r and makes its value NULL.
func (n *node) fail(r, rows int, err *diag.Error) {
	n.errs = append(n.errs, rowErr{int32(r), err, n.expr})
	n.setNull(r, rows)
}

// andValid makes n.out NULL where an argument is. Const arguments count for every row.
func (n *node) andValid(args []*batch.Vec, rows int) {
	words := (rows + 63) >> 6
	for _, a := range args {
		switch {
		case a.Valid == nil || a.Const && a.Valid[0]&1 != 0:
		case a.Const:
			n.valid = batch.AllValid(n.valid, rows)
			clear(n.valid)
			n.out.Valid = n.valid
			return
		case n.out.Valid == nil:
			n.valid = batch.AllValid(n.valid, rows)
			copy(n.valid, a.Valid[:words])
			n.out.Valid = n.valid
		default:
			for i, w := range a.Valid[:words] {
				n.out.Valid[i] &= w
			}
		}
	}
}

// strict wraps a kernel whose result is NULL when an argument is. It evaluates the children, ANDs validity and passes
// errors on; when all arguments are Const it computes one row. dense kernels cannot fail and may also compute rows
// outside the selection.
func strict(t types.Type, dense bool, k func(c *evalCtx, n *node, args []*batch.Vec, out *batch.Vec, sel []int32, rows int)) func(
	*evalCtx, *node, []int32) {
	var args []*batch.Vec
	return func(c *evalCtx, n *node, sel []int32) {
		args = args[:0]
		allConst := len(n.kids) > 0
		for _, kid := range n.kids {
			v := kid.eval(c, sel)
			args = append(args, v)
			allConst = allConst && v.Const
		}
		rows, ksel := c.n, sel
		if allConst {
			rows, ksel = 1, nil
		} else if dense && len(sel)*10 > rows*3 {
			ksel = nil
		}
		out := n.begin(rows)
		n.andValid(args, rows)
		k(c, n, args, out, ksel, rows)
		out.Const = allConst
		if allConst {
			n.spreadError(c.rows(sel))
		}
		n.inherit(n.kids)
	}
}

// spreadError makes the error of a Const result that of every row.
func (n *node) spreadError(rows []int32) {
	if len(n.errs) == 0 {
		return
	}
	e := n.errs[0]
	n.errs = n.errs[:0]
	for _, r := range rows {
		n.errs = append(n.errs, rowErr{r, e.err, e.expr})
	}
}

// inherit adds the children's errors to n's.
func (n *node) inherit(kids []*node) {
	for _, k := range kids {
		n.errs = append(n.errs, k.errs...)
	}
}

// inheritRows adds the errors of k in the given rows (ascending) to n's.
func (n *node) inheritRows(k *node, rows []int32) {
	for _, e := range k.errs {
		if rows != nil && selected(rows, e.row) {
			n.errs = append(n.errs, e)
		}
	}
}
