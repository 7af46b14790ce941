package planner

import (
	"cmp"
	"slices"

	"github.com/streamsql/streamsql/catalog"
	"github.com/streamsql/streamsql/sql/expr"
	"github.com/streamsql/streamsql/sql/types"
)

// readFields lets a scan read single fields of its ROW columns where the Calc above needs nothing else of them (Flink:
// nested projection push-down). It comes after prune-columns: what is left of the Calc is needed.
func (o *optimizer) readFields(n Node) (Node, error) {
	return rewrite(n, func(n Node) (Node, error) {
		c, ok := n.(*Calc)
		if !ok {
			return n, nil
		}
		s, ok := c.In.(*Scan)
		if !ok || s.Info.Mode != types.AppendOnly {
			return n, nil
		}
		return readFields(c, s), nil
	})
}

func readFields(c *Calc, s *Scan) Node {
	es := slices.Clone(c.Exprs)
	if c.Cond != nil {
		es = append(es, c.Cond)
	}
	r := reads{info: s.Info}
	for _, e := range es {
		r.add(substitute(e, s.stored()))
	}
	if len(r.fields()) == 0 {
		return c
	}
	out := &Scan{Info: s.Info, Pushed: s.Pushed, Unmarked: s.Unmarked, Nested: r.fields()}
	at := make([]int, len(s.Cols)) // of the old columns
	for i, t := range s.Cols {
		at[i] = -1
		if r.whole[t] || !slices.ContainsFunc(out.Nested, func(e expr.Expr) bool { root, _ := expr.FieldPath(e); return root.Index == t }) {
			at[i] = len(out.Cols)
			out.Cols = append(out.Cols, t)
		}
	}
	f := out.Fields()
	place := func(e expr.Expr) expr.Expr {
		return expr.Replace(e, func(e expr.Expr) (expr.Expr, bool) {
			if x, ok := e.(*expr.Column); ok {
				return col(f, at[x.Index]), true
			}
			root, _ := expr.FieldPath(e)
			if root == nil || at[root.Index] >= 0 {
				return nil, false
			}
			stored := substitute(e, s.stored())
			i := indexExpr(out.Nested, stored)
			return col(f, len(out.Cols)+max(i, 0)), i >= 0
		})
	}
	placed := &Calc{In: out, Names: c.Names, Exprs: make([]expr.Expr, len(c.Exprs))}
	for i, e := range c.Exprs {
		placed.Exprs[i] = place(e)
	}
	if c.Cond != nil {
		placed.Cond = place(c.Cond)
	}
	return placed
}

// reads collects what expressions over a table's columns need of it: whole columns, and fields of ROW columns of which
// the connector can read single fields.
type reads struct {
	info  *tableInfo
	whole map[int]bool
	parts []expr.Expr // FieldRefs, without repeats
}

func (r *reads) add(es ...expr.Expr) {
	if r.whole == nil {
		r.whole = map[int]bool{}
	}
	for _, e := range es {
		expr.Walk(e, func(e expr.Expr) bool {
			if root, _ := expr.FieldPath(e); root != nil && r.info.readsFields(root.Index) {
				if indexExpr(r.parts, e) < 0 {
					r.parts = append(r.parts, e)
				}
				return false
			}
			if c, ok := e.(*expr.Column); ok {
				r.whole[c.Index] = true
			}
			return true
		})
	}
}

// fields are the fields to read on their own: those of columns that are not read whole, and not those inside another
// field that is.
func (r *reads) fields() []expr.Expr {
	var out []expr.Expr
	for _, e := range r.parts {
		root, path := expr.FieldPath(e)
		inside := slices.ContainsFunc(r.parts, func(x expr.Expr) bool {
			other, outer := expr.FieldPath(x)
			return other.Index == root.Index && len(outer) < len(path) && slices.Equal(outer, path[:len(outer)])
		})
		if !r.whole[root.Index] && !inside {
			out = append(out, e)
		}
	}
	return out
}

// readsFields reports that the connector can read single fields of the table's column c.
func (t *tableInfo) readsFields(c int) bool {
	_, supplied := t.Supplied[c]
	return t.Connector.ReadsFields != nil && t.Fields[c].Type.Kind == types.Row && !supplied &&
		t.Table.Columns[c].Kind == catalog.Physical && t.Connector.ReadsFields(t.Table, c)
}

// layout is what a connector delivers of a table.
type layout struct {
	info    *tableInfo
	columns []int // of the table
	paths   [][]int
	schema  *types.Schema
	parts   []expr.Expr // per column; a Column or a FieldRef of the table
}

// layout is what the connector has to deliver: always something, for rows have to be counted.
func (r *reads) layout() *layout {
	x := &layout{info: r.info, parts: r.fields(), schema: &types.Schema{}}
	for c := range r.whole {
		x.parts = append(x.parts, col(r.info.Fields, c))
	}
	if len(x.parts) == 0 {
		x.parts = append(x.parts, col(r.info.Fields, firstStored(r.info.Table)))
	}
	at := func(e expr.Expr) (int, []int) {
		if c, ok := e.(*expr.Column); ok {
			return c.Index, nil
		}
		c, path := expr.FieldPath(e)
		return c.Index, path
	}
	slices.SortFunc(x.parts, func(a, b expr.Expr) int {
		c, p := at(a)
		d, q := at(b)
		return cmp.Or(cmp.Compare(c, d), slices.Compare(p, q))
	})
	for _, e := range x.parts {
		c, path := at(e)
		t := types.Column{Name: e.String(), Type: e.Type()}
		if path == nil {
			t = types.Column{Name: r.info.Table.Columns[c].Name, Type: r.info.Table.Columns[c].Type}
		}
		if s, ok := r.info.Supplied[c]; ok {
			t.Type = s
		}
		x.columns, x.paths = append(x.columns, c), append(x.paths, path)
		x.schema.Columns = append(x.schema.Columns, t)
	}
	if len(r.fields()) == 0 {
		x.paths = nil
	}
	return x
}

// place puts e, over the table's columns, over what the connector delivers. It reports false when that lacks something.
func (x *layout) place(e expr.Expr) (placed expr.Expr, ok bool) {
	ok = true
	placed = expr.Replace(e, func(e expr.Expr) (expr.Expr, bool) {
		i := indexExpr(x.parts, e)
		c, column := e.(*expr.Column)
		switch {
		case i < 0:
			ok = ok && !column
			return nil, false
		case column:
			t := x.schema.Columns[i].Type
			at := &expr.Column{Index: i, Name: c.Name, T: t}
			if _, other := x.info.Supplied[c.Index]; !other {
				return at, true
			}
			cast, _ := expr.NewCast(at, c.T, false) // suppliedTypes checked it
			return cast, true
		}
		return &expr.Column{Index: i, Name: e.String(), T: e.Type()}, true
	})
	return placed, ok
}
