package planner

import (
	"fmt"
	"slices"
	"strings"

	"github.com/streamsql/streamsql/exec"
	"github.com/streamsql/streamsql/exec/op"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// Filter keeps the rows for which Cond is TRUE.
type Filter struct {
	In   Node
	Cond expr.Expr
}

func (n *Filter) Inputs() []Node { return []Node{n.In} }

func (n *Filter) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Filter) Fields() []Field { return n.In.Fields() }

func (n *Filter) label() string { return fmt.Sprintf("Filter(condition=[%s])", n.Cond) }

func (n *Filter) identity(w *identity) { w.put("where", n.Cond) }

// Project computes Exprs over each row.
type Project struct {
	In    Node
	Exprs []expr.Expr
	Names []string
}

func (n *Project) Inputs() []Node { return []Node{n.In} }

func (n *Project) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node. A plain column keeps its time attribute; anything computed from it loses it.
func (n *Project) Fields() []Field { return projectFields(n.In.Fields(), n.Exprs, n.Names) }

func (n *Project) label() string {
	return fmt.Sprintf("Project(select=[%s])", projection(n.Exprs, n.Names))
}

func (n *Project) identity(w *identity) { w.put("select", n.Exprs) }

// Calc filters by Cond (nil = all rows) and then projects: what a chain of Filter and Project becomes.
type Calc struct {
	In    Node
	Cond  expr.Expr
	Exprs []expr.Expr
	Names []string
	// Own, over a shared scan, is what the reader alone would scan: identities rest on it, as what other readers of the table
	// want says nothing about the state above this one. nil = In is not shared.
	Own *Scan
}

func (n *Calc) Inputs() []Node { return []Node{n.In} }

func (n *Calc) withInputs(in []Node) Node { c := *n; c.In = in[0]; return &c }

// Fields implements Node.
func (n *Calc) Fields() []Field { return projectFields(n.In.Fields(), n.Exprs, n.Names) }

func (n *Calc) label() string {
	s := "Calc(select=[" + projection(n.Exprs, n.Names) + "]"
	if n.Cond != nil {
		s += ", where=[" + n.Cond.String() + "]"
	}
	return s + ")"
}

func (n *Calc) identity(w *identity) {
	w.put("where", n.Cond)
	w.put("select", n.Exprs)
}

func projectFields(in []Field, exprs []expr.Expr, names []string) []Field {
	out := make([]Field, len(exprs))
	for i, e := range exprs {
		out[i] = Field{Name: names[i], Type: e.Type()}
		if c, ok := e.(*expr.Column); ok && c.Index < len(in) {
			out[i].Time = in[c.Index].Time
		} else if isProctime(e) {
			out[i].Time = Proctime
		}
	}
	return out
}

func projection(list []expr.Expr, names []string) string {
	s := make([]string, len(list))
	for i, e := range list {
		s[i] = e.String()
		if s[i] != names[i] {
			s[i] += " AS " + names[i]
		}
	}
	return strings.Join(s, ", ")
}

func (n *Filter) pushFilter(c expr.Expr) (Node, bool) {
	x, ok := pushOne(n.In, c)
	if !ok {
		return &Filter{In: n.In, Cond: expr.And(n.Cond, c)}, true
	}
	return &Filter{In: x, Cond: n.Cond}, true
}

func (n *Project) pushFilter(c expr.Expr) (Node, bool) {
	for _, i := range expr.ColumnsOf(c) {
		if !expr.IsDeterministic(n.Exprs[i]) {
			return nil, false
		}
	}
	return &Project{In: addFilter(n.In, substitute(c, n.Exprs)), Exprs: n.Exprs, Names: n.Names}, true
}

func (n *Calc) slug() string   { return "calc" }
func (n *Calc) stateful() bool { return false }

// settle: with +U alone, a row that leaves the filter by an update would stay; only a filter by a key cannot meet that.
func (n *Calc) settle(p *phys, d demand, t *Trait, apply bool) bool {
	if d.Update == OnlyAfter && n.Cond != nil && t.Kinds&^Inserts != 0 && !filterInsideKey(n.Cond, p.in[0].keys) {
		return false
	}
	ok := p.settleInput(0, d, apply)
	t.Delete = p.in[0].deleteKind(d, t.Kinds)
	return ok
}

func (n *Calc) deleteKind(p *phys, d demand, k Kinds) DeleteKind { return p.in[0].deleteKind(d, k) }

