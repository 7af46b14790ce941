package expr

import "github.com/streamsql/streamsql/sql/batch"

// Filter narrows the selection of batches to the rows where a condition is TRUE.
type Filter struct {
	prog *Program
	conj []conjunct
	mem  []int32
	out  batch.Batch
}

// conjunct is one operand of the condition's top-level ANDs. pick, if set, selects rows without building a column.
type conjunct struct {
	root *node
	pick func(n *node, args []*batch.Vec, dst, sel []int32) (int, bool)
	args []*batch.Vec
}

// CompileFilter builds a Filter for the BOOLEAN expression e. Its ANDs are evaluated left to right (but see cheapFirst), each for the
// rows the ones before left; so an error of a later operand does not surface where an earlier one is UNKNOWN.
func CompileFilter(e Expr, s Session) (*Filter, error) {
	return compileFilter(e, newCompiler(s))
}

func compileFilter(e Expr, c *compiler) (*Filter, error) {
	e, err := Fold(e, c.session)
	if err != nil {
		return nil, err
	}
	p, err := compile(c.cheapFirst(Conjuncts(e)), c)
	if err != nil {
		return nil, err
	}
	f := &Filter{prog: p}
	for _, n := range p.roots {
		c := conjunct{root: n}
		if b, ok := n.expr.(*Binary); ok && !n.shared {
			c.pick = picker(b, n)
		}
		f.conj = append(f.conj, c)
	}
	return f, nil
}

// Apply returns b with Sel narrowed to the rows where the condition is TRUE. The result is valid until the next Apply and
// shares b's columns. The error is a *RowError.
func (f *Filter) Apply(b *batch.Batch) (*batch.Batch, error) {
	f.prog.ctx.begin(b)
	return f.apply(b)
}

// apply is Apply in an evaluation that has begun for b.
func (f *Filter) apply(b *batch.Batch) (*batch.Batch, error) {
	if cap(f.mem) < b.N {
		f.mem = make([]int32, max(b.N, batch.Size))
	}
	sel := b.Sel
	for i := range f.conj {
		var err error
		if sel, err = f.narrow(&f.conj[i], sel); err != nil {
			return nil, err
		}
		if sel != nil && len(sel) == 0 {
			break
		}
	}
	f.out = *b
	f.out.Sel = sel
	return &f.out, nil
}

// narrow applies one conjunct. The selection it returns lies in f.mem, where it may overlap sel: kernels write behind
// their reads.
func (f *Filter) narrow(c *conjunct, sel []int32) ([]int32, error) {
	dst := f.mem[:f.prog.ctx.n]
	n := c.root
	if c.pick != nil {
		n.errs = n.errs[:0]
		c.args = c.args[:0]
		for _, k := range n.kids {
			c.args = append(c.args, k.eval(f.prog.ctx, sel))
		}
		n.inherit(n.kids)
		if err := n.firstError(sel, nil); err != nil {
			return nil, err
		}
		if m, ok := c.pick(n, c.args, dst, sel); ok {
			return f.picked(dst[:m], sel), nil
		}
	}
	v := n.eval(f.prog.ctx, sel)
	if err := n.firstError(sel, nil); err != nil {
		return nil, err
	}
	if v.Const {
		if v.Bool[0] && !v.IsNull(0) {
			return sel, nil
		}
		return dst[:0], nil
	}
	return f.picked(dst[:selectTrue(dst, v, sel, f.prog.ctx.n)], sel), nil
}

// picked keeps "all rows" as nil.
func (f *Filter) picked(dst, sel []int32) []int32 {
	if sel == nil && len(dst) == f.prog.ctx.n {
		return nil
	}
	return dst
}

// selectTrue collects the rows of sel where v is TRUE.
func selectTrue(dst []int32, v *batch.Vec, sel []int32, n int) int {
	j := 0
	vals := v.Bool
	switch {
	case sel == nil && v.Valid == nil:
		for i, t := range vals[:n] {
			dst[j] = int32(i)
			if t {
				j++
			}
		}
	case sel == nil:
		for i, t := range vals[:n] {
			dst[j] = int32(i)
			if t && v.Valid[i>>6]&(1<<(i&63)) != 0 {
				j++
			}
		}
	case v.Valid == nil:
		for _, r := range sel {
			dst[j] = r
			if vals[r] {
				j++
			}
		}
	default:
		for _, r := range sel {
			dst[j] = r
			if vals[r] && v.Valid[r>>6]&(1<<(r&63)) != 0 {
				j++
			}
		}
	}
	return j
}
