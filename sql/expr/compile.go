package expr

import (
	"fmt"
	"slices"

	"github.com/streamsql/streamsql/sql/batch"
	"github.com/streamsql/streamsql/sql/diag"
	"github.com/streamsql/streamsql/sql/types"
)

// compiler turns expressions into nodes, one per distinct expression.
type compiler struct {
	session Session
	ctx     *evalCtx
	nodes   map[int]*node
	ids     map[Expr]int   // by identity
	byKey   map[string]int // by operator and ids of the operands
	worths  map[Expr]worth
	splits  map[splitKey]*splitPlace
}

func newCompiler(s Session) *compiler {
	ctx := &evalCtx{}
	s.clock = &ctx.clock
	s.clock.fixed = s.Now
	return &compiler{session: s, ctx: ctx, nodes: map[int]*node{}, ids: map[Expr]int{}, byKey: map[string]int{}, worths: map[Expr]worth{}}
}

// id numbers expressions: equal ones get the same number, but calls of volatile functions only when they are one object.
func (c *compiler) id(e Expr) int {
	if id, ok := c.ids[e]; ok {
		return id
	}
	var sb identity
	sb.head(e)
	for _, k := range e.Children() {
		fmt.Fprintf(&sb, "|%d", c.id(k))
	}
	id := len(c.ids) + 1
	call, ok := e.(*Call)
	if known, found := c.byKey[sb.String()]; found && !(ok && call.Bound.Volatile) {
		id = known
	}
	c.byKey[sb.String()] = id
	c.ids[e] = id
	return id
}

func (c *compiler) node(e Expr) (*node, error) {
	id := c.id(e)
	if n := c.nodes[id]; n != nil {
		n.shared = true
		return n, nil
	}
	n := &node{expr: e}
	n.out.Type = e.Type()
	if err := c.build(n, e); err != nil {
		return nil, err
	}
	for _, k := range n.kids {
		n.lazy = n.lazy || k.lazy
	}
	c.nodes[id] = n
	return n, nil
}

// kids compiles the operands of n.
func (c *compiler) kids(n *node, es ...Expr) error {
	for _, e := range es {
		k, err := c.node(e)
		if err != nil {
			return err
		}
		n.kids = append(n.kids, k)
	}
	return nil
}

func (c *compiler) build(n *node, e Expr) error {
	switch e := e.(type) {
	case *Column:
		n.run = func(c *evalCtx, n *node, _ []int32) { n.vec = c.b.Cols[e.Index] }
		return nil
	case *Literal:
		n.vec = batch.NewConst(e.T, e.Value)
		n.run = func(*evalCtx, *node, []int32) {}
		return nil
	case *Binary:
		return c.binary(n, e)
	case *Unary:
		return c.unary(n, e)
	case *Is:
		n.run = isKernel(e)
	case *In:
		n.run, n.lazy = strict(e.Type(), true, inKernel(e)), true
	case *Like:
		return c.like(n, e)
	case *Case:
		return c.caseOf(n, e)
	case *Coalesce:
		n.run, n.lazy = runCoalesce, true
	case *Cast:
		return c.cast(n, e)
	case *Item:
		k := itemKernel(e)
		if e.X.Type().Kind == types.Variant {
			k = variantItemKernel(e)
		}
		n.run, n.lazy = strict(e.T, false, k), true
	case *FieldRef:
		n.run, n.lazy = strict(e.T, false, fieldKernel(e)), true
	case *Construct:
		n.run, n.lazy = runConstruct, true
	case *Call:
		return c.call(n, e)
	default:
		return diag.New(diag.Internal, diag.Pos{}, "expression %T has no kernel", e)
	}
	return c.kids(n, e.Children()...)
}

func (c *compiler) caseOf(n *node, e *Case) error {
	if x, texts := textSwitch(e); x != nil {
		n.run, n.lazy = switchKernel(texts), true
		return c.kids(n, slices.Concat([]Expr{x}, e.Then, []Expr{e.Else})...)
	}
	n.run, n.lazy = runCase, true
	err := c.kids(n, e.Children()...)
	if err == nil && blendable(n) {
		n.run, n.lazy = runBlend, false
	}
	return err
}

// callKernel evaluates a registered function.
func callKernel(e *Call, s Session) func(*evalCtx, *node, []int32) {
	eval := e.Bound.NewEval(s)
	var args []*batch.Vec
	var rowMem []int32
	return func(c *evalCtx, n *node, sel []int32) {
		args = args[:0]
		allConst := len(n.kids) > 0 && !e.Bound.Volatile && !e.Bound.Dynamic
		for _, k := range n.kids {
			v := k.eval(c, sel)
			args = append(args, v)
			allConst = allConst && v.Const
		}
		count, rows := c.n, c.rows(sel)
		if allConst {
			count = 1
			rows = c.ident[:min(1, len(rows))]
		}
		out := n.begin(count)
		if e.Bound.Strict {
			n.andValid(args, count)
			if n.out.Valid != nil {
				rowMem = validRows(rowMem[:0], out, rows)
				rows = rowMem
			}
		}
		eval(args, rows, count, out, func(row int32, err *diag.Error) {
			n.fail(int(row), count, err)
		})
		out.Const = allConst
		if allConst {
			n.spreadError(c.rows(sel))
		}
		if allConst && c.n == 0 && out.Valid == nil && len(rows) == 0 {
			n.setNull(0, 1)
		}
		n.inherit(n.kids)
	}
}

// validRows appends the rows that are not NULL in v.
func validRows(dst []int32, v *batch.Vec, rows []int32) []int32 {
	for _, r := range rows {
		if v.Valid[r>>6]&(1<<(r&63)) != 0 {
			dst = append(dst, r)
		}
	}
	return dst
}