// filterInsideKey reports that all columns of cond are in one of the keys: an update of a row then passes the filter
// before and after or neither.
func filterInsideKey(cond expr.Expr, keys [][]int) bool {
	cols := expr.ColumnsOf(cond)
	return expr.IsDeterministic(cond) && slices.ContainsFunc(keys, func(k []int) bool { return subset(cols, k) })
}

func (n *Calc) upsertKeys(p *phys) [][]int { return projectKeys(p.in[0].keys, n.Exprs) }

// projectKeys maps keys through a projection: each key column must come out as itself or through an injective cast.
func projectKeys(keys [][]int, exprs []expr.Expr) [][]int {
	at := map[int][]int{} // input column → output columns that identify it
	for i, e := range exprs {
		if c, ok := injective(e); ok {
			at[c] = append(at[c], i)
		}
	}
	var out [][]int
	for _, key := range keys {
		variants := [][]int{{}}
		for _, c := range key {
			var next [][]int
			for _, v := range variants {
				for _, o := range at[c] {
					next = append(next, append(slices.Clone(v), o))
				}
			}
			variants = next
		}
		for _, v := range variants {
			slices.Sort(v)
			if len(out) < maxKeys {
				out = append(out, v)
			}
		}
	}
	return out
}

// injective returns the column that e maps one to one: itself, or under casts that lose nothing.
func injective(e expr.Expr) (int, bool) {
	switch e := e.(type) {
	case *expr.Column:
		return e.Index, true
	case *expr.Cast:
		if lossless(e.X.Type(), e.T) {
			return injective(e.X)
		}
	}
	return 0, false
}

// lossless reports casts whose results differ for different values.
func lossless(from, to types.Type) bool {
	switch {
	case from.SameIgnoringNull(to):
		return true
	case from.IsInteger():
		return to.IsInteger() && to.Kind >= from.Kind || to.Kind == types.Varchar && to.Precision >= 20 ||
			to.Kind == types.Double && from.Kind <= types.Int || to.Kind == types.Decimal && to.Precision-to.Scale >= 19
	case from.Kind == types.Boolean, from.Kind == types.Date:
		return to.Kind == types.Varchar && to.Precision >= 10
	case from.IsString():
		return to.Kind == types.Varchar && to.Precision >= from.Precision
	case from.IsBytes():
		return to.Kind == types.Varbinary && to.Precision >= from.Precision
	case from.Kind == types.Timestamp && to.Kind == types.Timestamp:
		return to.Precision >= from.Precision
	}
	return false
}

func (n *Calc) distribute(_ *builder, p *phys) error {
	p.par = p.in[0].par
	p.dist = projectDist(p.in[0].dist, n)
	return nil
}

// projectDist follows distribution columns through a projection; lost when one is not a plain column of the output.
func projectDist(dist []int, n *Calc) []int {
	if dist == nil {
		return nil
	}
	out := make([]int, len(dist))
	for i, d := range dist {
		out[i] = -1
		for j, e := range n.Exprs {
			if c, ok := e.(*expr.Column); ok && c.Index == d {
				out[i] = j
				break
			}
		}
		if out[i] < 0 {
			return nil
		}
	}
	return out
}

func (n *Calc) prune(need []bool) (Node, []int) { return pruneCalc(n, need) }

func pruneCalc(n *Calc, need []bool) (Node, []int) {
	in := make([]bool, len(n.In.Fields()))
	mark(in, n.Cond)
	for i, e := range n.Exprs {
		if need[i] {
			mark(in, e)
		}
	}
	x, im := prune(n.In, in)
	c, m := &Calc{In: x}, make([]int, len(need))
	if n.Cond != nil {
		c.Cond = expr.Remap(n.Cond, im)
	}
	for i, e := range n.Exprs {
		m[i] = -1
		if need[i] {
			m[i] = len(c.Exprs)
			c.Exprs, c.Names = append(c.Exprs, expr.Remap(e, im)), append(c.Names, n.Names[i])
		}
	}
	// A Calc that became the identity disappears, and its columns are the input's own.
	return mergeCalc(c), m
}

func (n *Calc) lower(l *lowering, x *exec.Node, _ *phys) {
	x.Operator = op.NewCalc(op.CalcSpec{Filter: n.Cond, Project: n.Exprs, Session: l.b.session})
}
